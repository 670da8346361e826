//! Date ranges: from one date to another, both inclusive.

use chrono::DateTime;

use super::date::{self, Bound, Clock};
use crate::error::{Failure, Kind};

/// The last second that a four-digit year can express.
pub(crate) const LAST_SECOND: i64 = 253_402_300_799;

/// A range of dates to request from the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    /// Seconds since 1970, both inclusive.
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
    /// Whether batches created in the second `end` are left out. It is requested only to include the
    /// fractions of the second before it.
    pub(crate) excludes_end: bool,
}

impl Range {
    /// Both bounds are inclusive.
    pub(crate) const fn between(start: Option<i64>, end: Option<i64>) -> Self {
        Self {
            start,
            end,
            excludes_end: false,
        }
    }

    /// Returns whether `second` is requested.
    pub(crate) fn contains(&self, second: i64) -> bool {
        self.start.is_none_or(|start| start <= second) && self.end.is_none_or(|end| second <= end)
    }

    /// Parses `--start` and `--end`.
    pub(crate) fn parse(
        start: Option<&str>,
        end: Option<&str>,
        clock: &Clock,
    ) -> Result<Self, Failure> {
        let bound = |flag: &str, word: Option<&str>| {
            let bound =
                |word| date::parse(word, clock).map_err(|problem| problem.refuse(flag, word));
            word.map(bound).transpose()
        };
        let start = bound("--start", start)?;
        Self::of_bounds(start, bound("--end", end)?)
    }

    /// Parses `--period`.
    pub(crate) fn parse_period(word: &str, clock: &Clock) -> Result<Self, Failure> {
        let period = date::parse_period(word, clock);
        let period = period.map_err(|problem| problem.refuse("--period", word))?;
        Self::of_bounds(Some(period), Some(period))
    }

    fn of_bounds(start: Option<Bound>, end: Option<Bound>) -> Result<Self, Failure> {
        let range = Self {
            start: start.map(|bound| match bound {
                Bound::Second(second) | Bound::Period { first: second, .. } => second.timestamp(),
            }),
            end: end.map(|bound| match bound {
                Bound::Second(second) | Bound::Period { past: second, .. } => second.timestamp(),
            }),
            excludes_end: matches!(end, Some(Bound::Period { .. })),
        };
        // The range of a day that the time zone skips is empty.
        let is_empty = range.is_empty() && start == end;
        let range = range.within_four_digits();
        if is_empty {
            return Ok(range);
        }
        range.in_order("`--start` means")
    }

    /// Returns whether no time is in the range.
    fn is_empty(&self) -> bool {
        self.excludes_end && self.start == self.end
    }

    /// Fails if the start is after the end; `meant` says where the start comes from.
    fn in_order(self, meant: &str) -> Result<Self, Failure> {
        let past_end = self.end.map(|end| end - i64::from(self.excludes_end));
        if let (Some(first), Some(last)) = (self.start, past_end)
            && first > last
        {
            return Err(
                Failure::new(Kind::Usage, "the start is after the end").hint(format!(
                    "{meant} {}, `--end` means {}",
                    written(first),
                    written(last)
                )),
            );
        }
        Ok(self)
    }

    /// Starts where an earlier run ended.
    pub(crate) fn continued(self, start: Option<i64>) -> Result<Self, Failure> {
        Self { start, ..self }.in_order("`--state`, less `--lookback`, means")
    }

    /// The first and the last second that can be written are those of the years 0000 and 9999 in UTC. In another time
    /// zone, these years begin or end some hours outside.
    fn within_four_digits(self) -> Self {
        const FIRST: i64 = -62_167_219_200;
        let start = self.start.map(|start| start.max(FIRST));
        match self.end {
            Some(end) if end > LAST_SECOND => Self::between(start, Some(LAST_SECOND)),
            _ => Self { start, ..self },
        }
    }

    /// Describes exactly what is requested from the service.
    pub(crate) fn asked(&self) -> String {
        let start = self
            .start
            .map(|start| format!("start_date {}", written(start)));
        let end = self.end.map(|end| format!("end_date {}", written(end)));
        let dates: Vec<String> = start.into_iter().chain(end).collect();
        if dates.is_empty() {
            "all dates".to_owned()
        } else {
            dates.join(", ")
        }
    }

