//! The layout of an object: what is between its values. Most objects of a response have the same layout, so an
//! object is compared with the one before, which is faster than to look up each name.

use super::pieces::{BLOCK, Pieces};

/// Maximum length of a layout in bytes. Longer ones have unusual names or much whitespace.
const MAX_LENGTH: usize = 8 << 10;
/// Bytes that are compared at once: a name with quotes, colon and indentation.
const COMPARED: usize = 48;

/// The layout of an object.
#[derive(Default)]
pub(super) struct ObjectLayout {
    pub(super) fields: Vec<FieldLayout>,
    /// What is after the last value, as received. Empty until then.
    pub(super) closing: Vec<u8>,
    /// The columns, one bit each, and whether they are in the order of the interface.
    pub(super) columns: u32,
    pub(super) is_ordered: bool,
    /// Whether there is whitespace between tokens.
    pub(super) has_blanks: bool,
    /// How many of the first fields are as in the documented spelling.
    pub(super) usual: usize,
    length: usize,
}

/// A field: what is before its value.
pub(super) struct FieldLayout {
    /// The column; `None` if the name is unknown.
    pub(super) column: Option<u8>,
    /// The length as received, and without whitespace.
    pub(super) length: usize,
    pub(super) compact_length: usize,
    /// The first bytes as received, and which of them belong to it.
    first: [u8; COMPARED],
    mask: [u8; COMPARED],
    /// The first bytes without whitespace.
    compact: [u8; BLOCK],
    /// All bytes, as received and without whitespace, if there are more.
    long: Option<Box<[Vec<u8>; 2]>>,
}

impl ObjectLayout {
    pub(super) fn clear(&mut self) {
        self.fields.clear();
        self.closing.clear();
        (self.columns, self.usual, self.length) = (0, 0, 0);
        (self.is_ordered, self.has_blanks) = (true, false);
    }

    /// Adds a field: what is before its value as received, and its name in quotes.
    pub(super) fn push(&mut self, column: Option<u8>, received: &[u8], name: &[u8]) {
        self.length += received.len();
        if self.length > MAX_LENGTH {
            return;
        }
        let field = FieldLayout::new(column, received, name, self.fields.is_empty());
        self.has_blanks |= field.length > field.compact_length;
        if let Some(column) = column {
            let is_next = self.columns == (1 << column) - 1;
            let is_usual = is_next && !self.has_blanks && self.usual == self.fields.len();
            self.usual += usize::from(is_usual);
            self.is_ordered &= is_next;
            self.columns |= 1 << column;
        }
        self.fields.push(field);
    }

    /// Ends the layout with what is after the last value.
    pub(super) fn finish(&mut self, closing: &[u8]) {
        if self.length + closing.len() > MAX_LENGTH {
            self.clear();
            return;
        }
        self.has_blanks |= closing.len() > 1;
        self.closing.extend_from_slice(closing);
    }

    /// Returns whether there is a layout.
    pub(super) fn is_complete(&self) -> bool {
        !self.closing.is_empty()
    }
}

impl FieldLayout {
    fn new(column: Option<u8>, received: &[u8], name: &[u8], is_first: bool) -> Self {
        fn first_bytes<const LENGTH: usize>(source: impl Iterator<Item = u8>) -> [u8; LENGTH] {
            let mut bytes = [0; LENGTH];
            bytes
                .iter_mut()
                .zip(source)
                .for_each(|(to, byte)| *to = byte);
            bytes
        }
        let compact: [&[u8]; 3] = [if is_first { b"{" } else { b"," }, name, b":"];
        let compact_length = name.len() + 2;
        let is_long = received.len() > COMPARED || compact_length > BLOCK;
        Self {
            column,
            length: received.len(),
            compact_length,
            first: first_bytes(received.iter().copied()),
            mask: first_bytes(received.iter().map(|_| u8::MAX)),
            compact: first_bytes(compact.into_iter().flatten().copied()),
            long: is_long.then(|| Box::new([received.to_vec(), compact.concat()])),
        }
    }

    /// Returns whether `text` begins with it.
    #[allow(clippy::inline_always, reason = "there is one call per field")]
    #[inline(always)]
    pub(super) fn begins(&self, text: &[u8]) -> bool {
        let Some(block) = text.first_chunk::<COMPARED>() else {
            return self.begins_short(text);
        };
        // The compiler compares all of these bytes at once.
        let bytes = block.iter().zip(&self.first).zip(&self.mask);
        let difference = bytes.fold(0, |all, ((a, b), mask)| all | (a ^ b) & mask);
        let is_long = || self.long.as_ref();
        difference == 0 && is_long().is_none_or(|long| text.starts_with(&long[0]))
    }

    #[inline(never)]
    fn begins_short(&self, text: &[u8]) -> bool {
        self.length < COMPARED && text.starts_with(&self.first[..self.length])
    }

    /// Appends it without whitespace.
    #[allow(clippy::inline_always, reason = "there is one call per field")]
    #[inline(always)]
    pub(super) fn push_compact(&self, pieces: &mut Pieces) {
        match &self.long {
            None => pieces.push(&self.compact, self.compact_length),
            Some(long) => pieces.push(&long[1], self.compact_length),
        }
    }
}
