//! The exact distribution of the values of one field.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::value::{ExactValue, from_hundredths};

/// The number of values to collect before they are counted. Among fewer, hardly any are equal.
const TAIL: usize = 1024;
/// From this number of values on, those between zero and [`DENSE_END`] hundredths are counted in place: nearly all,
/// because rates are percentages. Among fewer, the places would take more memory than the values.
const DENSE_FROM: u64 = 8192;
const DENSE_END: usize = 16_384;
/// The places are extended by this many.
const DENSE_STEP: usize = 1024;

/// The values of one field, each with its count.
///
/// Memory is bounded by the number of distinct values: ten thousand for rates with two digits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distribution {
    /// Hundredths in ascending order, each with its count.
    counted: Vec<(i32, u32)>,
    /// The count of each number of hundredths, from zero. Empty before there are [`DENSE_FROM`] values.
    dense: Vec<u32>,
    /// Hundredths that are not counted yet, unsorted. Nearly all fit into 16 bits, and there may be many lists.
    tail: Vec<u16>,
    /// As `tail`, for those that do not fit.
    wide_tail: Vec<i32>,
    /// Values that are not whole hundredths, or are huge. Usually empty.
    others: BTreeMap<Decimal, u64>,
    count: u64,
}

/// The quartiles of the values.
///
/// Uses linear interpolation between the two nearest ranks: with `n` sorted values, counted from zero,
/// quartile `k` is at `(n - 1) * k / 4`. This is type 7 in R, `QUARTILE.INC` in Excel and the default of
/// numpy. Exact, not rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quartiles {
    pub(crate) low: Decimal,
    pub(crate) median: Decimal,
    pub(crate) high: Decimal,
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
        match value {
            ExactValue::Hundredths(hundredths) => self.count_one(hundredths),
            ExactValue::Other(number) => *self.others.entry(number).or_default() += 1,
        }
    }

    /// Adds the values of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        let narrow = other.tail.iter().map(|&hundredths| hundredths.into());
        for hundredths in narrow.chain(other.wide_tail.iter().copied()) {
            self.count_one(hundredths);
        }
        if !other.dense.is_empty() {
            // This one has at least as many values.
            self.start_dense();
            self.add_pairs(&other.dense_pairs());
        }
        if !other.counted.is_empty() {
            self.add_pairs(&other.counted);
        }
        for (number, count) in &other.others {
            *self.others.entry(*number).or_default() += count;
        }
    }

    /// Returns the number of values.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    fn count_one(&mut self, hundredths: i32) {
        let place = usize::try_from(hundredths).ok();
        let place = place.and_then(|place| self.dense.get_mut(place));
        if let Some(place) = place
            && let Some(count) = place.checked_add(1)
        {
            *place = count;
            return;
        }
        let most = TAIL.max(self.counted.len() / 2);
        if let Ok(narrow) = u16::try_from(hundredths) {
            if !has_room(&mut self.tail, most) {
                self.count_tails();
            }
            self.tail.push(narrow);
        } else {
            if !has_room(&mut self.wide_tail, most) {
                self.count_tails();
            }
            self.wide_tail.push(hundredths);
        }
    }

    /// Adds values with their counts, in ascending order.
    fn add_pairs(&mut self, pairs: &[(i32, u32)]) {
        if self.dense.is_empty() {
            self.counted = merged(&self.counted, pairs);
            return;
        }
        let others: Vec<(i32, u32)> = pairs
            .iter()
            .copied()
            .filter(|&(hundredths, count)| !self.add_dense(hundredths, count))
            .collect();
        if !others.is_empty() {
            self.counted = merged(&self.counted, &others);
        }
    }

    /// Counts values in their place. Returns false if they have none, or are too many.
    fn add_dense(&mut self, hundredths: i32, count: u32) -> bool {
        let place = usize::try_from(hundredths).ok();
        let Some(place) = place.filter(|place| *place < DENSE_END) else {
            return false;
        };
        if place >= self.dense.len() {
            let length = place / DENSE_STEP * DENSE_STEP + DENSE_STEP;
            self.dense.reserve_exact(length - self.dense.len());
            self.dense.resize(length, 0);
        }
        let sum = self.dense[place].checked_add(count);
        self.dense[place] = sum.unwrap_or(self.dense[place]);
        sum.is_some()
    }

    /// Starts to count values in their place.
    fn start_dense(&mut self) {
        if self.dense.is_empty() {
            self.dense = vec![0; DENSE_STEP];
            let counted = std::mem::take(&mut self.counted);
            self.add_pairs(&counted);
        }
    }

    fn dense_pairs(&self) -> Vec<(i32, u32)> {
        let places = (0..).zip(&self.dense);
        let pairs = places.filter(|(_, count)| **count > 0);
        pairs.map(|(place, count)| (place, *count)).collect()
    }

    /// Counts the values of the tails.
    #[cold]
    fn count_tails(&mut self) {
        if self.count >= DENSE_FROM {
            self.start_dense();
        }
        let pairs = self.tail_pairs();
        self.add_pairs(&pairs);
        self.tail.clear();
        self.wide_tail.clear();
    }

    fn tail_pairs(&self) -> Vec<(i32, u32)> {
        merged(&counted(&self.tail), &counted(&self.wide_tail))
    }

    /// Returns the hundredths in ascending order, each with its count.
    fn pairs(&self) -> Cow<'_, [(i32, u32)]> {
        if self.tail.is_empty() && self.wide_tail.is_empty() && self.dense.is_empty() {
            return Cow::Borrowed(&self.counted);
        }
        let tail = merged(&self.counted, &self.tail_pairs());
        Cow::Owned(if self.dense.is_empty() {
            tail
        } else {
            merged(&tail, &self.dense_pairs())
        })
    }

    /// Returns the values in ascending order, each with its count.
    pub(crate) fn values(&self) -> Vec<(Decimal, u64)> {
        let pairs = self.pairs();
        let hundredths = pairs
            .iter()
            .map(|&(hundredths, count)| (from_hundredths(hundredths), u64::from(count)));
        if self.others.is_empty() {
            return hundredths.collect();
        }
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

    /// Returns the quartiles. `None` if there are no values.
    pub(crate) fn quartiles(&self) -> Option<Quartiles> {
        let last = self.count.checked_sub(1)?;
        // Avoids `last * 3`, which could overflow.
        let rank = |quartile: u64| {
            let quarters = last % 4 * quartile;
            (last / 4 * quartile + quarters / 4, quarters % 4)
        };
        let [(low, a), (median, b), (high, c)] = [1, 2, 3].map(rank);
        let after = |rank: u64, quarters: u64| rank + u64::from(quarters > 0);
        let found = self.at([
            low,
            after(low, a),
            median,
            after(median, b),
            high,
            after(high, c),
        ]);
        Some(Quartiles {
            low: between(found[0], found[1], a),
            median: between(found[2], found[3], b),
            high: between(found[4], found[5], c),
        })
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
        let pairs = self.pairs();
        let values = pairs
            .iter()
            .map(|&(value, count)| (value, u64::from(count)));
        ranked(values, ranks).map(from_hundredths)
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

/// Returns whether `tail` has room for another value. Grows slowly up to `most`, because there may be many lists.
fn has_room<T>(tail: &mut Vec<T>, most: usize) -> bool {
    let length = tail.len();
    if length == tail.capacity() && length < most {
        tail.reserve_exact((length / 4 + 4).min(most - length));
    }
    length < tail.capacity()
}

/// Counts `values`; returns them in ascending order.
fn counted<T: Copy + Ord + Into<i32>>(values: &[T]) -> Vec<(i32, u32)> {
    let mut values = values.to_vec();
    values.sort_unstable();
    let runs = values.chunk_by(|left, right| left == right);
    let mut pairs = Vec::with_capacity(runs.clone().count());
    // A tail is never too long for the counter.
    pairs.extend(runs.map(|run| (run[0].into(), u32::try_from(run.len()).unwrap_or(u32::MAX))));
    pairs
}

/// Merges two ascending lists.
fn merged(left: &[(i32, u32)], right: &[(i32, u32)]) -> Vec<(i32, u32)> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    while let (Some(&&(a, m)), Some(&&(b, n))) = (left.peek(), right.peek()) {
        match a.cmp(&b) {
            Ordering::Less => merged.extend(left.next()),
            Ordering::Greater => merged.extend(right.next()),
            Ordering::Equal => {
                match m.checked_add(n) {
                    Some(sum) => merged.push((a, sum)),
                    // A value may appear twice.
                    None => merged.extend([(a, m), (b, n)]),
                }
                left.next();
                right.next();
            }
        }
    }
    merged.extend(left);
    merged.extend(right);
    merged.shrink_to_fit();
    merged
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
        prop_assert_eq!(
            quartiles.map(|q| [q.low, q.median, q.high]),
            expected.map(|(quartiles, _)| quartiles)
        );
        prop_assert_eq!(
            distribution.deviation(),
            expected.map(|(_, deviation)| deviation)
        );
        prop_assert_eq!(
            distribution.median(),
            quartiles.map(|quartiles| quartiles.median)
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
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn many_values_are_counted_and_stay_what_they_are(numbers in prop::collection::vec(0_i64..700, 2000..5000)) {
            let values: Vec<Decimal> = numbers.iter().map(|number| Decimal::new(*number, 2)).collect();
            let distribution = of(&values);
            prop_assert!(distribution.counted.len() <= 700);
            prop_assert!(distribution.tail.capacity() <= TAIL);
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
                assert_eq!(distribution.dense.is_empty(), part.len() < 20_000);
                assert!(distribution.dense.len() <= DENSE_END);
                check(part, &distribution).expect("the figures of a part");
                whole.merge(&distribution);
            }
            check(&parts.concat(), &whole).expect("the figures of all");
        }
        // A place that is full does not lose values.
        let mut full = of(&vec![Decimal::ONE; 10_000]);
        full.dense[100] = u32::MAX - 1;
        full.count = u64::from(u32::MAX) + 8;
        for _ in 0..10 {
            full.take(ExactValue::Hundredths(100));
        }
        let found = full.values().iter().map(|(_, count)| count).sum::<u64>();
        assert_eq!(found, full.tail.len() as u64 + u64::from(u32::MAX));
        assert_eq!(full.median(), Some(Decimal::ONE));
    }

    #[test]
    fn quartiles_are_those_of_other_programs() {
        // numpy.percentile([...], [25, 50, 75]) and R's quantile() say the same.
        let quartiles = |texts: &[&str]| {
            let values: Vec<Decimal> = texts.iter().map(|text| decimal(text)).collect();
            let quartiles = of(&values).quartiles().expect("values");
            [quartiles.low, quartiles.median, quartiles.high]
                .map(|value| value.normalize().to_string())
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

    #[test]
    fn counts_that_are_too_large_stand_side_by_side() {
        let merged = merged(&[(5, u32::MAX)], &[(5, 2)]);
        assert_eq!(merged, [(5, u32::MAX), (5, 2)]);
    }
}
