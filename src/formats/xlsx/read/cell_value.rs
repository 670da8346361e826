//! The value of a cell: as the service would write it, and whether it has the type of its column.

use std::borrow::Cow;

use calamine::DataRef;
use chrono::{DateTime, Datelike as _, Timelike as _};

use crate::batch::{FieldType, Timestamp, is_number};

/// A day in microseconds.
const DAY: f64 = 86_400_000_000.0;
/// The number of 1970-01-01 in days.
const EPOCH: i64 = 25_569;

/// Describes a value that has another type than an export writes. An export writes invalid values as text, so
/// text is wrong only if it is a valid value.
pub(super) fn wrong_type(kind: FieldType, value: &DataRef<'_>, text: &str) -> Option<&'static str> {
    let is_text = is_text(value);
    let has_digits = matches!(value, DataRef::Int(_) | DataRef::Float(_));
    let is_date = matches!(value, DataRef::DateTime(_) | DataRef::DateTimeIso(_));
    match kind {
        FieldType::Text => (!is_text).then_some("a number, a date or a formula, not text"),
        FieldType::Integer | FieldType::Decimal if has_digits => None,
        FieldType::Integer | FieldType::Decimal if is_text => {
            is_number(text.trim()).then_some("text, not a number")
        }
        FieldType::Integer | FieldType::Decimal => Some("not a number"),
        FieldType::Boolean if matches!(value, DataRef::Bool(_)) => None,
        FieldType::Boolean if is_text => {
            let is_boolean = ["true", "false"]
                .iter()
                .any(|word| word.eq_ignore_ascii_case(text));
            is_boolean.then_some("text, not TRUE or FALSE")
        }
        FieldType::Boolean => Some("not TRUE or FALSE"),
        FieldType::Date if is_date => None,
        FieldType::Date if is_text => is_countable(text).then_some("text, not a date"),
        FieldType::Date => Some("not formatted as a date"),
    }
}

pub(super) fn is_text(value: &DataRef<'_>) -> bool {
    matches!(value, DataRef::String(_) | DataRef::SharedString(_))
}

/// Returns whether spreadsheets can store an instant in days: from 1900-03-01 on, to the millisecond.
fn is_countable(text: &str) -> bool {
    const FIRST: i64 = (61 - EPOCH) * 86_400;
    let digits = text.rsplit_once('.').map_or("", |(_, digits)| digits);
    let digits = digits.trim_end_matches('Z').trim_end_matches('0');
    Timestamp::parse(text).is_some_and(|moment| moment.second >= FIRST) && digits.len() <= 3
}

/// Returns the value of a cell as the service would write it.
pub(super) fn text(kind: FieldType, value: &DataRef<'_>) -> Option<String> {
    let text = match value {
        DataRef::Empty => return None,
        DataRef::String(text) => unescape(text).into_owned(),
        DataRef::SharedString(text) => unescape(text).into_owned(),
        DataRef::Bool(yes) => yes.to_string(),
        DataRef::Int(number) => number.to_string(),
        DataRef::Float(days) if kind == FieldType::Date => instant(*days),
        DataRef::Float(number) => number.to_string(),
        DataRef::DateTime(days) if kind == FieldType::Date => instant(days.as_f64()),
        DataRef::DateTime(days) => days.as_f64().to_string(),
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => text.clone(),
        DataRef::Error(error) => error.to_string(),
    };
    Some(text).filter(|text| !text.is_empty())
}

/// Returns the instant with the fewest digits that gives this number of days, to the microsecond.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "a number out of range is not a date, and stays a number"
)]
pub(super) fn instant(days: f64) -> String {
    let whole = days.floor();
    let micros = ((days - whole) * DAY).round() as i64;
    let seconds = (whole as i64).checked_sub(EPOCH);
    let micros = seconds
        .and_then(|days| days.checked_mul(86_400_000_000))
        .and_then(|start| start.checked_add(micros));
    let offset = EPOCH * 86_400_000_000;
    let number = |micros: &i64| (micros + offset) as f64 / DAY;
    let is_as_far = |micros: &i64| number(micros) == days;
    // openpyxl writes sixteen digits of a number that may need seventeen. That is still exact to the microsecond.
    let is_cut = |micros: &i64| {
        let digits = format!("{:.15e}", number(micros));
        days < 99_999.0 && digits.parse() == Ok(days)
    };
    // Far from now, two microseconds may give the same number of days.
    let shortest = |micros: i64| {
        let units = [1_000_000, 100_000, 10_000, 1_000, 100, 10];
        let rounded = units.map(|unit| (micros + unit / 2).div_euclid(unit) * unit);
        let mut exact = rounded.iter().chain([&micros]);
        let found = exact.find(|micros| is_as_far(micros));
        let found = found.or_else(|| rounded.iter().find(|micros| is_cut(micros)));
        found.copied().unwrap_or(micros)
    };
    let is_dated = |micros: &i64| DateTime::from_timestamp_micros(*micros).is_some();
    let micros = micros.filter(is_dated).map(shortest);
    let moment = micros.and_then(DateTime::from_timestamp_micros);
    let Some(moment) = moment else {
        return days.to_string();
    };
    // Nearly all of them; the general way takes far longer.
    if moment.timestamp_subsec_micros() == 0 && (0..10_000).contains(&moment.year()) {
        let (date, time) = (moment.date_naive(), moment.time());
        return format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
            date.year(),
            date.month(),
            date.day(),
            time.hour(),
            time.minute(),
            time.second()
        );
    }
    moment.format("%Y-%m-%dT%H:%M:%S%.fZ").to_string()
}

