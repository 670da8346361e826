//! One pass over a file: its set digest, its columns, and its invalid values.

use std::ops::ControlFlow;

use serde::Serialize;

use super::flaws::Flawed;
use super::ledger::{Ledger, Occurrence};
use super::scope::Scope;
use super::source::RecordSource;
use crate::batch::digest::{BatchHash, SetDigest};
use crate::batch::{ALL_COLUMNS, BATCH_ID, columns_of_bits};
use crate::error::{Failure, Kind};
use crate::formats::record::{FileInfo, Record, RecordPlace, Schema};

/// The most identifiers that are listed; the others are only counted.
pub(crate) const LISTED: usize = 20;

/// Names of batches or files: the first ones, and the total number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct NameList {
    pub(crate) count: u64,
    pub(crate) ids: Vec<String>,
}

impl NameList {
    pub(crate) fn add(&mut self, id: &str) {
        self.count += 1;
        if self.ids.len() < LISTED {
            self.ids.push(id.to_owned());
        }
    }
}

/// The result of a pass over a file.
pub(crate) struct FileScan {
    /// What the digest covers.
    pub(crate) scope: Scope,
    pub(crate) digest: SetDigest,
    /// The columns that it has, one bit each; `None` if it has neither batches nor a header.
    pub(crate) columns: Option<u32>,
    /// Identifiers that appear more than once.
    pub(crate) repeated: NameList,
    pub(crate) flawed: Flawed,
    pub(crate) info: FileInfo,
}

impl FileScan {
    /// Returns whether each of its batches has an identifier.
    pub(crate) fn has_ids(&self) -> bool {
        self.columns
            .is_none_or(|columns| columns & (1 << BATCH_ID) != 0)
    }

    /// Returns the columns that are not fields of a batch; empty for a table, where users may add their own.
    pub(crate) fn foreign(&self) -> &[String] {
        if self.info.schema == Schema::Shared {
            &[]
        } else {
            &self.info.unknown
        }
    }

    /// Returns the columns of `scope` that the file lacks. JSON lacks none, because an absent field is null.
    pub(crate) fn lacking(&self, scope: &Scope) -> Vec<usize> {
        if self.info.schema == Schema::Free {
            return Vec::new();
        }
        // In a set of files, each must have the column.
        let there = self.info.columns.or(self.columns);
        columns_of_bits(scope.columns & !there.unwrap_or(scope.columns))
    }
}

/// Reads `source` from start to end. Passes each batch to `add`, with its identifier and hash, which returns
/// how often the batch has appeared. If `adapts`, the columns of the first batch replace those of `scope`.
pub(super) fn scan(
    source: &mut RecordSource,
    layout: Option<&[usize]>,
    scope: Scope,
    mut adapts: bool,
    add: &mut dyn FnMut(&Record<'_>, &str, BatchHash) -> Occurrence,
) -> Result<FileScan, Failure> {
    let name = source.name().to_owned();
    let mut unnamed = None;
    let mut scan = FileScan {
        scope,
        digest: scope.digest(),
        columns: None,
        repeated: NameList::default(),
        flawed: Flawed::default(),
        info: FileInfo::default(),
    };
    let info = source.read(layout, &mut |record| {
        scan.columns = Some(scan.columns.unwrap_or_default() | record.columns);
        if std::mem::take(&mut adapts) && record.schema != Schema::Free {
            // Without identifiers, the file is read again.
            scan.scope.columns = record.columns | 1 << BATCH_ID;
            scan.digest = scan.scope.digest();
        }
        let hash = scan.digest.add(record.values);
        if !record.known_valid {
            scan.flawed.check(record);
        }
        if scan.scope.has_ids() {
            let id = record.values.plain(BATCH_ID).unwrap_or_default();
            if !id.is_empty() {
                if add(record, &id, hash) == Occurrence::Twice {
                    scan.repeated.add(&id);
                }
            } else if record.columns & (1 << BATCH_ID) != 0 {
                return Err(no_id(&name, record.place, "empty"));
            } else if unnamed.is_none() {
                unnamed = Some(record.place);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    // A file with columns may lack this one; in JSON, each batch has its own fields.
    if let Some(place) = unnamed.filter(|_| info.schema == Schema::Free) {
        return Err(no_id(&name, place, "missing"));
    }
    scan.columns = scan.columns.or(info.columns);
    scan.info = info;
    Ok(scan)
}

fn no_id(name: &str, place: RecordPlace, what: &str) -> Failure {
    Failure::new(
        Kind::Protocol,
        format!("{name}, {place}: `batch_id` is {what}"),
    )
}

/// Reads the file that is verified, and adds its batches to a ledger.
pub(crate) fn index(
    source: &mut RecordSource,
    layout: Option<&[usize]>,
    scope: Scope,
    adapts: bool,
) -> Result<(FileScan, Ledger), Failure> {
    let mut ledger = Ledger::new();
    let scan = scan(source, layout, scope, adapts, &mut |_, id, hash| {
        ledger.add(id, scope.content(hash))
    })?;
    Ok((scan, ledger))
}

impl Scope {
    /// Returns the scope for two files that were read: the columns that either has, unless the user chose `fields`,
    /// and unknown fields only if both keep them.
    pub(crate) fn settled(self, fields: Option<u32>, here: &FileScan, there: &FileScan) -> Self {
        let either = here.columns.unwrap_or(0) | there.columns.unwrap_or(0);
        let has_any = here.digest.unknown_count() + there.digest.unknown_count() > 0;
        let is_kept = here.info.keeps_unknown_fields && there.info.keeps_unknown_fields;
        Self {
            columns: fields.unwrap_or(if either == 0 { ALL_COLUMNS } else { either }),
            unknown_fields: self.unknown_fields && (is_kept || !has_any),
            version: self.version,
        }
    }
}
