//! A range that yields batches: pages of version 2, or answers of version 1 that are small enough to
//! be whole.
//!
//! Both are readings of one thing. A range is a window; a window is walked page by page (version 2)
//! or fetched at once and cut in two where it holds too much (version 1). Windows share their bounds,
//! because a batch created between two whole seconds would fall between windows that do not; what
//! comes twice is dropped by its identifier further on.

// Reading the batches of an answer, and what is wrong with them.
mod reading;

// Cutting a window in two.
mod window;

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use crate::auth::{Token, Tokens};
use crate::batch::Batch;
use crate::cli::Api;
use crate::dates::Range;
use crate::error::Failure;
use crate::service::retry::{RetryPolicy, Tries};
use crate::service::split::{Flow, Shape, Splitter};
use crate::service::{Fault, Service, ServiceError, Stats, Version};
use crate::settings::Secret;

pub(crate) use reading::Findings;
use reading::Reading;

/// From so many batches on, an answer of version 1 may not be whole (interface, section 8).
const V1_LIMIT: usize = 1000;
/// What a cursor that is no longer taken is answered with (interface, section 7: not shown).
const EXPIRED: [u16; 4] = [400, 404, 410, 422];
/// How often a window is walked anew without anything new in it.
const RESTARTS: u32 = 3;

/// The same batches fill two seconds where they lie on the bound between them; not three.
const SAME_SECONDS: u32 = 3;

/// Batches that arrived together.
pub(crate) type Page = Vec<Batch>;

/// Fetches the pages of a range, one after another.
pub(crate) struct Pages {
    service: Arc<Service>,
    tokens: Tokens,
    policy: RetryPolicy,
    stats: Arc<Stats>,
    lenient: bool,
    api: Api,
    /// Decided with the first page.
    version: Option<Version>,
    /// Windows still to be fetched, the next one last.
    windows: Vec<Range>,
    walk: Option<Walk>,
    /// Whether dates are repeated with a cursor (interface, section 4, rule 4: not shown).
    dates_with_cursor: bool,
    findings: Findings,
    fetched: Vec<Fetched>,
    /// The batches of the last second that held as much as an answer of version 1 may, as a digest,
    /// and how many seconds held just these.
    full_second: (u64, u32),
    hasher: RandomState,
}

/// A window that was fetched, or is being fetched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetched {
    pub(crate) window: Range,
    pub(crate) pages: u64,
    pub(crate) batches: u64,
}

/// A walk through the pages of a window.
struct Walk {
    window: Range,
    next_token: Option<Secret>,
    /// Every cursor of this walk, as a digest of 128 bits: none may come again.
    cursors: HashSet<u128>,
    restarts: u32,
    /// Pages of this window that arrived since the last restart, and before it.
    pages: u64,
    furthest: u64,
    /// What was wrong with the batches of this walk.
    findings: Findings,
}

impl Walk {
    fn new(window: Range) -> Self {
        Self {
            window,
            next_token: None,
            cursors: HashSet::new(),
            restarts: 0,
            pages: 0,
            furthest: 0,
            findings: Findings::default(),
        }
    }
}

/// How one answer is asked for.
struct Wanted {
    version: Version,
    range: Range,
    next_token: Option<Secret>,
    /// Stop reading at so many batches.
    enough: usize,
}

/// What one answer held.
struct Got {
    batches: Page,
    next_token: Option<String>,
    /// Batches received, also those that are left out.
    received: usize,
    findings: Findings,
}

impl Pages {
    pub(crate) fn new(
        service: Arc<Service>,
        policy: RetryPolicy,
        stats: Arc<Stats>,
        api: Api,
        range: Range,
        lenient: bool,
    ) -> Self {
        Self {
            tokens: Tokens::new(&service, policy, &stats),
            service,
            policy,
            stats,
            lenient,
            api,
            version: match api {
                Api::Auto => None,
                Api::V1 => Some(Version::V1),
                Api::V2 => Some(Version::V2),
            },
            windows: vec![range],
            walk: None,
            dates_with_cursor: true,
            findings: Findings::default(),
            fetched: Vec::new(),
            full_second: (0, 0),
            hasher: RandomState::new(),
        }
    }

