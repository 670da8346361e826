//! Pages of version 2: how large they are, and in which order batches stand on them (interface,
//! sections 4 and 8).

use std::collections::BTreeSet;

use super::listing::{BatchList, batches};
use super::prober::Prober;
use super::request::{ALWAYS, NoBatches, ProbeAnswer, ProbeRequest};
use super::sample::{BatchSample, ObservedOrder, order_of};
use super::topic::{Topic, TopicAnswer};
use crate::secret::Secret;
use crate::client::Version;

/// Batches that are enough: one more than version 1 is said to be meant for.
pub(super) const ENOUGH: usize = 1001;
/// The most pages of the walk, and of one that would not get there.
const MOST_PAGES: usize = 10;
const FEW_PAGES: usize = 3;

/// A walk through the pages.
#[derive(Default)]
struct ProbeWalk {
    sample: BatchSample,
    /// How many batches were new on each page, and whether another one followed.
    sizes: Vec<(usize, bool)>,
    /// What was asked for the first page, and what came.
    first: Vec<String>,
}

impl ProbeWalk {
    /// Takes a page; returns the cursor of the next.
    fn take(&mut self, page: &BatchList) -> Option<Secret> {
        let new = self.sample.add(&page.batches);
        self.sizes.push((new, page.next.is_some()));
        self.sample.is_all = page.next.is_none();
        page.next.clone()
    }

    /// Tells whether further pages would answer nothing more.
    fn is_over(&self) -> bool {
        let largest = self.sizes.iter().map(|(size, _)| *size).max();
        let most = if largest.unwrap_or_default() * MOST_PAGES < ENOUGH {
            FEW_PAGES
        } else {
            MOST_PAGES
        };
        self.sample.len() >= ENOUGH || self.sizes.len() >= most
    }

    /// Tells in two lines what would take ten.
    fn evidence(&self) -> Vec<String> {
        let sizes: Vec<String> = self
            .sizes
            .iter()
            .skip(1)
            .map(|(size, _)| size.to_string())
            .collect();
        let others = match sizes.as_slice() {
            [] => None,
            [one] => Some(format!("the page after it: {one} more")),
            sizes => Some(format!(
                "the {} pages after it: {} more",
                sizes.len(),
                sizes.join(", ")
            )),
        };
        self.first.iter().cloned().chain(others).collect()
    }

    /// Tells how many batches full pages have.
    fn size(&self) -> Result<String, String> {
        let followed = self.sizes.iter().filter(|(_, followed)| *followed);
        let mut full: Vec<usize> = followed.map(|(size, _)| *size).collect();
        // An empty page in between says nothing of the others.
        full.retain(|size| *size > 0);
        full.sort_unstable();
        full.dedup();
        match full.as_slice() {
            [] if self.sample.is_empty() => Err("there are no batches".to_owned()),
            [] => Err(format!(
                "all {} came on one page",
                batches(self.sample.len())
            )),
            [size] => Ok(batches(*size)),
            [least, .., most] => Ok(format!("not always the same: {least} to {most} batches")),
        }
    }
}

/// Walks through the first pages, as far as questions need them.
pub(super) async fn probe(prober: &mut Prober) -> (Vec<TopicAnswer>, BatchSample) {
    let (first, answered) = first_page(prober).await;
    let page = match answered.outcome {
        Ok(page) => page,
        Err(no) => return (unanswered(&no, &answered.evidence), BatchSample::default()),
    };
    let mut walk = ProbeWalk {
        first: answered.evidence,
        ..ProbeWalk::default()
    };
    let cursor = walk.take(&page);
    let mut about_cursor = match &cursor {
        Some(cursor) => {
            let second = probe_cursor(prober, &first, cursor).await;
            let next = second.page.as_ref().and_then(|page| walk.take(page));
            go_on(prober, &first, &mut walk, next).await;
            second.findings
        }
        None => without_cursor(&walk),
    };
    about_cursor.push(probe_bad_cursor(prober).await);

    let evidence = walk.evidence();
    let size = TopicAnswer::from_result(Topic::PageSize, walk.size(), evidence.clone());
    let order = order_of(&walk.sample.batches).map(ObservedOrder::words);
    let order = TopicAnswer::from_result(Topic::Order(Version::V2), order, evidence);
    let findings = [vec![size], about_cursor, vec![order]].concat();
    (findings, walk.sample)
}

