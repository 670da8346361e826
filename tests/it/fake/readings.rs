//! A service with readings of the interface that no `--fault` offers, some of them against its wording.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{Answer, Batch, FakeService, Received, list, page};

/// The creation time of the first batch, 2026-05-01T06:00:00Z.
const BEGIN: i64 = 1_777_615_200;
pub(crate) const TOKEN: &str = "quetzalcoatl-and-his-feathers";
/// The start of every cursor.
pub(crate) const CURSOR: &str = "xylophone-in-the-attic-";

/// What the dates of a request are compared with.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Compared {
    Created,
    /// The creation date without its seconds, without minutes and seconds, and without its time.
    Minute,
    Hour,
    Day,
    /// An unknown field, 30 days after the creation.
    Updated,
    Nothing,
}

/// A service with readings that no fault offers.
#[derive(Clone)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a separate reading of the interface"
)]
pub(crate) struct Readings {
    pub(crate) count: i64,
    pub(crate) compared: Compared,
    pub(crate) includes_start: bool,
    pub(crate) includes_end: bool,
    /// Fractions of a second are ignored.
    pub(crate) truncates: bool,
    pub(crate) by_id: bool,
    pub(crate) page: usize,
    pub(crate) cursors_once: bool,
    /// A cursor without its dates leads to other batches.
    pub(crate) forgets_dates: bool,
    /// A cursor without its dates is refused.
    pub(crate) needs_dates: bool,
    /// A cursor is only a position: the dates of its request count.
    pub(crate) stateless: bool,
    /// A cursor with dates leads to the first page.
    pub(crate) starts_anew: bool,
    pub(crate) accepts_any_cursor: bool,
    /// The connection is closed in answer to an invalid cursor.
    pub(crate) hangs_up: bool,
    pub(crate) accepts_any_token: bool,
    /// Only the token issued last is accepted.
    pub(crate) revokes_tokens: bool,
    /// The number of requests that a token is good for.
    pub(crate) token_uses: usize,
    pub(crate) accepts_offset: bool,
    /// Whether a range may end in 2100.
    pub(crate) accepts_centuries: bool,
    pub(crate) has_v1: bool,
    pub(crate) token: String,
    pub(crate) token_fields: [Value; 2],
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) refusal: String,
    /// The number of requests answered before it stops.
    pub(crate) max_requests: usize,
}

impl Default for Readings {
    fn default() -> Self {
        Self {
            count: 60,
            compared: Compared::Created,
            includes_start: true,
            includes_end: true,
            truncates: false,
            by_id: false,
            page: 25,
            cursors_once: false,
            forgets_dates: false,
            needs_dates: false,
            stateless: false,
            starts_anew: false,
            accepts_any_cursor: false,
            hangs_up: false,
            accepts_any_token: false,
            revokes_tokens: false,
            token_uses: usize::MAX,
            accepts_offset: true,
            accepts_centuries: true,
            has_v1: true,
            token: TOKEN.to_owned(),
            token_fields: [json!({}), json!({})],
            headers: Vec::new(),
            refusal: json!({"detail": "no"}).to_string(),
            max_requests: usize::MAX,
        }
    }
}

/// Formats half seconds since 1970.
fn written(halves: i64) -> String {
    let second = date_and_time(halves.div_euclid(2));
    let fraction = if halves % 2 == 0 { "" } else { ".500" };
    format!("{second}{fraction}Z")
}

/// Formats a second of the years from 2026 on.
fn date_and_time(second: i64) -> String {
    let (mut day, rest) = (
        second.div_euclid(86_400) - 20_454,
        second.rem_euclid(86_400),
    );
    let mut month = 0;
    let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    let (hour, minute) = (rest / 3600, rest / 60 % 60);
    format!(
        "2026-{:02}-{:02}T{hour:02}:{minute:02}:{:02}",
        month + 1,
        day + 1,
        rest % 60
    )
}

impl Readings {
    /// Returns when batch `number` was created, in half seconds.
    fn created(number: i64) -> i64 {
        2 * (BEGIN + 5000 * number) + number % 2
    }

    fn batch(&self, number: i64) -> Batch {
        let name = format!("lot {}", number * 37 % 61);
        let batch = Batch::new(&Self::id(number))
            .with("batch_name", json!(name))
            .created(&written(Self::created(number)))
            .with("number_of_images", 1)
            .with("total_cells_per_tray", Value::Null)
            .with("avg_germination_rate", Value::Null);
        if self.compared == Compared::Updated {
            let updated = written(Self::created(number) + 2 * 30 * 86_400);
            return batch.with("updated_at", json!(updated));
        }
        batch
    }

    fn id(number: i64) -> String {
        format!("b{:04}", number * 7919 % 10_007)
    }

