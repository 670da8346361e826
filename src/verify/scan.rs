//! One pass over a file: its set digest, its columns, and its invalid values. Those are allowed: `export --lenient` keeps
//! them.

use std::ops::ControlFlow;

use serde::Serialize;

use super::ledger::Ledger;
use super::source::RecordSource;
use crate::batch::digest::{BatchHash, SetDigest};
use crate::batch::{
    ALL_COLUMNS, BATCH_ID, COLUMNS, FieldType, Timestamp, columns_of_bits, is_number, is_whole,
};
use crate::error::{Failure, Kind};
use crate::formats::csv;
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

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    /// The columns, one bit each.
    pub(crate) columns: u32,
    /// Whether unknown fields are compared: both sides keep them, and the user chose no fields.
    pub(crate) unknown_fields: bool,
    /// The version of the digest.
    pub(crate) version: u32,
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

    pub(super) fn has_ids(&self) -> bool {
        self.columns & (1 << BATCH_ID) != 0
    }

    /// Returns the hash of the content of a batch within this scope.
    pub(super) fn content(&self, hash: BatchHash) -> u64 {
        if self.unknown_fields {
            hash.fields ^ hash.unknown
        } else {
            hash.fields
        }
    }

    /// Starts a digest of a set.
    pub(crate) fn digest(&self) -> SetDigest {
        SetDigest::of_version(self.version, &columns_of_bits(self.columns))
            // The version was checked when it was read.
            .unwrap_or_else(|| SetDigest::new(&columns_of_bits(self.columns)))
            .with_unknown_fields(true)
    }
}

/// Returns the names of columns for people; only the first if there are many.
pub(crate) fn briefly(columns: &[usize]) -> String {
    const NAMED: usize = 6;
    let names = names(columns);
    match names.len().checked_sub(NAMED) {
        Some(more @ 2..) => format!("{} and {more} more", names[..NAMED].join(", ")),
        _ => names.join(", "),
    }
}

/// Returns the names of columns.
pub(crate) fn names(columns: &[usize]) -> Vec<&'static str> {
    columns.iter().map(|&column| COLUMNS[column].name).collect()
}

/// The batches of one file of a lake.
pub(crate) struct FileBatches {
    pub(crate) count: u64,
    pub(crate) digest: String,
    pub(crate) unknown_fields_digest: Option<String>,
}

impl FileBatches {
    fn of(digest: &SetDigest) -> Self {
        Self {
            count: digest.count(),
            digest: digest.finish(),
            unknown_fields_digest: digest.finish_unknown(),
        }
    }
}

