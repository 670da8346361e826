//! Secrets: values that are never shown, and [`conceal`], which removes them from all output.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// A secret: hidden in `Debug`, without `Display`, readable only through [`Secret::expose`]. [`conceal`]
/// removes it from all output.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        known().credentials.remember(&text);
        Self(text)
    }

    /// A cursor: also secret, but there may be thousands, which must not displace other secrets.
    pub(crate) fn cursor(text: impl Into<String>) -> Self {
        let text = text.into();
        known().cursors.remember(&text);
        Self(text)
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

fn known() -> MutexGuard<'static, KnownSecrets> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Secrets, each in every encoding in which a response may repeat it.
struct SecretList(VecDeque<Vec<String>>);

/// Maximum number of secrets to keep: the first one and the latest.
const REMEMBERED: usize = 256;
/// Shorter texts are not concealed, because that would garble the output.
const SHORTEST: usize = 4;

impl SecretList {
    const fn new() -> Self {
        Self(VecDeque::new())
    }

    fn remember(&mut self, secret: &str) {
        if secret.len() < SHORTEST || self.0.iter().any(|forms| forms[0] == secret) {
            return;
        }
        if self.0.len() >= REMEMBERED {
            self.0.remove(1);
        }
        self.0.push_back(forms(secret));
    }
}

fn forms(secret: &str) -> Vec<String> {
    let form: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let percent = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
    let json = serde_json::Value::from(secret).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let mut forms = vec![secret.to_owned()];
    for form in [
        form.to_lowercase(),
        percent.to_lowercase(),
        form,
        percent,
        json,
    ] {
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// Returns `text` with every secret of this run replaced by `…`.
pub(crate) fn conceal(text: &str) -> Cow<'_, str> {
    let known = known();
    let all = known.credentials.0.iter().chain(&known.cursors.0).flatten();
    let mut forms: Vec<&str> = all
        .map(String::as_str)
        .filter(|form| text.contains(form))
        .collect();
    // The longest first: a secret may be part of another one, and the rest of that would remain.
    forms.sort_unstable_by_key(|form| Reverse(form.len()));
    let conceal = |text: Cow<'_, str>, form: &&str| Cow::Owned(text.replace(form, "…"));
    forms.iter().fold(Cow::Borrowed(text), |concealed, form| {
        conceal(concealed, form)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_concealed_in_every_form() {
        let _secret = Secret::new("pa\"ss/wö rd");
        for text in [
            "pa\"ss/wö rd",
            "pa%22ss%2Fw%C3%B6+rd",
            "pa%22ss%2fw%c3%b6%20rd",
            r#"pa\"ss/wö rd"#,
        ] {
            assert_eq!(conceal(&format!("<{text}>")), "<…>");
        }
        assert_eq!(conceal("password"), "password");
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
        assert!(known().cursors.0.len() <= REMEMBERED);
        assert_eq!(conceal("a-token-in-use"), "…");
        let last = format!("cursor-{:06}", 3 * REMEMBERED - 1);
        assert_eq!(conceal(&last), "…");
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
            list.remember(&secret);
            list.remember(&secret);
        }
        let first = list.0.iter().map(|forms| forms[0].as_str());
        let latest = (REMEMBERED + 1..2 * REMEMBERED).map(|number| format!("secret-{number}"));
        let expected = std::iter::once("secret-0".to_owned()).chain(latest);
        assert!(first.eq(expected));
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
        ];
        assert_eq!(forms(expected[0]), expected);
    }
}
