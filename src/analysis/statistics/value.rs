//! One value of a decimal field, exact, and rounded once for display.

use std::cmp::Ordering;

use rust_decimal::{Decimal, RoundingStrategy};

/// The maximum number of digits before the decimal point.
const WHOLE: usize = 15;
/// The maximum number of digits after the decimal point.
pub(crate) const FRACTION: u32 = 10;

/// A decimal number that can be used in all figures without rounding.
///
/// It has up to 15 digits before the decimal point and 10 after it: a quartile needs two more digits, a
/// deviation from the median one more before the point, and a `Decimal` has 28 digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExactValue {
    /// In hundredths: at most two digits after the decimal point, like nearly all values.
    Hundredths(i32),
    /// Any other value.
    Other(Decimal),
}

impl ExactValue {
    /// Parses a decimal number in the format of the service. `None` if it is not a number or has too many
    /// digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some(hundredths) = hundredths(text.as_bytes()) {
            return Some(Self::Hundredths(hundredths));
        }
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
        let is_digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        // Leading and trailing zeros do not count.
        let (whole, fraction) = (
            whole.trim_start_matches('0'),
            fraction.trim_end_matches('0'),
        );
        if whole.len() > WHOLE || fraction.len() > FRACTION as usize {
            return None;
        }
        let digits = [whole, fraction].concat();
        let size = digits.bytes().fold(0_i128, |number, digit| {
            number * 10 + i128::from(digit - b'0')
        });
        let is_negative = unsigned.len() < text.len();
        let sign = if is_negative { -1 } else { 1 };
        let scale = u32::try_from(fraction.len()).ok()?;
        Self::new(Decimal::try_from_i128_with_scale(sign * size, scale).ok()?)
    }

    /// Converts `number`. `None` if it has too many digits.
    pub(crate) fn new(number: Decimal) -> Option<Self> {
        let number = number.normalize();
        if number.scale() > FRACTION || number.trunc().mantissa().unsigned_abs() >= 10_u128.pow(15)
        {
            return None;
        }
        if number.scale() <= 2 {
            let hundredths = number.mantissa() * 10_i128.pow(2 - number.scale());
            if let Ok(hundredths) = i32::try_from(hundredths) {
                return Some(Self::Hundredths(hundredths));
            }
        }
        Some(Self::Other(number))
    }

    pub(crate) fn decimal(self) -> Decimal {
        match self {
            Self::Hundredths(hundredths) => from_hundredths(hundredths),
            Self::Other(number) => number,
        }
    }

    /// Returns the value in units of the last possible digit: at most 84 bits.
    pub(crate) fn units(self) -> i128 {
        match self {
            Self::Hundredths(hundredths) => i128::from(hundredths) * 10_i128.pow(FRACTION - 2),
            Self::Other(number) => number.mantissa() * 10_i128.pow(FRACTION - number.scale()),
        }
    }
}

impl Ord for ExactValue {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Hundredths(left), Self::Hundredths(right)) => left.cmp(right),
            _ => self.decimal().cmp(&other.decimal()),
        }
    }
}

impl PartialOrd for ExactValue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

pub(super) fn from_hundredths(hundredths: i32) -> Decimal {
    Decimal::new(i64::from(hundredths), 2)
}

/// Parses a number with two digits after the decimal point, such as `87.50`: nearly all values.
fn hundredths(text: &[u8]) -> Option<i32> {
    let (unsigned, sign) = match text {
        [b'-', unsigned @ ..] => (unsigned, -1),
        unsigned => (unsigned, 1),
    };
    let [whole @ .., b'.', tens, ones] = unsigned else {
        return None;
    };
    // More digits may not fit, and are unusual.
    if whole.is_empty() || whole.len() > 7 {
        return None;
    }
    let mut size = 0_i32;
    for digit in whole.iter().chain([tens, ones]) {
        if !digit.is_ascii_digit() {
            return None;
        }
        size = size * 10 + i32::from(digit - b'0');
    }
    Some(sign * size)
}

