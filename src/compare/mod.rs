//! What two sets of batches have that the other has not.
//!
//! A pass over a file gives its set digest and notes every batch in a [`Ledger`]; the batches of the
//! other side are then held against it, wherever they come from. Digests decide, the ledger tells what
//! the difference is.

// Who was seen where, in a few bytes a batch.
mod ledger;

// Values that are not what their fields hold.
mod flaws;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;

pub(crate) use flaws::Flawed;
use ledger::Met;
pub(crate) use ledger::{Ledger, Times};

use serde::Serialize;

use crate::batch::{BATCH_ID, COLUMNS, Values};
use crate::digest::{SetDigest, canonical};
use crate::error::{Failure, Kind};
use crate::readers::{Record, Remarks, Source};

/// So many identifiers are listed; of the others only their number is told.
pub(crate) const LISTED: usize = 20;

/// A set of columns, one bit each.
pub(crate) fn listed(columns: u32) -> Vec<usize> {
    (0..COLUMNS.len())
        .filter(|column| columns & (1 << column) != 0)
        .collect()
}

/// Identifiers: the first of them, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Listing {
    pub(crate) count: u64,
    pub(crate) ids: Vec<String>,
}

impl Listing {
    fn add(&mut self, id: &str) {
        self.count += 1;
        if self.ids.len() < LISTED {
            self.ids.push(id.to_owned());
        }
    }
}

/// What a pass over a file found.
pub(crate) struct Survey {
    pub(crate) digest: SetDigest,
    /// Columns that it has, one bit each; nothing where that cannot be told, for it has no batch.
    pub(crate) columns: Option<u32>,
    /// Identifiers that it has more than once.
    pub(crate) repeated: Listing,
    pub(crate) flawed: Flawed,
    pub(crate) remarks: Remarks,
}

