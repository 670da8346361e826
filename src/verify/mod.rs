//! Two sets of batches compared: what each has that the other lacks.
//!
//! A pass over a file gives its set digest and adds every batch to a [`Ledger`]; the batches of the other side
//! are then looked up there, wherever they come from. Two sets are equal if their digests are and the ledger
//! has nothing to say.

// Which batches were seen where, in a few bytes a batch.
mod ledger;

// Values that are not what their fields hold.
pub(crate) mod archive;
mod flaws;
pub(crate) mod lake;
#[cfg(test)]
pub(crate) mod round_trip;
pub(crate) mod source;
#[cfg(feature = "postgres")]
pub(crate) mod table;

use std::collections::HashMap;
use std::ops::ControlFlow;

pub(crate) use flaws::Flawed;
use ledger::Met;
pub(crate) use ledger::{Ledger, Times};

use serde::Serialize;

use crate::batch::digest::{BatchHash, SetDigest};
use crate::batch::{ALL_COLUMNS, BATCH_ID, COLUMNS, Values, canonical_json};
use crate::error::{Failure, Kind};
use crate::formats::record::{FileInfo, Record, RecordPlace, Schema};
pub(crate) use lake::Lake;
pub(crate) use source::{FileDigest, RecordSource};

/// So many identifiers are listed; of the others only their number is told.
pub(crate) const LISTED: usize = 20;

/// Returns a set of columns as one bit each.
pub(crate) fn bits(columns: &[usize]) -> u32 {
    columns.iter().fold(0, |all, column| all | 1 << column)
}

/// Returns the columns of a set, in order.
pub(crate) fn listed(columns: u32) -> Vec<usize> {
    (0..COLUMNS.len())
        .filter(|column| columns & (1 << column) != 0)
        .collect()
}

/// Names of batches or files: the first of them, and how many there are.
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
    /// One bit each.
    pub(crate) columns: u32,
    /// Both sides keep unknown fields, and all fields are compared.
    pub(crate) unknown_fields: bool,
    /// The version of the digest.
    pub(crate) version: u32,
}

impl Scope {
    fn has_ids(&self) -> bool {
        self.columns & (1 << BATCH_ID) != 0
    }

    /// Returns what tells the content of a batch from others within this scope.
    fn content(&self, hash: BatchHash) -> u64 {
        if self.unknown_fields {
            hash.fields ^ hash.unknown
        } else {
            hash.fields
        }
    }

    /// Returns the scope that two files turned out to need: the columns that either has, unless `fields` were
    /// asked for, and unknown fields only if both keep them.
    pub(crate) fn settled(self, fields: Option<u32>, here: &FileScan, there: &FileScan) -> Self {
        let either = here.columns.unwrap_or(0) | there.columns.unwrap_or(0);
        let has_any = here.digest.unknown_count() + there.digest.unknown_count() > 0;
        let is_kept = here.remarks.keeps_unknown_fields && there.remarks.keeps_unknown_fields;
        Self {
            columns: fields.unwrap_or(if either == 0 { ALL_COLUMNS } else { either }),
            unknown_fields: self.unknown_fields && (is_kept || !has_any),
            version: self.version,
        }
    }

    /// Starts a digest of a set.
    pub(crate) fn digest(&self) -> SetDigest {
        SetDigest::of_version(self.version, &listed(self.columns))
            // Versions are checked where they are read.
            .unwrap_or_else(|| SetDigest::new(&listed(self.columns)))
            .with_unknown_fields(true)
    }
}

/// What a pass over a file found.
pub(crate) struct FileScan {
    pub(crate) digest: SetDigest,
    /// Columns that it has, one bit each; `None` if it has no batch and does not tell.
    pub(crate) columns: Option<u32>,
    /// Identifiers that it has more than once.
    pub(crate) repeated: NameList,
    pub(crate) flawed: Flawed,
    pub(crate) remarks: FileInfo,
}

impl FileScan {
    /// Returns whether each of its batches has an identifier.
    pub(crate) fn has_ids(&self) -> bool {
        self.columns
            .is_none_or(|columns| columns & (1 << BATCH_ID) != 0)
    }

