//! Version 2: a walk through the pages of a window, from cursor to cursor.
//!
//! The next page is asked for as soon as its cursor is known, while this one is still being read.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;
use tokio::task::{self, JoinHandle};

use super::decode::{DecodedPage, PageDecoder, ResponseInfo};
use super::limiter::Permit;
use super::planner::WindowPlanner;
use super::queue::{ROOM, WindowOutcome, WindowSender};
use super::repeats::looping;
use super::session::{PageRequest, Refused, Session};
use super::window::{self, WalkMode};
use crate::batch::Page;
use crate::batch::dedup::{Digest, Id};
use crate::batch::page::FirstPageIds;
use crate::batch::page::WalkId;
use crate::batch::range::Range;
use crate::batch::{Batch, Timestamp};
use crate::client::retry::Tries;
use crate::client::{Response, ServiceError, Version};
use crate::error::Failure;
use crate::secret::Secret;

/// What a cursor that is no longer taken is answered with (interface, section 7: not shown).
const EXPIRED: [u16; 4] = [400, 404, 410, 422];
/// What is read at once of a page; those that are larger are read while they arrive.
const PIECE: usize = 4 << 20;
/// The most that one page may hold in memory.
const LARGEST: usize = 256 << 20;
/// How often a window is walked anew without anything new in it.
const RESTARTS: u32 = 3;
/// So many pages without an order are many.
const MANY: u64 = 8;
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
        let plan = WindowPlanner::new(self.window, &seconds(got), got.page.size(), workers, ROOM)?;
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

/// What came for a page, with the cursor of the next.
type PageResult = Result<(DecodedPage, Option<String>), Refused>;

/// Who waits for the cursor of the next page; told once.
type Early = Option<oneshot::Sender<String>>;

/// Asks for a page, with its dates as far as they are taken beside a cursor.
async fn ask_page(
    asker: &Session,
    window: Range,
    next_token: Option<Secret>,
    source: ResponseInfo,
    early: oneshot::Sender<String>,
) -> PageResult {
    let has_cursor = next_token.is_some();
    let repeat_dates = !has_cursor || asker.dates_with_cursor.load(Ordering::Relaxed);
    let mut wanted = PageRequest {
        version: Version::V2,
        range: if repeat_dates {
            window
        } else {
            Range::default()
        },
        next_token,
    };
    let mut early = Some(early);
    let asked = ask_once(asker, &wanted, source, &mut early, || {}).await;
    let has_dates = window.start.is_some() || window.end.is_some();
    let refused = matches!(&asked, Err((error, _)) if error.refuses_batches(&[422]));
    if !(refused && has_cursor && repeat_dates && has_dates) {
        return asked;
    }
    wanted.range = Range::default();
    let taken = || {
        if asker.dates_with_cursor.swap(false, Ordering::Relaxed) {
            log::info!("the service takes no dates together with next_token: leaving them out");
        }
    };
    match ask_once(asker, &wanted, source, &mut early, taken).await {
        // It refuses this one too: then it was not for the dates.
        Err((error, _)) if error.refuses_batches(&EXPIRED) => asked,
        answered => answered,
    }
}

/// Asks until a page was read; `taken` hears of it as soon as the service has taken the request.
async fn ask_once(
    asker: &Session,
    wanted: &PageRequest,
    source: ResponseInfo,
    early: &mut Early,
    taken: impl Fn(),
) -> PageResult {
    let mut asking = asker.tries(wanted);
    loop {
        let (answer, place) = asking.send().await?;
        taken();
        let reading = PageDecoder::new(Version::V2, asker.lenient, source, asker.blank());
        match read_page(answer, place, reading, early).await {
            Ok(got) => return Ok(got),
            Err(error) => asking.failed(error).await?,
        }
    }
}

/// Reads a page; tells the cursor of the next one as soon as all of this one is there.
async fn read_page(
    mut answer: Response,
    place: Permit<'_>,
    mut reading: PageDecoder,
    early: &mut Early,
) -> Result<(DecodedPage, Option<String>), ServiceError> {
    let mut last = None;
    let mut size = 0;
    while let Some(text) = answer.text(PIECE).await? {
        size += text.len();
        if size > LARGEST {
            let why = format!("a page is larger than {} MB", LARGEST >> 20);
            return Err(answer.broken(why));
        }
        if answer.has_ended() {
            last = Some(text);
            break;
        }
        reading
            .feed(&text)
            .map_err(|unreadable| answer.unreadable(unreadable))?;
    }
    place.served();
    let last = last.unwrap_or_default();
    let early = early.take();
    if let (Some(early), Some(cursor)) = (early, last_cursor(&last)) {
        // Where nobody waits for it, nobody needs it.
        let _ = early.send(cursor.to_owned());
    }
    // First the next request is sent, then this answer is read.
    task::yield_now().await;
    let read = reading.feed(&last).and_then(|()| reading.finish());
    read.map_err(|unreadable| answer.unreadable(unreadable))
}

/// Returns the cursor at the end of a page. Where the page is valid and ends like this, no string can
/// hide it: a quote inside of one would have a backslash before it.
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
