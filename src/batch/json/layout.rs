//! The layout of an object: what is between its values. Most objects of a response have the same layout, so an
//! object is compared with the one before, which is faster than to look up each name.

use std::ops::Range;

use super::pieces::BLOCK;

/// Maximum length of a layout in bytes. Longer ones have unusual names or much whitespace.
const MAX_LENGTH: usize = 8 << 10;

/// The layout of an object.
#[derive(Default)]
pub(super) struct Layout {
    pub(super) fields: Vec<FieldLayout>,
    /// What is before each value, one after another: as received, and without whitespace.
    received: Vec<u8>,
    compact: Vec<u8>,
    /// What is after the last value, as received. Empty until then.
    pub(super) closing: Vec<u8>,
    /// The columns, one bit each, and whether they are in the order of the interface.
    pub(super) columns: u32,
    pub(super) is_ordered: bool,
    /// Whether there is whitespace between tokens.
    pub(super) has_blanks: bool,
    /// How many of the first fields are as in the documented spelling.
    pub(super) usual: usize,
}

/// A field: what is before its value, as positions in the layout.
pub(super) struct FieldLayout {
    /// The column; `None` if the name is unknown.
    pub(super) column: Option<u8>,
    received: Range<usize>,
    compact: Range<usize>,
}

impl Layout {
    pub(super) fn clear(&mut self) {
        self.fields.clear();
        self.received.clear();
        self.compact.clear();
        self.closing.clear();
        (self.columns, self.is_ordered, self.usual) = (0, true, 0);
        self.has_blanks = false;
    }

    /// Adds a field: what is before its value as received, and its name in quotes.
    pub(super) fn push(&mut self, column: Option<u8>, received: &[u8], name: &[u8]) {
        if self.received.len() > MAX_LENGTH {
            return;
        }
        let first: &[u8] = if self.fields.is_empty() { b"{" } else { b"," };
        self.has_blanks |= received.len() > name.len() + 2;
        if let Some(column) = column {
            let is_next = self.columns == (1 << column) - 1;
            self.is_ordered &= is_next;
            self.columns |= 1 << column;
            let is_usual = is_next && !self.has_blanks && self.usual == self.fields.len();
            self.usual += usize::from(is_usual);
        }
        let starts = (self.received.len(), self.compact.len());
        self.received.extend_from_slice(received);
        for part in [first, name, b":"] {
            self.compact.extend_from_slice(part);
        }
        self.fields.push(FieldLayout {
            column,
            received: starts.0..self.received.len(),
            compact: starts.1..self.compact.len(),
        });
    }

    /// Ends the layout with what is after the last value.
    pub(super) fn finish(&mut self, closing: &[u8]) {
        if self.received.len() + closing.len() > MAX_LENGTH {
            self.clear();
            return;
        }
        self.has_blanks |= closing.len() > 1;
        self.closing.extend_from_slice(closing);
        self.compact.extend([0; BLOCK]);
    }

    /// Returns whether there is a layout.
    pub(super) fn is_complete(&self) -> bool {
        !self.closing.is_empty()
    }

    /// Returns what is before the value of `field`, as received.
    #[inline]
    pub(super) fn received(&self, field: &FieldLayout) -> &[u8] {
        &self.received[field.received.clone()]
    }

    /// Returns what is before the value of `field` without whitespace, and more; and its length.
    #[inline]
    pub(super) fn compact(&self, field: &FieldLayout) -> (&[u8], usize) {
        (&self.compact[field.compact.start..], field.compact.len())
    }
}
