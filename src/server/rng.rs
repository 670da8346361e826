//! Chance that repeats itself: each draw is computed from the seed and from what it is about, never
//! from the order of events, so that a run with many workers meets the same luck as one with few.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

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

/// Requests to remember; past that, counting starts anew rather than memory growing.
const REMEMBERED: usize = 1 << 20;

/// Deals a [`Draw`] to each request.
pub(super) struct RequestRng {
    seed: u64,
    /// How often each request was made before, so that a retry gets a draw of its own.
    seen: Mutex<HashMap<u64, u64>>,
}

impl RequestRng {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            seen: Mutex::default(),
        }
    }

    /// Returns the draw of a request, which `identity` tells from all others.
    pub(super) fn draw(&self, identity: u64) -> Draw {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= REMEMBERED {
            seen.clear();
        }
        let count = seen.entry(identity).or_default();
        *count += 1;
        Draw(mix(mix(self.seed, identity), *count))
    }
}

/// The luck of one request.
#[derive(Clone, Copy)]
pub(super) struct Draw(u64);

impl Draw {
    /// Tells whether what is called `name` happens, with `probability` from 0 to 1.
    pub(super) fn happens(self, name: &str, probability: f64) -> bool {
        happens(mix_bytes(self.0, name.as_bytes()), probability)
    }

    /// Returns a number below `bound`, which is not zero.
    pub(super) fn below(self, bound: u64) -> u64 {
        mix(self.0, bound) % bound
    }
}

/// Tells whether something with `probability` happens, given a mixed number.
#[allow(
    clippy::cast_precision_loss,
    reason = "53 bits are kept, as many as a float holds"
)]
pub(super) fn happens(mixed: u64, probability: f64) -> bool {
    ((mixed >> 11) as f64) < probability * (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_and_always_hold() {
        let draws = (0..1000).map(|number| mix(1, number));
        assert!(draws.clone().all(|mixed| happens(mixed, 1.0)));
        assert!(!draws.clone().any(|mixed| happens(mixed, 0.0)));
        let some = draws.filter(|&mixed| happens(mixed, 0.1)).count();
        assert!((50..150).contains(&some), "{some}");
    }

    #[test]
    fn a_request_and_its_retry_draw_apart_and_repeatably() {
        let luck = |seed| {
            let chance = RequestRng::new(seed);
            [chance.draw(5).0, chance.draw(6).0, chance.draw(5).0]
        };
        assert_eq!(luck(1), luck(1));
        assert_ne!(luck(1), luck(2));
        assert_ne!(luck(1)[0], luck(1)[2]);
    }
}
