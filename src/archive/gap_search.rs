//! The search for the windows that break the interface, with a bounded number of requests.

use super::coverage::Coverage;
use crate::fetch::FetchedWindow;
use crate::terminal::Stats;

/// A window that breaks the interface is split until it is at most this long, in seconds.
const SMALLEST_WINDOW: i64 = 3600;
/// The number of such windows after which they may be twice as long, so that the number of requests is bounded.
const GAPS_PER_LENGTH: usize = 20;
/// The number of such windows that are named.
const NAMED_GAPS: usize = 5;
/// The number of requests without a complete window that contains batches after which a run fails if it has found none
/// before: the service is broken, not a batch. More are allowed if the window has many pages.
const MAX_FRUITLESS_REQUESTS: u64 = 64;
/// If it has found some, windows may be twice as long after each so many further requests.
const REQUESTS_PER_LENGTH: u64 = 8;
/// How many of its halves may take as many requests as the window itself: decades are halved to the days with batches.
const MAX_HALVES: u64 = 8;

/// The search for the window that breaks the interface.
pub(super) struct GapSearch<'a> {
    stats: &'a Stats,
    /// A warning for each window that remains a gap.
    pub(super) gaps: Vec<String>,
    /// Whether a complete window contained batches.
    has_batches: bool,
    /// The number of requests up to the last complete window.
    requests: u64,
    /// How many requests the first failure since then took. Each half that contains it may take as many.
    first: Option<u64>,
    /// The gaps and the coverage then.
    pub(super) last_good: (Vec<String>, Coverage),
    /// Whether a request without dates broke the interface.
    pub(super) has_failed_without_dates: bool,
}

impl<'a> GapSearch<'a> {
    pub(super) fn new(stats: &'a Stats, coverage: &Coverage) -> Self {
        Self {
            stats,
            gaps: Vec::new(),
            has_batches: false,
            requests: stats.requests.get(),
            first: None,
            last_good: (Vec::new(), coverage.clone()),
            has_failed_without_dates: false,
        }
    }

    /// Takes complete windows into account.
    pub(super) fn add_complete(&mut self, windows: &[FetchedWindow], coverage: &Coverage) {
        if windows.iter().any(|window| window.batches > 0) {
            self.has_batches = true;
            self.requests = self.stats.requests.get();
            self.first = None;
            self.last_good = (self.gaps.clone(), coverage.clone());
        }
    }

    /// Takes a window into account that breaks the interface.
    pub(super) fn fail(&mut self) {
        self.first.get_or_insert(self.fruitless_requests());
    }

    fn fruitless_requests(&self) -> u64 {
        self.stats.requests.get() - self.requests
    }

    /// Returns by how much there are more such requests than a few batches can explain.
    fn excess(&self) -> u64 {
        let allowed = MAX_FRUITLESS_REQUESTS + MAX_HALVES * self.first.unwrap_or_default();
        self.fruitless_requests().saturating_sub(allowed)
    }

    /// Returns whether nothing good has come for long, only gaps.
    pub(super) fn has_only_gaps(&self) -> bool {
        self.excess() > 0 && self.gaps.len() > self.last_good.0.len()
    }

    /// Returns whether searching further is useless.
    pub(super) fn is_hopeless(&self) -> bool {
        !self.has_batches && self.excess() > 0
    }

    /// Returns the length below which a window that breaks the interface is not split.
    pub(super) fn smallest_window(&self) -> i64 {
        let by_requests = self.excess().div_ceil(REQUESTS_PER_LENGTH);
        let by_gaps = (self.gaps.len() / GAPS_PER_LENGTH) as u64;
        SMALLEST_WINDOW << (by_requests + by_gaps).min(32)
    }

    /// Names the first gaps, and counts the others.
    pub(super) fn print_gaps(&self) {
        for gap in self.gaps.iter().take(NAMED_GAPS) {
            log::warn!("{gap}");
        }
        if let further @ 1.. = self.gaps.len().saturating_sub(NAMED_GAPS) {
            log::warn!(
                "{further} more parts of the range remain gaps; `trayscan sync --status` lists all gaps"
            );
        }
    }
}
