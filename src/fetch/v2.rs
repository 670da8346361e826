//! Version 2: a walk through the pages of a window, from cursor to cursor.
//!
//! The next page is asked for as soon as its cursor is known, while this one is still being read.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;
use tokio::task::{self, JoinHandle};

use super::decode::{DecodedPage, ResponseInfo};
use super::planner::WindowPlanner;
use super::repeats::looping;
use super::sender::{WindowOutcome, WindowSender};
use super::session::Session;
use super::v1_sample::WindowHint;
use super::v2_page::{EXPIRED, PageResult, ask_page};
use super::window;
use crate::batch::Page;
use crate::batch::dedup::{Digest, Id};
use crate::batch::page::FirstPageIds;
use crate::batch::page::WalkId;
use crate::batch::range::Range;
use crate::batch::{Batch, Timestamp};
use crate::client::ServiceError;
use crate::client::retry::Tries;
use crate::error::Failure;
use crate::secret::Secret;

/// How often a window is walked anew without anything new in it.
const RESTARTS: u32 = 3;
/// So many pages without an order are many.
const MANY: u64 = 8;
/// How far to walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalkMode {
    /// To the end; no page is asked for before somebody wants it.
    Lazy,
    /// To the end, unless the first page shows that many can share the work, or, `in_windows`, the first
    /// pages that there is no end in sight.
    Probe { workers: usize, in_windows: bool },
    /// To the end, unless there are far more pages than these, or other batches than there should be.
    Window { pages: u64, newest_first: bool },
    /// To the end, whatever comes.
    Full,
    /// Version 1: one answer, which is cut if it may not be whole.
    V1(WindowHint),
}

impl WalkMode {
    /// A window of batches in no order of time, which cannot be cut again by what is seen of it.
    pub(super) const UNORDERED: Self = Self::Window {
        pages: u64::MAX,
        newest_first: false,
    };

    /// A window that should have so many pages, and is cut again where it has far more.
    pub(super) fn share(pages: u64, newest_first: bool) -> Self {
        Self::Window {
            pages: 2 * pages + 4,
            newest_first,
        }
    }
}

pub(super) struct V2Walk {
    asker: Arc<Session>,
    window: Range,
    extent: WalkMode,
    /// Whether the service may turn out not to have version 2.
    may_be_missing: bool,
    pub(super) lane: WindowSender,
    /// Every cursor of this walk, as a digest of 128 bits: none may come again.
    cursors: HashSet<u128>,
    hasher: RandomState,
    id: WalkId,
    restarts: u32,
    /// The most pages that arrived before a restart.
    furthest: u64,
    /// What the first page had, where the window may be split later.
    first: FirstPageIds,
    /// The window stands for a stretch of the whole walk, as long as it comes in the same order.
    is_ordered: bool,
    /// When the furthest batch so far was created, and which ones came.
    reached: Option<Timestamp>,
    known: Vec<Id>,
}

/// A page that was asked for; nobody asks any more when dropped.
struct PendingPage {
    task: JoinHandle<PageResult>,
    /// The cursor of the next page, often before this one is read.
    early: oneshot::Receiver<String>,
}

impl Drop for PendingPage {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl V2Walk {
    pub(super) fn new(
        asker: Arc<Session>,
        window: Range,
        extent: WalkMode,
        may_be_missing: bool,
        lane: WindowSender,
    ) -> Self {
        let id = WalkId {
            number: asker.next_walk(),
            is_window: matches!(extent, WalkMode::Window { .. }),
        };
        Self {
            id,
            asker,
            window,
            extent,
            may_be_missing,
            lane,
            cursors: HashSet::new(),
            hasher: RandomState::new(),
            restarts: 0,
            furthest: 0,
            first: FirstPageIds::new(),
            is_ordered: false,
            reached: None,
            known: Vec::new(),
        }
    }

    /// Ends the walk where batches come in another order than the windows do.
    pub(super) fn in_order(self) -> Self {
        Self {
            is_ordered: true,
            ..self
        }
    }