/// Undoes the escapes for characters that XML cannot store, such as `\u{1}`, and for text that looks like one.
pub(in crate::formats) fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u{") {
        return Cow::Borrowed(text);
    }
    let mut undone = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\u{") {
        undone.push_str(&rest[..at]);
        rest = &rest[at..];
        let mut digits = rest.bytes().skip(3).take(7);
        let digits = digits.position(|byte| byte == b'}');
        let digits = digits.map_or("", |length| &rest[3..3 + length]);
        let letter = u32::from_str_radix(digits, 16)
            .ok()
            .and_then(char::from_u32);
        let letter = letter.filter(|letter| {
            // Tabs and line breaks are not escaped.
            let is_escaped = matches!(
                letter,
                '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\\' | '\u{fffe}' | '\u{ffff}'
            );
            is_escaped && rest.starts_with(&letter.escape_unicode().to_string())
        });
        let length = if let Some(letter) = letter {
            undone.push(letter);
            digits.len() + 4
        } else {
            undone.push('\\');
            1
        };
        rest = &rest[length..];
    }
    undone.push_str(rest);
    Cow::Owned(undone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_without_an_end_take_no_quadratic_time() {
        let text = r"\u{".repeat(300_000);
        assert_eq!(unescape(&text), text);
        assert_eq!(
            unescape(r"\u{1}\u{5c}u{2}é\u{ffff}}"),
            "\u{1}\\u{2}é\u{ffff}}"
        );
        assert_eq!(unescape(r"\u{é}"), r"\u{é}");
    }

    #[test]
    #[allow(clippy::cast_precision_loss, reason = "as in the workbook")]
    fn a_date_with_sixteen_digits_is_the_same() {
        for micros in [
            1_792_454_399_992_000_i64,
            1_777_615_200_250_000,
            1_700_000_000_001_001,
            1_700_000_000_999_999,
        ] {
            let days = (micros + EPOCH * 86_400_000_000) as f64 / DAY;
            let digits: f64 = format!("{days:.15e}").parse().expect("a number");
            assert_eq!(instant(digits), instant(days), "{days}");
        }
        assert_eq!(instant(46_314.999_999_907_41), "2026-10-19T23:59:59.992Z");
    }

    #[test]
    #[allow(clippy::cast_precision_loss, reason = "as in the workbook")]
    fn every_microsecond_is_told_from_its_neighbours() {
        // 2024-02-15T06:07:08.999999Z, and random ones from 1970 to 2078.
        let mut rng = fastrand::Rng::with_seed(1);
        let micros = std::iter::repeat_with(|| rng.i64(0..3_400_000_000_000_000)).take(3000);
        for micros in [1_707_977_228_999_999].into_iter().chain(micros) {
            let days = (micros + EPOCH * 86_400_000_000) as f64 / DAY;
            let moment = DateTime::from_timestamp_micros(micros).expect("a date");
            let expected = moment.format("%Y-%m-%dT%H:%M:%S%.fZ").to_string();
            let read = instant(days);
            let read = DateTime::parse_from_rfc3339(&read).expect("a date");
            assert_eq!(read.timestamp_micros(), micros, "{expected}");
        }
    }

    #[test]
    fn values_must_have_the_types_of_their_columns() {
        let text = |text: &str| DataRef::String(text.to_owned());
        for (kind, value, is_right) in [
            (FieldType::Text, text("7"), true),
            (FieldType::Text, DataRef::Float(7.0), false),
            (FieldType::Text, DataRef::Bool(true), false),
            (FieldType::Decimal, DataRef::Float(87.5), true),
            (FieldType::Decimal, text("87.5"), false),
            (FieldType::Decimal, text("many"), true),
            (FieldType::Integer, DataRef::Bool(true), false),
            (FieldType::Boolean, DataRef::Bool(true), true),
            (FieldType::Boolean, text("TRUE"), false),
            (FieldType::Boolean, text("maybe"), true),
            (FieldType::Boolean, DataRef::Float(1.0), false),
            (FieldType::Date, text("2026-05-01T06:00:00Z"), false),
            // These cannot be stored in days.
            (FieldType::Date, text("1850-05-01T06:00:00Z"), true),
            (FieldType::Date, text("9999-12-31T23:59:59.123456Z"), true),
            (FieldType::Date, DataRef::Float(46_143.25), false),
        ] {
            let written = super::text(kind, &value).unwrap_or_default();
            let found = wrong_type(kind, &value, &written);
            assert_eq!(found.is_none(), is_right, "{value:?} as {kind:?}");
        }
    }
}
