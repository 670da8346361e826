//! Which batches have been written: what makes "exactly once" certain.
//!
//! Sixteen bytes a batch: a keyed digest of its identifier and of its content. Two batches are taken
//! for one only if ten bytes of digest agree by chance, with a key that nobody knows beforehand.

use std::hash::{BuildHasher as _, RandomState};

use crate::batch::{Batch, COLUMNS};

/// Shards of a size that keeps inserting into the middle of one cheap, for millions of batches.
const SHARDS: usize = 4096;
/// Bits of a digest that are the identifier's; the others are the content's.
const CONTENT_BITS: u32 = 48;

/// What is known of a batch that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    New,
    /// It was here before, just the same.
    Again,
    /// It was here before, with other content.
    Changed,
}

pub(crate) struct Seen {
    keys: [RandomState; 3],
    /// Sorted digests.
    shards: Vec<Vec<u128>>,
}

impl Seen {
    pub(crate) fn new() -> Self {
        Self {
            keys: std::array::from_fn(|_| RandomState::new()),
            shards: vec![Vec::new(); SHARDS],
        }
    }

    /// Digests the fields of a batch, in whatever order they stand.
    fn content(&self, batch: &Batch) -> u128 {
        let known = (0..COLUMNS.len()).map(|column| (COLUMNS[column].name, batch.json(column)));
        let unknown = batch.unknown().map(|(name, value)| (name, Some(value)));
        let fields = known
            .chain(unknown)
            .map(|field| self.keys[2].hash_one(field));
        u128::from(fields.fold(0, u64::wrapping_add))
    }

    /// Notes that `batch` arrived, and tells whether it is new.
    pub(crate) fn note(&mut self, batch: &Batch) -> Arrival {
        let id = batch.id();
        let part = |key: usize, text: &str| u128::from(self.keys[key].hash_one(text));
        let id = (part(0, &id) << 64) | part(1, &id);
        let content = self.content(batch) >> (64 - CONTENT_BITS);
        let digest = (id >> CONTENT_BITS << CONTENT_BITS) | content;
        let number = usize::try_from(id >> 116).expect("twelve bits");
        let shard = &mut self.shards[number];
        let place = shard.partition_point(|other| other >> CONTENT_BITS < digest >> CONTENT_BITS);
        match shard.get(place) {
            Some(other) if *other == digest => Arrival::Again,
            Some(other) if other >> CONTENT_BITS == digest >> CONTENT_BITS => Arrival::Changed,
            _ => {
                if shard.len() == shard.capacity() {
                    // A little at a time: doubling would leave half of the memory empty.
                    shard.reserve_exact(shard.len() / 8 + 4);
                }
                shard.insert(place, digest);
                Arrival::New
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(fields: &str) -> Batch {
        let date = r#""batch_creation_date":"2026-05-01T06:00:00Z""#;
        let rest = r#""batch_name":"n","number_of_images":1,"warnings":true"#;
        Batch::read(&format!("{{{fields},{date},{rest}}}"))
            .batch
            .expect("a batch")
    }

    #[test]
    fn a_batch_is_new_once_and_known_by_its_content() {
        let mut seen = Seen::new();
        let first = batch(r#""batch_id":"a","comment":"x","more":1"#);
        assert_eq!(seen.note(&first), Arrival::New);
        assert_eq!(seen.note(&first), Arrival::Again);
        let turned = batch(r#""more":1,"comment":"x","batch_id":"a""#);
        assert_eq!(seen.note(&turned), Arrival::Again, "in another order");
        let changed = batch(r#""batch_id":"a","comment":"y","more":1"#);
        assert_eq!(seen.note(&changed), Arrival::Changed);
        assert_eq!(
            seen.note(&batch(r#""batch_id":"b","comment":"x","more":1"#)),
            Arrival::New
        );
    }

    #[test]
    fn thousands_are_told_apart() {
        let mut seen = Seen::new();
        let name = |number: u32| batch(&format!(r#""batch_id":"id-{number}""#));
        assert!((0..20_000).all(|number| seen.note(&name(number)) == Arrival::New));
        assert!((0..20_000).all(|number| seen.note(&name(number)) == Arrival::Again));
    }
}
