//! Values on the command line: words for choices that other modules define, numbers and addresses. Errors say what a valid
//! value is.

use std::fmt::Display;
use std::net::SocketAddr;

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::formats::Format;

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = PossibleValue::new(self.name());
        Some(match self {
            // The other usual name, as in file names.
            Self::Ndjson => value.alias("jsonl"),
            _ => value,
        })
    }
}

/// Accepts a whole number within bounds. The error says what a valid value is.
pub(super) fn number<T>(word: &str, least: T, most: T, example: T) -> Result<T, String>
where
    T: TryFrom<i128> + Into<i128> + Display + Copy,
{
    let expected = match word.parse::<i128>() {
        Ok(number) if number < least.into() => format!("a whole number, at least {least}"),
        Ok(number) if number > most.into() => format!("a whole number, at most {most}"),
        Ok(number) => return T::try_from(number).map_err(|_| "a whole number".to_owned()),
        Err(_) => "a whole number".to_owned(),
    };
    Err(format!("{expected}, such as {example}"))
}

/// Accepts `IP:PORT`, and `localhost:PORT`, `:PORT` or `PORT` because people type them.
pub(super) fn listen_address(word: &str) -> Result<SocketAddr, String> {
    let port = word.strip_prefix("localhost").unwrap_or(word);
    let port = port.strip_prefix(':').unwrap_or(word);
    if let Ok(port) = port.parse() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    let expected = "an IP address and a port, such as 127.0.0.1:8080 or [::1]:0";
    word.parse().map_err(|_| expected.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_their_bounds_are_refused_with_an_example() {
        let read = |word: &str| number::<u32>(word, 1, 100, 4);
        assert_eq!(read("100"), Ok(100));
        for (word, expected) in [
            ("many", "a whole number, such as 4"),
            ("1.5", "a whole number, such as 4"),
            ("", "a whole number, such as 4"),
            ("-1", "a whole number, at least 1, such as 4"),
            ("101", "a whole number, at most 100, such as 4"),
        ] {
            assert_eq!(read(word).as_ref().map_err(String::as_str), Err(expected));
        }
    }

    #[test]
    fn addresses_may_name_localhost_but_no_other_host() {
        assert_eq!(
            listen_address("localhost:80"),
            Ok(([127, 0, 0, 1], 80).into())
        );
        assert!(listen_address("[::1]:0").is_ok());
        assert!(listen_address("example.com:80").is_err());
        assert!(listen_address("127.0.0.1").is_err());
        assert_eq!(listen_address("8080"), Ok(([127, 0, 0, 1], 8080).into()));
        assert_eq!(listen_address(":0"), Ok(([127, 0, 0, 1], 0).into()));
        assert!(listen_address("99999").is_err());
    }
}