/// Reads `source` from start to end. The digest is over `columns`; each batch is handed to `note`, with
/// its identifier and the digest of it alone, which tells how often it was there.
fn survey(
    source: &mut Source,
    layout: Option<&[usize]>,
    columns: u32,
    note: &mut dyn FnMut(&Record<'_>, &str, [u8; 32]) -> Times,
) -> Result<Survey, Failure> {
    let name = source.name().to_owned();
    let columns = listed(columns);
    let has_ids = columns.contains(&BATCH_ID);
    let mut survey = Survey {
        digest: SetDigest::new(&columns),
        columns: None,
        repeated: Listing::default(),
        flawed: Flawed::default(),
        remarks: Remarks::default(),
    };
    let remarks = source.read(layout, &mut |record| {
        survey.columns = Some(survey.columns.unwrap_or_default() | record.columns);
        let content = survey.digest.add(record.values);
        if !record.sound {
            survey.flawed.judge(record);
        }
        if has_ids {
            let id = record.values.plain(BATCH_ID).unwrap_or_default();
            if id.is_empty() {
                let what = if record.columns & (1 << BATCH_ID) == 0 {
                    "missing"
                } else {
                    "empty"
                };
                return Err(Failure::new(
                    Kind::Protocol,
                    format!("{name}, {}: `batch_id` is {what}", record.place),
                ));
            }
            if note(record, &id, content) == Times::Twice {
                survey.repeated.add(&id);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    survey.columns = survey.columns.or(remarks.columns);
    survey.remarks = remarks;
    Ok(survey)
}

/// Returns the columns that `source` seems to have, one bit each; nothing where that cannot be told.
pub(crate) fn glance(
    source: &mut Source,
    layout: Option<&[usize]>,
) -> Result<Option<u32>, Failure> {
    let mut columns = None;
    let remarks = source.read(layout, &mut |record| {
        columns = Some(record.columns);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(columns.or(remarks.columns))
}

/// Reads the file that is verified, and notes its batches in a ledger.
pub(crate) fn note(
    source: &mut Source,
    layout: Option<&[usize]>,
    columns: u32,
) -> Result<(Survey, Ledger), Failure> {
    let mut ledger = Ledger::new();
    let survey = survey(source, layout, columns, &mut |_, id, content| {
        ledger.note(id, content)
    })?;
    Ok((survey, ledger))
}

/// A batch that is not the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) id: String,
    /// Columns whose values differ.
    pub(crate) columns: Vec<usize>,
}

/// What the other side has, as it is held against a ledger.
pub(crate) struct Comparison {
    ledger: Ledger,
    columns: Vec<usize>,
    missing: Listing,
    changed: u64,
    /// The first that changed, with their values on the other side.
    values: HashMap<String, Vec<Option<String>>>,
    /// The same, in order.
    order: Vec<String>,
}

/// What is different.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    /// On the other side only.
    pub(crate) missing: Listing,
    /// In the file only.
    pub(crate) extra: Listing,
    pub(crate) changed: u64,
    pub(crate) changes: Vec<Change>,
}

impl Comparison {
    pub(crate) fn new(ledger: Ledger, columns: u32) -> Self {
        Self {
            ledger,
            columns: listed(columns),
            missing: Listing::default(),
            changed: 0,
            values: HashMap::new(),
            order: Vec::new(),
        }
    }

    /// Reads the other side from a file.
    pub(crate) fn read(&mut self, source: &mut Source) -> Result<Survey, Failure> {
        let columns = self.columns.iter().fold(0, |all, column| all | 1 << column);
        survey(source, None, columns, &mut |record, id, content| {
            self.hold(record.values, id, content)
        })
    }

    /// Holds one batch of the other side against the ledger; tells how often it came.
    pub(crate) fn hold(&mut self, batch: &dyn Values, id: &str, content: [u8; 32]) -> Times {
        match self.ledger.meet(id, content) {
            Met::Same => {}
            Met::Nowhere => self.missing.add(id),
            Met::Changed => {
                self.changed += 1;
                if self.order.len() < LISTED {
                    let value = |&column: &usize| batch.plain(column).map(Cow::into_owned);
                    self.order.push(id.to_owned());
                    self.values
                        .insert(id.to_owned(), self.columns.iter().map(value).collect());
                }
            }
            Met::Again(times) => return times,
        }
        Times::Once
    }

    /// Tells what is different; `source` is the file that is verified, which is read once more.
    pub(crate) fn differences(
        mut self,
        source: &mut Source,
        layout: Option<&[usize]>,
    ) -> Result<Differences, Failure> {
        let mut extra = Listing {
            count: self.ledger.unmet(),
            ids: Vec::new(),
        };
        let wanted = usize::try_from(extra.count).map_or(LISTED, |count| count.min(LISTED));
        let mut changes: HashMap<String, Vec<usize>> = HashMap::new();
        if wanted > 0 || !self.values.is_empty() {
            source.read(layout, &mut |record| {
                let id = record.values.plain(BATCH_ID).unwrap_or_default();
                if extra.ids.len() < wanted && self.ledger.is_first_unmet(&id) {
                    extra.ids.push(id.clone().into_owned());
                }
                if let Some(values) = self.values.remove(id.as_ref()) {
                    let columns = changed_columns(&self.columns, record.values, &values);
                    changes.insert(id.into_owned(), columns);
                }
                let done = extra.ids.len() == wanted && self.values.is_empty();
                Ok(if done {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                })
            })?;
        }
        let change = |id: String| {
            let columns = changes.remove(&id).unwrap_or_default();
            Change { id, columns }
        };
        Ok(Differences {
            missing: self.missing,
            extra,
            changed: self.changed,
            changes: self.order.into_iter().map(change).collect(),
        })
    }
}

/// Returns the columns in which two batches differ.
fn changed_columns(columns: &[usize], here: &dyn Values, there: &[Option<String>]) -> Vec<usize> {
    let form = |column: usize, text: Option<Cow<'_, str>>| {
        text.map(|text| canonical(COLUMNS[column].kind, text).into_owned())
            .filter(|text| !text.is_empty())
    };
    let differs = |&(&column, there): &(&usize, &Option<String>)| {
        let there = there.as_deref().map(Cow::Borrowed);
        form(column, here.plain(column)) != form(column, there)
    };
    let pairs = columns.iter().zip(there).filter(differs);
    pairs.map(|(&column, _)| column).collect()
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
