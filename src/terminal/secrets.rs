//! The secrets of a run, which are removed from all output, in whatever form a response repeats them.

mod escapes;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use escapes::unescaped;
pub(crate) use escapes::without_entities;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// All secrets of a run.
#[derive(Default)]
pub(crate) struct KnownSecrets {
    /// Secrets of the user, which are all kept.
    credentials: SecretList,
    /// There may be thousands of these; the latest are kept.
    tokens: SecretList,
    cursors: SecretList,
}

impl KnownSecrets {
    /// Adds a secret. Its parts are concealed too if it `has_parts`.
    pub(crate) fn remember(&mut self, secret: &str, has_parts: bool) {
        self.credentials.remember(secret, has_parts);
    }

    /// Adds an access token.
    pub(crate) fn remember_token(&mut self, token: &str) {
        self.tokens.remember_latest(token, true);
    }

    /// Adds a cursor. A number or a date is not concealed: it may be anywhere in the output.
    pub(crate) fn remember_cursor(&mut self, cursor: &str) {
        if cursor.bytes().filter(u8::is_ascii_alphabetic).count() >= MIN_LETTERS {
            // Its parts may be anywhere, such as the id of a batch.
            self.cursors.remember_latest(cursor, false);
        }
    }

    /// Returns `text` with every secret replaced by `…`. If escapes hide one, they are replaced as well.
    pub(super) fn conceal<'t>(&self, text: &'t str) -> Cow<'t, str> {
        conceal_all(text, &[&self.credentials, &self.tokens, &self.cursors])
    }

    /// Does the same only for credentials and tokens.
    pub(super) fn conceal_credentials<'t>(&self, text: &'t str) -> Cow<'t, str> {
        conceal_all(text, &[&self.credentials, &self.tokens])
    }
}

/// Secrets, each in every encoding in which a response may repeat it.
#[derive(Default)]
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

/// Maximum number of tokens, and of cursors, to keep.
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
    fn remember(&mut self, secret: &str, has_parts: bool) {
        let mut known = self.secrets.iter();
        if secret.len() < SHORTEST || known.any(|known| known.forms[0] == secret) {
            return;
        }
        if has_parts {
            self.parts.extend(parts(secret));
        }
        let forms = forms(secret);
        self.secrets.push_back(KnownSecret { forms, has_parts });
    }

    /// Adds a secret, and forgets the oldest one if there are too many.
    fn remember_latest(&mut self, secret: &str, has_parts: bool) {
        self.remember(secret, has_parts);
        if self.secrets.len() > REMEMBERED
            && self.secrets.pop_front().is_some_and(|old| old.has_parts)
        {
            // The others may have some of its parts.
            let others = self.secrets.iter().filter(|known| known.has_parts);
            self.parts = others.flat_map(|known| parts(&known.forms[0])).collect();
        }
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
    fn credentials_outlive_thousands_of_tokens_and_cursors() {
        let mut known = KnownSecrets::default();
        let credentials = ["a-password-of-a-database", "the-client-secret"];
        for secret in credentials {
            known.remember(secret, true);
        }
        for number in 0..3 * REMEMBERED {
            known.remember_token(&format!("token.{number:06}"));
            known.remember_cursor(&format!("cursor-{number:06}"));
        }
        for secret in credentials {
            assert_eq!(known.conceal(secret), "…");
        }
        for list in [&known.tokens, &known.cursors] {
            assert_eq!(list.secrets.len(), REMEMBERED);
        }
        let last = format!("cursor-{:06}", 3 * REMEMBERED - 1);
        assert_eq!(known.conceal(&last), "…");
        assert_eq!(known.conceal_credentials(&last), last);
        let last = format!("token.{:06}", 3 * REMEMBERED - 1);
        assert_eq!(known.conceal_credentials(&last), "…");
    }

    #[test]
    fn the_latest_secrets_are_kept_once() {
        let mut list = SecretList::default();
        for number in 0..2 * REMEMBERED {
            let secret = format!("secret-{number}");
            list.remember_latest(&secret, true);
            list.remember_latest(&secret, true);
        }
        let kept = list.secrets.iter().map(|known| known.forms[0].as_str());
        let latest = (REMEMBERED..2 * REMEMBERED).map(|number| format!("secret-{number}"));
        assert!(kept.eq(latest));
    }

    #[test]
    fn a_secret_that_is_forgotten_leaves_the_parts_of_others() {
        let mut list = SecretList::default();
        for number in 0..2 * REMEMBERED {
            list.remember_latest(&format!("header.of.all-{number:03}"), true);
        }
        for (text, expected) in [
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
