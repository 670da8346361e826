//! Secrets: values that are never shown, and [`conceal`], which removes them from all output.

mod address;
mod escapes;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::fmt::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use escapes::unescaped;
pub(crate) use escapes::without_entities;
use parking_lot::Mutex;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// A secret: hidden in `Debug`, without `Display`, readable only through [`Secret::expose`]. [`conceal`]
/// removes it from all output.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        KNOWN.lock().credentials.remember(&text, true);
        Self(text)
    }

    /// A cursor: also secret, but there may be thousands, which must not displace other secrets. A number or a date is not
    /// concealed: it may be anywhere in the output.
    pub(crate) fn cursor(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.bytes().filter(u8::is_ascii_alphabetic).count() >= MIN_LETTERS {
            // Its parts may be anywhere, such as the id of a batch.
            KNOWN.lock().cursors.remember(&text, false);
        }
        Self(text)
    }

    /// Conceals the pair of a name and this secret as well, as in Basic authentication.
    pub(crate) fn conceal_pair(&self, name: &str) {
        let pair = format!("{name}:{}", self.0);
        // The name alone is not secret.
        KNOWN.lock().credentials.remember(&pair, false);
    }

    /// Returns the secret itself, for sending it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Conceals the passwords and signatures in an argument that looks like an address.
pub(crate) fn conceal_address(argument: &str) {
    for secret in address::secrets(argument) {
        KNOWN.lock().credentials.remember(&secret, true);
    }
}

/// All secrets of this run.
struct KnownSecrets {
    /// Secrets and tokens.
    credentials: SecretList,
    cursors: SecretList,
}

static KNOWN: Mutex<KnownSecrets> = Mutex::new(KnownSecrets {
    credentials: SecretList::new(),
    cursors: SecretList::new(),
});

/// Secrets, each in every encoding in which a response may repeat it.
struct SecretList {
    secrets: VecDeque<KnownSecret>,
    /// Parts of the secrets that are long enough to give them away, in lower case, for responses that shorten what they
    /// repeat or change its case.
    parts: BTreeSet<[u8; PART]>,
}

struct KnownSecret {
    /// In every encoding; the first is the secret itself.
    forms: Vec<String>,
    /// Whether its parts are secret, too.
    has_parts: bool,
}

/// Maximum number of secrets to keep: the first one and the latest.
const REMEMBERED: usize = 256;
/// How often escapes within escapes are replaced to find a secret.
const MAX_ESCAPES: usize = 3;
/// The length of a part that is concealed without the rest. Shorter ones may be ordinary words.
const PART: usize = 12;
/// Shorter texts are not concealed, because that would garble the output.
const SHORTEST: usize = 4;
/// Cursors with fewer letters are numbers or dates.
const MIN_LETTERS: usize = 3;

impl SecretList {
    const fn new() -> Self {
        Self {
            secrets: VecDeque::new(),
            parts: BTreeSet::new(),
        }
    }

    fn remember(&mut self, secret: &str, has_parts: bool) {
        let mut known = self.secrets.iter();
        if secret.len() < SHORTEST || known.any(|known| known.forms[0] == secret) {
            return;
        }
        if self.secrets.len() >= REMEMBERED
            && self.secrets.remove(1).is_some_and(|old| old.has_parts)
        {
            // The others may have some of its parts.
            let others = self.secrets.iter().filter(|known| known.has_parts);
            self.parts = others.flat_map(|known| parts(&known.forms[0])).collect();
        }
        if has_parts {
            self.parts.extend(parts(secret));
        }
        let forms = forms(secret);
        self.secrets.push_back(KnownSecret { forms, has_parts });
    }
}

/// Returns the first part of `text`, in lower case.
fn as_part(text: &str) -> Option<[u8; PART]> {
    let part = text.as_bytes().first_chunk::<PART>()?;
    Some(part.map(|byte| byte.to_ascii_lowercase()))
}

