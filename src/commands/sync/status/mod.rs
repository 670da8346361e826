//! `sync --status`: what an archive contains, which part is complete, and how its last runs ended.

mod text;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::Utc;
use serde::Serialize;

use crate::archive::{Archive, Coverage, Owner, Run, RunOutcome, read_second};
use crate::batch::range::written;
use crate::cli::ListFormat;
use crate::commands::messages::count;
use crate::error::{Failure, Kind};
use crate::terminal;
use crate::text::long_time;

/// Prints the status of the archive at `path`. Fails if it is not complete up to `max_age` ago.
pub(super) fn run(
    path: &Path,
    format: Option<ListFormat>,
    max_age: Option<Duration>,
) -> anyhow::Result<()> {
    if let Some(ListFormat::Ndjson | ListFormat::Csv) = format {
        return Err(Failure::usage(
            "`--status` supports only text, json and prometheus",
            "use `-f json`, or leave out `-f`; ndjson and csv are for `--changes`",
        )
        .into());
    }
    let archive = match max_age {
        None => Some(Archive::read(path)?),
        Some(_) => Archive::find(path)?,
    };
    let Some(archive) = archive else {
        let message = format!("there is no archive `{}`", path.display());
        let alarm = Failure::new(Kind::Alarm, message).hint("`trayscan sync FILE` creates one");
        let result = serde_json::json!({"archive": path.display().to_string()});
        terminal::finish(None, &result, Some(&alarm));
        return Err(alarm.into());
    };
    let status = Status::read(&archive)?;
    match format {
        Some(ListFormat::Json) => terminal::print_json(&status.to_json())?,
        Some(ListFormat::Prometheus) => terminal::print(&status.to_prometheus())?,
        _ => terminal::print(&status.to_text())?,
    }
    let now = Utc::now().timestamp();
    let alarm = max_age.and_then(|max_age| find_alarm(&status, max_age, now));
    terminal::finish(None, &status.to_json(), alarm.as_ref());
    alarm.map_or(Ok(()), |alarm| Err(alarm.into()))
}

/// Returns the alarm if the archive has gaps, or is not complete up to `max_age` before `now`.
fn find_alarm(status: &Status, max_age: Duration, now: i64) -> Option<Failure> {
    let mut causes = Vec::new();
    match status.coverage.end() {
        Some(end) if status.last_complete_run.is_some() => {
            causes.extend(outdated(end, max_age, now));
        }
        _ => causes.push("no run has succeeded yet".to_owned()),
    }
    let gaps = status.coverage.gaps(status.since);
    if let Some((start, end)) = gaps.first() {
        let start = start.map_or_else(|| "the beginning".to_owned(), written);
        let first = if gaps.len() > 1 { "the first is " } else { "" };
        causes.push(format!(
            "it has {} ({first}{start} through {})",
            count(gaps.len() as u64, "gap", "gaps"),
            written(*end)
        ));
    }
    let (path, all) = (status.path.display(), causes.join("; "));
    (!causes.is_empty()).then(|| {
        Failure::new(Kind::Alarm, format!("the archive `{path}`: {all}"))
            .hint("`trayscan sync` fetches the rest, or says why it cannot")
    })
}

/// Says that the last complete point is too old. A point far in the future is from a wrong clock: it would
/// hide that the archive gets older.
fn outdated(end: i64, max_age: Duration, now: i64) -> Option<String> {
    let age = Duration::from_secs(now.abs_diff(end));
    if age <= max_age {
        return None;
    }
    let (end, is_past) = (written(end), end < now);
    let [age, max_age] = [age, max_age].map(long_time);
    let more = if age == max_age { "more than " } else { "" };
    Some(if is_past {
        format!("it is complete through {end}, which is {more}{age} ago; `--max-age` is {max_age}")
    } else {
        format!(
            "it is marked as complete through {end}, which is {age} in the future; a clock was wrong"
        )
    })
}

/// Maximum number of runs to show.
const RUNS: u32 = 10;

struct Status {
    path: PathBuf,
    owner: Option<Owner>,
    batches: u64,
    vanished: u64,
    /// Batches created in each month, such as `2026-05`.
    months: Vec<(String, u64)>,
    since: Option<i64>,
    coverage: Coverage,
    runs: Vec<Run>,
    /// The latest runs that did not complete, also earlier than `runs`.
    failed_runs: Vec<Run>,
    last_complete_run: Option<Run>,
    /// The last run that is not in progress.
    last_ended_run: Option<Run>,
}