/// The result of a pass over a file.
pub(crate) struct FileScan {
    /// What the digest covers.
    pub(crate) scope: Scope,
    pub(crate) digest: SetDigest,
    /// The batches of each file of a lake, up to the last file that has any.
    pub(crate) files: Vec<FileBatches>,
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
/// whether it is the second one with its identifier. If `adapts`, the columns of the first batch replace those of `scope`.
pub(super) fn scan(
    source: &mut RecordSource,
    layout: Option<&[usize]>,
    scope: Scope,
    mut adapts: bool,
    add: &mut dyn FnMut(&Record<'_>, &str, BatchHash) -> bool,
) -> Result<FileScan, Failure> {
    let name = source.name().to_owned();
    let mut unnamed = None;
    let mut scan = FileScan {
        scope,
        digest: scope.digest(),
        files: Vec::new(),
        columns: None,
        repeated: NameList::default(),
        flawed: Flawed::default(),
        info: FileInfo::default(),
    };
    let mut file_digest = scope.digest();
    let info = source.read(layout, &mut |record| {
        scan.columns = Some(scan.columns.unwrap_or_default() | record.columns);
        if std::mem::take(&mut adapts) && record.schema != Schema::Free {
            // Without identifiers, the file is read again.
            scan.scope.columns = record.columns | 1 << BATCH_ID;
            scan.digest = scan.scope.digest();
            file_digest = scan.scope.digest();
        }
        while scan.files.len() < record.file {
            scan.files.push(FileBatches::of(&file_digest));
            scan.digest.merge(&file_digest);
            file_digest = scan.scope.digest();
        }
        let hash = file_digest.add(record.values);
        if !record.known_valid {
            scan.flawed.check(record);
        }
        if scan.scope.has_ids() {
            let id = record.values.plain(BATCH_ID).unwrap_or_default();
            if !id.is_empty() {
                if add(record, &id, hash) {
                    scan.repeated.add(&id);
                }
            } else if record.columns & (1 << BATCH_ID) != 0 {
                return Err(no_id(&name, record.place, "empty"));
            } else if unnamed.is_none() && record.schema == Schema::Free {
                unnamed = Some(record.place);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    scan.files.push(FileBatches::of(&file_digest));
    scan.digest.merge(&file_digest);
    // A file with columns may lack this one; in JSON, each batch has its own fields.
    if let Some(place) = unnamed {
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

/// The number of invalid values, and the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flawed {
    pub(crate) count: u64,
    pub(crate) first: Option<String>,
}

impl Flawed {
    fn check(&mut self, record: &Record<'_>) {
        for (place, column) in COLUMNS.iter().enumerate() {
            if record.columns & (1 << place) == 0 {
                continue;
            }
            let text = record.values.plain(place);
            let Some(flaw) = flaw(column.kind, column.nullable, text.as_deref()) else {
                continue;
            };
            self.count += 1;
            self.first
                .get_or_insert_with(|| format!("{}, `{}` is {flaw}", record.place, column.name));
        }
    }
}

/// Describes what is wrong with a value.
fn flaw(kind: FieldType, nullable: bool, text: Option<&str>) -> Option<&'static str> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        // In CSV, empty text and null look the same.
        return (!nullable && kind != FieldType::Text).then_some("missing");
    };
    match kind {
        FieldType::Text => None,
        FieldType::Date if Timestamp::parse(text).is_some() => None,
        FieldType::Date if csv::is_excel_date(text) => Some(
            "a date as `--excel` writes it, but the file has no byte order mark or no CRLF line ends",
        ),
        FieldType::Date => Some("not a date in UTC"),
        FieldType::Integer if text.parse::<i64>().is_ok() => None,
        FieldType::Integer if is_whole(text) => Some("too large"),
        FieldType::Integer => Some("not a whole number"),
        FieldType::Decimal => (!is_number(text)).then_some("not a decimal number"),
        FieldType::Boolean => (!matches!(text, "true" | "false")).then_some("not true or false"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_by_the_type_of_their_field() {
        for (kind, text) in [
            (FieldType::Decimal, "87.50"),
            (FieldType::Integer, "-12"),
            (FieldType::Date, "2026-05-01T06:00:00.5Z"),
            (FieldType::Boolean, "false"),
            (FieldType::Text, "anything"),
        ] {
            assert_eq!(flaw(kind, false, Some(text)), None, "{text}");
            assert_eq!(flaw(kind, true, None), None);
        }
        for (kind, text) in [
            (FieldType::Decimal, "87,50"),
            (FieldType::Integer, "12.0"),
            (FieldType::Date, "2026-05-01"),
            (FieldType::Boolean, "1"),
            (FieldType::Boolean, ""),
        ] {
            assert!(flaw(kind, false, Some(text)).is_some(), "{text}");
        }
        assert_eq!(flaw(FieldType::Date, false, None), Some("missing"));
        assert_eq!(flaw(FieldType::Text, false, None), None);
        let date = flaw(FieldType::Date, false, Some("2026-05-01 06:00:00"));
        assert!(
            date.is_some_and(|flaw| flaw.contains("`--excel`")),
            "{date:?}"
        );
        let huge = flaw(FieldType::Integer, false, Some("9223372036854775808"));
        assert_eq!(huge, Some("too large"));
    }
}
