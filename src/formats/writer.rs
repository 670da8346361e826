//! The trait that every writer implements, its options, and what it reports at the end.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::csv::CsvOptions;
use super::summary::CropSummary;
use crate::batch::digest::SetDigest;
use crate::batch::filter::{Fields, Sorting};
use crate::batch::{Batch, COLUMNS, unquote};
use crate::error::{Failure, Kind};
use crate::secret::brief;
use crate::storage::EncodedOutput;

/// Writes batches in one format.
pub(crate) trait BatchWriter: Send {
    fn write(&mut self, batch: &Batch) -> Result<(), Failure>;

    /// Passes on buffered output, for a reader that waits for it.
    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Completes the output. A writer that is dropped instead publishes no file and leaves a JSON array open.
    fn finish(self: Box<Self>, outcome: &ExportOutcome<'_>) -> Finished;
}

/// A complete output that is not published yet, and the report of its writer.
pub(crate) type Finished = Result<(EncodedOutput, WriterReport), Failure>;

/// What is known about an export once all batches have arrived.
#[derive(Clone, Copy, Default)]
pub(crate) struct ExportOutcome<'a> {
    /// The version of the interface; `None` if the batches are from an archive.
    pub(crate) version: Option<&'a str>,
    /// The digest of the batches in the file; always there if the format embeds it.
    pub(crate) digest: Option<&'a SetDigest>,
    /// The figures of the batches in the file; `None` if the format does not show them.
    pub(crate) summary: Option<&'a CropSummary>,
    /// Whether `--limit` left batches out.
    pub(crate) is_cut: bool,
}

/// What a writer reports at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriterReport {
    /// Text cells that a spreadsheet would interpret as formulas.
    pub(crate) formula_cells: u64,
    /// Fields that the format cannot store.
    pub(crate) left_out: Vec<String>,
    /// Columns that do not fit the terminal.
    pub(crate) hidden_columns: usize,
    /// Text cells with visible escapes for characters that the format cannot store.
    pub(crate) escaped_cells: u64,
    /// Dates that are written as text, because a cell cannot store them.
    pub(crate) text_dates: u64,
    /// What readers of a partitioned export need to know.
    pub(crate) partition_warnings: Vec<String>,
    /// How many rows of the table were inserted, updated or left unchanged.
    pub(crate) counts: Option<crate::postgres::UpsertCounts>,
}

impl WriterReport {
    pub(crate) fn add(&mut self, more: Self) {
        self.formula_cells += more.formula_cells;
        self.escaped_cells += more.escaped_cells;
        self.text_dates += more.text_dates;
        self.hidden_columns = self.hidden_columns.max(more.hidden_columns);
        for field in more.left_out {
            if self.left_out.len() <= LEFT_OUT_LIMIT && !self.left_out.contains(&field) {
                self.left_out.push(field);
            }
        }
    }
}

/// Maximum number of names that are remembered, and their maximum length.
const LATEST_LIMIT: usize = 32;
const LATEST_LENGTH: usize = 64;
/// The most field names that a warning lists: a service may send any number of them.
pub(crate) const LEFT_OUT_LIMIT: usize = 20;

/// Unknown fields, in a format that cannot store them.
#[derive(Default)]
pub(crate) struct LeftOut {
    names: BTreeSet<String>,
    /// The JSON names of the latest batches by place: most batches have the same ones.
    latest: Vec<String>,
}

impl LeftOut {
    /// Adds the unknown fields of `batch`, unless the user chose fields by name.
    pub(crate) fn note(&mut self, batch: &Batch, fields: &Fields) {
        if fields.named {
            return;
        }
        for (place, name) in batch.unknown_names().enumerate() {
            if let Some(latest) = self.latest.get(place)
                && latest.as_bytes() == name
            {
                continue;
            }
            let name = str::from_utf8(name).expect("a part of a text");
            match self.latest.get_mut(place) {
                _ if name.len() > LATEST_LENGTH => {}
                Some(latest) => name.clone_into(latest),
                None if place < LATEST_LIMIT => self.latest.push(name.to_owned()),
                None => {}
            }
            // One name past the limit shows that there are more.
            if self.names.len() <= LEFT_OUT_LIMIT {
                self.names.insert(unquote(name).into_owned());
            }
        }
    }

    pub(crate) fn names(self) -> Vec<String> {
        self.names.into_iter().collect()
    }
}

/// Says that `into` cannot store the value of a column.
pub(super) fn inexact(batch: &Batch, column: usize, into: &str) -> Failure {
    let message = format!(
        "batch `{}`: `{}` is {}, which {into} exactly",
        brief(&batch.id()),
        COLUMNS[column].name,
        brief(&batch.plain(column).unwrap_or_default())
    );
    Failure::new(Kind::Protocol, message)
        .hint("leave the field out with `--fields`, or write json or csv, which keep every digit")
}

/// The options of all formats.
#[derive(Clone)]
pub(crate) struct WriterOptions {
    pub(crate) fields: Fields,
    /// JSON: decimals as numbers.
    pub(crate) numbers: bool,
    pub(crate) csv: CsvOptions,
    /// The width of the terminal that a table must fit; `None` if there is no terminal.
    pub(crate) width: Option<usize>,
    pub(crate) color: bool,
    /// When the batches were requested.
    pub(crate) extracted: String,
    /// The bookmark of an earlier run, for `singer`.
    pub(crate) bookmark: Option<String>,
    /// Up to when no batch is missing, for `singer`.
    pub(crate) complete_until: Option<String>,
    pub(crate) info: Arc<ExportInfo>,
}

/// What a file says about the export that wrote it.
#[derive(Debug, Default)]
pub(crate) struct ExportInfo {
    /// The date range, in words.
    pub(crate) range: String,
    /// The other conditions, in words.
    pub(crate) filters: Vec<String>,
    /// The address of the service; empty if unknown.
    pub(crate) source: String,
    /// The order of the batches; `None` if it is the order of the service.
    pub(crate) sorting: Option<Sorting>,
}

#[cfg(test)]
impl WriterOptions {
    /// Returns the options of a plain export of `fields`.
    pub(crate) fn of(fields: Fields) -> Self {
        Self {
            fields,
            numbers: false,
            csv: CsvOptions::default(),
            width: None,
            color: false,
            extracted: "2026-05-02T00:00:00Z".to_owned(),
            bookmark: None,
            complete_until: Some("2026-05-02T00:00:00Z".to_owned()),
            info: Arc::default(),
        }
    }
}
