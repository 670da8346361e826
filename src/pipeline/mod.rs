//! Runs batches from a page source through deduplication, selection and sorting into a sink.

mod sort;

use std::cmp::Ordering;
use std::collections::HashSet;

use sort::Sorter;

use crate::batch::Page;
use crate::batch::dedup::Arrival;
use crate::batch::filter::{Condition, Lookalikes, Sorting, Unmatched};
use crate::batch::range::{Range, written};
use crate::batch::{Batch, CREATION_DATE, canonical_date};
use crate::error::Failure;
use crate::fetch::ReceivedPages;
use crate::terminal::Stats;

/// A source of pages: the service or an archive.
pub(crate) trait PageSource {
    /// Returns the next page, or `None` after the last one.
    async fn next(&mut self) -> Result<Option<Page>, Failure>;

    /// Takes back a page that is no longer needed, so that its memory is reused.
    fn recycle(&mut self, page: Page);

    /// Number of batches received twice because they were requested twice. They do not count as duplicates.
    fn refetched(&self) -> u64;
}

/// Which batches to pass on, and in which order.
pub(crate) struct Selection {
    pub(crate) dates: Dates,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) sorting: Option<Sorting>,
    pub(crate) limit: Option<u64>,
    /// Whether to flush the sink after each page, because a reader is waiting.
    pub(crate) live: bool,
}

/// The first and the last second of a range, as in creation dates.
#[derive(Default)]
pub(crate) struct Dates {
    start: Option<String>,
    end: Option<String>,
    /// Whether batches created in the last second are left out.
    excludes_end: bool,
}

/// Where the creation date of a batch is in a range.
#[derive(PartialEq, Eq)]
enum Place {
    Within,
    /// In the last second, which is left out.
    LeftOut,
    Outside,
}

/// Receives the selected batches.
pub(crate) trait Sink {
    fn take(&mut self, batch: &Batch) -> Result<(), Failure>;

    /// Writes out buffered data for a waiting reader.
    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Number of batches by result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) written: u64,
    /// What came instead, if no batch matches the conditions.
    pub(crate) unmatched: Option<Unmatched>,
    /// Values of the conditions that no batch has, but in another spelling.
    pub(crate) lookalikes: Lookalikes,
    /// Received again with the same content.
    pub(crate) duplicates: u64,
    /// Received again with other content.
    pub(crate) conflicts: u64,
    /// Created before or after the requested range.
    pub(crate) outside: u64,
    /// Whether `limit` was reached, so that batches may be missing.
    pub(crate) is_cut: bool,
}

/// Passes the batches of `pages` that match `selection` to `sink`.
pub(crate) async fn run(
    pages: &mut impl PageSource,
    sink: &mut dyn Sink,
    selection: &Selection,
    stats: &Stats,
) -> Result<Counts, Failure> {
    let mut counts = Counts {
        unmatched: Unmatched::new(&selection.conditions),
        lookalikes: Lookalikes::new(&selection.conditions),
        ..Counts::default()
    };
    let mut received = ReceivedPages::new();
    // What was dropped because another version came first. It may arrive again where two windows meet.
    let mut dropped = HashSet::new();
    let mut sorter = selection.sorting.clone().map(Sorter::new);
    let limit = selection.limit.unwrap_or(u64::MAX);
    'pages: while selection.sorting.is_some() || counts.written < limit {
        let Some(page) = pages.next().await? else {
            break;
        };
        let arrivals = received.add(&page)?;
        let digests = page.digests.iter().zip(arrivals);
        for (batch, (digest, arrival)) in page.batches.iter().zip(digests) {
            match arrival {
                Arrival::New => {}
                Arrival::Duplicate => {
                    counts.duplicates += 1;
                    continue;
                }
                Arrival::Conflict => {
                    counts.conflicts += u64::from(dropped.insert(*digest));
                    continue;
                }
            }
            match selection.dates.place(batch) {
                Place::Within => {}
                Place::LeftOut => continue,
                Place::Outside => counts.outside += 1,
            }
            counts.lookalikes.add(batch);
            if !selection.matches(batch) {
                if let Some(unmatched) = &mut counts.unmatched {
                    unmatched.add(batch);
                }
                continue;
            }
            counts.unmatched = None;
            if let Some(sorter) = &mut sorter {
                sorter.push(batch)?;
                stats.batches.add(1);
                continue;
            }
            sink.take(batch)?;
            stats.batches.add(1);
            counts.written += 1;
            if counts.written == limit {
                break 'pages;
            }
        }
        pages.recycle(page);
        if selection.live {
            sink.flush()?;
        }
    }
    let to_sort = sorter.as_ref().map_or(0, Sorter::len);
    counts.is_cut = counts.written >= limit || to_sort > limit;
    counts.duplicates = counts.duplicates.saturating_sub(pages.refetched());
    if let Some(sorter) = sorter {
        // All have arrived, and merging needs memory.
        drop(received);
        counts.written = sorter.finish(limit, |batch| sink.take(batch))?;
    }
    Ok(counts)
}

impl Selection {
    /// Selects all batches within `range`.
    pub(crate) fn new(range: &Range) -> Self {
        let second = |second| written(second).trim_end_matches('Z').to_owned();
        Self {
            dates: Dates {
                start: range.start.map(second),
                end: range.end.map(second),
                excludes_end: range.excludes_end,
            },
            conditions: Vec::new(),
            sorting: None,
            limit: None,
            live: false,
        }
    }

    /// Returns whether `batch` is selected.
    pub(crate) fn wants(&self, batch: &Batch) -> bool {
        self.dates.place(batch) != Place::LeftOut && self.matches(batch)
    }

    /// Returns whether `batch` matches all conditions.
    fn matches(&self, batch: &Batch) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.all(|condition| condition.holds(batch))
    }
}

impl Dates {
    /// Returns where `batch` is, if it has a creation date.
    #[inline]
    fn place(&self, batch: &Batch) -> Place {
        if self.start.is_none() && self.end.is_none() {
            return Place::Within;
        }
        let Some(created) = batch.typed(CREATION_DATE) else {
            return Place::Within;
        };
        let created = canonical_date(&created);
        let compared = |bound: &Option<String>, otherwise| {
            let second =
                |bound: &String| created.get(..bound.len()).map(|second| second.cmp(bound));
            bound.as_ref().and_then(second).unwrap_or(otherwise)
        };
        match (
            compared(&self.start, Ordering::Greater),
            compared(&self.end, Ordering::Less),
        ) {
            (Ordering::Less, _) | (_, Ordering::Greater) => Place::Outside,
            (_, Ordering::Equal) if self.excludes_end => Place::LeftOut,
            _ => Place::Within,
        }
    }
}
