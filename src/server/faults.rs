//! The faults that `--fault` can simulate.
//!
//! Some are faults of any network. The others are readings of what the interface leaves open ("not
//! shown"), so that a client can be tested with each of them.

use std::fmt::Write as _;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Datelike as _, TimeDelta, Utc};

use crate::error::{Failure, Kind};
use crate::text;

/// Every fault: its name, its value (empty if it has none), and its effect.
const ALL: [(&str, &str, &str); 27] = [
    ("503", "P", "answer 503 with probability P"),
    ("500", "P", "answer 500 with probability P"),
    ("429", "P", "answer 429 with probability P"),
    ("busy", "N", "answer 503 while N other requests are served"),
    (
        "retry-after",
        "DURATION",
        "send Retry-After with these, in seconds",
    ),
    ("latency", "DURATION", "wait before every answer"),
    ("reset", "P", "reset the connection within the body"),
    (
        "truncate",
        "P",
        "close the connection before the body is complete",
    ),
    ("gzip", "", "compress answers for clients that accept gzip"),
    (
        "bandwidth",
        "MBIT",
        "limit all answers together to MBIT megabits per second",
    ),
    ("clock", "OFFSET", "shift the clock, such as by +30d or -2h"),
    ("v2-missing", "", "answer 404 for all of version 2"),
    ("v1-truncate", "", "cut off version 1 above its limit"),
    (
        "v1-refuse",
        "[STATUS]",
        "refuse version 1 above its limit (default 422)",
    ),
    (
        "cursor-expiry",
        "N",
        "refuse the cursor of page N, once per range",
    ),
    (
        "cursor-ignored",
        "",
        "answer every cursor with the first page and a new cursor",
    ),
    (
        "dates-with-cursor",
        "required|refused",
        "require or refuse dates together with a cursor",
    ),
    ("empty-pages", "P", "send empty pages before full ones"),
    ("shuffle", "", "send batches in random order"),
    ("newest-first", "", "send the newest batches first"),
    ("duplicates", "P", "repeat a batch on the next page"),
    ("unknown-fields", "", "add fields that are not in the API"),
    ("token-uses", "N", "accept a token for N requests only"),
    ("tokens-shared", "", "accept a token in both versions"),
    ("expires-in", "", "send expires_in with the token"),
    (
        "bad-token",
        "STATUS",
        "status for an invalid token (default 401)",
    ),
    (
        "bad-cursor",
        "STATUS",
        "status for an invalid next_token (default 422)",
    ),
];

/// A short description of `--fault`.
pub(crate) const ABOUT: &str = "Simulate a fault; can be repeated. The same `--seed` gives the same faults. P is a probability \
    from 0 to 1 per request. If two faults contradict each other, the later one wins.";

/// Returns every fault as it is written on the command line, with its effect.
pub(crate) fn spellings() -> impl Iterator<Item = (String, &'static str)> {
    ALL.iter()
        .map(|(name, value, meaning)| (spelling(name, value), *meaning))
}

/// Returns every fault as far as it can be completed, with its effect. A value follows after `:`.
pub(crate) fn words() -> impl Iterator<Item = (String, &'static str)> {
    ALL.iter().flat_map(|(name, value, meaning)| {
        let words = match *value {
            "" => vec![(*name).to_owned()],
            value if value.starts_with('[') => vec![(*name).to_owned(), format!("{name}:")],
            value if value.contains('|') => {
                let values = value.split('|');
                values.map(|value| format!("{name}:{value}")).collect()
            }
            _ => vec![format!("{name}:")],
        };
        words.into_iter().map(|word| (word, *meaning))
    })
}

/// Returns the help text of `--fault`, with a list of all faults.
pub(crate) fn help() -> String {
    let mut text = format!("{ABOUT}\n");
    for (spelling, meaning) in spellings() {
        // A long spelling gets its own line. Writing to a string cannot fail.
        let gap = if spelling.len() > 21 {
            format!("\n{:21}", "")
        } else {
            String::new()
        };
        let _ = write!(text, "\n{spelling:21}{gap} {meaning}");
    }
    text
}

fn spelling(name: &str, value: &str) -> String {
    match value {
        "" => name.to_owned(),
        value if value.starts_with('[') => format!("{name}[:{}]", value.trim_matches(['[', ']'])),
        value => format!("{name}:{value}"),
    }
}

/// The faults to simulate. By default there are none.
#[derive(Clone, Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a separate fault, on or off"
)]
pub(crate) struct Faults {
    /// Random error statuses, each with its probability.
    pub(super) statuses: Vec<(u16, f64)>,
    /// The number of batches requests that are served at a time.
    pub(super) busy: Option<usize>,
    pub(super) retry_after: Option<Duration>,
    pub(super) latency: Duration,
    pub(super) reset: f64,
    pub(super) truncate: f64,
    pub(super) gzip: bool,
    /// Megabits per second.
    pub(super) bandwidth: Option<u32>,
    /// How far the clock is ahead.
    pub(super) clock: Option<TimeDelta>,
    pub(super) v2_missing: bool,
    pub(super) v1_excess: Option<Excess>,
    pub(super) cursor_expiry: Option<u64>,
    /// Every cursor returns the first page and a new cursor.
    pub(super) cursor_ignored: bool,
    pub(super) dates_with_cursor: DatesWithCursor,
    pub(super) empty_pages: f64,
    pub(super) order: BatchOrder,
    pub(super) duplicates: f64,
    pub(crate) unknown_fields: bool,
    pub(super) token_uses: Option<u32>,
    pub(super) tokens_shared: bool,
    pub(super) expires_in: bool,
    /// The status for a bad token.
    pub(super) bad_token: Option<u16>,
    /// The status for a bad cursor.
    pub(super) bad_cursor: Option<u16>,
}

