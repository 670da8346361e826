//! Version 1: fetches a window in one response, and splits it if the response may be incomplete.
//!
//! A window of two adjacent seconds cannot be split, because a batch created between them would be in neither
//! part. If it has too many batches, it is requested as a whole and then second by second: batches on whole
//! seconds are then complete, and between them there is as much as version 1 returns.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::decode::{DecodedPage, PageDecoder, ResponseInfo};
use super::queue::{WindowOutcome, WindowSender};
use super::repeats::RepeatGuard;
use super::session::FetchSession;
use super::v1_sample::{self, CreationSample};
use super::window::{self, WindowHint};
use crate::batch::Batch;
use crate::batch::dedup::Id;
use crate::batch::range::Range;
use crate::client::{PageRequest, Permit, Response, ServiceError, Version};
use crate::error::Failure;

/// A response with this many batches may be incomplete (interface, section 8).
const LIMIT: usize = 1000;
/// Status codes for a response that would be too large (interface, section 8).
const TOO_LARGE: [u16; 2] = [413, 422];
/// Bytes to read of a response at a time.
const CHUNK: usize = 1 << 20;
/// Fetches one window.
pub(super) struct V1Walk {
    session: Arc<FetchSession>,
    window: Range,
    is_whole_range: bool,
    hint: WindowHint,
    pub(super) sender: WindowSender,
    repeat_guard: Arc<RepeatGuard>,
}

/// The response for one window.
enum V1Response {
    Complete(DecodedPage),
    /// Too many batches, so the response may be incomplete; a sample of the creation dates.
    Oversized(CreationSample),
}

impl V1Walk {
    /// Prepares to fetch `window`, which may be the whole range.
    pub(super) fn new(
        session: Arc<FetchSession>,
        window: Range,
        is_whole_range: bool,
        hint: WindowHint,
        sender: WindowSender,
        repeat_guard: Arc<RepeatGuard>,
    ) -> Self {
        Self {
            session,
            window,
            is_whole_range,
            hint,
            sender,
            repeat_guard,
        }
    }

