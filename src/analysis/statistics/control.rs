//! Control limits of values in chronological order: few values are outside them by chance.

use rust_decimal::Decimal;

/// The figures of an individuals control chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    pub(crate) mean: Decimal,
    /// The average distance between consecutive values.
    pub(crate) moving_range: Decimal,
    /// The mean minus and plus 2.66 times the moving range.
    pub(crate) low: Decimal,
    pub(crate) high: Decimal,
}

impl Control {
    /// Computes the figures of `values` in chronological order, each with a single division. `None` if there
    /// are fewer than two values, or if they are too large.
    pub(crate) fn of(values: &[Decimal]) -> Option<Self> {
        let count = Decimal::from(values.len());
        let steps = Decimal::from(values.len().checked_sub(1)?);
        let mut sum = Decimal::ZERO;
        let mut ranges = Decimal::ZERO;
        for value in values {
            sum = sum.checked_add(*value)?;
        }
        for pair in values.windows(2) {
            ranges = ranges.checked_add(pair[1].checked_sub(pair[0])?.abs())?;
        }
        // sum / count ± 2.66 ranges / steps, with a common denominator.
        let denominator = count.checked_mul(steps)?;
        let middle = sum.checked_mul(steps)?;
        let reach = ranges
            .checked_mul(count)?
            .checked_mul(Decimal::new(266, 2))?;
        Some(Self {
            mean: sum.checked_div(count)?,
            moving_range: ranges.checked_div(steps)?,
            low: middle.checked_sub(reach)?.checked_div(denominator)?,
            high: middle.checked_add(reach)?.checked_div(denominator)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::statistics::two_digits;

    #[test]
    fn limits_depend_on_the_average_moving_range() {
        // Mean 90.2; ranges 2, 3, 1, 4, so 2.5 on average: 6.65 to either side.
        let values = [90, 92, 89, 88, 92].map(Decimal::from);
        let control = Control::of(&values).expect("figures");
        assert_eq!(two_digits(control.mean), "90.20");
        assert_eq!(two_digits(control.moving_range), "2.50");
        assert_eq!(two_digits(control.low), "83.55");
        assert_eq!(two_digits(control.high), "96.85");
        let alike = Control::of(&[Decimal::TEN; 3]).expect("figures");
        assert_eq!((alike.low, alike.high), (Decimal::TEN, Decimal::TEN));
        assert_eq!(Control::of(&values[..1]), None);
        assert_eq!(Control::of(&[]), None);
        assert_eq!(Control::of(&[Decimal::MAX, Decimal::MAX]), None);
    }
}
