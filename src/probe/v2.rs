//! Questions about version 2: page size, order, and `next_token` (interface, sections 4, 7 and 8).

use super::listing::{BatchList, SampledBatch, batches};
use super::prober::Prober;
use super::request::{ALWAYS, NoBatches, ProbeRequest};
use super::sample::{BatchSample, order_of};
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

    /// Returns a range without about half of the batches of the first page. `None` if their dates are the same.
    fn part(&self) -> Option<(i64, i64)> {
        let sizes = self.sizes.iter().map(|(size, _)| *size);
        let size = sizes.into_iter().find(|size| *size > 0)?;
        let seconds = self.sample.batches[..size].iter();
        part_of(&seconds.map(SampledBatch::second).collect::<Vec<_>>())
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

/// Returns a range that leaves out about half of the batches created at `seconds`, those that arrived first if they are
/// in order. `None` if all have the same date.
fn part_of(seconds: &[i64]) -> Option<(i64, i64)> {
    let is_newest_first = seconds.first()? > seconds.last()?;
    let mut sorted = seconds.to_vec();
    sorted.sort_unstable();
    let (oldest, newest) = (*sorted.first()?, *sorted.last()?);
    let mut middle_on = sorted[sorted.len() / 2..].iter();
    let mut up_to_middle = sorted[..=sorted.len() / 2].iter().rev();
    if is_newest_first {
        let end = *up_to_middle.find(|second| **second < newest)?;
        Some((ALWAYS.0, end))
    } else {
        let start = *middle_on.find(|second| **second > oldest)?;
        Some((start, ALWAYS.1))
    }
}

/// Reads the first pages, as far as the questions need them.
pub(super) async fn probe(prober: &mut Prober) -> (Vec<TopicAnswer>, BatchSample) {
    let (first, page) = first_page(prober).await;
    let evidence = std::mem::take(&mut prober.evidence);
    let page = match page {
        Ok(page) => page,
        Err(error) => return (unanswered(error, &evidence), BatchSample::default()),
    };
    let mut walk = ProbeWalk {
        first: evidence,
        ..ProbeWalk::default()
    };
    let cursor = walk.add(&page);
    let mut about_cursor = match &cursor {
        Some(cursor) => {
            let (mut answers, second) = probe_cursor(prober, &first, &page, cursor).await;
            let next = second.and_then(|page| walk.add(&page));
            read_on(prober, &first, &mut walk, next).await;
            // The sizes of the pages say enough.
            prober.evidence.clear();
            for answer in &mut answers {
                if answer.answer.starts_with(MAY) {
                    confirm_optional(prober, &walk, &page, answer).await;
                }
            }
            answers
        }
        None => without_cursor(&walk),
    };
    about_cursor.push(probe_bad_cursor(prober).await);

    let evidence = walk.evidence();
    let size = TopicAnswer::new(Topic::PageSize, walk.size(), evidence.clone());
    let order = order_of(&walk.sample.batches);
    let order = TopicAnswer::new(Topic::Order(Version::V2), order, evidence);
    let findings = [vec![size], about_cursor, vec![order]].concat();
    (findings, walk.sample)
}

/// Requests the first page of all batches.
async fn first_page(prober: &mut Prober) -> (ProbeRequest, Result<BatchList, NoBatches>) {
    let first = ProbeRequest::between(Version::V2, ALWAYS);
    let page = prober.send(&first).await;
    if !matches!(page, Err(NoBatches::Refused { .. })) {
        return (first, page);
    }
    // The service may refuse a range of a century. Try without dates.
    let undated = ProbeRequest::all(Version::V2);
    let page = prober.send(&undated).await;
    (undated, page)
}

/// Requests more pages until there are enough batches.
async fn read_on(
    prober: &mut Prober,
    first: &ProbeRequest,
    walk: &mut ProbeWalk,
    mut next: Option<Secret>,
) {
    let mut was_refused = false;
    while let Some(cursor) = &next {
        if walk.is_over() {
            return;
        }
        let page = first.page(cursor, prober.dates_with_cursor);
        match prober.send(&page).await {
            Ok(page) => next = walk.add(&page),
            // A cursor that is refused once may be accepted the next time.
            Err(NoBatches::Refused { .. }) if !was_refused => was_refused = true,
            Err(_) => return,
        }
    }
}

/// Returns unknown answers to all questions about pages, if there are none.
fn unanswered(error: NoBatches, evidence: &[String]) -> Vec<TopicAnswer> {
    let topics = [
        Topic::PageSize,
        Topic::DatesWithCursor,
        Topic::CursorTwice,
        Topic::BadCursor,
        Topic::Order(Version::V2),
    ];
    let reason = String::from(error);
    let unknown = |topic| TopicAnswer::new(topic, Err(reason.clone()), evidence.to_vec());
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
        .map(|topic| TopicAnswer::new(topic, Err(reason.to_owned()), walk.evidence()))
        .into()
}

/// Tries a cursor in several ways.
struct CursorTrial<'a> {
    prober: &'a mut Prober,
    /// The request that returned the cursor, and its page.
    first: &'a ProbeRequest,
    page: &'a BatchList,
    /// The first page that the cursor returned.
    second: Option<BatchList>,
}