fn parts(secret: &str) -> impl Iterator<Item = [u8; PART]> {
    let starts = secret.char_indices().map(|(start, _)| start);
    starts.filter_map(|start| as_part(secret.get(start..start + PART)?))
}

fn forms(secret: &str) -> Vec<String> {
    let form: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let percent = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
    let json = serde_json::Value::from(secret).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let hex = secret.bytes().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    let mut forms = vec![secret.to_owned()];
    for form in [
        form.to_lowercase(),
        percent.to_lowercase(),
        form,
        percent,
        json,
        STANDARD_NO_PAD.encode(secret),
        URL_SAFE_NO_PAD.encode(secret),
        hex.to_uppercase(),
        hex,
        // As a service may decode it once too often.
        secret.replace('+', " "),
        unescaped(secret),
        unescaped(&unescaped(secret)),
        // As a service may compare it.
        secret.to_lowercase(),
        secret.to_uppercase(),
    ] {
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// Returns `text` with every secret of this run replaced by `…`. If escapes hide one, they are replaced as well.
pub(crate) fn conceal(text: &str) -> Cow<'_, str> {
    let known = KNOWN.lock();
    conceal_all(text, &[&known.credentials, &known.cursors])
}

/// Like [`conceal`], but only credentials: for results with paths and IDs, which may be equal to a cursor.
pub(crate) fn conceal_credentials(text: &str) -> Cow<'_, str> {
    conceal_all(text, &[&KNOWN.lock().credentials])
}

fn conceal_all<'t>(text: &'t str, secrets: &[&SecretList]) -> Cow<'t, str> {
    let concealed = at_any_depth(text, |text| without_forms(text, secrets));
    match at_any_depth(&concealed, |text| without_parts(text, secrets)) {
        Cow::Owned(concealed) => Cow::Owned(concealed),
        Cow::Borrowed(_) => concealed,
    }
}

/// Replaces secrets in a text, or else in a text that is quoted in it with escapes.
fn at_any_depth(text: &str, replace: impl Fn(&str) -> Cow<'_, str>) -> Cow<'_, str> {
    let concealed = replace(text);
    let mut plain = concealed.clone();
    for _ in 0..MAX_ESCAPES {
        if !plain.contains(['\\', '%', '&']) {
            break;
        }
        plain = Cow::Owned(unescaped(&plain));
        if let Cow::Owned(concealed) = replace(&plain) {
            return Cow::Owned(concealed);
        }
    }
    concealed
}

/// Returns `text` with every form of these secrets replaced by `…`; borrowed if there is none.
fn without_forms<'t>(text: &'t str, secrets: &[&SecretList]) -> Cow<'t, str> {
    let known = secrets.iter().flat_map(|list| &list.secrets);
    let forms = known.flat_map(|known| &known.forms);
    let mut forms: Vec<&String> = forms.filter(|form| text.contains(*form)).collect();
    // The longest first: a secret may be part of another one, and the rest of that would remain.
    forms.sort_unstable_by_key(|form| Reverse(form.len()));
    let conceal = |text: Cow<'_, str>, form: &&String| Cow::Owned(text.replace(*form, "…"));
    forms.iter().fold(Cow::Borrowed(text), conceal)
}

