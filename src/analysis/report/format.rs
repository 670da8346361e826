//! Numbers and steps in words.

use crate::analysis::statistics::{Decimal, Period, Step, two_digits};
use chrono::DateTime;

/// Names a period and its days.
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

/// Writes a second as people do.
pub(super) fn minute(second: i64) -> String {
    let moment = DateTime::from_timestamp(second, 0).unwrap_or(DateTime::UNIX_EPOCH);
    moment.format("%Y-%m-%d %H:%M").to_string()
}

/// Says how long ago something was.
pub(super) fn ago(seconds: i64) -> String {
    let (hours, days) = (seconds / 3600, seconds / 86_400);
    match seconds {
        ..0 => "in the future".to_owned(),
        0..3600 => "less than an hour before".to_owned(),
        3600..172_800 => format!("{} before", plural(hours.unsigned_abs(), "hour", "hours")),
        _ => format!("{} before", plural(days.unsigned_abs(), "day", "days")),
    }
}

pub(super) fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Writes a figure; a dash where there is none.
pub(super) fn figure(value: Option<Decimal>) -> String {
    value.map_or_else(|| "–".to_owned(), two_digits)
}

/// Writes a difference of rates: with more digits where two would say that there is none.
pub(super) fn points(difference: Decimal) -> String {
    let text = apart(difference, Decimal::ZERO);
    let word = if text == "1.00" { "point" } else { "points" };
    format!("{text} {word}")
}

/// Writes a figure so that it can be told from `other`: with two digits, or all where those do not do.
pub(super) fn apart(value: Decimal, other: Decimal) -> String {
    let text = two_digits(value);
    if text == two_digits(other) && value != other {
        value.normalize().to_string()
    } else {
        text
    }
}

/// A number to be drawn. Drawing needs no exactness.
pub(super) fn drawn(value: Decimal) -> f64 {
    use std::str::FromStr as _;
    f64::from_str(&value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_one_unit() {
        for (seconds, words) in [
            (-1, "in the future"),
            (0, "less than an hour before"),
            (3599, "less than an hour before"),
            (3600, "1 hour before"),
            (172_799, "47 hours before"),
            (172_800, "2 days before"),
            (30 * 86_400, "30 days before"),
        ] {
            assert_eq!(ago(seconds), words);
        }
    }

    #[test]
    fn a_small_difference_is_told_with_enough_digits() {
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
