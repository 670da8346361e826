//! Compares two sets of batches: which are missing, extra or changed.
//!
//! Start with [`scan`]: one pass over a file gives its set digest and adds every batch to a [`Ledger`].
//! [`compare`] then looks up the batches of the other side there, from another file or from the service.
//! Two sets are equal if their digests are equal and the comparison found no difference.
//!
//! [`source`] opens what is verified; the readers of the formats are in `formats`. The verdict, its text and
//! its JSON are up to the command.

// What is verified: a file, standard input, an archive, a table, or the files of a lake.
mod lake;
pub(crate) mod source;
pub(crate) mod workbook;

mod compare;
mod ledger;
mod scan;

// Tests that every reader must pass.
#[cfg(test)]
mod round_trip;

pub(crate) use compare::{BatchDifference, Comparison, Differences};
pub(crate) use lake::Lake;
pub(crate) use ledger::Ledger;
pub(crate) use scan::{FileBatches, FileScan, NameList, Scope, briefly, index, names};
pub(crate) use source::{FileDigest, RecordSource};
