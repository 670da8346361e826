//! The status as JSON.

use serde::Serialize;

use super::data::Status;
use crate::archive::Run;
use crate::batch::range::written;

impl Status {
    pub(super) fn to_json(&self) -> StatusJson<'_> {
        let interval = |(start, end): (Option<i64>, i64)| Interval {
            from: start.map(written),
            through: written(end),
        };
        let (spans, gaps) = (self.coverage.spans().iter(), self.coverage.gaps(self.since));
        let gaps = gaps.into_iter();
        StatusJson {
            archive: self.path.display().to_string(),
            base_url: self.owner.as_ref().map(|owner| owner.base_url.as_str()),
            client_id: self.owner.as_ref().map(|owner| owner.client_id.as_str()),
            batches: self.batches,
            vanished: self.vanished,
            since: self.since.map(written),
            covered: spans.map(|span| interval((span.start, span.end))).collect(),
            gaps: gaps.map(interval).collect(),
            runs: &self.runs,
            failed_runs: &self.failed_runs,
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
    runs: &'a [Run],
    failed_runs: &'a [Run],
}

#[derive(Serialize)]
struct Interval {
    from: Option<String>,
    through: String,
}
