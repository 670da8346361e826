//! The sizes of the parts that an object is sent in.

/// Most stores take no smaller ones, but for the last.
pub(super) const SMALLEST: usize = 8 << 20;
/// So many are of one size, as some stores want all: 40 GB.
const ALIKE: usize = 5000;
/// Then the size doubles after so many.
const STEP: usize = 500;
/// Stores take none larger.
const LARGEST: usize = 4 << 30;

/// Returns the size of the part numbered `part`. S3 takes 10,000 of them, and with these sizes so many
/// hold more than the 5 TB that an object may have.
pub(super) fn size(part: usize) -> usize {
    let doublings = match part.checked_sub(ALIKE) {
        Some(beyond) => beyond / STEP + 1,
        None => 0,
    };
    let doublings = u32::try_from(doublings).unwrap_or(u32::MAX);
    SMALLEST
        .checked_shl(doublings.min(20))
        .unwrap_or(LARGEST)
        .min(LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_parts_hold_all_that_an_object_may() {
        let all: u64 = (0..10_000).map(|part| size(part) as u64).sum();
        assert!(all > 5 << 40, "{all}");
        assert!((0..10_000).all(|part| size(part) <= size(part + 1)));
        assert_eq!(
            (size(0), size(4999), size(5000)),
            (SMALLEST, SMALLEST, 2 * SMALLEST)
        );
        assert_eq!(size(usize::MAX), LARGEST);
    }
}
