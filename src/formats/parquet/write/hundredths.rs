//! Decimals as whole numbers.

/// Reads a decimal number as so many hundredths; nothing where that would round it, or has more than 18
/// digits.
pub(super) fn hundredths(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    if whole.len() > 16 || fraction.len() > 2 {
        return None;
    }
    let padding = &b"00"[fraction.len()..];
    let digits = whole.bytes().chain(fraction.bytes());
    let size = digits
        .chain(padding.iter().copied())
        .try_fold(0, |number, digit| {
            let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
            Some(number * 10 + digit)
        })?;
    Some(if unsigned.len() < text.len() {
        -size
    } else {
        size
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hundredths_are_exact_or_none() {
        for (text, expected) in [
            ("87.50", Some(8750)),
            ("87.5", Some(8750)),
            ("-0.05", Some(-5)),
            ("-12", Some(-1200)),
            ("-0.00", Some(0)),
            ("0", Some(0)),
            ("007.10000", Some(710)),
            ("9999999999999999.99", Some(999_999_999_999_999_999)),
            ("-9999999999999999.99", Some(-999_999_999_999_999_999)),
            ("10000000000000000", None),
            ("0.001", None),
            ("1.005", None),
        ] {
            assert_eq!(hundredths(text), expected, "{text}");
        }
    }
}
