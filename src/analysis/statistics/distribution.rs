//! The exact distribution of the values of one field.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::value::{ExactValue, from_hundredths};

/// From this number of values on, equal ones are counted in one place: a list would take more memory, since rates have only
/// ten thousand values with two digits.
const MANY: usize = 16_384;

/// The values of one field, each with its count.
///
/// Memory is bounded by the number of distinct values: ten thousand for rates with two digits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distribution {
    /// Hundredths in any order, while there are few. Nearly all fit into 16 bits, and there may be many lists.
    few: Vec<u16>,
    /// The count of each number of hundredths, from zero. Empty while there are few. A run has memory for fewer than four
    /// billion batches.
    many: Vec<u32>,
    /// All other values: negative, huge, or not whole hundredths. Usually empty.
    others: BTreeMap<Decimal, u64>,
    count: u64,
}

impl Distribution {
    /// Adds `value`. Returns false if it has too many digits.
    #[cfg(test)]
    #[must_use = "a value that was not added must be counted as missing"]
    pub(crate) fn add(&mut self, value: Decimal) -> bool {
        let value = ExactValue::new(value);
        value.is_some_and(|value| {
            self.take(value);
            true
        })
    }

    /// Adds `value`.
    pub(crate) fn take(&mut self, value: ExactValue) {
        self.count += 1;
        if let ExactValue::Hundredths(hundredths) = value
            && let Ok(hundredths) = u16::try_from(hundredths)
        {
            self.add_hundredths(hundredths);
        } else {
            *self.others.entry(value.decimal()).or_default() += 1;
        }
    }

    /// Adds the values of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        for hundredths in &other.few {
            self.add_hundredths(*hundredths);
        }
        if !other.many.is_empty() {
            self.count_places();
            for (place, count) in other.many.iter().enumerate() {
                self.count_at(place, *count);
            }
        }
        for (number, count) in &other.others {
            *self.others.entry(*number).or_default() += count;
        }
    }

    /// Returns the number of values.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    fn add_hundredths(&mut self, hundredths: u16) {
        if !self.many.is_empty() {
            return self.count_at(hundredths.into(), 1);
        }
        let length = self.few.len();
        if length == self.few.capacity() {
            // Grows slowly, because there may be many lists.
            self.few.reserve_exact(length / 4 + 4);
        }
        self.few.push(hundredths);
        if length + 1 == MANY {
            self.count_places();
        }
    }

    fn count_at(&mut self, place: usize, count: u32) {
        let length = self.many.len();
        if place >= length {
            // Grows slowly, because there may be many lists.
            let needed = (place + 1).next_multiple_of(1024);
            self.many.reserve_exact(needed - length);
            self.many.resize(needed, 0);
        }
        let sum = self.many[place].checked_add(count);
        self.many[place] = sum.expect("fewer batches than four billion");
    }

    /// Counts the values in their places from now on.
    #[cold]
    fn count_places(&mut self) {
        for hundredths in std::mem::take(&mut self.few) {
            self.count_at(hundredths.into(), 1);
        }
    }

    /// Returns the hundredths in ascending order, each with its count.
    fn pairs(&self) -> Vec<(i32, u64)> {
        if self.many.is_empty() {
            let mut few = self.few.clone();
            few.sort_unstable();
            let runs = few.chunk_by(|left, right| left == right);
            return runs.map(|run| (run[0].into(), run.len() as u64)).collect();
        }
        let places = (0..).zip(self.many.iter().copied().map(u64::from));
        places.filter(|(_, count)| *count > 0).collect()
    }

    /// Returns the values in ascending order, each with its count.
    pub(crate) fn values(&self) -> Vec<(Decimal, u64)> {
        let pairs = self.pairs().into_iter();
        let hundredths = pairs.map(|(hundredths, count)| (from_hundredths(hundredths), count));
        let others = self.others.iter().map(|(number, count)| (*number, *count));
        let mut values: Vec<(Decimal, u64)> = hundredths.chain(others).collect();
        values.sort_unstable_by_key(|(number, _)| *number);
        values
    }

    pub(crate) fn min(&self) -> Option<Decimal> {
        self.count.checked_sub(1).map(|_| self.at([0])[0])
    }

    pub(crate) fn max(&self) -> Option<Decimal> {
        self.count.checked_sub(1).map(|last| self.at([last])[0])
    }

    /// Returns the middle value, or the mean of the two middle values.
    pub(crate) fn median(&self) -> Option<Decimal> {
        let last = self.count.checked_sub(1)?;
        let [below, above] = self.at([last / 2, last.div_ceil(2)]);
        Some(between(below, above, 2))
    }

    /// Returns the lower quartile, the median and the upper quartile. `None` if there are no values.
    ///
    /// Uses linear interpolation between the two nearest ranks: with `n` sorted values, counted from zero,
    /// quartile `k` is at `(n - 1) * k / 4`. This is type 7 in R, `QUARTILE.INC` in Excel and the default of
    /// numpy. Exact, not rounded.
    pub(crate) fn quartiles(&self) -> Option<[Decimal; 3]> {
        let last = self.count.checked_sub(1)?;
        // Avoids `last * 3`, which could overflow.
        let rank = |quartile: u64| {
            let quarters = last % 4 * quartile;
            (last / 4 * quartile + quarters / 4, quarters % 4)
        };
        let ranks = [1, 2, 3].map(rank);
        let below = self.at(ranks.map(|(rank, _)| rank));
        let above = self.at(ranks.map(|(rank, quarters)| rank + u64::from(quarters > 0)));
        Some([0, 1, 2].map(|index| between(below[index], above[index], ranks[index].1)))
    }

    /// Returns the median absolute deviation from the median.
    pub(crate) fn deviation(&self) -> Option<Decimal> {
        let median = self.median()?;
        let values = self.values().into_iter();
        let mut distances: Vec<(Decimal, u64)> = values
            .map(|(value, count)| ((value - median).abs(), count))
            .collect();
        distances.sort_unstable_by_key(|(distance, _)| *distance);
        let last = self.count - 1;
        let [below, above] = ranked(distances.into_iter(), [last / 2, last.div_ceil(2)]);
        Some(between(below, above, 2))
    }

    /// Returns the values at `ranks`, which must be below the count.
    fn at<const N: usize>(&self, ranks: [u64; N]) -> [Decimal; N] {
        if !self.others.is_empty() {
            return ranked(self.values().into_iter(), ranks);
        }
        ranked(self.pairs().into_iter(), ranks).map(from_hundredths)
    }
}

