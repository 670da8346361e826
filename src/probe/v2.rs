//! Questions about version 2: page size, order, and `next_token` (interface, sections 4, 7 and 8).

use std::collections::BTreeSet;

use super::listing::{BatchList, batches};
use super::prober::Prober;
use super::request::{ALWAYS, NoBatches, ProbeAnswer, ProbeRequest};
use super::sample::{BatchSample, ObservedOrder, order_of};
use super::topic::{Topic, TopicAnswer};
use crate::client::Version;
use crate::secret::Secret;
use crate::text::join;

/// The number of batches to look for: one more than the documented size of version 1.
pub(super) const ENOUGH: usize = 1001;
/// The maximum number of pages to read, and a lower one if that would not reach [`ENOUGH`] batches.
const MAX_PAGES: usize = 10;
const FEW_PAGES: usize = 3;

/// The pages read so far.
#[derive(Default)]
struct ProbeWalk {
    sample: BatchSample,
    /// The number of new batches on each page, and whether another page followed.
    sizes: Vec<(usize, bool)>,
    /// The evidence of the first page.
    first: Vec<String>,
}

impl ProbeWalk {
    /// Adds a page. Returns the cursor of the next.
    fn add(&mut self, page: &BatchList) -> Option<Secret> {
        let new = self.sample.add(&page.batches);
        self.sizes.push((new, page.next.is_some()));
        self.sample.is_all = page.next.is_none();
        page.next.clone()
    }

    /// Returns whether more pages would not help.
    fn is_over(&self) -> bool {
        let largest = self.sizes.iter().map(|(size, _)| *size).max();
        let most = if largest.unwrap_or_default() * MAX_PAGES < ENOUGH {
            FEW_PAGES
        } else {
            MAX_PAGES
        };
        self.sample.len() >= ENOUGH || self.sizes.len() >= most
    }

    /// Returns the evidence of all pages in two lines.
    fn evidence(&self) -> Vec<String> {
        let others = self.sizes.iter().skip(1);
        let sizes = join(others.clone().map(|(size, _)| size.to_string()), ", ");
        let others = match others.len() {
            0 => None,
            1 => Some(format!("the page after it: {sizes} more")),
            pages => Some(format!("the {pages} pages after it: {sizes} more")),
        };
        self.first.iter().cloned().chain(others).collect()
    }

    /// Returns the size of full pages.
    fn size(&self) -> Result<String, String> {
        let followed = self.sizes.iter().filter(|(_, followed)| *followed);
        let mut full: Vec<usize> = followed.map(|(size, _)| *size).collect();
        // An empty page between others does not count.
        full.retain(|size| *size > 0);
        full.sort_unstable();
        full.dedup();
        match full.as_slice() {
            [] if self.sample.is_empty() => Err("there are no batches".to_owned()),
            [] => Err(format!("one page with {}", batches(self.sample.len()))),
            [size] => Ok(batches(*size)),
            [least, .., most] => Ok(format!("varies: {least} to {most} batches")),
        }
    }
}

