//! Chooses the ends of an axis, so that an outlier does not squeeze all other values.

use super::svg::rounded_out;

/// Values nearer than this to the middle half are never outliers, in units of the axis.
const NEAR: f64 = 5.0;

/// Returns the smallest of `values`, each with its count, that is not an outlier.
///
/// An outlier is below the middle half by more than three times its width, and among the lowest twentieth.
pub(super) fn usual_least(mut values: Vec<(f64, u64)>) -> Option<f64> {
    values.retain(|(value, count)| value.is_finite() && *count > 0);
    values.sort_unstable_by(|left, right| left.0.total_cmp(&right.0));
    let all: u64 = values.iter().map(|(_, count)| count).sum();
    let at = |place: u64| {
        let mut before = 0;
        let found = values.iter().find(|(_, count)| {
            before += count;
            before > place
        });
        found.map(|(value, _)| *value)
    };
    let last = all.checked_sub(1)?;
    let (low, high) = (at(last / 4)?, at(last - last / 4)?);
    let fence = low - (3.0 * (high - low)).max(NEAR);
    let near = values.iter().find(|(value, _)| *value >= fence);
    // With fewer than 20 values, a single one is more than a twentieth.
    let many = (all >= 20).then(|| at(all / 20)).flatten();
    near.map(|(value, _)| *value)
        .into_iter()
        .chain(many)
        .reduce(f64::min)
}

/// Returns the largest of `values` that is not an outlier.
pub(super) fn usual_most(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let negated = values.into_iter().map(|value| (-value, 1)).collect();
    usual_least(negated).map(|least| -least)
}

/// Returns the scale of rates that all charts share, up to 100. It ignores the lowest twentieth: one failed
/// week would flatten all others.
pub(super) fn rate_scale(mut values: Vec<f64>, targets: impl Iterator<Item = f64>) -> (f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let usual = values.get(values.len() / 20).copied();
    let least = targets.chain(usual).fold(90.0, f64::min).max(0.0);
    (rounded_out(least, 100.0, 4).0, 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_outlier_does_not_decide() {
        let once = |values: &[f64]| values.iter().map(|value| (*value, 1)).collect();
        let near = [85.0, 88.0, 90.0, 91.0, 93.0, 95.0];
        for (more, least) in [
            (&[][..], 85.0),
            (&[3.0][..], 85.0),
            (&[70.5][..], 70.5),
            (&[-400.0][..], 85.0),
            (&[f64::NAN][..], 85.0),
        ] {
            let values = once(&[&near, more].concat());
            assert_eq!(usual_least(values), Some(least), "{more:?}");
        }
        assert_eq!(usual_least(once(&[3.0])), Some(3.0));
        assert_eq!(usual_least(Vec::new()), None);
        // All equal, and one a little lower.
        assert_eq!(usual_least(vec![(90.0, 30), (88.0, 1)]), Some(88.0));
        // A twentieth may be outliers, more may not.
        assert_eq!(usual_least(vec![(90.0, 38), (3.0, 2)]), Some(90.0));
        assert_eq!(usual_least(vec![(90.0, 37), (3.0, 3)]), Some(3.0));
        assert_eq!(usual_most([10.0, 12.0, 14.0, 15.0, 900.0]), Some(15.0));
    }

    #[test]
    fn one_failed_week_does_not_flatten_the_others() {
        let none = std::iter::empty;
        let mut values = vec![85.0; 39];
        assert!(same(rate_scale(values.clone(), none()), (85.0, 100.0)));
        values.push(3.0);
        assert!(same(rate_scale(values.clone(), none()), (85.0, 100.0)));
        values.extend([3.0, 3.0]);
        assert!(same(rate_scale(values, none()), (0.0, 100.0)));
        assert!(same(
            rate_scale(vec![99.0], [55.0].into_iter()),
            (40.0, 100.0)
        ));
        assert!(same(rate_scale(Vec::new(), none()), (90.0, 100.0)));
        assert!(same(rate_scale(vec![-50.0], none()), (0.0, 100.0)));
    }

    fn same(left: (f64, f64), right: (f64, f64)) -> bool {
        (left.0 - right.0).abs() < 1e-9 && (left.1 - right.1).abs() < 1e-9
    }
}
