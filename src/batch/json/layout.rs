//! The layout of an object: what is between its values. Most objects of a response have the same layout, so an
//! object is compared with the one before, which is faster than to look up each name.

use wide::u8x16;

use super::pieces::{BLOCK, Pieces};
use crate::batch::ALL_COLUMNS;

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
    /// The first bytes as received.
    first: ComparedBytes,
    /// If the name is unknown: the same with a value and the byte after it, and the length without that byte. Many
    /// such values repeat from batch to batch. `None` if they are too long, or contain whitespace between tokens or an escape.
    with_value: Option<(ComparedBytes, usize)>,
    /// The first bytes without whitespace.
    compact: [u8; BLOCK],
    /// All bytes, as received and without whitespace, if there are more.
    long: Option<Box<[Vec<u8>; 2]>>,
}

/// Bytes that a text is compared with, and which of them count.
struct ComparedBytes {
    bytes: [u8; COMPARED],
    mask: [u8; COMPARED],
}

impl ObjectLayout {
    pub(super) fn clear(&mut self) {
        self.fields.clear();
        self.closing.clear();
        (self.columns, self.usual, self.length) = (0, 0, 0);
        (self.is_ordered, self.has_blanks) = (true, false);
    }

    /// Adds a field: what is before its value as received, its name in quotes, and its value with the byte after it, if
    /// there is no whitespace between its tokens.
    pub(super) fn push(
        &mut self,
        column: Option<u8>,
        received: &[u8],
        name: &[u8],
        value: Option<&[u8]>,
    ) {
        self.length += received.len();
        if self.length > MAX_LENGTH {
            return;
        }
        let mut field = FieldLayout::new(column, received, name, self.fields.is_empty());
        if let (None, Some(value)) = (column, value) {
            field.add_value(received, value);
        }
        self.add(field);
    }

