//! The status as metrics, in the text format of Prometheus.

use std::fmt::Write as _;

use super::data::Status;
use crate::archive::{Run, read_second};

/// What a shell reports for a process that was killed.
const KILLED: i64 = 137;

impl Status {
    /// Returns the metrics that have a value. The path is a label: one machine may have several archives.
    pub(super) fn to_prometheus(&self) -> String {
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
