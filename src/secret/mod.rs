//! Secrets: values that are never shown, and [`conceal`], which removes them from all output.

mod address;

use std::fmt;

use crate::terminal::with_secrets;
pub(crate) use crate::terminal::{conceal, conceal_credentials, without_entities};
use crate::text::shortened;

/// A secret: hidden in `Debug`, without `Display`, readable only through [`Secret::expose`]. [`conceal`]
/// removes it from all output of the run.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        with_secrets(|known| known.remember(&text, true));
        Self(text)
    }

    /// An access token.
    pub(crate) fn token(text: impl Into<String>) -> Self {
        let text = text.into();
        with_secrets(|known| known.remember_token(&text));
        Self(text)
    }

    /// A cursor: also secret.
    pub(crate) fn cursor(text: impl Into<String>) -> Self {
        let text = text.into();
        with_secrets(|known| known.remember_cursor(&text));
        Self(text)
    }

    /// Conceals the pair of a name and this secret as well, as in Basic authentication.
    pub(crate) fn conceal_pair(&self, name: &str) {
        let pair = format!("{name}:{}", self.0);
        // The name alone is not secret.
        with_secrets(|known| known.remember(&pair, false));
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
        with_secrets(|known| known.remember(&secret, true));
    }
}

/// Shortens text from outside for a message: one line, and at most 120 characters.
pub(crate) fn brief(text: &str) -> String {
    // Conceal first: part of a secret would not be recognised.
    shortened(&conceal(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{MessageFormat, Terminal};

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
    fn a_run_does_not_conceal_the_secrets_of_another() {
        let [one, other] = [(); 2].map(|()| Terminal::captured(MessageFormat::Text));
        let entered = one.enter();
        let _secret = Secret::new("secret-of-a-run");
        drop(entered);
        let shown = |terminal: &Terminal| {
            let terminal = terminal.clone();
            let thread = std::thread::spawn(move || {
                terminal.attach();
                conceal("it is secret-of-a-run").into_owned()
            });
            thread.join().expect("no panic")
        };
        assert_eq!(shown(&one), "it is …", "on each of its threads");
        assert_eq!(shown(&other), "it is secret-of-a-run");
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
}
