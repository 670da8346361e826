//! Checks pages with DELTA encodings before the parquet crate decodes them: it trusts the number of values that
//! they declare, and texts with shared prefixes can be far larger than their page.

use super::thrift::{signed, varint};

/// The largest block of numbers; writers use 128 or 2048.
const BLOCK: usize = 1 << 16;
/// The most lengths in a page. Equal ones need no bytes, so the size of the page does not limit them.
const LENGTHS: usize = 4 << 20;

/// Checks the header of numbers that are stored as differences: at most `most` of them.
pub(super) fn check_numbers(mut bytes: &[u8], most: usize) -> Option<()> {
    header(&mut bytes, most).map(drop)
}

/// Checks texts that are preceded by their lengths.
pub(super) fn check_lengths(mut bytes: &[u8], most: usize) -> Option<()> {
    let lengths = numbers(&mut bytes, most)?;
    let total: u64 = lengths.iter().copied().map(u64::from).sum();
    (total <= bytes.len() as u64).then_some(())
}

/// Checks texts with shared prefixes, which may have `room` bytes in total.
pub(super) fn check_prefixes(mut bytes: &[u8], most: usize, room: u64) -> Option<()> {
    let prefixes = numbers(&mut bytes, most)?;
    let suffixes = numbers(&mut bytes, most)?;
    let [prefixed, packed] =
        [&prefixes, &suffixes].map(|lengths| lengths.iter().copied().map(u64::from).sum::<u64>());
    let is_sound = prefixes.len() == suffixes.len()
        && packed <= bytes.len() as u64
        && prefixed + packed <= room;
    is_sound.then_some(())
}

/// Reads the size of a block, the number of its parts, the number of values, and the first of them.
fn header(bytes: &mut &[u8], most: usize) -> Option<(usize, usize, usize, i64)> {
    let mut size = || usize::try_from(varint(&mut *bytes).ok()?).ok();
    let (block, parts, count) = (size()?, size()?, size()?);
    let first = signed(bytes).ok()?;
    let sizes = 1..=BLOCK;
    let is_whole = sizes.contains(&block)
        && sizes.contains(&parts)
        && block.is_multiple_of(parts)
        && (block / parts).is_multiple_of(8);
    (is_whole && count <= most).then_some((block, parts, count, first))
}

/// Reads numbers that are stored as differences, none of them negative; `bytes` then starts after them.
fn numbers(bytes: &mut &[u8], most: usize) -> Option<Vec<u32>> {
    let (block, parts, count, mut last) = header(bytes, most.min(LENGTHS))?;
    let mut all = Vec::new();
    if count > 0 {
        all.push(u32::try_from(last).ok()?);
    }
    let each = block / parts;
    while all.len() < count {
        let least = signed(&mut *bytes).ok()?;
        for &width in bytes.split_off(..parts)? {
            // Parts that are not needed are absent.
            if all.len() == count {
                break;
            }
            let width = usize::from(width);
            let packed = bytes.split_off(..each * width / 8)?;
            for place in 0..each.min(count - all.len()) {
                let more = bits(packed, place * width, width)?;
                // In 32 bits, as in the crate.
                last = last.wrapping_add(least).wrapping_add(more.cast_signed());
                last = i64::from(i32::try_from(last).ok()?);
                all.push(u32::try_from(last).ok()?);
            }
        }
    }
    Some(all)
}

/// Reads `width` bits, the lowest first.
pub(super) fn bits(bytes: &[u8], start: usize, width: usize) -> Option<u64> {
    if width > 64 {
        return None;
    }
    let mut number = 0;
    for bit in 0..width {
        let at = start + bit;
        let byte = *bytes.get(at / 8)?;
        number |= u64::from(byte >> (at % 8) & 1) << bit;
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers 5, 7 and 6 in one block of 128: 32 to a part, differences 2 and -1.
    #[rustfmt::skip]
    const NUMBERS: [u8; 25] = [
        0x80, 1, 4, 3, 10, 1, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    #[test]
    fn numbers_are_read_to_their_end() {
        let mut bytes = &NUMBERS[..];
        assert_eq!(numbers(&mut bytes, 3), Some(vec![5, 7, 6]));
        assert_eq!(bytes.len(), NUMBERS.len() - 18);
    }

    #[test]
    fn lengths_past_the_page_are_refused() {
        // The lengths add up to 18 bytes of text, but only 7 follow.
        assert_eq!(check_lengths(&NUMBERS, 3), None);
        let mut whole = NUMBERS.to_vec();
        whole.extend([b'a'; 11]);
        assert_eq!(check_lengths(&whole, 3), Some(()));
        assert_eq!(check_lengths(&whole, 2), None);
        assert_eq!(check_numbers(&NUMBERS, 2), None);
        let endless = [0x80, 1, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 0];
        assert_eq!(check_numbers(&endless, 1 << 20), None);
        // 2^23 equal lengths need few bytes.
        let equal = [vec![0x80, 1, 4, 0x80, 0x80, 0x80, 4, 0], vec![0; 400_000]].concat();
        assert_eq!(check_lengths(&equal, usize::MAX), None);
        let blocks = [0xff, 0xff, 0xff, 0xff, 0x0f, 1, 3, 10];
        assert_eq!(check_numbers(&blocks, 3), None);
    }

    #[test]
    fn texts_with_shared_prefixes_are_limited() {
        // Three texts with prefixes of 5, 7 and 6 bytes, and suffixes of the same lengths.
        let mut bytes = NUMBERS[..18].to_vec();
        bytes.extend(&NUMBERS[..18]);
        bytes.extend([b'a'; 18]);
        assert_eq!(check_prefixes(&bytes, 3, 36), Some(()));
        assert_eq!(check_prefixes(&bytes, 3, 35), None);
        assert_eq!(check_prefixes(&bytes[..53], 3, 36), None);
    }
}
