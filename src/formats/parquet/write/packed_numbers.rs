//! Numbers, most of them in two bytes.

use std::slice::Iter;

use bytes::Bytes;

use super::chunks::{ChunkPool, ChunkedBytes};

/// Stand for a null, and for a number in the next 8 bytes.
const NULL: u16 = u16::MAX;
const LONG: u16 = u16::MAX - 1;

/// Numbers by row, which may be null.
#[derive(Default)]
pub(super) struct PackedNumbers {
    bytes: ChunkedBytes,
    rows: usize,
}

impl PackedNumbers {
    pub(super) fn push(&mut self, number: Option<i64>, pool: &mut ChunkPool) {
        let short = number.map_or(NULL, |number| {
            u16::try_from(number).unwrap_or(LONG).min(LONG)
        });
        self.bytes.push(&short.to_le_bytes(), pool);
        if short == LONG
            && let Some(number) = number
        {
            self.bytes.push(&number.to_le_bytes(), pool);
        }
        self.rows += 1;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Option<i64>> {
        let mut chunks = self.bytes.chunks().iter();
        let mut rest: &[u8] = &[];
        (0..self.rows).map(
            move |_| match u16::from_le_bytes(next(&mut rest, &mut chunks)) {
                NULL => None,
                LONG => Some(i64::from_le_bytes(next(&mut rest, &mut chunks))),
                short => Some(short.into()),
            },
        )
    }

    pub(super) fn into_chunks(self) -> Vec<Bytes> {
        self.bytes.into_chunks()
    }
}

/// Returns the next piece, from the rest of a chunk or the chunk after it.
fn next<'a, const SIZE: usize>(rest: &mut &'a [u8], chunks: &mut Iter<'a, Vec<u8>>) -> [u8; SIZE] {
    if rest.len() < SIZE {
        *rest = chunks.next().map_or(&[], Vec::as_slice);
    }
    let (piece, after) = rest.split_first_chunk().expect("a piece of each row");
    *rest = after;
    *piece
}

#[cfg(test)]
mod tests {
    use super::super::chunks::CHUNK;
    use super::*;
    use proptest::prelude::*;

    /// Numbers of a random width, and nulls.
    fn numbers() -> impl Strategy<Value = Vec<Option<i64>>> {
        (0..64_u32).prop_flat_map(|unused| {
            let number = any::<i64>().prop_map(move |number| number >> unused);
            prop::collection::vec(prop::option::of(number), 1..8)
        })
    }

    fn packed(numbers: impl Iterator<Item = Option<i64>>) -> PackedNumbers {
        let (mut packed, mut pool) = (PackedNumbers::default(), ChunkPool::default());
        for number in numbers {
            packed.push(number, &mut pool);
        }
        packed
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn numbers_are_returned_in_order(few in numbers(), rows in 0..CHUNK) {
            let numbers = || few.iter().copied().cycle().take(rows);
            let packed = packed(numbers());
            prop_assert!(packed.iter().eq(numbers()));
        }
    }

    #[test]
    fn the_ends_of_ranges_are_exact() {
        let numbers = [i64::MIN, -1, 0, 65533, 65534, 65535, i64::MAX].map(Some);
        let packed = packed(numbers.into_iter());
        assert!(packed.iter().eq(numbers));
    }
}
