//! Rounds figures for display: once, to two digits.

use rust_decimal::{Decimal, RoundingStrategy};

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
}
