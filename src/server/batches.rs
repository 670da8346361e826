//! Responds with the batches of a range: all at once (version 1) or page by page (version 2).

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::catalog::Catalog;
use super::cursor::{Cursor, Sealer};
use super::faults::{BatchOrder, DatesWithCursor, Excess, Faults};
use super::query;
use super::response::{BodyPart, Invalid, ServerResponse};
use super::rng::{Shuffle, happens, mix};
use super::store::Snapshot;

/// The default limit of version 1 for the faults that need one (interface, section 8).
const V1_LIMIT: usize = 1000;

/// The number of batches that are joined at a time.
const PIECE: usize = 512;

/// The options that decide how batches are returned.
pub(super) struct BatchHandler {
    pub(super) faults: Faults,
    pub(super) seed: u64,
    pub(super) page_size: usize,
    pub(super) v1_limit: Option<usize>,
    pub(super) cursors: Sealer,
    /// Ranges whose cursor has already expired: `cursor-expiry` applies once to each range.
    pub(super) expired: Mutex<HashSet<Bounds>>,
}

/// `start_date` and `end_date`, in seconds since 1970.
type Bounds = (Option<i64>, Option<i64>);

impl BatchHandler {
    /// Responds to `GET /v1/batches`: all batches in one flat array.
    pub(super) fn v1_array(
        &self,
        snapshot: &Snapshot,
        query: &str,
    ) -> Result<ServerResponse, ServerResponse> {
        let (start, end) = bounds(query).map_err(|invalid| ServerResponse::invalid(&invalid))?;
        let all = snapshot.catalog.between(start, end);
        let mut count = all.len();
        let excess = self.faults.v1_excess;
        let limit = self
            .v1_limit
            .or(excess.map(|_| V1_LIMIT))
            .unwrap_or(usize::MAX);
        if count > limit {
            if let Some(Excess::Refuse(status)) = excess {
                let msg = format!("More than {limit} batches in this range");
                let field = Invalid::new("too_many", ["query", "start_date"], msg);
                return Err(ServerResponse::refusal(status, field));
            }
            count = limit;
        }
        let selection = RangeSelection::new(self, snapshot, all);
        let repeated = selection.duplicates(0..count);
        let total = count + repeated.len();
        let mut parts = vec![literal("[")];
        parts.extend(selection.text(0..count));
        parts.extend(selection.appended(count, &repeated));
        parts.push(literal("]"));
        Ok(ServerResponse::of_batches(parts, total))
    }

    /// Responds to `GET /v2/batches`: one page, with the cursor of the next.
    pub(super) fn v2_page(
        &self,
        snapshot: &Snapshot,
        query: &str,
    ) -> Result<ServerResponse, ServerResponse> {
        let cursor = self.cursor(snapshot, query)?;
        let all = snapshot.catalog.between(cursor.start, cursor.end);
        let selection = RangeSelection::new(self, snapshot, all);
        let len = selection.batches.len();
        let is_ignored = self.faults.cursor_ignored;
        let requested = if is_ignored { 0 } else { cursor.position };
        let first = usize::try_from(requested).unwrap_or(usize::MAX).min(len);

        let leave_empty = happens(mix(self.seed, cursor.position), self.faults.empty_pages);
        if leave_empty && !cursor.after_empty {
            let next = Cursor {
                after_empty: true,
                ..cursor
            };
            let next = self.cursors.seal(&next, snapshot.number);
            return Ok(envelope(Vec::new(), 0, Some(next)));
        }
        let end_index = len.min(first.saturating_add(self.page_size));
        // Batches of the previous page may be repeated, and on the last page also its own.
        let mut repeated = selection.duplicates(first.saturating_sub(self.page_size)..first);
        if end_index == len {
            repeated.extend(selection.duplicates(first..end_index));
        }
        let count = end_index - first + repeated.len();
        let mut parts = selection.text(first..end_index);
        parts.extend(selection.appended(end_index - first, &repeated));
        // An ignored cursor still advances, so that no two are equal.
        let passed = if is_ignored { cursor.position } else { 0 };
        let next = Cursor {
            position: passed.saturating_add(end_index as u64),
            after_empty: false,
            ..cursor
        };
        let next = (end_index < len).then(|| self.cursors.seal(&next, snapshot.number));
        Ok(envelope(parts, count, next))
    }