/// Returns the values at `ranks` in `values`, which are ascending and have counts.
fn ranked<T: Copy + Default, const N: usize>(
    values: impl Iterator<Item = (T, u64)>,
    ranks: [u64; N],
) -> [T; N] {
    let mut found = [T::default(); N];
    let mut left = N;
    let mut passed = 0;
    for (value, count) in values {
        let here = passed..passed + count;
        passed = here.end;
        for (found, _) in found
            .iter_mut()
            .zip(&ranks)
            .filter(|(_, rank)| here.contains(rank))
        {
            *found = value;
            left -= 1;
        }
        if left == 0 {
            break;
        }
    }
    found
}

/// Returns the point at `quarters` quarters of the way from `below` to `above`.
fn between(below: Decimal, above: Decimal, quarters: u64) -> Decimal {
    // Needs at most two more digits, for which every value has room, so nothing is rounded.
    below + (above - below) * Decimal::from(quarters) * Decimal::new(25, 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal(text: &str) -> Decimal {
        text.parse().expect(text)
    }

    fn of(values: &[Decimal]) -> Distribution {
        let mut distribution = Distribution::default();
        for value in values {
            assert!(distribution.add(*value), "{value}");
        }
        distribution
    }

    /// Does the same with a sorted list, in quarters of the smallest digit.
    fn naive(values: &[Decimal]) -> Option<([Decimal; 3], Decimal)> {
        let mut units: Vec<i128> = values
            .iter()
            .map(|value| ExactValue::new(*value).expect("a value").units())
            .collect();
        let last = units.len().checked_sub(1)?;
        units.sort_unstable();
        let quartile = |units: &[i128], quartile: usize| {
            let (rank, rest) = (last * quartile / 4, last * quartile % 4);
            let next = units[(rank + 1).min(last)];
            units[rank] * 4 + (next - units[rank]) * i128::try_from(rest).expect("small")
        };
        let written = |quarters: i128, parts: i128| {
            Decimal::from_i128_with_scale(
                quarters * (100 / parts),
                crate::analysis::statistics::value::FRACTION + 2,
            )
        };
        let quartiles = [1, 2, 3].map(|number| quartile(&units, number));
        // A median is a whole number of halves.
        let median = quartiles[1] / 2;
        let mut distances: Vec<i128> = units.iter().map(|unit| (unit * 2 - median).abs()).collect();
        distances.sort_unstable();
        let deviation = quartile(&distances, 2) / 2;
        Some((
            quartiles.map(|quartile| written(quartile, 4)),
            written(deviation, 4),
        ))
    }

    fn check(values: &[Decimal], distribution: &Distribution) -> Result<(), TestCaseError> {
        prop_assert_eq!(distribution.count(), values.len() as u64);
        let expected = naive(values);
        let quartiles = distribution.quartiles();
        prop_assert_eq!(quartiles, expected.map(|(quartiles, _)| quartiles));
        prop_assert_eq!(
            distribution.deviation(),
            expected.map(|(_, deviation)| deviation)
        );
        prop_assert_eq!(
            distribution.median(),
            quartiles.map(|quartiles| quartiles[1])
        );
        prop_assert_eq!(distribution.min(), values.iter().min().copied());
        prop_assert_eq!(distribution.max(), values.iter().max().copied());
        let mut counts: BTreeMap<Decimal, u64> = BTreeMap::new();
        for value in values {
            *counts.entry(*value).or_default() += 1;
        }
        prop_assert_eq!(
            distribution.values(),
            counts.into_iter().collect::<Vec<_>>()
        );
        Ok(())
    }

    fn values() -> impl Strategy<Value = Vec<Decimal>> {
        let rate = (0_i64..10_001).prop_map(|number| Decimal::new(number, 2));
        let coarse = (0_i64..11).prop_map(|number| Decimal::new(number, 0));
        let fine = (-10_i64.pow(12)..10_i64.pow(12), 0_u32..11)
            .prop_map(|(number, scale)| Decimal::new(number, scale));
        let huge = any::<bool>().prop_map(|negative| {
            let most = Decimal::new(999_999_999_999_999_999, 3) + Decimal::new(9_999_999, 10);
            if negative { -most } else { most }
        });
        let one = prop_oneof![8 => rate, 4 => coarse, 2 => fine, 1 => huge];
        prop::collection::vec(one, 0..60)
    }

    proptest! {
        #[test]
        fn figures_are_those_of_a_sorted_list(values in values()) {
            check(&values, &of(&values))?;
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn many_values_are_counted_and_stay_what_they_are(numbers in prop::collection::vec(0_i64..700, 2000..5000)) {
            let values: Vec<Decimal> = numbers.iter().map(|number| Decimal::new(*number, 2)).collect();
            let distribution = of(&values);
            check(&values, &distribution)?;
            let mut other = Distribution::default();
            other.merge(&distribution);
            check(&values, &other)?;
        }

        #[test]
        fn parts_make_the_whole(values in prop::collection::vec(values(), 0..4), many in prop::collection::vec(0_i64..3000, 0..3000)) {
            let mut parts = values;
            parts.push(many.iter().map(|number| Decimal::new(*number, 2)).collect());
            let mut whole = Distribution::default();
            for part in &parts {
                whole.merge(&of(part));
            }
            check(&parts.concat(), &whole)?;
            let mut other = Distribution::default();
            for part in parts.iter().rev() {
                other.merge(&of(part));
            }
            check(&parts.concat(), &other)?;
        }
    }

    #[test]
    fn a_great_many_values_are_counted_in_their_places() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut parts: Vec<Vec<Decimal>> = Vec::new();
        for (range, count) in [
            (-2_000..20_000, 30_000),
            (0..5_000, 20_000),
            (20_000..30_000, 20_000),
            (0..10_001, 500),
        ] {
            let value = |_| Decimal::new(random.i64(range.clone()), 2);
            parts.push((0..count).map(value).collect());
        }
        for parts in [parts.clone(), parts.iter().rev().cloned().collect()] {
            let mut whole = Distribution::default();
            for part in &parts {
                let distribution = of(part);
                assert_eq!(distribution.many.is_empty(), part.len() < 20_000);
                check(part, &distribution).expect("the figures of a part");
                whole.merge(&distribution);
            }
            check(&parts.concat(), &whole).expect("the figures of all");
        }
    }

    #[test]
    fn quartiles_are_those_of_other_programs() {
        // numpy.percentile([...], [25, 50, 75]) and R's quantile() say the same.
        let quartiles = |texts: &[&str]| {
            let values: Vec<Decimal> = texts.iter().map(|text| decimal(text)).collect();
            let quartiles = of(&values).quartiles().expect("values");
            quartiles.map(|value| value.normalize().to_string())
        };
        assert_eq!(quartiles(&["3"]), ["3", "3", "3"]);
        assert_eq!(quartiles(&["2", "1"]), ["1.25", "1.5", "1.75"]);
        assert_eq!(quartiles(&["1", "2", "3"]), ["1.5", "2", "2.5"]);
        assert_eq!(
            quartiles(&["10", "7", "4", "3", "2", "1"]),
            ["2.25", "3.5", "6.25"]
        );
        assert_eq!(quartiles(&["0.01", "0.02"]), ["0.0125", "0.015", "0.0175"]);
    }

    #[test]
    fn nothing_has_no_figures() {
        let nothing = Distribution::default();
        assert_eq!(nothing.quartiles(), None);
        assert_eq!(nothing.median(), None);
        assert_eq!(nothing.deviation(), None);
        assert_eq!((nothing.min(), nothing.max()), (None, None));
        let mut distribution = Distribution::default();
        assert!(!distribution.add(Decimal::MAX));
        assert_eq!(distribution.count(), 0);
    }
}
