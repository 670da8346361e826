//! LtHash: adds the hashes of elements in a lattice. The order of elements does not matter, and finding two
//! sets with the same sum is infeasible.
//!
//! Each element is hashed by BLAKE3 to 2048 bytes, taken as 1024 numbers of 16 bits, little endian; sums are
//! modulo 2^16, number by number. Finding two sets with the same sum means solving a short integer solution
//! problem in 1024 dimensions (Bellare and Micciancio 1997; Lewi, Kim, Maykov and Weis 2019 estimate at least
//! 200 bits of security for these sizes). The generalised birthday attack (Wagner 2002) that breaks sums
//! modulo 2^256 would need some 2^256 steps on 16384 bits.

const LANES: usize = 1024;
/// Bytes of a sum.
pub(super) const SIZE: usize = 2 * LANES;

pub(super) struct LatticeSum {
    hasher: blake3::Hasher,
    lanes: [u16; LANES],
}

impl LatticeSum {
    /// Starts a sum of elements, hashed with a key derived from `purpose`.
    pub(super) fn new(purpose: &str) -> Self {
        Self {
            hasher: blake3::Hasher::new_derive_key(purpose),
            lanes: [0; LANES],
        }
    }

    /// Continues a sum that [`Self::bytes`] returned; `None` if it has another size.
    pub(super) fn resume(purpose: &str, bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; SIZE] = bytes.try_into().ok()?;
        let mut sum = Self::new(purpose);
        let (numbers, _) = bytes.as_chunks();
        for (lane, number) in sum.lanes.iter_mut().zip(numbers) {
            *lane = u16::from_le_bytes(*number);
        }
        Some(sum)
    }

    /// Adds an element; returns the first bytes of its hash.
    pub(super) fn add(&mut self, element: &[u8]) -> u64 {
        self.combine(element, u16::wrapping_add)
    }

    /// Removes an element that was added; returns the first bytes of its hash.
    pub(super) fn remove(&mut self, element: &[u8]) -> u64 {
        self.combine(element, u16::wrapping_sub)
    }

    /// Adds the elements of another sum.
    pub(super) fn merge(&mut self, other: &Self) {
        for (lane, number) in self.lanes.iter_mut().zip(other.lanes) {
            *lane = lane.wrapping_add(number);
        }
    }

    fn combine(&mut self, element: &[u8], combine: impl Fn(u16, u16) -> u16) -> u64 {
        let mut hash = [0; SIZE];
        self.hasher.update(element);
        self.hasher.finalize_xof().fill(&mut hash);
        self.hasher.reset();
        let (numbers, _) = hash.as_chunks();
        for (lane, number) in self.lanes.iter_mut().zip(numbers) {
            *lane = combine(*lane, u16::from_le_bytes(*number));
        }
        hash.first_chunk()
            .map_or(0, |first| u64::from_le_bytes(*first))
    }

    pub(super) fn bytes(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        let (places, _) = bytes.as_chunks_mut();
        for (place, lane) in places.iter_mut().zip(self.lanes) {
            *place = lane.to_le_bytes();
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_depend_on_order_and_wrap() {
        let sum = |elements: &[&[u8]]| {
            let mut sum = LatticeSum::new("test");
            for element in elements {
                sum.add(element);
            }
            sum.bytes()
        };
        assert_eq!(sum(&[b"a", b"b", b"c"]), sum(&[b"c", b"a", b"b"]));
        assert_ne!(sum(&[b"ab", b"c"]), sum(&[b"a", b"bc"]));
        let one = sum(&[b"a"]);
        assert_ne!(one, [0; SIZE]);
        // Removing an element restores the sum, also after a round trip through bytes.
        let mut resumed = LatticeSum::resume("test", &sum(&[b"a", b"b"])).expect("a sum");
        resumed.remove(b"b");
        assert_eq!(resumed.bytes(), one);
        assert!(LatticeSum::resume("test", &[0; SIZE - 1]).is_none());
        // Each number is added 2^16 times, which is zero again.
        let mut many = LatticeSum::new("test");
        for _ in 0..1 << 16 {
            many.add(b"a");
        }
        assert_eq!(many.bytes(), [0; SIZE]);
    }
}
