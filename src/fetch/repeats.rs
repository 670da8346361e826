//! Detects duplicates among received batches, and services that repeat the same batches forever.

use std::hash::{BuildHasher as _, RandomState};

use parking_lot::Mutex;

use crate::batch::dedup::{Arrival, DedupSet};
use crate::batch::page::WalkId;
use crate::batch::{Batch, Page};
use crate::client::{Fault, ServiceError};
use crate::error::Failure;

/// After this many consecutive pages without a new batch, a walk would never end.
const MAX_REPEATED: u32 = 10;
/// Batches on the bound between two seconds are in both windows, but never in three.
const SAME_SECONDS: u32 = 3;

/// The batches received so far.
pub(crate) struct ReceivedPages {
    known: DedupSet,
    walk: Option<WalkId>,
    /// Consecutive pages with only batches that the same walk has received before.
    repeated: u32,
    /// Whether an earlier part of the current page has a new batch, and whether it has any batch.
    has_new: bool,
    has_any: bool,
}

impl ReceivedPages {
    pub(crate) fn new() -> Self {
        Self {
            known: DedupSet::new(),
            walk: None,
            repeated: 0,
            has_new: false,
            has_any: false,
        }
    }

    /// Adds the batches of `page`; returns for each whether it is new. Fails if the walk would never end.
    pub(crate) fn add(&mut self, page: &Page) -> Result<Vec<Arrival>, Failure> {
        if page.walk != self.walk {
            self.begin(page.walk);
        }
        let noted = self.known.add(&page.digests);
        self.has_new |= noted.is_progress;
        self.has_any |= !page.batches.is_empty();
        if !page.is_continued {
            let has_new = std::mem::take(&mut self.has_new);
            let has_any = std::mem::take(&mut self.has_any);
            if has_new {
                self.repeated = 0;
            } else if page.walk.is_some() && has_any {
                // An empty page is legal. It neither counts nor resets the counter.
                self.repeated += 1;
            }
        }
        if self.is_looping() {
            let why = format!(
                "the last {MAX_REPEATED} pages contained no new batches: the service ignores next_token, so its pages would never end"
            );
            return Err(broken_pages(why));
        }
        Ok(noted.arrivals)
    }

    /// Returns whether the walk would never end.
    pub(crate) fn is_looping(&self) -> bool {
        self.repeated >= MAX_REPEATED
    }

    fn begin(&mut self, walk: Option<WalkId>) {
        let is_window = |walk: Option<WalkId>| walk.is_some_and(|walk| walk.is_window);
        if is_window(walk) && is_window(self.walk) {
            self.known.begin_window();
        } else {
            self.known.begin_walk();
        }
        self.walk = walk;
        self.repeated = 0;
        (self.has_new, self.has_any) = (false, false);
    }
}

/// Returns the failure for a service whose pages break the interface, such as pages that would never end.
pub(super) fn broken_pages(why: impl Into<String>) -> Failure {
    ServiceError::new("GET /v2/batches", Fault::Broken(why.into())).into()
}

/// Detects a version 1 service that ignores dates. Otherwise, every single second would be requested.
pub(super) struct RepeatGuard {
    hasher: RandomState,
    /// A digest of the batches of the last full second, and the number of consecutive seconds with the same
    /// digest.
    last: Mutex<(u64, u32)>,
}

