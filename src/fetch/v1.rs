//! Version 1: fetches a window in one response, and splits it if the response may be incomplete.
//!
//! A window of two adjacent seconds cannot be split, because a batch created between them would be in neither
//! part. If it has too many batches, it is requested as a whole and then second by second: batches on whole
//! seconds are then complete, and between them there is as much as version 1 returns: nothing if it refuses the
//! window as a whole. Unless that is certainly all, a warning says so.
//!
//! The parts must return all batches of the response for the whole range. If they do not, the dates are compared with a
//! field that some batches lack, and the whole range is requested again, without splitting it.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::decode::{DataIssues, DecodedPage, ResponseInfo};
use super::pending::{PendingPage, V1_LIMIT};
use super::v1_sample::{self, CreationSample};
use super::walk::{WalkOptions, WalkStep, WindowEnd};
use super::window::{self, LIKELY_FIRST, WalkMode, WindowHint};
use crate::batch::dedup::{Arrival, DedupSet};
use crate::batch::page::FirstPageIds;
use crate::batch::range::Range;
use crate::batch::{Batch, Timestamp};
use crate::client::{ServiceError, Version};
use crate::error::Failure;
use crate::text;

/// The number of batches to remember of the response for the whole range.
const MAX_WHOLE: usize = 100_000;
/// Status codes for a response that would be too large (interface, section 8).
const TOO_LARGE: [u16; 2] = [413, 422];

/// Requests `window`. Messages name every window but the whole range.
fn request(options: &WalkOptions, window: Range) -> PendingPage {
    let info = ResponseInfo {
        window: (window != options.range).then_some(window),
        page: 1,
    };
    PendingPage::new(&options.session, Version::V1, window, None, info, None)
}

/// Walks a window that can be split.
pub(super) struct V1Walk {
    options: WalkOptions,
    window: Range,
    halves: [Range; 2],
    hint: WindowHint,
    /// Whether to split the window if the response may be incomplete.
    is_split: bool,
    pending: Option<PendingPage>,
    sample: CreationSample,
    /// The batches of the response for the whole range. Its parts must return them again.
    whole: FirstPageIds,
    /// Number of batches returned.
    returned: u64,
    is_done: bool,
}

impl V1Walk {
    /// Prepares to walk `window`, which consists of `halves`.
    pub(super) fn new(
        options: WalkOptions,
        window: Range,
        halves: [Range; 2],
        mode: WalkMode,
    ) -> Self {
        Self {
            options,
            window,
            halves,
            hint: match mode {
                WalkMode::V1(hint) => hint,
                _ => WindowHint::default(),
            },
            is_split: mode != WalkMode::Full,
            pending: None,
            sample: CreationSample::default(),
            whole: FirstPageIds::new(),
            returned: 0,
            is_done: false,
        }
    }

    pub(super) async fn next(&mut self) -> Result<WalkStep, Failure> {
        if self.is_done {
            return Ok(WalkStep::End(WindowEnd::Done(DataIssues::default())));
        }
        loop {
            let pending = self
                .pending
                .get_or_insert_with(|| request(&self.options, self.window));
            let mut decoded = match pending.next().await {
                Ok(decoded) => decoded,
                Err(error) if error.refuses_batches(&TOO_LARGE) => {
                    log::info!("{error}; requesting half of the window");
                    return self.split_in_half().await.map(WalkStep::End);
                }
                Err(error) => return Err(error.into()),
            };
            if decoded.is_retry {
                self.sample = CreationSample::default();
                self.whole.clear();
                decoded.refetched = std::mem::take(&mut self.returned);
            }
            self.is_done = !decoded.page.is_continued;
            self.options.session.may_be_limit(decoded.received);
            let is_enough = self.sample.add_all(&decoded.page.batches);
            if self.window == self.options.range && self.whole.len() < MAX_WHOLE {
                self.whole.extend(decoded.page.ids());
            }
            if decoded.received < V1_LIMIT || !self.is_split {
                self.returned += decoded.page.batches.len() as u64;
                return Ok(WalkStep::Page(decoded));
            }
            self.options.session.recycle(decoded.page);
            if is_enough || self.is_done {
                self.pending = None;
                let sample = std::mem::take(&mut self.sample);
                let parts = sample.cut(&self.window, self.hint);
                let whole = std::mem::take(&mut self.whole);
                return Ok(WalkStep::End(WindowEnd::Split(parts, whole)));
            }
        }
    }

    /// Splits the window after the service refused it.
    async fn split_in_half(&self) -> Result<WindowEnd, Failure> {
        let (parts, newest_first) = match self.hint.newest_first {
            Some(newest_first) => (self.halves.into(), newest_first),
            None => self.find_order().await?,
        };
        let parts = v1_sample::ordered_parts(parts, newest_first, 0);
        Ok(WindowEnd::Split(parts, FirstPageIds::new()))
    }

