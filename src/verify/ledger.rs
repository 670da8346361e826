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
    batches: HashMap<u64, LedgerEntry, FixedState>,
    unmatched: u64,
}

/// The hash of the content of a batch, with flags in its lowest bits.
#[derive(Clone, Copy)]
struct LedgerEntry(u64);

/// The other side has it.
const FOUND: u64 = 1;
/// The file has it more than once.
const TWICE: u64 = 2;
/// The other side has it more than once.
const FOUND_TWICE: u64 = 4;
const FLAGS: u64 = FOUND | TWICE | FOUND_TWICE;

/// How often a batch has appeared on its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occurrence {
    Once,
    Twice,
    /// More than twice: it has been reported.
    More,
}

/// The result of looking up a batch of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    Same,
    Changed,
    Missing,
    /// The other side had it before, this often.
    Repeated(Occurrence),
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

    /// Adds a batch of the file.
    pub(super) fn add(&mut self, id: &str, content: u64) -> Occurrence {
        let key = self.key_of(id);
        match self.batches.entry(key) {
            Entry::Occupied(mut slot) => slot.get_mut().repeat(TWICE),
            Entry::Vacant(slot) => {
                slot.insert(LedgerEntry(content & !FLAGS));
                self.unmatched += 1;
                Occurrence::Once
            }
        }
    }

    /// Looks up a batch of the other side.
    pub(super) fn lookup(&mut self, id: &str, content: u64) -> Lookup {
        let key = self.key_of(id);
        match self.batches.entry(key) {
            Entry::Vacant(slot) => {
                slot.insert(LedgerEntry(content & !FLAGS | FOUND));
                Lookup::Missing
            }
            Entry::Occupied(mut slot) => {
                let entry = slot.get_mut();
                if entry.0 & FOUND != 0 {
                    return Lookup::Repeated(entry.repeat(FOUND_TWICE));
                }
                let same = entry.0 & !FLAGS == content & !FLAGS;
                entry.0 |= FOUND;
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
            Some(entry) if entry.0 & FOUND == 0 => {
                entry.0 |= FOUND;
                true
            }
            _ => false,
        }
    }
}

impl LedgerEntry {
    /// Sets `flag`, which marks a repeated batch.
    fn repeat(&mut self, flag: u64) -> Occurrence {
        if self.0 & flag != 0 {
            return Occurrence::More;
        }
        self.0 |= flag;
        Occurrence::Twice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_looked_up_once_and_compared_by_content() {
        let mut ledger = Ledger::new();
        assert_eq!(ledger.add("a", 16), Occurrence::Once);
        assert_eq!(ledger.add("b", 16), Occurrence::Once);
        assert_eq!(ledger.add("c", 0xf8), Occurrence::Once);
        assert_eq!(ledger.add("a", 8 << 8), Occurrence::Twice);
        assert_eq!(ledger.add("a", 16), Occurrence::More);
        assert_eq!(ledger.lookup("a", 16), Lookup::Same);
        assert_eq!(ledger.lookup("a", 16), Lookup::Repeated(Occurrence::Twice));
        assert_eq!(ledger.lookup("a", 16), Lookup::Repeated(Occurrence::More));
        assert_eq!(ledger.lookup("b", 8 << 8), Lookup::Changed);
        assert_eq!(ledger.lookup("x", 16), Lookup::Missing);
        assert_eq!(ledger.lookup("x", 16), Lookup::Repeated(Occurrence::Twice));
        assert_eq!(ledger.unmatched(), 1);
        assert!(!ledger.is_first_unmatched("a"));
        assert!(!ledger.is_first_unmatched("x"));
        assert!(ledger.is_first_unmatched("c"));
        assert!(!ledger.is_first_unmatched("c"), "already reported");
    }
}
