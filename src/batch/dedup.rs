//! Remembers which batches were received, so that each is exported exactly once.
//!
//! A batch takes twelve bytes, or about sixteen including free slots: parts of a digest of its id and of its
//! content; its shard adds another eight bits. Two batches are confused only if 71 bits agree by chance, under
//! a random key: among ten million batches, once in forty million runs. A change of content is missed once in
//! four billion cases.
//!
//! Each slot also has a mark of the walk that received the batch last, in bytes that would otherwise be
//! padding. So it costs no memory to know whether a page contains anything new for its walk.

use std::hash::Hasher as _;

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;
use xxhash_rust::xxh3::xxh3_128_with_secret;

use super::Batch;
use super::json::pieces::Pieces;

/// Shards grow independently, so that little memory is free and little is moved at a time.
const SHARD_BITS: u32 = 8;
/// Number of batches that are looked up together.
const BLOCK: usize = 256;
/// Number of batches in a bucket.
const SLOTS: usize = 5;
/// From this number of buckets on, a shard grows in small steps.
const LARGE: usize = 1024;
/// Bits of a walk's mark; zero means no walk.
const MARK_BITS: usize = 6;
const MARKS: u32 = (1 << MARK_BITS) - 1;

/// Whether a batch was received before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    New,
    /// Received before with the same content.
    Duplicate,
    /// Received before with other content.
    Conflict,
}

/// A digest that identifies a batch and its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Digest {
    shard: usize,
    known: DedupEntry,
}

/// Random keys. Only digests that were made with the same keys can be compared.
pub(crate) struct HashKeys {
    // A secret is faster than a seed, from which one would be made for each batch.
    id: [u8; 192],
    content: SharedSeed,
    /// Not zero: it makes the hash depend on the length of a text.
    seed: u64,
}

impl HashKeys {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        Self {
            id: std::array::from_fn(|_| random.u8(..)),
            content: SharedSeed::from_u64(random.u64(..)),
            seed: random.u64(1..),
        }
    }
}

/// The part of a digest that identifies the id.
pub(crate) type Id = (usize, [u16; 4]);

impl Digest {
    pub(crate) fn id(&self) -> Id {
        (self.shard, self.known.id)
    }

    pub(super) fn of(batch: &Batch, keys: &HashKeys, pieces: &mut Pieces) -> Self {
        let HashKeys { id, content, seed } = keys;
        let id = batch.id_hash(|text| xxh3_128_with_secret(text, id));
        let hash = |bytes: &[u8]| {
            let mut hasher = FoldHasher::with_seed(*seed, content);
            hasher.write(bytes);
            hasher.finish()
        };
        let content = batch.content_hash(hash, pieces);
        Self {
            shard: usize::try_from(id >> (128 - SHARD_BITS)).expect("a few bits"),
            known: DedupEntry {
                // Never zero, which marks a free slot.
                id: [low(id >> 48), low(id >> 32), low(id >> 16), low(id) | 1],
                content: [low((content >> 16).into()), low(content.into())],
            },
        }
    }
}

pub(crate) struct DedupSet {
    shards: Vec<Shard>,
    /// The mark of the current walk.
    mark: u32,
}

/// The result for batches that arrived together.
pub(crate) struct Arrivals {
    pub(crate) arrivals: Vec<Arrival>,
    /// Whether any of them is new to the current walk.
    pub(crate) is_progress: bool,
}

impl DedupSet {
    pub(crate) fn new() -> Self {
        Self {
            shards: vec![Shard::default(); 1 << SHARD_BITS],
            mark: 1,
        }
    }

    /// Starts another walk, which has received nothing yet.
    pub(crate) fn begin_walk(&mut self) {
        for bucket in self.shards.iter_mut().flat_map(|shard| &mut shard.buckets) {
            bucket.marks = 0;
        }
        self.mark = 1;
    }

    /// Starts the walk of the next window. This costs nothing, because marks are reused only after many
    /// windows: a batch lies in one window, or in two adjacent ones.
    pub(crate) fn begin_window(&mut self) {
        self.mark = self.mark % MARKS + 1;
    }

