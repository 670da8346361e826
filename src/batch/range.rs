//! Date ranges as users write them. The grammar is strict, because a wrong guess would export the wrong days.

use chrono::{DateTime, Datelike as _, Months, NaiveDate, NaiveDateTime, TimeDelta, Utc};

use super::timestamp::whole_second;
use super::zone::Zone;
use crate::error::{Failure, Kind};

/// What the dates of a run refer to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// The time that `today` and `7d` refer to.
    pub(crate) now: DateTime<Utc>,
    /// The time zone in which days, months and years begin.
    pub(crate) zone: Zone,
}

impl Clock {
    /// Returns the clock of a run that starts now.
    pub(crate) fn new(zone: Zone) -> Self {
        Self {
            now: Utc::now(),
            zone,
        }
    }

    /// Returns the clock of a run in UTC.
    pub(crate) fn utc(now: DateTime<Utc>) -> Self {
        Self {
            now,
            zone: Zone::UTC,
        }
    }

    fn today(self) -> Option<NaiveDate> {
        let local = self.zone.local(self.now.timestamp());
        DateTime::from_timestamp(local, 0).map(|local| local.date_naive())
    }

    /// Returns the first second of `day`.
    fn midnight(self, day: NaiveDate) -> Option<DateTime<Utc>> {
        let local = NaiveDateTime::from(day).and_utc().timestamp();
        DateTime::from_timestamp(self.zone.instant(local), 0)
    }

    /// Returns the time from the first second of `first` to the first second of `past`.
    fn period(self, first: NaiveDate, past: NaiveDate) -> Option<Bound> {
        Some(Bound::Period {
            first: self.midnight(first)?,
            past: self.midnight(past)?,
        })
    }

    fn day(self, day: NaiveDate) -> Option<Bound> {
        self.period(day, day.succ_opt()?)
    }
}

/// A date given by the user: a second, or a whole day, month or year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Exactly this second.
    Second(DateTime<Utc>),
    /// From the first second of a period to the first second after it.
    Period {
        first: DateTime<Utc>,
        past: DateTime<Utc>,
    },
}

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

const FORMS: &str = "\
use one of these forms:
    2026-05-01T06:00:00Z            a time (an offset such as +02:00 works too)
    2026-05-01, 2026-05, 2026       a day, month or year in UTC
    today, yesterday                a day in UTC
    90m, 12h, 7d, 2w, 3mo, 1y       that long ago (m is minutes, mo is months)";

