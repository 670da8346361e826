//! Version 1: a window fetched at once, and cut where it may not be whole.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use super::decode::{DecodedPage, PageDecoder, ResponseInfo};
use super::limiter::Permit;
use super::sender::{WindowOutcome, WindowSender};
use super::session::Refused;
use super::session::{PageRequest, Session};
use super::v1_sample::{self, CreationSample, WindowHint};
use super::window;
use crate::batch::Batch;
use crate::batch::range::Range;
use crate::client::{Fault, Response, ServiceError, Version};
use crate::error::Failure;

/// From so many batches on, an answer may not be whole (interface, section 8).
pub(super) const LIMIT: usize = 1000;
/// What a service may answer where it would be more (interface, section 8).
pub(super) const TOO_MUCH: [u16; 2] = [413, 422];
/// What is read of an answer at a time.
pub(super) const PIECE: usize = 1 << 20;
/// The same batches fill two seconds where they lie on the bound between them; not three.
const SAME_SECONDS: u32 = 3;

/// Fetches one window.
pub(super) struct V1Walk {
    pub(super) asker: Arc<Session>,
    pub(super) window: Range,
    pub(super) is_whole: bool,
    hint: WindowHint,
    pub(super) lane: WindowSender,
    pub(super) repeats: Arc<RepeatGuard>,
}

/// What an answer was.
enum V1Answer {
    Whole(DecodedPage),
    /// So much that there may be more; when some of it was created.
    Crowded(CreationSample),
}

impl V1Walk {
    /// Prepares to fetch `window`, which may be the whole range.
    pub(super) fn new(
        asker: Arc<Session>,
        window: Range,
        is_whole: bool,
        hint: WindowHint,
        lane: WindowSender,
        repeats: Arc<RepeatGuard>,
    ) -> Self {
        Self {
            asker,
            window,
            is_whole,
            hint,
            lane,
            repeats,
        }
    }

    pub(super) async fn run(&mut self) -> Result<WindowOutcome, Failure> {
        let Some(halves) = window::halves(&self.window) else {
            return self.fetch_uncut().await;
        };
        match self.ask(self.window).await {
            Ok(V1Answer::Whole(got)) => {
                self.lane.deliver(got).await;
                Ok(WindowOutcome::Done)
            }
            Ok(V1Answer::Crowded(sample)) => {
                Ok(WindowOutcome::Cut(sample.cut(&self.window, self.hint)))
            }
            Err((error, _)) if error.refuses_batches(&TOO_MUCH) => {
                log::info!("{error}; asking for half of it");
                match self.hint.newest_first {
                    Some(newest_first) => Ok(WindowOutcome::Cut(v1_sample::extents(
                        halves.into(),
                        newest_first,
                        0,
                    ))),
                    None => self.find_order(halves).await,
                }
            }
            Err((error, tries)) => Err(tries.failure(error)),
        }
    }

    /// Asks for parts of a window that was refused, the earliest first, until one of them shows in
    /// which order the service answers: the parts must come in the same order.
    async fn find_order(&self, [earlier, later]: [Range; 2]) -> Result<WindowOutcome, Failure> {
        let mut ahead = vec![later, earlier];
        let mut small = Vec::new();
        let mut batches = 0;
        let mut newest_first = None;
        while newest_first.is_none()
            && let Some(window) = ahead.pop()
        {
            match self.ask(window).await {
                Ok(V1Answer::Whole(got)) => {
                    newest_first =
                        v1_sample::is_newest_first(&got.page.created().collect::<Vec<_>>());
                    batches += got.received;
                    small.push(window);
                    self.asker.give_back(got.page);
                }
                Ok(V1Answer::Crowded(sample)) => {
                    newest_first = Some(sample.is_newest_first());
                    ahead.push(window);
                }
                Err((error, _)) if error.refuses_batches(&TOO_MUCH) => {
                    if let Some([earlier, later]) = window::halves(&window) {
                        ahead.extend([later, earlier]);
                    } else {
                        // This will end the run, unless its seconds can be had alone.
                        newest_first = Some(false);
                        ahead.push(window);
                    }
                }
                Err((error, tries)) => return Err(tries.failure(error)),
            }
        }
        ahead.reverse();
        let parts = [joined(small, batches), ahead].concat();
        Ok(WindowOutcome::Cut(v1_sample::extents(
            parts,
            newest_first.unwrap_or_default(),
            0,
        )))
    }