/// What version 1 does with more batches than its limit (interface, section 8: not shown).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    Truncate,
    Refuse(u16),
}

/// Whether dates go with a cursor (interface, section 4, rule 4: not shown).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DatesWithCursor {
    #[default]
    Allowed,
    Required,
    Refused,
}

/// The order of batches in a response (interface, section 4: not shown).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum BatchOrder {
    #[default]
    OldestFirst,
    NewestFirst,
    Shuffled,
}

impl Faults {
    /// Parses `NAME` and `NAME:VALUE` words. If two contradict each other, the later one wins.
    pub(crate) fn parse(words: &[String]) -> Result<Self, Failure> {
        let mut faults = Self::default();
        for word in words {
            faults.add(word).map_err(|reason| refuse(word, &reason))?;
        }
        if faults.retry_after.is_some() && faults.statuses.is_empty() && faults.busy.is_none() {
            let reason = "needs one of the faults 503, 500, 429 and busy";
            return Err(refuse("retry-after", reason));
        }
        Ok(faults)
    }

    fn add(&mut self, word: &str) -> Result<(), String> {
        let (name, value) = match word.split_once(':') {
            Some((name, value)) => (name, Some(value).filter(|value| !value.is_empty())),
            None => (word, None),
        };
        match (name, value) {
            ("503" | "500" | "429", Some(value)) => {
                let status = status(name)?;
                self.statuses.retain(|&(other, _)| other != status);
                self.statuses.push((status, probability(value)?));
            }
            ("busy", Some(value)) => self.busy = Some(at_least(1, value)?),
            ("retry-after", Some(value)) => self.retry_after = Some(duration(value)?),
            ("latency", Some(value)) => self.latency = duration(value)?,
            ("reset", Some(value)) => self.reset = probability(value)?,
            ("truncate", Some(value)) => self.truncate = probability(value)?,
            ("gzip", None) => self.gzip = true,
            ("bandwidth", Some(value)) => self.bandwidth = Some(at_least(1, value)?),
            ("clock", Some(value)) => self.clock = Some(offset(value)?),
            ("v2-missing", None) => self.v2_missing = true,
            ("v1-truncate", None) => self.v1_excess = Some(Excess::Truncate),
            ("v1-refuse", None) => self.v1_excess = Some(Excess::Refuse(422)),
            ("v1-refuse", Some(value)) => self.v1_excess = Some(Excess::Refuse(status(value)?)),
            // Page 1 has no cursor.
            ("cursor-expiry", Some(value)) => self.cursor_expiry = Some(at_least(2, value)?),
            ("cursor-ignored", None) => self.cursor_ignored = true,
            ("dates-with-cursor", Some("required")) => {
                self.dates_with_cursor = DatesWithCursor::Required;
            }
            ("dates-with-cursor", Some("refused")) => {
                self.dates_with_cursor = DatesWithCursor::Refused;
            }
            ("empty-pages", Some(value)) => self.empty_pages = probability(value)?,
            ("shuffle", None) => self.order = BatchOrder::Shuffled,
            ("newest-first", None) => self.order = BatchOrder::NewestFirst,
            ("duplicates", Some(value)) => self.duplicates = probability(value)?,
            ("unknown-fields", None) => self.unknown_fields = true,
            ("token-uses", Some(value)) => self.token_uses = Some(at_least(1, value)?),
            ("tokens-shared", None) => self.tokens_shared = true,
            ("expires-in", None) => self.expires_in = true,
            ("bad-token", Some(value)) => self.bad_token = Some(status(value)?),
            ("bad-cursor", Some(value)) => self.bad_cursor = Some(status(value)?),
            (name, value) => return Err(misspelt(name, value)),
        }
        Ok(())
    }

    /// Returns whether any network fault is random.
    pub(super) fn has_random(&self) -> bool {
        !self.statuses.is_empty() || self.reset > 0.0 || self.truncate > 0.0
    }
}

fn refuse(word: &str, reason: &str) -> Failure {
    let failure = Failure::new(Kind::Usage, format!("`--fault {word}`: {reason}"));
    let name = word.split(':').next().unwrap_or_default();
    if let Some((name, value, meaning)) = ALL.iter().find(|(known, ..)| *known == name) {
        return failure.hint(format!("write `{}`: {meaning}", spelling(name, value)));
    }
    let all = text::join(spellings().map(|(spelling, _)| spelling), ", ");
    let meant = text::nearest(name, ALL.iter().map(|(known, ..)| *known));
    let meant = meant.map_or_else(String::new, |known| format!("did you mean `{known}`? "));
    failure.hint(format!("{meant}available faults: {all}"))
}

