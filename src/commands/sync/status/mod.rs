//! `sync --status`: what an archive contains, which part is complete, and how its last runs ended.

mod data;

// The status as text, as JSON, and as metrics.
mod json;
mod prometheus;
mod text;

use std::path::Path;
use std::time::Duration;

use chrono::Utc;

use self::data::Status;
use crate::archive::Archive;
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
        Failure::new(Kind::Alarm, format!("the archive `{path}`: {all}")).hint(
            "`trayscan sync` brings it up to date; the status lists the runs that failed, and why",
        )
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
