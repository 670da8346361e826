//! Asks one question after another, with patience, within bounds, and remembers what came beside the
//! answers.

use std::sync::Arc;

use super::listing::{BatchList, batches, read};
use super::request::{Bearer, NoBatches, ProbeAnswer, ProbeRequest};
use super::response::{ResponseHeaders, TokenReply};
use super::versions::{BothVersions, MissingVersion};
use crate::secret::Secret;
use crate::client::retry::{RetryPolicy, Tries};
use crate::client::{Fault, RawRequest, Service, ServiceError, Version};
use crate::terminal::Stats;

/// The most requests of a probe, those that are tried again too.
const MOST_REQUESTS: u64 = 60;
/// The most retries of a request that is meant to be refused: 500 may be how the service refuses.
const RETRIES_OF_BAD: u32 = 3;
/// Pages that are looked at to find one batch in a range of seconds.
const PAGES_OF_WINDOW: usize = 3;

/// Whoever asks.
pub(crate) struct Prober {
    service: Arc<Service>,
    policy: RetryPolicy,
    stats: Arc<Stats>,
    /// How many requests had been made before.
    before: u64,
    absent: BothVersions<Option<MissingVersion>>,
    current: BothVersions<Option<TokenReply>>,
    /// Set once the service has gone; nobody waits for it again and again.
    gone: Option<String>,
    lost_in_a_row: u32,
    pub(super) noticed: ResponseHeaders,
    /// How tokens died, in words.
    pub(super) worn: Vec<String>,
    /// Whether dates go along with a cursor, as far as it is known.
    pub(super) dates_with_cursor: bool,
}

impl Prober {
    pub(crate) fn new(
        service: &Arc<Service>,
        policy: RetryPolicy,
        stats: &Arc<Stats>,
        absent: BothVersions<Option<MissingVersion>>,
    ) -> Self {
        Self {
            service: Arc::clone(service),
            policy,
            stats: Arc::clone(stats),
            before: stats.requests.get(),
            absent,
            current: BothVersions::default(),
            gone: None,
            lost_in_a_row: 0,
            noticed: ResponseHeaders::default(),
            worn: Vec::new(),
            dates_with_cursor: true,
        }
    }

    /// Returns how many requests were made.
    pub(crate) fn requests(&self) -> u64 {
        self.stats.requests.get() - self.before
    }

    /// Tells whether there is a use in asking `version`; an error says why there is none.
    pub(super) fn may_ask(&self, version: Version, bearer: Bearer) -> Result<(), NoBatches> {
        let absent = match &self.absent[version] {
            Some(MissingVersion::NoToken(_))
                if bearer == Bearer::Missing || bearer == Bearer::Bad =>
            {
                None
            }
            absent => absent.as_ref().map(|absence| absence.why().to_owned()),
        };
        let exhausted = (self.requests() >= MOST_REQUESTS)
            .then(|| format!("the probe had made {MOST_REQUESTS} requests already"));
        match self.gone.clone().or(absent).or(exhausted) {
            Some(why) => Err(NoBatches::Lost(why)),
            None => Ok(()),
        }
    }

    /// Asks, and tells what was asked and what came.
    pub(super) async fn ask(&mut self, ask: &ProbeRequest) -> ProbeAnswer {
        let before = self.requests();
        let outcome = self.listing(ask).await;
        let said = match &outcome {
            Ok(listing) if listing.whole => format!("200, {}", batches(listing.batches.len())),
            Ok(listing) => format!("200, more than {}", batches(listing.batches.len())),
            Err(NoBatches::Refused { status, shape }) => format!("{status}, {shape}"),
            Err(NoBatches::Lost(why)) => why.clone(),
        };
        let sent = self.requests() > before;
        let evidence = sent.then(|| format!("{}: {said}", ask.words()));
        ProbeAnswer {
            evidence: evidence.into_iter().collect(),
            outcome,
        }
    }

    /// Asks for a few seconds, and follows the pages where a service spreads even those over several.
    pub(super) async fn window(&mut self, ask: &ProbeRequest) -> ProbeAnswer {
        let mut answered = self.ask(ask).await;
        for _ in 1..PAGES_OF_WINDOW {
            let Ok(listing) = &mut answered.outcome else {
                break;
            };
            let Some(cursor) = listing.next.take() else {
                break;
            };
            let further = self.ask(&ask.page(&cursor, self.dates_with_cursor)).await;
            answered.evidence.extend(further.evidence);
            match further.outcome {
                Ok(page) => {
                    listing.batches.extend(page.batches);
                    listing.next = page.next;
                }
                Err(no) => answered.outcome = Err(no),
            }
        }
        answered
    }

    /// Asks; a token of its own version that is refused is renewed once.
    async fn listing(&mut self, ask: &ProbeRequest) -> Result<BatchList, NoBatches> {
        let mut died = None;
        loop {
            self.may_ask(ask.version, ask.bearer)?;
            let outcome = self.patiently(ask).await;
            let refused = matches!(
                &outcome,
                Err(NoBatches::Refused {
                    status: 401 | 403,
                    ..
                })
            );
            if refused && ask.has_own_token() && died.is_none() {
                died = self.current[ask.version].take().map(|grant| grant.age());
                continue;
            }
            if !refused {
                self.worn.extend(died);
            }
            return outcome;
        }
    }