/// Asks for the first page of all batches.
async fn first_page(prober: &mut Prober) -> (ProbeRequest, ProbeAnswer) {
    let first = ProbeRequest::between(Version::V2, ALWAYS);
    let answered = prober.ask(&first).await;
    if !matches!(answered.outcome, Err(NoBatches::Refused { .. })) {
        return (first, answered);
    }
    // A century may be too much to ask; without dates there is nothing to object to.
    let undated = ProbeRequest::all(Version::V2);
    let mut again = prober.ask(&undated).await;
    again.evidence.splice(0..0, answered.evidence);
    (undated, again)
}

/// Asks for further pages until there are enough.
async fn go_on(
    prober: &mut Prober,
    first: &ProbeRequest,
    walk: &mut ProbeWalk,
    next: Option<Secret>,
) {
    let mut next = next;
    let mut was_refused = false;
    while let Some(cursor) = &next {
        if walk.is_over() {
            return;
        }
        let page = first.page(cursor, prober.dates_with_cursor);
        let answered = prober.ask(&page).await;
        match answered.outcome {
            Ok(page) => next = walk.take(&page),
            // A cursor that is refused in passing is good the next time.
            Err(NoBatches::Refused { .. }) if !was_refused => was_refused = true,
            Err(_) => return,
        }
    }
}

/// All questions about pages, where there is none.
fn unanswered(no: &NoBatches, evidence: &[String]) -> Vec<TopicAnswer> {
    let topics = [
        Topic::PageSize,
        Topic::DatesWithCursor,
        Topic::CursorTwice,
        Topic::BadCursor,
        Topic::Order(Version::V2),
    ];
    topics
        .map(|topic| TopicAnswer::unknown(topic, &no.why(), evidence.to_vec()))
        .into()
}

/// Questions about cursors, where there is none.
fn without_cursor(walk: &ProbeWalk) -> Vec<TopicAnswer> {
    let why = if walk.sample.is_empty() {
        "there are no batches, so no next_token"
    } else {
        "all batches came on one page, without a next_token"
    };
    [Topic::DatesWithCursor, Topic::CursorTwice]
        .map(|topic| TopicAnswer::unknown(topic, why, walk.evidence()))
        .into()
}

/// What was found out on the second page.
struct SecondPage {
    findings: Vec<TopicAnswer>,
    /// The page itself, where it came.
    page: Option<BatchList>,
}

/// What was tried with a cursor, and what came of it.
struct CursorTrial<'a> {
    prober: &'a mut Prober,
    /// The request whose first page gave the cursor.
    first: ProbeRequest,
    evidence: Vec<String>,
    page: Option<BatchList>,
}

/// What one use of a cursor led to.
enum CursorUse {
    /// The identifiers of the page.
    Taken(BTreeSet<String>),
    Refused(u16),
}

/// Asks for the page at `cursor`, with the dates of `first` and without them.
async fn probe_cursor(prober: &mut Prober, first: &ProbeRequest, cursor: &Secret) -> SecondPage {
    let mut trial = CursorTrial {
        prober,
        first: first.clone(),
        evidence: Vec::new(),
        page: None,
    };
    let (dates, twice) = match trial.run(cursor).await {
        Ok(told) => told,
        Err(why) => (Err(why.clone()), Err(why)),
    };
    let CursorTrial { evidence, page, .. } = trial;
    SecondPage {
        findings: vec![
            TopicAnswer::from_result(Topic::DatesWithCursor, dates, evidence.clone()),
            TopicAnswer::from_result(Topic::CursorTwice, twice, evidence),
        ],
        page,
    }
}

/// The answer to each of the two questions, or why there is none.
type Told = (Result<String, String>, Result<String, String>);