impl Range {
    /// Parses `--start` and `--end`.
    pub(crate) fn parse(
        start: Option<&str>,
        end: Option<&str>,
        clock: Clock,
    ) -> Result<Self, Failure> {
        let bound = |flag: &str, word: Option<&str>| {
            word.map(|word| parse(word, clock).map_err(|problem| refuse(flag, word, problem)))
                .transpose()
        };
        let start_bound = bound("--start", start)?;
        let end_bound = bound("--end", end)?;
        let range = Self {
            start: start_bound.map(|bound| match bound {
                Bound::Second(second) | Bound::Period { first: second, .. } => second.timestamp(),
            }),
            end: end_bound.map(|bound| match bound {
                Bound::Second(second) | Bound::Period { past: second, .. } => second.timestamp(),
            }),
            excludes_end: matches!(end_bound, Some(Bound::Period { .. })),
        };
        range.within_four_digits().in_order("`--start` means")
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

    /// The last second that can be written is the end of the last year that can be named.
    fn within_four_digits(self) -> Self {
        const LAST: i64 = 253_402_300_799;
        match self.end {
            Some(end) if end > LAST => Self {
                end: Some(LAST),
                excludes_end: false,
                ..self
            },
            _ => self,
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
        // A period is described by its last day, or by its last second if days begin at another time than in UTC.
        let end = self.end.map(|end| match self.excludes_end {
            true if end % DAY == 0 => written(end - 1)[..10].to_owned(),
            true => written(end - 1),
            false => written(end),
        });
        match (self.start.map(written), end) {
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

/// What is wrong with a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    NoZone,
    Unknown,
}

fn refuse(flag: &str, word: &str, problem: Problem) -> Failure {
    match problem {
        Problem::NoZone => Failure::new(
            Kind::Usage,
            format!("`{flag}` is `{word}`; it must have a time zone"),
        )
        .hint(format!(
            "for UTC, write `{flag} {word}Z`; otherwise add an offset, such as `{word}+02:00`"
        )),
        Problem::Unknown => Failure::new(
            Kind::Usage,
            format!("`{flag}` is `{word}`; it must be a date, such as 2026-05-01"),
        )
        .hint(FORMS),
    }
}

/// Parses one date.
pub(crate) fn parse(word: &str, clock: Clock) -> Result<Bound, Problem> {
    let known = match word {
        "today" => clock.today().and_then(|today| clock.day(today)),
        "yesterday" => {
            let yesterday = clock.today().and_then(|today| today.pred_opt());
            yesterday.and_then(|yesterday| clock.day(yesterday))
        }
        _ => period(word, clock).or_else(|| ago(word, clock.now).map(Bound::Second)),
    };
    match known {
        Some(bound) => Ok(bound),
        None => second(word).map(Bound::Second),
    }
}

/// Parses `YYYY`, `YYYY-MM` and `YYYY-MM-DD`.
fn period(word: &str, clock: Clock) -> Option<Bound> {
    let digits: Vec<&str> = word.split('-').collect();
    let number = |place: usize, width: usize| {
        let part = digits.get(place).filter(|part| part.len() == width)?;
        part.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| part.parse::<u32>().ok())?
    };
    let year = i32::try_from(number(0, 4)?).ok()?;
    let (first, past) = match digits.len() {
        1 => {
            let first = NaiveDate::from_ymd_opt(year, 1, 1)?;
            (first, first.checked_add_months(Months::new(12))?)
        }
        2 => {
            let first = NaiveDate::from_ymd_opt(year, number(1, 2)?, 1)?;
            (first, first.checked_add_months(Months::new(1))?)
        }
        3 => return clock.day(NaiveDate::from_ymd_opt(year, number(1, 2)?, number(2, 2)?)?),
        _ => return None,
    };
    clock.period(first, past)
}

/// Parses `90m`, `12h`, `7d`, `2w`, `3mo` and `1y` as a time before `now`.
fn ago(word: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let unit = word.find(|letter: char| !letter.is_ascii_digit())?;
    let count: u32 = word[..unit].parse().ok()?;
    let seconds = |each: i64| now.checked_sub_signed(TimeDelta::seconds(i64::from(count) * each));
    let moment = match &word[unit..] {
        "m" => seconds(60),
        "h" => seconds(3600),
        "d" => seconds(86_400),
        "w" => seconds(7 * 86_400),
        "mo" => now.checked_sub_months(Months::new(count)),
        "y" => now.checked_sub_months(Months::new(count.checked_mul(12)?)),
        _ => None,
    }?;
    // The service accepts four-digit years only.
    (1..=9999).contains(&moment.year()).then_some(moment)
}

/// Parses a second with its time zone.
fn second(word: &str) -> Result<DateTime<Utc>, Problem> {
    let (moment, zone) = word
        .split_at_checked("YYYY-MM-DDTHH:MM:SS".len())
        .ok_or(Problem::Unknown)?;
    let second = whole_second(moment).ok_or(Problem::Unknown)?;
    let offset = match zone {
        "" => return Err(Problem::NoZone),
        "Z" => 0,
        zone => offset(zone).ok_or(Problem::Unknown)?,
    };
    let moment = DateTime::from_timestamp(second - offset * 60, 0).ok_or(Problem::Unknown)?;
    // The service accepts four-digit years only.
    if (0..=9999).contains(&moment.year()) {
        Ok(moment)
    } else {
        Err(Problem::Unknown)
    }
}

/// Parses `+HH:MM` or `-HH:MM` as minutes.
fn offset(zone: &str) -> Option<i64> {
    let (sign, time) = match zone.split_at_checked(1)? {
        ("+", time) => (1, time),
        ("-", time) => (-1, time),
        _ => return None,
    };
    let (hours, minutes) = time.split_once(':')?;
    let number = |part: &str, below: i64| {
        let digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        digits
            .then(|| part.parse::<i64>().ok())
            .flatten()
            .filter(|number| *number < below)
    };
    Some(sign * (number(hours, 24)? * 60 + number(minutes, 60)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn now() -> Clock {
        Clock::utc("2026-05-31T12:30:15Z".parse().expect("a date"))
    }

    fn range(start: &str, end: &str) -> (String, String) {
        let range = Range::parse(Some(start), Some(end), now()).expect("a range");
        (
            written(range.start.expect("a start")),
            written(range.end.expect("an end")),
        )
    }

    fn start(word: &str) -> Result<String, Problem> {
        parse(word, now()).map(|bound| match bound {
            Bound::Second(second) | Bound::Period { first: second, .. } => {
                written(second.timestamp())
            }
        })
    }

    #[test]
    fn every_form_means_what_it_says() {
        for (word, means) in [
            ("2026-05-01T06:00:00Z", "2026-05-01T06:00:00Z"),
            ("2026-05-01T06:00:00+00:00", "2026-05-01T06:00:00Z"),
            ("2026-05-01T08:00:00+02:00", "2026-05-01T06:00:00Z"),
            ("2026-05-01T00:30:00-05:45", "2026-05-01T06:15:00Z"),
            ("2026-05-01", "2026-05-01T00:00:00Z"),
            ("2026-05", "2026-05-01T00:00:00Z"),
            ("2026", "2026-01-01T00:00:00Z"),
            ("today", "2026-05-31T00:00:00Z"),
            ("yesterday", "2026-05-30T00:00:00Z"),
            ("90m", "2026-05-31T11:00:15Z"),
            ("12h", "2026-05-31T00:30:15Z"),
            ("7d", "2026-05-24T12:30:15Z"),
            ("2w", "2026-05-17T12:30:15Z"),
            ("3mo", "2026-02-28T12:30:15Z"),
            ("1y", "2025-05-31T12:30:15Z"),
            ("0d", "2026-05-31T12:30:15Z"),
        ] {
            assert_eq!(start(word).as_deref(), Ok(means), "{word}");
        }
    }

    #[test]
    fn a_period_ends_with_the_first_second_after_it() {
        assert_eq!(range("2026-05-01", "2026-05-01").1, "2026-05-02T00:00:00Z");
        assert_eq!(range("2026-02", "2026-02").1, "2026-03-01T00:00:00Z");
        assert_eq!(range("2025", "2025").1, "2026-01-01T00:00:00Z");
        assert_eq!(range("today", "today").1, "2026-06-01T00:00:00Z");
        let exact = Range::parse(None, Some("2026-05-01T06:00:00Z"), now()).expect("a range");
        assert!(!exact.excludes_end);
        assert!(
            Range::parse(None, Some("2026-05"), now())
                .expect("a range")
                .excludes_end
        );
    }

    #[test]
    fn periods_begin_at_midnight_of_the_zone() {
        let clock = Clock {
            zone: Zone::parse("America/New_York").expect("a zone"),
            // Still the day before in New York.
            now: "2026-03-09T02:00:00Z".parse().expect("a date"),
        };
        for (word, first, past) in [
            ("today", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"),
            ("yesterday", "2026-03-07T05:00:00Z", "2026-03-08T05:00:00Z"),
            ("2026-03", "2026-03-01T05:00:00Z", "2026-04-01T04:00:00Z"),
            ("2026", "2026-01-01T05:00:00Z", "2027-01-01T05:00:00Z"),
        ] {
            let bound = Bound::Period {
                first: first.parse().expect("a date"),
                past: past.parse().expect("a date"),
            };
            assert_eq!(parse(word, clock), Ok(bound), "{word}");
        }
        let range = Range::parse(Some("today"), Some("today"), clock).expect("a range");
        assert_eq!(
            range.describe(),
            "2026-03-08T05:00:00Z through 2026-03-09T03:59:59Z"
        );
        let exact = Bound::Second("2026-03-08T02:00:00Z".parse().expect("a date"));
        assert_eq!(parse("1d", clock), Ok(exact));
    }

    #[test]
    fn a_second_without_a_zone_is_told_apart() {
        assert_eq!(start("2026-05-01T06:00:00"), Err(Problem::NoZone));
    }

    #[test]
    fn everything_else_is_refused() {
        for word in [
            "",
            "now",
            "tomorrow",
            "7",
            "7 d",
            "7D",
            "d",
            "-7d",
            "1.5d",
            "1M",
            "7days",
            "20260501",
            "2026-5-1",
            "01/02/2026",
            "2026-02-30",
            "2026-13",
            "26-05-01",
            "2026-05-01T06:00",
            "2026-05-01 06:00:00Z",
            "2026-05-01T06:00:00z",
            "2026-05-01T06:00:00.5Z",
            "2026-05-01T06:00:60Z",
            "2026-05-01T25:00:00Z",
            "2026-05-01T06:00:00+0200",
            "2026-05-01T06:00:00+24:00",
            "2026-05-01T06:00:00 Z",
            "99999999999y",
            "9999y",
            "9999-12-31T23:59:59-05:00",
            "0000-01-01T00:00:00+01:00",
            "２026",
            "2026-05-01T06:00:00Zé",
        ] {
            assert_eq!(start(word), Err(Problem::Unknown), "{word}");
        }
    }

    #[test]
    fn a_start_after_the_end_is_refused() {
        let refused = |start, end| Range::parse(Some(start), Some(end), now()).is_err();
        assert!(refused("2026-05-02", "2026-05-01"));
        assert!(refused("2026-05-02T00:00:00Z", "2026-05-01"));
        assert!(!refused("2026-05-01T23:59:59Z", "2026-05-01"));
        assert!(!refused("2026-05-01T06:00:00Z", "2026-05-01T06:00:00Z"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(second in 0_i64..253_402_300_799) {
            prop_assert_eq!(start(&written(second)), Ok(written(second)));
        }

        #[test]
        fn no_word_makes_it_stumble(word: String, digits in "[0-9a-zA-Z:+. -]{0,25}") {
            let _ = parse(&word, now());
            let _ = parse(&digits, now());
        }
    }
}
