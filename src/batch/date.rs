//! Dates as users write them. The grammar is strict, because a wrong guess would export the wrong days.

use chrono::{
    DateTime, Datelike as _, Month, Months, NaiveDate, NaiveDateTime, TimeDelta, Utc, Weekday,
};

use super::timestamp::whole_second;
use super::zone::Zone;
use crate::error::{Failure, Kind};
use crate::text::nearest;

/// A date given by the user: a second, or a whole day, week, month, quarter or year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Exactly this second.
    Second(DateTime<Utc>),
    /// From the first second of a period to the first second after it. Both are the same for a day that the time
    /// zone skips.
    Period {
        first: DateTime<Utc>,
        past: DateTime<Utc>,
    },
}

/// What the dates of a run refer to.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// The time that `today` and `7d` refer to.
    pub(crate) now: DateTime<Utc>,
    /// The time zone at whose midnight periods begin.
    pub(crate) zone: Zone,
}

impl Clock {
    /// Returns the clock of a run that starts now.
    pub(crate) fn new(zone: Zone) -> Self {
        let now = Utc::now();
        Self { now, zone }
    }

    fn today(&self) -> Option<NaiveDate> {
        self.day(self.now.timestamp())
    }

    /// Returns the day that the wall clock shows at the instant `second`.
    fn day(&self, second: i64) -> Option<NaiveDate> {
        let local = DateTime::from_timestamp(self.zone.local(second), 0)?;
        Some(local.date_naive())
    }

    /// Returns the first second of `day`.
    fn midnight(&self, day: NaiveDate) -> Option<DateTime<Utc>> {
        let local = NaiveDateTime::from(day).and_utc().timestamp();
        DateTime::from_timestamp(self.zone.instant(local), 0)
    }

    /// Returns the period of this length that begins on `first`.
    fn period(&self, unit: Unit, first: NaiveDate) -> Option<Bound> {
        Some(Bound::Period {
            first: self.midnight(first)?,
            past: self.midnight(unit.next(first)?)?,
        })
    }
}

/// How long a period is.
#[derive(Clone, Copy, Debug)]
enum Unit {
    Day,
    /// An ISO week, from Monday to Sunday.
    Week,
    Month,
    Quarter,
    Year,
}

impl Unit {
    /// Returns the first day of the period that contains `day`.
    fn first(self, day: NaiveDate) -> Option<NaiveDate> {
        match self {
            Self::Day => Some(day),
            Self::Week => Some(day.week(Weekday::Mon).first_day()),
            Self::Month => day.with_day(1),
            Self::Quarter => NaiveDate::from_ymd_opt(day.year(), day.month0() / 3 * 3 + 1, 1),
            Self::Year => NaiveDate::from_ymd_opt(day.year(), 1, 1),
        }
    }

    /// Returns the first day after the period that begins on `first`.
    fn next(self, first: NaiveDate) -> Option<NaiveDate> {
        match self {
            Self::Day => first.succ_opt(),
            Self::Week => first.checked_add_signed(TimeDelta::weeks(1)),
            Self::Month => first.checked_add_months(Months::new(1)),
            Self::Quarter => first.checked_add_months(Months::new(3)),
            Self::Year => first.checked_add_months(Months::new(12)),
        }
    }
}

/// The words for a period: its length, and whether it is the one before the current one.
const WORDS: [(&str, Unit, bool); 10] = [
    ("today", Unit::Day, false),
    ("yesterday", Unit::Day, true),
    ("this-week", Unit::Week, false),
    ("last-week", Unit::Week, true),
    ("this-month", Unit::Month, false),
    ("last-month", Unit::Month, true),
    ("this-quarter", Unit::Quarter, false),
    ("last-quarter", Unit::Quarter, true),
    ("this-year", Unit::Year, false),
    ("last-year", Unit::Year, true),
];

/// What is wrong with a date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// A time without its offset from UTC.
    NoOffset,
    /// A fraction of a second; the time without it.
    Fraction(String),
    /// A week that its year does not have; the year and its number of weeks.
    NoSuchWeek(i32, u32),
    /// A quarter that no year has; the year.
    NoSuchQuarter(i32),
    /// A month that no year has.
    NoSuchMonth,
    /// A day that its month does not have; the month and its number of days.
    NoSuchDay(i32, u8, u8),
    /// A date in a year without four digits.
    OutOfRange,
    /// A date in another spelling; the right one.
    Misspelt(String),
    /// An age or a time, where a period is needed.
    NoPeriod(NotPeriod),
    Unknown,
}

/// What a date is instead of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotPeriod {
    Age,
    Time,
}

/// Returns `today`, `last-week` and the like.
pub(crate) fn period_words() -> impl Iterator<Item = &'static str> {
    WORDS.iter().map(|(word, ..)| *word)
}

