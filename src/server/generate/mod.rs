//! Made-up batches: believable, awkward where real ones are, and the same for the same seed.

// What is grown: how it germinates, how large it is, when it is sown.
mod crops;

// What people write beside a scan.
mod remarks;

// One batch, from its place in the sequence.
mod record;

// When scans happen.
mod season;

use super::catalog::Catalog;

/// Makes up `count` batches. They depend on `seed`, `count` and `unknown_fields` alone.
pub(crate) fn generate(seed: u64, count: usize, unknown_fields: bool) -> Catalog {
    let created = season::moments(seed, count);
    Catalog::prepare(created.clone(), |index, text| {
        record::write(seed, index, created[index], unknown_fields, text);
    })
}