/// Formats `number` with two digits after the decimal point, rounded half away from zero.
pub(crate) fn two_digits(number: Decimal) -> String {
    let mut rounded = number.round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero);
    if rounded.is_zero() {
        // Avoids a negative zero.
        rounded = Decimal::ZERO;
    }
    rounded.rescale(2);
    rounded.to_string()
}

/// Formats `number` so that it differs from `other`: with two digits, or all if necessary.
pub(crate) fn distinct(number: Decimal, other: Decimal) -> String {
    let text = two_digits(number);
    if text == two_digits(other) && number != other {
        number.normalize().to_string()
    } else {
        text
    }
}

/// Divides and rounds half up.
pub(super) fn divide(dividend: u128, divisor: u128) -> u128 {
    let (quotient, rest) = (dividend / divisor, dividend % divisor);
    quotient + u128::from(rest >= divisor - rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_value_is_the_same_however_it_is_written() {
        for (text, expected) in [
            ("87.50", 8750),
            ("87.5", 8750),
            ("87.500", 8750),
            ("0087.5000000000000000000000000000000000000", 8750),
            ("-0.00", 0),
            ("-1", -100),
            ("-0.05", -5),
            ("21474836.47", i32::MAX),
            ("-21474836.48", i32::MIN),
        ] {
            assert_eq!(
                ExactValue::parse(text),
                Some(ExactValue::Hundredths(expected)),
                "{text}"
            );
        }
        for text in [
            "21474836.48",
            "0.001",
            "999999999999999.9999999999",
            "-0.0000000001",
        ] {
            let value = ExactValue::parse(text).expect(text);
            assert!(matches!(value, ExactValue::Other(_)), "{text}");
            assert_eq!(value.decimal().to_string(), text);
        }
    }

    #[test]
    fn a_number_with_too_many_digits_is_not_a_value() {
        for text in [
            "1000000000000000",
            "-1000000000000000.00",
            "0.00000000001",
            "1234567890123456789012345678901234567890123456789",
            "",
            "-",
            "1e5",
            "5.",
            ".5",
            "1.2.3",
            "NaN",
            "٣.00",
        ] {
            assert_eq!(ExactValue::parse(text), None, "{text}");
        }
        assert_eq!(ExactValue::new(Decimal::MAX), None);
        assert_eq!(ExactValue::new(Decimal::MIN), None);
        assert_eq!(ExactValue::new(Decimal::new(1, 28)), None);
    }

    #[test]
    fn a_half_goes_away_from_zero() {
        for (number, expected) in [
            ("0", "0.00"),
            ("1", "1.00"),
            ("87.5", "87.50"),
            ("0.005", "0.01"),
            ("0.0049999999999999999999", "0.00"),
            ("-0.005", "-0.01"),
            ("-0.004", "0.00"),
            ("2.675", "2.68"),
            ("99.995", "100.00"),
            ("-1.2350", "-1.24"),
            ("999999999999999.995", "1000000000000000.00"),
        ] {
            let number = number.parse::<Decimal>().expect("a number");
            assert_eq!(two_digits(number), expected);
        }
    }

    #[test]
    fn quotients_are_rounded_half_up() {
        for (dividend, divisor, expected) in [
            (0, 3, 0),
            (1, 3, 0),
            (1, 2, 1),
            (5, 3, 2),
            (4, 3, 1),
            (7, 1, 7),
        ] {
            assert_eq!(
                divide(dividend, divisor),
                expected,
                "{dividend} / {divisor}"
            );
        }
        assert_eq!(divide(u128::MAX, 2), u128::MAX / 2 + 1);
        assert_eq!(divide(u128::MAX - 1, u128::MAX), 1);
    }

    proptest! {
        #[test]
        fn text_and_decimal_agree(number in -10_i64.pow(17)..10_i64.pow(17), scale in 0_u32..11) {
            let decimal = Decimal::new(number, scale);
            let value = ExactValue::parse(&decimal.to_string());
            prop_assert_eq!(value, ExactValue::new(decimal));
            if let Some(value) = value {
                prop_assert_eq!(value.decimal(), decimal);
                prop_assert_eq!(value.units(), i128::from(number) * 10_i128.pow(FRACTION - scale));
            }
        }
    }
}
