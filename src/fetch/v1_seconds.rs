//! Version 1: a window of two neighbouring seconds, or of one. It cannot be cut as others are, because a
//! batch created between the two would be in neither part.
//!
//! Where it holds too much, it is kept whole, and each of its seconds is asked for as well: what lies on
//! them is complete then, and what lies between them is as much as version 1 lets see.

use std::collections::HashSet;

use super::decode::{DecodedPage, PageDecoder, ResponseInfo};
use super::sender::WindowOutcome;
use super::session::{PageRequest, Refused};
use super::v1::{LIMIT, PIECE, TOO_MUCH, V1Walk};
use super::window;
use crate::batch::dedup::Id;
use crate::batch::range::Range;
use crate::client::{Response, ServiceError, Version};
use crate::error::Failure;

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
    pub(super) async fn fetch_uncut(&mut self) -> Result<WindowOutcome, Failure> {
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
        let asker = std::sync::Arc::clone(&self.asker);
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