pub(super) const FORMS: &str = "\
use one of these forms:
    2026-05-01T06:00:00Z            a time (an offset such as +02:00 works too)
    2026-05-01, 2026-05, 2026       a day, month or year
    2026-W18, 2026-Q2               an ISO week, a quarter
    today, yesterday                a day
    this-week, last-week, this-month, last-month, this-quarter, last-quarter,
    this-year, last-year            that period
    90m, 12h, 7d, 2w, 3mo, 1y       that long ago (m is minutes, mo is months)";

const PERIOD_FORMS: &str = "\
use one of these forms:
    2026-05-01, 2026-05, 2026       a day, month or year
    2026-W18, 2026-Q2               an ISO week, a quarter
    today, yesterday                a day
    this-week, last-week, this-month, last-month, this-quarter, last-quarter,
    this-year, last-year            that period";

impl Problem {
    /// Refuses `word` as the value of `flag`.
    pub(super) fn refuse(self, flag: &str, word: &str) -> Failure {
        let (expected, forms) = match flag {
            "--period" => ("a period, such as last-month or 2026-W18", PERIOD_FORMS),
            _ => ("a date, such as 2026-05-01", FORMS),
        };
        let why = self.reason();
        let why = why.unwrap_or_else(|| format!("it must be {expected}"));
        let message = format!("`{flag}` is `{word}`; {why}");
        let hint = self.advice(word, |right| format!("{flag} {right}"));
        let hint = match hint {
            Some(hint) if hint.ends_with('?') => format!("{hint} Otherwise, {forms}"),
            Some(hint) => format!("{hint}; otherwise, {forms}"),
            None => forms.to_owned(),
        };
        Failure::new(Kind::Usage, message).hint(hint)
    }

    /// Says what is wrong with a date; `None` if it is not a date at all.
    pub(super) fn reason(&self) -> Option<String> {
        match self {
            Self::NoOffset => Some("it must have a time zone".to_owned()),
            Self::Fraction(_) => Some("fractions of a second are not possible here".to_owned()),
            Self::NoSuchWeek(year, weeks) => Some(format!("{year} has {weeks} weeks")),
            Self::NoSuchQuarter(_) => Some("a year has 4 quarters".to_owned()),
            Self::NoSuchMonth => Some("a year has 12 months".to_owned()),
            Self::NoSuchDay(year, month, days) => {
                Some(format!("{year:04}-{month:02} has {days} days"))
            }
            Self::OutOfRange => Some("the year must be from 0000 to 9999".to_owned()),
            Self::Misspelt(_) | Self::NoPeriod(_) | Self::Unknown => None,
        }
    }

    /// Says what to write instead of `word`; `None` if that is not known. `spelled` puts a date where `word` was.
    pub(super) fn advice(&self, word: &str, spelled: impl Fn(&str) -> String) -> Option<String> {
        Some(match self {
            Self::NoOffset => format!(
                "for UTC, write `{}`; otherwise add an offset, such as `{word}+02:00`",
                spelled(&format!("{word}Z"))
            ),
            Self::NoSuchWeek(year, weeks) => {
                format!("its weeks are {year:04}-W01 to {year:04}-W{weeks}")
            }
            Self::NoSuchQuarter(year) => format!("write {year:04}-Q1 to {year:04}-Q4"),
            Self::Fraction(right) => format!("write `{}`", spelled(right)),
            Self::Misspelt(right) => format!("did you mean `{right}`?"),
            Self::NoPeriod(NotPeriod::Age) => {
                format!("to select everything since then, use `--start {word}`")
            }
            Self::NoPeriod(NotPeriod::Time) => {
                "to select from one time to another, use `--start` and `--end`".to_owned()
            }
            Self::NoSuchMonth | Self::NoSuchDay(..) | Self::OutOfRange | Self::Unknown => {
                return None;
            }
        })
    }
}

/// Parses one date.
pub(crate) fn parse(word: &str, clock: &Clock) -> Result<Bound, Problem> {
    if let Some(period) = named(word, clock).or_else(|| calendar(word, clock)) {
        return Ok(period);
    }
    if let Some(moment) = ago(word, clock.now) {
        return Ok(Bound::Second(moment));
    }
    if let Some(period) = week_or_quarter(word, clock) {
        return period;
    }
    match second(word) {
        Ok(second) => Ok(Bound::Second(second)),
        Err(Problem::Unknown) => {
            if let Some(problem) = impossible(word) {
                return Err(problem);
            }
            let meant = nearest(word, WORDS.iter().map(|(name, ..)| *name));
            Err(meant.map_or(Problem::Unknown, |name| Problem::Misspelt(name.to_owned())))
        }
        Err(problem) => Err(problem),
    }
}

/// Parses one date that must be a period.
pub(crate) fn parse_period(word: &str, clock: &Clock) -> Result<Bound, Problem> {
    match parse(word, clock) {
        Ok(Bound::Second(_)) if ago(word, clock.now).is_some() => {
            Err(Problem::NoPeriod(NotPeriod::Age))
        }
        Ok(Bound::Second(_)) | Err(Problem::NoOffset | Problem::Fraction(_)) => {
            Err(Problem::NoPeriod(NotPeriod::Time))
        }
        other => other,
    }
}

