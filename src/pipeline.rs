//! The loop from pages to where batches end up, and only the loop.

use crate::batch::Page;
use crate::batch::dedup::Arrival;
use crate::batch::filter::{Condition, Sorting};
use crate::batch::range::{Range, written};
use crate::batch::{Batch, CREATION_DATE, canonical_date};
use crate::error::Failure;
use crate::fetch::ReceivedPages;
use crate::terminal::Stats;

/// Where pages come from.
pub(crate) trait PageSource {
    /// Returns the next page; nothing after the last.
    async fn next(&mut self) -> Result<Option<Page>, Failure>;

    /// Takes a page back whose batches nobody needs any more.
    fn recycle(&mut self, page: Page);

    /// How many batches came twice because they were asked for twice: no fault of the service.
    fn refetched(&self) -> u64;
}

/// What is wanted of the batches that come.
pub(crate) struct Selection {
    /// The second at the end of the range, as dates begin that lie in it; nothing where it is wanted.
    pub(crate) past: Option<String>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) sorting: Option<Sorting>,
    pub(crate) limit: Option<u64>,
    /// Somebody reads along: hand each page on at once.
    pub(crate) live: bool,
}

/// Where batches end up.
pub(crate) trait Sink {
    fn take(&mut self, batch: &Batch) -> Result<(), Failure>;

    /// Hands on what is held back, where somebody waits for it.
    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// What came of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) written: u64,
    /// Came, but did not match.
    pub(crate) unwanted: u64,
    /// Came again, just the same.
    pub(crate) duplicates: u64,
    /// Came again, with other content.
    pub(crate) conflicts: u64,
    /// `limit` left batches out, or ended it before all had come.
    pub(crate) is_cut: bool,
}

/// Takes the batches of `pages` that `plan` wants to `sink`.
pub(crate) async fn run(
    pages: &mut impl PageSource,
    sink: &mut dyn Sink,
    plan: &Selection,
    stats: &Stats,
) -> Result<Counts, Failure> {
    let mut tally = Counts::default();
    let mut received = ReceivedPages::new();
    let mut held: Vec<Batch> = Vec::new();
    let limit = plan.limit.unwrap_or(u64::MAX);
    'pages: while plan.sorting.is_some() || tally.written < limit {
        let Some(page) = pages.next().await? else {
            break;
        };
        let arrivals = received.add(&page)?;
        for (batch, arrival) in page.batches.iter().zip(arrivals) {
            match arrival {
                Arrival::New => {}
                Arrival::Duplicate => {
                    tally.duplicates += 1;
                    continue;
                }
                Arrival::Conflict => {
                    tally.conflicts += 1;
                    continue;
                }
            }
            if !plan.wants(batch) {
                tally.unwanted += 1;
                continue;
            }
            if plan.sorting.is_some() {
                held.push(batch.detached());
                stats.batches.add(1);
                continue;
            }
            sink.take(batch)?;
            stats.batches.add(1);
            tally.written += 1;
            if tally.written == limit {
                break 'pages;
            }
        }
        pages.recycle(page);
        if plan.live {
            sink.flush()?;
        }
    }
    tally.is_cut = tally.written >= limit || held.len() as u64 > limit;
    tally.duplicates = tally.duplicates.saturating_sub(pages.refetched());
    if let Some(sorting) = plan.sorting {
        held.sort_by(|left, right| sorting.compare(left, right));
        for batch in held
            .iter()
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
        {
            sink.take(batch)?;
            tally.written += 1;
        }
    }
    Ok(tally)
}

impl Selection {
    /// Wants everything within `range`.
    pub(crate) fn new(range: &Range) -> Self {
        let past = range.end.filter(|_| range.excludes_end);
        Self {
            past: past.map(|past| written(past).trim_end_matches('Z').to_owned()),
            conditions: Vec::new(),
            sorting: None,
            limit: None,
            live: false,
        }
    }

    /// Tells whether `batch` is one of those that are asked for.
    pub(crate) fn wants(&self, batch: &Batch) -> bool {
        !self.is_past_the_end(batch)
            && self
                .conditions
                .iter()
                .all(|condition| condition.holds(batch))
    }

    /// Tells whether `batch` was created in the second that belongs to the next period.
    fn is_past_the_end(&self, batch: &Batch) -> bool {
        let Some(past) = &self.past else {
            return false;
        };
        let created = batch.typed(CREATION_DATE);
        created.is_some_and(|created| canonical_date(&created).starts_with(past.as_str()))
    }
}
