//! The run of `--status`: prints the status, and raises the alarm.

use std::path::Path;
use std::time::Duration;

use chrono::Utc;

use super::alarm;
use super::data::Status;
use crate::archive::Archive;
use crate::cli::ListFormat;
use crate::error::Failure;
use crate::terminal;

/// Prints the status of the archive at `path`. Fails if it is not complete up to `max_age` ago.
pub(crate) fn run(
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
        let alarm = alarm::no_archive(path);
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
    let alarm = max_age.and_then(|max_age| alarm::find(&status, max_age, now));
    terminal::finish(None, &status.to_json(), alarm.as_ref());
    alarm.map_or(Ok(()), |alarm| Err(alarm.into()))
}
