//! Dates as the service writes them: UTC, with any fraction of a second.

use std::borrow::Cow;

use chrono::{DateTime, NaiveDate};

/// A point in time. Ordered chronologically.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timestamp {
    /// Whole seconds since 1970.
    pub(crate) second: i64,
    /// The first 18 digits of the fraction, as a number.
    fraction: u64,
    /// The digits after those, without trailing zeros. Usually empty, which needs no memory.
    further: Box<str>,
}

/// How many digits of a fraction fit into a number.
const DIGITS: usize = 18;
/// By the number of digits in a fraction, the value of its last one.
const UNITS: [u64; DIGITS + 1] = {
    let mut units = [1; DIGITS + 1];
    let mut digits = DIGITS;
    while digits > 0 {
        digits -= 1;
        units[digits] = units[digits + 1] * 10;
    }
    units
};

impl Timestamp {
    /// The first second of the year 1.
    pub(crate) const FIRST: i64 = -62_135_596_800;

    /// Parses a UTC date: `YYYY-MM-DDTHH:MM:SS`, an optional fraction of the second, and `Z` or `+00:00`.
    ///
    /// A leap second (`23:59:60`) is read as the second that follows it, as databases do.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (second, digits) = read(text)?;
        let (first, further) = digits.split_at_checked(DIGITS).unwrap_or((digits, ""));
        let number = first
            .bytes()
            .fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
        Some(Self {
            second,
            fraction: number * UNITS[first.len()],
            further: further.into(),
        })
    }

    /// Returns microseconds since 1970; `None` if the date is more precise than that.
    pub(crate) fn microseconds(&self) -> Option<i64> {
        const MICROSECOND: u64 = UNITS[6];
        let is_exact = self.fraction.is_multiple_of(MICROSECOND) && self.further.is_empty();
        let fraction = is_exact.then_some(self.fraction / MICROSECOND)?;
        let whole = self.second.checked_mul(1_000_000)?;
        whole.checked_add_unsigned(fraction)
    }

    /// Appends a key to `key`. Keys compare, byte by byte, as their dates do.
    pub(super) fn write_key(&self, key: &mut Vec<u8>) {
        // With the first bit flipped, negative numbers come first.
        let second = self.second ^ i64::MIN;
        key.extend_from_slice(&second.to_be_bytes());
        key.extend_from_slice(&self.fraction.to_be_bytes());
        key.extend_from_slice(self.further.as_bytes());
        key.push(0);
    }

    /// The start of a second.
    pub(crate) fn at(second: i64) -> Self {
        Self {
            second,
            fraction: 0,
            further: Box::default(),
        }
    }
}

/// Returns the canonical form of a date: `Z` for `+00:00`, no trailing zeros in the fraction, and the
/// following second for a leap second. Text that is not a UTC date is returned unchanged.
///
/// The result is borrowed if and only if nothing changed.
pub(crate) fn canonical_date(text: &str) -> Cow<'_, str> {
    let Some((second, fraction)) = read(text) else {
        return Cow::Borrowed(text);
    };
    let following;
    let whole = if is_leap_second(&text[..WHOLE]) {
        following = written(second);
        following.as_str()
    } else {
        &text[..WHOLE]
    };
    let point = if fraction.is_empty() { "" } else { "." };
    let length = WHOLE + point.len() + fraction.len() + 1;
    if text.len() == length && text.starts_with(whole) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{whole}{point}{fraction}Z"))
}

/// The length of `YYYY-MM-DDTHH:MM:SS`.
const WHOLE: usize = 19;

/// The first second after the last four-digit year.
const YEAR_10000: i64 = 253_402_300_800;

/// Parses a UTC date as seconds since 1970 and the digits of the fraction, without trailing zeros.
fn read(text: &str) -> Option<(i64, &str)> {
    let rest = text
        .strip_suffix('Z')
        .or_else(|| text.strip_suffix("+00:00"))?;
    let (whole, fraction) = rest.split_at_checked(WHOLE)?;
    let fraction = match fraction.strip_prefix('.') {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.trim_end_matches('0')
        }
        None if fraction.is_empty() => "",
        _ => return None,
    };
    let second = if is_leap_second(whole) {
        let before = format!("{}59", &whole[..WHOLE - 2]);
        whole_second(&before)?.checked_add(1)?
    } else {
        whole_second(whole)?
    };
    (second < YEAR_10000).then_some((second, fraction))
}

/// Returns whether `YYYY-MM-DDTHH:MM:SS` is a leap second. The day is not checked, because leap seconds are
/// announced from year to year.
fn is_leap_second(whole: &str) -> bool {
    whole.ends_with("T23:59:60")
}

fn written(second: i64) -> String {
    let date = DateTime::from_timestamp(second, 0).unwrap_or_default();
    date.format("%Y-%m-%dT%H:%M:%S").to_string()
}