/// Explains an unknown name, or a wrong value of a known one.
fn misspelt(name: &str, given: Option<&str>) -> String {
    let known = ALL.iter().find(|(known, ..)| *known == name);
    match known.map(|(_, value, _)| *value) {
        None => "no such fault",
        Some("") => "takes no value",
        Some(_) if given.is_some() => "does not take this value",
        Some(_) => "needs a value",
    }
    .to_owned()
}

fn probability(word: &str) -> Result<f64, String> {
    let valid = word.parse().ok();
    let valid = valid.filter(|number| (0.0..=1.0).contains(number));
    valid.ok_or_else(|| format!("`{word}` must be a probability from 0 to 1, such as 0.1"))
}

fn status(word: &str) -> Result<u16, String> {
    let valid = word.parse().ok();
    let valid = valid.filter(|number| (400..=599).contains(number));
    valid.ok_or_else(|| format!("`{word}` must be an error status from 400 to 599, such as 503"))
}

fn at_least<T: FromStr + PartialOrd + From<u8>>(least: u8, word: &str) -> Result<T, String> {
    let valid = word.parse().ok().filter(|number| *number >= T::from(least));
    valid.ok_or_else(|| format!("`{word}` must be a whole number, at least {least}, such as 3"))
}

fn duration(word: &str) -> Result<Duration, String> {
    text::duration(word).map_err(|expected| format!("`{word}` must be {expected}"))
}

/// Parses a duration with a sign.
fn offset(word: &str) -> Result<TimeDelta, String> {
    let (sign, duration) = match word.split_at_checked(1) {
        Some(("+", duration)) => (1, duration),
        Some(("-", duration)) => (-1, duration),
        _ => return Err(format!("`{word}` must have a sign, such as +30d or -2h")),
    };
    let offset = TimeDelta::from_std(self::duration(duration)?).ok();
    let offset = offset.map(|offset| offset * sign);
    // The dates that HTTP can express.
    let is_date = |now: DateTime<Utc>| (1970..9999).contains(&now.year());
    let shifted = |offset: &TimeDelta| Utc::now().checked_add_signed(*offset).is_some_and(is_date);
    let offset = offset.filter(shifted);
    offset.ok_or_else(|| format!("`{word}` must lead to a year from 1970 to 9998"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(word: &str) -> Result<Faults, String> {
        Faults::parse(&[word.to_owned()]).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_clock_shows_dates_that_http_can_express() {
        for (offset, is_valid) in [
            ("-40y", true),
            ("+30d", true),
            ("-60y", false),
            ("+9000y", false),
        ] {
            assert_eq!(
                parse(&format!("clock:{offset}")).is_ok(),
                is_valid,
                "{offset}"
            );
        }
    }

    #[test]
    fn every_fault_in_the_table_is_understood() {
        for (name, value, _) in ALL {
            for value in value.trim_matches(['[', ']']).split('|') {
                let word = match value {
                    "" => name.to_owned(),
                    "P" => format!("{name}:0.25"),
                    "N" | "MBIT" => format!("{name}:3"),
                    "STATUS" => format!("{name}:403"),
                    "OFFSET" => format!("{name}:+30d"),
                    "DURATION" => format!("{name}:50ms"),
                    value => format!("{name}:{value}"),
                };
                let words = if name == "retry-after" {
                    vec!["503:0".to_owned(), word.clone()]
                } else {
                    vec![word.clone()]
                };
                let changed = Faults::parse(&words).expect(&word);
                let same = format!("{changed:?}") == format!("{:?}", Faults::default());
                assert!(!same, "{word} changes nothing");
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        let message = |word| parse(word).expect_err(word);
        assert!(message("503:2").contains("`2` must be a probability"));
        assert!(message("503:nan").contains("`nan` must be a probability"));
        assert!(message("503").ends_with("needs a value"));
        assert!(message("503:").ends_with("needs a value"));
        assert!(message("retry-after:1s").contains("needs one of the faults 503"));
        assert!(message("shuffle:1").contains("takes no value"));
        let failure = Faults::parse(&["shufle".to_owned()]).expect_err("misspelt");
        let (_, hint) = failure.into_texts();
        assert!(hint.starts_with("did you mean `shuffle`? available faults: 503:P"));
        assert!(message("latency:50").contains("a number with a unit"));
        assert!(message("cursor-expiry:1").contains("at least 2"));
        assert!(message("busy:0").contains("at least 1"));
        assert!(message("bandwidth:0").contains("at least 1"));
        assert!(message("bandwidth:0.5").contains("must be a whole number"));
        assert!(message("dates-with-cursor:maybe").ends_with("does not take this value"));
        assert!(message("clock:30d").contains("`30d` must have a sign"));
        assert!(message("clock:+30").contains("a number with a unit"));
        assert!(message("clock").ends_with("needs a value"));
        assert!(message("teapot").ends_with("no such fault"));
    }
}