/// Returns `text` with every part of these secrets replaced by `…`; borrowed if there is none.
fn without_parts<'t>(text: &'t str, secrets: &[&SecretList]) -> Cow<'t, str> {
    let mut concealed = String::new();
    let mut end = None;
    for (start, _) in text.char_indices() {
        let part = text.get(start..start + PART).and_then(as_part);
        let is_secret = |part| secrets.iter().any(|list| list.parts.contains(&part));
        if !part.is_some_and(is_secret) {
            continue;
        }
        if end.is_none_or(|end| end < start) {
            concealed.push_str(&text[end.unwrap_or(0)..start]);
            concealed.push('…');
        }
        end = Some(start + PART);
    }
    match end {
        Some(end) => Cow::Owned(concealed + &text[end..]),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_concealed_in_any_case() {
        let _secret = Secret::new("deadbeef-0123-aBcD");
        let _short = Secret::new("canarY7");
        let _cursor = Secret::cursor("next-page-x9");
        for text in [
            "DEADBEEF-0123-ABCD",
            "Deadbeef-0123-Abcd",
            "canary7",
            "CANARY7",
            "NEXT-PAGE-X9",
        ] {
            assert_eq!(conceal(&format!("it is {text}.")), "it is ….", "{text}");
        }
        assert_eq!(conceal("it is DEADBEEF-0123 and more"), "it is … and more");
    }

    #[test]
    fn secrets_are_concealed_in_every_form() {
        let _secret = Secret::new("pa\"ss/wö rd");
        for text in [
            "pa\"ss/wö rd",
            "pa%22ss%2Fw%C3%B6+rd",
            "pa%22ss%2fw%c3%b6%20rd",
            r#"pa\"ss/wö rd"#,
            r#"pa\"ss\/wö rd"#,
            r"pa\u0022ss\u002Fw\u00f6\u0020rd",
            r#"pa\\\"ss\\/wö rd"#,
            r"pa\x22ss/wö rd",
            "cGEic3Mvd8O2IHJk",
            "70612273732f77c3b6207264",
            "pa&quot;ss&#47;w&#xf6; rd",
            "pa&quot;ss/wö%20rd",
            "pa%2522ss%252fw%25c3%25b6%2520rd",
            "pa%22ss/w%C3%b6%20rd",
        ] {
            assert_eq!(conceal(&format!("<{text}>")), "<…>");
        }
        let unrelated = r#"{"a":"b\/c\u00e9\\"} 100 %41 &amp;"#;
        assert_eq!(conceal(unrelated), unrelated, "escapes stay");
        assert_eq!(conceal("password"), "password");
    }

    #[test]
    fn a_secret_that_is_decoded_or_escaped_once_more_is_concealed() {
        let _secret = Secret::new("S%3D/0123+45%2541");
        for text in [
            r"S%3D\/0123+45%2541",
            "S=/0123+45%41",
            "S=/0123+45A",
            "S%3D/0123 45%2541",
            "S%3D&#47;0123+45%2541",
            r"S%253D\/0123%2B45%252541",
        ] {
            assert_eq!(conceal(&format!("<{text}>")), "<…>");
        }
    }

    #[test]
    fn long_parts_of_a_secret_are_concealed() {
        let _secret = Secret::new("k9X8e35c2cd3bf6641bdb0e2a5ddacc1d9bea8");
        let _accents = Secret::new("ünïcödé-sécrèt-wïth-äccents");
        for (text, expected) in [
            ("'k9X8e35c2cd3bf66...cc1d9bea8'", "'…...cc1d9bea8'"),
            ("'k9X8e35c2cd3bf66...bdb0e2a5ddacc1d9bea8'", "'…...…'"),
            ("k9X8e35c2cd3bf66bdb0e2a5ddacc1d9bea8", "…"),
            ("k9X8e35c2cd é", "k9X8e35c2cd é"),
            ("8e35c2cd3bf6641bdb0e2a5ddacc1d9b é", "… é"),
            ("é 8e35c2cd3bf6", "é …"),
            ("é 8e35c2cd3bf", "é 8e35c2cd3bf"),
            ("ünïcödé-sécrèt…", "……"),
            (r"8e35\u0063\u0032cd3bf6641", "…"),
        ] {
            assert_eq!(conceal(text), expected, "{text}");
        }
        // The name of a pair is not secret, and a cursor may contain the id of a batch.
        Secret::new("the-secret-of-the-pair").conceal_pair("a-long-client-name");
        let _cursor = Secret::cursor("2026-05-09T06:00:00Z/batch-0123456789");
        for text in [
            "a-long-client-name",
            "2026-05-09T06:00:00Z",
            "batch-0123456789",
        ] {
            assert_eq!(conceal(text), text);
        }
    }

    #[test]
    fn a_secret_within_another_leaves_nothing_of_it() {
        let _short = Secret::new("inner-secret");
        let _long = Secret::new("inner-secret-and-more");
        assert_eq!(conceal("<inner-secret-and-more>"), "<…>");
    }

    #[test]
    fn credentials_outlive_thousands_of_cursors() {
        let _token = Secret::new("a-token-in-use");
        for number in 0..3 * REMEMBERED {
            let _cursor = Secret::cursor(format!("cursor-{number:06}"));
        }
        assert!(KNOWN.lock().cursors.secrets.len() <= REMEMBERED);
        assert_eq!(conceal("a-token-in-use"), "…");
        let last = format!("cursor-{:06}", 3 * REMEMBERED - 1);
        assert_eq!(conceal(&last), "…");
    }

    #[test]
    fn numbers_and_dates_are_no_secret_cursors() {
        for cursor in ["7500", "2026-05-09", "2026-05-09T06:00:00Z"] {
            assert_eq!(conceal(Secret::cursor(cursor).expose()), cursor);
        }
        assert_eq!(conceal(Secret::cursor("7500-abc").expose()), "…");
    }

    #[test]
    fn the_pair_of_basic_authentication_is_concealed() {
        Secret::new("basic-secret").conceal_pair("my-name");
        assert_eq!(conceal("Basic bXktbmFtZTpiYXNpYy1zZWNyZXQ="), "Basic …=");
    }

    #[test]
    fn a_secret_is_not_shown_by_debug() {
        for secret in [Secret::new("debug-secret"), Secret::cursor("debug-secret")] {
            assert_eq!(format!("{secret:?}"), "Secret(…)");
            assert_eq!(secret.expose(), "debug-secret", "unless it is asked for");
        }
    }

    #[test]
    fn texts_of_four_bytes_are_concealed() {
        let _secrets = ["Z~q9", "Z~q"].map(Secret::new);
        assert_eq!(conceal("<Z~q9> <Z~q>"), "<…> <Z~q>");
    }

    #[test]
    fn the_first_secret_and_the_latest_are_kept_once() {
        let mut list = SecretList::new();
        for number in 0..2 * REMEMBERED {
            let secret = format!("secret-{number}");
            list.remember(&secret, true);
            list.remember(&secret, true);
        }
        let first = list.secrets.iter().map(|known| known.forms[0].as_str());
        let latest = (REMEMBERED + 1..2 * REMEMBERED).map(|number| format!("secret-{number}"));
        let expected = std::iter::once("secret-0".to_owned()).chain(latest);
        assert!(first.eq(expected));
    }

    #[test]
    fn a_secret_that_is_forgotten_leaves_the_parts_of_others() {
        let mut list = SecretList::new();
        list.remember("the-secret-itself", true);
        list.remember("my-name:the-secret-itself", false);
        for number in 0..2 * REMEMBERED {
            list.remember(&format!("header.of.all-{number:03}"), true);
        }
        for (text, expected) in [
            ("the-secret-i", "…"),
            ("header.of.al", "…"),
            (".of.all-511", ".of.all-511"),
            ("r.of.all-511", "…"),
            ("r.of.all-001", "r.of.all-001"),
        ] {
            assert_eq!(without_parts(text, &[&list]), expected, "{text}");
        }
    }

    #[test]
    fn a_secret_has_a_form_in_each_encoding() {
        let expected = [
            "a b/ü\"",
            "a+b%2f%c3%bc%22",
            "a%20b%2f%c3%bc%22",
            "a+b%2F%C3%BC%22",
            "a%20b%2F%C3%BC%22",
            r#"a b/ü\""#,
            "YSBiL8O8Ig",
            "6120622FC3BC22",
            "6120622fc3bc22",
            "A B/Ü\"",
        ];
        assert_eq!(forms(expected[0]), expected);
    }
}