/// Parses `YYYY-MM-DDTHH:MM:SS`, in exactly this form, as seconds since 1970.
pub(crate) fn whole_second(text: &str) -> Option<i64> {
    const ZERO: [u8; WHOLE] = *b"0000-00-00T00:00:00";
    let bytes: &[u8; WHOLE] = text.as_bytes().try_into().ok()?;
    let digits: [u8; WHOLE] = std::array::from_fn(|at| bytes[at].wrapping_sub(ZERO[at]));
    // Only the places of digits may differ from `ZERO`. No early return, so that all are compared at once.
    let fits = digits.iter().zip(ZERO).fold(true, |fits, (digit, zero)| {
        fits & (*digit <= if zero == b'0' { 9 } else { 0 })
    });
    if !fits {
        return None;
    }
    let two = |at: usize| u32::from(digits[at] * 10 + digits[at + 1]);
    let year = i32::try_from(two(0) * 100 + two(2)).ok()?;
    let day = NaiveDate::from_ymd_opt(year, two(5), two(8))?;
    let time = day.and_hms_opt(two(11), two(14), two(17))?;
    Some(time.and_utc().timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).expect(text)
    }

    #[test]
    fn fractions_order_within_their_second() {
        assert!(at("2026-05-01T06:00:00Z") < at("2026-05-01T06:00:00.001Z"));
        assert!(at("2026-05-01T06:00:00.49Z") < at("2026-05-01T06:00:00.5Z"));
        assert!(at("2026-05-01T06:00:00.999999Z") < at("2026-05-01T06:00:01Z"));
        assert_eq!(at("2026-05-01T06:00:00.50Z"), at("2026-05-01T06:00:00.5Z"));
        let nines = at("2026-05-01T06:00:00.999999999999999999Z");
        let further = at("2026-05-01T06:00:00.9999999999999999990000000000000000001Z");
        assert!(nines < further);
        assert!(further < at("2026-05-01T06:00:00.99999999999999999901Z"));
        assert!(further < at("2026-05-01T06:00:01Z"));
        assert_eq!(at("2026-05-01T06:00:00.000Z"), Timestamp::at(1_777_615_200));
    }

    #[test]
    fn microseconds_are_exact_or_none() {
        for (text, expected) in [
            ("1970-01-01T00:00:01.5Z", Some(1_500_000)),
            ("1970-01-01T00:00:01.123456+00:00", Some(1_123_456)),
            ("1970-01-01T00:00:01.123456000Z", Some(1_123_456)),
            ("1969-12-31T23:59:59.999999Z", Some(-1)),
            ("9999-12-31T23:59:59.999999Z", Some(253_402_300_799_999_999)),
            ("1970-01-01T00:00:01.0000005Z", None),
            ("1970-01-01T00:00:01.1000000000000000000001Z", None),
        ] {
            assert_eq!(at(text).microseconds(), expected, "{text}");
        }
    }

    #[test]
    fn both_spellings_of_utc_are_one_instant() {
        assert_eq!(at("2026-05-01T06:00:00+00:00"), at("2026-05-01T06:00:00Z"));
        let fraction = at("2026-05-01T06:00:00.1234560+00:00");
        assert_eq!(fraction, at("2026-05-01T06:00:00.123456Z"));
        assert!(fraction > at("2026-05-01T06:00:00.123+00:00"));
    }

    #[test]
    fn a_leap_second_is_the_second_that_follows() {
        for (text, following) in [
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
            ("2016-12-31T23:59:60+00:00", "2017-01-01T00:00:00Z"),
            ("2015-06-30T23:59:60.250Z", "2015-07-01T00:00:00.25Z"),
            ("2024-02-29T23:59:60Z", "2024-03-01T00:00:00Z"),
        ] {
            assert_eq!(at(text), at(following), "{text}");
            assert_eq!(canonical_date(text), following, "{text}");
        }
    }

    #[test]
    fn dates_have_one_spelling() {
        for (text, canonical) in [
            ("2026-05-01T06:00:00+00:00", "2026-05-01T06:00:00Z"),
            ("2026-05-01T06:00:00.000+00:00", "2026-05-01T06:00:00Z"),
            ("2026-05-01T06:00:00.500Z", "2026-05-01T06:00:00.5Z"),
            (
                "2026-05-01T06:00:00.123456+00:00",
                "2026-05-01T06:00:00.123456Z",
            ),
        ] {
            assert_eq!(canonical_date(text), canonical);
        }
        for unchanged in [
            "2026-05-01T06:00:00Z",
            "2026-05-01T06:00:00.5Z",
            "2026-05-01T06:00:00.123456Z",
            "2026-05-01T06:00:00+02:00",
            "2026-05-01T12:00:60Z",
            "9999-12-31T23:59:60Z",
            "soon.500Z",
            "2026-05-01",
            "",
        ] {
            let canonical = canonical_date(unchanged);
            assert!(matches!(canonical, Cow::Borrowed(text) if text == unchanged));
        }
    }

    #[test]
    fn what_is_not_utc_is_no_moment() {
        for text in [
            "2026-05-01T06:00:00",
            "2026-05-01T06:00:00-00:00",
            "2026-05-01T06:00:00+0000",
            "2026-05-01T06:00:00+00",
            "2026-05-01T06:00:00Z+00:00",
            "2026-05-01T06:00:00+00:00Z",
            "2026-05-01T06:00:00+02:00",
            "2026-05-01T23:59:61Z",
            "2026-05-01T12:00:60Z",
            "2026-05-01T22:59:60Z",
            "2026-02-29T23:59:60Z",
            "9999-12-31T23:59:60Z",
            "+00:00",
            "2026-05-01 06:00:00Z",
            "2026-05-01",
            "2026-05-01T06:00:00.Z",
            "2026-05-01T06:00:00.5.5Z",
            "2026-02-29T06:00:00Z",
            "2026-05-01T24:00:00Z",
            "",
            "Z",
            "2026-05-01T06:00:00.-5Z",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