    fn matches(&self, number: i64, start: Option<&str>, end: Option<&str>) -> bool {
        let moment = match self.compared {
            Compared::Nothing => return true,
            Compared::Updated => Self::created(number) + 2 * 30 * 86_400,
            Compared::Created | Compared::Minute | Compared::Hour | Compared::Day => {
                Self::created(number)
            }
        };
        let whole = if self.truncates {
            moment / 2 * 2
        } else {
            moment
        };
        // Texts in one format sort like their times if both have a fraction.
        let form = |text: &str| match self.compared {
            Compared::Day => text[..10].to_owned(),
            Compared::Hour => text[..13].to_owned(),
            Compared::Minute => text[..16].to_owned(),
            _ if text.contains('.') => text.to_owned(),
            _ => text.replace('Z', ".000Z"),
        };
        let moment = form(&written(whole));
        let start = start.map(form).is_none_or(|start| {
            if self.includes_start {
                moment >= start
            } else {
                moment > start
            }
        });
        let end = end.map(form).is_none_or(|end| {
            if self.includes_end {
                moment <= end
            } else {
                moment < end
            }
        });
        start && end
    }

    pub(crate) fn start(self) -> FakeService {
        let used: Mutex<HashMap<String, usize>> = Mutex::default();
        let (answered, issued) = (AtomicUsize::new(0), AtomicUsize::new(0));
        FakeService::start(move |asked| {
            if answered.fetch_add(1, Ordering::SeqCst) >= self.max_requests {
                return Answer::ok("").cut_at(0);
            }
            let answer = if asked.path().starts_with("/v1") && !self.has_v1 {
                Answer::error(404, "Not Found")
            } else if asked.path().ends_with("/auth") {
                self.auth(asked, issued.fetch_add(1, Ordering::SeqCst) + 1)
            } else {
                self.batches(asked, &used, issued.load(Ordering::SeqCst))
            };
            let headers = self.headers.iter();
            headers.fold(answer, |answer, (name, value)| answer.header(name, value))
        })
    }

    /// Returns token number `number`.
    fn token(&self, number: usize) -> String {
        if self.revokes_tokens {
            format!("{}-{number}", self.token)
        } else {
            self.token.clone()
        }
    }

    fn auth(&self, asked: &Received, number: usize) -> Answer {
        let mut body = self.token_fields[usize::from(asked.path().starts_with("/v2"))].clone();
        body["access_token"] = self.token(number).into();
        Answer::ok(body.to_string())
    }

    fn batches(
        &self,
        asked: &Received,
        used: &Mutex<HashMap<String, usize>>,
        issued: usize,
    ) -> Answer {
        let refused = |status| Answer::status(status, &self.refusal);
        let bearer = format!("Bearer {}", self.token(issued));
        if asked.headers("authorization") != [bearer.as_str()] && !self.accepts_any_token {
            return refused(401);
        }
        let mut uses = used.lock().unwrap();
        let uses_of_token = uses.entry(bearer).or_default();
        if *uses_of_token == self.token_uses {
            return refused(401);
        }
        *uses_of_token += 1;
        drop(uses);
        let (start, end) = (asked.query("start_date"), asked.query("end_date"));
        let dates = [start.as_deref(), end.as_deref()].map(Option::unwrap_or_default);
        if !self.accepts_offset && dates.iter().any(|date| date.contains('+')) {
            return refused(422);
        }
        if !self.accepts_centuries && dates[1].starts_with("2100") {
            return refused(422);
        }
        let utc = |date: &Option<String>| date.as_ref().map(|date| date.replace("+00:00", "Z"));
        let (mut start, mut end) = (utc(&start), utc(&end));
        let has_dates = start.is_some() || end.is_some();
        let cursor = asked.query("next_token");
        // A cursor is its position, a number, and its dates.
        let parts: Vec<&str> = cursor.iter().flat_map(|cursor| cursor.split('~')).collect();
        if let [_, first, last] = parts[..]
            && !self.stateless
        {
            let date = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            (start, end) = (date(first), date(last));
        }
        let mut numbers: Vec<i64> = (0..self.count)
            .filter(|number| self.matches(*number, start.as_deref(), end.as_deref()))
            .collect();
        if self.by_id {
            numbers.sort_by_key(|number| Self::id(*number));
        }
        let all: Vec<Batch> = numbers.iter().map(|number| self.batch(*number)).collect();
        if asked.path() == "/v1/batches" {
            return Answer::ok(list(&all));
        }
        let mut first = 0;
        if let Some(cursor) = cursor {
            let place = cursor.strip_prefix(CURSOR);
            let place = place.and_then(|place| place.split('-').next()?.parse::<usize>().ok());
            first = match place {
                Some(_) if self.needs_dates && !has_dates => return refused(400),
                Some(place) if self.forgets_dates && !has_dates => place + 5,
                Some(_) if self.starts_anew && has_dates => 0,
                Some(place) => place,
                None if self.accepts_any_cursor => 0,
                None if self.hangs_up => return Answer::raw("").reset(),
                None => return refused(400),
            };
            let mut used = used.lock().unwrap();
            let uses = used.entry(cursor).or_default();
            *uses += 1;
            if self.cursors_once && *uses > 1 {
                return refused(410);
            }
        }
        let first = first.min(all.len());
        let past = (first + self.page).min(all.len());
        // Each response has a cursor of its own.
        let [start, end] = [start, end].map(Option::unwrap_or_default);
        let next = format!("{CURSOR}{past}-{}~{start}~{end}", asked.nth);
        let next = (past < all.len()).then_some(next);
        Answer::ok(page(&all[first..past], next.as_deref()))
    }
}
