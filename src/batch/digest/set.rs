//! The digest of a set: batches are added, removed and counted; its state can be saved and resumed.

use std::fmt::Write as _;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::{Deserialize, Serialize};

use super::lattice::{self, LatticeSum};
use super::v1;
use crate::batch::{BATCH_ID, Batch, COLUMNS, Representation, Values, canonical_json};

/// BLAKE3 keys, by what is hashed.
const BATCH: &str = "trayscan set digest 2: batch";
const SET: &str = "trayscan set digest 2: set";
const UNKNOWN_FIELDS: &str = "trayscan set digest 2: unknown fields of a batch";
const UNKNOWN_SET: &str = "trayscan set digest 2: unknown fields of a set";

/// The digest version of new exports.
pub(crate) const VERSION: u32 = 2;

/// A digest in progress.
pub(crate) struct SetDigest {
    /// In the order of the interface.
    columns: Vec<usize>,
    sum: DigestSum,
    count: u64,
    /// `None` if unknown fields are not digested.
    unknown: Option<UnknownDigest>,
    /// What is kept of a batch.
    kept: Representation,
    /// The canonical form of one batch, reused.
    form: Vec<u8>,
}

enum DigestSum {
    V1(v1::AdditiveSum),
    V2(Box<LatticeSum>),
}

/// An unfinished digest of version 2, so that a later run can add and remove batches.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) struct DigestState {
    batches: u64,
    /// The sum, in base64.
    sum: String,
    /// For unknown fields, if they are digested: the number of batches that have any, and their sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unknown_fields: Option<UnknownState>,
}

#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
struct UnknownState {
    batches: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sum: Option<String>,
}

/// The digest of unknown fields.
#[derive(Default)]
struct UnknownDigest {
    /// `None` until a batch has unknown fields.
    sum: Option<Box<LatticeSum>>,
    /// Number of batches with unknown fields.
    count: u64,
}

/// A hash of the content of one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchHash {
    /// The first bytes of the hash over the columns.
    pub(crate) fields: u64,
    /// The same over the unknown fields; 0 if there are none or they are not digested.
    pub(crate) unknown: u64,
}

impl SetDigest {
    /// Starts a digest over these columns.
    pub(crate) fn new(columns: &[usize]) -> Self {
        Self::with_sum(columns, DigestSum::V2(Box::new(LatticeSum::new(BATCH))))
    }

    /// Starts a digest of the given version; `None` if there is no such version.
    pub(crate) fn of_version(version: u32, columns: &[usize]) -> Option<Self> {
        match version {
            1 => Some(Self::with_sum(
                columns,
                DigestSum::V1(v1::AdditiveSum::default()),
            )),
            VERSION => Some(Self::new(columns)),
            _ => None,
        }
    }

    fn with_sum(columns: &[usize], sum: DigestSum) -> Self {
        let mut columns = columns.to_vec();
        columns.sort_unstable();
        Self {
            columns,
            sum,
            count: 0,
            unknown: None,
            kept: Representation::Json,
            form: Vec::new(),
        }
    }

    /// Digests what a format with this representation keeps of a batch.
    pub(crate) fn with_representation(mut self, kept: Representation) -> Self {
        self.kept = kept;
        self
    }

    /// Digests unknown fields as well, if `wanted`.
    pub(crate) fn with_unknown_fields(mut self, wanted: bool) -> Self {
        self.unknown = wanted.then(UnknownDigest::default);
        self
    }

    /// Adds a batch; returns its own hash.
    pub(crate) fn add(&mut self, batch: &dyn Values) -> BatchHash {
        self.count += 1;
        self.form.clear();
        let fields = match &mut self.sum {
            DigestSum::V1(sum) => sum.add(batch, &self.columns, &mut self.form),
            DigestSum::V2(sum) => {
                for &column in &self.columns {
                    batch.encode(column, &mut self.form);
                }
                sum.add(&self.form)
            }
        };
        let unknown = match &mut self.unknown {
            Some(unknown) => unknown.add(batch, &mut self.form),
            None => 0,
        };
        BatchHash { fields, unknown }
    }

    /// Adds what the format keeps of a batch.
    pub(crate) fn add_kept(&mut self, batch: &Batch) {
        self.kept.of(batch, |values| self.add(values));
    }

    /// Adds the batches of another digest of the same version over the same columns.
    pub(crate) fn merge(&mut self, other: &Self) {
        match (&mut self.sum, &other.sum) {
            (DigestSum::V1(sum), DigestSum::V1(more)) => sum.merge(more),
            (DigestSum::V2(sum), DigestSum::V2(more)) => sum.merge(more),
            _ => return,
        }
        self.count += other.count;
        if let (Some(unknown), Some(more)) = (&mut self.unknown, &other.unknown) {
            unknown.count += more.count;
            if let Some(more) = &more.sum {
                unknown.sum().merge(more);
            }
        }
    }

