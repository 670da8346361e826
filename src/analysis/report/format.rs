//! Formats numbers, dates and periods for the page.

use chrono::{DateTime, Datelike as _, NaiveDateTime};
use rust_decimal::RoundingStrategy;

use crate::analysis::judgement::LEAST_CHANGE;
use crate::analysis::statistics::{Decimal, Period, Step, distinct, two_digits};
use crate::text;

/// Returns the name of a period and its days, which are empty if the name says them: `Week 46` and `9 to 15
/// November 2026`, `November 2026`, or `9 November 2026`.
pub(super) fn period_name(period: Period) -> (String, String) {
    let first = date(period.first());
    match period.step() {
        Step::Day => (day(period.first()), String::new()),
        Step::Month => (first.format("%B %Y").to_string(), String::new()),
        Step::Week => {
            let last = date(period.next().first() - 1);
            let start = if first.year() != last.year() {
                "%-d %B %Y"
            } else if first.month() != last.month() {
                "%-d %B"
            } else {
                "%-d"
            };
            let dates = format!("{} to {}", first.format(start), last.format("%-d %B %Y"));
            (format!("Week {}", first.iso_week().week()), dates)
        }
    }
}

/// Returns a short name of a period for the axis of a chart.
pub(super) fn short_period(period: Period) -> String {
    let first = date(period.first());
    match period.step() {
        Step::Day => first.format("%-d %b").to_string(),
        Step::Month => first.format("%b %Y").to_string(),
        Step::Week => format!("week {}", first.iso_week().week()),
    }
}

/// Formats a day, such as `9 November 2026`.
pub(super) fn day(second: i64) -> String {
    date(second).format("%-d %B %Y").to_string()
}

/// Formats a time to the minute, such as `9 November 2026, 16:20`.
pub(super) fn minute(second: i64) -> String {
    date(second).format("%-d %B %Y, %H:%M").to_string()
}

fn date(second: i64) -> NaiveDateTime {
    let moment = DateTime::from_timestamp(second, 0).unwrap_or(DateTime::UNIX_EPOCH);
    moment.naive_utc()
}

/// Returns how long ago something was.
pub(super) fn ago(then: i64, now: i64) -> String {
    const DAY: i64 = 86_400;
    let hours = (now - then) / 3600;
    // As the dates say, whatever the time of day.
    let days = now.div_euclid(DAY) - then.div_euclid(DAY);
    match now - then {
        ..0 => "in the future".to_owned(),
        0..3600 => "less than an hour ago".to_owned(),
        3600..172_800 => format!("{} ago", text::count(hours.unsigned_abs(), "hour", "hours")),
        _ => format!("{} ago", text::count(days.unsigned_abs(), "day", "days")),
    }
}

/// Replaces the e-mail addresses in a text.
pub(super) fn hide_emails(text: &str) -> String {
    if !text.contains('@') {
        return text.to_owned();
    }
    let words = text.split_inclusive(char::is_whitespace).map(|word| {
        let blank = &word[word.trim_end().len()..];
        if is_email(word.trim_end()) {
            format!("(e-mail hidden){blank}")
        } else {
            word.to_owned()
        }
    });
    words.collect()
}

/// Returns whether a word looks like an e-mail address.
pub(super) fn is_email(word: &str) -> bool {
    let parts = word.split_once('@');
    parts.is_some_and(|(person, host)| !person.is_empty() && host.contains('.'))
}

/// Formats a figure with two digits. A dash if there is none.
pub(super) fn figure(value: Option<Decimal>) -> String {
    let text = value.map(two_digits);
    text.map_or_else(|| "–".to_owned(), |text| text.replace('-', "−"))
}

/// Formats a difference with its sign, such as `−10.49`.
pub(super) fn signed(difference: Decimal) -> String {
    with_sign(difference, two_digits(difference.abs()))
}

/// Like [`signed`], with more digits if it would look like the least change that counts.
pub(super) fn signed_change(change: Decimal) -> String {
    let size = change.abs();
    if size < LEAST_CHANGE {
        with_sign(change, distinct(size, LEAST_CHANGE))
    } else {
        signed(change)
    }
}

fn with_sign(difference: Decimal, size: String) -> String {
    match size.as_str() {
        "0.00" => size,
        _ if difference.is_sign_negative() => format!("−{size}"),
        _ => format!("+{size}"),
    }
}

/// Formats a figure for a sentence, with one digit, or as many as it takes to differ from `other`.
pub(super) fn prose(value: Decimal, other: Decimal) -> String {
    let one_digit = |value: Decimal| {
        let mut rounded = value.round_dp_with_strategy(1, RoundingStrategy::MidpointAwayFromZero);
        rounded.rescale(1);
        rounded.to_string()
    };
    if one_digit(value) == one_digit(other) && value != other {
        distinct(value, other)
    } else {
        one_digit(value)
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
    use crate::batch::Timestamp;

    #[test]
    fn periods_are_named_as_people_do() {
        for (moment, step, name, dates) in [
            (
                "2026-11-12T10:00:00Z",
                Step::Week,
                "Week 46",
                "9 to 15 November 2026",
            ),
            (
                "2026-10-31T10:00:00Z",
                Step::Week,
                "Week 44",
                "26 October to 1 November 2026",
            ),
            (
                "2026-12-31T10:00:00Z",
                Step::Week,
                "Week 53",
                "28 December 2026 to 3 January 2027",
            ),
            ("2026-11-12T10:00:00Z", Step::Month, "November 2026", ""),
            ("2026-11-09T10:00:00Z", Step::Day, "9 November 2026", ""),
        ] {
            let second = Timestamp::parse(moment).expect(moment).second;
            let named = period_name(step.period(second));
            assert_eq!(named, (name.to_owned(), dates.to_owned()));
        }
    }

    #[test]
    fn addresses_are_hidden() {
        for (text, shown) in [
            ("ask jan@example.com now", "ask (e-mail hidden) now"),
            ("<a.b@c.example>,\nx", "(e-mail hidden)\nx"),
            ("row 3 @ house 4.5", "row 3 @ house 4.5"),
            ("3@4", "3@4"),
            ("", ""),
        ] {
            assert_eq!(hide_emails(text), shown);
        }
    }

    #[test]
    fn ages_have_one_unit() {
        for (seconds, words) in [
            (-1, "in the future"),
            (0, "less than an hour ago"),
            (3599, "less than an hour ago"),
            (3600, "1 hour ago"),
            (172_799, "47 hours ago"),
            (172_800, "2 days ago"),
            (30 * 86_400, "30 days ago"),
        ] {
            assert_eq!(ago(0, seconds), words);
        }
        // From 09:00 on the first day to 08:00 on the tenth.
        assert_eq!(ago(9 * 3600, 9 * 86_400 + 8 * 3600), "9 days ago");
    }

    #[test]
    fn figures_in_a_sentence_have_enough_digits() {
        for (value, other, words) in [
            ("70.71", "80", "70.7"),
            ("79.96", "80", "79.96"),
            ("79.999", "80", "79.999"),
            ("80", "80", "80.0"),
            ("0.049", "0", "0.05"),
        ] {
            let [value, other] = [value, other].map(|text| text.parse().expect(text));
            assert_eq!(prose(value, other), words);
        }
    }

    #[test]
    fn numbers_have_signs() {
        for (number, text) in [("-1.5", "−1.50"), ("0.004", "0.00"), ("2", "+2.00")] {
            assert_eq!(signed(number.parse().expect(number)), text);
        }
    }
}
