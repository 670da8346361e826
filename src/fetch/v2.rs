//! Version 2: walks the pages of a window from cursor to cursor.
//!
//! The next page is requested as soon as its cursor is known, while the current page is still being decoded.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{Mutex, oneshot};
use tokio::task::{self, JoinHandle};

use super::decode::{DecodedPage, PageDecoder, ResponseInfo};
use super::planner::WindowPlanner;
use super::queue::{ROOM, WindowOutcome, WindowSender};
use super::repeats::looping_failure;
use super::session::FetchSession;
use super::window::{self, WalkMode};
use crate::batch::Page;
use crate::batch::dedup::{Digest, Id};
use crate::batch::page::FirstPageIds;
use crate::batch::page::WalkId;
use crate::batch::range::Range;
use crate::batch::{Batch, Timestamp};
use crate::client::{PageRequest, Permit, Response, ServiceError, Version};
use crate::error::Failure;
use crate::secret::Secret;

/// Status codes for a cursor that is no longer valid (interface, section 7: not shown).
const EXPIRED: [u16; 4] = [400, 404, 410, 422];
/// Bytes to read of a page at a time. Larger pages are decoded while they arrive.
const CHUNK: usize = 4 << 20;
/// Maximum size of a page.
const PAGE_LIMIT: usize = 256 << 20;
/// How often a walk may restart without making progress.
const MAX_RESTARTS: u32 = 3;
/// Number of unordered pages after which a window is split.
const SPLIT_AFTER: u64 = 8;
pub(super) struct V2Walk {
    session: Arc<FetchSession>,
    window: Range,
    mode: WalkMode,
    /// Whether the service may not have version 2.
    may_be_missing: bool,
    pub(super) sender: WindowSender,
    /// 128-bit digests of all cursors of this walk. None may be received twice.
    cursors: HashSet<u128>,
    hasher: RandomState,
    id: WalkId,
    restarts: u32,
    /// The most pages delivered before a restart.
    most_pages: u64,
    /// The batches of the first page, if the window may be split later.
    first_page: FirstPageIds,
    /// Whether the window must be in the same order as one walk over the whole range.
    is_ordered: bool,
    /// Creation date of the furthest batch so far, and the ids of all batches so far.
    furthest_instant: Option<Timestamp>,
    seen_ids: Vec<Id>,
}

/// A page that was requested. Dropping it cancels the request.
struct PendingPage {
    task: JoinHandle<PageResult>,
    /// The cursor of the next page, often before this page is decoded.
    early_cursor: oneshot::Receiver<String>,
}

impl Drop for PendingPage {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl V2Walk {
    pub(super) fn new(
        session: Arc<FetchSession>,
        window: Range,
        mode: WalkMode,
        may_be_missing: bool,
        sender: WindowSender,
    ) -> Self {
        let id = WalkId {
            number: session.next_walk(),
            is_window: matches!(mode, WalkMode::Window { .. }),
        };
        Self {
            id,
            session,
            window,
            mode,
            may_be_missing,
            sender,
            cursors: HashSet::new(),
            hasher: RandomState::new(),
            restarts: 0,
            most_pages: 0,
            first_page: FirstPageIds::new(),
            is_ordered: false,
            furthest_instant: None,
            seen_ids: Vec::new(),
        }
    }

    /// Ends the walk if the batches are not in the order of the windows.
    pub(super) fn in_order(self) -> Self {
        Self {
            is_ordered: true,
            ..self
        }
    }