    pub(super) async fn run(&mut self) -> Result<WindowOutcome, Failure> {
        let Some(halves) = window::halves(&self.window) else {
            return self.fetch_dense().await;
        };
        match self.fetch(self.window).await {
            Ok(V1Response::Complete(decoded)) => {
                self.sender.deliver(decoded).await;
                Ok(WindowOutcome::Done)
            }
            Ok(V1Response::Oversized(sample)) => {
                Ok(WindowOutcome::Replaced(sample.cut(&self.window, self.hint)))
            }
            Err(error) if error.refuses_batches(&TOO_LARGE) => {
                log::info!("{error}; requesting half of the window");
                match self.hint.newest_first {
                    Some(newest_first) => Ok(WindowOutcome::Replaced(v1_sample::ordered_parts(
                        halves.into(),
                        newest_first,
                        0,
                    ))),
                    None => self.find_order(halves).await,
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Requests parts of a refused window, earliest first, until one shows in which order the service returns
    /// batches. The parts must be fetched in that order.
    async fn find_order(&self, [earlier, later]: [Range; 2]) -> Result<WindowOutcome, Failure> {
        let mut pending = vec![later, earlier];
        let mut complete = Vec::new();
        let mut batches = 0;
        let mut newest_first = None;
        while newest_first.is_none()
            && let Some(window) = pending.pop()
        {
            match self.fetch(window).await {
                Ok(V1Response::Complete(decoded)) => {
                    newest_first =
                        v1_sample::is_newest_first(&decoded.page.created().collect::<Vec<_>>());
                    batches += decoded.received;
                    complete.push(window);
                    self.session.recycle(decoded.page);
                }
                Ok(V1Response::Oversized(sample)) => {
                    newest_first = Some(sample.is_newest_first());
                    pending.push(window);
                }
                Err(error) if error.refuses_batches(&TOO_LARGE) => {
                    if let Some([earlier, later]) = window::halves(&window) {
                        pending.extend([later, earlier]);
                    } else {
                        // This ends the run, unless each second can be fetched on its own.
                        newest_first = Some(false);
                        pending.push(window);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        pending.reverse();
        let parts = [joined(complete, batches), pending].concat();
        Ok(WindowOutcome::Replaced(v1_sample::ordered_parts(
            parts,
            newest_first.unwrap_or_default(),
            0,
        )))
    }

    /// Requests `window` until its response is read or known to be too large.
    async fn fetch(&self, window: Range) -> Result<V1Response, ServiceError> {
        let request = PageRequest::new(Version::V1, &window, None);
        let info = ResponseInfo {
            window: (!self.is_whole_range || window != self.window).then_some(window),
            page: 1,
        };
        let session = &self.session;
        let read = |response, permit| {
            let decoder =
                PageDecoder::new(Version::V1, session.lenient, info, session.blank_page());
            read(session, response, permit, decoder)
        };
        session.client.request(&request, read).await
    }
}

/// Joins adjacent `windows` if one response can hold all their batches.
fn joined(windows: Vec<Range>, batches: usize) -> Vec<Range> {
    match (windows.first(), windows.last()) {
        (Some(first), Some(last)) if batches < LIMIT => vec![Range {
            start: first.start,
            ..*last
        }],
        _ => windows,
    }
}

/// Reads a response. If it is too large, only the creation dates are sampled.
async fn read(
    session: &FetchSession,
    mut response: Response,
    permit: Permit,
    mut decoder: PageDecoder,
) -> Result<V1Response, ServiceError> {
    let mut sample = CreationSample::default();
    while let Some(text) = response.text(CHUNK).await? {
        decoder
            .feed(&text)
            .map_err(|error| response.parse_error(error))?;
        if decoder.decoded.received >= LIMIT {
            let page = decoder.take(session.blank_page()).page;
            let created = |batch: &Batch| batch.created().map(|created| created.second);
            let is_enough = page.batches.iter().any(|batch| sample.add(created(batch)));
            session.recycle(page);
            if is_enough {
                return Ok(V1Response::Oversized(sample));
            }
        }
    }
    permit.succeeded();
    let (decoded, _) = decoder
        .finish()
        .map_err(|error| response.parse_error(error))?;
    Ok(if decoded.received < LIMIT {
        V1Response::Complete(decoded)
    } else {
        V1Response::Oversized(sample)
    })
}

/// Batches of a window that were delivered.
#[derive(Default)]
struct SentBatches {
    all: HashSet<Id>,
    /// Those that no request for a single second has returned so far.
    between: HashSet<Id>,
}

impl SentBatches {
    /// Drops the batches that were delivered before.
    fn retain_new(&mut self, mut decoded: DecodedPage) -> DecodedPage {
        decoded.page.retain(|id| {
            self.between.remove(id);
            self.all.insert(*id)
        });
        decoded
    }
}

/// A response that was delivered completely.
struct Streamed {
    received: usize,
    /// A digest of its batches, independent of their order.
    digest: u64,
}

impl V1Walk {
    /// Fetches a window that cannot be split.
    async fn fetch_dense(&mut self) -> Result<WindowOutcome, Failure> {
        let mut sent = SentBatches::default();
        let seconds = window::single_seconds(&self.window);
        let refused = match self.stream(self.window, &mut sent).await {
            Ok(Streamed { received, .. }) if received < LIMIT => return Ok(WindowOutcome::Done),
            Ok(Streamed { received, digest }) => {
                self.repeat_guard.check(digest).map_err(Failure::from)?;
                if seconds.is_none() {
                    self.note_truncated(self.window, received);
                }
                None
            }
            Err(error) if error.refuses_batches(&TOO_LARGE) => Some(error),
            Err(error) => return Err(error.into()),
        };
        let Some(seconds) = seconds else {
            return match refused {
                Some(refused) => Err(too_dense(refused, &self.window)),
                None => Ok(WindowOutcome::Done),
            };
        };
        sent.between.clone_from(&sent.all);
        let mut total = 0;
        for second in seconds {
            log::info!("requesting {} on its own", second.describe());
            let streamed = self.stream(second, &mut sent).await;
            let streamed = streamed.map_err(|error| {
                if error.refuses_batches(&TOO_LARGE) {
                    too_dense(error, &second)
                } else {
                    error.into()
                }
            })?;
            total += streamed.received;
            if streamed.received >= LIMIT {
                self.note_truncated(second, streamed.received);
            }
        }
        // Too many for one response, but few on the two seconds: the rest lies between them.
        match refused {
            Some(refused) if total < LIMIT => return Err(too_dense(refused, &self.window)),
            _ => {}
        }
        if !sent.between.is_empty() {
            self.note_truncated(self.window, sent.all.len());
        }
        Ok(WindowOutcome::Done)
    }

    /// Requests `window` and delivers batches not yet `sent` while they arrive, because the response may have
    /// any size. After a retry, batches delivered before are skipped.
    async fn stream(
        &mut self,
        window: Range,
        sent: &mut SentBatches,
    ) -> Result<Streamed, ServiceError> {
        let request = PageRequest::new(Version::V1, &window, None);
        let info = ResponseInfo {
            window: (!self.is_whole_range).then_some(window),
            page: 1,
        };
        let session = Arc::clone(&self.session);
        let issues = self.sender.totals.issues.clone();
        let walk = Mutex::new((self, sent));
        let (session, walk, issues) = (&session, &walk, &issues);
        let read = |mut response, permit: Permit| async move {
            // This may wait for its turn in the queue, so other requests must be able to start.
            permit.succeeded();
            let (walk, sent) = &mut *walk.lock().await;
            // A retry finds the same issues again.
            walk.sender.totals.issues.clone_from(issues);
            let decoder =
                PageDecoder::new(Version::V1, session.lenient, info, session.blank_page());
            walk.stream_response(&mut response, decoder, sent).await
        };
        session.client.request(&request, read).await
    }

    /// Delivers one response.
    async fn stream_response(
        &mut self,
        response: &mut Response,
        mut decoder: PageDecoder,
        sent: &mut SentBatches,
    ) -> Result<Streamed, ServiceError> {
        let mut digest = 0;
        while let Some(text) = response.text(CHUNK).await? {
            let result = decoder.feed(&text);
            result.map_err(|error| response.parse_error(error))?;
            if decoder.decoded.received >= LIMIT {
                let decoded = decoder.take(self.session.blank_page());
                digest = self.repeat_guard.digest(digest, &decoded.page.batches);
                self.sender.deliver(sent.retain_new(decoded)).await;
            }
        }
        let received = decoder.decoded.received;
        let finished = decoder.finish();
        let (decoded, _) = finished.map_err(|error| response.parse_error(error))?;
        digest = self.repeat_guard.digest(digest, &decoded.page.batches);
        self.sender.deliver(sent.retain_new(decoded)).await;
        Ok(Streamed { received, digest })
    }

    fn note_truncated(&mut self, window: Range, received: usize) {
        self.sender.totals.issues.add_truncated(format!(
            "{received} batches within one second ({}); version 1 may have returned only some of them",
            window.describe()
        ));
    }
}

/// Returns the failure for a window that version 1 cannot return.
fn too_dense(error: ServiceError, window: &Range) -> Failure {
    Failure::from(error).hint(format!(
        "more batches were created within one second ({}) than version 1 can return; use `--api v2`, which has no such limit",
        window.describe()
    ))
}