/// Parses `today`, `last-week` and the like.
fn named(word: &str, clock: &Clock) -> Option<Bound> {
    let (_, unit, is_last) = WORDS.iter().find(|(name, ..)| *name == word)?;
    let current = unit.first(clock.today()?)?;
    let first = if *is_last {
        // The period of the second before, because the time zone may have skipped the day before.
        unit.first(clock.day(clock.midnight(current)?.timestamp() - 1)?)?
    } else {
        current
    };
    clock.period(*unit, first)
}

/// Parses `YYYY`, `YYYY-MM` and `YYYY-MM-DD`.
fn calendar(word: &str, clock: &Clock) -> Option<Bound> {
    let parts: Vec<&str> = word.split('-').collect();
    let (unit, month, day) = match parts[..] {
        [_] => (Unit::Year, 1, 1),
        [_, month] => (Unit::Month, digits(month, 2)?, 1),
        [_, month, day] => (Unit::Day, digits(month, 2)?, digits(day, 2)?),
        _ => return None,
    };
    let year = i32::try_from(digits(parts[0], 4)?).ok()?;
    clock.period(unit, NaiveDate::from_ymd_opt(year, month, day)?)
}

/// Says which part of a date does not exist; `None` if it does not look like an age, a day or a month.
fn impossible(word: &str) -> Option<Problem> {
    let unit = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    if unit.len() < word.len() && ["m", "h", "d", "w", "mo", "y"].contains(&unit) {
        return Some(Problem::OutOfRange);
    }
    let mut parts = word.split('T').next()?.split('-');
    let year = i32::try_from(digits(parts.next()?, 4)?).ok()?;
    let month = u8::try_from(digits(parts.next()?, 2)?).ok()?;
    let day = parts.next().map(|day| digits(day, 2));
    let Ok(known) = Month::try_from(month) else {
        return Some(Problem::NoSuchMonth);
    };
    let days = known.num_days(year)?;
    let exists = (1..=u32::from(days)).contains(&day??);
    (!exists).then_some(Problem::NoSuchDay(year, month, days))
}

/// Parses `YYYY-Www` and `YYYY-Qn`; `None` if the date looks like neither. Recognises them in other spellings, such as
/// `2026w4` and `W04`, and says how to write them.
fn week_or_quarter(word: &str, clock: &Clock) -> Option<Result<Bound, Problem>> {
    let bare: String = word
        .chars()
        .filter(|letter| !"-_ ".contains(*letter))
        .collect();
    let letter = bare.find(['W', 'w', 'Q', 'q'])?;
    let (unit, number) = (&bare[letter..=letter], &bare[letter + 1..]);
    let number = digits(number, 1).or_else(|| digits(number, 2))?;
    let is_week = unit.eq_ignore_ascii_case("w");
    let year = match &bare[..letter] {
        "" if is_week => clock.today()?.iso_week().year(),
        "" => clock.today()?.year(),
        year => i32::try_from(digits(year, 4)?).ok()?,
    };
    let (first, unit, right) = if is_week {
        let week = |number| NaiveDate::from_isoywd_opt(year, number, Weekday::Mon);
        let Some(first) = week(number) else {
            let weeks = if week(53).is_some() { 53 } else { 52 };
            return Some(Err(Problem::NoSuchWeek(year, weeks)));
        };
        (first, Unit::Week, format!("{year:04}-W{number:02}"))
    } else {
        let month = number.checked_sub(1).map(|quarters| quarters * 3 + 1);
        let first = month.and_then(|month| NaiveDate::from_ymd_opt(year, month, 1));
        let Some(first) = first else {
            return Some(Err(Problem::NoSuchQuarter(year)));
        };
        (first, Unit::Quarter, format!("{year:04}-Q{number}"))
    };
    if word == right {
        clock.period(unit, first).map(Ok)
    } else {
        Some(Err(Problem::Misspelt(right)))
    }
}

/// Parses exactly `width` digits.
fn digits(part: &str, width: usize) -> Option<u32> {
    let is_number = part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| part.parse().ok())?
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
    if let Some(fraction) = zone.strip_prefix('.') {
        let zone = fraction.trim_start_matches(|letter: char| letter.is_ascii_digit());
        if fraction.len() > zone.len() && (zone == "Z" || offset(zone).is_some()) {
            return Err(Problem::Fraction(format!("{moment}{zone}")));
        }
    }
    let offset = match zone {
        "" => return Err(Problem::NoOffset),
        "Z" => 0,
        zone => offset(zone).ok_or(Problem::Unknown)?,
    };
    let moment = DateTime::from_timestamp(second - offset * 60, 0).ok_or(Problem::Unknown)?;
    // The service accepts four-digit years only.
    if (0..=9999).contains(&moment.year()) {
        Ok(moment)
    } else {
        Err(Problem::OutOfRange)
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
    let number = |part: &str, below: u32| {
        let number = digits(part, 2).filter(|number| *number < below);
        number.map(i64::from)
    };
    Some(sign * (number(hours, 24)? * 60 + number(minutes, 60)?))
}

#[cfg(test)]
mod tests;