    pub(super) async fn run(&mut self) -> Result<WindowOutcome, Failure> {
        let mut next_token: Option<Secret> = None;
        let mut ahead: Option<(String, PendingPage)> = None;
        let mut is_wanted = false;
        loop {
            let pages = self.lane.pages();
            if self.extent == WalkMode::Lazy && !is_wanted {
                self.lane.wanted().await;
                is_wanted = true;
            }
            let mut asking = match ahead.take() {
                Some((_, asking)) => asking,
                None => self.ask(next_token.clone(), pages + 1),
            };
            if self.is_eager(pages + 1)
                && let Ok(cursor) = (&mut asking.early).await
                && !self.cursors.contains(&self.digest(&cursor))
            {
                let next = self.ask(Some(Secret::cursor(cursor.clone())), pages + 2);
                ahead = Some((cursor, next));
            }
            let answered = (&mut asking.task).await;
            let answered = match answered {
                Ok(answered) => answered,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                // The runtime ends, and with it this walk at its next step.
                Err(_) => std::future::pending().await,
            };
            let (mut got, cursor) = match answered {
                Ok(got) => got,
                Err((error, _))
                    if self.may_be_missing && pages + self.furthest == 0 && error.is_missing() =>
                {
                    return Ok(WindowOutcome::Missing(error));
                }
                Err((error, tries)) => {
                    self.restart(next_token.take().is_some(), error, &tries)?;
                    ahead = None;
                    continue;
                }
            };
            if ahead.as_ref().map(|(cursor, _)| cursor) != cursor.as_ref() {
                ahead = None;
            }
            let instants = if let WalkMode::Window { .. } = self.extent {
                instants(&got)
            } else {
                Vec::new()
            };
            let seen: Vec<i64> = instants.iter().map(|instant| instant.second).collect();
            if self.is_strange(&seen) {
                return Ok(WindowOutcome::Strange);
            }
            if self.is_disordered(&got.page, instants) {
                return Ok(WindowOutcome::Disordered);
            }
            got.page.walk = Some(self.id);
            let opened = self.open(&got, cursor.is_some());
            let parts = self.split(&got);
            let seen = self.is_crowded(&got.page).then_some(seen);
            self.remember(&got.page);
            if !self.lane.deliver(got).await {
                return Ok(WindowOutcome::Done);
            }
            is_wanted = false;
            if self.lane.pages() > self.furthest {
                (self.furthest, self.restarts) = (self.lane.pages(), 0);
            }
            let Some(cursor) = cursor else {
                return Ok(WindowOutcome::Done);
            };
            if let Some((plan, first)) = opened {
                return Ok(WindowOutcome::Opened(plan, first));
            }
            if let Some(parts) = parts {
                return Ok(WindowOutcome::Split(parts, std::mem::take(&mut self.first)));
            }
            if let Some(parts) = seen.and_then(|seen| self.cut(&seen)) {
                return Ok(WindowOutcome::Cut(parts));
            }
            if !self.cursors.insert(self.digest(&cursor)) {
                self.asker.is_looping.store(true, Ordering::Relaxed);
                let why = "the same next_token came twice: the pages would never end";
                return Err(looping(why));
            }
            next_token = Some(Secret::cursor(cursor));
        }
    }

    /// Tells whether to ask for the page after number `page` before that one is read.
    fn is_eager(&self, page: u64) -> bool {
        match self.extent {
            WalkMode::Lazy => false,
            WalkMode::Probe {
                workers,
                in_windows,
            } => (workers == 1 && !in_windows) || page > 1,
            WalkMode::Window { pages, .. } => page < pages,
            WalkMode::Full | WalkMode::V1(_) => true,
        }
    }

    /// Makes a plan for many, where the first page shows that there is work for them.
    fn open(&self, got: &DecodedPage, has_more: bool) -> Option<(WindowPlanner, FirstPageIds)> {
        let WalkMode::Probe {
            workers,
            in_windows,
        } = self.extent
        else {
            return None;
        };
        // One that is cut for another reason is cut as for two.
        let workers = workers.max(1 + usize::from(in_windows));
        if !has_more || self.lane.pages() > 0 || workers == 1 {
            return None;
        }
        let plan = WindowPlanner::new(self.window, &seconds(got), got.page.size(), workers)?;
        Some((plan, got.page.ids()))
    }

    /// Splits the window where it goes on and on, in no order of time, and somebody wants to know early
    /// which parts of it are complete.
    fn split(&mut self, got: &DecodedPage) -> Option<Vec<Range>> {
        let WalkMode::Probe {
            in_windows: true, ..
        } = self.extent
        else {
            return None;
        };
        match self.lane.pages() + 1 {
            1 => self.first = got.page.ids(),
            MANY => return window::even_parts(&self.window, &seconds(got)),
            _ => {}
        }
        None
    }

    /// Tells whether a page of a window holds what it should not: then the service compares dates with
    /// something else than the date of creation, and might never answer some batches to any window.
    fn is_strange(&self, seen: &[i64]) -> bool {
        let Range { start, end, .. } = self.window;
        let is_outside = |second: &i64| {
            start.is_some_and(|start| *second < start) || end.is_some_and(|end| *second > end)
        };
        seen.iter().any(is_outside)
    }

