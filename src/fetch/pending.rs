//! One requested page: a task reads and decodes it. A usual page is handed over complete, so that a retry
//! comes before any of its batches are used. A large page is handed over in parts while it arrives, so that
//! memory does not depend on its size.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{self, JoinHandle};

use super::decode::{DecodedPage, PageDecoder, ResponseInfo};
use super::room::Space;
use super::session::FetchSession;
use crate::batch::Page;
use crate::batch::json::split::ParseError;
use crate::batch::range::Range;
use crate::client::{Fault, PageRequest, Permit, Response, ServiceError, Version};
use crate::secret::Secret;

/// Bytes to receive before they are decoded, unless the page ends: the next page is requested before.
const PIECE: usize = 1 << 20;
/// A page above this size is handed over in parts.
const WHOLE_LIMIT: usize = 8 << 20;
/// The next page is requested early only if this one is smaller.
const EARLY_LIMIT: usize = 2 << 20;
/// A response of version 1 with this many batches may be incomplete (interface, section 8). It is handed over
/// in parts, because it may have any size.
pub(super) const V1_LIMIT: usize = 1000;
/// Status codes for a cursor that is no longer valid (interface, section 7: not shown).
pub(super) const EXPIRED: [u16; 4] = [400, 404, 410, 422];
/// Status codes for dates together with a cursor (interface, section 4, rule 4: not shown).
const DATES_REFUSED: [u16; 2] = [400, 422];

/// A page that was requested. Dropping it cancels the request.
pub(super) struct PendingPage {
    task: JoinHandle<Result<DecodedPage, ServiceError>>,
    parts: mpsc::Receiver<DecodedPage>,
    early_cursor: Option<oneshot::Receiver<String>>,
    /// The space for it, if it was acquired before the request.
    space: Option<Space>,
}

impl Drop for PendingPage {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PendingPage {
    /// Requests the batches of `range`, or the page of them at `next_token`.
    pub(super) fn new(
        session: &Arc<FetchSession>,
        version: Version,
        range: Range,
        next_token: Option<Secret>,
        info: ResponseInfo,
        space: Option<Space>,
    ) -> Self {
        let (parts, receiver) = mpsc::channel(1);
        let (early_cursor, early_receiver) = oneshot::channel();
        let reader = PageReader {
            session: Arc::clone(session),
            version,
            info,
            parts,
            early_cursor: Mutex::new(Some(early_cursor)),
            has_parts: AtomicBool::new(false),
        };
        Self {
            task: task::spawn(reader.run(range, next_token)),
            parts: receiver,
            early_cursor: Some(early_receiver),
            space,
        }
    }

    /// Waits for the cursor of the next page, which is often known before this page is decoded; `None` if it
    /// is not known early.
    pub(super) async fn early_cursor(&mut self) -> Option<String> {
        self.early_cursor.take()?.await.ok()
    }

    /// Returns the next part. Must not be called after the last one.
    pub(super) async fn next(&mut self) -> Result<DecodedPage, ServiceError> {
        let result = tokio::select! {
            biased;
            Some(part) = self.parts.recv() => Ok(part),
            result = &mut self.task => match result {
                Ok(result) => result,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                // The runtime is shutting down, and this task with it.
                Err(_) => std::future::pending().await,
            },
        };
        result.map(|mut part| {
            part.space = self.space.take();
            part
        })
    }
}

/// Reads one page in its task.
struct PageReader {
    session: Arc<FetchSession>,
    version: Version,
    info: ResponseInfo,
    parts: mpsc::Sender<DecodedPage>,
    /// `None` if it was sent, or if it is not known early.
    early_cursor: Mutex<Option<oneshot::Sender<String>>>,
    /// Whether any part was handed over.
    has_parts: AtomicBool,
}

impl PageReader {
    /// Reads a page, and repeats the dates with a cursor if the service accepts them together.
    async fn run(
        self,
        range: Range,
        next_token: Option<Secret>,
    ) -> Result<DecodedPage, ServiceError> {
        let with_dates = PageRequest::new(self.version, &range, next_token.clone());
        if range == Range::default() || next_token.is_none() {
            return self.fetch(&with_dates, None).await;
        }
        let without_dates = PageRequest::new(self.version, &Range::default(), next_token);
        let dates_with_cursor = &self.session.dates_with_cursor;
        let mut refused = None;
        if dates_with_cursor.load(Ordering::Relaxed) {
            match self.fetch(&with_dates, None).await {
                Err(error) if error.refuses_batches(&DATES_REFUSED) => refused = Some(error),
                result => return result,
            }
            dates_with_cursor.store(false, Ordering::Relaxed);
        }
        let outside_range = &self.session.outside_range;
        let judged = Some(range).filter(|_| !outside_range.load(Ordering::Relaxed));
        let decoded = match (self.fetch(&without_dates, judged).await, refused) {
            // The request without dates is refused too, so the dates were not the reason.
            (Err(error), Some(refused)) if error.refuses_batches(&EXPIRED) => {
                dates_with_cursor.store(true, Ordering::Relaxed);
                return Err(refused);
            }
            (result, refused) => {
                if refused.is_some() {
                    log::info!(
                        "the service rejects dates together with next_token; sending next_token only"
                    );
                }
                result?
            }
        };
        if judged.is_none_or(|range| is_within(&decoded.page, range)) {
            return Ok(decoded);
        }
        // Either the service filters by another date, or it needs the dates and refused them by mistake.
        match self.fetch(&with_dates, None).await {
            Err(error) if error.refuses_batches(&DATES_REFUSED) => {
                outside_range.store(true, Ordering::Relaxed);
                Ok(decoded)
            }
            result => {
                log::info!("the service accepts dates together with next_token after all");
                dates_with_cursor.store(true, Ordering::Relaxed);
                result
            }
        }
    }

