//! Version 2: walks the pages of a window from cursor to cursor.
//!
//! The next page is requested as soon as its cursor is known, while the current page is still being decoded.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::Ordering;

use super::decode::{DataIssues, DecodedPage, ResponseInfo};
use super::pending::{EXPIRED, PendingPage};
use super::planner::WindowPlanner;
use super::repeats::broken_pages;
use super::room::{Space, WindowRoom};
use super::walk::{WalkOptions, WalkStep, WindowEnd};
use super::window::{self, WalkMode};
use crate::batch::Page;
use crate::batch::dedup::{Digest, Id};
use crate::batch::page::FirstPageIds;
use crate::batch::page::WalkId;
use crate::batch::range::Range;
use crate::batch::{Batch, Timestamp};
use crate::client::{ServiceError, Version};
use crate::error::{Failure, Kind};
use crate::secret::Secret;
use crate::terminal;
use crate::text::thousands;

/// How often a walk may restart without making progress.
const MAX_RESTARTS: u32 = 3;
/// Number of unordered pages after which a window is split.
const SPLIT_AFTER: u64 = 8;
/// Number of batches after which those of the next page are not remembered.
const MAX_REMEMBERED: usize = 10_000;
/// Number of empty pages in a row after which a warning says so. There may be any number of them.
const MANY_EMPTY: u64 = 1000;
/// The longest cursor, in bytes. In a URL, it may take three times as many, and no more than 64 KiB are possible.
const MAX_CURSOR: usize = 16 << 10;

pub(super) struct V2Walk {
    options: WalkOptions,
    window: Range,
    mode: WalkMode,
    room: WindowRoom,
    /// The cursor of the current page.
    cursor: Option<Secret>,
    /// The current page, and the number of its batches that were returned.
    pending: Option<PendingPage>,
    returned: u64,
    /// The next page, requested early, and its cursor.
    ahead: Option<(String, PendingPage)>,
    /// The end that follows the page returned last.
    end: Option<WindowEnd>,
    /// Number of pages returned, and the most before a restart.
    pages: u64,
    most_pages: u64,
    restarts: u32,
    /// Number of empty pages in a row, and whether a warning was given about them.
    empty_pages: u64,
    warned_of_empty: bool,
    /// 128-bit digests of all cursors of this walk. None may be received twice.
    cursors: HashSet<u128>,
    hasher: RandomState,
    id: WalkId,
    /// The batches of the first pages, if the window may be split later.
    first_page: FirstPageIds,
    /// Creation date of the furthest batch so far, and the ids of all batches so far.
    furthest_instant: Option<Timestamp>,
    seen_ids: Vec<Id>,
}

impl V2Walk {
    pub(super) fn new(
        options: WalkOptions,
        window: Range,
        mode: WalkMode,
        room: WindowRoom,
    ) -> Self {
        let id = WalkId {
            number: options.session.next_walk(),
            is_window: matches!(mode, WalkMode::Window { .. }),
        };
        Self {
            id,
            options,
            window,
            mode,
            room,
            cursor: None,
            pending: None,
            returned: 0,
            ahead: None,
            end: None,
            pages: 0,
            most_pages: 0,
            restarts: 0,
            empty_pages: 0,
            warned_of_empty: false,
            cursors: HashSet::new(),
            hasher: RandomState::new(),
            first_page: FirstPageIds::new(),
            furthest_instant: None,
            seen_ids: Vec::new(),
        }
    }

    pub(super) async fn next(&mut self) -> Result<WalkStep, Failure> {
        if let Some(end) = self.end.take() {
            return Ok(WalkStep::End(end));
        }
        loop {
            match self.receive().await {
                Ok(decoded) => return Ok(self.accept(decoded)),
                Err(error) if self.is_missing(&error) => {
                    return Ok(WalkStep::End(WindowEnd::VersionMissing(error)));
                }
                Err(error) => {
                    if let Some(end) = self.restart(error)? {
                        return Ok(WalkStep::End(end));
                    }
                }
            }
        }
    }

    fn is_missing(&self, error: &ServiceError) -> bool {
        self.options.may_be_missing && self.pages + self.most_pages == 0 && error.is_missing()
    }