impl Status {
    fn read(archive: &Archive) -> Result<Self, Failure> {
        let (batches, vanished) = archive.count()?;
        let mut failed = vec![RunOutcome::Failed, RunOutcome::Interrupted];
        // Nobody records that a run was killed until the next one begins.
        let is_in_use = archive.is_in_use();
        if !is_in_use {
            failed.push(RunOutcome::Running);
        }
        let ended = [&failed[..], &[RunOutcome::Complete]].concat();
        let runs = |outcomes: &[RunOutcome], most| -> Result<Vec<Run>, Failure> {
            let mut runs = archive.runs(outcomes, most)?;
            if !is_in_use {
                runs.iter_mut().for_each(Run::mark_killed);
            }
            Ok(runs)
        };
        Ok(Self {
            path: archive.path().to_owned(),
            owner: archive.owner()?,
            batches,
            vanished,
            months: archive.months()?,
            since: archive.since()?.second(),
            coverage: archive.coverage()?,
            runs: runs(&RunOutcome::ALL, RUNS)?,
            failed_runs: runs(&failed, RUNS)?,
            last_complete_run: runs(&[RunOutcome::Complete], 1)?.pop(),
            last_ended_run: runs(&ended, 1)?.pop(),
        })
    }
}

impl Status {
    fn to_json(&self) -> StatusJson<'_> {
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
struct StatusJson<'a> {
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

/// What a shell reports for a process that was killed.
const KILLED: i64 = 137;

impl Status {
    /// Returns the metrics that have a value. The path is a label: one machine may have several archives.
    fn to_prometheus(&self) -> String {
        let archive = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let archive = escaped(&archive.display().to_string());
        let last_success = self.last_complete_run.as_ref();
        let last_run = self.last_ended_run.as_ref();
        let gaps = self.coverage.gaps(self.since).len();
        let metrics = [
            (
                "complete_until_timestamp_seconds",
                "End of the part of the archive that is complete, except for gaps.",
                self.coverage.end(),
            ),
            (
                "last_success_timestamp_seconds",
                "When the last successful run ended.",
                last_success.and_then(ended),
            ),
            (
                "last_run_timestamp_seconds",
                "When the last run ended. If it was killed, when it began.",
                last_run.and_then(ended),
            ),
            (
                "last_run_exit_code",
                "Exit code of the last run that ended; 137 if it was killed.",
                last_run.map(|run| run.exit_code.map_or(KILLED, i64::from)),
            ),
            (
                "batches",
                "Batches in the archive that the service still has.",
                i64::try_from(self.batches).ok(),
            ),
            (
                "gaps",
                "Parts that no run could complete yet, before the end of the complete part.",
                i64::try_from(gaps).ok(),
            ),
        ];
        let mut text = String::new();
        for (name, help, value) in metrics {
            let Some(value) = value else { continue };
            let name = format!("trayscan_archive_{name}");
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "# HELP {name} {help}\n# TYPE {name} gauge\n{name}{{archive=\"{archive}\"}} {value}\n"
            );
        }
        text
    }
}

/// Returns when `run` ended. A killed run has no end, so its start counts.
fn ended(run: &Run) -> Option<i64> {
    read_second(run.ended.as_deref().unwrap_or(&run.started))
}

/// Escapes the value of a label.
fn escaped(value: &str) -> String {
    value
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_point_further_away_than_the_maximum_age_is_outdated() {
        let outdated = |end| outdated(end, Duration::from_secs(60), 1000);
        assert_eq!(outdated(940), None);
        assert_eq!(outdated(1060), None);
        let past = outdated(939).expect("an alarm");
        assert!(
            past.contains("61 seconds ago; `--max-age` is 1 minute"),
            "{past}"
        );
        let future = outdated(1061).expect("an alarm");
        assert!(future.contains("61 seconds in the future"), "{future}");
    }

    #[test]
    fn fractions_of_a_second_count() {
        let age = Duration::from_millis(1500);
        assert_eq!(outdated(999, age, 1000), None);
        assert!(outdated(998, age, 1000).is_some());
    }
}
