//! Days, ISO weeks and months.

use chrono::{DateTime, Datelike as _, NaiveDate, Utc};
use clap::ValueEnum;

const DAY: i64 = 86_400;

/// The length of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum)]
pub(crate) enum Step {
    Day,
    /// ISO weeks, Monday to Sunday
    Week,
    Month,
}

/// A day, a week or a month. Periods of the same step are sorted chronologically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Period {
    step: Step,
    /// Counted from the period that contains the start of 1970; months from year 0.
    number: i64,
}

impl Step {
    /// Returns the period that contains `second` (since 1970).
    pub(crate) fn period(self, second: i64) -> Period {
        let day = second.div_euclid(DAY);
        let number = match self {
            Self::Day => day,
            // 1970 began on a Thursday.
            Self::Week => (day + 3).div_euclid(7),
            Self::Month => {
                let date = date(second);
                i64::from(date.year()) * 12 + i64::from(date.month0())
            }
        };
        Period { step: self, number }
    }
}

impl Period {
    pub(crate) fn step(self) -> Step {
        self.step
    }

    /// Returns its first second, since 1970.
    pub(crate) fn first(self) -> i64 {
        match self.step {
            Step::Day => self.number * DAY,
            Step::Week => (self.number * 7 - 3) * DAY,
            Step::Month => {
                let year = i32::try_from(self.number.div_euclid(12)).unwrap_or(i32::MAX);
                let month = u32::try_from(self.number.rem_euclid(12) + 1).unwrap_or(1);
                let first = NaiveDate::from_ymd_opt(year, month, 1).unwrap_or(NaiveDate::MAX);
                first.and_time(chrono::NaiveTime::MIN).and_utc().timestamp()
            }
        }
    }

    /// Returns the next period, which starts right after this one.
    pub(crate) fn next(self) -> Self {
        Self {
            number: self.number + 1,
            ..self
        }
    }

    /// Returns the previous period.
    pub(crate) fn previous(self) -> Self {
        Self {
            number: self.number - 1,
            ..self
        }
    }

    /// Returns its name: `2026-05-01`, `2026-W18` or `2026-05`.
    pub(crate) fn label(self) -> String {
        let first = date(self.first());
        match self.step {
            Step::Day => first.format("%Y-%m-%d").to_string(),
            Step::Week => {
                // An ISO week belongs to the year of its Thursday.
                let week = first.iso_week();
                format!("{:04}-W{:02}", week.year(), week.week())
            }
            Step::Month => format!("{:04}-{:02}", first.year(), first.month()),
        }
    }
}

fn date(second: i64) -> NaiveDate {
    let moment: DateTime<Utc> = DateTime::from_timestamp(second, 0).unwrap_or_default();
    moment.date_naive()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Timestamp;
    use proptest::prelude::*;

    fn second(text: &str) -> i64 {
        Timestamp::parse(text).expect(text).second
    }

    #[test]
    fn periods_have_their_calendar_names() {
        for (moment, day, week, month) in [
            ("2026-05-01T06:00:00Z", "2026-05-01", "2026-W18", "2026-05"),
            ("2026-02-09T00:00:00Z", "2026-02-09", "2026-W07", "2026-02"),
            // Weeks belong to the year of their Thursday.
            ("2024-12-30T00:00:00Z", "2024-12-30", "2025-W01", "2024-12"),
            ("2027-01-03T23:59:59Z", "2027-01-03", "2026-W53", "2027-01"),
            ("2024-02-29T12:00:00Z", "2024-02-29", "2024-W09", "2024-02"),
            ("1969-12-31T23:59:59Z", "1969-12-31", "1970-W01", "1969-12"),
            ("0001-01-01T00:00:00Z", "0001-01-01", "0001-W01", "0001-01"),
            ("9999-12-31T23:59:59Z", "9999-12-31", "9999-W52", "9999-12"),
        ] {
            let label = |step: Step| step.period(second(moment)).label();
            assert_eq!(label(Step::Day), day);
            assert_eq!(label(Step::Week), week);
            assert_eq!(label(Step::Month), month);
        }
    }

    proptest! {
        #[test]
        fn a_second_lies_in_its_period(second in second("0001-01-01T00:00:00Z")..second("9999-12-01T00:00:00Z")) {
            for step in [Step::Day, Step::Week, Step::Month] {
                let period = step.period(second);
                prop_assert!(period.first() <= second && second < period.next().first());
                prop_assert_eq!(step.period(period.first()), period);
                prop_assert_eq!(step.period(period.next().first()), period.next());
                prop_assert_eq!(step.period(period.first() - 1), period.previous());
                prop_assert_eq!(period.step(), step);
            }
        }
    }
}
