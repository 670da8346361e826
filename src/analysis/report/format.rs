//! Formats numbers, dates and periods for the page.

use crate::analysis::statistics::{Decimal, Period, Step, two_digits};
use chrono::DateTime;

/// Returns the name of a period and its days.
pub(super) fn period_name(period: Period) -> (String, String) {
    let label = period.label();
    let day = |second: i64| {
        let date = DateTime::from_timestamp(second, 0).unwrap_or(DateTime::UNIX_EPOCH);
        date.format("%-d %B %Y").to_string()
    };
    let (first, last) = (day(period.first()), day(period.next().first() - 1));
    match period.step() {
        Step::Day => (first, "UTC".to_owned()),
        Step::Week => (format!("Week {label}"), format!("{first} to {last}, UTC")),
        Step::Month => (format!("Month {label}"), format!("{first} to {last}, UTC")),
    }
}

/// Formats a time, to the minute.
pub(super) fn minute(second: i64) -> String {
    let moment = DateTime::from_timestamp(second, 0).unwrap_or(DateTime::UNIX_EPOCH);
    moment.format("%Y-%m-%d %H:%M").to_string()
}

/// Returns how long before the report something was.
pub(super) fn ago(seconds: i64) -> String {
    let (hours, days) = (seconds / 3600, seconds / 86_400);
    match seconds {
        ..0 => "in the future".to_owned(),
        0..3600 => "less than an hour before this report".to_owned(),
        3600..172_800 => format!(
            "{} before this report",
            plural(hours.unsigned_abs(), "hour", "hours")
        ),
        _ => format!(
            "{} before this report",
            plural(days.unsigned_abs(), "day", "days")
        ),
    }
}

pub(super) fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Formats a figure with two digits. A dash if there is none.
pub(super) fn figure(value: Option<Decimal>) -> String {
    value.map_or_else(|| "–".to_owned(), two_digits)
}

/// Formats a difference of rates, with more digits if two would show zero.
pub(super) fn points(difference: Decimal) -> String {
    let text = distinct(difference, Decimal::ZERO);
    let word = if text == "1.00" { "point" } else { "points" };
    format!("{text} {word}")
}

/// Formats a figure so that it differs from `other`: with two digits, or all if necessary.
pub(super) fn distinct(value: Decimal, other: Decimal) -> String {
    let text = two_digits(value);
    if text == two_digits(other) && value != other {
        value.normalize().to_string()
    } else {
        text
    }
}

/// Converts a figure for drawing, which does not need to be exact.
pub(super) fn to_f64(value: Decimal) -> f64 {
    use std::str::FromStr as _;
    f64::from_str(&value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        for (seconds, words) in [
            (-1, "in the future"),
            (0, "less than an hour before this report"),
            (3599, "less than an hour before this report"),
            (3600, "1 hour before this report"),
            (172_799, "47 hours before this report"),
            (172_800, "2 days before this report"),
            (30 * 86_400, "30 days before this report"),
        ] {
            assert_eq!(ago(seconds), words);
        }
    }

    #[test]
    fn a_small_difference_has_enough_digits() {
        for (difference, words) in [
            ("1.00", "1.00 point"),
            ("0.01", "0.01 points"),
            ("0.005", "0.01 points"),
            ("0.0010", "0.001 points"),
            ("0.0000000001", "0.0000000001 points"),
            ("0", "0.00 points"),
        ] {
            assert_eq!(points(difference.parse().expect(words)), words);
        }
    }
}
