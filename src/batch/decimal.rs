//! Decimal numbers as text, compared digit by digit: no loss of size or precision.

use std::cmp::Ordering;

/// Number of decimal digits that a 64-bit floating-point number always keeps.
const EXACT_DIGITS: usize = 15;

/// Returns whether `text` is a decimal number: digits with an optional sign and an optional fraction.
pub(crate) fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let is_digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    unsigned.splitn(2, |byte| *byte == b'.').all(is_digits)
}

/// Returns whether `text` is a number without a fraction.
pub(crate) fn is_whole(text: &str) -> bool {
    is_number(text) && !text.contains('.')
}

/// Compares two texts that [`is_number`] accepts.
pub(crate) fn compare(left: &str, right: &str) -> Ordering {
    let (left, right) = (DecimalParts::of(left), DecimalParts::of(right));
    match (left.negative, right.negative) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (false, false) => left.compare_size(&right),
        (true, true) => right.compare_size(&left),
    }
}

/// Appends a key to `key`. Keys compare, byte by byte, as their numbers do.
pub(crate) fn write_key(text: &str, key: &mut Vec<u8>) {
    let parts = DecimalParts::of(text);
    key.push(u8::from(!parts.negative));
    let start = key.len();
    // More digits make a larger number.
    let length = u32::try_from(parts.whole.len()).unwrap_or(u32::MAX);
    key.extend_from_slice(&length.to_be_bytes());
    key.extend_from_slice(parts.whole.as_bytes());
    key.extend_from_slice(parts.fraction.as_bytes());
    key.push(0);
    if parts.negative {
        key[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Returns a decimal number as a float; `None` if it would not keep every digit.
pub(crate) fn exact_float(text: &str) -> Option<f64> {
    let value: f64 = is_number(text).then(|| text.parse().ok())??;
    let is_exact = text.len() <= EXACT_DIGITS || {
        let digits = significant_digits(text);
        // Numbers near the smallest float keep fewer digits.
        digits <= EXACT_DIGITS && (digits == 0 || value.is_normal())
    };
    is_exact.then_some(value)
}

/// Counts the significant digits of a decimal number, from the first that is not zero. Zeros at the end of a fraction do
/// not count, but those of a whole number do.
fn significant_digits(text: &str) -> usize {
    let digits = if text.contains('.') {
        text.trim_end_matches('0')
    } else {
        text
    };
    let digits = digits.trim_start_matches(|letter: char| !matches!(letter, '1'..='9'));
    digits.bytes().filter(u8::is_ascii_digit).count()
}

/// A number without insignificant zeros.
struct DecimalParts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
}

impl<'a> DecimalParts<'a> {
    fn of(text: &'a str) -> Self {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        let zero = whole.is_empty() && fraction.is_empty();
        Self {
            negative: unsigned.len() < text.len() && !zero,
            whole,
            fraction,
        }
    }

    fn compare_size(&self, other: &Self) -> Ordering {
        let length = self.whole.len().cmp(&other.whole.len());
        length
            .then_with(|| self.whole.cmp(other.whole))
            .then_with(|| self.fraction.cmp(other.fraction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_plain_decimals_are_numbers() {
        for text in [
            "0",
            "-1",
            "87.50",
            "007",
            "123456789012345678901234567890.123",
        ] {
            assert!(is_number(text), "{text}");
        }
        for text in [
            "", "-", ".5", "5.", "+1", "1e5", "1,5", " 1", "1.2.3", "NaN", "--1", "٣",
        ] {
            assert!(!is_number(text), "{text}");
        }
    }

    #[test]
    fn digits_count_from_the_first_that_says_something() {
        for (text, count) in [
            ("87.50", 3),
            ("-0.00", 0),
            ("0.0012", 2),
            ("1200", 4),
            ("1200.00", 4),
            ("123456789012345.6", 16),
            ("1.00000000000000000", 1),
        ] {
            assert_eq!(significant_digits(text), count, "{text}");
        }
    }

    #[test]
    fn floats_keep_every_digit() {
        let tiny = |zeros: usize, digits: &str| format!("0.{}{digits}", "0".repeat(zeros));
        for (text, expected) in [
            ("87.50".to_owned(), Some(87.5)),
            ("-0.00".to_owned(), Some(0.0)),
            (
                "123456789012345.000".to_owned(),
                Some(123_456_789_012_345.0),
            ),
            ("1234567890123456".to_owned(), None),
            ("1000000000000000.00".to_owned(), None),
            (tiny(306, "1"), Some(1e-307)),
            (tiny(400, ""), Some(0.0)),
            (tiny(323, "1"), None),
            (tiny(310, "123456789012345"), None),
            (format!("1{}.0", "0".repeat(400)), None),
            ("1e5".to_owned(), None),
        ] {
            assert_eq!(exact_float(&text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn numbers_compare_as_numbers(a: i64, b: i64, zeros in 0_usize..3, scale in 0_usize..5) {
            let write = |number: i64, zeros: usize| {
                let digits = format!("{:0width$}", i128::from(number).abs(), width = scale + 1);
                let (whole, fraction) = digits.split_at(digits.len() - scale);
                let sign = if number < 0 { "-" } else { "" };
                let tail = "0".repeat(zeros);
                match scale + zeros {
                    0 => format!("{sign}{whole}"),
                    _ => format!("{sign}{tail}{whole}.{fraction}0{tail}"),
                }
            };
            prop_assert_eq!(compare(&write(a, zeros), &write(b, 0)), a.cmp(&b));
            prop_assert_eq!(compare(&write(a, zeros), &write(a, 0)), Ordering::Equal);
        }
    }
}