    /// Removes a batch that was added. Version 1 does not support this.
    pub(crate) fn remove_kept(&mut self, batch: &Batch) {
        self.kept.of(batch, |values| {
            let DigestSum::V2(sum) = &mut self.sum else {
                return;
            };
            self.count = self.count.saturating_sub(1);
            self.form.clear();
            for &column in &self.columns {
                values.encode(column, &mut self.form);
            }
            sum.remove(&self.form);
            if let Some(unknown) = &mut self.unknown {
                unknown.remove(values, &mut self.form);
            }
        });
    }

    /// Returns what [`Self::resume`] continues from; `None` for version 1.
    pub(crate) fn state(&self) -> Option<DigestState> {
        let DigestSum::V2(sum) = &self.sum else {
            return None;
        };
        let text = |sum: &LatticeSum| BASE64_STANDARD.encode(sum.bytes());
        Some(DigestState {
            batches: self.count,
            sum: text(sum),
            unknown_fields: self.unknown.as_ref().map(|unknown| UnknownState {
                batches: unknown.count,
                // Without such batches the sum is zero, whatever was added and removed before.
                sum: unknown
                    .sum
                    .as_deref()
                    .filter(|_| unknown.count > 0)
                    .map(text),
            }),
        })
    }

    /// Continues a digest over these columns; `None` if the state is not valid.
    pub(crate) fn resume(columns: &[usize], state: &DigestState) -> Option<Self> {
        let sum = |purpose, text: &str| {
            let bytes = BASE64_STANDARD.decode(text).ok()?;
            LatticeSum::resume(purpose, &bytes).map(Box::new)
        };
        let mut digest = Self::with_sum(columns, DigestSum::V2(sum(BATCH, &state.sum)?));
        digest.count = state.batches;
        if let Some(unknown) = &state.unknown_fields {
            let resumed = match &unknown.sum {
                Some(text) => Some(sum(UNKNOWN_FIELDS, text)?),
                None => None,
            };
            digest.unknown = Some(UnknownDigest {
                sum: resumed,
                count: unknown.batches,
            });
        }
        Some(digest)
    }

    /// Returns how many batches were added.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns how many batches have unknown fields.
    pub(crate) fn unknown_count(&self) -> u64 {
        self.unknown.as_ref().map_or(0, |unknown| unknown.count)
    }

    /// Returns the digest of everything that was added, in hexadecimal.
    pub(crate) fn finish(&self) -> String {
        match &self.sum {
            DigestSum::V1(sum) => hexadecimal(&sum.finish(&self.columns, self.count)),
            DigestSum::V2(sum) => {
                let mut hash = blake3::Hasher::new_derive_key(SET);
                for &column in &self.columns {
                    hash.update(COLUMNS[column].name.as_bytes());
                    hash.update(&[0]);
                }
                hash.update(&self.count.to_le_bytes());
                hash.update(&sum.bytes());
                hexadecimal(hash.finalize().as_bytes())
            }
        }
    }

    /// Returns the digest of the unknown fields; `None` if they are not digested.
    pub(crate) fn finish_unknown(&self) -> Option<String> {
        self.unknown.as_ref().map(UnknownDigest::finish)
    }
}

/// Returns the digest of unknown fields for a set in which no batch has any.
pub(crate) fn no_unknown_fields() -> String {
    UnknownDigest::default().finish()
}

impl UnknownDigest {
    fn add(&mut self, batch: &dyn Values, form: &mut Vec<u8>) -> u64 {
        if !encode_unknown(batch, form) {
            return 0;
        }
        self.count += 1;
        self.sum().add(form)
    }

    fn remove(&mut self, batch: &dyn Values, form: &mut Vec<u8>) {
        if encode_unknown(batch, form) {
            self.count = self.count.saturating_sub(1);
            self.sum().remove(form);
        }
    }

    fn sum(&mut self) -> &mut LatticeSum {
        let new = || Box::new(LatticeSum::new(UNKNOWN_FIELDS));
        self.sum.get_or_insert_with(new)
    }

    fn finish(&self) -> String {
        let mut hash = blake3::Hasher::new_derive_key(UNKNOWN_SET);
        hash.update(&self.count.to_le_bytes());
        match &self.sum {
            Some(sum) => hash.update(&sum.bytes()),
            None => hash.update(&[0; lattice::SIZE]),
        };
        hexadecimal(hash.finalize().as_bytes())
    }
}

