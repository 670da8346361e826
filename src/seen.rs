//! Which batches have been written: what makes "exactly once" certain.
//!
//! Sixteen bytes a batch: a keyed digest of its identifier and of its content. Two batches are taken
//! for one only if ten bytes of digest agree by chance, with a key that nobody knows beforehand.

use std::hash::{BuildHasher as _, RandomState};

use crate::batch::Batch;

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

    /// Notes that `batch` arrived, and tells whether it is new.
    pub(crate) fn note(&mut self, batch: &Batch) -> Arrival {
        let id = batch.id();
        let part = |key: usize, text: &str| u128::from(self.keys[key].hash_one(text));
        let id = (part(0, &id) << 64) | part(1, &id);
        let content = part(2, batch.text()) >> (64 - CONTENT_BITS);
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
