//! Which batches were seen where: sixteen bytes a batch, and the room of the map around them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The batches of a file, and which of them the other side has as well.
///
/// Identifiers are known by 64 bits of a hash with a key that nobody knows beforehand: among ten
/// million, two are taken for one once in four hundred thousand runs.
pub(crate) struct Ledger {
    key: u64,
    batches: HashMap<u64, Noted, BuildHasherDefault<AsItIs>>,
    unmet: u64,
}

/// The beginning of the hash of a batch, its last bits taken for what follows.
#[derive(Clone, Copy)]
struct Noted(u64);

/// The other side has it.
const MET: u64 = 1;
/// The file has it more than once.
const TWICE: u64 = 2;
/// The other side has it more than once.
const MET_TWICE: u64 = 4;
const FLAGS: u64 = MET | TWICE | MET_TWICE;

/// How often a batch was on its side so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    Once,
    Twice,
    /// As was told before.
    More,
}

/// What the file knows of a batch of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    Same,
    Changed,
    Nowhere,
    /// The other side had it before; so often.
    Again(Times),
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self {
            key: fastrand::u64(..),
            batches: HashMap::default(),
            unmet: 0,
        }
    }

    fn key_of(&self, id: &str) -> u64 {
        xxh3_64_with_seed(id.as_bytes(), self.key)
    }

    /// Adds a batch of the file.
    pub(super) fn add(&mut self, id: &str, content: u64) -> Times {
        let key = self.key_of(id);
        match self.batches.entry(key) {
            Entry::Occupied(mut place) => place.get_mut().again(TWICE),
            Entry::Vacant(place) => {
                place.insert(Noted(content & !FLAGS));
                self.unmet += 1;
                Times::Once
            }
        }
    }

    /// Looks up a batch of the other side.
    pub(super) fn lookup(&mut self, id: &str, content: u64) -> Met {
        let key = self.key_of(id);
        match self.batches.entry(key) {
            Entry::Vacant(place) => {
                place.insert(Noted(content & !FLAGS | MET));
                Met::Nowhere
            }
            Entry::Occupied(mut place) => {
                let noted = place.get_mut();
                if noted.0 & MET != 0 {
                    return Met::Again(noted.again(MET_TWICE));
                }
                let same = noted.0 & !FLAGS == content & !FLAGS;
                noted.0 |= MET;
                self.unmet -= 1;
                if same { Met::Same } else { Met::Changed }
            }
        }
    }

    /// Returns how many batches of the file the other side does not have.
    pub(super) fn unmet(&self) -> u64 {
        self.unmet
    }

    /// Tells, once, whether the other side does not have the batch `id` of the file.
    pub(super) fn is_first_unmet(&mut self, id: &str) -> bool {
        let key = self.key_of(id);
        match self.batches.get_mut(&key) {
            Some(noted) if noted.0 & MET == 0 => {
                noted.0 |= MET;
                true
            }
            _ => false,
        }
    }
}

impl Noted {
    /// Notes that it is there again, by `flag`.
    fn again(&mut self, flag: u64) -> Times {
        if self.0 & flag != 0 {
            return Times::More;
        }
        self.0 |= flag;
        Times::Twice
    }
}

/// Takes a key that is a hash already as it is.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_met_once_and_told_apart_by_their_content() {
        let mut ledger = Ledger::new();
        assert_eq!(ledger.add("a", 16), Times::Once);
        assert_eq!(ledger.add("b", 16), Times::Once);
        assert_eq!(ledger.add("c", 0xf8), Times::Once);
        assert_eq!(ledger.add("a", 8 << 8), Times::Twice);
        assert_eq!(ledger.add("a", 16), Times::More);
        assert_eq!(ledger.lookup("a", 16), Met::Same);
        assert_eq!(ledger.lookup("a", 16), Met::Again(Times::Twice));
        assert_eq!(ledger.lookup("a", 16), Met::Again(Times::More));
        assert_eq!(ledger.lookup("b", 8 << 8), Met::Changed);
        assert_eq!(ledger.lookup("x", 16), Met::Nowhere);
        assert_eq!(ledger.lookup("x", 16), Met::Again(Times::Twice));
        assert_eq!(ledger.unmet(), 1);
        assert!(!ledger.is_first_unmet("a"));
        assert!(!ledger.is_first_unmet("x"));
        assert!(ledger.is_first_unmet("c"));
        assert!(!ledger.is_first_unmet("c"), "it was told");
    }
}
