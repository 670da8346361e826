//! What all ranges share: the session with the service, what is known about it, and memory for pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::batch::Page;
use crate::batch::dedup::HashKeys;
use crate::client::Session;

/// Maximum number of blank pages to keep, and of batches for which each may have memory.
const MAX_BLANK_PAGES: usize = 16;
const MAX_BATCHES: usize = 1500;

pub(super) struct FetchSession {
    pub(super) client: Session,
    pub(super) lenient: bool,
    /// Empty pages, for reuse.
    blank_pages: Mutex<Vec<Page>>,
    /// The keys of the digests of all pages.
    keys: Arc<HashKeys>,
    /// Whether to send the dates together with a cursor (interface, section 4, rule 4: not shown).
    pub(super) dates_with_cursor: AtomicBool,
    /// Whether batches created outside the requested dates are expected: the service filters by another date.
    pub(super) outside_range: AtomicBool,
    /// Number of walks started.
    walks: AtomicU64,
    /// Whether a cursor was received twice in one walk, or the same batches for any dates: other windows do not help.
    pub(super) is_repeating: AtomicBool,
    /// The largest number of batches in a response of version 1.
    most_batches: AtomicUsize,
}

impl FetchSession {
    pub(super) fn new(client: Session, lenient: bool) -> Self {
        Self {
            client,
            lenient,
            blank_pages: Mutex::default(),
            keys: Arc::new(HashKeys::new(fastrand::u64(..))),
            dates_with_cursor: AtomicBool::new(true),
            outside_range: AtomicBool::new(false),
            walks: AtomicU64::new(0),
            is_repeating: AtomicBool::new(false),
            most_batches: AtomicUsize::new(0),
        }
    }

    /// Records the number of batches in a response of version 1. Returns whether it may be the limit of the service,
    /// because no response had more.
    pub(super) fn may_be_limit(&self, batches: usize) -> bool {
        self.most_batches.fetch_max(batches, Ordering::Relaxed) <= batches
    }

    /// Returns a new walk number.
    pub(super) fn next_walk(&self) -> u64 {
        self.walks.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns an empty page.
    pub(super) fn blank_page(&self) -> Page {
        let reused = self.blank_pages.lock().pop();
        reused.unwrap_or_else(|| Page::new(&self.keys))
    }

    /// Takes back the memory of a page.
    pub(super) fn recycle(&self, mut page: Page) {
        for buffer in page.empty() {
            self.client.service.buffers().recycle(buffer);
        }
        let mut blank_pages = self.blank_pages.lock();
        if blank_pages.len() < MAX_BLANK_PAGES && page.batches.capacity() <= MAX_BATCHES {
            blank_pages.push(page);
        }
    }
}
