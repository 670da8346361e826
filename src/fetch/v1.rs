//! Version 1: a window fetched at once, and cut where it may not be whole.

use std::collections::HashSet;
use std::sync::Arc;

use super::decode::{DecodedPage, PageDecoder, ResponseInfo};
use super::limiter::Permit;
use super::queue::{WindowOutcome, WindowSender};
use super::repeats::RepeatGuard;
use super::session::{PageRequest, Refused, Session};
use super::v1_sample::{self, CreationSample};
use super::window::{self, WindowHint};
use crate::batch::Batch;
use crate::batch::dedup::Id;
use crate::batch::range::Range;
use crate::client::{Response, ServiceError, Version};
use crate::error::Failure;

/// From so many batches on, an answer may not be whole (interface, section 8).
const LIMIT: usize = 1000;
/// What a service may answer where it would be more (interface, section 8).
const TOO_MUCH: [u16; 2] = [413, 422];
/// What is read of an answer at a time.
const PIECE: usize = 1 << 20;
/// Fetches one window.
pub(super) struct V1Walk {
    asker: Arc<Session>,
    window: Range,
    is_whole: bool,
    hint: WindowHint,
    pub(super) lane: WindowSender,
    repeats: Arc<RepeatGuard>,
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

/// Batches of a window that were handed on.
#[derive(Default)]
struct SentBatches {
    all: HashSet<Id>,
    /// Those that no second alone was answered with so far.
    between: HashSet<Id>,
}

impl SentBatches {
    /// Leaves of what came those that are new.
    fn new_of(&mut self, mut got: DecodedPage) -> DecodedPage {
        got.page.retain(|id| {
            self.between.remove(id);
            self.all.insert(*id)
        });
        got
    }
}

/// What an answer was, all of which was handed on.
struct Streamed {
    received: usize,
    /// A digest of its batches, whatever their order.
    digest: u64,
}

impl V1Walk {
    /// Fetches a window that cannot be cut.
    async fn fetch_uncut(&mut self) -> Result<WindowOutcome, Failure> {
        let mut known = SentBatches::default();
        let seconds = window::seconds(&self.window);
        let refused = match self.stream(self.window, &mut known).await {
            Ok(Streamed { received, .. }) if received < LIMIT => return Ok(WindowOutcome::Done),
            Ok(Streamed { received, digest }) => {
                self.repeats
                    .check(digest)
                    .map_err(|error| error.into_failure(1))?;
                if seconds.is_none() {
                    self.note_held_back(self.window, received);
                }
                None
            }
            Err((error, tries)) if error.refuses_batches(&TOO_MUCH) => Some((error, tries)),
            Err((error, tries)) => return Err(tries.failure(error)),
        };
        let Some(seconds) = seconds else {
            return match refused {
                Some(refused) => Err(overfull(refused, &self.window)),
                None => Ok(WindowOutcome::Done),
            };
        };
        known.between.clone_from(&known.all);
        let mut total = 0;
        for second in seconds {
            log::info!("asking for {} alone", second.describe());
            let asked = self.stream(second, &mut known).await;
            let streamed = asked.map_err(|(error, tries)| {
                if error.refuses_batches(&TOO_MUCH) {
                    overfull((error, tries), &second)
                } else {
                    tries.failure(error)
                }
            })?;
            total += streamed.received;
            if streamed.received >= LIMIT {
                self.note_held_back(second, streamed.received);
            }
        }
        // Too much for one answer, and yet not so much on both seconds: the rest lies between them.
        match refused {
            Some(refused) if total < LIMIT => return Err(overfull(refused, &self.window)),
            _ => {}
        }
        if !known.between.is_empty() {
            self.note_held_back(self.window, known.all.len());
        }
        Ok(WindowOutcome::Done)
    }

    /// Asks for `window`, and hands on what is not `known` yet while it arrives: it may be anything. Where it
    /// has to be asked for again, what came before is known by then.
    async fn stream(
        &mut self,
        window: Range,
        known: &mut SentBatches,
    ) -> Result<Streamed, Refused> {
        let wanted = PageRequest {
            version: Version::V1,
            range: window,
            next_token: None,
        };
        let source = ResponseInfo {
            window: (!self.is_whole).then_some(window),
            page: 1,
        };
        let asker = Arc::clone(&self.asker);
        let findings = self.lane.sum.findings.clone();
        let mut asking = asker.tries(&wanted);
        loop {
            let (mut answer, place) = asking.send().await?;
            // While this waits for its turn, others must be able to ask.
            place.served();
            // What was wrong with batches is found anew.
            self.lane.sum.findings = findings.clone();
            let reading = PageDecoder::new(Version::V1, asker.lenient, source, asker.blank());
            match self.hand_on(&mut answer, reading, known).await {
                Ok(streamed) => return Ok(streamed),
                Err(error) => asking.failed(error).await?,
            }
        }
    }

    /// Hands on one answer.
    async fn hand_on(
        &mut self,
        answer: &mut Response,
        mut reading: PageDecoder,
        known: &mut SentBatches,
    ) -> Result<Streamed, ServiceError> {
        let mut digest = 0;
        while let Some(text) = answer.text(PIECE).await? {
            let fed = reading.feed(&text);
            fed.map_err(|unreadable| answer.unreadable(unreadable))?;
            if reading.got.received >= LIMIT {
                let got = reading.take(self.asker.blank());
                digest = self.repeats.digest(digest, &got.page.batches);
                self.lane.deliver(known.new_of(got)).await;
            }
        }
        let received = reading.got.received;
        let finished = reading.finish();
        let (got, _) = finished.map_err(|unreadable| answer.unreadable(unreadable))?;
        digest = self.repeats.digest(digest, &got.page.batches);
        self.lane.deliver(known.new_of(got)).await;
        Ok(Streamed { received, digest })
    }

    fn note_held_back(&mut self, window: Range, received: usize) {
        self.lane.sum.findings.hold_back(format!(
            "{received} batches within one second ({}): version 1 may hold back more",
            window.describe()
        ));
    }
}

/// Says that version 1 has no way to answer `window`.
fn overfull((error, tries): Refused, window: &Range) -> Failure {
    tries.failure(error).hint(format!(
        "within one second ({}) more batches were created than version 1 answers at once: version 2 has no such limit (`--api v2`)",
        window.describe()
    ))
}
