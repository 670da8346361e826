//! Which batches have been written: what makes "exactly once" certain.
//!
//! Ten bytes a batch, thirteen with the room between them: part of a digest of its identifier, and
//! of its content; where it is kept says another eight bits. Two batches are taken for one only if 71
//! bits agree by chance, with a key that nobody knows beforehand: among ten million, once in forty
//! million runs.

use std::sync::LazyLock;

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

use crate::batch::Batch;

/// Shards, each of which grows on its own: so little memory is empty, and little is moved at a time.
const SHARD_BITS: u32 = 8;
/// Batches that are looked up together.
const BLOCK: usize = 256;
/// Batches in a bucket.
const PLACES: usize = 6;
/// From so many buckets on, a shard grows in small steps.
const LARGE: usize = 1024;

/// What is known of a batch that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    New,
    /// It was here before, just the same.
    Again,
    /// It was here before, with other content.
    Changed,
}

/// What tells a batch from others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest {
    shard: usize,
    known: Known,
}

/// What tells identifiers from one another.
pub(crate) type Id = (usize, [u16; 4]);

impl Digest {
    pub(crate) fn id(&self) -> Id {
        (self.shard, self.known.id)
    }

    pub(crate) fn of(batch: &Batch) -> Self {
        static KEY: LazyLock<u64> = LazyLock::new(|| fastrand::u64(..));
        let id = xxh3_128_with_seed(batch.id().as_bytes(), *KEY);
        let content = xxh3_64_with_seed(batch.canonical().as_bytes(), *KEY);
        Self {
            shard: usize::try_from(id >> (128 - SHARD_BITS)).expect("a few bits"),
            known: Known {
                // None is zero, which is an empty place.
                id: [low(id >> 48), low(id >> 32), low(id >> 16), low(id) | 1],
                content: low(content.into()),
            },
        }
    }
}

pub(crate) struct Seen {
    shards: Vec<Shard>,
}

impl Seen {
    pub(crate) fn new() -> Self {
        Self {
            shards: vec![Shard::default(); 1 << SHARD_BITS],
        }
    }

    /// Notes that batches arrived, and tells for each whether it is new.
    pub(crate) fn note(&mut self, digests: &[Digest]) -> Vec<Arrival> {
        let mut arrivals = Vec::with_capacity(digests.len());
        for block in digests.chunks(BLOCK) {
            // Memory that is asked for together comes sooner than one place after another.
            let glances = block
                .iter()
                .map(|digest| self.shards[digest.shard].glance(&digest.known));
            std::hint::black_box(glances.fold(0, u16::wrapping_add));
            for digest in block {
                arrivals.push(self.shards[digest.shard].note(digest.known));
            }
        }
        arrivals
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "these bits are wanted, and no others"
)]
fn low(digest: u128) -> u16 {
    digest as u16
}

/// A batch that was here, or an empty place.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    id: [u16; 4],
    content: u16,
}

/// As many as the processor fetches at once.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Bucket([Known; PLACES]);

/// Batches in the bucket that their identifier names, or the next that has room.
#[derive(Clone, Default)]
struct Shard {
    buckets: Vec<Bucket>,
    taken: usize,
}

impl Shard {
    fn note(&mut self, known: Known) -> Arrival {
        if self.taken * 8 >= self.buckets.len() * PLACES * 7 {
            self.grow();
        }
        let there = self.find(known.id);
        if there.id != known.id {
            *there = known;
            self.taken += 1;
            Arrival::New
        } else if there.content == known.content {
            Arrival::Again
        } else {
            Arrival::Changed
        }
    }

    /// Looks into the bucket that the identifier names, whatever is there.
    fn glance(&self, known: &Known) -> u16 {
        let bucket = self.buckets.get(self.named_by(known.id));
        bucket.map_or(0, |bucket| bucket.0[0].content)
    }

