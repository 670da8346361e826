//! Generates demo batches: realistic, with the difficult cases of real data, and the same for the same
//! seed. Read `plan.rs` and `record.rs` first; the other files are their tables.

// What is sown when.
mod plan;
mod season;

// One batch.
mod record;

// The crops and the comments.
mod crops;
mod remarks;

use super::catalog::Catalog;
use plan::Plan;

/// Generates `count` batches. They depend only on `seed`, `count` and `unknown_fields`.
pub(crate) fn generate(seed: u64, count: usize, unknown_fields: bool) -> Catalog {
    let plan = Plan::new(seed, count);
    Catalog::prepare(plan.created().to_vec(), |index, text| {
        record::write(&plan, index, unknown_fields, text);
    })
}

#[cfg(test)]
mod tests;
