//! Version 1: a window fetched at once, and cut where it may not be whole.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use super::asker::{Asker, Wanted};
use super::crew::Place;
use super::lane::{Lane, Outcome};
use super::page::Roll;
use super::reading::{Got, Reading, Source};
use super::window::{self, Sample};
use crate::batch::Batch;
use crate::dates::Range;
use crate::error::Failure;
use crate::service::{Answer, Fault, ServiceError, Version};

/// From so many batches on, an answer may not be whole (interface, section 8).
pub(super) const LIMIT: usize = 1000;
/// So many tell where to cut, where they come in order; the rest would only come again.
const ENOUGH: usize = 4 * LIMIT;
/// What a service may answer where it would be more (interface, section 8).
pub(super) const TOO_MUCH: [u16; 2] = [413, 422];
/// What is read of an answer at a time.
pub(super) const PIECE: usize = 1 << 20;
/// The same batches fill two seconds where they lie on the bound between them; not three.
const SAME_SECONDS: u32 = 3;

/// Fetches one window.
pub(super) struct Flat {
    pub(super) asker: Arc<Asker>,
    pub(super) window: Range,
    pub(super) is_whole: bool,
    workers: usize,
    pub(super) lane: Lane,
    pub(super) repeats: Arc<Repeats>,
}

/// What an answer was.
enum Answered {
    Whole(Got),
    /// So much that there may be more; when some of it was created.
    Crowded(Sample),
}

impl Flat {
    /// Prepares to fetch `window`, which may be the whole range.
    pub(super) fn new(
        asker: Arc<Asker>,
        window: Range,
        is_whole: bool,
        workers: usize,
        lane: Lane,
        repeats: Arc<Repeats>,
    ) -> Self {
        Self {
            asker,
            window,
            is_whole,
            workers,
            lane,
            repeats,
        }
    }

    pub(super) async fn run(&mut self) -> Result<Outcome, Failure> {
        let Some(halves) = window::halves(&self.window) else {
            return self.fetch_uncut().await;
        };
        let wanted = Wanted {
            version: Version::V1,
            range: self.window,
            next_token: None,
        };
        let source = Source {
            window: (!self.is_whole).then_some(self.window),
            page: 1,
        };
        let asker = Arc::clone(&self.asker);
        let mut asking = asker.tries(&wanted);
        let asked = loop {
            let (answer, place) = match asking.send().await {
                Ok(answer) => answer,
                Err(refused) => break Err(refused),
            };
            let reading = Reading::new(Version::V1, asker.lenient, source, asker.blank());
            match sample(&asker, answer, place, reading).await {
                Ok(answered) => break Ok(answered),
                Err(error) => {
                    if let Err(refused) = asking.failed(error).await {
                        break Err(refused);
                    }
                }
            }
        };
        match asked {
            Ok(Answered::Whole(got)) => {
                self.lane.deliver(got).await;
                Ok(Outcome::Done)
            }
            Ok(Answered::Crowded(sample)) => {
                let whole = self.is_whole.then_some(self.window);
                let plan = whole.and_then(|whole| sample.plan(whole, self.workers));
                Ok(match plan {
                    Some(plan) => Outcome::Opened(plan, Roll::new()),
                    None => Outcome::Cut(sample.cut(&self.window)),
                })
            }
            Err((error, _)) if error.refuses_batches(&TOO_MUCH) => {
                log::info!("{error}; asking for half of it");
                Ok(Outcome::Cut(halves.into()))
            }
            Err((error, tries)) => Err(tries.failure(error)),
        }
    }
}

/// Reads a window that can be cut: where it holds much, only when its batches were created.
async fn sample(
    asker: &Asker,
    mut answer: Answer,
    place: Place<'_>,
    mut reading: Reading,
) -> Result<Answered, ServiceError> {
    let mut sample = Sample::default();
    while let Some(text) = answer.text(PIECE).await? {
        reading
            .feed(&text)
            .map_err(|unreadable| answer.unreadable(unreadable))?;
        if reading.got.received >= LIMIT {
            let page = reading.take(asker.blank()).page;
            for batch in &page.batches {
                sample.add(batch.created().map(|created| created.second));
            }
            asker.give_back(page);
            if reading.got.received >= ENOUGH && sample.is_ordered() {
                return Ok(Answered::Crowded(sample));
            }
        }
    }
    place.served();
    let (got, _) = reading
        .finish()
        .map_err(|unreadable| answer.unreadable(unreadable))?;
    Ok(if got.received < LIMIT {
        Answered::Whole(got)
    } else {
        Answered::Crowded(sample)
    })
}

/// Finds out that a service answers ever the same batches: then it does not look at dates, and would
/// be asked for every second there is.
pub(super) struct Repeats {
    hasher: RandomState,
    /// The batches of the last second that held as much as an answer may, as a digest, and how many
    /// seconds held just these.
    last: Mutex<(u64, u32)>,
}

impl Repeats {
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