    fn named_by(&self, id: [u16; 4]) -> usize {
        let first = u64::from(id[0]) << 16 | u64::from(id[1]);
        let bucket = (first * self.buckets.len() as u64) >> 32;
        usize::try_from(bucket).expect("below the count")
    }

    /// Returns the place where `id` is, or is to be put.
    fn find(&mut self, id: [u16; 4]) -> &mut Known {
        let mut number = self.named_by(id);
        let place = loop {
            let bucket = &self.buckets[number].0;
            let place = bucket
                .iter()
                .position(|there| there.id == id || there.id == [0; 4]);
            if let Some(place) = place {
                break place;
            }
            number = if number + 1 == self.buckets.len() {
                0
            } else {
                number + 1
            };
        };
        &mut self.buckets[number].0[place]
    }

    /// Makes room; where there is much already, only a little at a time.
    #[cold]
    fn grow(&mut self) {
        let count = self.buckets.len();
        let count = count
            + if count < LARGE {
                count / 2 + 4
            } else {
                count / 8
            };
        let before = std::mem::replace(&mut self.buckets, vec![Bucket::default(); count]);
        let batches = before.iter().flat_map(|bucket| &bucket.0);
        for known in batches.filter(|known| known.id != [0; 4]) {
            *self.find(known.id) = *known;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn batch(fields: &str) -> Batch {
        let date = r#""batch_creation_date":"2026-05-01T06:00:00Z""#;
        let rest = r#""batch_name":"n","number_of_images":1,"warnings":true"#;
        Batch::read(&format!("{{{fields},{date},{rest}}}"))
            .batch
            .expect("a batch")
    }

    fn note(seen: &mut Seen, batch: &Batch) -> Arrival {
        seen.note(&[Digest::of(batch)])[0]
    }

    #[test]
    fn a_batch_is_new_once_and_known_by_its_content() {
        let mut seen = Seen::new();
        let first = batch(r#""batch_id":"a","comment":"x","more":1"#);
        assert_eq!(note(&mut seen, &first), Arrival::New);
        assert_eq!(note(&mut seen, &first), Arrival::Again);
        let turned = batch(r#""more":1,"comment":"x","batch_id":"a""#);
        assert_eq!(note(&mut seen, &turned), Arrival::Again, "in another order");
        let changed = batch(r#""batch_id":"a","comment":"y","more":1"#);
        assert_eq!(note(&mut seen, &changed), Arrival::Changed);
        assert_eq!(
            note(
                &mut seen,
                &batch(r#""batch_id":"b","comment":"x","more":1"#)
            ),
            Arrival::New
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Few shards and many of nearly the same digest, so that buckets overflow, also past the end.
        #[test]
        fn it_agrees_with_a_map(
            arrivals in prop::collection::vec((0_u16..5000, 0_u16..3), 1..20_000),
        ) {
            let mut seen = Seen::new();
            let mut map = HashMap::new();
            for block in arrivals.chunks(700) {
                let digests: Vec<Digest> = block.iter().map(|(id, content)| Digest {
                    shard: usize::from(id % 2),
                    known: Known { id: [u16::MAX, u16::MAX - id / 4 % 7, 1, id | 1 << 15], content: *content },
                }).collect();
                let expected: Vec<Arrival> = block.iter().map(|(id, content)| {
                    match map.insert(*id, *map.get(id).unwrap_or(content)) {
                        None => Arrival::New,
                        Some(first) if first == *content => Arrival::Again,
                        Some(_) => Arrival::Changed,
                    }
                }).collect();
                prop_assert_eq!(seen.note(&digests), expected);
            }
        }
    }

    #[test]
    fn thousands_are_told_apart() {
        let mut seen = Seen::new();
        let name = |number: u32| batch(&format!(r#""batch_id":"id-{number}""#));
        assert!((0..20_000).all(|number| note(&mut seen, &name(number)) == Arrival::New));
        assert!((0..20_000).all(|number| note(&mut seen, &name(number)) == Arrival::Again));
    }
}