    /// Returns the next part of the current page. Requests the page after it as soon as its cursor is known.
    async fn receive(&mut self) -> Result<DecodedPage, ServiceError> {
        let mut pending = if let Some(pending) = self.pending.take() {
            pending
        } else {
            let space = self.room.acquire_page().await;
            self.request_page(self.cursor.clone(), self.pages + 1, space)
        };
        if self.should_prefetch(self.pages + 1)
            && let Some(cursor) = pending.early_cursor().await
            && !self.cursors.contains(&self.digest(&cursor))
            && let Some(space) = self.room.try_acquire_page()
        {
            let token = Secret::cursor(cursor.clone());
            let next = self.request_page(Some(token), self.pages + 2, space);
            self.ahead = Some((cursor, next));
        }
        self.pending.insert(pending).next().await
    }

    /// Checks a page or a part of it, and decides what follows.
    fn accept(&mut self, mut decoded: DecodedPage) -> WalkStep {
        if decoded.is_retry {
            decoded.refetched = std::mem::take(&mut self.returned);
        }
        let instants = match self.mode {
            WalkMode::Window { .. } => instants(&decoded.page),
            _ => Vec::new(),
        };
        if self.is_out_of_range(&instants) {
            let why = "the service returned batches outside the requested dates";
            return WalkStep::End(WindowEnd::Unreliable(why));
        }
        if self.is_out_of_order(&decoded.page, instants) {
            let why = "batches are not in order of their creation date";
            return WalkStep::End(WindowEnd::Unreliable(why));
        }
        decoded.page.walk = Some(self.id);
        if decoded.page.is_continued {
            self.returned += decoded.page.batches.len() as u64;
            self.remember(&decoded.page);
        } else {
            self.end_page(&decoded.page, decoded.cursor.take());
        }
        WalkStep::Page(decoded)
    }

    /// Decides what follows a page whose last part is `page`.
    fn end_page(&mut self, page: &Page, cursor: Option<String>) {
        self.pending = None;
        if self.ahead.as_ref().map(|(cursor, _)| cursor) == cursor.as_ref() {
            self.pending = self.ahead.take().map(|(_, pending)| pending);
        }
        self.ahead = None;
        let is_large = std::mem::take(&mut self.returned) > 0;
        let planned = self.plan(page, cursor.is_some() && !is_large);
        let parts = self.split(page);
        let is_oversized = self.is_oversized(page);
        self.remember(page);
        self.pages += 1;
        if self.pages > self.most_pages {
            (self.most_pages, self.restarts) = (self.pages, 0);
        }
        let Some(cursor) = cursor else {
            self.end = Some(WindowEnd::Done(DataIssues::default()));
            return;
        };
        self.count_empty(page.batches.is_empty() && !is_large);
        self.end = if planned.is_some() {
            planned
        } else if let Some(parts) = parts {
            let parts = parts.into_iter().map(|part| (part, WalkMode::UNORDERED));
            let first_page = std::mem::take(&mut self.first_page);
            Some(WindowEnd::Split(parts.collect(), first_page))
        } else {
            let parts = is_oversized.then(|| self.replan(page)).flatten();
            parts.map(|parts| WindowEnd::Split(parts, FirstPageIds::new()))
        };
        if self.end.is_some() {
            self.pending = None;
        } else if cursor.len() > MAX_CURSOR {
            let why = format!(
                "the service returned a next_token of more than {} KiB",
                MAX_CURSOR >> 10
            );
            self.end = Some(WindowEnd::Failed(broken_pages(why)));
        } else if !self.cursors.insert(self.digest(&cursor)) {
            self.options
                .session
                .is_repeating
                .store(true, Ordering::Relaxed);
            let why =
                "the service returned the same next_token twice, so its pages would never end";
            self.end = Some(WindowEnd::Failed(broken_pages(why)));
        }
        self.cursor = Some(Secret::cursor(cursor));
    }

    /// Counts empty pages that another one follows. Without a warning, endless ones would look like a run that hangs.
    fn count_empty(&mut self, is_empty: bool) {
        self.empty_pages = if is_empty { self.empty_pages + 1 } else { 0 };
        if self.empty_pages >= MANY_EMPTY && !self.warned_of_empty {
            self.warned_of_empty = true;
            log::warn!(
                "the service keeps sending empty pages, {} in a row so far; the run goes on until the last page",
                thousands(MANY_EMPTY)
            );
        }
    }

