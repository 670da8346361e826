//! What is compared: which columns, with which version of the digest.

use crate::batch::digest::{BatchHash, SetDigest};
use crate::batch::{BATCH_ID, COLUMNS, columns_of_bits};

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
