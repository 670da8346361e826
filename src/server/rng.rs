//! Repeatable randomness. Each draw depends on the seed and the request, never on the order of
//! requests, so that any number of workers gets the same faults. A random order needs no memory.

use std::collections::HashMap;

use parking_lot::Mutex;

/// Mixes two numbers into one that looks random (the finaliser of `SplitMix64`).
pub(super) fn mix(seed: u64, value: u64) -> u64 {
    let mut mixed = seed ^ value.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Mixes bytes into `seed`.
pub(super) fn mix_bytes(seed: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(mix(seed, bytes.len() as u64), |mixed, &byte| {
            mix(mixed, byte.into())
        })
}

/// The maximum number of counted requests. Beyond it the counts start again, to limit memory.
const MAX_COUNTED: usize = 1 << 20;

/// Returns a [`Draw`] for each request.
pub(super) struct RequestRng {
    seed: u64,
    /// How often each request was made before, so that each retry gets its own draw.
    counts: Mutex<HashMap<u64, u64>>,
}

impl RequestRng {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            counts: Mutex::default(),
        }
    }

    /// Returns the draw for the request with this `identity`.
    pub(super) fn draw(&self, identity: u64) -> Draw {
        let mut counts = self.counts.lock();
        if counts.len() >= MAX_COUNTED {
            counts.clear();
        }
        let count = counts.entry(identity).or_default();
        *count += 1;
        Draw(mix(mix(self.seed, identity), *count))
    }
}

/// The random numbers of one request.
#[derive(Clone, Copy)]
pub(super) struct Draw(u64);

impl Draw {
    /// Returns whether the event `name` happens, with `probability` from 0 to 1.
    pub(super) fn happens(self, name: &str, probability: f64) -> bool {
        happens(mix_bytes(self.0, name.as_bytes()), probability)
    }

    /// Returns a number below `bound`, which is not zero.
    pub(super) fn below(self, bound: u64) -> u64 {
        mix(self.0, bound) % bound
    }
}

/// Returns whether an event with `probability` happens, given a mixed number.
#[allow(
    clippy::cast_precision_loss,
    reason = "53 bits are kept, the precision of a float"
)]
pub(super) fn happens(mixed: u64, probability: f64) -> bool {
    ((mixed >> 11) as f64) < probability * (1_u64 << 53) as f64
}

/// A permutation of `0..len`, the same for the same seed and length. Each position is computed on its own, so that any
/// page can be served alone.
///
/// A Feistel network permutes the next power of four. A result past the end is permuted again until it
/// is in range, which keeps the mapping one-to-one.
pub(super) struct Shuffle {
    seed: u64,
    len: u64,
    half_bits: u32,
}

impl Shuffle {
    pub(super) fn new(seed: u64, len: usize) -> Self {
        let len = len as u64;
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        Self {
            seed: mix(seed, len),
            len,
            half_bits: bits.div_ceil(2).max(1),
        }
    }

    /// Returns the value at `position`, which must be below the length.
    pub(super) fn at(&self, position: usize) -> usize {
        let mut value = position as u64;
        loop {
            value = self.round_trip(value);
            if value < self.len {
                return usize::try_from(value).expect("below a length in memory");
            }
        }
    }

    fn round_trip(&self, value: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..4 {
            let scrambled = mix(self.seed.wrapping_add(round), right) & mask;
            (left, right) = (right, left ^ scrambled);
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_and_always_are_exact() {
        let draws = (0..1000).map(|number| mix(1, number));
        assert!(draws.clone().all(|mixed| happens(mixed, 1.0)));
        assert!(!draws.clone().any(|mixed| happens(mixed, 0.0)));
        let some = draws.filter(|&mixed| happens(mixed, 0.1)).count();
        assert!((50..150).contains(&some), "{some}");
    }

    #[test]
    fn a_request_and_its_retry_draw_apart_and_repeatably() {
        let draws = |seed| {
            let rng = RequestRng::new(seed);
            [rng.draw(5).0, rng.draw(6).0, rng.draw(5).0]
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
        assert_ne!(draws(1)[0], draws(1)[2]);
    }

    #[test]
    fn every_position_appears_exactly_once() {
        for len in [1, 2, 3, 4, 5, 250, 1000, 4097] {
            let shuffle = Shuffle::new(1, len);
            let mut all: Vec<usize> = (0..len).map(|position| shuffle.at(position)).collect();
            if len > 5 {
                assert!(!all.is_sorted());
            }
            all.sort_unstable();
            assert!(all.into_iter().eq(0..len), "{len}");
        }
    }

    #[test]
    fn the_seed_decides_the_order() {
        let order = |seed| {
            (0..100)
                .map(|position| Shuffle::new(seed, 100).at(position))
                .collect()
        };
        let orders: [Vec<usize>; 3] = [order(1), order(1), order(2)];
        assert_eq!(orders[0], orders[1]);
        assert_ne!(orders[0], orders[2]);
    }
}
