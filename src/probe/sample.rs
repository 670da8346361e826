//! A sample of the service's batches, and the order in which they arrived.

use std::collections::{BTreeSet, HashSet};

use super::listing::{BatchList, SampledBatch, batches};

/// Distinct batches in order of arrival.
#[derive(Default)]
pub(super) struct BatchSample {
    pub(super) batches: Vec<SampledBatch>,
    ids: HashSet<String>,
    /// Whether these are all batches of the service.
    pub(super) is_all: bool,
}

impl BatchSample {
    /// Creates a sample from one response.
    pub(super) fn of(listing: &BatchList) -> Self {
        let mut sample = Self::default();
        sample.add(&listing.batches);
        sample
    }

    /// Adds the batches of one response. Returns the number of new ones.
    pub(super) fn add(&mut self, batches: &[SampledBatch]) -> usize {
        let before = self.batches.len();
        for batch in batches {
            if self.ids.insert(batch.id.clone()) {
                self.batches.push(batch.clone());
            }
        }
        self.batches.len() - before
    }

    pub(super) fn len(&self) -> usize {
        self.batches.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Returns the first and the last second with a batch.
    pub(super) fn span(&self) -> Option<(i64, i64)> {
        let seconds = || self.batches.iter().map(SampledBatch::second);
        Some((seconds().min()?, seconds().max()?))
    }

    /// Returns the batch matching `filter` with the fewest others nearby, which could push it to another
    /// page.
    pub(super) fn most_isolated(
        &self,
        filter: impl Fn(&SampledBatch) -> bool,
    ) -> Option<&SampledBatch> {
        const NEAR: i64 = 3;
        let mut seconds: Vec<i64> = self.batches.iter().map(SampledBatch::second).collect();
        seconds.sort_unstable();
        let near = |batch: &&SampledBatch| {
            let second = batch.second();
            let first = seconds.partition_point(|&other| other < second - NEAR);
            seconds.partition_point(|&other| other <= second + NEAR) - first
        };
        self.batches
            .iter()
            .filter(|batch| filter(batch))
            .min_by_key(near)
    }

    /// Returns a short range with a few batches.
    pub(super) fn short_range(&self) -> Option<(i64, i64)> {
        /// The number of batches if all batches of the range are known.
        const DENSE: usize = 100;
        /// The number of batches if only some are known.
        const SPARSE: usize = 10;
        let in_order = order_of(&self.batches).is_ok_and(|order| order.starts_with(BY_TIME));
        let limit = if self.is_all || in_order {
            DENSE
        } else {
            SPARSE
        };
        let mut seconds: Vec<i64> = self.batches.iter().map(SampledBatch::second).collect();
        seconds.sort_unstable();
        let ranges = seconds.windows(limit.min(seconds.len()).max(1));
        let (first, last) = ranges
            .map(|range| (range[0], range[range.len() - 1]))
            .min_by_key(|(first, last)| last - first)?;
        Some((first, last + 1))
    }

    /// Returns the names of fields that are not in the interface.
    pub(super) fn other_fields(&self) -> BTreeSet<&str> {
        let others = self.batches.iter().flat_map(|batch| &batch.others);
        others.map(|(name, _)| name.as_str()).collect()
    }
}

/// Fewer batches may be sorted by chance.
const MIN_BATCHES: usize = 5;

const BY_TIME: &str = "by batch_creation_date";

/// Describes the order of `seen`. The error is the reason why it is unknown.
pub(super) fn order_of(seen: &[SampledBatch]) -> Result<String, String> {
    if seen.len() < MIN_BATCHES {
        return Err(match seen.len() {
            0 => "there are no batches".to_owned(),
            count => format!("too few: {}", batches(count)),
        });
    }
    let named = |up| if up { "ascending" } else { "descending" };
    let by_id = direction(seen, |batch| &batch.id);
    let by_name = direction(seen, |batch| &batch.name);
    Ok(match direction(seen, |batch| &batch.created) {
        Some(true) => format!("{BY_TIME}, oldest first"),
        Some(false) => format!("{BY_TIME}, newest first"),
        None => match (by_id, by_name) {
            (Some(up), _) => format!("by batch_id, {}", named(up)),
            (None, Some(up)) => format!("by batch_name, {}", named(up)),
            (None, None) => "none: not by batch_creation_date, batch_id or batch_name".to_owned(),
        },
    })
}

/// Returns whether the keys ascend (true) or descend. `None` if neither, or if all are equal.
fn direction<'a, K: Ord + 'a>(
    seen: &'a [SampledBatch],
    key: impl Fn(&'a SampledBatch) -> &'a K,
) -> Option<bool> {
    let rises = seen.is_sorted_by_key(&key);
    let falls = seen.is_sorted_by(|a, b| key(a) >= key(b));
    (rises != falls).then_some(rises)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Timestamp;

    fn seen(keys: &[(i64, &str, &str)]) -> Vec<SampledBatch> {
        let batch = |&(second, id, name): &(i64, &str, &str)| SampledBatch {
            id: id.to_owned(),
            name: name.to_owned(),
            created: Timestamp::at(second),
            written: String::new(),
            others: Vec::new(),
        };
        keys.iter().map(batch).collect()
    }

    #[test]
    fn time_takes_precedence_over_other_orders() {
        let letters = ["a", "b", "c", "d", "e"];
        let mixed = ["c", "a", "e", "b", "d"];
        for (seconds, ids, names, expected) in [
            (
                [1, 2, 2, 3, 4],
                letters,
                letters,
                "by batch_creation_date, oldest first",
            ),
            (
                [4, 3, 2, 2, 1],
                letters,
                mixed,
                "by batch_creation_date, newest first",
            ),
            ([1, 3, 2, 4, 5], letters, mixed, "by batch_id, ascending"),
            ([1; 5], mixed, letters, "by batch_name, ascending"),
            (
                [1, 3, 2, 4, 5],
                mixed,
                mixed,
                "none: not by batch_creation_date, batch_id or batch_name",
            ),
        ] {
            let keys: Vec<_> = (0..5).map(|n| (seconds[n], ids[n], names[n])).collect();
            assert_eq!(order_of(&seen(&keys)).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn few_batches_have_no_order() {
        let few = seen(&[(1, "a", ""), (2, "b", ""), (3, "c", ""), (4, "d", "")]);
        assert!(order_of(&[]).is_err() && order_of(&few).is_err());
    }
}
