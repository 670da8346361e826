//! The run of `--status`: prints the status, and raises the alarm.

use std::path::Path;
use std::time::Duration;

use chrono::Utc;

use super::alarm;
use super::data::Status;
use crate::archive::Archive;
use crate::cli::ListFormat;
use crate::error::{Failure, Kind};
use crate::terminal;

/// Prints the status of the archive at `path`. Fails if it is not complete up to `max_age` ago.
pub(crate) fn run(
    path: &Path,
    format: Option<ListFormat>,
    max_age: Option<Duration>,
) -> anyhow::Result<()> {
    if let Some(ListFormat::Ndjson | ListFormat::Csv) = format {
        return Err(Failure::new(
            Kind::Usage,
            "`--status` supports only text, json and prometheus",
        )
        .hint("use `-f json`, or leave out `-f`; ndjson and csv are for `--changes`")
        .into());
    }
    let archive = match max_age {
        None => Archive::read(path)?,
        Some(_) => Archive::find(path)?.ok_or_else(|| alarm::no_archive(path))?,
    };
    let status = Status::read(&archive)?;
    match format {
        Some(ListFormat::Json) => {
            let json = serde_json::to_string_pretty(&status.to_json())?;
            terminal::print_json(&(json + "\n"))?;
        }
        Some(ListFormat::Prometheus) => terminal::print(&status.to_prometheus())?,
        _ => terminal::print(&status.to_text())?,
    }
    if let Some(max_age) = max_age {
        alarm::check(&status, max_age, Utc::now().timestamp())?;
    }
    Ok(())
}