    /// Returns the next page; nothing after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Page>, Failure> {
        loop {
            let page = match self.version {
                Some(Version::V1) => self.next_flat().await?,
                Some(Version::V2) => self.next_page().await?,
                None => {
                    self.choose_version().await?;
                    continue;
                }
            };
            match page {
                Some(page) => {
                    self.stats.pages.add(1);
                    return Ok(Some(page));
                }
                None if self.windows.is_empty() && self.walk.is_none() => return Ok(None),
                None => {}
            }
        }
    }

    /// The version in use, once it is known.
    pub(crate) fn version(&self) -> Option<Version> {
        self.version
    }

    /// The windows that were fetched so far.
    pub(crate) fn fetched(&self) -> &[Fetched] {
        &self.fetched
    }

    /// Notes a page of `window`.
    fn note(&mut self, window: Range, page: &Page) {
        let batches = page.len() as u64;
        match self
            .fetched
            .last_mut()
            .filter(|fetched| fetched.window == window)
        {
            Some(fetched) => {
                fetched.pages += 1;
                fetched.batches += batches;
            }
            None => self.fetched.push(Fetched {
                window,
                pages: 1,
                batches,
            }),
        }
    }

    /// What was wrong with the batches so far.
    pub(crate) fn findings(&self) -> Findings {
        let mut findings = self.findings.clone();
        if let Some(walk) = &self.walk {
            findings.add(walk.findings.clone());
        }
        findings
    }

    /// Prefers version 2, unless the service says that it has none. A service that is merely ill, or
    /// refuses us, has one.
    async fn choose_version(&mut self) -> Result<(), Failure> {
        let missing = match self.tokens.get(Version::V2).await {
            Ok(_) => None,
            Err(no_token) if no_token.error.is_missing() => Some(no_token.error),
            Err(no_token) => return Err(no_token.into()),
        };
        if let Some(error) = missing {
            self.fall_back(&error);
        } else {
            self.version = Some(Version::V2);
        }
        Ok(())
    }

    fn fall_back(&mut self, error: &ServiceError) {
        log::warn!("using version 1, because version 2 is not there: {error}");
        self.version = Some(Version::V1);
    }

    /// Fetches the next page of a walk through version 2.
    async fn next_page(&mut self) -> Result<Option<Page>, Failure> {
        let mut walk = match self.walk.take() {
            Some(walk) => walk,
            None => match self.windows.pop() {
                Some(window) => Walk::new(window),
                None => return Ok(None),
            },
        };
        let got = match self.ask_page(&walk).await {
            Ok(got) => got,
            Err((error, _)) if self.may_fall_back(&walk) && error.is_missing() => {
                self.fall_back(&error);
                self.windows.push(walk.window);
                return Ok(None);
            }
            Err((error, tries)) => {
                self.walk = Some(restart(&walk, error, &tries)?);
                // What came of this window comes again.
                self.fetched.retain(|fetched| fetched.window != walk.window);
                return Ok(None);
            }
        };
        walk.findings.add(got.findings);
        self.note(walk.window, &got.batches);
        walk.pages += 1;
        if walk.pages > walk.furthest {
            (walk.furthest, walk.restarts) = (walk.pages, 0);
        }
        if let Some(cursor) = got.next_token {
            if !walk.cursors.insert(self.digest(&cursor)) {
                let why = "the same next_token came twice: the pages would never end";
                let request = "GET /v2/batches".to_owned();
                return Err(ServiceError {
                    request,
                    fault: Fault::Broken(why.to_owned()),
                }
                .into_failure(1));
            }
            walk.next_token = Some(Secret::cursor(cursor));
            self.walk = Some(walk);
        } else {
            self.findings.add(walk.findings);
        }
        Ok(Some(got.batches))
    }

    fn digest(&self, cursor: &str) -> u128 {
        let half = |half: u8| u128::from(self.hasher.hash_one((half, cursor)));
        half(0) << 64 | half(1)
    }

    /// Asks for the page at which `walk` stands.
    async fn ask_page(&mut self, walk: &Walk) -> Result<Got, (ServiceError, Tries)> {
        let repeat_dates = self.dates_with_cursor || walk.next_token.is_none();
        let mut wanted = Wanted {
            version: Version::V2,
            range: if repeat_dates {
                walk.window
            } else {
                Range::default()
            },
            next_token: walk.next_token.clone(),
            enough: usize::MAX,
        };
        let asked = self.ask(&wanted).await;
        let has_dates = walk.window.start.is_some() || walk.window.end.is_some();
        let refused = matches!(&asked, Err((error, _)) if error.refuses_batches(&[422]));
        if !(refused && wanted.next_token.is_some() && repeat_dates && has_dates) {
            return asked;
        }
        wanted.range = Range::default();
        match self.ask(&wanted).await {
            Ok(got) => {
                log::info!("the service takes no dates together with next_token: leaving them out");
                self.dates_with_cursor = false;
                Ok(got)
            }
            // It refuses this one too: then it was not for the dates.
            Err((error, _)) if error.refuses_batches(&EXPIRED) => asked,
            Err(failed) => Err(failed),
        }
    }

    fn may_fall_back(&self, walk: &Walk) -> bool {
        self.api == Api::Auto && walk.next_token.is_none() && self.stats.pages.get() == 0
    }

    /// Fetches the next window through version 1, cutting it until it is whole.
    async fn next_flat(&mut self) -> Result<Option<Page>, Failure> {
        let Some(window) = self.windows.pop() else {
            return Ok(None);
        };
        let can_be_cut = window::cut(&window, &[]).is_some();
        let wanted = Wanted {
            version: Version::V1,
            range: window,
            next_token: None,
            enough: if can_be_cut { V1_LIMIT } else { usize::MAX },
        };
        let seen = match self.ask(&wanted).await {
            Ok(got) if got.received < V1_LIMIT => {
                self.findings.add(got.findings);
                self.note(window, &got.batches);
                return Ok(Some(got.batches));
            }
            Ok(got) if !can_be_cut => {
                self.check_dates_matter(&got.batches)?;
                log::warn!(
                    "{} batches within one second ({}): version 1 may hold back more",
                    got.batches.len(),
                    window.describe()
                );
                self.findings.add(got.findings);
                self.note(window, &got.batches);
                return Ok(Some(got.batches));
            }
            Ok(got) => got
                .batches
                .iter()
                .filter_map(|batch| Some(batch.created()?.second))
                .collect(),
            Err((error, _)) if can_be_cut && error.refuses_batches(&[413, 422]) => {
                log::info!("{error}; asking for half of it");
                Vec::new()
            }
            Err((error, tries)) => return Err(tries.failure(error)),
        };
        if let Some((earlier, later)) = window::cut(&window, &seen) {
            self.windows.extend([later, earlier]);
        }
        Ok(None)
    }

    /// Ends a walk through ever the same batches: the service does not look at dates.
    fn check_dates_matter(&mut self, page: &Page) -> Result<(), Failure> {
        let ids = page.iter().map(|batch| self.hasher.hash_one(batch.id()));
        let digest = ids.fold(0_u64, u64::wrapping_add);
        self.full_second = match self.full_second {
            (same, count) if same == digest => (same, count + 1),
            _ => (digest, 1),
        };
        if self.full_second.1 < SAME_SECONDS {
            return Ok(());
        }
        let why = "version 1 answers the same batches whatever the dates";
        let request = "GET /v1/batches".to_owned();
        let fault = Fault::Broken(why.to_owned());
        Err(ServiceError { request, fault }.into_failure(1))
    }

    /// Asks for one answer until it comes whole, with a token that is taken.
    async fn ask(&self, wanted: &Wanted) -> Result<Got, (ServiceError, Tries)> {
        let mut tries = Tries::new(self.policy, &self.stats);
        let mut token: Option<Token> = None;
        let mut renewed = false;
        loop {
            let current = match token.take() {
                Some(token) => token,
                None => match self.tokens.get(wanted.version).await {
                    Ok(token) => token,
                    Err(no_token) => return Err(no_token.into_parts()),
                },
            };
            match self.once(wanted, &current).await {
                Ok(got) => return Ok(got),
                Err(error) if error.refuses_token() && !renewed => {
                    renewed = true;
                    match self.tokens.renew(wanted.version, &current).await {
                        Ok(new) => token = Some(new),
                        Err(no_token) => return Err(no_token.into_parts()),
                    }
                }
                Err(error) => {
                    if let Err(error) = tries.pause(error).await {
                        return Err((error, tries));
                    }
                    // The wait may have outlived the token: only two refusals in a row are final.
                    renewed = false;
                }
            }
        }
    }

    /// Asks once.
    async fn once(&self, wanted: &Wanted, token: &Token) -> Result<Got, ServiceError> {
        let Wanted {
            version,
            range,
            next_token,
            enough,
        } = wanted;
        let mut answer = self
            .service
            .batches(*version, &token.secret, range, next_token.as_ref())
            .await?;
        let mut splitter = Splitter::new(match version {
            Version::V1 => Shape::Flat,
            Version::V2 => Shape::Page,
        });
        let mut reading = Reading::new(self.lenient, *enough, self.stats.pages.get() + 1);
        while let Some(chunk) = answer.chunk().await? {
            let flow = splitter
                .feed(&chunk, &mut |text| reading.batch(text))
                .map_err(|unreadable| answer.unreadable(unreadable))?;
            if flow == Flow::Stop {
                return Ok(Got {
                    batches: reading.batches,
                    next_token: None,
                    received: reading.count,
                    findings: reading.findings,
                });
            }
        }
        let next_token = splitter
            .finish()
            .map_err(|unreadable| answer.unreadable(unreadable))?;
        Ok(Got {
            batches: reading.batches,
            next_token,
            received: reading.count,
            findings: reading.findings,
        })
    }
}

/// Walks a window anew where its cursor is no longer taken; any other error is final.
fn restart(walk: &Walk, error: ServiceError, tries: &Tries) -> Result<Walk, Failure> {
    let expired = walk.next_token.is_some() && error.refuses_batches(&EXPIRED);
    if !expired || walk.restarts >= RESTARTS {
        return Err(tries.failure(error));
    }
    log::warn!("{error}; fetching this range again from its start");
    Ok(Walk {
        restarts: walk.restarts + 1,
        furthest: walk.furthest,
        ..Walk::new(walk.window)
    })
}
