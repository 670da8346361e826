//! Checks pages with DELTA encodings before the parquet crate decodes them: it trusts the number of values that
//! they declare, and texts with shared prefixes can be far larger than their page.

/// The largest block of numbers; writers use 128 or 2048.
const BLOCK: u64 = 1 << 16;

/// Checks numbers: at most `most` of them.
pub(super) fn check_numbers(bytes: &[u8], most: usize) -> Option<()> {
    Numbers::read(bytes, most).map(drop)
}

/// Checks texts that are preceded by their lengths.
pub(super) fn check_lengths(bytes: &[u8], most: usize) -> Option<()> {
    let (lengths, end) = Numbers::read(bytes, most)?.all()?;
    let total: u64 = lengths.iter().copied().map(u64::from).sum();
    (total <= bytes.len() as u64 - end as u64).then_some(())
}

/// Checks texts with shared prefixes, which may have `room` bytes in total.
pub(super) fn check_prefixes(bytes: &[u8], most: usize, room: u64) -> Option<()> {
    let (prefixes, end) = Numbers::read(bytes, most)?.all()?;
    let rest = &bytes[end..];
    let (suffixes, end) = Numbers::read(rest, most)?.all()?;
    if prefixes.len() != suffixes.len() {
        return None;
    }
    let (mut packed, mut unpacked) = (0, 0);
    for (prefix, suffix) in prefixes.into_iter().zip(suffixes) {
        packed += u64::from(suffix);
        unpacked += u64::from(prefix) + u64::from(suffix);
    }
    (packed <= rest.len() as u64 - end as u64 && unpacked <= room).then_some(())
}

/// Numbers that are stored as differences.
struct Numbers<'a> {
    bytes: &'a [u8],
    at: usize,
    block: u64,
    parts: u64,
    count: usize,
    first: i64,
}

impl<'a> Numbers<'a> {
    fn read(bytes: &'a [u8], most: usize) -> Option<Self> {
        let mut numbers = Self {
            bytes,
            at: 0,
            block: 0,
            parts: 0,
            count: 0,
            first: 0,
        };
        numbers.block = numbers.varint()?;
        numbers.parts = numbers.varint()?;
        numbers.count = usize::try_from(numbers.varint()?).ok()?;
        numbers.first = numbers.signed()?;
        let sizes = 1..=BLOCK;
        let is_whole = sizes.contains(&numbers.block)
            && sizes.contains(&numbers.parts)
            && numbers.block.is_multiple_of(numbers.parts)
            && (numbers.block / numbers.parts).is_multiple_of(8);
        (is_whole && numbers.count <= most).then_some(numbers)
    }

    /// Returns all numbers, which must not be negative, and the offset of their end.
    fn all(mut self) -> Option<(Vec<u32>, usize)> {
        let mut all = Vec::new();
        let mut last = self.first;
        if self.count > 0 {
            all.push(length(last)?);
        }
        let each = usize::try_from(self.block / self.parts).ok()?;
        while all.len() < self.count {
            let least = self.signed()?;
            let parts = usize::try_from(self.parts).ok()?;
            let widths = self.bytes.get(self.at..self.at + parts)?;
            self.at += parts;
            for &width in widths {
                // Parts that are not needed are absent.
                if all.len() == self.count {
                    break;
                }
                let width = usize::from(width);
                let bytes = self.bytes.get(self.at..self.at + each * width / 8)?;
                self.at += bytes.len();
                for place in 0..each.min(self.count - all.len()) {
                    let more = bits(bytes, place * width, width)?;
                    // In 32 bits, as in the crate.
                    last = last.wrapping_add(least).wrapping_add(more.cast_signed());
                    last = i64::from(i32::try_from(last).ok()?);
                    all.push(length(last)?);
                }
            }
        }
        Some((all, self.at))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.varint()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

fn length(number: i64) -> Option<u32> {
    u32::try_from(number).ok()
}

/// Reads `width` bits, the lowest first.
fn bits(bytes: &[u8], start: usize, width: usize) -> Option<u64> {
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
    const NUMBERS: [u8; 25] = {
        let mut bytes = [0; 25];
        let start = [0x80, 1, 4, 3, 10, 1, 2, 0, 0, 0, 0x03];
        let mut at = 0;
        while at < start.len() {
            bytes[at] = start[at];
            at += 1;
        }
        bytes
    };

    #[test]
    fn numbers_are_read_to_their_end() {
        let numbers = Numbers::read(&NUMBERS, 3).expect("numbers");
        assert_eq!(numbers.all(), Some((vec![5, 7, 6], 18)));
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