    /// Asks until there is an answer, or no hope of one.
    async fn patiently(&mut self, ask: &ProbeRequest) -> Result<BatchList, NoBatches> {
        let token = match ask.bearer {
            Bearer::Of(version) => Some(self.token(version).await?),
            Bearer::Missing => None,
            Bearer::Bad => Some(Secret::new("no-token-of-this-service")),
        };
        let retries = self.policy.retries;
        let policy = RetryPolicy {
            retries: if ask.is_bad {
                retries.min(RETRIES_OF_BAD)
            } else {
                retries
            },
            ..self.policy
        };
        let mut tries = Tries::new(policy, &self.stats);
        loop {
            self.may_ask(ask.version, ask.bearer)?;
            let error = match self.once(ask, token.as_ref()).await {
                Ok(listing) => {
                    self.lost_in_a_row = 0;
                    return Ok(listing);
                }
                Err(error) => error,
            };
            if let Err(error) = tries.pause(error).await {
                return Err(self.given_up(&error, ask.is_bad));
            }
        }
    }

    async fn once(
        &mut self,
        ask: &ProbeRequest,
        token: Option<&Secret>,
    ) -> Result<BatchList, ServiceError> {
        let question = RawRequest {
            version: ask.version,
            token,
            start_date: ask.start.as_deref(),
            end_date: ask.end.as_deref(),
            next_token: ask.cursor.as_ref(),
        };
        let mut answer = self.service.ask(&question).await?;
        self.noticed.take(ask.version, &answer);
        let was_taken = !matches!(answer.status(), 401 | 403);
        if let Bearer::Of(version) = ask.bearer
            && let Some(grant) = &mut self.current[version]
        {
            grant.uses += u32::from(was_taken);
        }
        if !answer.is_success() {
            let error = answer.refused().await;
            // The body is part of the question: half of it has another shape.
            let is_cut = ask.is_bad && !answer.has_ended();
            return Err(if is_cut {
                answer.fault(Fault::Cut)
            } else {
                error
            });
        }
        read(ask.version, &mut answer).await
    }

    /// Tells a refusal from a service that is ill.
    fn given_up(&mut self, error: &ServiceError, is_bad: bool) -> NoBatches {
        // Time and again to the same bad request: that is how it refuses, however clumsily. 503 is
        // said to be transient (interface, section 7), and 429 is about something else.
        let clumsy = is_bad && matches!(error.status(), Some(500 | 502 | 504));
        if !error.is_transient() || clumsy {
            self.lost_in_a_row = 0;
            return NoBatches::refused(error).unwrap_or_else(|| NoBatches::Lost(error.to_string()));
        }
        // A bad request that is put off says nothing of how good ones fare.
        if !is_bad || matches!(error.fault, Fault::Connection(_)) {
            self.count_lost(error);
        }
        NoBatches::Lost(error.to_string())
    }

    /// Notes that all tries of a request were in vain; a service that has gone is not asked again.
    fn count_lost(&mut self, error: &ServiceError) {
        if !error.is_transient() {
            return;
        }
        self.lost_in_a_row += 1;
        let unreachable = matches!(error.fault, Fault::Connection(_));
        if unreachable || self.lost_in_a_row > 1 {
            self.gone = Some(format!("the service has gone away ({error})"));
        }
    }

    /// Returns a token of `version`, a new one where there is none.
    async fn token(&mut self, version: Version) -> Result<Secret, NoBatches> {
        if let Some(grant) = &self.current[version] {
            return Ok(grant.secret.clone());
        }
        self.grant(version).await.map(|grant| grant.secret)
    }

    /// Asks for a token.
    pub(super) async fn grant(&mut self, version: Version) -> Result<TokenReply, NoBatches> {
        let mut tries = Tries::new(self.policy, &self.stats);
        loop {
            self.may_ask(version, Bearer::Of(version))?;
            let error = match self.grant_once(version).await {
                Ok(grant) => {
                    self.current[version] = Some(grant.clone());
                    return Ok(grant);
                }
                Err(error) => error,
            };
            if let Err(error) = tries.pause(error).await {
                self.count_lost(&error);
                // Without a token there is no use in asking again.
                let absence = MissingVersion::of(version, &error).unwrap_or_else(|| {
                    MissingVersion::NoToken(format!("there is no token: {error}"))
                });
                let why = absence.why().to_owned();
                self.absent[version] = Some(absence);
                return Err(NoBatches::Lost(why));
            }
        }
    }

    async fn grant_once(&mut self, version: Version) -> Result<TokenReply, ServiceError> {
        let mut answer = self.service.ask_token(version).await?;
        self.noticed.take(version, &answer);
        if !answer.is_success() {
            return Err(answer.refused().await);
        }
        let (response, fields) = answer.token().await?;
        Ok(TokenReply::new(version, response, fields))
    }
}
