//! The trait that every writer implements, its options, and what it reports at the end.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use super::csv::CsvOptions;
use crate::batch::filter::{Fields, Sorting};
use crate::batch::{Batch, unquote};
use crate::storage::EncodedOutput;

/// Writes batches in one format.
pub(crate) trait BatchWriter: Send {
    fn write(&mut self, batch: &Batch) -> io::Result<()>;

    /// Hands on what is held back, where somebody waits for it.
    fn flush(&mut self) -> io::Result<()>;

    /// Ends the output; the only road to a complete one. Dropped without it, a file is not published
    /// and a JSON array stays open.
    fn finish(self: Box<Self>) -> io::Result<(EncodedOutput, WriterReport)>;
}

/// What a writer noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriterReport {
    /// Text cells that a spreadsheet would run as formulas.
    pub(crate) formula_cells: u64,
    /// Fields that the format has no place for.
    pub(crate) left_out: Vec<String>,
    /// Columns for which the terminal has no room.
    pub(crate) hidden_columns: usize,
    /// Text cells with visible escapes for what the format cannot carry.
    pub(crate) escaped_cells: u64,
    /// What became of the batches in a table that may have had some before.
    #[cfg(feature = "postgres")]
    pub(crate) counts: Option<crate::postgres::UpsertCounts>,
}

impl WriterReport {
    pub(crate) fn add(&mut self, more: Self) {
        self.formula_cells += more.formula_cells;
        self.escaped_cells += more.escaped_cells;
        self.hidden_columns = self.hidden_columns.max(more.hidden_columns);
        for field in more.left_out {
            if self.left_out.len() <= LEFT_OUT_LIMIT && !self.left_out.contains(&field) {
                self.left_out.push(field);
            }
        }
    }
}

/// How many names of fields are kept for a warning: a service may send any number of them.
pub(crate) const LEFT_OUT_LIMIT: usize = 20;

/// Fields that nobody announced, in a format that has no place for them.
#[derive(Default)]
pub(crate) struct LeftOut(pub(crate) BTreeSet<String>);

impl LeftOut {
    /// Notes those of `batch`, unless other fields were asked for by name.
    pub(crate) fn note(&mut self, batch: &Batch, fields: &Fields) {
        if fields.named {
            return;
        }
        for (name, _) in batch.unknown() {
            // One more than the limit tells that there are others.
            if self.0.len() > LEFT_OUT_LIMIT {
                return;
            }
            let name = unquote(name);
            if !self.0.contains(name.as_ref()) {
                self.0.insert(name.into_owned());
            }
        }
    }

    pub(crate) fn names(self) -> Vec<String> {
        self.0.into_iter().collect()
    }
}

/// What all formats need to know.
#[derive(Clone)]
pub(crate) struct WriterOptions {
    pub(crate) fields: Fields,
    /// JSON: decimals as numbers.
    pub(crate) numbers: bool,
    pub(crate) csv: CsvOptions,
    /// Columns of the terminal that a table must fit; nothing where there is none.
    pub(crate) width: Option<usize>,
    pub(crate) color: bool,
    /// When the batches were asked for.
    pub(crate) extracted: String,
    /// The date that an earlier run ended with.
    pub(crate) bookmark: Option<String>,
    pub(crate) facts: Arc<ExportInfo>,
}

/// What a file tells of the export that it comes from.
#[derive(Debug, Default)]
pub(crate) struct ExportInfo {
    /// Of dates, in words.
    pub(crate) range: String,
    /// What else chose the batches, in words.
    pub(crate) filters: Vec<String>,
    /// The address of the service; empty where it is not known.
    pub(crate) source: String,
    /// The version of the interface: known once the batches have come.
    pub(crate) version: OnceLock<String>,
    /// The order of the batches; nothing where they come as the service sends them.
    pub(crate) sorting: Option<Sorting>,
    /// `--limit` left batches out: known once they have come.
    pub(crate) is_cut: AtomicBool,
}