    pub(super) async fn run(&mut self) -> Result<WindowOutcome, Failure> {
        let mut next_token: Option<Secret> = None;
        let mut ahead: Option<(String, PendingPage)> = None;
        let mut is_requested = false;
        loop {
            let pages = self.sender.pages();
            if self.mode == WalkMode::Lazy && !is_requested {
                self.sender.wait_for_demand().await;
                is_requested = true;
            }
            let mut pending = match ahead.take() {
                Some((_, pending)) => pending,
                None => self.request_page(next_token.clone(), pages + 1),
            };
            if self.should_prefetch(pages + 1)
                && let Ok(cursor) = (&mut pending.early_cursor).await
                && !self.cursors.contains(&self.digest(&cursor))
            {
                let next = self.request_page(Some(Secret::cursor(cursor.clone())), pages + 2);
                ahead = Some((cursor, next));
            }
            let result = (&mut pending.task).await;
            let result = match result {
                Ok(result) => result,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                // The runtime is shutting down, and this task with it.
                Err(_) => std::future::pending().await,
            };
            let (mut decoded, cursor) = match result {
                Ok(decoded) => decoded,
                Err(error)
                    if self.may_be_missing
                        && pages + self.most_pages == 0
                        && error.is_missing() =>
                {
                    return Ok(WindowOutcome::VersionMissing(error));
                }
                Err(error) => {
                    self.restart(next_token.take().is_some(), error)?;
                    ahead = None;
                    continue;
                }
            };
            if ahead.as_ref().map(|(cursor, _)| cursor) != cursor.as_ref() {
                ahead = None;
            }
            let instants = if let WalkMode::Window { .. } = self.mode {
                instants(&decoded)
            } else {
                Vec::new()
            };
            let seen: Vec<i64> = instants.iter().map(|instant| instant.second).collect();
            if self.is_out_of_range(&seen) {
                return Ok(WindowOutcome::OutOfRange);
            }
            if self.is_out_of_order(&decoded.page, instants) {
                return Ok(WindowOutcome::OutOfOrder);
            }
            decoded.page.walk = Some(self.id);
            let planned = self.plan(&decoded, cursor.is_some());
            let parts = self.split(&decoded);
            let seen = self.is_oversized(&decoded.page).then_some(seen);
            self.remember(&decoded.page);
            if !self.sender.deliver(decoded).await {
                return Ok(WindowOutcome::Done);
            }
            is_requested = false;
            if self.sender.pages() > self.most_pages {
                (self.most_pages, self.restarts) = (self.sender.pages(), 0);
            }
            let Some(cursor) = cursor else {
                return Ok(WindowOutcome::Done);
            };
            if let Some((plan, first_page)) = planned {
                return Ok(WindowOutcome::Planned(plan, first_page));
            }
            if let Some(parts) = parts {
                return Ok(WindowOutcome::Split(
                    parts,
                    std::mem::take(&mut self.first_page),
                ));
            }
            if let Some(parts) = seen.and_then(|seen| self.replan(&seen)) {
                return Ok(WindowOutcome::Replaced(parts));
            }
            if !self.cursors.insert(self.digest(&cursor)) {
                self.session.is_looping.store(true, Ordering::Relaxed);
                let why =
                    "the service returned the same next_token twice, so its pages would never end";
                return Err(looping_failure(why));
            }
            next_token = Some(Secret::cursor(cursor));
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
    fn plan(&self, decoded: &DecodedPage, has_more: bool) -> Option<(WindowPlanner, FirstPageIds)> {
        let WalkMode::Probe {
            workers,
            in_windows,
        } = self.mode
        else {
            return None;
        };
        // A range split only to return it in windows is split as for two workers.
        let workers = workers.max(1 + usize::from(in_windows));
        if !has_more || self.sender.pages() > 0 || workers == 1 {
            return None;
        }
        let plan = WindowPlanner::new(
            self.window,
            &seconds(decoded),
            decoded.page.size(),
            workers,
            ROOM,
        )?;
        Some((plan, decoded.page.ids()))
    }

    /// Splits a long window without date order, if the caller needs to know early which parts are complete.
    fn split(&mut self, decoded: &DecodedPage) -> Option<Vec<Range>> {
        let WalkMode::Probe {
            in_windows: true, ..
        } = self.mode
        else {
            return None;
        };
        match self.sender.pages() + 1 {
            1 => self.first_page = decoded.page.ids(),
            SPLIT_AFTER => return window::even_parts(&self.window, &seconds(decoded)),
            _ => {}
        }
        None
    }

    /// Returns whether a page contains batches outside the window. If so, the service does not filter by
    /// creation date, and some batches might not be in any window.
    fn is_out_of_range(&self, seen: &[i64]) -> bool {
        let Range { start, end, .. } = self.window;
        let is_outside = |second: &i64| {
            start.is_some_and(|start| *second < start) || end.is_some_and(|end| *second > end)
        };
        seen.iter().any(is_outside)
    }

    /// Returns whether a page goes back in time. If so, consecutive windows do not have the order of one walk
    /// over the whole range.
    fn is_out_of_order(&mut self, page: &Page, instants: Vec<Timestamp>) -> bool {
        let WalkMode::Window { newest_first, .. } = self.mode else {
            return false;
        };
        if !self.is_ordered {
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
        let has_many = |pages| self.sender.pages() + 1 >= pages;
        let is_many = matches!(self.mode, WalkMode::Window { pages, .. } if has_many(pages));
        is_many && !self.new_batches(page).is_empty()
    }

    /// Splits the window again, judging by the batches `seen` on the last page.
    fn replan(&mut self, seen: &[i64]) -> Option<Vec<(Range, WalkMode)>> {
        let WalkMode::Window { newest_first, .. } = self.mode else {
            return None;
        };
        let pages = self.sender.pages();
        let Some(parts) = window::parts(&self.window, pages, seen, newest_first) else {
            // The window is nearly done, or a single second.
            self.mode = WalkMode::window(pages, newest_first);
            return None;
        };
        let mode = WalkMode::window(1, newest_first);
        Some(parts.into_iter().map(|part| (part, mode)).collect())
    }

    /// Restarts the walk if the cursor is no longer valid. Any other error is final.
    fn restart(&mut self, had_cursor: bool, error: ServiceError) -> Result<(), Failure> {
        let expired = had_cursor && error.refuses_batches(&EXPIRED);
        if !expired {
            return Err(error.into());
        }
        if self.restarts >= MAX_RESTARTS {
            return Err(Failure::from(error)
                .with_message("the service rejects its own next_token")
                .hint("request a shorter range with `--start` and `--end`, or contact the operator of the service"));
        }
        log::warn!("{error}; fetching this range again from its start");
        self.restarts += 1;
        self.cursors.clear();
        self.id.number = self.session.next_walk();
        // The window is fetched again from its start.
        self.sender.reset();
        self.furthest_instant = None;
        self.seen_ids.clear();
        Ok(())
    }

    fn digest(&self, cursor: &str) -> u128 {
        let half = |half: u8| u128::from(self.hasher.hash_one((half, cursor)));
        half(0) << 64 | half(1)
    }

    /// Requests the page at `next_token`.
    fn request_page(&self, next_token: Option<Secret>, page: u64) -> PendingPage {
        let (early_cursor, receiver) = oneshot::channel();
        let info = ResponseInfo {
            window: matches!(self.mode, WalkMode::Window { .. }).then_some(self.window),
            page,
        };
        let (session, window) = (Arc::clone(&self.session), self.window);
        let task = task::spawn(async move {
            fetch_page(&session, window, next_token, info, early_cursor).await
        });
        PendingPage {
            task,
            early_cursor: receiver,
        }
    }
}

/// Returns the seconds in which the batches were created, where known.
fn seconds(decoded: &DecodedPage) -> Vec<i64> {
    decoded.page.created().collect()
}

/// Returns the exact creation dates of the batches, where known.
fn instants(decoded: &DecodedPage) -> Vec<Timestamp> {
    decoded
        .page
        .batches
        .iter()
        .filter_map(Batch::created)
        .collect()
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

/// A decoded page with the cursor of the next one.
type PageResult = Result<(DecodedPage, Option<String>), ServiceError>;

/// Receives the cursor of the next page; used once.
type EarlyCursor = Mutex<Option<oneshot::Sender<String>>>;

/// Requests a page, with its dates if the service accepts them together with a cursor.
async fn fetch_page(
    session: &FetchSession,
    window: Range,
    next_token: Option<Secret>,
    info: ResponseInfo,
    early_cursor: oneshot::Sender<String>,
) -> PageResult {
    let has_cursor = next_token.is_some();
    let repeat_dates = !has_cursor || session.dates_with_cursor.load(Ordering::Relaxed);
    let dates = if repeat_dates {
        window
    } else {
        Range::default()
    };
    let mut request = PageRequest::new(Version::V2, &dates, next_token);
    let early_cursor = Mutex::new(Some(early_cursor));
    let result = fetch_once(session, &request, info, &early_cursor, || {}).await;
    let has_dates = window.start.is_some() || window.end.is_some();
    let refused = matches!(&result, Err(error) if error.refuses_batches(&[422]));
    if !(refused && has_cursor && repeat_dates && has_dates) {
        return result;
    }
    request = PageRequest::new(Version::V2, &Range::default(), request.next_token);
    let accepted = || {
        if session.dates_with_cursor.swap(false, Ordering::Relaxed) {
            log::info!(
                "the service rejects dates together with next_token; sending next_token only"
            );
        }
    };
    match fetch_once(session, &request, info, &early_cursor, accepted).await {
        // The request without dates is refused too, so the dates were not the reason.
        Err(error) if error.refuses_batches(&EXPIRED) => result,
        retried => retried,
    }
}

/// Sends the request until a page is decoded. Calls `accepted` as soon as the service accepts the request.
async fn fetch_once(
    session: &FetchSession,
    request: &PageRequest,
    info: ResponseInfo,
    early_cursor: &EarlyCursor,
    accepted: impl Fn(),
) -> PageResult {
    let read = |response, permit| {
        accepted();
        let decoder = PageDecoder::new(Version::V2, session.lenient, info, session.blank_page());
        read_page(response, permit, decoder, early_cursor)
    };
    session.client.request(request, read).await
}

/// Reads a page. Sends the cursor of the next page as soon as this page has arrived.
async fn read_page(
    mut response: Response,
    permit: Permit,
    mut decoder: PageDecoder,
    early_cursor: &EarlyCursor,
) -> PageResult {
    let mut last = None;
    let mut size = 0;
    while let Some(text) = response.text(CHUNK).await? {
        size += text.len();
        if size > PAGE_LIMIT {
            let why = format!("a page is larger than {} MB", PAGE_LIMIT >> 20);
            return Err(response.broken(why));
        }
        if response.has_ended() {
            last = Some(text);
            break;
        }
        decoder
            .feed(&text)
            .map_err(|error| response.parse_error(error))?;
    }
    permit.succeeded();
    let last = last.unwrap_or_default();
    let early_cursor = early_cursor.lock().await.take();
    if let (Some(early_cursor), Some(cursor)) = (early_cursor, last_cursor(&last)) {
        // Without a receiver, the cursor is not needed.
        let _ = early_cursor.send(cursor.to_owned());
    }
    // Let the next request be sent before this response is decoded.
    task::yield_now().await;
    let read = decoder.feed(&last).and_then(|()| decoder.finish());
    read.map_err(|error| response.parse_error(error))
}

/// Returns the cursor at the end of a page. If the page is valid JSON and ends like this, it cannot be part
/// of a string: a quote inside a string is escaped.
fn last_cursor(page: &str) -> Option<&str> {
    let rest = page.trim_end().strip_suffix("\"}")?;
    let (before, cursor) = rest.rsplit_once('"')?;
    let before = before.strip_suffix("\"next_token\":")?;
    let is_plain = !cursor.is_empty()
        && cursor
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    (is_plain && before.ends_with([',', '{'])).then_some(cursor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_at_the_end_is_known_early() {
        assert_eq!(
            last_cursor(r#"{"data":[],"next_token":"a=b"}"#),
            Some("a=b")
        );
        assert_eq!(
            last_cursor("{\"data\":[],\"next_token\":\"x\"}\n"),
            Some("x")
        );
        for page in [
            r#"{"data":[],"next_token":null}"#,
            r#"{"next_token":"x","data":[]}"#,
            r#"{"data":[],"next_token":"a\"b"}"#,
            r#"{"data":[],"next_token":"a\\"}"#,
            r#"{"data":[],"more":"\"next_token\":\"x"}"#,
            r#"{"data":[],"more":",\"next_token\":","x":"y"}"#,
            r#"{"data":[],"next_token":""}"#,
            "",
        ] {
            assert_eq!(last_cursor(page), None, "{page}");
        }
    }
}
