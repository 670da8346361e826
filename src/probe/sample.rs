//! Batches that were seen, as far as questions are about them.

use std::collections::{BTreeSet, HashSet};

use super::ask::BatchList;
use super::order::{self, ObservedOrder};
use crate::batch::{Batch, CREATION_DATE, Timestamp, unquote};

/// A batch that was seen.
#[derive(Clone, Debug)]
pub(super) struct SampledBatch {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) created: Timestamp,
    /// As the service wrote it.
    pub(super) written: String,
    /// Fields that the interface does not know, and their values where those are dates.
    pub(super) others: Vec<(String, Option<Timestamp>)>,
}

/// The column next to the identifier.
const NAME: usize = 1;

impl SampledBatch {
    /// Takes what is of use; nothing where the date is none.
    pub(super) fn of(batch: &Batch) -> Option<Self> {
        let others = batch.unknown().map(|(name, value)| {
            let date = Timestamp::parse(&unquote(value));
            (unquote(name).into_owned(), date)
        });
        Some(Self {
            id: batch.id().into_owned(),
            name: batch.plain(NAME).unwrap_or_default().into_owned(),
            created: batch.created()?,
            written: batch.typed(CREATION_DATE)?.into_owned(),
            others: others.collect(),
        })
    }

    /// Tells whether it was created at the very start of a second.
    pub(super) fn is_whole(&self) -> bool {
        self.created == Timestamp::at(self.created.second)
    }

    pub(super) fn second(&self) -> i64 {
        self.created.second
    }
}

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
        let in_order = order::of(&self.batches).is_ok_and(ObservedOrder::is_of_time);
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