    /// Adds batches of the current walk; returns for each whether it is new.
    pub(crate) fn add(&mut self, digests: &[Digest]) -> Arrivals {
        let mut arrivals = Vec::with_capacity(digests.len());
        let mut is_progress = false;
        for block in digests.chunks(BLOCK) {
            // Prefetching several slots at once is faster than loading one after another.
            let prefetched = block
                .iter()
                .map(|digest| self.shards[digest.shard].prefetch(&digest.known));
            std::hint::black_box(prefetched.fold(0, u16::wrapping_add));
            for digest in block {
                let (arrival, mark) = self.shards[digest.shard].add(digest.known, self.mark);
                is_progress |= mark != self.mark;
                arrivals.push(arrival);
            }
        }
        Arrivals {
            arrivals,
            is_progress,
        }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "only these bits are used")]
fn low(digest: u128) -> u16 {
    digest as u16
}

/// A batch, or a free slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct DedupEntry {
    id: [u16; 4],
    content: [u16; 2],
}

/// One cache line.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct DedupBucket {
    slots: [DedupEntry; SLOTS],
    /// The marks of all slots, packed into bits.
    marks: u32,
}

impl DedupBucket {
    fn mark(&self, slot: usize) -> u32 {
        self.marks >> (slot * MARK_BITS) & MARKS
    }

    fn set_mark(&mut self, slot: usize, mark: u32) {
        let shift = slot * MARK_BITS;
        self.marks = self.marks & !(MARKS << shift) | mark << shift;
    }
}

/// Batches in the bucket given by their id, or in the next one with a free slot.
#[derive(Clone, Default)]
struct Shard {
    buckets: Vec<DedupBucket>,
    used: usize,
}

impl Shard {
    /// Adds a batch of the walk with this `mark`; returns its status and its previous mark.
    fn add(&mut self, known: DedupEntry, mark: u32) -> (Arrival, u32) {
        if self.used * 8 >= self.buckets.len() * SLOTS * 7 {
            self.grow();
        }
        let (bucket, slot) = self.find(known.id);
        let before = bucket.mark(slot);
        bucket.set_mark(slot, mark);
        let entry = &mut bucket.slots[slot];
        if entry.id != known.id {
            *entry = known;
            self.used += 1;
            (Arrival::New, before)
        } else if entry.content == known.content {
            (Arrival::Duplicate, before)
        } else {
            (Arrival::Conflict, before)
        }
    }

    /// Loads the bucket given by the id, whatever its content.
    fn prefetch(&self, known: &DedupEntry) -> u16 {
        let bucket = self.buckets.get(self.first_bucket(known.id));
        bucket.map_or(0, |bucket| bucket.slots[0].content[0])
    }

    fn first_bucket(&self, id: [u16; 4]) -> usize {
        let first = u64::from(id[0]) << 16 | u64::from(id[1]);
        let bucket = (first * self.buckets.len() as u64) >> 32;
        usize::try_from(bucket).expect("below the count")
    }

    /// Returns the slot of `id`, or the free slot for it.
    fn find(&mut self, id: [u16; 4]) -> (&mut DedupBucket, usize) {
        let mut number = self.first_bucket(id);
        let slot = loop {
            let slots = &self.buckets[number].slots;
            let slot = slots
                .iter()
                .position(|entry| entry.id == id || entry.id == [0; 4]);
            if let Some(slot) = slot {
                break slot;
            }
            number = if number + 1 == self.buckets.len() {
                0
            } else {
                number + 1
            };
        };
        (&mut self.buckets[number], slot)
    }

