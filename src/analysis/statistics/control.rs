//! What values in order of time vary by: the mean, and limits that few of them pass by chance.

use rust_decimal::Decimal;

/// The figures of an individuals control chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    pub(crate) mean: Decimal,
    /// The average distance of a value from the one before.
    pub(crate) moving_range: Decimal,
    /// The mean, less and plus 2.66 times that.
    pub(crate) low: Decimal,
    pub(crate) high: Decimal,
}

impl Control {
    /// Computes them of `values` in order of time, each with one division at the end; nothing of fewer than
    /// two, or where they are too large for that.
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
        // sum / count ± 2.66 ranges / steps, on one denominator.
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
    fn limits_come_from_the_average_moving_range() {
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