/// Writes the canonical form of the unknown fields of a batch to `form`; returns false if it has none.
fn encode_unknown(batch: &dyn Values, form: &mut Vec<u8>) -> bool {
    let Some(fields) = batch.unknown_fields() else {
        return false;
    };
    form.clear();
    batch.encode(BATCH_ID, form);
    form.extend_from_slice(canonical_json(&fields).as_bytes());
    true
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::minimal as batch;

    fn all() -> Vec<usize> {
        (0..COLUMNS.len()).collect()
    }

    #[test]
    fn order_does_not_matter_and_duplicates_do() {
        for version in [1, 2] {
            let digest = |ids: &[&str]| {
                let mut digest = SetDigest::of_version(version, &all()).expect("a version");
                for id in ids {
                    digest.add(&batch(id, ""));
                }
                digest.finish()
            };
            assert_eq!(digest(&["a", "b", "c"]), digest(&["c", "a", "b"]));
            assert_ne!(digest(&["a", "b"]), digest(&["a", "b", "b"]));
            assert_ne!(digest(&["a", "a"]), digest(&["b", "b"]));
            assert_ne!(digest(&["a"]), digest(&["b"]));
            assert_eq!(digest(&[]).len(), 64);
        }
        assert!(SetDigest::of_version(3, &all()).is_none());
    }

    #[test]
    fn columns_are_part_of_the_digest() {
        let digest = |columns: &[usize]| {
            let mut digest = SetDigest::new(columns);
            digest.add(&batch("a", ""));
            digest.finish()
        };
        assert_eq!(digest(&[0, 1]), digest(&[1, 0]));
        assert_ne!(digest(&[0, 1]), digest(&[0, 2]));
        // Both are null.
        assert_ne!(digest(&[0, 15]), digest(&[0, 16]));
    }

    #[test]
    fn unknown_fields_have_a_digest_of_their_own() {
        let digests = |batches: &[Batch]| {
            let mut digest = SetDigest::new(&all()).with_unknown_fields(true);
            for batch in batches {
                digest.add(batch);
            }
            (digest.finish(), digest.finish_unknown())
        };
        let (plain, none) = digests(&[batch("a", ""), batch("b", "")]);
        assert_eq!(none, Some(no_unknown_fields()));
        let (same, some) = digests(&[batch("a", r#","x":1,"y":"\u0061""#), batch("b", "")]);
        assert_eq!(plain, same);
        assert_ne!(none, some);
        let turned = digests(&[batch("b", ""), batch("a", r#","y":"a","x":1.0"#)]);
        assert_eq!(turned.1, some);
        for other in [
            digests(&[batch("a", r#","x":1"#), batch("b", "")]),
            digests(&[batch("a", r#","x":"1","y":"a""#), batch("b", "")]),
            digests(&[batch("a", ""), batch("b", r#","x":1,"y":"a""#)]),
        ] {
            assert_eq!(other.0, plain);
            assert_ne!(other.1, some);
        }
        assert_eq!(SetDigest::new(&all()).finish_unknown(), None);
    }

    #[test]
    fn a_digest_that_is_continued_ends_as_one_of_the_same_batches() {
        let odd = r#","x":1"#;
        let digest = |batches: &[Batch]| {
            let mut digest = SetDigest::new(&all()).with_unknown_fields(true);
            for batch in batches {
                digest.add_kept(batch);
            }
            digest
        };
        let finished = |digest: &SetDigest| (digest.finish(), digest.finish_unknown());
        let state = digest(&[batch("a", odd), batch("b", ""), batch("c", odd)]).state();
        let state = serde_json::to_string(&state.expect("a state")).expect("JSON");
        let state: DigestState = serde_json::from_str(&state).expect("the same");
        let mut resumed = SetDigest::resume(&all(), &state).expect("a digest");
        resumed.remove_kept(&batch("a", odd));
        resumed.add_kept(&batch("a", ""));
        resumed.remove_kept(&batch("c", odd));
        let same = digest(&[batch("b", ""), batch("a", "")]);
        assert_eq!(finished(&resumed), finished(&same));
        // Digests of parts make up that of the whole.
        let mut merged = digest(&[]);
        for part in [
            &[batch("c", odd), batch("a", odd)][..],
            &[],
            &[batch("b", "")],
        ] {
            merged.merge(&digest(part));
        }
        let whole = digest(&[batch("a", odd), batch("b", ""), batch("c", odd)]);
        assert_eq!(finished(&merged), finished(&whole));
        assert_eq!((merged.count(), merged.unknown_count()), (3, 2));
        let broken = DigestState {
            sum: "AAAA".to_owned(),
            ..state
        };
        assert!(SetDigest::resume(&all(), &broken).is_none());
    }
}
