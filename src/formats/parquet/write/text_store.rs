//! Texts in chunks, of which short ones that are repeated are stored once.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use foldhash::fast::FixedState;

use super::chunks::{ChunkPool, ChunkedBytes};

/// How many texts of which size are recognized when they are repeated. A column of more texts is taken for one of
/// distinct texts, and no longer searched.
const KNOWN_TEXTS: u8 = u8::MAX;
const KNOWN_SIZE: usize = 64;

/// Texts, one after the other. Each row has a code: the number of an earlier text among the first short ones, or
/// [`KNOWN_TEXTS`] and the size of the next text.
#[derive(Default)]
pub(super) struct TextStore {
    bytes: ChunkedBytes,
    /// The codes of the first short texts.
    known: HashMap<Box<[u8]>, i64, FixedState>,
}

/// The place of a text.
#[derive(Clone, Copy, Default)]
pub(super) struct TextSpan {
    pub(super) chunk: u32,
    start: u32,
    end: u32,
}

impl TextSpan {
    pub(super) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl TextStore {
    /// Adds a text, unless it is recognized; returns its code.
    pub(super) fn add(&mut self, text: &[u8], pool: &mut ChunkPool) -> i64 {
        if self.known.len() < KNOWN_TEXTS.into() && text.len() <= KNOWN_SIZE {
            if let Some(code) = self.known.get(text) {
                return *code;
            }
            self.known.insert(text.into(), code(self.known.len()));
        }
        self.bytes.push(text, pool);
        code(usize::from(KNOWN_TEXTS) + text.len())
    }

    /// Returns the places of the texts with these codes, which must be those of all rows.
    pub(super) fn spans(
        &self,
        codes: impl Iterator<Item = Option<i64>>,
    ) -> impl Iterator<Item = Option<TextSpan>> {
        let (mut known, mut last) = (Vec::with_capacity(KNOWN_TEXTS.into()), TextSpan::default());
        codes.map(move |code| {
            let code = u32::try_from(code?).expect("the code of a text");
            let Some(size) = code.checked_sub(KNOWN_TEXTS.into()) else {
                return Some(known[code as usize]);
            };
            last.start = last.end;
            if self.bytes.chunks()[last.chunk as usize].len() < (last.start + size) as usize {
                last.chunk += 1;
                last.start = 0;
            }
            last.end = last.start + size;
            if size as usize <= KNOWN_SIZE && known.len() < KNOWN_TEXTS.into() {
                known.push(last);
            }
            Some(last)
        })
    }

    pub(super) fn text(&self, span: TextSpan) -> &[u8] {
        &self.bytes.chunks()[span.chunk as usize][span.range()]
    }

    pub(super) fn into_chunks(self) -> Vec<Bytes> {
        self.bytes.into_chunks()
    }
}

/// Converts a number that is far less than the bytes of a group.
fn code(number: usize) -> i64 {
    i64::try_from(number).expect("a group that is not full")
}

#[cfg(test)]
mod tests {
    use super::super::chunks::CHUNK;
    use super::*;
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = String> {
        let length = prop_oneof![
            0..100_usize,
            CHUNK / 2 - 1..CHUNK / 2 + 2,
            CHUNK - 2..CHUNK + 2,
            Just(3 * CHUNK)
        ];
        (length, "[aü]{0,3}").prop_map(|(length, end)| "a".repeat(length) + &end)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn texts_are_returned_as_added(
            few in prop::collection::vec(prop::option::of(text()), 1..20),
            rows in 0..50_usize,
            others in 0..2 * usize::from(KNOWN_TEXTS),
        ) {
            let others = (0..others).map(|number| Some(number.to_string()));
            let few = || few.iter().cycle().take(rows).cloned();
            let texts: Vec<Option<String>> = few().chain(others).chain(few()).collect();
            let (mut store, mut pool) = (TextStore::default(), ChunkPool::default());
            let add = |text: &Option<String>| Some(store.add(text.as_ref()?.as_bytes(), &mut pool));
            let codes: Vec<Option<i64>> = texts.iter().map(add).collect();
            let spans = store.spans(codes.into_iter());
            let found = spans.map(|span| span.map(|span| store.text(span)));
            prop_assert!(found.eq(texts.iter().map(|text| text.as_ref().map(String::as_bytes))));
        }
    }

    #[test]
    fn repeated_texts_are_stored_once_if_they_are_short_and_few() {
        let (mut store, mut pool) = (TextStore::default(), ChunkPool::default());
        let mut is_stored_once = |text: &str| {
            store.add(text.as_bytes(), &mut pool);
            store.add(text.as_bytes(), &mut pool) < KNOWN_TEXTS.into()
        };
        assert!(is_stored_once("Tomato"));
        assert!(is_stored_once(""));
        assert!(!is_stored_once(&"x".repeat(KNOWN_SIZE + 1)));
        for number in 3..KNOWN_TEXTS {
            assert!(is_stored_once(&number.to_string()));
        }
        assert!(is_stored_once("Tomato"));
        store.add(b"one more", &mut pool);
        assert!(store.add(b"Tomato", &mut pool) >= KNOWN_TEXTS.into());
    }
}