    /// Tells whether a page goes back in time: then windows one behind another are no longer what a walk
    /// through all of the range would be, and whoever wants its order must walk.
    fn is_disordered(&mut self, page: &Page, instants: Vec<Timestamp>) -> bool {
        let WalkMode::Window { newest_first, .. } = self.extent else {
            return false;
        };
        if !self.is_ordered {
            return false;
        }
        // What comes once more has its place already. That is rare, so it is looked for only where a page
        // seems to go back.
        let reached = self.reached.take();
        let is_disordered = goes_back(&instants, reached.as_ref(), newest_first) && {
            let new = self.new_on(page);
            let new: Vec<Timestamp> = new.into_iter().filter_map(Batch::created).collect();
            goes_back(&new, reached.as_ref(), newest_first)
        };
        let so_far = instants.into_iter().chain(reached);
        self.reached = if newest_first {
            so_far.min()
        } else {
            so_far.max()
        };
        is_disordered
    }

    /// Returns those batches of `page` that did not come before.
    fn new_on<'a>(&self, page: &'a Page) -> Vec<&'a Batch> {
        let mut known: HashSet<Id> = self.known.iter().copied().collect();
        let ids = page.digests.iter().map(Digest::id);
        let new = ids.zip(&page.batches).filter(|(id, _)| known.insert(*id));
        new.map(|(_, batch)| batch).collect()
    }

    /// Remembers what a window had, as long as it may be cut because of it.
    fn remember(&mut self, page: &Page) {
        if matches!(self.extent, WalkMode::Window { pages, .. } if pages < u64::MAX) {
            self.known.extend(page.digests.iter().map(Digest::id));
        }
    }

    /// Returns whether there is far more in the window than was thought, with one more page. Pages that
    /// bring nothing new do not show that: a service that ignores cursors would send them for ever.
    fn is_crowded(&self, page: &Page) -> bool {
        let has_many = |pages| self.lane.pages() + 1 >= pages;
        let is_many = matches!(self.extent, WalkMode::Window { pages, .. } if has_many(pages));
        is_many && !self.new_on(page).is_empty()
    }

    /// Cuts the window anew by what was `seen` on the last page.
    fn cut(&mut self, seen: &[i64]) -> Option<Vec<(Range, WalkMode)>> {
        let WalkMode::Window { newest_first, .. } = self.extent else {
            return None;
        };
        let pages = self.lane.pages();
        let Some(parts) = window::parts(&self.window, pages, seen, newest_first) else {
            // It is nearly done, or one second.
            self.extent = WalkMode::share(pages, newest_first);
            return None;
        };
        let extent = WalkMode::share(1, newest_first);
        Some(parts.into_iter().map(|part| (part, extent)).collect())
    }

    /// Begins anew where the cursor is no longer taken; any other error is final.
    fn restart(
        &mut self,
        had_cursor: bool,
        error: ServiceError,
        tries: &Tries,
    ) -> Result<(), Failure> {
        let expired = had_cursor && error.refuses_batches(&EXPIRED);
        if !expired {
            return Err(tries.failure(error));
        }
        if self.restarts >= RESTARTS {
            let failure = tries.failure(error);
            return Err(failure
                .with_message("the service does not go on from its own next_token")
                .hint("ask for less at a time with `--start` and `--end`, or tell the operator of the service"));
        }
        log::warn!("{error}; fetching this range again from its start");
        self.restarts += 1;
        self.cursors.clear();
        self.id.number = self.asker.next_walk();
        // What came of this window comes again.
        self.lane.forget();
        self.reached = None;
        self.known.clear();
        Ok(())
    }

    fn digest(&self, cursor: &str) -> u128 {
        let half = |half: u8| u128::from(self.hasher.hash_one((half, cursor)));
        half(0) << 64 | half(1)
    }

    /// Asks for the page at `next_token`.
    fn ask(&self, next_token: Option<Secret>, page: u64) -> PendingPage {
        let (early, receiver) = oneshot::channel();
        let source = ResponseInfo {
            window: matches!(self.extent, WalkMode::Window { .. }).then_some(self.window),
            page,
        };
        let (asker, window) = (Arc::clone(&self.asker), self.window);
        let task =
            task::spawn(async move { ask_page(&asker, window, next_token, source, early).await });
        PendingPage {
            task,
            early: receiver,
        }
    }
}

/// Returns in which seconds the batches were created, as far as that is known.
fn seconds(got: &DecodedPage) -> Vec<i64> {
    got.page.created().collect()
}

/// Returns when the batches were created, to the fraction of a second, as far as that is known.
fn instants(got: &DecodedPage) -> Vec<Timestamp> {
    got.page.batches.iter().filter_map(Batch::created).collect()
}

/// Returns whether any of `instants` lies before one that came earlier, or before what was `reached`.
///
/// Fractions count: windows share their bounds, so a batch on a whole second may come in an earlier
/// window than another one within that second.
fn goes_back(instants: &[Timestamp], reached: Option<&Timestamp>, newest_first: bool) -> bool {
    let all = reached.into_iter().chain(instants);
    !if newest_first {
        all.is_sorted_by(|before, after| before >= after)
    } else {
        all.is_sorted()
    }
}
