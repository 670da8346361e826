//! Batches that arrived together, and the room that they take up.

use std::collections::HashMap;
use std::sync::Arc;

use super::Batch;
use super::dedup::{Digest, Id};

/// Batches by their identifiers, and when each was created.
pub(crate) type FirstPageIds = HashMap<Id, Option<i64>>;

/// Batches that arrived together.
#[derive(Default)]
pub(crate) struct Page {
    pub(crate) batches: Vec<Batch>,
    /// What tells each of them from others.
    pub(crate) digests: Vec<Digest>,
    /// What they stand in.
    pub(crate) texts: Vec<Arc<String>>,
    /// The walk that it is of; `None` unless it came with a cursor or could have.
    pub(crate) walk: Option<WalkId>,
}

impl Page {
    pub(crate) fn push(&mut self, batch: Batch) {
        self.digests.push(Digest::of(&batch));
        self.batches.push(batch);
    }

    /// Returns when its batches were created, as far as that is known.
    pub(crate) fn span(&self) -> Option<PageSpan> {
        let second = |batch: &Batch| Some(batch.created()?.second);
        Some(PageSpan {
            first: second(self.batches.first()?)?,
            last: second(self.batches.last()?)?,
            batches: self.batches.len(),
        })
    }

    /// Returns the seconds in which its batches were created, as far as that is known.
    pub(crate) fn created(&self) -> impl Iterator<Item = i64> {
        let created = self.batches.iter().filter_map(Batch::created);
        created.map(|created| created.second)
    }

    /// Returns which batches are on it, and when each was created, as far as that is known.
    pub(crate) fn ids(&self) -> FirstPageIds {
        let seconds = self
            .batches
            .iter()
            .map(|batch| batch.created().map(|created| created.second));
        self.digests.iter().map(Digest::id).zip(seconds).collect()
    }

    /// Leaves the batches whose identifiers are to `stay`.
    pub(crate) fn retain(&mut self, mut stay: impl FnMut(&Id) -> bool) {
        let stays: Vec<bool> = self
            .digests
            .iter()
            .map(|digest| stay(&digest.id()))
            .collect();
        let (mut batches, mut digests) = (stays.iter(), stays.iter());
        self.batches.retain(|_| batches.next() == Some(&true));
        self.digests.retain(|_| digests.next() == Some(&true));
    }

    /// Returns how much memory it takes up.
    pub(crate) fn size(&self) -> usize {
        let texts: usize = self.texts.iter().map(|text| text.capacity()).sum();
        texts + self.batches.len() * size_of::<(Batch, Digest)>()
    }

    /// Empties the page; returns the room of what it stood in, where nobody else holds it.
    pub(crate) fn empty(&mut self) -> impl Iterator<Item = Vec<u8>> {
        self.batches.clear();
        self.digests.clear();
        self.walk = None;
        let texts = self.texts.drain(..);
        texts.filter_map(|text| Arc::into_inner(text).map(String::into_bytes))
    }
}

/// A page that was read, and may not be taken for long: so many batches, from one second to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageSpan {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) batches: usize,
}

/// The walk that a page is of: one pass over a range, or a window of it, from its first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalkId {
    /// Unique within a run.
    pub(crate) number: u64,
    /// It is one of many windows that lie side by side.
    pub(crate) is_window: bool,
}