    /// Asks for `window` until its answer was read, or is known to be too large.
    async fn ask(&self, window: Range) -> Result<V1Answer, Refused> {
        let wanted = PageRequest {
            version: Version::V1,
            range: window,
            next_token: None,
        };
        let source = ResponseInfo {
            window: (!self.is_whole || window != self.window).then_some(window),
            page: 1,
        };
        let asker = &self.asker;
        let mut asking = asker.tries(&wanted);
        loop {
            let (answer, place) = asking.send().await?;
            let reading = PageDecoder::new(Version::V1, asker.lenient, source, asker.blank());
            match read(asker, answer, place, reading).await {
                Ok(answered) => return Ok(answered),
                Err(error) => asking.failed(error).await?,
            }
        }
    }
}

/// Joins `windows`, which lie side by side and hold so many batches, if one answer can hold them all.
fn joined(windows: Vec<Range>, batches: usize) -> Vec<Range> {
    match (windows.first(), windows.last()) {
        (Some(first), Some(last)) if batches < LIMIT => vec![Range {
            start: first.start,
            ..*last
        }],
        _ => windows,
    }
}

/// Reads an answer: if it is large, only when its batches were created.
async fn read(
    asker: &Session,
    mut answer: Response,
    place: Permit<'_>,
    mut reading: PageDecoder,
) -> Result<V1Answer, ServiceError> {
    let mut sample = CreationSample::default();
    while let Some(text) = answer.text(PIECE).await? {
        reading
            .feed(&text)
            .map_err(|unreadable| answer.unreadable(unreadable))?;
        if reading.got.received >= LIMIT {
            let page = reading.take(asker.blank()).page;
            let created = |batch: &Batch| batch.created().map(|created| created.second);
            let is_enough = page.batches.iter().any(|batch| sample.add(created(batch)));
            asker.give_back(page);
            if is_enough {
                return Ok(V1Answer::Crowded(sample));
            }
        }
    }
    place.served();
    let (got, _) = reading
        .finish()
        .map_err(|unreadable| answer.unreadable(unreadable))?;
    Ok(if got.received < LIMIT {
        V1Answer::Whole(got)
    } else {
        V1Answer::Crowded(sample)
    })
}

/// Finds out that a service answers ever the same batches: then it does not look at dates, and would
/// be asked for every second there is.
pub(super) struct RepeatGuard {
    hasher: RandomState,
    /// The batches of the last second that held as much as an answer may, as a digest, and how many
    /// seconds held just these.
    last: Mutex<(u64, u32)>,
}

impl RepeatGuard {
    pub(super) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            last: Mutex::new((0, 0)),
        }
    }

    pub(super) fn digest(&self, digest: u64, batches: &[Batch]) -> u64 {
        let ids = batches.iter().map(|batch| self.hasher.hash_one(batch.id()));
        ids.fold(digest, u64::wrapping_add)
    }

    pub(super) fn check(&self, digest: u64) -> Result<(), ServiceError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = match *last {
            (same, count) if same == digest => (same, count + 1),
            _ => (digest, 1),
        };
        if last.1 < SAME_SECONDS {
            return Ok(());
        }
        let why = "version 1 answers the same batches whatever the dates";
        Err(ServiceError {
            request: "GET /v1/batches".to_owned(),
            fault: Fault::Broken(why.to_owned()),
        })
    }
}