impl RepeatGuard {
    pub(super) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            last: Mutex::new((0, 0)),
        }
    }

    pub(super) fn digest(&self, digest: u64, batches: &[Batch]) -> u64 {
        let ids = batches.iter().map(|batch| self.hasher.hash_one(batch.id()));
        ids.fold(digest, u64::wrapping_add)
    }

    pub(super) fn check(&self, digest: u64) -> Result<(), ServiceError> {
        let mut last = self.last.lock();
        *last = match *last {
            (same, count) if same == digest => (same, count + 1),
            _ => (digest, 1),
        };
        if last.1 < SAME_SECONDS {
            return Ok(());
        }
        let why = "version 1 returns the same batches for different dates";
        let fault = Fault::Broken(why.to_owned());
        Err(ServiceError::new("GET /v1/batches", fault))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    /// Returns a page of a walk with these batches.
    fn page(number: u64, is_window: bool, ids: impl IntoIterator<Item = u32>) -> Page {
        let mut page = Page {
            walk: Some(WalkId { number, is_window }),
            ..Page::for_tests()
        };
        for id in ids {
            page.push(crate::batch::minimal(&format!("b{id}"), ""));
        }
        page
    }

    /// Adds pages of one walk; returns how many were accepted before the failure.
    fn taken(received: &mut ReceivedPages, pages: impl IntoIterator<Item = Page>) -> usize {
        let failed = |page: Page| received.add(&page).err();
        match pages
            .into_iter()
            .map(failed)
            .enumerate()
            .find(|(_, failed)| failed.is_some())
        {
            Some((place, failure)) => {
                assert_eq!(failure.map(|failure| failure.kind), Some(Kind::Protocol));
                place
            }
            None => usize::MAX,
        }
    }

    #[test]
    fn ten_pages_with_nothing_new_are_an_error() {
        let again = |_| page(1, false, 0..3);
        assert_eq!(taken(&mut ReceivedPages::new(), (0..50).map(again)), 10);
        // In a circle: the walk returns to batches received long before.
        let circle = |number: u32| page(1, false, number % 40 * 3..number % 40 * 3 + 3);
        assert_eq!(
            taken(&mut ReceivedPages::new(), (0..100).map(circle)),
            40 + 9
        );
    }

    #[test]
    fn the_parts_of_a_page_count_as_one() {
        let part = |_| Page {
            is_continued: true,
            ..page(1, false, 0..3)
        };
        let mut received = ReceivedPages::new();
        assert_eq!(taken(&mut received, (0..50).map(part)), usize::MAX);
        // The last parts of nine pages that repeat the first.
        let last = |_| page(1, false, 0..3);
        assert_eq!(taken(&mut received, (0..50).map(last)), 1 + 9);
    }

    #[test]
    fn one_new_batch_ends_the_row_and_empty_pages_neither_count_nor_end_it() {
        let mut received = ReceivedPages::new();
        let nine = (0..200).map(|number| match number % 10 {
            9 => page(1, false, [0, number]),
            _ => page(1, false, 0..3),
        });
        assert_eq!(taken(&mut received, nine), usize::MAX);
        let empty = (0..200).map(|_| page(1, false, []));
        assert_eq!(taken(&mut received, empty), usize::MAX);
        let between = (0..40).map(|number| page(1, false, 0..number % 2));
        assert_eq!(taken(&mut ReceivedPages::new(), between), 2 * 10 + 1);
    }

    #[test]
    fn a_walk_that_begins_again_may_bring_what_was_received_before() {
        let mut received = ReceivedPages::new();
        for (walk, is_window) in (0..200).zip([false, true, true].into_iter().cycle()) {
            let pages = (0..15).map(|id| page(walk, is_window, [id]));
            assert_eq!(taken(&mut received, pages), usize::MAX, "{walk}");
        }
    }

    #[test]
    fn windows_that_follow_each_other_may_share_many_pages() {
        let mut received = ReceivedPages::new();
        for walk in 0..200 {
            // All batches except the last of each window were in the previous one.
            let pages = (walk..walk + 20).map(|id| page(u64::from(walk), true, [id]));
            assert_eq!(taken(&mut received, pages), usize::MAX, "{walk}");
        }
    }

    #[test]
    fn pages_of_version_1_are_not_checked() {
        let mut received = ReceivedPages::new();
        for _ in 0..30 {
            let flat = Page {
                walk: None,
                ..page(1, false, 0..3)
            };
            assert!(received.add(&flat).is_ok());
        }
    }
}
