//! Dates as spreadsheets store them: in days.

use crate::batch::Timestamp;

/// A day in microseconds.
pub(super) const DAY: i64 = 86_400_000_000;
/// The number of 1970-01-01 in days.
pub(super) const EPOCH: i64 = 25_569;
/// 1900-03-01: before it, Excel counts a day that never existed.
pub(super) const FIRST_DAY: i64 = 61;

/// An instant in days.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ExcelDate {
    pub(super) days: f64,
    pub(super) has_fraction: bool,
}

/// Returns an instant in days; `None` if that loses digits. It is exact from 1900-03-01 on, to the microsecond as
/// long as a floating-point number of days is precise enough; later dates have fewer digits.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    reason = "lost digits are detected below"
)]
pub(super) fn excel_date(text: &str) -> Option<ExcelDate> {
    let since_1970 = Timestamp::parse(text)?.microseconds()?;
    if since_1970.div_euclid(DAY) + EPOCH < FIRST_DAY {
        return None;
    }
    let total = since_1970 + EPOCH * DAY;
    let days = total as f64 / DAY as f64;
    let whole = days.floor();
    let about = whole as i64 * DAY + ((days - whole) * DAY as f64).round() as i64;
    // A reader takes the instant with the fewest digits that gives this number of days.
    let mut units = [1_000_000, 100_000, 10_000, 1_000, 100, 10, 1].into_iter();
    let again = units.find_map(|unit| {
        let again = (about + unit / 2).div_euclid(unit) * unit;
        (again as f64 / DAY as f64 == days).then_some(again)
    });
    let is_read_again = again == Some(total)
        && with_fifteen_digits(days, total).is_none_or(|rounded| rounded == total);
    is_read_again.then_some(ExcelDate {
        days,
        has_fraction: total % 1_000_000 != 0,
    })
}

/// Returns the instant to the millisecond, in microseconds since day 0, that other programs write as this number of
/// days: rounded to fifteen digits. It is the one nearest to `about`.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    reason = "the digits are compared"
)]
pub(super) fn with_fifteen_digits(days: f64, about: i64) -> Option<i64> {
    // Some round the number, and some its digits: a little more than half of the last digit.
    let tolerance = 0.6 * 10_f64.powi((days.log10().floor() as i32).saturating_sub(14));
    let milliseconds = about.checked_add(500)?.div_euclid(1000) * 1000;
    let is_near = days.is_finite() && (milliseconds as f64 / DAY as f64 - days).abs() <= tolerance;
    (is_near && format!("{days:.14e}").parse() == Ok(days)).then_some(milliseconds)
}

#[cfg(test)]
#[allow(
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "as in the workbook"
)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn any_number_may_be_asked_for_fifteen_digits() {
        let day = 1.5;
        assert_eq!(with_fifteen_digits(day, 3 * DAY / 2), Some(3 * DAY / 2));
        for days in [0.0, -1.5, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY] {
            assert_eq!(with_fifteen_digits(days, DAY), None, "{days}");
        }
    }

    #[test]
    fn later_dates_are_kept_if_their_digits_fit() {
        for (text, is_kept) in [
            ("2900-12-31T23:59:59Z", true),
            ("3210-01-02T03:04:07Z", true),
            ("9999-12-31T23:59:59Z", true),
            ("9999-12-31T23:59:59.123Z", true),
            ("2100-01-01T00:00:00.00001Z", true),
            ("9999-12-31T23:59:59.000001Z", false),
            ("9999-12-31T23:59:59.123456Z", false),
        ] {
            assert_eq!(excel_date(text).is_some(), is_kept, "{text}");
        }
    }

    #[test]
    fn offsets_and_leap_seconds_are_the_same_instant() {
        let new_year = excel_date("2017-01-01T00:00:00Z");
        assert_eq!(new_year.map(|date| date.days), Some(42_736.0));
        assert_eq!(excel_date("2017-01-01T00:00:00.000+00:00"), new_year);
        assert_eq!(excel_date("2016-12-31T23:59:60Z"), new_year);
    }

    proptest! {
        #[test]
        fn every_whole_second_is_kept(second in -2_203_891_200_i64..253_402_300_800) {
            let moment = chrono::DateTime::from_timestamp(second, 0).expect("a moment");
            let text = moment.format("%Y-%m-%dT%H:%M:%SZ").to_string();
            prop_assert!(excel_date(&text).is_some(), "{}", text);
        }

        #[test]
        fn moments_of_this_century_keep_their_milliseconds(second in 946_684_800_i64..3_400_000_000, millis in 0_i64..1000) {
            let moment = chrono::DateTime::from_timestamp_millis(second * 1000 + millis).expect("a moment");
            let text = moment.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
            prop_assert!(excel_date(&text).is_some(), "{}", text);
        }

        #[test]
        fn moments_of_this_century_keep_their_microseconds(second in 946_684_800_i64..3_400_000_000, micros in 0_i64..1_000_000) {
            let moment = chrono::DateTime::from_timestamp_micros(second * 1_000_000 + micros).expect("a moment");
            let text = moment.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
            // What may be the rounded number of another moment is text.
            let days = (moment.timestamp_micros() + EPOCH * DAY) as f64 / DAY as f64;
            let is_rounded = format!("{days:.14e}").parse() == Ok(days) && !(6..=994).contains(&(micros % 1000));
            prop_assert!(excel_date(&text).is_some() || is_rounded, "{}", text);
        }
    }
}