    /// Returns whether to request the page after number `page` before that one is decoded.
    fn should_prefetch(&self, page: u64) -> bool {
        match self.mode {
            WalkMode::Lazy => false,
            WalkMode::Probe {
                workers,
                in_windows,
            } => (workers == 1 && !in_windows) || page > 1,
            WalkMode::Window { pages, .. } => page < pages,
            WalkMode::Full | WalkMode::V1(_) => true,
        }
    }

    /// Makes a plan for several workers if the first page shows enough work for them.
    fn plan(&self, page: &Page, has_more: bool) -> Option<WindowEnd> {
        let WalkMode::Probe {
            workers,
            in_windows,
        } = self.mode
        else {
            return None;
        };
        // A range split only to return it in windows is split as for two workers.
        let workers = workers.max(1 + usize::from(in_windows));
        if !has_more || self.pages > 0 || workers == 1 {
            return None;
        }
        let seen: Vec<i64> = page.created().collect();
        let plan = WindowPlanner::new(self.window, &seen, page.size(), workers)?;
        Some(WindowEnd::Planned(plan, page.ids()))
    }

    /// Splits a long window without date order, if the caller needs to know early which parts are complete.
    fn split(&mut self, page: &Page) -> Option<Vec<Range>> {
        let WalkMode::Probe {
            in_windows: true, ..
        } = self.mode
        else {
            return None;
        };
        match self.pages + 1 {
            1 => self.first_page = page.ids(),
            SPLIT_AFTER => {
                let seen: Vec<i64> = page.created().collect();
                return window::even_parts(&self.window, &seen);
            }
            _ if self.first_page.len() < MAX_REMEMBERED => self.first_page.extend(page.ids()),
            _ => {}
        }
        None
    }

    /// Returns whether a page contains batches outside the window. If so, the service does not filter by
    /// creation date, and some batches might not be in any window.
    fn is_out_of_range(&self, instants: &[Timestamp]) -> bool {
        let mut seconds = instants.iter().map(|instant| instant.second);
        seconds.any(|second| !self.window.contains(second))
    }

    /// Returns whether a page goes back in time. If so, consecutive windows do not have the order of one walk
    /// over the whole range.
    fn is_out_of_order(&mut self, page: &Page, instants: Vec<Timestamp>) -> bool {
        let WalkMode::Window { newest_first, .. } = self.mode else {
            return false;
        };
        if !self.options.is_ordered {
            return false;
        }
        // A duplicate may be out of order. Duplicates are rare, so they are excluded only if a page seems to
        // go back.
        let furthest_instant = self.furthest_instant.take();
        let is_out_of_order = is_unsorted(&instants, furthest_instant.as_ref(), newest_first) && {
            let new = self.new_batches(page);
            let new: Vec<Timestamp> = new.into_iter().filter_map(Batch::created).collect();
            is_unsorted(&new, furthest_instant.as_ref(), newest_first)
        };
        let so_far = instants.into_iter().chain(furthest_instant);
        self.furthest_instant = if newest_first {
            so_far.min()
        } else {
            so_far.max()
        };
        is_out_of_order
    }

