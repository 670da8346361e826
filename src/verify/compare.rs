//! Compares the batches of the other side with those of the file.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use super::ledger::{Ledger, Lookup};
use super::scan::{FileScan, LISTED, NameList, Scope, names, scan};
use super::source::RecordSource;
use crate::batch::digest::BatchHash;
use crate::batch::{BATCH_ID, Values, canonical_json, columns_of_bits};
use crate::error::Failure;

/// A batch that differs between the two sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BatchDifference {
    pub(crate) id: String,
    /// Columns whose values differ.
    pub(crate) columns: Vec<usize>,
    /// Whether its unknown fields differ.
    pub(crate) unknown_fields: bool,
}

impl BatchDifference {
    /// Returns the names of what differs.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let unknown = self.unknown_fields.then_some("(unknown fields)");
        names(&self.columns).into_iter().chain(unknown).collect()
    }
}

/// Compares the batches of the other side with a ledger.
pub(crate) struct Comparison {
    ledger: Ledger,
    scope: Scope,
    missing: NameList,
    changed: u64,
    /// The first changed batches, with their number and their values on the other side.
    changed_values: HashMap<String, (usize, CanonicalValues)>,
}

/// The columns of a batch in canonical form, and its unknown fields.
type CanonicalValues = (Vec<Vec<u8>>, Option<String>);

fn canonical_values(batch: &dyn Values, scope: &Scope) -> CanonicalValues {
    let encoded = |column: usize| {
        let mut value = Vec::new();
        batch.encode(column, &mut value);
        value
    };
    let columns = columns_of_bits(scope.columns).into_iter().map(encoded);
    let unknown = batch.unknown_fields().filter(|_| scope.unknown_fields);
    let unknown = unknown.map(|fields| canonical_json(&fields));
    (columns.collect(), unknown)
}

/// The differences between the two sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    /// Batches that only the other side has.
    pub(crate) missing: NameList,
    /// Batches that only the file has.
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
            changed_values: HashMap::new(),
        }
    }

    /// Reads the other side from a file.
    pub(crate) fn read(&mut self, source: &mut RecordSource) -> Result<FileScan, Failure> {
        let scope = self.scope;
        scan(source, None, scope, false, &mut |record, id, hash| {
            self.compare(record.values, id, hash)
        })
    }

    /// Compares one batch of the other side; returns whether it is the second one with its identifier.
    pub(crate) fn compare(&mut self, batch: &dyn Values, id: &str, hash: BatchHash) -> bool {
        match self.ledger.lookup(id, self.scope.content(hash)) {
            Lookup::Same => {}
            Lookup::Missing => self.missing.add(id),
            Lookup::Changed => {
                self.changed += 1;
                let number = self.changed_values.len();
                if number < LISTED {
                    let values = canonical_values(batch, &self.scope);
                    self.changed_values.insert(id.to_owned(), (number, values));
                }
            }
            Lookup::Repeated(is_second) => return is_second,
        }
        false
    }

    /// Returns whether every batch was found on both sides, with the same content.
    pub(crate) fn is_equal(&self) -> bool {
        self.missing.count == 0 && self.changed == 0 && self.ledger.unmatched() == 0
    }

    /// Lists the differences; reads `source`, the file that is verified, again.
    pub(crate) fn differences(
        mut self,
        source: &mut RecordSource,
        layout: Option<&[usize]>,
    ) -> Result<Differences, Failure> {
        let mut extra = NameList {
            count: self.ledger.unmatched(),
            ids: Vec::new(),
        };
        let limit = usize::try_from(extra.count).map_or(LISTED, |count| count.min(LISTED));
        let mut changes = BTreeMap::new();
        if limit > 0 || !self.changed_values.is_empty() {
            source.read(layout, &mut |record| {
                let id = record.values.plain(BATCH_ID).unwrap_or_default();
                if extra.ids.len() < limit && self.ledger.is_first_unmatched(&id) {
                    extra.ids.push(id.clone().into_owned());
                }
                if let Some((number, there)) = self.changed_values.remove(id.as_ref()) {
                    let here = canonical_values(record.values, &self.scope);
                    let pairs = here.0.iter().zip(&there.0);
                    let columns = columns_of_bits(self.scope.columns).into_iter().zip(pairs);
                    let differs = columns.filter(|(_, (here, there))| here != there);
                    let change = BatchDifference {
                        id: id.into_owned(),
                        columns: differs.map(|(column, _)| column).collect(),
                        unknown_fields: here.1 != there.1,
                    };
                    changes.insert(number, change);
                }
                let done = extra.ids.len() == limit && self.changed_values.is_empty();
                Ok(if done {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                })
            })?;
        }
        Ok(Differences {
            missing: self.missing,
            extra,
            changed: self.changed,
            changes: changes.into_values().collect(),
        })
    }
}
