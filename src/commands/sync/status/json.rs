//! The status as JSON.

use serde::Serialize;

use super::data::Status;
use crate::archive::Run;
use crate::batch::range::written;

impl Status {
    pub(super) fn to_json(&self) -> StatusJson<'_> {
        let interval = |start: Option<i64>, end: i64| Interval {
            from: start.map(written),
            through: written(end),
        };
        StatusJson {
            archive: self.path.display().to_string(),
            base_url: self.owner.as_ref().map(|owner| owner.base_url.as_str()),
            client_id: self.owner.as_ref().map(|owner| owner.client_id.as_str()),
            batches: self.batches,
            vanished: self.vanished,
            since: self.since.map(written),
            covered: self
                .coverage
                .spans()
                .iter()
                .map(|span| interval(span.start, span.end))
                .collect(),
            gaps: self
                .coverage
                .gaps(self.since)
                .into_iter()
                .map(|(start, end)| interval(start, end))
                .collect(),
            runs: self.runs.iter().map(RunJson::new).collect(),
            failed_runs: self.failed_runs.iter().map(RunJson::new).collect(),
        }
    }
}

/// The status as JSON; a null start means the beginning.
#[derive(Serialize)]
pub(super) struct StatusJson<'a> {
    archive: String,
    base_url: Option<&'a str>,
    client_id: Option<&'a str>,
    batches: u64,
    vanished: u64,
    since: Option<String>,
    covered: Vec<Interval>,
    gaps: Vec<Interval>,
    runs: Vec<RunJson<'a>>,
    failed_runs: Vec<RunJson<'a>>,
}

#[derive(Serialize)]
struct Interval {
    from: Option<String>,
    through: String,
}

#[derive(Serialize)]
struct RunJson<'a> {
    started: &'a str,
    ended: Option<&'a str>,
    full: bool,
    range_start: Option<&'a str>,
    range_end: Option<&'a str>,
    version: Option<&'a str>,
    requests: u64,
    added: u64,
    changed: u64,
    unchanged: u64,
    vanished: u64,
    outcome: &'static str,
    exit_code: Option<u8>,
    message: Option<&'a str>,
}

impl<'a> RunJson<'a> {
    fn new(run: &'a Run) -> Self {
        Self {
            started: &run.started,
            ended: run.ended.as_deref(),
            full: run.full,
            range_start: run.range_start.as_deref(),
            range_end: run.range_end.as_deref(),
            version: run.version.as_deref(),
            requests: run.requests,
            added: run.added,
            changed: run.changed,
            unchanged: run.unchanged,
            vanished: run.vanished,
            outcome: run.outcome.name(),
            exit_code: run.exit_code,
            message: run.message.as_deref(),
        }
    }
}