/// The result of using a cursor.
enum CursorUse {
    Accepted(BatchList),
    Refused(u16),
}

/// Requests the page at `cursor`, with the dates of `first` and without them; returns it if there is one.
async fn probe_cursor(
    prober: &mut Prober,
    first: &ProbeRequest,
    page: &BatchList,
    cursor: &Secret,
) -> (Vec<TopicAnswer>, Option<BatchList>) {
    let mut trial = CursorTrial {
        prober,
        first,
        page,
        second: None,
    };
    let (dates, twice) = match trial.run(cursor).await {
        Ok(result) => result,
        Err(reason) => (Err(reason.clone()), Err(reason)),
    };
    let second = trial.second;
    let dates = prober.answer(Topic::DatesWithCursor, dates);
    let twice = TopicAnswer::new(Topic::CursorTwice, twice, dates.evidence.clone());
    (vec![dates, twice], second)
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
            (CursorUse::Accepted(with), CursorUse::Accepted(without))
                if with.ids() == without.ids() =>
            {
                Ok((Ok(MAY.to_owned()), Ok(YES.to_owned())))
            }
            (CursorUse::Accepted(with), CursorUse::Accepted(without))
                if with.ids() == self.page.ids() =>
            {
                // The first page again is not the second.
                self.second = Some(without);
                self.starts_anew(cursor).await
            }
            (CursorUse::Accepted(_), CursorUse::Accepted(_)) => {
                Ok((Ok(MUST.to_owned()), Ok(YES.to_owned())))
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

    /// The cursor returned the first page again with dates, and another page without them.
    async fn starts_anew(&mut self, cursor: &Secret) -> Result<CursorAnswers, String> {
        self.prober.dates_with_cursor = false;
        let twice = match self.try_out(cursor, false).await? {
            CursorUse::Accepted(_) => YES.to_owned(),
            CursorUse::Refused(status) => format!("no: {status} the second time"),
        };
        Ok((Ok(ANEW.to_owned()), Ok(twice)))
    }

    /// The cursor was accepted with dates, then refused without: because the dates are missing, or because a
    /// cursor works only once?
    async fn refused_alone(
        &mut self,
        cursor: &Secret,
        status: u16,
    ) -> Result<CursorAnswers, String> {
        let again = match self.try_out(cursor, true).await? {
            CursorUse::Accepted(_) => {
                let dates = format!("required: {status} without them");
                return Ok((Ok(dates), Ok(YES.to_owned())));
            }
            CursorUse::Refused(again) => again,
        };
        let once = Ok(format!("no: {again} the second time"));
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
        match self.prober.send(&self.first.page(cursor, with_dates)).await {
            Ok(page) => {
                self.second.get_or_insert_with(|| page.clone());
                Ok(CursorUse::Accepted(page))
            }
            Err(error) => error
                .refusal()
                .map(|(status, _)| CursorUse::Refused(status)),
        }
    }

    /// Returns an unused cursor.
    async fn fresh(&mut self) -> Result<Secret, String> {
        let page = self.prober.send(self.first).await?;
        let no_cursor = "the first page had no next_token the second time";
        Ok(page.next.ok_or(no_cursor)?)
    }
}

const MAY: &str = "optional: the same page is returned with and without them";
const MUST: &str = "required: without them, other batches are returned";
const ANEW: &str = "not allowed: with them, the first page is returned again";
const YES: &str = "yes: the same page is returned again";

/// Checks the answer that dates are optional with a cursor. The range of the first requests has all batches, so a
/// service that forgets it returns the same pages. A range that leaves some batches out shows the difference.
async fn confirm_optional(
    prober: &mut Prober,
    walk: &ProbeWalk,
    first_page: &BatchList,
    answer: &mut TopicAnswer,
) {
    prober.evidence = std::mem::take(&mut answer.evidence);
    let result = match walk.part() {
        Some(range) => compare_part(prober, range, first_page).await,
        None => Err("the batches of the first page have the same date".to_owned()),
    };
    let result = result.map(|other| other.map_or_else(|| answer.answer.clone(), String::from));
    *answer = prober.answer(answer.topic, result);
}

/// Compares the page at a cursor of `range`, which leaves some batches out, with and without dates; `None` if they
/// are the same.
async fn compare_part(
    prober: &mut Prober,
    range: (i64, i64),
    first_page: &BatchList,
) -> Result<Option<&'static str>, String> {
    let first = ProbeRequest::between(Version::V2, range);
    let page = prober.send(&first).await?;
    if page.ids() == first_page.ids() {
        return Err("a range that leaves batches out returns the same batches".to_owned());
    }
    let cursor = next_of(&page)?;
    let with = page_at(prober, &first, &cursor, true).await?;
    let without = page_at(prober, &first, &cursor, false).await?;
    if with.ids().is_empty() && without.ids().is_empty() {
        return Err("the pages to compare have no batches".to_owned());
    }
    Ok(if with.ids() == without.ids() {
        None
    } else if with.ids() == page.ids() {
        Some(ANEW)
    } else {
        Some(MUST)
    })
}

