//! The batches of a range, whole (version 1) or page by page (version 2).

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::answer::{BodyPart, Invalid, ServerResponse};
use super::catalog::Catalog;
use super::cursor::{Cursor, Sealer};
use super::faults::{BatchOrder, DatesWithCursor, Excess, Faults};
use super::rng::{happens, mix};
use super::shuffle::Shuffle;
use super::store::Snapshot;
use super::{dates, query};

/// What version 1 takes where it has a limit (interface, section 8).
const V1_LIMIT: usize = 1000;

/// All that decides how batches are handed out.
pub(super) struct BatchHandler {
    pub(super) faults: Faults,
    pub(super) seed: u64,
    pub(super) page_size: usize,
    pub(super) v1_limit: Option<usize>,
    pub(super) cursors: Sealer,
    /// Ranges whose cursor has expired already, as `cursor-expiry` does once for each.
    pub(super) expired: Mutex<HashSet<Bounds>>,
}

/// `start_date` and `end_date`, in seconds since 1970.
type Bounds = (Option<i64>, Option<i64>);

impl BatchHandler {
    /// Answers `GET /v1/batches`: everything in one flat array.
    pub(super) fn flat(
        &self,
        edition: &Snapshot,
        query: &str,
    ) -> Result<ServerResponse, ServerResponse> {
        let (start, end) = bounds(query).map_err(|wrong| ServerResponse::invalid(&wrong))?;
        let all = edition.catalog.between(start, end);
        let mut count = all.len();
        let excess = self.faults.v1_excess;
        let limit = self
            .v1_limit
            .or(excess.map(|_| V1_LIMIT))
            .unwrap_or(usize::MAX);
        if count > limit {
            if let Some(Excess::Refuse(status)) = excess {
                let msg = format!("More than {limit} batches in this range");
                return Err(ServerResponse::refusal(
                    status,
                    Invalid::new("too_many", ["query", "start_date"], msg),
                ));
            }
            count = limit;
        }
        let selection = RangeSelection::new(self, edition, all);
        let again = selection.doubled(0..count);
        let answered = count + again.len();
        let mut parts = vec![fixed("[")];
        parts.extend(selection.text(0..count));
        parts.extend(selection.behind(count, &again));
        parts.push(fixed("]"));
        Ok(ServerResponse::of_batches(parts, answered))
    }

    /// Answers `GET /v2/batches`: one page, with the cursor of the next.
    pub(super) fn page(
        &self,
        edition: &Snapshot,
        query: &str,
    ) -> Result<ServerResponse, ServerResponse> {
        let cursor = self.cursor(edition, query)?;
        let all = edition.catalog.between(cursor.start, cursor.end);
        let selection = RangeSelection::new(self, edition, all);
        let len = selection.batches.len();
        let is_ignored = self.faults.cursor_ignored;
        let asked_for = if is_ignored { 0 } else { cursor.position };
        let first = usize::try_from(asked_for).unwrap_or(usize::MAX).min(len);

        let leave_empty = happens(mix(self.seed, cursor.position), self.faults.empty_pages);
        if leave_empty && !cursor.after_empty {
            let next = Cursor {
                after_empty: true,
                ..cursor
            };
            let next = self.cursors.seal(&next, edition.number);
            return Ok(envelope(Vec::new(), 0, Some(next)));
        }
        let past = len.min(first.saturating_add(self.page_size));
        // What was on the page before may come again, and on the last page its own.
        let mut again = selection.doubled(first.saturating_sub(self.page_size)..first);
        if past == len {
            again.extend(selection.doubled(first..past));
        }
        let count = past - first + again.len();
        let mut parts = selection.text(first..past);
        parts.extend(selection.behind(past - first, &again));
        // A cursor that is ignored still counts on, so that no two are the same.
        let passed = if is_ignored { cursor.position } else { 0 };
        let next = Cursor {
            position: passed.saturating_add(past as u64),
            after_empty: false,
            ..cursor
        };
        let next = (past < len).then(|| self.cursors.seal(&next, edition.number));
        Ok(envelope(parts, count, next))
    }

    /// Returns where the request goes on: at its `next_token`, or at the first page of its range.
    fn cursor(&self, edition: &Snapshot, query: &str) -> Result<Cursor, ServerResponse> {
        let token = query::parameter(query, "next_token");
        let (token, (start, end)) = match (token, bounds(query)) {
            (Ok(token), Ok(bounds)) => (token, bounds),
            (token, bounds) => {
                let mut wrong = bounds.err().unwrap_or_default();
                wrong.extend(token.err());
                return Err(ServerResponse::invalid(&wrong));
            }
        };
        let Some(token) = token else {
            return Ok(Cursor {
                start,
                end,
                position: 0,
                after_empty: false,
            });
        };
        let Some((cursor, number)) = self.cursors.open(&token) else {
            return Err(self.bad_cursor("Not a next_token of this service"));
        };
        self.check_dates(&cursor, start, end)?;
        // Its place is one among the batches as they were.
        if number != edition.number || self.expires_now(&cursor) {
            return Err(self.bad_cursor("This next_token has expired"));
        }
        Ok(cursor)
    }