    /// Describes the range for people.
    pub(crate) fn describe(&self) -> String {
        const DAY: i64 = 86_400;
        let is_midnight = |second: i64| second % DAY == 0;
        let has_days = self.excludes_end
            && self.start.is_none_or(is_midnight)
            && self.end.is_some_and(is_midnight);
        // Periods of UTC are described by their days, others by their seconds.
        let has_days = has_days && !self.is_empty();
        let date = |second: i64| {
            let length = if has_days { 10 } else { 20 };
            written(second)[..length].to_owned()
        };
        let end = self.end.map(|end| date(end - i64::from(self.excludes_end)));
        match (self.start.map(date), end) {
            (Some(start), Some(_)) if self.is_empty() => format!("an empty range at {start}"),
            (None, None) => "all dates".to_owned(),
            (Some(start), None) => format!("since {start}"),
            (None, Some(end)) => format!("through {end}"),
            (Some(start), Some(end)) => format!("{start} through {end}"),
        }
    }
}

/// Formats a second as the service expects it.
pub(crate) fn written(second: i64) -> String {
    let moment = DateTime::from_timestamp(second, 0).unwrap_or(DateTime::UNIX_EPOCH);
    moment.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Zone;
    use crate::error::hint_of;

    fn clock(zone: &str) -> Clock {
        Clock {
            now: "2026-05-31T12:30:15Z".parse().expect("a date"),
            zone: Zone::parse(zone).expect("a zone"),
        }
    }

    fn range(start: &str, end: &str, zone: &str) -> Result<Range, Failure> {
        Range::parse(Some(start), Some(end), &clock(zone))
    }

    fn period(word: &str, zone: &str) -> Range {
        Range::parse_period(word, &clock(zone)).expect(word)
    }

    #[test]
    fn a_period_excludes_the_first_second_after_it() {
        let exact = Range::parse(None, Some("2026-05-01T06:00:00Z"), &clock("UTC"));
        assert!(!exact.expect("a range").excludes_end);
        let month = Range::parse(None, Some("2026-05"), &clock("UTC")).expect("a range");
        assert!(month.excludes_end);
        assert_eq!(
            month.end.map(written).as_deref(),
            Some("2026-06-01T00:00:00Z")
        );
        for word in [
            "2026-05-01",
            "2026-W18",
            "2026-05",
            "2026-Q2",
            "2026",
            "last-week",
        ] {
            let both = range(word, word, "Asia/Tokyo").expect(word);
            assert_eq!(period(word, "Asia/Tokyo"), both, "{word}");
        }
    }

    #[test]
    fn a_start_after_the_end_is_refused() {
        let refused = |start, end| range(start, end, "UTC").is_err();
        assert!(refused("2026-05-02", "2026-05-01"));
        assert!(refused("2026-05-02T00:00:00Z", "2026-05-01"));
        assert!(refused("2026-Q3", "2026-06"));
        assert!(!refused("2026-05-01T23:59:59Z", "2026-05-01"));
        assert!(!refused("2026-05-01T06:00:00Z", "2026-05-01T06:00:00Z"));
    }

    #[test]
    fn a_range_is_described_in_utc() {
        for (range, text) in [
            (period("2026-W18", "UTC"), "2026-04-27 through 2026-05-03"),
            (
                range("2026-04-27T06:00:00Z", "2026-05-03", "UTC").expect("a range"),
                "2026-04-27T06:00:00Z through 2026-05-03T23:59:59Z",
            ),
            (
                range("2026-04-27", "2026-05-03T06:00:00Z", "UTC").expect("a range"),
                "2026-04-27T00:00:00Z through 2026-05-03T06:00:00Z",
            ),
            (
                Range::parse(None, Some("2026-05-03"), &clock("UTC")).expect("a range"),
                "through 2026-05-03",
            ),
            (
                period("2026-05", "America/New_York"),
                "2026-05-01T04:00:00Z through 2026-06-01T03:59:59Z",
            ),
            (
                period("2011-12-30", "Pacific/Apia"),
                "an empty range at 2011-12-30T10:00:00Z",
            ),
        ] {
            assert_eq!(range.describe(), text);
        }
    }

    #[test]
    fn only_years_of_four_digits_are_requested() {
        for zone in ["America/New_York", "Asia/Tokyo", "UTC"] {
            for word in [
                "0000",
                "0000-01-01",
                "9999",
                "9999-12-31",
                "9999-W52",
                "9999-Q4",
            ] {
                let range = period(word, zone);
                for second in [range.start, range.end] {
                    let written = written(second.expect("a date"));
                    assert_eq!(written.len(), "2026-05-01T06:00:00Z".len(), "{zone} {word}");
                }
            }
        }
        let last = period("9999", "America/New_York");
        assert_eq!(
            last.end.map(written).as_deref(),
            Some("9999-12-31T23:59:59Z")
        );
        assert!(!last.excludes_end);
    }

    #[test]
    fn refused_dates_are_told_with_what_to_write() {
        let told = |failure: Result<Range, Failure>| {
            let failure = anyhow::Error::new(failure.expect_err("refused"));
            format!("{failure}: {}", hint_of(&failure).unwrap_or_default())
        };
        for (word, expected) in [
            (
                "2026-W54",
                "`--start` is `2026-W54`; 2026 has 53 weeks: its weeks are 2026-W01 to 2026-W53",
            ),
            (
                "2026-Q5",
                "`--start` is `2026-Q5`; a year has 4 quarters: write 2026-Q1 to 2026-Q4",
            ),
            (
                "2026-w44",
                "`--start` is `2026-w44`; it must be a date, such as 2026-05-01: did you mean `2026-W44`?",
            ),
        ] {
            let refused = told(Range::parse(Some(word), None, &clock("UTC")));
            let is_expected = refused.starts_with(expected);
            assert!(is_expected && refused.contains("90m, 12h"), "{refused}");
        }
        for (word, expected) in [
            ("2026-02-30", "2026-02 has 28 days"),
            ("2028-02-30", "2028-02 has 29 days"),
            ("2026-04-31T06:00:00Z", "2026-04 has 30 days"),
            ("2026-13", "a year has 12 months"),
            ("2026-00-01", "a year has 12 months"),
            ("2026-5-1", "it must be a date, such as 2026-05-01"),
        ] {
            let refused = told(Range::parse(Some(word), None, &clock("UTC")));
            let expected = format!("`--start` is `{word}`; {expected}: use one of these forms");
            assert!(refused.starts_with(&expected), "{refused}");
        }
        for (word, right) in [
            ("2026-10-01T09:31:30.550Z", "2026-10-01T09:31:30Z"),
            ("2026-10-01T09:31:30.5+02:00", "2026-10-01T09:31:30+02:00"),
        ] {
            let refused = told(Range::parse(Some(word), None, &clock("UTC")));
            let expected = format!(
                "`--start` is `{word}`; fractions of a second are not possible here: write `--start {right}`; otherwise, "
            );
            assert!(refused.starts_with(&expected), "{refused}");
        }
        for (word, expected) in [
            (
                "7d",
                "`--period` is `7d`; it must be a period, such as last-month or 2026-W18: to select everything since then, use `--start 7d`",
            ),
            (
                "2026-05-01T06:00:00Z",
                "`--period` is `2026-05-01T06:00:00Z`; it must be a period, such as last-month or 2026-W18: to select from one time to another, use `--start` and `--end`",
            ),
            (
                "2026-q2",
                "`--period` is `2026-q2`; it must be a period, such as last-month or 2026-W18: did you mean `2026-Q2`?",
            ),
        ] {
            let refused = told(Range::parse_period(word, &clock("UTC")));
            let is_expected = refused.starts_with(expected);
            assert!(
                is_expected && refused.contains("2026-W18, 2026-Q2"),
                "{refused}"
            );
        }
        let unknown = told(Range::parse_period("soon", &clock("UTC")));
        assert!(
            unknown.contains("use one of these forms") && !unknown.contains("7d"),
            "{unknown}"
        );
    }
}
