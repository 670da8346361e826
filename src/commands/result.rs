//! The results of commands, for `--message-format json`.

use std::path::Path;

use serde::Serialize;

use crate::archive::Run;
use crate::batch::range::{Range, written};
use crate::export::manifest::ManifestFile;
use crate::postgres::UpsertCounts;
use crate::storage::Location;
use crate::storage::output::Published;

/// The result of a command that reads batches.
#[derive(Serialize)]
pub(super) struct BatchResult {
    pub(super) batches: u64,
    pub(super) range: ResultRange,
    /// Whether batches created in the second `end` are left out.
    pub(super) excludes_end: bool,
    /// The API version; `None` for an archive.
    pub(super) version: Option<String>,
    pub(super) requests: u64,
    /// What was written, except for standard output.
    pub(super) files: Vec<ResultFile>,
}

/// The dates that the service was asked for.
#[derive(Serialize)]
pub(super) struct ResultRange {
    pub(super) start: Option<String>,
    pub(super) end: Option<String>,
}

impl From<&Range> for ResultRange {
    fn from(range: &Range) -> Self {
        Self {
            start: range.start.map(written),
            end: range.end.map(written),
        }
    }
}

/// A file that was written, or a table, which has no bytes.
#[derive(Serialize)]
pub(super) struct ResultFile {
    pub(super) path: String,
    pub(super) bytes: Option<u64>,
}

impl ResultFile {
    pub(super) fn of_export(files: &[ManifestFile]) -> Vec<Self> {
        let files = files.iter().filter(|file| file.path != "-");
        let file = |file: &ManifestFile| Self {
            path: file.path.clone(),
            bytes: file.bytes,
        };
        files.map(file).collect()
    }

    /// Returns the file of a command that writes one.
    pub(super) fn of_output(place: &Location, published: &Published) -> Vec<Self> {
        let file = Self {
            path: place.address(),
            bytes: Some(published.bytes),
        };
        Vec::from_iter((!place.is_stdout()).then_some(file))
    }
}

#[derive(Serialize)]
pub(super) struct ExportResult {
    #[serde(flatten)]
    pub(super) result: BatchResult,
    /// What became of the rows, if a table was written.
    #[serde(flatten)]
    pub(super) rows: Option<UpsertCounts>,
    /// What became of the files, with `--only-changed`.
    #[serde(flatten)]
    pub(super) lake: Option<LakeCounts>,
}

/// The number of files in a lake by what happened to them.
#[derive(Serialize)]
pub(super) struct LakeCounts {
    #[serde(rename = "files_rewritten")]
    pub(super) rewritten: usize,
    #[serde(rename = "files_removed")]
    pub(super) removed: u64,
    /// After the run.
    #[serde(rename = "files_total")]
    pub(super) total: usize,
}

#[derive(Serialize)]
pub(super) struct SyncResult {
    #[serde(flatten)]
    result: BatchResult,
    added: u64,
    changed: u64,
    unchanged: u64,
    vanished: u64,
}

impl SyncResult {
    pub(super) fn new(run: Run, requests: u64, archive: &Path) -> Self {
        let archive = ResultFile {
            path: archive.display().to_string(),
            bytes: archive.metadata().ok().map(|file| file.len()),
        };
        Self {
            result: BatchResult {
                batches: run.added + run.changed + run.unchanged,
                range: ResultRange {
                    start: run.range_start,
                    end: None,
                },
                excludes_end: false,
                version: run.version,
                requests,
                files: vec![archive],
            },
            added: run.added,
            changed: run.changed,
            unchanged: run.unchanged,
            vanished: run.vanished,
        }
    }
}
