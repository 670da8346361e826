//! A repeatable random order. Each position is computed on its own, so that it needs no memory and any
//! page can be served alone.

use super::rng::mix;

/// A permutation of `0..len`, the same for the same seed and length.
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
    use crate::server::shuffle::Shuffle;

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