    /// Returns the batches of `page` that were not received before.
    fn new_batches<'a>(&self, page: &'a Page) -> Vec<&'a Batch> {
        let mut seen_ids: HashSet<Id> = self.seen_ids.iter().copied().collect();
        let ids = page.digests.iter().map(Digest::id);
        let new = ids
            .zip(&page.batches)
            .filter(|(id, _)| seen_ids.insert(*id));
        new.map(|(_, batch)| batch).collect()
    }

    /// Remembers the ids of a page, as long as the window may be split again.
    fn remember(&mut self, page: &Page) {
        if matches!(self.mode, WalkMode::Window { pages, .. } if pages < u64::MAX) {
            self.seen_ids.extend(page.digests.iter().map(Digest::id));
        }
    }

    /// Returns whether the window has far more pages than expected. Pages without new batches do not count: a
    /// service that ignores cursors would send them forever.
    fn is_oversized(&self, page: &Page) -> bool {
        let has_many = |pages| self.pages + 1 >= pages;
        let is_many = matches!(self.mode, WalkMode::Window { pages, .. } if has_many(pages));
        is_many && !self.new_batches(page).is_empty()
    }

    /// Splits the window again, judging by the last page.
    fn replan(&mut self, page: &Page) -> Option<Vec<(Range, WalkMode)>> {
        let WalkMode::Window { newest_first, .. } = self.mode else {
            return None;
        };
        let pages = self.pages;
        let seen: Vec<i64> = page.created().collect();
        let Some(parts) = window::parts(&self.window, pages, &seen, newest_first) else {
            // The window is nearly done, or a single second.
            self.mode = WalkMode::window(pages, newest_first);
            return None;
        };
        let mode = WalkMode::window(1, newest_first);
        Some(parts.into_iter().map(|part| (part, mode)).collect())
    }

    /// Restarts the walk if the cursor is no longer valid, or ends it if that does not help. Any other error is final.
    fn restart(&mut self, error: ServiceError) -> Result<Option<WindowEnd>, Failure> {
        let expired = self.cursor.take().is_some() && error.refuses_batches(&EXPIRED);
        if !expired {
            return Err(self.final_failure(error));
        }
        if self.restarts >= MAX_RESTARTS && matches!(self.mode, WalkMode::Window { .. }) {
            let why = "the service rejects the cursors of windows";
            return Ok(Some(WindowEnd::Unreliable(why)));
        }
        if self.restarts >= MAX_RESTARTS {
            let failure =
                Failure::from(error).with_message("the service rejects its own next_token");
            let hint = if self.options.session.client.limiter.was_sequential() {
                "request a shorter range with `--start` and `--end`"
            } else {
                "request a shorter range with `--start` and `--end`, or one page at a time with `--parallel 1`"
            };
            return Err(failure.hint(hint));
        }
        terminal::note(&format!(
            "{error}; fetching this range again from its start"
        ));
        self.restarts += 1;
        self.cursors.clear();
        self.id.number = self.options.session.next_walk();
        // The window is fetched again from its start.
        (self.pending, self.ahead, self.pages) = (None, None, 0);
        self.returned = 0;
        self.furthest_instant = None;
        self.seen_ids.clear();
        Ok(None)
    }

    /// Returns the failure for an error that ends the walk. The dates of a window are not those of the user.
    fn final_failure(&self, error: ServiceError) -> Failure {
        let is_window = matches!(self.mode, WalkMode::Window { .. });
        let is_about_dates = is_window && error.request.ends_with("/batches");
        let failure = Failure::from(error);
        if is_about_dates
            && failure.kind == Kind::Refused
            && self.options.session.client.limiter.is_parallel()
        {
            failure.hint(
                "trayscan asked for a part of the range, to fetch several parts at a time; `--parallel 1` adds no dates of its own",
            )
        } else {
            failure
        }
    }

    fn digest(&self, cursor: &str) -> u128 {
        let half = |half: u8| u128::from(self.hasher.hash_one((half, cursor)));
        half(0) << 64 | half(1)
    }

    /// Requests the page at `next_token`.
    fn request_page(&self, next_token: Option<Secret>, page: u64, space: Space) -> PendingPage {
        let info = ResponseInfo {
            window: matches!(self.mode, WalkMode::Window { .. }).then_some(self.window),
            page,
        };
        PendingPage::new(
            &self.options.session,
            Version::V2,
            self.window,
            next_token,
            info,
            Some(space),
        )
    }
}

/// Returns the exact creation dates of the batches, where known.
fn instants(page: &Page) -> Vec<Timestamp> {
    let mut instants = Vec::with_capacity(page.batches.len());
    instants.extend(page.batches.iter().filter_map(Batch::created));
    instants
}

/// Returns whether any of `instants` lies before an earlier one, or before `furthest_instant`.
///
/// Fractions count: windows share their bounds, so a batch on a whole second may be in an earlier window than
/// another batch within that second.
fn is_unsorted(
    instants: &[Timestamp],
    furthest_instant: Option<&Timestamp>,
    newest_first: bool,
) -> bool {
    let all = furthest_instant.into_iter().chain(instants);
    !if newest_first {
        all.is_sorted_by(|before, after| before >= after)
    } else {
        all.is_sorted()
    }
}
