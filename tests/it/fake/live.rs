//! A service whose batches, clock, order and failures the test controls between runs.
//!
//! Its answers follow the interface.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};

use super::{Answer, Batch, FakeService, Received, second, token};
use crate::harness::Service;

pub(crate) const DAY: i64 = 86_400;

/// Returns the current time in Unix seconds.
pub(crate) fn now() -> i64 {
    Utc::now().timestamp()
}

/// The order in which batches are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    OldestFirst,
    NewestFirst,
    None,
}

/// The batches of the service, and how it behaves.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a habit of its own")]
pub(crate) struct State {
    pub(crate) items: BTreeMap<String, Batch>,
    pub(crate) page: usize,
    pub(crate) order: Order,
    /// The seconds by which its clock is ahead; `None` to send no `Date` header.
    pub(crate) clock: Option<i64>,
    /// Whether only batches have a `Date` header.
    pub(crate) clock_of_batches: bool,
    /// The number of requests for batches to answer before it starts to fail with 503.
    pub(crate) answers: Option<usize>,
    /// Whether it then answers with a page for people.
    pub(crate) has_page: bool,
    pub(crate) latency: Duration,
    pub(crate) has_v2: bool,
    /// The number of requests for batches that version 2 answers before it disappears.
    pub(crate) v2_answers: Option<usize>,
    /// The number of batches after which version 1 silently truncates its answer.
    pub(crate) v1_limit: Option<usize>,
    /// The number of requests for batches to answer before removing a batch, and its ID.
    pub(crate) removal: Option<(usize, String)>,
    /// Whether `start_date` and `end_date` have no effect.
    pub(crate) ignores_dates: bool,
}

impl State {
    pub(crate) fn put(&mut self, id: &str, item: Batch) {
        self.items.insert(id.to_owned(), item);
    }

    /// Adds a batch for each of these times. The IDs are `prefix` and a number.
    pub(crate) fn fill(&mut self, prefix: &str, seconds: impl IntoIterator<Item = i64>) {
        for (number, created) in seconds.into_iter().enumerate() {
            let id = format!("{prefix}{number:04}");
            self.put(&id, Batch::new(&id).created_at(created));
        }
    }

    pub(crate) fn edit(&mut self, id: &str, field: &str, json: &str) {
        self.items.get_mut(id).unwrap().set(field, json);
    }

    /// Returns the JSON of each batch, by ID.
    pub(crate) fn texts(&self) -> BTreeMap<String, String> {
        let items = self.items.iter();
        items.map(|(id, item)| (id.clone(), item.text())).collect()
    }

    /// Returns the batches within these bounds, in order.
    fn matching(&self, start: Option<i64>, end: Option<i64>) -> Vec<&Batch> {
        let is_inside = |item: &&Batch| {
            let undated = self.ignores_dates || start.is_none() && end.is_none();
            let within = |second: i64| {
                start.is_none_or(|start| second >= start) && end.is_none_or(|end| second <= end)
            };
            undated || item.compared.is_some_and(within)
        };
        let mut found: Vec<(&String, &Batch)> = self.items.iter().collect();
        match self.order {
            Order::OldestFirst => found.sort_by_key(|(id, item)| (item.created, *id)),
            Order::NewestFirst => {
                found.sort_by_key(|(id, item)| (item.created, *id));
                found.reverse();
            }
            Order::None => found.sort_by_key(|(id, _)| id.chars().rev().collect::<String>()),
        }
        let found = found.into_iter().map(|(_, item)| item);
        found.filter(is_inside).collect()
    }

    fn batches(&mut self, asked: &Received) -> Answer {
        match &mut self.answers {
            Some(0) if self.has_page => return Answer::ok("<html>maintenance</html>"),
            Some(0) => return Answer::error(503, "not now"),
            Some(left) => *left -= 1,
            None => {}
        }
        self.removal = match self.removal.take() {
            Some((0, id)) => {
                self.items.remove(&id).unwrap();
                None
            }
            removal => removal.map(|(left, id)| (left - 1, id)),
        };
        let bound = |name: &str| asked.query(name).map(|date| second(&date));
        let (mut start, mut end) = (bound("start_date"), bound("end_date"));
        let texts = |items: &[&Batch]| {
            let texts: Vec<String> = items.iter().map(|item| item.text()).collect();
            texts.join(",")
        };
        if asked.path() == "/v1/batches" {
            let mut found = self.matching(start, end);
            found.truncate(self.v1_limit.unwrap_or(usize::MAX));
            return Answer::ok(format!("[{}]", texts(&found)));
        }
        // The cursor contains the bounds and the offset of the page.
        let mut first = 0;
        if let Some(cursor) = asked.query("next_token") {
            let parts: Vec<Option<i64>> = cursor.split('_').map(|part| part.parse().ok()).collect();
            (start, end) = (parts[0], parts[1]);
            first = usize::try_from(parts[2].unwrap()).unwrap();
        }
        let found = self.matching(start, end);
        let past = found.len().min(first + self.page);
        let shown =
            |bound: Option<i64>| bound.map_or_else(String::new, |second| second.to_string());
        let next = if past < found.len() {
            format!("\"{}_{}_{past}\"", shown(start), shown(end))
        } else {
            "null".to_owned()
        };
        let data = texts(&found[first.min(past)..past]);
        Answer::ok(format!("{{\"data\":[{data}],\"next_token\":{next}}}"))
    }

    fn answer(&mut self, asked: &Received) -> Answer {
        let answer = match asked.path() {
            "/v2/auth" if self.has_v2 => token(),
            "/v1/auth" => token(),
            "/v2/batches" if self.has_v2 && self.v2_answers != Some(0) => {
                self.v2_answers = self.v2_answers.map(|left| left - 1);
                self.batches(asked)
            }
            "/v1/batches" => self.batches(asked),
            _ => Answer::error(404, "Not Found"),
        };
        let answer = answer.after(self.latency);
        let is_dated = !self.clock_of_batches || asked.path().ends_with("/batches");
        let Some(ahead) = self.clock.filter(|_| is_dated) else {
            return answer;
        };
        let time = DateTime::<Utc>::from_timestamp(now() + ahead, 0).unwrap();
        let time = httpdate::fmt_http_date(SystemTime::from(time));
        answer.header("Date", &time)
    }
}

impl Service for LiveService {
    fn access(&self) -> [String; 3] {
        self.service.access()
    }
}

/// A running service.
pub(crate) struct LiveService {
    pub(crate) service: FakeService,
    stock: Arc<Mutex<State>>,
}

impl LiveService {
    /// Starts a service without batches, oldest first, with 10 per page.
    pub(crate) fn start() -> Self {
        let stock = Arc::new(Mutex::new(State {
            items: BTreeMap::new(),
            page: 10,
            order: Order::OldestFirst,
            clock: Some(0),
            clock_of_batches: false,
            answers: None,
            has_page: false,
            latency: Duration::ZERO,
            has_v2: true,
            v2_answers: None,
            v1_limit: None,
            removal: None,
            ignores_dates: false,
        }));
        let held = Arc::clone(&stock);
        let service = FakeService::start(move |asked| held.lock().unwrap().answer(asked));
        Self { service, stock }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.stock.lock().unwrap()
    }

    /// Returns the requests for batches after the first `known`.
    pub(crate) fn requests_since(&self, known: usize) -> Vec<Received> {
        self.service.requests_for("/batches").split_off(known)
    }

    /// Returns the number of requests for batches.
    pub(crate) fn asked(&self) -> usize {
        self.service.requests_for("/batches").len()
    }
}