    /// Dates beside a cursor are not needed, for it carries them; but they must not contradict it.
    fn check_dates(
        &self,
        cursor: &Cursor,
        start: Option<i64>,
        end: Option<i64>,
    ) -> Result<(), ServerResponse> {
        let dates = [
            ("start_date", start, cursor.start),
            ("end_date", end, cursor.end),
        ];
        let mut wrong = Vec::new();
        for (name, given, carried) in dates {
            let loc = ["query", name];
            match self.faults.dates_with_cursor {
                DatesWithCursor::Required if given.is_none() && carried.is_some() => {
                    wrong.push(Invalid::missing(loc));
                }
                DatesWithCursor::Refused if given.is_some() => {
                    let msg = "Not allowed together with next_token";
                    wrong.push(Invalid::new("extra_forbidden", loc, msg));
                }
                _ => {}
            }
        }
        if !wrong.is_empty() {
            return Err(ServerResponse::invalid(&wrong));
        }
        if dates
            .iter()
            .any(|(_, given, carried)| given.is_some() && given != carried)
        {
            return Err(self.bad_cursor("This next_token belongs to another range"));
        }
        Ok(())
    }

    fn expires_now(&self, cursor: &Cursor) -> bool {
        let page = cursor.position / self.page_size as u64 + 1;
        if self.faults.cursor_expiry != Some(page) {
            return false;
        }
        let mut expired = self.expired.lock().unwrap_or_else(PoisonError::into_inner);
        // Ranges to remember; past that, some expire a second time rather than memory growing.
        if expired.len() >= 1 << 16 {
            expired.clear();
        }
        expired.insert((cursor.start, cursor.end))
    }

    /// Error for an invalid `next_token`: not shown (interface, section 7).
    fn bad_cursor(&self, msg: &str) -> ServerResponse {
        let field = Invalid::new("value_error", ["query", "next_token"], msg);
        ServerResponse::refusal(self.faults.bad_cursor, field)
    }
}

/// Puts a page around `batches`, with the cursor of the next.
fn envelope(batches: Vec<BodyPart>, count: usize, next: Option<String>) -> ServerResponse {
    let mut parts = vec![fixed("{\"data\":[")];
    parts.extend(batches);
    parts.push(match next {
        Some(next) => BodyPart::from(format!("],\"next_token\":\"{next}\"}}")),
        None => fixed("],\"next_token\":null}"),
    });
    ServerResponse::of_batches(parts, count)
}

/// Reads both dates; each that is wrong is named.
fn bounds(query: &str) -> Result<Bounds, Vec<Invalid>> {
    let date = |name: &'static str| match query::parameter(query, name)? {
        Some(text) => dates::parse(&text, ["query", name]).map(Some),
        None => Ok(None),
    };
    match (date("start_date"), date("end_date")) {
        (Ok(start), Ok(end)) => Ok((start, end)),
        (start, end) => Err(start.err().into_iter().chain(end.err()).collect()),
    }
}

/// The batches of one range, in the order of the answer.
struct RangeSelection<'a> {
    service: &'a BatchHandler,
    catalog: &'a Arc<Catalog>,
    batches: Range<usize>,
    shuffle: Shuffle,
}

impl<'a> RangeSelection<'a> {
    fn new(service: &'a BatchHandler, edition: &'a Snapshot, batches: Range<usize>) -> Self {
        Self {
            service,
            catalog: &edition.catalog,
            shuffle: Shuffle::new(service.seed, batches.len()),
            batches,
        }
    }

    /// Returns which batch of the catalogue stands at `place` of the answer.
    fn at(&self, place: usize) -> usize {
        match self.service.faults.order {
            BatchOrder::OldestFirst => self.batches.start + place,
            BatchOrder::NewestFirst => self.batches.end - 1 - place,
            BatchOrder::Shuffled => self.batches.start + self.shuffle.at(place),
        }
    }

    /// Returns the text of what stands at `places`.
    fn text(&self, places: Range<usize>) -> Vec<BodyPart> {
        if self.service.faults.order == BatchOrder::OldestFirst {
            let start = self.batches.start;
            let slices = self
                .catalog
                .slices(start + places.start..start + places.end);
            return slices.into_iter().map(BodyPart::from).collect();
        }
        let batches: Vec<usize> = places.map(|place| self.at(place)).collect();
        self.gathered(&batches)
    }

    /// Returns the text of `batches`, in pieces of a size that is worth putting together.
    fn gathered(&self, batches: &[usize]) -> Vec<BodyPart> {
        const PIECE: usize = 512;
        let mut parts = Vec::new();
        for batches in batches.chunks(PIECE) {
            if !parts.is_empty() {
                parts.push(fixed(","));
            }
            let catalog = Arc::clone(self.catalog);
            parts.push(BodyPart::Gathered {
                catalog,
                batches: batches.to_vec(),
            });
        }
        parts
    }

    /// Returns those batches at `places` that are answered twice.
    fn doubled(&self, places: Range<usize>) -> Vec<usize> {
        let probability = self.service.faults.duplicates;
        if probability <= 0.0 {
            return Vec::new();
        }
        let batches = places.map(|place| self.at(place));
        batches
            .filter(|&batch| happens(mix(self.service.seed, batch as u64), probability))
            .collect()
    }

    /// Returns the text of `batches` as it follows `count` others.
    fn behind(&self, count: usize, batches: &[usize]) -> Vec<BodyPart> {
        let mut parts = self.gathered(batches);
        if count > 0 && !parts.is_empty() {
            parts.insert(0, fixed(","));
        }
        parts
    }
}

fn fixed(text: &'static str) -> BodyPart {
    BodyPart::Ready(Bytes::from_static(text.as_bytes()))
}
