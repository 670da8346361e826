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
        let in_order = order_of(&self.batches).is_ok_and(ObservedOrder::is_of_time);
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObservedOrder {
    OldestFirst,
    NewestFirst,
    By { field: &'static str, up: bool },
    None,
}

impl ObservedOrder {
    pub(super) fn is_of_time(self) -> bool {
        matches!(self, Self::OldestFirst | Self::NewestFirst)
    }

    pub(super) fn words(self) -> String {
        match self {
            Self::OldestFirst => "by batch_creation_date, oldest first".to_owned(),
            Self::NewestFirst => "by batch_creation_date, newest first".to_owned(),
            Self::By { field, up: true } => format!("by {field}, ascending"),
            Self::By { field, up: false } => format!("by {field}, descending"),
            Self::None => "none: not by batch_creation_date, batch_id or batch_name".to_owned(),
        }
    }
}

/// Finds the order of `seen`. The error is the reason why it is unknown.
pub(super) fn order_of(seen: &[SampledBatch]) -> Result<ObservedOrder, String> {
    if seen.len() < MIN_BATCHES {
        let count = match seen.len() {
            0 => "there are no batches".to_owned(),
            count => format!("too few: {}", batches(count)),
        };
        return Err(count);
    }
    let by_id = direction(seen, |batch| &batch.id);
    let by_name = direction(seen, |batch| &batch.name);
    let order = match direction(seen, |batch| &batch.created) {
        Some(true) => ObservedOrder::OldestFirst,
        Some(false) => ObservedOrder::NewestFirst,
        None => match (by_id, by_name) {
            (Some(up), _) => ObservedOrder::By {
                field: "batch_id",
                up,
            },
            (None, Some(up)) => ObservedOrder::By {
                field: "batch_name",
                up,
            },
            (None, None) => ObservedOrder::None,
        },
    };
    Ok(order)
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

    fn order(seconds: [i64; 5], ids: [&str; 5], names: [&str; 5]) -> ObservedOrder {
        let keys: Vec<_> = (0..5).map(|n| (seconds[n], ids[n], names[n])).collect();
        order_of(&seen(&keys)).expect("enough of them")
    }

    const MIXED: [&str; 5] = ["c", "a", "e", "b", "d"];

    #[test]
    fn time_takes_precedence_over_other_orders() {
        let letters = ["a", "b", "c", "d", "e"];
        assert_eq!(
            order([1, 2, 2, 3, 4], letters, letters),
            ObservedOrder::OldestFirst
        );
        assert_eq!(
            order([4, 3, 2, 2, 1], letters, MIXED),
            ObservedOrder::NewestFirst
        );
        let by = |field, up| ObservedOrder::By { field, up };
        assert_eq!(order([1, 3, 2, 4, 5], letters, MIXED), by("batch_id", true));
        assert_eq!(order([1; 5], MIXED, letters), by("batch_name", true));
        assert_eq!(order([1, 3, 2, 4, 5], MIXED, MIXED), ObservedOrder::None);
    }

    #[test]
    fn few_batches_have_no_order() {
        assert!(order_of(&[]).is_err());
        assert!(
            order_of(&seen(&[
                (1, "a", ""),
                (2, "b", ""),
                (3, "c", ""),
                (4, "d", "")
            ]))
            .is_err()
        );
    }
}
