//! Exact numbers: integers that count a small part of a point.

/// The units of a point: eight digits, which the medians halve, and the deviations from them once more.
pub(crate) const POINT: i128 = 4 * 100_000_000;

/// Parses a decimal number.
pub(crate) fn units(text: &str) -> i128 {
    let (sign, size) = text.strip_prefix('-').map_or((1, text), |size| (-1, size));
    let (whole, digits) = size.split_once('.').unwrap_or((size, ""));
    assert!(digits.len() <= 8, "{text}");
    let hundred_millionths: i128 = format!("{whole}{digits:0<8}").parse().unwrap();
    sign * hundred_millionths * 4
}

/// Rounds `units / divisor` half up, the sign aside, to `digits` digits.
fn rounded_to(units: i128, divisor: i128, digits: u32) -> String {
    let each = divisor * POINT;
    let one = 10_i128.pow(digits);
    let size = (2 * units.abs() * one + each) / (2 * each);
    let sign = if units < 0 && size > 0 { "-" } else { "" };
    let width = digits as usize;
    format!("{sign}{}.{:0width$}", size / one, size % one)
}

/// Formats a number with two digits.
pub(crate) fn rounded(units: i128) -> String {
    rounded_to(units, 1, 2)
}

/// Formats `units / divisor` with two digits.
pub(crate) fn rounded_ratio(units: i128, divisor: i128) -> String {
    rounded_to(units, divisor, 2)
}

/// Formats a number with all its digits and no zeros at the end.
pub(crate) fn shortest(units: i128) -> String {
    let text = rounded_to(units, 1, 8);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a number with two digits, or with all if it would look like `other`.
pub(crate) fn distinct(units: i128, other: i128) -> String {
    let text = rounded(units);
    if text == rounded(other) && units != other {
        shortest(units)
    } else {
        text
    }
}

/// Formats a number for a sentence: with one digit, or as many as it takes to differ from `other`.
pub(crate) fn in_prose(units: i128, other: i128) -> String {
    let text = |units| rounded_to(units, 1, 1);
    if text(units) == text(other) && units != other {
        distinct(units, other)
    } else {
        text(units)
    }
}

/// Returns the quartile `k`, by linear interpolation. The values must be multiples of four.
pub(crate) fn quartile(values: &[i128], k: usize) -> Option<i128> {
    let mut values = values.to_vec();
    values.sort_unstable();
    let last = values.len().checked_sub(1)?;
    let (place, rest) = (last * k / 4, last * k % 4);
    let above = values[(place + 1).min(last)];
    Some(values[place] + (above - values[place]) * rest as i128 / 4)
}

pub(crate) fn median(values: &[i128]) -> Option<i128> {
    let mut values = values.to_vec();
    let last = values.len().checked_sub(1)?;
    let (_, &mut below, above) = values.select_nth_unstable(last / 2);
    let above = above.iter().min().filter(|_| last % 2 == 1);
    Some(i128::midpoint(below, *above.unwrap_or(&below)))
}

/// Returns the median absolute deviation from the median.
pub(crate) fn deviation(values: &[i128]) -> Option<i128> {
    let middle = median(values)?;
    let distances: Vec<i128> = values.iter().map(|value| (value - middle).abs()).collect();
    median(&distances)
}

pub(crate) fn common_divisor(one: i128, other: i128) -> i128 {
    if other == 0 {
        one
    } else {
        common_divisor(other, one % other)
    }
}