    /// Returns the position of the requested page: from its `next_token`, or the start of its range.
    fn cursor(&self, snapshot: &Snapshot, query: &str) -> Result<Cursor, ServerResponse> {
        let token = query::parameter(query, "next_token");
        let (token, (start, end)) = match (token, bounds(query)) {
            (Ok(token), Ok(bounds)) => (token, bounds),
            (token, bounds) => {
                let mut invalid = bounds.err().unwrap_or_default();
                invalid.extend(token.err());
                return Err(ServerResponse::invalid(&invalid));
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
        // The position is only valid in the snapshot that it was made for.
        if number != snapshot.number || self.expires_now(&cursor) {
            return Err(self.bad_cursor("This next_token has expired"));
        }
        Ok(cursor)
    }

    /// Checks the dates of a request with a cursor. They are optional, since the cursor contains them, but
    /// must not contradict it.
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
        let mut invalid = Vec::new();
        for (name, given, in_cursor) in dates {
            let loc = ["query", name];
            match self.faults.dates_with_cursor {
                DatesWithCursor::Required if given.is_none() && in_cursor.is_some() => {
                    invalid.push(Invalid::missing(loc));
                }
                DatesWithCursor::Refused if given.is_some() => {
                    let msg = "Not allowed together with next_token";
                    invalid.push(Invalid::new("extra_forbidden", loc, msg));
                }
                _ => {}
            }
        }
        if !invalid.is_empty() {
            return Err(ServerResponse::invalid(&invalid));
        }
        let differs =
            |(_, given, in_cursor): &(_, Option<i64>, _)| given.is_some() && given != in_cursor;
        if dates.iter().any(differs) {
            return Err(self.bad_cursor("This next_token belongs to another range"));
        }
        Ok(())
    }

    fn expires_now(&self, cursor: &Cursor) -> bool {
        let page = cursor.position / self.page_size as u64 + 1;
        if self.faults.cursor_expiry != Some(page) {
            return false;
        }
        let mut expired = self.expired.lock();
        // Limits memory: beyond this number, some ranges expire a second time.
        if expired.len() >= 1 << 16 {
            expired.clear();
        }
        expired.insert((cursor.start, cursor.end))
    }

    /// Returns the error for an invalid `next_token`: not shown (interface, section 7).
    fn bad_cursor(&self, msg: &str) -> ServerResponse {
        let field = Invalid::new("value_error", ["query", "next_token"], msg);
        ServerResponse::refusal(self.faults.bad_cursor.unwrap_or(422), field)
    }
}

/// Returns a page with `batches` and the cursor of the next page.
fn envelope(batches: Vec<BodyPart>, count: usize, next: Option<String>) -> ServerResponse {
    let mut parts = vec![literal("{\"data\":[")];
    parts.extend(batches);
    parts.push(match next {
        Some(next) => BodyPart::from(format!("],\"next_token\":\"{next}\"}}")),
        None => literal("],\"next_token\":null}"),
    });
    ServerResponse::of_batches(parts, count)
}

/// Reads both dates. The error names each invalid one.
fn bounds(query: &str) -> Result<Bounds, Vec<Invalid>> {
    let date = |name: &'static str| match query::parameter(query, name)? {
        Some(text) => query::parse_date(&text, ["query", name]).map(Some),
        None => Ok(None),
    };
    match (date("start_date"), date("end_date")) {
        (Ok(start), Ok(end)) => Ok((start, end)),
        (start, end) => Err(start.err().into_iter().chain(end.err()).collect()),
    }
}

/// The batches of one range, in the order of the response.
struct RangeSelection<'a> {
    handler: &'a BatchHandler,
    catalog: &'a Arc<Catalog>,
    batches: Range<usize>,
    shuffle: Shuffle,
}

impl<'a> RangeSelection<'a> {
    fn new(handler: &'a BatchHandler, snapshot: &'a Snapshot, batches: Range<usize>) -> Self {
        Self {
            handler,
            catalog: &snapshot.catalog,
            shuffle: Shuffle::new(handler.seed, batches.len()),
            batches,
        }
    }

    /// Returns the catalogue index of the batch at `position` in the response.
    fn at(&self, position: usize) -> usize {
        match self.handler.faults.order {
            BatchOrder::OldestFirst => self.batches.start + position,
            BatchOrder::NewestFirst => self.batches.end - 1 - position,
            BatchOrder::Shuffled => self.batches.start + self.shuffle.at(position),
        }
    }

    /// Returns the text of the batches at `positions`.
    fn text(&self, positions: Range<usize>) -> Vec<BodyPart> {
        if self.handler.faults.order == BatchOrder::OldestFirst {
            let start = self.batches.start;
            let batches = start + positions.start..start + positions.end;
            let slices = self.catalog.slices(batches);
            return slices.into_iter().map(BodyPart::from).collect();
        }
        let batches: Vec<usize> = positions.map(|position| self.at(position)).collect();
        self.gathered(&batches)
    }

    /// Returns the text of `batches`, in pieces of at most `PIECE` batches.
    fn gathered(&self, batches: &[usize]) -> Vec<BodyPart> {
        let mut parts = Vec::new();
        for batches in batches.chunks(PIECE) {
            if !parts.is_empty() {
                parts.push(literal(","));
            }
            parts.push(BodyPart::Gathered {
                catalog: Arc::clone(self.catalog),
                batches: batches.to_vec(),
            });
        }
        parts
    }

    /// Returns the batches at `positions` that are repeated because of a fault.
    fn duplicates(&self, positions: Range<usize>) -> Vec<usize> {
        let probability = self.handler.faults.duplicates;
        if probability <= 0.0 {
            return Vec::new();
        }
        let batches = positions.map(|position| self.at(position));
        batches
            .filter(|&batch| happens(mix(self.handler.seed, batch as u64), probability))
            .collect()
    }

    /// Returns the text of `batches` to append after `count` others.
    fn appended(&self, count: usize, batches: &[usize]) -> Vec<BodyPart> {
        let mut parts = self.gathered(batches);
        if count > 0 && !parts.is_empty() {
            parts.insert(0, literal(","));
        }
        parts
    }
}

fn literal(text: &'static str) -> BodyPart {
    BodyPart::Ready(Bytes::from_static(text.as_bytes()))
}