/// Returns the page at `cursor`, or at another one if the service accepts a cursor only once.
async fn page_at(
    prober: &mut Prober,
    first: &ProbeRequest,
    cursor: &Secret,
    with_dates: bool,
) -> Result<BatchList, String> {
    let page = prober.send(&first.page(cursor, with_dates)).await;
    if !matches!(page, Err(NoBatches::Refused { .. })) {
        return Ok(page?);
    }
    let fresh = next_of(&prober.send(first).await?)?;
    Ok(prober.send(&first.page(&fresh, with_dates)).await?)
}

fn next_of(page: &BatchList) -> Result<Secret, String> {
    let next = page.next.clone();
    next.ok_or_else(|| "a range that leaves batches out has only one page".to_owned())
}

/// Uses a cursor that the service did not issue.
async fn probe_bad_cursor(prober: &mut Prober) -> TopicAnswer {
    let invalid = Secret::cursor("no-cursor-of-this-service");
    let request =
        ProbeRequest::between(Version::V2, ALWAYS).page(&invalid, prober.dates_with_cursor);
    let result = match prober.send(&request.bad()).await {
        Ok(page) => {
            let count = batches(page.batches.len());
            Ok(format!("accepted with 200: {count} returned"))
        }
        Err(error) => error
            .refusal()
            .map(|(status, shape)| format!("{status}, {shape}")),
    };
    prober.answer(Topic::BadCursor, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_leaves_out_what_arrives_first() {
        let (first, last) = ALWAYS;
        assert_eq!(part_of(&[10, 20, 30, 40]), Some((30, last)));
        assert_eq!(part_of(&[40, 30, 20, 10]), Some((first, 30)));
        assert_eq!(part_of(&[20, 40, 10, 30]), Some((30, last)));
        assert_eq!(part_of(&[10, 10, 10, 20]), Some((20, last)));
        assert_eq!(part_of(&[20, 20, 20, 10]), Some((first, 10)));
        assert_eq!(part_of(&[10, 10]), None);
        assert_eq!(part_of(&[]), None);
    }
}
