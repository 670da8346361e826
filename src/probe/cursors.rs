//! `next_token`: with dates or without, once or twice, and what a bad one gets (interface, sections 4
//! and 7).

use std::collections::BTreeSet;

use super::ask::{ALWAYS, Ask, BatchList, NoBatches, batches};
use super::prober::Prober;
use super::topic::{Topic, TopicAnswer};
use crate::client::Version;
use crate::secret::Secret;

/// What was found out on the second page.
pub(super) struct SecondPage {
    pub(super) findings: Vec<TopicAnswer>,
    /// The page itself, where it came.
    pub(super) page: Option<BatchList>,
}

/// What was tried with a cursor, and what came of it.
struct CursorTrial<'a> {
    prober: &'a mut Prober,
    /// The request whose first page gave the cursor.
    first: Ask,
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
pub(super) async fn ask(prober: &mut Prober, first: &Ask, cursor: &Secret) -> SecondPage {
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
            TopicAnswer::of(Topic::DatesWithCursor, dates, evidence.clone()),
            TopicAnswer::of(Topic::CursorTwice, twice, evidence),
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
pub(super) async fn bad(prober: &mut Prober) -> TopicAnswer {
    let nobodys = Secret::cursor("no-cursor-of-this-service");
    let ask = Ask::between(Version::V2, ALWAYS).page(&nobodys, prober.dates_with_cursor);
    let answered = prober.ask(&ask.bad()).await;
    let told = match answered.outcome {
        Ok(page) => Ok(format!(
            "taken with 200: {} came",
            batches(page.batches.len())
        )),
        Err(NoBatches::Refused { status, shape }) => Ok(format!("{status}, {shape}")),
        Err(no @ NoBatches::Lost(_)) => Err(no.why()),
    };
    TopicAnswer::of(Topic::BadCursor, told, answered.evidence)
}