    fn add(&mut self, field: FieldLayout) {
        self.has_blanks |= field.length > field.compact_length;
        if let Some(column) = field.column {
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

    /// Adds the columns of an `earlier` layout that this one lacks, because any of them may be absent in the next object.
    /// Changes nothing if the fields that both have are in another order.
    pub(super) fn add_absent(&mut self, earlier: &mut Self) {
        let is_similar = self.is_complete()
            && earlier.columns & !self.columns != 0
            && self.closing == earlier.closing
            && self.has_blanks == earlier.has_blanks
            && self.length + earlier.length <= MAX_LENGTH;
        let firsts = self.fields.first().zip(earlier.fields.first());
        if !is_similar || firsts.is_none_or(|(one, other)| one.name() != other.name()) {
            return;
        }
        let find = |field: &FieldLayout| {
            let mut others = earlier.fields.iter();
            others.position(|other| field.name() == other.name())
        };
        let known: Vec<Option<usize>> = self.fields.iter().map(find).collect();
        let mut pairs = self.fields.iter().zip(&known);
        let is_same = |(field, known): (&FieldLayout, &Option<usize>)| {
            known.is_none_or(|known| field.received() == earlier.fields[known].received())
        };
        if !pairs.all(is_same) || !known.iter().flatten().is_sorted() {
            return;
        }
        let fields = std::mem::take(&mut self.fields);
        let closing = std::mem::take(&mut self.closing);
        let has_blanks = self.has_blanks;
        self.clear();
        let mut earlier = earlier.fields.drain(..);
        let mut passed = 0;
        for (field, known) in fields.into_iter().zip(known) {
            if let Some(known) = known {
                for absent in earlier.by_ref().take(known - passed) {
                    self.add_column(absent);
                }
                earlier.next();
                passed = known + 1;
            }
            self.extend(field);
        }
        for absent in earlier {
            self.add_column(absent);
        }
        (self.closing, self.has_blanks) = (closing, has_blanks);
    }

    /// Adds a field, unless its name is unknown: such names may be endless.
    fn add_column(&mut self, field: FieldLayout) {
        if field.column.is_some() {
            self.extend(field);
        }
    }

    fn extend(&mut self, field: FieldLayout) {
        self.length += field.length;
        self.add(field);
    }

    /// Returns whether it has all columns in the order of the interface, and no whitespace.
    pub(super) fn has_all_columns(&self) -> bool {
        self.is_ordered && self.columns == ALL_COLUMNS && !self.has_blanks
    }

    /// Returns whether there is a layout.
    pub(super) fn is_complete(&self) -> bool {
        !self.closing.is_empty()
    }
}

impl FieldLayout {
    /// Returns all bytes, without whitespace.
    fn name(&self) -> &[u8] {
        match &self.long {
            None => &self.compact[..self.compact_length],
            Some(long) => &long[1],
        }
    }

    /// Returns all bytes, as received.
    fn received(&self) -> &[u8] {
        match &self.long {
            None => &self.first.bytes[..self.length],
            Some(long) => &long[0],
        }
    }

    fn new(column: Option<u8>, received: &[u8], name: &[u8], is_first: bool) -> Self {
        let opening: &[u8] = if is_first { b"{" } else { b"," };
        let compact = [opening, name, b":"];
        let compact_length = name.len() + 2;
        let is_long = received.len() > COMPARED || compact_length > BLOCK;
        Self {
            column,
            length: received.len(),
            compact_length,
            first: ComparedBytes::new([received]),
            with_value: None,
            compact: first_bytes(compact),
            long: is_long.then(|| Box::new([received.to_vec(), compact.concat()])),
        }
    }

    /// Adds a value with the byte after it, unless it is long or has an escape.
    fn add_value(&mut self, received: &[u8], value: &[u8]) {
        let length = received.len() + value.len();
        if length <= COMPARED && !value.contains(&b'\\') {
            self.with_value = Some((ComparedBytes::new([received, value]), length - 1));
        }
    }

    /// Returns whether `text` begins with it.
    #[allow(clippy::inline_always, reason = "there is one call per field")]
    #[inline(always)]
    pub(super) fn begins(&self, text: &[u8]) -> bool {
        let Some(block) = text.first_chunk() else {
            return self.begins_short(text);
        };
        let is_long = || self.long.as_ref();
        self.first.begin(block) && is_long().is_none_or(|long| text.starts_with(&long[0]))
    }

    #[inline(never)]
    fn begins_short(&self, text: &[u8]) -> bool {
        self.length < COMPARED && text.starts_with(&self.first.bytes[..self.length])
    }

    /// Returns the length of the field if `text` begins with it and the remembered value.
    #[inline]
    pub(super) fn with_same_value(&self, text: &[u8]) -> Option<usize> {
        let (bytes, length) = self.with_value.as_ref()?;
        bytes.begin(text.first_chunk()?).then_some(*length)
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

impl ComparedBytes {
    /// Takes the first bytes of `parts`.
    fn new<const PARTS: usize>(parts: [&[u8]; PARTS]) -> Self {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let mut mask = [0; COMPARED];
        mask[..length.min(COMPARED)].fill(u8::MAX);
        Self {
            bytes: first_bytes(parts),
            mask,
        }
    }

    /// Returns whether `block` begins with these bytes.
    #[allow(clippy::inline_always, reason = "there is one call per field")]
    #[inline(always)]
    fn begin(&self, block: &[u8; COMPARED]) -> bool {
        is_equal(block, &self.bytes, &self.mask)
    }
}

/// Returns whether two texts, of a length that 16 divides, have the same bits where `mask` has any.
#[allow(clippy::inline_always, reason = "there is one call per field")]
#[inline(always)]
pub(super) fn is_equal<const LENGTH: usize>(
    left: &[u8; LENGTH],
    right: &[u8; LENGTH],
    mask: &[u8; LENGTH],
) -> bool {
    let [left, right, mask] = [left, right, mask].map(|bytes| bytes.as_chunks::<16>().0);
    let mut differences = u8x16::ZERO;
    for place in 0..LENGTH / 16 {
        let [left, right, mask] = [left, right, mask].map(|blocks| u8x16::new(blocks[place]));
        differences |= (left ^ right) & mask;
    }
    differences.simd_eq(u8x16::ZERO).to_bitmask() == 0xffff
}

/// Returns the first bytes of `parts`, one after another.
fn first_bytes<const PARTS: usize, const LENGTH: usize>(parts: [&[u8]; PARTS]) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    let mut rest = &mut bytes[..];
    for part in parts {
        let length = part.len().min(rest.len());
        let (to, more) = rest.split_at_mut(length);
        to.copy_from_slice(&part[..length]);
        rest = more;
    }
    bytes
}
