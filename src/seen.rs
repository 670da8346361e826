//! Which batches have been written: what makes "exactly once" certain.
//!
//! Twelve bytes a batch: part of a digest of its identifier, and of its content; where it is kept says
//! another fourteen bits. Two batches are taken for one only if 78 bits agree by chance, with a key
//! that nobody knows beforehand: among ten million, once in a billion runs.

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

use crate::batch::Batch;

/// Shards of a size that keeps inserting into the middle of one cheap, for millions of batches.
const SHARD_BITS: u32 = 14;

/// What is known of a batch that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    New,
    /// It was here before, just the same.
    Again,
    /// It was here before, with other content.
    Changed,
}

/// A batch that was here.
#[derive(Clone, Copy)]
struct Known {
    /// Half a digest of the identifier each.
    id: [u32; 2],
    content: u32,
}

pub(crate) struct Seen {
    key: u64,
    /// Each sorted by identifier.
    shards: Vec<Vec<Known>>,
}

impl Seen {
    pub(crate) fn new() -> Self {
        Self {
            key: fastrand::u64(..),
            shards: vec![Vec::new(); 1 << SHARD_BITS],
        }
    }

    /// Notes that `batch` arrived, and tells whether it is new.
    pub(crate) fn note(&mut self, batch: &Batch) -> Arrival {
        let id = xxh3_128_with_seed(batch.id().as_bytes(), self.key);
        let shard = usize::try_from(id >> (128 - SHARD_BITS)).expect("a few bits");
        let known = Known {
            id: [low(id >> 32), low(id)],
            content: low(xxh3_64_with_seed(batch.canonical().as_bytes(), self.key).into()),
        };
        let shard = &mut self.shards[shard];
        match shard.binary_search_by_key(&known.id, |other| other.id) {
            Ok(place) if shard[place].content == known.content => Arrival::Again,
            Ok(_) => Arrival::Changed,
            Err(place) => {
                if shard.len() == shard.capacity() {
                    // A little at a time: doubling would leave half of the memory empty.
                    shard.reserve_exact(shard.len() / 8 + 4);
                }
                shard.insert(place, known);
                Arrival::New
            }
        }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "these bits are wanted, and no others"
)]
fn low(digest: u128) -> u32 {
    digest as u32
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
