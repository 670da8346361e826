//! The file, lake or table that is verified, and how to read it.

use std::path::PathBuf;

use crate::batch::ALL_COLUMNS;
use crate::batch::digest;
use crate::error::Failure;
use crate::formats::record::Schema;
use crate::secret;
use crate::terminal;
use crate::text;
use crate::verify::{self, FileScan, Ledger, RecordSource, Scope};

/// The file that is verified.
pub(super) struct Subject {
    pub(super) source: RecordSource,
    pub(super) path: PathBuf,
    /// The columns of a file without a header; `None` if unknown.
    pub(super) layout: Option<Vec<usize>>,
    /// The columns that `--fields` asks for, one bit each.
    pub(super) fields: Option<u32>,
}

impl Subject {
    /// Reads the file, over the columns of `scope`; if `adapts`, over those of its first batch.
    pub(super) fn index(
        &mut self,
        scope: Scope,
        adapts: bool,
    ) -> Result<(FileScan, Ledger), Failure> {
        verify::index(&mut self.source, self.layout.as_deref(), scope, adapts)
    }

    /// Returns the scope to start with: most exports have all fields.
    pub(super) fn first_scope(&self) -> Scope {
        Scope {
            columns: self.fields.unwrap_or(ALL_COLUMNS),
            unknown_fields: self.fields.is_none(),
            version: digest::VERSION,
        }
    }

    /// Reads the file and computes its digest over the columns that it has.
    pub(super) fn scan_alone(&mut self) -> Result<FileScan, Failure> {
        let (mut scope, mut adapts) = (self.first_scope(), self.fields.is_none());
        loop {
            let (scan, _) = self.index(scope, adapts)?;
            let columns = self.fields.or(scan.columns).unwrap_or(ALL_COLUMNS);
            let claim = scan.info.embedded_digest.as_ref();
            let version = claim.map_or(scope.version, |claim| claim.digest_version);
            scope.columns = columns;
            scope.version = if version == 1 { 1 } else { digest::VERSION };
            if scope == scan.scope {
                return Ok(scan);
            }
            adapts = false;
        }
    }
}

/// Notes that columns of `name` were not compared.
pub(super) fn note_unknown_columns(name: &str, columns: &[String]) {
    let columns = brief_list(columns);
    terminal::note(&format!(
        "{name} has unknown columns, which were not compared: {columns}"
    ));
}

pub(super) fn brief_list(names: &[String]) -> String {
    text::join(
        names.iter().map(|name| secret::brief(&text::visible(name))),
        ", ",
    )
}

/// Warns of oddities in a file that are not a reason to refuse it.
pub(super) fn warn_of_oddities(name: &str, scan: &FileScan) {
    if scan.flawed.count > 0 {
        let values = text::count(
            scan.flawed.count,
            "value does not fit its field",
            "values do not fit their fields",
        );
        let first = scan.flawed.first.as_deref().unwrap_or_default();
        log::warn!("{name}: {values}; the first: {first}");
    }
    if scan.info.schema == Schema::Shared && !scan.info.unknown.is_empty() {
        note_unknown_columns(name, &scan.info.unknown);
    }
    if let Some(why) = &scan.info.unchecked_figures {
        let note = format!("{name}: the sheet `Summary` was not checked: {why}");
        terminal::note(&note);
    }
    if scan.info.unended {
        log::warn!("{name}: the last line has no line ending; the file may be cut short");
    }
}