    /// Requests parts of a refused window, earliest first, until one shows in which order the service returns
    /// batches. The parts must be fetched in that order.
    async fn find_order(&self) -> Result<(Vec<Range>, bool), Failure> {
        let [earlier, later] = self.halves;
        let mut pending = vec![later, earlier];
        let mut complete = Vec::new();
        let mut batches = 0;
        let mut newest_first = None;
        while newest_first.is_none()
            && let Some(window) = pending.pop()
        {
            match self.sample(window).await {
                Ok((sample, received)) if received < V1_LIMIT => {
                    newest_first = sample.order();
                    batches += received;
                    complete.push(window);
                }
                Ok((sample, _)) => {
                    newest_first = Some(sample.order().unwrap_or_default());
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
        Ok((parts, newest_first.unwrap_or_default()))
    }

    /// Samples the creation dates of `window`; also returns the number of batches received.
    async fn sample(&self, window: Range) -> Result<(CreationSample, usize), ServiceError> {
        let mut pending = request(&self.options, window);
        let mut sample = CreationSample::default();
        loop {
            let decoded = pending.next().await?;
            if decoded.is_retry {
                sample = CreationSample::default();
            }
            let is_enough = sample.add_all(&decoded.page.batches);
            if is_enough || !decoded.page.is_continued {
                return Ok((sample, decoded.received));
            }
            self.options.session.recycle(decoded.page);
        }
    }
}

/// Joins adjacent `windows` if one response can hold all their batches.
fn joined(windows: Vec<Range>, batches: usize) -> Vec<Range> {
    match (windows.first(), windows.last()) {
        (Some(first), Some(last)) if batches < V1_LIMIT => vec![Range {
            start: first.start,
            ..*last
        }],
        _ => windows,
    }
}

/// Walks a window that cannot be split: as a whole, and then, if it has too many batches, second by second.
pub(super) struct V1Seconds {
    options: WalkOptions,
    window: Range,
    /// The windows to request, the current one first.
    requests: VecDeque<Range>,
    pending: Option<PendingPage>,
    /// Whether the window was refused as a whole, and why.
    refused: Option<ServiceError>,
    /// The batches returned so far, and their number.
    sent: DedupSet,
    returned: usize,
    /// What single seconds returned; `None` while the window is requested as a whole.
    in_seconds: Option<SecondsReceived>,
    issues: DataIssues,
    /// Whether any batch was created outside the window: the service does not filter by creation date, or not by seconds.
    has_others: bool,
    /// A digest of the batches of the current response, independent of their order.
    digest: u64,
    /// The order of the response for the whole window.
    order: DateOrder,
    /// Whether parts of a response were received before it failed.
    was_retried: bool,
}

/// The batches received for single seconds. A batch that only the whole window returned lies between them.
struct SecondsReceived {
    all: DedupSet,
    distinct: usize,
    received: usize,
    /// The number of batches that the whole window returned before.
    in_whole: usize,
}

/// Whether batches are sorted by creation date, so far.
#[derive(Default)]
struct DateOrder {
    last: Option<Timestamp>,
    rises: bool,
    falls: bool,
}

impl DateOrder {
    fn add(&mut self, created: Timestamp) {
        if let Some(last) = &self.last {
            self.rises |= *last < created;
            self.falls |= *last > created;
        }
        self.last = Some(created);
    }

    fn is_sorted(&self) -> bool {
        !(self.rises && self.falls)
    }
}

impl V1Seconds {
    pub(super) fn new(options: WalkOptions, window: Range) -> Self {
        Self {
            options,
            window,
            requests: VecDeque::from([window]),
            pending: None,
            refused: None,
            sent: DedupSet::new(),
            returned: 0,
            in_seconds: None,
            issues: DataIssues::default(),
            has_others: false,
            digest: 0,
            order: DateOrder::default(),
            was_retried: false,
        }
    }

    pub(super) async fn next(&mut self) -> Result<WalkStep, Failure> {
        while let Some(&window) = self.requests.front() {
            let pending = self.pending.get_or_insert_with(|| {
                if self.in_seconds.is_some() {
                    log::info!("requesting {} on its own", window.describe());
                }
                request(&self.options, window)
            });
            let decoded = match pending.next().await {
                Ok(decoded) => decoded,
                Err(error) if error.refuses_batches(&TOO_LARGE) => {
                    if self.in_seconds.is_some() {
                        return Err(too_dense(error, &window));
                    }
                    self.refused = Some(error);
                    self.requests.clear();
                    self.request_seconds();
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            return self.take(decoded).map(WalkStep::Page);
        }
        self.end().map(WalkStep::End)
    }

    /// Removes the batches that were requested again. Others may come twice, which the caller counts.
    fn take(&mut self, mut decoded: DecodedPage) -> Result<DecodedPage, Failure> {
        if decoded.is_retry {
            self.digest = 0;
            self.order = DateOrder::default();
            self.was_retried = true;
        }
        self.digest = self
            .options
            .repeat_guard
            .digest(self.digest, &decoded.page.batches);
        let is_other = |second| !self.window.contains(second);
        self.has_others |= decoded.page.created().any(is_other);
        if let Some(in_seconds) = &mut self.in_seconds {
            let arrivals = in_seconds.all.add(&decoded.page.digests).arrivals;
            in_seconds.distinct += count_new(&arrivals);
        } else {
            let created = decoded.page.batches.iter().filter_map(Batch::created);
            created.for_each(|created| self.order.add(created));
        }
        let arrivals = self.sent.add(&decoded.page.digests).arrivals;
        self.returned += count_new(&arrivals);
        if self.was_retried || self.in_seconds.is_some() {
            decoded.page.remove_duplicates(&arrivals);
        }
        if !decoded.page.is_continued {
            self.end_response(decoded.received)?;
        }
        Ok(decoded)
    }

    /// Decides what to request after a complete response with this number of batches.
    fn end_response(&mut self, received: usize) -> Result<(), Failure> {
        self.pending = None;
        let window = self.requests.pop_front().unwrap_or(self.window);
        let digest = std::mem::take(&mut self.digest);
        if let Some(in_seconds) = &mut self.in_seconds {
            in_seconds.received += received;
            if received >= V1_LIMIT {
                let is_limit = self.options.session.may_be_limit(received);
                self.note_truncated(window, received, is_limit);
            }
        } else if received >= V1_LIMIT {
            let session = &self.options.session;
            let checked = self.options.repeat_guard.check(digest);
            checked.inspect_err(|_| session.is_repeating.store(true, Ordering::Relaxed))?;
            let is_limit = self.options.session.may_be_limit(received);
            if !self.request_seconds() {
                self.note_truncated(window, received, is_limit);
            }
        }
        Ok(())
    }

    /// Requests each second of the window next; returns false if it is a single second.
    fn request_seconds(&mut self) -> bool {
        self.pending = None;
        let Some(seconds) = window::single_seconds(&self.window) else {
            return false;
        };
        self.requests.extend(seconds);
        self.in_seconds = Some(SecondsReceived {
            all: DedupSet::new(),
            distinct: 0,
            received: 0,
            in_whole: self.returned,
        });
        true
    }

    fn end(&mut self) -> Result<WindowEnd, Failure> {
        let Some(seconds) = &self.in_seconds else {
            return Ok(WindowEnd::Done(std::mem::take(&mut self.issues)));
        };
        let is_partial = match self.refused.take() {
            // Too many for one response, but few on the two seconds: the rest lies between them.
            Some(refused) if seconds.received < V1_LIMIT => {
                return Err(too_dense(refused, &self.window));
            }
            Some(_) => true,
            // Between the seconds is what only the whole window returned. Without an order, its rest may be there too.
            None => self.returned > seconds.in_whole && !self.order.is_sorted(),
        };
        if is_partial || seconds.distinct != self.returned {
            self.note_truncated(self.window, self.returned, true);
        }
        Ok(WindowEnd::Done(std::mem::take(&mut self.issues)))
    }

    /// Records a second that may be incomplete. A response with fewer batches than another one was not cut off.
    fn note_truncated(&mut self, window: Range, received: usize, is_limit: bool) {
        self.issues.held_back |= is_limit;
        let batches = text::thousands(received as u64);
        let second = window.start.unwrap_or_default();
        let window = window.describe();
        let what = if self.has_others {
            format!(
                "{batches} batches for one second ({window}), many of them created at other times"
            )
        } else {
            format!("{batches} batches within one second ({window})")
        };
        self.issues.crowded.insert(second);
        self.issues.crowded_warning.get_or_insert(format!(
            "{what}; version 1 may have returned only some of them"
        ));
    }
}

fn count_new(arrivals: &[Arrival]) -> usize {
    let is_new = |arrival: &&Arrival| **arrival == Arrival::New;
    arrivals.iter().filter(is_new).count()
}

/// Returns the failure for a window that version 1 cannot return.
fn too_dense(error: ServiceError, window: &Range) -> Failure {
    let failure = Failure::from(error);
    if window.end.is_some_and(|end| end < LIKELY_FIRST) {
        // There are no batches: it refuses every window.
        return failure;
    }
    failure.hint(format!(
        "if more batches were created within one second ({}) than version 1 can return, only version 2 (`--api v2`) returns them all",
        window.describe()
    ))
}
