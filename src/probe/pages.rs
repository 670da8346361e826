//! Pages of version 2: how large they are, and in which order batches stand on them (interface,
//! sections 4 and 8).

use super::ask::{ALWAYS, Ask, BatchList, NoBatches, ProbeAnswer, batches};
use super::prober::Prober;
use super::sample::BatchSample;
use super::topic::{Topic, TopicAnswer};
use super::{cursors, order};
use crate::client::Version;
use crate::secret::Secret;

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
pub(super) async fn ask(prober: &mut Prober) -> (Vec<TopicAnswer>, BatchSample) {
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
            let second = cursors::ask(prober, &first, cursor).await;
            let next = second.page.as_ref().and_then(|page| walk.take(page));
            go_on(prober, &first, &mut walk, next).await;
            second.findings
        }
        None => without_cursor(&walk),
    };
    about_cursor.push(cursors::bad(prober).await);

    let evidence = walk.evidence();
    let size = TopicAnswer::of(Topic::PageSize, walk.size(), evidence.clone());
    let order = order::of(&walk.sample.batches).map(order::ObservedOrder::words);
    let order = TopicAnswer::of(Topic::Order(Version::V2), order, evidence);
    let findings = [vec![size], about_cursor, vec![order]].concat();
    (findings, walk.sample)
}

/// Asks for the first page of all batches.
async fn first_page(prober: &mut Prober) -> (Ask, ProbeAnswer) {
    let first = Ask::between(Version::V2, ALWAYS);
    let answered = prober.ask(&first).await;
    if !matches!(answered.outcome, Err(NoBatches::Refused { .. })) {
        return (first, answered);
    }
    // A century may be too much to ask; without dates there is nothing to object to.
    let undated = Ask::all(Version::V2);
    let mut again = prober.ask(&undated).await;
    again.evidence.splice(0..0, answered.evidence);
    (undated, again)
}

/// Asks for further pages until there are enough.
async fn go_on(prober: &mut Prober, first: &Ask, walk: &mut ProbeWalk, next: Option<Secret>) {
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
        .map(|topic| TopicAnswer::open(topic, &no.why(), evidence.to_vec()))
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
        .map(|topic| TopicAnswer::open(topic, why, walk.evidence()))
        .into()
}
