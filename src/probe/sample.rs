//! A sample of the service's batches, and the order in which they arrived.

use std::collections::{BTreeSet, HashSet};

use super::listing::{BatchList, SampledBatch, batches};

/// Batches in the order in which they came, each once.
#[derive(Default)]
pub(super) struct BatchSample {
    pub(super) batches: Vec<SampledBatch>,
    ids: HashSet<String>,
    /// There are no others.
    pub(super) is_all: bool,
}

impl BatchSample {
    /// Takes the batches of one answer.
    pub(super) fn of(listing: &BatchList) -> Self {
        let mut sample = Self::default();
        sample.add(&listing.batches);
        sample
    }

    /// Adds the batches of one answer; returns how many were new.
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

    /// Returns the first and the last second in which one of them was created.
    pub(super) fn span(&self) -> Option<(i64, i64)> {
        let seconds = || self.batches.iter().map(SampledBatch::second);
        Some((seconds().min()?, seconds().max()?))
    }

    /// Returns the one among those that are `wanted` that has the fewest others near: a crowd could
    /// push it onto a further page.
    pub(super) fn lonely(&self, wanted: impl Fn(&SampledBatch) -> bool) -> Option<&SampledBatch> {
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
            .filter(|batch| wanted(batch))
            .min_by_key(near)
    }

    /// Returns a range around a few of them that lie close together.
    pub(super) fn stretch(&self) -> Option<(i64, i64)> {
        /// Where all of a stretch was seen, so many are few.
        const DENSE: usize = 100;
        /// Where only some were seen, each stands for many.
        const SPARSE: usize = 10;
        let in_order = order_of(&self.batches).is_ok_and(ObservedOrder::is_of_time);
        let most = if self.is_all || in_order {
            DENSE
        } else {
            SPARSE
        };
        let mut seconds: Vec<i64> = self.batches.iter().map(SampledBatch::second).collect();
        seconds.sort_unstable();
        let stretches = seconds.windows(most.min(seconds.len()).max(1));
        let (first, last) = stretches
            .map(|stretch| (stretch[0], stretch[stretch.len() - 1]))
            .min_by_key(|(first, last)| last - first)?;
        Some((first, last + 1))
    }

    /// Names the fields that the interface does not know.
    pub(super) fn other_fields(&self) -> BTreeSet<&str> {
        let others = self.batches.iter().flat_map(|batch| &batch.others);
        others.map(|(name, _)| name.as_str()).collect()
    }
}

/// Fewer than these are in some order by chance.
const FEW: usize = 5;

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

/// Finds the order of `seen`; an error says why it cannot be told.
pub(super) fn order_of(seen: &[SampledBatch]) -> Result<ObservedOrder, String> {
    if seen.len() < FEW {
        let count = match seen.len() {
            0 => "there are no batches".to_owned(),
            count => format!("{} are too few", batches(count)),
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

/// Tells whether the keys rise (true) or fall; nothing where they do neither, or are all the same.
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
    fn time_comes_before_other_orders() {
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
    fn a_few_batches_are_in_no_order_worth_telling() {
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
