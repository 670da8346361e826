//! Generates demo batches: realistic, with the difficult cases of real data, and the same for the same
//! seed. Read `record.rs` first; the other files are its tables.

// The creation dates.
mod season;

// One batch.
mod record;

// The crops and the comments.
mod crops;
mod remarks;

use super::catalog::Catalog;

/// Generates `count` batches. They depend only on `seed`, `count` and `unknown_fields`.
pub(crate) fn generate(seed: u64, count: usize, unknown_fields: bool) -> Catalog {
    let created = season::moments(seed, count);
    Catalog::prepare(created.clone(), |index, text| {
        record::write(seed, index, created[index], unknown_fields, text);
    })
}
