//! Checks the runs that levels and dictionary indexes consist of, before the parquet crate decodes them: it ignores
//! what is left of the last run, and does not miss what is not there. Other readers do.

use super::delta::bits;
use super::thrift::varint;

/// The number of values in a bit-packed group.
const GROUP: usize = 8;
/// The number of groups in a block of DuckDB, which fills the last one with zeros.
const BLOCK: usize = 32;

/// Checks that `bytes` are runs of exactly `count` numbers with `width` bits; returns how many of them are `wanted`.
fn check(mut bytes: &[u8], width: usize, count: usize, wanted: Option<u64>) -> Option<usize> {
    let (mut rest, mut found) = (count, 0);
    while rest > 0 {
        let before = bytes.len();
        let header = varint(&mut bytes).ok()?;
        let header = u32::try_from(header)
            .ok()
            .filter(|_| before - bytes.len() <= 5)?;
        let length = usize::try_from(header >> 1).ok().filter(|run| *run > 0)?;
        if header & 1 == 0 {
            rest = rest.checked_sub(length)?;
            let value = bytes.split_off(..width.div_ceil(8))?;
            let value = value
                .iter()
                .rev()
                .fold(0, |number, byte| number << 8 | u64::from(*byte));
            found += if Some(value) == wanted { length } else { 0 };
        } else {
            // Only the last group may have fewer numbers.
            let numbers = rest.min(length.checked_mul(GROUP)?);
            if numbers.div_ceil(GROUP) != length && length != BLOCK {
                return None;
            }
            rest -= numbers;
            let packed = bytes.split_off(..length.checked_mul(width)?)?;
            let is_wanted = |place: &usize| bits(packed, place * width, width) == wanted;
            if wanted.is_some() {
                found += (0..numbers).filter(is_wanted).count();
            }
        }
    }
    bytes.is_empty().then_some(found)
}

/// Checks `count` levels up to `highest`; returns how many are the highest, which are the values that are not null.
pub(super) fn check_levels(bytes: &[u8], highest: usize, count: usize) -> Option<usize> {
    let width = (usize::BITS - highest.leading_zeros()) as usize;
    check(bytes, width, count, Some(highest as u64))
}

/// Checks `count` dictionary indexes, which begin with their width.
pub(super) fn check_indexes(bytes: &[u8], count: usize) -> Option<()> {
    let (width, bytes) = bytes.split_first()?;
    let width = usize::from(*width);
    (width <= 32)
        .then(|| check(bytes, width, count, None))?
        .map(drop)
}

/// Checks `count` booleans, which begin with the length of their runs.
pub(super) fn check_booleans(bytes: &[u8], count: usize) -> Option<()> {
    let (runs, rest) = split_length(bytes)?;
    check(runs, 1, count, None)?;
    rest.is_empty().then_some(())
}

/// Splits off what is after a length of four bytes.
pub(super) fn split_length(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_exactly_the_values_of_the_page() {
        // Three times 1, then 1, 0 and 1 in a group of eight.
        let levels = [6, 1, 3, 0b101];
        assert_eq!(check_levels(&levels, 1, 6), Some(5));
        // The group may have up to seven values more, but not eight, and not fewer.
        assert_eq!(check_levels(&levels, 1, 4), Some(4));
        assert_eq!(check_levels(&levels, 1, 11), Some(5));
        assert_eq!(check_levels(&levels, 1, 3), None);
        assert_eq!(check_levels(&levels, 1, 12), None);
        for wrong in [
            &[8, 1, 3, 0b101][..],
            &[6, 1, 5, 0b101, 0],
            &[6, 1, 3, 0b101, 0],
            &[6, 1, 3],
            &[6],
            &[0, 1, 6, 1, 3, 0b101],
            &[6, 1, 1, 3, 0b101],
            &[0x86, 0x80, 0x80, 0x80, 0x10, 1, 3, 0b101],
        ] {
            assert_eq!(check_levels(wrong, 1, 4), None, "{wrong:?}");
        }
        assert_eq!(check_levels(&[], 1, 0), Some(0));
        // DuckDB fills its blocks.
        let mut block = [0; 33];
        block[..2].copy_from_slice(&[0x41, 0b101]);
        assert_eq!(check_levels(&block, 1, 9), Some(2));
        assert_eq!(check_levels(&block[..32], 1, 9), None);
    }

    #[test]
    fn levels_may_have_several_bits() {
        // 3, 0, 2, 3 in groups of two bits, then 3 twice.
        let levels = [3, 0b11_10_00_11, 0b1111_1111, 4, 3];
        assert_eq!(check_levels(&levels, 3, 10), Some(8));
        assert_eq!(check_levels(&levels, 2, 10), Some(1));
    }

    #[test]
    fn indexes_begin_with_their_width() {
        assert_eq!(check_indexes(&[3, 3, 0, 0, 0], 5), Some(()));
        assert_eq!(check_indexes(&[4, 3, 0, 0, 0], 5), None);
        assert_eq!(check_indexes(&[33, 10, 0, 0, 0, 0, 0], 5), None);
        assert_eq!(check_indexes(&[0, 10], 5), Some(()));
        assert_eq!(check_indexes(&[], 5), None);
    }

    #[test]
    fn booleans_begin_with_their_length() {
        assert_eq!(check_booleans(&[2, 0, 0, 0, 10, 1], 5), Some(()));
        assert_eq!(check_booleans(&[2, 0, 0, 0, 10, 1, 0], 5), None);
        assert_eq!(check_booleans(&[3, 0, 0, 0, 10, 1], 5), None);
    }
}