impl CursorTrial<'_> {
    async fn run(&mut self, cursor: &Secret) -> Result<Told, String> {
        if !self.first.has_dates() {
            return self.without_dates(cursor).await;
        }
        let with = self.try_out(cursor, true).await?;
        let without = self.try_out(cursor, false).await?;
        match (with, without) {
            (CursorUse::Taken(with), CursorUse::Taken(without)) if with == without => {
                Ok((Ok(MAY.to_owned()), Ok(YES.to_owned())))
            }
            (CursorUse::Taken(_), CursorUse::Taken(_)) => {
                let dates = "must go along: without them other batches come".to_owned();
                Ok((Ok(dates), Ok(YES.to_owned())))
            }
            (CursorUse::Taken(_), CursorUse::Refused(status)) => {
                self.refused_alone(cursor, status).await
            }
            (CursorUse::Refused(status), CursorUse::Taken(_)) => {
                self.refused_with_dates(cursor, status).await
            }
            (CursorUse::Refused(with), CursorUse::Refused(without)) => Err(format!(
                "it was refused with {with}, and without dates with {without}"
            )),
        }
    }

    /// There are no dates that could go along; a cursor can be used twice all the same.
    async fn without_dates(&mut self, cursor: &Secret) -> Result<Told, String> {
        self.prober.dates_with_cursor = false;
        let dates = Err("a range of all dates was refused, so no page had any".to_owned());
        let first = self.try_out(cursor, false).await?;
        let second = self.try_out(cursor, false).await?;
        let twice = match (first, second) {
            (CursorUse::Refused(status), _) => Err(format!("it was refused with {status}")),
            (_, CursorUse::Refused(status)) => Ok(format!("no: {status} the second time")),
            _ => Ok(YES.to_owned()),
        };
        Ok((dates, twice))
    }

    /// The cursor was taken with dates, and then not without: because they are missing, or because a
    /// cursor is good for once?
    async fn refused_alone(&mut self, cursor: &Secret, status: u16) -> Result<Told, String> {
        if let CursorUse::Taken(_) = self.try_out(cursor, true).await? {
            let dates = format!("must go along: without them {status}");
            return Ok((Ok(dates), Ok(YES.to_owned())));
        }
        let once = Ok(format!("no: {status} the second time"));
        let fresh = self.fresh().await?;
        Ok(match self.try_out(&fresh, false).await? {
            CursorUse::Taken(_) => (Ok(MAY.to_owned()), once),
            CursorUse::Refused(status) => {
                (Ok(format!("must go along: without them {status}")), once)
            }
        })
    }

    /// The cursor was not taken with dates, and then without: because of them, or did it only hiccup?
    async fn refused_with_dates(&mut self, cursor: &Secret, status: u16) -> Result<Told, String> {
        let fresh = self.fresh().await?;
        let (dates, again) = match self.try_out(&fresh, true).await? {
            CursorUse::Taken(_) => {
                let once = format!("{MAY} (the first time it was refused with {status})");
                (once, self.try_out(&fresh, true).await?)
            }
            CursorUse::Refused(status) => {
                self.prober.dates_with_cursor = false;
                let dates = format!("must not go along: with them {status}");
                (dates, self.try_out(cursor, false).await?)
            }
        };
        let twice = match again {
            CursorUse::Taken(_) => YES.to_owned(),
            CursorUse::Refused(status) => format!("no: {status} the second time"),
        };
        Ok((Ok(dates), Ok(twice)))
    }

    /// Uses a cursor; an error says why that tells nothing.
    async fn try_out(&mut self, cursor: &Secret, with_dates: bool) -> Result<CursorUse, String> {
        let answered = self.prober.ask(&self.first.page(cursor, with_dates)).await;
        self.evidence.extend(answered.evidence);
        match answered.outcome {
            Ok(page) => {
                let ids = page.ids().into_iter().map(String::from).collect();
                self.page.get_or_insert(page);
                Ok(CursorUse::Taken(ids))
            }
            Err(NoBatches::Refused { status, .. }) => Ok(CursorUse::Refused(status)),
            Err(no @ NoBatches::Lost(_)) => Err(no.why()),
        }
    }

    /// Returns a cursor that nobody has used.
    async fn fresh(&mut self) -> Result<Secret, String> {
        let answered = self.prober.ask(&self.first).await;
        self.evidence.extend(answered.evidence);
        let page = answered.outcome.map_err(|no| no.why())?;
        page.next
            .ok_or_else(|| "the first page had no next_token the second time".to_owned())
    }
}

const MAY: &str = "may go along or be left out: the same page comes";
const YES: &str = "yes: the same page comes again";

/// Asks with a cursor that the service has never given.
async fn probe_bad_cursor(prober: &mut Prober) -> TopicAnswer {
    let nobodys = Secret::cursor("no-cursor-of-this-service");
    let ask = ProbeRequest::between(Version::V2, ALWAYS).page(&nobodys, prober.dates_with_cursor);
    let answered = prober.ask(&ask.bad()).await;
    let told = match answered.outcome {
        Ok(page) => Ok(format!(
            "taken with 200: {} came",
            batches(page.batches.len())
        )),
        Err(NoBatches::Refused { status, shape }) => Ok(format!("{status}, {shape}")),
        Err(no @ NoBatches::Lost(_)) => Err(no.why()),
    };
    TopicAnswer::from_result(Topic::BadCursor, told, answered.evidence)
}