    /// Sends the request until the page is read. A large page must be within `judged`, because it is handed over before it is
    /// complete.
    async fn fetch(
        &self,
        request: &PageRequest,
        judged: Option<Range>,
    ) -> Result<DecodedPage, ServiceError> {
        let read = async |response, permit| {
            let result = self.read(response, permit, judged).await;
            if self.parts.is_closed() {
                // This task is about to be aborted, and so is the connection: an error says nothing.
                std::future::pending::<()>().await;
            }
            result
        };
        self.session.client.request(request, read).await
    }

    fn take_early_cursor(&self) -> Option<oneshot::Sender<String>> {
        self.early_cursor.lock().take()
    }

    /// Reads a response; returns the whole page or its last part.
    async fn read(
        &self,
        mut response: Response,
        permit: Permit,
        judged: Option<Range>,
    ) -> Result<DecodedPage, ServiceError> {
        let mut permit = Some(permit);
        let blank_page = self.session.blank_page();
        let mut decoder =
            PageDecoder::new(self.version, self.session.lenient, self.info, blank_page);
        decoder.decoded.page.answered = Some(Instant::now());
        decoder.decoded.is_retry = self.has_parts.load(Ordering::Relaxed);
        let mut texts = Vec::new();
        let (mut size, mut waiting) = (0, 0);
        while let Some(text) = response.text().await? {
            size += text.len();
            waiting += text.len();
            texts.push(text);
            if response.has_ended() {
                break;
            }
            if waiting < PIECE {
                continue;
            }
            waiting = 0;
            let decoded = self.decode(&mut decoder, &mut texts);
            decoded.map_err(|error| response.parse_error(error))?;
            let is_long = self.version == Version::V1 && decoder.decoded.received >= V1_LIMIT;
            if size > WHOLE_LIMIT || is_long {
                if judged.is_some_and(|range| !is_within(&decoder.decoded.page, range)) {
                    let why = "without dates, it returned batches of other dates".to_owned();
                    return Err(response.fault(Fault::Broken(why)));
                }
                // The caller may wait for other requests before it takes this part.
                if let Some(permit) = permit.take() {
                    permit.succeeded();
                }
                self.take_early_cursor();
                let part = decoder.take(self.session.blank_page());
                self.has_parts.store(true, Ordering::Relaxed);
                // Without a receiver, this task is about to be aborted: see `fetch`.
                let _ = response.pause(self.parts.send(part)).await;
            }
        }
        if let Some(permit) = permit {
            permit.succeeded();
        }
        if let Some(early_cursor) = self.take_early_cursor().filter(|_| size <= EARLY_LIMIT)
            && let Some(cursor) = texts.last().and_then(|last| last_cursor(last))
        {
            // Without a receiver, the cursor is not needed.
            let _ = early_cursor.send(cursor.to_owned());
            // Let the next request be sent before this response is decoded.
            task::yield_now().await;
        }
        let decoded = self.decode(&mut decoder, &mut texts);
        let finished = decoded.and_then(|()| decoder.finish());
        finished.map_err(|error| response.parse_error(error))
    }

    /// Decodes the next texts of the response. The page keeps those that contain its batches.
    fn decode(
        &self,
        decoder: &mut PageDecoder,
        texts: &mut Vec<Arc<String>>,
    ) -> Result<(), ParseError> {
        for text in texts.drain(..) {
            decoder.feed(&text)?;
            if let Some(buffer) = Arc::into_inner(text) {
                self.session.client.service.buffers().recycle(buffer);
            }
        }
        Ok(())
    }
}

/// Returns whether all batches of `page` were created in `range`, as far as known.
fn is_within(page: &Page, range: Range) -> bool {
    page.created().all(|second| range.contains(second))
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
