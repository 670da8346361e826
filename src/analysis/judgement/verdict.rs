//! The rule that calls a crop down, up or usual.

use rust_decimal::Decimal;

use crate::analysis::statistics::Distribution;

/// The minimum number of values on either side of a comparison. The texts of the page say "three".
pub(crate) const MIN_BATCHES: u64 = 3;

/// The smallest change that counts, in points.
pub(crate) const LEAST_CHANGE: Decimal = Decimal::TWO;

/// How a crop does in its newest step, compared with its own four steps before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Down,
    Up,
    Usual,
    /// Too few batches to judge.
    TooFew,
}

impl Verdict {
    /// Returns its name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
            Self::Usual => "usual",
            Self::TooFew => "too_few",
        }
    }
}

/// The usable rate of a crop in the newest step and in the four before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CropComparison {
    pub(crate) verdict: Verdict,
    /// The median in the newest step minus that of the four before, in points. `None` if there are too few
    /// batches.
    pub(crate) change: Option<Decimal>,
    /// The medians. `None` if there are no values.
    pub(crate) newest: Option<Decimal>,
    pub(crate) before: Option<Decimal>,
    /// The number of values.
    pub(crate) newest_count: u64,
    pub(crate) before_count: u64,
}

impl CropComparison {
    /// Compares the usable rates of the newest step with those of the four steps before.
    pub(crate) fn of(newest: &Distribution, before: &Distribution) -> Self {
        let change = changed(newest, before);
        let verdict = change.zip(before.deviation());
        let verdict = verdict.map_or(Verdict::TooFew, |(change, deviation)| {
            let is_clear =
                change.abs() >= LEAST_CHANGE && exceeds_chance(change, deviation, newest.count());
            match (is_clear, change.is_sign_negative()) {
                (false, _) => Verdict::Usual,
                (true, true) => Verdict::Down,
                (true, false) => Verdict::Up,
            }
        });
        Self {
            verdict,
            change,
            newest: newest.median(),
            before: before.median(),
            newest_count: newest.count(),
            before_count: before.count(),
        }
    }

    /// Returns whether the change would count, but may be chance: the batches vary too much.
    pub(crate) fn is_unclear(&self) -> bool {
        let is_large = |change: Decimal| change.abs() >= LEAST_CHANGE;
        self.verdict == Verdict::Usual && self.change.is_some_and(is_large)
    }
}

/// Returns the difference of the medians. `None` if there are too few values on either side.
pub(crate) fn changed(newest: &Distribution, before: &Distribution) -> Option<Decimal> {
    if newest.count().min(before.count()) < MIN_BATCHES {
        return None;
    }
    newest.median()?.checked_sub(before.median()?)
}

/// Returns whether `change` is at least three standard errors of the median of `count` values, which is
/// 1.4826 · deviation · 1.2533 / √count. Both sides are squared, so no root is rounded.
fn exceeds_chance(change: Decimal, deviation: Decimal, count: u64) -> bool {
    let factors = [
        Decimal::new(14826, 4),
        Decimal::new(12533, 4),
        Decimal::from(3),
    ];
    let three_errors = factors
        .into_iter()
        .try_fold(deviation, Decimal::checked_mul);
    let three_errors = three_errors.and_then(|errors| errors.checked_mul(errors));
    let change = change.checked_mul(change);
    let change = change.and_then(|square| square.checked_mul(Decimal::from(count)));
    match (change, three_errors) {
        (Some(change), Some(errors)) => change >= errors,
        // Too large to square: an enormous spread hides any change, and an enormous change is clear.
        (_, None) => false,
        (None, Some(_)) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Distribution {
        let mut distribution = Distribution::default();
        for value in values {
            assert!(distribution.add(value.parse().expect(value)));
        }
        distribution
    }

    fn verdict(newest: &[&str], before: &[&str]) -> &'static str {
        CropComparison::of(&of(newest), &of(before)).verdict.name()
    }

    #[test]
    fn fewer_than_three_are_not_judged() {
        let three = ["80", "80", "80"];
        assert_eq!(verdict(&["10", "10"], &three), "too_few");
        assert_eq!(verdict(&three, &["10", "10"]), "too_few");
        assert_eq!(verdict(&[], &[]), "too_few");
        let few = CropComparison::of(&of(&["10", "20"]), &of(&three));
        assert_eq!((few.change, few.newest), (None, Some(Decimal::from(15))));
        assert_eq!(verdict(&["10", "10", "10"], &three), "down");
    }

    #[test]
    fn a_change_counts_from_two_points_and_three_errors() {
        // Without any deviation, two points are enough.
        let alike = ["80.00"; 4];
        for (rate, expected) in [
            ("78.01", "usual"),
            ("78.00", "down"),
            ("81.99", "usual"),
            ("82.00", "up"),
        ] {
            assert_eq!(verdict(&[rate; 3], &alike), expected, "{rate}");
        }
        // A deviation of 1.35: ten batches need 2.38 points, three need 4.35.
        let spread = ["78.65", "78.65", "80.00", "81.35", "81.35"];
        for (rate, count, expected) in [
            ("77.63", 10, "usual"),
            ("77.62", 10, "down"),
            ("82.38", 10, "up"),
            ("75.66", 3, "usual"),
            ("75.65", 3, "down"),
        ] {
            assert_eq!(verdict(&vec![rate; count], &spread), expected, "{rate}");
        }
    }

    #[test]
    fn huge_values_are_judged_too() {
        let huge = ["999999999999999.9999999999"; 3];
        assert_eq!(verdict(&["0"; 3], &huge), "down");
        assert_eq!(verdict(&huge, &["1", "5", "9"]), "up");
    }
}