    /// Returns the columns that no batch has and that nobody but trayscan should have written.
    pub(crate) fn foreign(&self) -> &[String] {
        if self.remarks.schema == Schema::Shared {
            &[]
        } else {
            &self.remarks.unknown
        }
    }

    /// Returns the columns of `scope` that the file lacks. In JSON none is: absent is null.
    pub(crate) fn lacking(&self, scope: &Scope) -> Vec<usize> {
        if self.remarks.schema == Schema::Free {
            return Vec::new();
        }
        // Of several files, each must have the column.
        let there = self.remarks.columns.or(self.columns);
        listed(scope.columns & !there.unwrap_or(scope.columns))
    }
}

/// Reads `source` from start to end. Each batch is handed to `add`, with its identifier and its hash, which
/// returns how often it was there.
fn scan(
    source: &mut RecordSource,
    layout: Option<&[usize]>,
    scope: &Scope,
    add: &mut dyn FnMut(&Record<'_>, &str, BatchHash) -> Times,
) -> Result<FileScan, Failure> {
    let name = source.name().to_owned();
    let mut unnamed = None;
    let mut scan = FileScan {
        digest: scope.digest(),
        columns: None,
        repeated: NameList::default(),
        flawed: Flawed::default(),
        remarks: FileInfo::default(),
    };
    let remarks = source.read(layout, &mut |record| {
        scan.columns = Some(scan.columns.unwrap_or_default() | record.columns);
        let hash = scan.digest.add(record.values);
        if !record.sound {
            scan.flawed.judge(record);
        }
        if scope.has_ids() {
            let id = record.values.plain(BATCH_ID).unwrap_or_default();
            if !id.is_empty() {
                if add(record, &id, hash) == Times::Twice {
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
    // A table may have no such column; in JSON, each batch has its own fields.
    if let Some(place) = unnamed.filter(|_| remarks.schema == Schema::Free) {
        return Err(no_id(&name, place, "missing"));
    }
    scan.columns = scan.columns.or(remarks.columns);
    scan.remarks = remarks;
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
    scope: &Scope,
) -> Result<(FileScan, Ledger), Failure> {
    let mut ledger = Ledger::new();
    let scan = scan(source, layout, scope, &mut |_, id, hash| {
        ledger.add(id, scope.content(hash))
    })?;
    Ok((scan, ledger))
}

/// A batch that is not the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BatchDifference {
    pub(crate) id: String,
    /// Columns whose values differ.
    pub(crate) columns: Vec<usize>,
    /// Its unknown fields differ.
    pub(crate) unknown_fields: bool,
}

impl BatchDifference {
    /// Returns the names of what differs.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let unknown = self.unknown_fields.then_some("(unknown fields)");
        names(&self.columns).into_iter().chain(unknown).collect()
    }
}

/// The other side, as it is looked up in a ledger.
pub(crate) struct Comparison {
    ledger: Ledger,
    scope: Scope,
    missing: NameList,
    changed: u64,
    /// The first that changed, with their forms on the other side.
    forms: HashMap<String, CanonicalValues>,
    /// The same, in order.
    order: Vec<String>,
}

/// The values of a batch in their canonical form.
#[derive(Default)]
struct CanonicalValues {
    columns: Vec<Vec<u8>>,
    unknown_fields: Option<String>,
}

impl CanonicalValues {
    fn new(batch: &dyn Values, scope: &Scope) -> Self {
        let encoded = |column: usize| {
            let mut form = Vec::new();
            batch.encode(column, &mut form);
            form
        };
        let unknown = batch.unknown_fields().filter(|_| scope.unknown_fields);
        Self {
            columns: listed(scope.columns).into_iter().map(encoded).collect(),
            unknown_fields: unknown.map(|fields| canonical_json(&fields)),
        }
    }
}

/// What is different.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    /// On the other side only.
    pub(crate) missing: NameList,
    /// In the file only.
    pub(crate) extra: NameList,
    pub(crate) changed: u64,
    pub(crate) changes: Vec<BatchDifference>,
}

impl Comparison {
    pub(crate) fn new(ledger: Ledger, scope: Scope) -> Self {
        Self {
            ledger,
            scope,
            missing: NameList::default(),
            changed: 0,
            forms: HashMap::new(),
            order: Vec::new(),
        }
    }

    /// Reads the other side from a file.
    pub(crate) fn read(&mut self, source: &mut RecordSource) -> Result<FileScan, Failure> {
        let scope = self.scope;
        scan(source, None, &scope, &mut |record, id, hash| {
            self.compare(record.values, id, hash)
        })
    }

    /// Compares one batch of the other side; returns how often it came.
    pub(crate) fn compare(&mut self, batch: &dyn Values, id: &str, hash: BatchHash) -> Times {
        match self.ledger.lookup(id, self.scope.content(hash)) {
            Met::Same => {}
            Met::Nowhere => self.missing.add(id),
            Met::Changed => {
                self.changed += 1;
                if self.order.len() < LISTED {
                    self.order.push(id.to_owned());
                    let form = CanonicalValues::new(batch, &self.scope);
                    self.forms.insert(id.to_owned(), form);
                }
            }
            Met::Again(times) => return times,
        }
        Times::Once
    }

    /// Returns whether every batch was found on both sides, with the same content.
    pub(crate) fn is_equal(&self) -> bool {
        self.missing.count == 0 && self.changed == 0 && self.ledger.unmet() == 0
    }

    /// Lists what is different; `source` is the file that is verified, which is read once more.
    pub(crate) fn differences(
        mut self,
        source: &mut RecordSource,
        layout: Option<&[usize]>,
    ) -> Result<Differences, Failure> {
        let mut extra = NameList {
            count: self.ledger.unmet(),
            ids: Vec::new(),
        };
        let wanted = usize::try_from(extra.count).map_or(LISTED, |count| count.min(LISTED));
        let mut changes: HashMap<String, BatchDifference> = HashMap::new();
        if wanted > 0 || !self.forms.is_empty() {
            source.read(layout, &mut |record| {
                let id = record.values.plain(BATCH_ID).unwrap_or_default();
                if extra.ids.len() < wanted && self.ledger.is_first_unmet(&id) {
                    extra.ids.push(id.clone().into_owned());
                }
                if let Some(there) = self.forms.remove(id.as_ref()) {
                    let here = CanonicalValues::new(record.values, &self.scope);
                    let change = changed(id.into_owned(), &self.scope, &here, &there);
                    changes.insert(change.id.clone(), change);
                }
                let done = extra.ids.len() == wanted && self.forms.is_empty();
                Ok(if done {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                })
            })?;
        }
        let change = |id: String| changes.remove(&id);
        Ok(Differences {
            missing: self.missing,
            extra,
            changed: self.changed,
            changes: self.order.into_iter().filter_map(change).collect(),
        })
    }
}

/// Finds what differs between two forms of one batch.
fn changed(
    id: String,
    scope: &Scope,
    here: &CanonicalValues,
    there: &CanonicalValues,
) -> BatchDifference {
    let pairs = here.columns.iter().zip(&there.columns);
    let columns = listed(scope.columns).into_iter().zip(pairs);
    let differs = columns.filter(|(_, (here, there))| here != there);
    BatchDifference {
        id,
        columns: differs.map(|(column, _)| column).collect(),
        unknown_fields: here.unknown_fields != there.unknown_fields,
    }
}

/// Names columns for people: the first of them, where there are many.
pub(crate) fn briefly(columns: &[usize]) -> String {
    const NAMED: usize = 6;
    let names = names(columns);
    match names.len().checked_sub(NAMED) {
        Some(more @ 2..) => format!("{} and {more} more", names[..NAMED].join(", ")),
        _ => names.join(", "),
    }
}

/// Names columns.
pub(crate) fn names(columns: &[usize]) -> Vec<&'static str> {
    columns.iter().map(|&column| COLUMNS[column].name).collect()
}