/// Reads the first pages, as far as the questions need them.
pub(super) async fn probe(prober: &mut Prober) -> (Vec<TopicAnswer>, BatchSample) {
    let (first, answer) = first_page(prober).await;
    let page = match answer.outcome {
        Ok(page) => page,
        Err(error) => return (unanswered(&error, &answer.evidence), BatchSample::default()),
    };
    let mut walk = ProbeWalk {
        first: answer.evidence,
        ..ProbeWalk::default()
    };
    let cursor = walk.add(&page);
    let mut about_cursor = match &cursor {
        Some(cursor) => {
            let (answers, page) = probe_cursor(prober, &first, cursor).await;
            let next = page.and_then(|page| walk.add(&page));
            read_on(prober, &first, &mut walk, next).await;
            answers
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

/// Requests the first page of all batches.
async fn first_page(prober: &mut Prober) -> (ProbeRequest, ProbeAnswer) {
    let first = ProbeRequest::between(Version::V2, ALWAYS);
    let answer = prober.send(&first).await;
    if !matches!(answer.outcome, Err(NoBatches::Refused { .. })) {
        return (first, answer);
    }
    // The service may refuse a range of a century. Try without dates.
    let undated = ProbeRequest::all(Version::V2);
    let mut again = prober.send(&undated).await;
    again.evidence.splice(0..0, answer.evidence);
    (undated, again)
}

/// Requests more pages until there are enough batches.
async fn read_on(
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
        let answer = prober.send(&page).await;
        match answer.outcome {
            Ok(page) => next = walk.add(&page),
            // A cursor that is refused once may be accepted the next time.
            Err(NoBatches::Refused { .. }) if !was_refused => was_refused = true,
            Err(_) => return,
        }
    }
}

/// Returns unknown answers to all questions about pages, if there are none.
fn unanswered(error: &NoBatches, evidence: &[String]) -> Vec<TopicAnswer> {
    let topics = [
        Topic::PageSize,
        Topic::DatesWithCursor,
        Topic::CursorTwice,
        Topic::BadCursor,
        Topic::Order(Version::V2),
    ];
    let unknown = |topic| TopicAnswer::unknown(topic, &error.reason(), evidence.to_vec());
    topics.map(unknown).into()
}

/// Returns unknown answers to the questions about cursors, if there is none.
fn without_cursor(walk: &ProbeWalk) -> Vec<TopicAnswer> {
    let reason = if walk.sample.is_empty() {
        "there are no batches, so no next_token"
    } else {
        "all batches are on one page, without a next_token"
    };
    [Topic::DatesWithCursor, Topic::CursorTwice]
        .map(|topic| TopicAnswer::unknown(topic, reason, walk.evidence()))
        .into()
}

/// Tries a cursor in several ways.
struct CursorTrial<'a> {
    prober: &'a mut Prober,
    /// The request that returned the cursor.
    first: ProbeRequest,
    evidence: Vec<String>,
    page: Option<BatchList>,
}

/// The result of using a cursor.
enum CursorUse {
    /// Accepted, with the identifiers of the page.
    Accepted(BTreeSet<String>),
    Refused(u16),
}

/// Requests the page at `cursor`, with the dates of `first` and without them; returns it if there is one.
async fn probe_cursor(
    prober: &mut Prober,
    first: &ProbeRequest,
    cursor: &Secret,
) -> (Vec<TopicAnswer>, Option<BatchList>) {
    let mut trial = CursorTrial {
        prober,
        first: first.clone(),
        evidence: Vec::new(),
        page: None,
    };
    let (dates, twice) = match trial.run(cursor).await {
        Ok(result) => result,
        Err(reason) => (Err(reason.clone()), Err(reason)),
    };
    let CursorTrial { evidence, page, .. } = trial;
    let answers = vec![
        TopicAnswer::from_result(Topic::DatesWithCursor, dates, evidence.clone()),
        TopicAnswer::from_result(Topic::CursorTwice, twice, evidence),
    ];
    (answers, page)
}

/// The answer to each of the two questions, or the reason why it is unknown.
type CursorAnswers = (Result<String, String>, Result<String, String>);

impl CursorTrial<'_> {
    async fn run(&mut self, cursor: &Secret) -> Result<CursorAnswers, String> {
        if !self.first.has_dates() {
            return self.without_dates(cursor).await;
        }
        let with = self.try_out(cursor, true).await?;
        let without = self.try_out(cursor, false).await?;
        match (with, without) {
            (CursorUse::Accepted(with), CursorUse::Accepted(without)) if with == without => {
                Ok((Ok(MAY.to_owned()), Ok(YES.to_owned())))
            }
            (CursorUse::Accepted(_), CursorUse::Accepted(_)) => {
                let dates = "required: without them, other batches are returned".to_owned();
                Ok((Ok(dates), Ok(YES.to_owned())))
            }
            (CursorUse::Accepted(_), CursorUse::Refused(status)) => {
                self.refused_alone(cursor, status).await
            }
            (CursorUse::Refused(status), CursorUse::Accepted(_)) => {
                self.refused_with_dates(cursor, status).await
            }
            (CursorUse::Refused(with), CursorUse::Refused(without)) => Err(format!(
                "the cursor was refused with {with}, and without dates with {without}"
            )),
        }
    }

    /// Tries the cursor twice if the first request has no dates.
    async fn without_dates(&mut self, cursor: &Secret) -> Result<CursorAnswers, String> {
        self.prober.dates_with_cursor = false;
        let dates = Err("a range of all dates was refused, so requests had no dates".to_owned());
        let first = self.try_out(cursor, false).await?;
        let second = self.try_out(cursor, false).await?;
        let twice = match (first, second) {
            (CursorUse::Refused(status), _) => Err(format!("the cursor was refused with {status}")),
            (_, CursorUse::Refused(status)) => Ok(format!("no: {status} the second time")),
            _ => Ok(YES.to_owned()),
        };
        Ok((dates, twice))
    }

    /// The cursor was accepted with dates, then refused without: because the dates are missing, or because a
    /// cursor works only once?
    async fn refused_alone(
        &mut self,
        cursor: &Secret,
        status: u16,
    ) -> Result<CursorAnswers, String> {
        if let CursorUse::Accepted(_) = self.try_out(cursor, true).await? {
            let dates = format!("required: {status} without them");
            return Ok((Ok(dates), Ok(YES.to_owned())));
        }
        let once = Ok(format!("no: {status} the second time"));
        let fresh = self.fresh().await?;
        Ok(match self.try_out(&fresh, false).await? {
            CursorUse::Accepted(_) => (Ok(MAY.to_owned()), once),
            CursorUse::Refused(status) => (Ok(format!("required: {status} without them")), once),
        })
    }

    /// The cursor was refused with dates, then accepted without: because of the dates, or was it a temporary
    /// error?
    async fn refused_with_dates(
        &mut self,
        cursor: &Secret,
        status: u16,
    ) -> Result<CursorAnswers, String> {
        let fresh = self.fresh().await?;
        let (dates, again) = match self.try_out(&fresh, true).await? {
            CursorUse::Accepted(_) => {
                let once = format!("{MAY} (the first attempt was refused with {status})");
                (once, self.try_out(&fresh, true).await?)
            }
            CursorUse::Refused(status) => {
                self.prober.dates_with_cursor = false;
                let dates = format!("not allowed: {status} with them");
                (dates, self.try_out(cursor, false).await?)
            }
        };
        let twice = match again {
            CursorUse::Accepted(_) => YES.to_owned(),
            CursorUse::Refused(status) => format!("no: {status} the second time"),
        };
        Ok((Ok(dates), Ok(twice)))
    }

    /// Uses a cursor. The error is the reason why there is no result.
    async fn try_out(&mut self, cursor: &Secret, with_dates: bool) -> Result<CursorUse, String> {
        let answer = self.prober.send(&self.first.page(cursor, with_dates)).await;
        self.evidence.extend(answer.evidence);
        match answer.outcome {
            Ok(page) => {
                let ids = page.ids().into_iter().map(String::from).collect();
                self.page.get_or_insert(page);
                Ok(CursorUse::Accepted(ids))
            }
            Err(error) => error
                .refusal()
                .map(|(status, _)| CursorUse::Refused(status)),
        }
    }

    /// Returns an unused cursor.
    async fn fresh(&mut self) -> Result<Secret, String> {
        let answer = self.prober.send(&self.first).await;
        self.evidence.extend(answer.evidence);
        let page = answer.outcome.map_err(|error| error.reason())?;
        page.next
            .ok_or_else(|| "the first page had no next_token the second time".to_owned())
    }
}

const MAY: &str = "optional: the same page is returned with and without them";
const YES: &str = "yes: the same page is returned again";

/// Uses a cursor that the service did not issue.
async fn probe_bad_cursor(prober: &mut Prober) -> TopicAnswer {
    let invalid = Secret::cursor("no-cursor-of-this-service");
    let request =
        ProbeRequest::between(Version::V2, ALWAYS).page(&invalid, prober.dates_with_cursor);
    let answer = prober.send(&request.bad()).await;
    let result = match answer.outcome {
        Ok(page) => {
            let count = batches(page.batches.len());
            Ok(format!("accepted with 200: {count} returned"))
        }
        Err(error) => error
            .refusal()
            .map(|(status, shape)| format!("{status}, {shape}")),
    };
    TopicAnswer::from_result(Topic::BadCursor, result, answer.evidence)
}
