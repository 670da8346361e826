//! The batches of the other side, compared with those of the file.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::ledger::{Ledger, Met, Times};
use super::scan::{FileScan, LISTED, NameList, scan};
use super::scope::{Scope, listed, names};
use super::source::RecordSource;
use crate::batch::digest::BatchHash;
use crate::batch::{BATCH_ID, Values, canonical_json};
use crate::error::Failure;

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
