//! A page: batches that arrived together, and the memory that they share.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::Batch;
use super::dedup::{Arrival, Digest, HashKeys, Id};
use super::json::index::{GeneralIndex, Index};
use super::json::pieces::Pieces;

/// Maximum memory of an index that is kept.
const MAX_SPARE: usize = 1024;

/// Ids of batches, with their creation date.
pub(crate) type FirstPageIds = HashMap<Id, Option<i64>>;

/// Batches that arrived together.
pub(crate) struct Page {
    pub(crate) batches: Vec<Batch>,
    /// Identifies each batch and its content.
    pub(crate) digests: Vec<Digest>,
    /// The texts that contain the batches.
    pub(crate) texts: Vec<Arc<String>>,
    /// The walk that the page belongs to; `None` for version 1.
    pub(crate) walk: Option<WalkId>,
    /// When the service answered.
    pub(crate) answered: Option<Instant>,
    /// Whether another part of the same page follows.
    pub(crate) is_continued: bool,
    /// What its digests are made with.
    pub(crate) keys: Arc<HashKeys>,
    /// Memory for digests.
    pub(crate) pieces: Pieces,
    /// Memory for indexes.
    pub(crate) spare: Vec<GeneralIndex>,
}

impl Page {
    /// Returns a blank page, whose digests are made with `keys`.
    pub(crate) fn new(keys: &Arc<HashKeys>) -> Self {
        Self {
            batches: Vec::new(),
            digests: Vec::new(),
            texts: Vec::new(),
            walk: None,
            answered: None,
            is_continued: false,
            keys: Arc::clone(keys),
            pieces: Pieces::default(),
            spare: Vec::new(),
        }
    }

    /// Returns a blank page. The digests of all pages for tests can be compared.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self::new(&Arc::new(HashKeys::new(1)))
    }

    pub(crate) fn push(&mut self, batch: Batch) {
        let digest = Digest::of(&batch, &self.keys, &mut self.pieces);
        self.digests.push(digest);
        self.batches.push(batch);
    }

    /// Keeps the text that contains `batch`, so that its memory is counted and reused.
    pub(crate) fn keep_text(&mut self, batch: &Batch) {
        let text = &batch.page;
        // Batches with and without whitespace alternate between two texts.
        let mut latest = self.texts.iter().rev().take(2);
        if !latest.any(|latest| Arc::ptr_eq(latest, text)) {
            self.texts.push(Arc::clone(text));
        }
    }

    /// Returns the creation dates of the first and the last batch, if known.
    pub(crate) fn span(&self) -> Option<PageSpan> {
        let second = |batch: &Batch| Some(batch.created()?.second);
        Some(PageSpan {
            first: second(self.batches.first()?)?,
            last: second(self.batches.last()?)?,
            batches: self.batches.len(),
        })
    }

    /// Returns the seconds in which the batches were created, where known.
    pub(crate) fn created(&self) -> impl Iterator<Item = i64> {
        let created = self.batches.iter().filter_map(Batch::created);
        created.map(|created| created.second)
    }

    /// Returns the ids of the batches, with their creation dates where known.
    pub(crate) fn ids(&self) -> FirstPageIds {
        let seconds = self
            .batches
            .iter()
            .map(|batch| batch.created().map(|created| created.second));
        self.digests.iter().map(Digest::id).zip(seconds).collect()
    }

    /// Removes the batches that were received before with the same content.
    pub(crate) fn remove_duplicates(&mut self, arrivals: &[Arrival]) {
        let is_kept = || {
            arrivals
                .iter()
                .map(|arrival| *arrival != Arrival::Duplicate)
        };
        let (mut batches, mut digests) = (is_kept(), is_kept());
        self.batches.retain(|_| batches.next() == Some(true));
        self.digests.retain(|_| digests.next() == Some(true));
    }

    /// Returns the memory used by the page.
    pub(crate) fn size(&self) -> usize {
        let texts: usize = self.texts.iter().map(|text| text.capacity()).sum();
        let batches: usize = self.batches.iter().map(Batch::own_size).sum();
        texts + batches + self.batches.len() * size_of::<(Batch, Digest)>()
    }

    /// Clears the page; returns the buffers of its texts that are not shared with other owners.
    pub(crate) fn empty(&mut self) -> impl Iterator<Item = String> {
        let batches = self.batches.drain(..);
        let general = batches.filter_map(|batch| match batch.index {
            Index::Other(index) if index.size() <= MAX_SPARE => Some(index),
            _ => None,
        });
        self.spare.extend(general);
        self.digests.clear();
        self.walk = None;
        self.answered = None;
        self.is_continued = false;
        let texts = self.texts.drain(..);
        texts.filter_map(Arc::into_inner)
    }
}

/// The creation dates of a page that was read, and its number of batches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageSpan {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) batches: usize,
}

/// The walk that a page belongs to: one pass over a range or a window, from its first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalkId {
    /// Unique within a run.
    pub(crate) number: u64,
    /// Whether it is one of several adjacent windows.
    pub(crate) is_window: bool,
}