    /// Makes room; a large shard grows only a little at a time.
    #[cold]
    fn grow(&mut self) {
        let count = match self.buckets.len() {
            count if count < LARGE => count + count / 2 + 4,
            count => count + count / 8,
        };
        let before = std::mem::replace(&mut self.buckets, vec![DedupBucket::default(); count]);
        for bucket in &before {
            let used = bucket.slots.iter().enumerate();
            for (slot, known) in used.filter(|(_, known)| known.id != [0; 4]) {
                let (new, free) = self.find(known.id);
                new.slots[free] = *known;
                new.set_mark(free, bucket.mark(slot));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};

    fn digest(batch: &Batch) -> Digest {
        Digest::of(batch, &HashKeys::new(1), &mut Pieces::default())
    }

    fn batch(fields: &str) -> Batch {
        let date = r#""batch_creation_date":"2026-05-01T06:00:00Z""#;
        let rest = r#""batch_name":"n","number_of_images":1,"warnings":true"#;
        Batch::read(&format!("{{{fields},{date},{rest}}}"))
            .batch
            .expect("a batch")
    }

    fn add(seen: &mut DedupSet, batch: &Batch) -> Arrival {
        seen.add(&[digest(batch)]).arrivals[0]
    }

    #[test]
    fn a_batch_is_new_once_and_known_by_its_content() {
        let mut seen = DedupSet::new();
        let first = batch(r#""batch_id":"a","comment":"x","more":1"#);
        assert_eq!(add(&mut seen, &first), Arrival::New);
        assert_eq!(add(&mut seen, &first), Arrival::Duplicate);
        let turned = batch(r#""more":1,"comment":"x","batch_id":"a""#);
        assert_eq!(
            add(&mut seen, &turned),
            Arrival::Duplicate,
            "in another order"
        );
        let changed = batch(r#""batch_id":"a","comment":"y","more":1"#);
        assert_eq!(add(&mut seen, &changed), Arrival::Conflict);
        assert_eq!(
            add(
                &mut seen,
                &batch(r#""batch_id":"b","comment":"x","more":1"#)
            ),
            Arrival::New
        );
    }

    #[test]
    fn one_new_batch_among_others_is_progress() {
        let [first, second] =
            [r#""batch_id":"a""#, r#""batch_id":"b""#].map(|id| digest(&batch(id)));
        let mut seen = DedupSet::new();
        assert!(seen.add(&[first]).is_progress);
        assert!(seen.add(&[second, first]).is_progress);
        assert!(!seen.add(&[second, first]).is_progress);
    }

    #[test]
    fn no_digest_looks_like_a_free_slot() {
        for number in 0..32 {
            let digest = digest(&batch(&format!(r#""batch_id":"{number}""#)));
            assert_eq!(digest.id().1[3] & 1, 1);
        }
    }

    #[test]
    fn a_large_shard_grows_by_an_eighth() {
        for (count, grown) in [(0, 4), (LARGE - 24, 1504), (LARGE, LARGE + LARGE / 8)] {
            let buckets = vec![DedupBucket::default(); count];
            let mut shard = Shard { buckets, used: 0 };
            shard.grow();
            assert_eq!(shard.buckets.len(), grown);
        }
    }

    #[test]
    fn a_shard_grows_when_seven_eighths_are_used() {
        let mut shard = Shard::default();
        let counts: Vec<usize> = (1..=60)
            .map(|number| {
                let known = DedupEntry {
                    id: [number << 10, 0, 0, 1],
                    content: [0; 2],
                };
                assert_eq!(shard.add(known, 1), (Arrival::New, 0));
                shard.buckets.len()
            })
            .collect();
        // 18 of 20, 44 of 50, and the rest of 95 slots.
        let expected = [&[4; 18][..], &[10; 26], &[19; 16]].concat();
        assert_eq!((counts, shard.used), (expected, 60));
    }

    #[test]
    fn ids_are_told_apart_by_all_parts_of_their_digest() {
        let ids: Vec<Id> = (0..100)
            .map(|number| digest(&batch(&format!(r#""batch_id":"{number}""#))).id())
            .collect();
        let shards: HashSet<usize> = ids.iter().map(|(shard, _)| *shard).collect();
        assert!(shards.len() > 50, "{}", shards.len());
        for part in 0..4 {
            let different: HashSet<u16> = ids.iter().map(|(_, id)| id[part]).collect();
            assert!(different.len() > 90, "part {part}: {}", different.len());
        }
    }

    #[test]
    fn batches_are_spread_over_all_buckets() {
        let shard = Shard {
            buckets: vec![DedupBucket::default(); 1000],
            used: 0,
        };
        for (id, bucket) in [
            ([0, 0, 1, 1], 0),
            ([0x4000, 0, 1, 1], 250),
            ([0x8000, 0, 1, 1], 500),
            // A thousandth of 32 bits is not a whole number of 16 bits.
            ([65, 0x8937, 1, 1], 0),
            ([65, 0x8938, 1, 1], 1),
            ([u16::MAX; 4], 999),
        ] {
            assert_eq!(shard.first_bucket(id), bucket, "{id:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Few shards and many similar digests, so that buckets overflow, also past the end.
        #[test]
        fn it_agrees_with_a_map(
            seed: u64,
            count in 1_usize..8_000,
        ) {
            // A strategy for every one of them would take most of the time.
            let mut random = fastrand::Rng::with_seed(seed);
            let arrivals: Vec<(u16, u16)> =
                (0..count).map(|_| (random.u16(..2000), random.u16(..3))).collect();
            let mut seen = DedupSet::new();
            let mut map = HashMap::new();
            for block in arrivals.chunks(700) {
                let digests: Vec<Digest> = block.iter().map(|(id, content)| Digest {
                    shard: usize::from(id % 2),
                    known: DedupEntry { id: [u16::MAX, u16::MAX - id / 4 % 7, 1, id | 1 << 15], content: [0, *content] },
                }).collect();
                let expected: Vec<Arrival> = block.iter().map(|(id, content)| {
                    match map.insert(*id, *map.get(id).unwrap_or(content)) {
                        None => Arrival::New,
                        Some(first) if first == *content => Arrival::Duplicate,
                        Some(_) => Arrival::Conflict,
                    }
                }).collect();
                prop_assert_eq!(seen.add(&digests).arrivals, expected);
            }
        }
    }

    #[test]
    fn contents_are_told_apart_by_all_of_their_32_bits() {
        for bit in 0..32 {
            let half = 1_u16 << (bit % 16);
            let changed = if bit < 16 { [0, half] } else { [half, 0] };
            let digest = |content| Digest {
                shard: 0,
                known: DedupEntry {
                    id: [1; 4],
                    content,
                },
            };
            let mut seen = DedupSet::new();
            let arrivals = seen.add(&[digest([0, 0]), digest(changed)]).arrivals;
            assert_eq!(arrivals, [Arrival::New, Arrival::Conflict], "bit {bit}");
        }
        let contents = (0..10_000).map(|number| {
            let text = format!(r#""batch_id":"a","comment":"{number}""#);
            digest(&batch(&text)).known.content
        });
        let different: HashSet<[u16; 2]> = contents.collect();
        // With 16 bits, about 700 of them would collide.
        assert!(different.len() > 9_990, "{}", different.len());
    }

    #[test]
    fn texts_that_differ_only_in_their_length_are_told_apart() {
        for length in 0..200 {
            let more = length + 1;
            for [before, after] in [
                [length, more].map(|count| format!(r#""comment":"{}""#, "-".repeat(count))),
                [length, more].map(|count| format!(r#""more":1{}"#, "0".repeat(count))),
            ] {
                let [before, after] = [before, after]
                    .map(|field| digest(&batch(&format!(r#""batch_id":"a",{field}"#))));
                let mut seen = DedupSet::new();
                let arrivals = seen.add(&[before, after]).arrivals;
                assert_eq!(arrivals, [Arrival::New, Arrival::Conflict], "{length}");
            }
        }
    }

    #[test]
    fn a_walk_makes_progress_with_what_it_has_not_had() {
        let mut seen = DedupSet::new();
        let name = |number: u32| digest(&batch(&format!(r#""batch_id":"id-{number}""#)));
        let digests: Vec<Digest> = (0..5000).map(name).collect();
        let (first, second) = digests.split_at(2500);
        assert!(seen.add(first).is_progress);
        assert!(!seen.add(first).is_progress);
        assert!(seen.add(second).is_progress, "the marks survive growth");
        assert!(!seen.add(&digests).is_progress);
        for _ in 0..200 {
            seen.begin_window();
            assert!(seen.add(&first[..10]).is_progress);
            assert!(!seen.add(&first[..10]).is_progress);
        }
        seen.begin_walk();
        assert!(seen.add(&first[..10]).is_progress);
        assert!(seen.add(&digests[5..11]).is_progress);
        assert!(!seen.add(&digests[..11]).is_progress);
        assert!(!seen.add(&[]).is_progress);
    }

    #[test]
    fn a_bucket_is_no_larger_than_what_the_processor_fetches() {
        assert_eq!(size_of::<DedupBucket>(), 64);
    }

    #[test]
    fn thousands_are_told_apart() {
        let mut seen = DedupSet::new();
        let name = |number: u32| batch(&format!(r#""batch_id":"id-{number}""#));
        assert!((0..8_000).all(|number| add(&mut seen, &name(number)) == Arrival::New));
        assert!((0..8_000).all(|number| add(&mut seen, &name(number)) == Arrival::Duplicate));
    }
}
