//! A window on its way, as those who fetch it see it: pages are handed on, and its end is told.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::FetchedWindow;
use super::decode::{DataIssues, DecodedPage};
use super::planner::WindowPlanner;
use super::v2::WalkMode;
use crate::batch::Page;
use crate::batch::page::FirstPageIds;
use crate::batch::page::PageSpan;
use crate::batch::range::Range;
use crate::client::ServiceError;
use crate::error::Failure;

/// How the fetching of a window ended.
pub(super) enum WindowOutcome {
    /// All of it has come.
    Done,
    /// It holds too much: these are to be fetched instead, in this order.
    Cut(Vec<(Range, WalkMode)>),
    /// The first page of a range has come, and many can share in the others. Its batches come again.
    Opened(WindowPlanner, FirstPageIds),
    /// The first pages of a range have come, in no order of time, and somebody wants to know early which
    /// parts are complete: these are to be fetched instead. What the first page had comes again.
    Split(Vec<Range>, FirstPageIds),
    /// It holds what lies outside of it: windows of dates are not what they seem.
    Strange,
    /// Its batches come in another order than that of time.
    Disordered,
    /// The version that was asked is not there.
    Missing(ServiceError),
    Failed(Failure),
}

/// What is told of a window when it ends.
pub(super) struct WindowReport {
    pub(super) number: u64,
    pub(super) outcome: WindowOutcome,
    pub(super) sum: WindowTotals,
}

/// What came of a window so far.
#[derive(Clone)]
pub(super) struct WindowTotals {
    pub(super) fetched: FetchedWindow,
    pub(super) findings: DataIssues,
}

impl WindowTotals {
    pub(super) fn new(window: Range) -> Self {
        Self {
            fetched: FetchedWindow::new(window),
            findings: DataIssues::default(),
        }
    }
}

/// What is told while pages are on their way.
pub(super) enum WindowUpdate {
    Sighting(PageSpan),
    End(Box<WindowReport>),
}

/// A page that takes up room until it is taken.
pub(super) struct QueuedPage {
    pub(super) page: Page,
    /// What came up to here.
    pub(super) sum: WindowTotals,
    _room: Option<OwnedSemaphorePermit>,
}

/// The side of those who fetch.
pub(super) struct WindowSender {
    pub(super) number: u64,
    pub(super) pages: mpsc::Sender<QueuedPage>,
    pub(super) news: mpsc::UnboundedSender<WindowUpdate>,
    pub(super) room: Arc<Semaphore>,
    /// The number of the first lane.
    pub(super) first: watch::Receiver<u64>,
    /// Room that only the first lane may use, in pages.
    pub(super) front: Arc<Semaphore>,
    /// How often a page was asked for from outside.
    pub(super) wanted: Arc<Semaphore>,
    pub(super) sum: WindowTotals,
}

impl WindowSender {
    /// Pages that were handed on so far.
    pub(super) fn pages(&self) -> u64 {
        self.sum.fetched.pages
    }

    /// Hands on what was read; returns false where nobody wants it any more.
    pub(super) async fn deliver(&mut self, got: DecodedPage) -> bool {
        self.sum.fetched.pages += 1;
        self.sum.fetched.batches += got.page.batches.len() as u64;
        self.sum.findings.add(got.findings);
        if let Some(sighting) = got.page.span() {
            // Where nobody listens, the run is over already.
            let _ = self.news.send(WindowUpdate::Sighting(sighting));
        }
        let size = got.page.size();
        // One that is larger than all of the room waits until it is first.
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let number = self.number;
        let room = tokio::select! {
            biased;
            room = async {
                // Where nobody says who is first any more, the run is over.
                let _ = self.first.wait_for(|first| *first == number).await;
                Arc::clone(&self.front).acquire_owned().await
            } => room.ok(),
            room = Arc::clone(&self.room).acquire_many_owned(size) => room.ok(),
        };
        let waiting = QueuedPage {
            page: got.page,
            sum: self.sum.clone(),
            _room: room,
        };
        self.pages.send(waiting).await.is_ok()
    }

    /// Waits until one more page is wanted.
    pub(super) async fn wanted(&self) {
        if let Ok(wanted) = self.wanted.acquire().await {
            wanted.forget();
        }
    }

    /// Forgets what is known of the batches so far: they come again.
    pub(super) fn forget(&mut self) {
        self.sum = WindowTotals::new(self.sum.fetched.window);
    }

    /// Tells how it ended.
    pub(super) fn end(self, outcome: WindowOutcome) {
        let report = WindowReport {
            number: self.number,
            outcome,
            sum: self.sum,
        };
        // Where nobody listens, the run is over already. Pages end only after this was said.
        let _ = self.news.send(WindowUpdate::End(Box::new(report)));
    }
}
