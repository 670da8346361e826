//! Records which side has which batch, in 16 bytes per batch plus the overhead of the map.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::FixedState;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The batches of a file, and which of them the other side has as well.
///
/// Identifiers are represented by a 64-bit hash with a random key: among ten million, two collide once in
/// four hundred thousand runs.
pub(crate) struct Ledger {
    key: u64,
    /// The hash of the content of each batch, with flags in its lowest bits.
    batches: HashMap<u64, u64, FixedState>,
    unmatched: u64,
}

/// The other side has it.
const FOUND: u64 = 1;
/// The file has it more than once.
const TWICE: u64 = 2;
/// The other side has it more than once.
const FOUND_TWICE: u64 = 4;
const FLAGS: u64 = FOUND | TWICE | FOUND_TWICE;

/// The result of looking up a batch of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    Same,
    Changed,
    Missing,
    /// The other side had it before; whether exactly once.
    Repeated(bool),
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self {
            key: fastrand::u64(..),
            batches: HashMap::default(),
            unmatched: 0,
        }
    }

    fn key_of(&self, id: &str) -> u64 {
        xxh3_64_with_seed(id.as_bytes(), self.key)
    }

    /// Adds a batch of the file; returns whether this is the second one with its identifier.
    pub(super) fn add(&mut self, id: &str, content: u64) -> bool {
        let key = self.key_of(id);
        match self.batches.entry(key) {
            Entry::Occupied(mut slot) => is_second(slot.get_mut(), TWICE),
            Entry::Vacant(slot) => {
                slot.insert(content & !FLAGS);
                self.unmatched += 1;
                false
            }
        }
    }

    /// Looks up a batch of the other side.
    pub(super) fn lookup(&mut self, id: &str, content: u64) -> Lookup {
        let key = self.key_of(id);
        match self.batches.entry(key) {
            Entry::Vacant(slot) => {
                slot.insert(content & !FLAGS | FOUND);
                Lookup::Missing
            }
            Entry::Occupied(mut slot) => {
                let entry = slot.get_mut();
                if *entry & FOUND != 0 {
                    return Lookup::Repeated(is_second(entry, FOUND_TWICE));
                }
                let same = *entry & !FLAGS == content & !FLAGS;
                *entry |= FOUND;
                self.unmatched -= 1;
                if same { Lookup::Same } else { Lookup::Changed }
            }
        }
    }

    /// Returns how many batches of the file the other side does not have.
    pub(super) fn unmatched(&self) -> u64 {
        self.unmatched
    }

    /// Returns whether the other side lacks the batch `id` of the file; true only once for each.
    pub(super) fn is_first_unmatched(&mut self, id: &str) -> bool {
        let key = self.key_of(id);
        match self.batches.get_mut(&key) {
            Some(entry) if *entry & FOUND == 0 => {
                *entry |= FOUND;
                true
            }
            _ => false,
        }
    }
}

/// Sets `flag`, which marks a repeated batch; returns whether it was not set.
fn is_second(entry: &mut u64, flag: u64) -> bool {
    let is_second = *entry & flag == 0;
    *entry |= flag;
    is_second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_looked_up_once_and_compared_by_content() {
        let mut ledger = Ledger::new();
        let batches = [("a", 16), ("b", 16), ("c", 0xf8), ("a", 8 << 8), ("a", 16)];
        let added = batches.map(|(id, content)| ledger.add(id, content));
        assert_eq!(added, [false, false, false, true, false]);
        for (id, content, expected) in [
            ("a", 16, Lookup::Same),
            ("a", 16, Lookup::Repeated(true)),
            ("a", 16, Lookup::Repeated(false)),
            ("b", 8 << 8, Lookup::Changed),
            ("x", 16, Lookup::Missing),
            ("x", 16, Lookup::Repeated(true)),
        ] {
            assert_eq!(ledger.lookup(id, content), expected, "{id}");
        }
        assert_eq!(ledger.unmatched(), 1);
        assert!(!ledger.is_first_unmatched("a"));
        assert!(!ledger.is_first_unmatched("x"));
        assert!(ledger.is_first_unmatched("c"));
        assert!(!ledger.is_first_unmatched("c"), "already reported");
    }
}
