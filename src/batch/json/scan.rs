//! Finds the values of a batch in one pass, whatever the order of its fields.
//!
//! The usual batch (all fields in the order of the interface, and no others) has a compact index. Absent and
//! further fields have a general one. What is left to `serde_json` and `parse.rs`: batches with a flaw, which
//! need a message, an escape in a name, very many further fields, and deep nesting. A batch that is accepted here must have the same result there; the
//! tests compare the two.

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::flaw::{NAME_LIMIT, flaw};
use super::index::{GeneralIndex, Index, Spans, WideSpans};
use super::layout::{FieldLayout, ObjectLayout};
use super::names::{self, NAMES, Opening, known_name};
use super::pieces::Pieces;
use super::tokens::{
    any_string, boolean, date, decimal, integer, number, plain, short_decimal, short_string, string,
};
use super::{BLANK_LIMIT, VALUE_LIMIT};
use crate::batch::columns::NULLABLE_COLUMNS;
use crate::batch::{ALL_COLUMNS, ANALYSIS_LINK, BATCH_ID, COLUMNS, Column, FieldType};

/// Maximum number of unknown fields: each may have to be compared with all others.
const MAX_UNKNOWN: usize = 128;
/// Maximum nesting of unknown values.
const MAX_DEPTH: usize = 32;
/// After this many objects in a row with another layout than the one before, each layout is not worth remembering.
const MAX_MISSES: u32 = 8;
/// Of those, one in this many is remembered.
const REMEMBERED: u32 = 32;

/// A batch that was found.
pub(in crate::batch) struct Found {
    pub(in crate::batch) index: Index,
    /// Its length in the text.
    pub(in crate::batch) length: usize,
    /// Whether it has whitespace between its tokens. Then the index refers to the compact text.
    pub(in crate::batch) is_compacted: bool,
}

/// Reads objects, one after another.
#[derive(Default)]
pub(in crate::batch) struct BatchScanner {
    /// The text of objects that had whitespace between their tokens, without it.
    pub(in crate::batch) compact: Pieces,
    /// The layout of the latest object that was not usual, and the one before it.
    layout: ObjectLayout,
    earlier: ObjectLayout,
    /// How many objects in a row had another layout.
    misses: u32,
    /// Memory for positions of unknown fields.
    unknown: Vec<(u32, u32)>,
    /// Memory for indexes.
    pub(super) spare: Vec<GeneralIndex>,
}

impl BatchScanner {
    /// Reads the object at the start of `text`; `None` if it is incomplete, flawed or rare. If it has whitespace
    /// between its tokens, it is appended to `compact` without it.
    #[inline(never)]
    pub(in crate::batch) fn object(&mut self, text: &str) -> Option<Found> {
        // Longer objects need a general index.
        let bytes = &text.as_bytes()[..text.len().min(u16::MAX.into())];
        let mut spans = Spans::default();
        let mut has_escapes = false;
        let mut position = 0;
        'usual: {
            // One call per column, so that the compiler knows names, lengths and types.
            macro_rules! columns {
                ($($column:literal)*) => {
                    $(let rest = &bytes[position..];
                    let Some(length) = field::<$column>(rest, true, &mut has_escapes) else {
                        break 'usual;
                    };
                    let start = position + Opening::<$column>::LENGTH;
                    position = start + length;
                    #[allow(clippy::cast_possible_truncation, reason = "the text is short enough")]
                    {
                        spans[$column] = (start as u16, position as u16);
                    })*
                    const { assert!([$($column),*].len() == COLUMNS.len()) };
                };
            }
            columns!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17);
            if bytes.get(position) == Some(&b'}') {
                return Some(Found {
                    index: Index::Usual { spans, has_escapes },
                    length: position + 1,
                    is_compacted: false,
                });
            }
        }
        let found = spans.iter().take_while(|(_, end)| *end > 0).count();
        self.other_object(text, position, &spans[..found], has_escapes)
    }

    /// Reads an object whose first columns, up to `position`, were found already.
    #[inline(never)]
    fn other_object(
        &mut self,
        text: &str,
        position: usize,
        found: &[(u16, u16)],
        has_escapes: bool,
    ) -> Option<Found> {
        // A longer text cannot be indexed.
        u32::try_from(text.len()).ok()?;
        let Self {
            compact,
            layout,
            earlier,
            misses,
            unknown,
            spare,
        } = self;
        let start = compact.len();
        let mut object = None;
        // Whether the layout of an object is worth remembering, so that the next one is compared with it.
        let is_remembered = |misses: u32| misses < MAX_MISSES || misses.is_multiple_of(REMEMBERED);
        if is_remembered(*misses) && layout.is_complete() && found.len() <= layout.usual {
            let mut reader = Reader::new(text.as_bytes(), compact, unknown, spare);
            reader.start_after(position, found, has_escapes);
            object = reader.same_layout(layout, found.len());
        }
        if object.is_some() {
            *misses = 0;
        } else {
            compact.truncate(start);
            let mut reader = Reader::new(text.as_bytes(), compact, unknown, spare);
            *misses = misses.wrapping_add(1);
            if is_remembered(*misses) {
                std::mem::swap(layout, earlier);
                object = reader.any_layout(layout);
                layout.add_absent(earlier);
            } else {
                reader.start_after(position, found, has_escapes);
                object = reader.any_object(|_, _, _, _| ());
            }
        }
        if object.is_none() {
            compact.truncate(start);
        }
        object
    }
}

/// Reads fields in any order, with or without whitespace between tokens.
struct Reader<'a> {
    text: &'a [u8],
    position: usize,
    /// From `start` on, this is the text up to `copied` without whitespace between tokens; empty if there is none.
    compact: &'a mut Pieces,
    start: usize,
    copied: usize,
    /// How much whitespace was left out.
    shift: usize,
    /// Positions of the columns in the compact text, and those that are present, one bit each.
    spans: WideSpans,
    columns: u32,
    /// Whether a string has an escape.
    has_escapes: bool,
    /// Columns with an escape although they are not text, one bit each.
    escaped: u32,
    /// Positions of names and values of unknown fields.
    unknown: &'a mut Vec<(u32, u32)>,
    /// Memory for indexes.
    spare: &'a mut Vec<GeneralIndex>,
    /// Whether all columns were in the order of the interface so far.
    is_ordered: bool,
    /// A bit for each unknown name, so that few must be compared.
    unknown_names: [u64; 4],
}

impl<'a> Reader<'a> {
    fn new(
        text: &'a [u8],
        compact: &'a mut Pieces,
        unknown: &'a mut Vec<(u32, u32)>,
        spare: &'a mut Vec<GeneralIndex>,
    ) -> Self {
        unknown.clear();
        Self {
            text,
            position: 0,
            start: compact.len(),
            compact,
            copied: 0,
            shift: 0,
            spans: WideSpans::default(),
            columns: 0,
            has_escapes: false,
            escaped: 0,
            unknown,
            spare,
            is_ordered: true,
            unknown_names: [0; 4],
        }
    }

    /// Continues after the first columns in the usual order, which were found already.
    fn start_after(&mut self, position: usize, found: &[(u16, u16)], has_escapes: bool) {
        self.position = position;
        self.has_escapes = has_escapes;
        self.columns = (1 << found.len()) - 1;
        for (span, (start, end)) in self.spans.iter_mut().zip(found) {
            *span = (u32::from(*start), u32::from(*end));
        }
    }

    /// Reads an object with this layout, of which fields may be absent. The first `usual` ones were found already.
    fn same_layout(&mut self, layout: &ObjectLayout, usual: usize) -> Option<Found> {
        (self.columns, self.is_ordered) = (layout.columns, layout.is_ordered);
        if layout.has_all_columns() {
            self.all_columns(layout, usual)?;
        } else {
            self.any_columns(layout, usual)?;
        }
        if !self.rest().starts_with(&layout.closing) {
            return None;
        }
        if layout.has_blanks {
            self.flush();
            self.compact.push(b"}", 1);
            self.copied += layout.closing.len();
            self.shift += layout.closing.len() - 1;
        }
        self.position += layout.closing.len();
        self.found()
    }

    /// Reads fields with this layout, which has all columns in the order of the interface, and no whitespace. Some may be
    /// absent.
    fn all_columns(&mut self, layout: &ObjectLayout, usual: usize) -> Option<()> {
        let mut fields = layout.fields[usual..].iter();
        let mut position = self.position;
        // One call per column, so that the compiler knows names, lengths and types.
        macro_rules! columns {
            ($($column:literal)*) => {
                $(if $column >= usual {
                    while let Some(field) = fields.next() && field.column.is_none() {
                        self.position = position;
                        self.unknown_field(field)?;
                        position = self.position;
                    }
                    position = self.column::<$column>(position)?;
                })*
            };
        }
        columns!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17);
        self.position = position;
        fields.try_for_each(|field| self.unknown_field(field))
    }

    /// Reads the field of `COLUMN` at `position`; returns its end. There must be no whitespace in the object so far. The
    /// field may be absent.
    #[allow(clippy::inline_always, reason = "there is one call per column")]
    #[inline(always)]
    fn column<const COLUMN: usize>(&mut self, position: usize) -> Option<usize> {
        let (rest, is_first) = (&self.text[position..], position == 0);
        let start = position + Opening::<COLUMN>::LENGTH;
        let length = match field::<COLUMN>(rest, is_first, &mut self.has_escapes) {
            Some(length) => length,
            None if begins::<COLUMN>(rest.get(..start - position)?, is_first) => {
                self.position = start;
                self.rare(COLUMN)?
            }
            None => {
                self.columns &= !(1 << COLUMN);
                return Some(position);
            }
        };
        let end = start + length;
        #[allow(clippy::cast_possible_truncation, reason = "the text is short enough")]
        {
            self.spans[COLUMN] = (start as u32, end as u32);
        }
        Some(end)
    }

    /// Reads an unknown field with this layout. It may be absent.
    fn unknown_field(&mut self, field: &FieldLayout) -> Option<()> {
        let (rest, name) = (self.rest(), self.offset() + 1);
        #[allow(clippy::cast_possible_truncation, reason = "the text is short enough")]
        let start = name - 1 + field.length as u32;
        if let Some(length) = field.with_same_value(rest) {
            self.position += length;
        } else if field.begins(rest) {
            self.position += field.length;
            self.value(MAX_DEPTH)?;
        } else {
            return Some(());
        }
        let value = (start, self.offset());
        self.unknown.extend_from_slice(&[(name, start - 1), value]);
        Some(())
    }

    /// Reads fields with this layout, of which some may be absent.
    fn any_columns(&mut self, layout: &ObjectLayout, usual: usize) -> Option<()> {
        for field in &layout.fields[usual..] {
            let rest = self.rest();
            if !field.begins(rest) {
                if let Some(column) = field.column {
                    self.columns &= !(1 << column);
                }
                continue;
            }
            let name = self.offset() + 1;
            if layout.has_blanks {
                self.flush();
                field.push_compact(self.compact);
                self.copied += field.length;
                self.shift += field.length - field.compact_length;
            }
            self.position += field.length;
            let start = self.offset();
            let rest = &rest[field.length..];
            macro_rules! columns {
                ($($column:literal)*) => {
                    match field.column {
                        $(Some($column) => {
                            self.position += match known($column, rest, &mut self.has_escapes) {
                                Some(length) => length,
                                None => self.rare($column)?,
                            };
                            self.spans[$column] = (start, self.offset());
                        })*
                        _ => {
                            self.value(MAX_DEPTH)?;
                            let value = (start, self.offset());
                            self.unknown.extend([(name, start - 1), value]);
                        }
                    }
                };
            }
            columns!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17);
        }
        Some(())
    }

    /// Reads an object with any layout, which becomes `layout`.
    fn any_layout(&mut self, layout: &mut ObjectLayout) -> Option<Found> {
        let text = self.text;
        layout.clear();
        let mut end = 0;
        let object = self.any_object(|column, name, value, has_blanks| {
            let received = &text[end..value.start];
            end = value.end;
            let value = text.get(value.start..=value.end);
            layout.push(column, received, &text[name], value.filter(|_| !has_blanks));
        });
        if object.is_some() {
            layout.finish(&text[end..self.position]);
        }
        object
    }

    /// Reads the rest of an object. Calls `each` with the column of each field, if it has one, the places of its name and
    /// its value, and whether there is whitespace in these or between them.
    #[allow(clippy::inline_always, reason = "there are two calls")]
    #[inline(always)]
    fn any_object(
        &mut self,
        mut each: impl FnMut(Option<u8>, Range<usize>, Range<usize>, bool),
    ) -> Option<Found> {
        loop {
            let is_first = self.position == 0;
            let byte = self.token()?;
            self.position += 1;
            match byte {
                b',' if !is_first => {}
                b'{' if is_first => {}
                b'}' if !is_first => return self.found(),
                _ => return None,
            }
            self.token()?;
            let shift = self.shift;
            let (column, name, value_start) = self.field()?;
            each(column, name, value_start..self.position, self.shift > shift);
        }
    }

    /// Returns the object up to the position, if it is complete.
    fn found(&mut self) -> Option<Found> {
        let length = self.position - self.shift;
        let is_complete = self.columns | NULLABLE_COLUMNS == ALL_COLUMNS;
        if !is_complete || length > VALUE_LIMIT {
            return None;
        }
        let is_compacted = self.copied > 0;
        if is_compacted {
            self.flush();
        }
        Some(Found {
            index: self.index(u16::try_from(length).is_ok()),
            length: self.position,
            is_compacted,
        })
    }

    /// Returns the index. A short one needs no memory of its own.
    fn index(&mut self, is_short: bool) -> Index {
        if is_short && self.unknown.is_empty() && self.escaped == 0 {
            #[allow(clippy::cast_possible_truncation, reason = "the text is short enough")]
            let spans = self.spans.map(|(start, end)| (start as u16, end as u16));
            return if self.is_ordered && self.columns == ALL_COLUMNS {
                Index::Usual {
                    spans,
                    has_escapes: self.has_escapes,
                }
            } else {
                Index::Known {
                    spans,
                    columns: self.columns,
                    has_escapes: self.has_escapes,
                }
            };
        }
        let spare = self.spare.pop().unwrap_or_default();
        let index = spare.replace(&self.spans, self.columns, self.unknown);
        let index = index.compact(self.has_escapes);
        Index::Other(index.with_flaws(0, self.escaped))
    }

    /// Reads a name and its value; returns the column, the place of the name, and where the value begins.
    #[allow(clippy::inline_always, reason = "there is one call")]
    #[inline(always)]
    fn field(&mut self) -> Option<(Option<u8>, Range<usize>, usize)> {
        let (name_start, start) = (self.position, self.offset());
        let (column, name_end) = match known_name(self.rest()) {
            Some(column) => {
                self.position += NAMES[usize::from(column)].length;
                let name_end = self.position - 1;
                self.token()?;
                (Some(column), name_end)
            }
            None => self.other_name()?,
        };
        let (value_start, value) = (self.position, self.offset());
        if let Some(column) = column {
            self.position += match any_known(column, self.rest(), &mut self.has_escapes) {
                Some(length) => length,
                None => self.rare(column.into())?,
            };
            self.add_known(column.into(), value)?;
        } else {
            self.value(MAX_DEPTH)?;
            #[allow(clippy::cast_possible_truncation, reason = "names are short")]
            let name = (start, start + (name_end - name_start) as u32);
            self.add_unknown(name, (value, self.offset()))?;
        }
        Some((column, name_start..name_end, value_start))
    }

    /// Reads a name that [`known_name`] does not find, and its colon; returns the column, if it has one, and where the
    /// name ends.
    #[inline(never)]
    fn other_name(&mut self) -> Option<(Option<u8>, usize)> {
        let name = self.name()?;
        let end = self.position;
        self.colon()?;
        Some((names::column(name), end))
    }

    /// Returns the length of a valid value of `column` in a rare spelling, such as an escape in a date.
    #[inline(never)]
    fn rare(&mut self, column: usize) -> Option<usize> {
        let rest = self.rest();
        let length = match rest.first()? {
            b'"' => string(rest, &mut self.has_escapes)?,
            _ => number(rest)?,
        };
        let value = str::from_utf8(&rest[..length]).ok()?;
        let Column { kind, .. } = COLUMNS[column];
        if flaw(&COLUMNS[column], Some(value)).is_some() {
            return None;
        }
        let is_escaped = kind != FieldType::Text && value.contains('\\');
        self.escaped |= u32::from(is_escaped) << column;
        Some(length)
    }

    /// Reads the colon after a name.
    #[allow(clippy::inline_always, reason = "it is short")]
    #[inline(always)]
    fn colon(&mut self) -> Option<()> {
        if self.token()? != b':' {
            return None;
        }
        self.position += 1;
        self.token().map(|_| ())
    }

    /// Adds the value of `column` from `start` up to the position; `None` if there is one already.
    #[inline]
    fn add_known(&mut self, column: usize, start: u32) -> Option<()> {
        self.spans[column] = (start, self.offset());
        // All before it, and none after it.
        self.is_ordered &= self.columns == (1 << column) - 1;
        let is_new = self.columns & (1 << column) == 0;
        self.columns |= 1 << column;
        is_new.then_some(())
    }

    /// Reads a name; returns it without quotes. An escape in a name is rare.
    fn name(&mut self) -> Option<&'a [u8]> {
        let content = self.rest().strip_prefix(b"\"")?;
        let length = plain(content)?;
        if content[length] != b'"' || length > NAME_LIMIT {
            return None;
        }
        self.position += length + 2;
        Some(&content[..length])
    }

    /// Adds an unknown field; `None` if there is one already, or there are too many.
    fn add_unknown(&mut self, name: (u32, u32), value: (u32, u32)) -> Option<()> {
        let bytes = self.slice(name);
        // Most names differ in these characters.
        let [a, b, c, _] = bytes.last_chunk().copied().unwrap_or_default();
        let characters = u32::from_le_bytes([a, b, c, bytes[bytes.len() / 2]]);
        let hash = characters.wrapping_mul(0x9e37_79b1) >> 24;
        let (word, bit) = (hash as usize / 64, 1 << (hash % 64));
        let length = name.1 - name.0;
        let is_same =
            |other: &(u32, u32)| other.1 - other.0 == length && self.slice(*other) == bytes;
        let is_repeated =
            self.unknown_names[word] & bit != 0 && self.unknown.iter().step_by(2).any(is_same);
        if is_repeated || self.unknown.len() == 2 * MAX_UNKNOWN {
            return None;
        }
        self.unknown_names[word] |= bit;
        self.unknown.extend([name, value]);
        Some(())
    }

    /// Reads any value.
    #[allow(clippy::inline_always, reason = "most values are short")]
    #[inline(always)]
    fn value(&mut self, depth: usize) -> Option<()> {
        let rest = self.rest();
        self.position += match rest.first()? {
            b'"' => any_string(rest, &mut self.has_escapes)?,
            b'{' | b'[' if depth > 0 => return self.container(depth),
            b'n' => rest.starts_with(b"null").then_some(4)?,
            b't' | b'f' => boolean(rest)?,
            _ => number(rest)?,
        };
        Some(())
    }

    /// Reads an object or an array.
    #[inline(never)]
    fn container(&mut self, depth: usize) -> Option<()> {
        let is_object = self.rest().first() == Some(&b'{');
        let end = if is_object { b'}' } else { b']' };
        self.position += 1;
        if self.token()? == end {
            self.position += 1;
            return Some(());
        }
        loop {
            if is_object {
                self.position += any_string(self.rest(), &mut self.has_escapes)?;
                self.colon()?;
            }
            self.value(depth - 1)?;
            let byte = self.token()?;
            self.position += 1;
            if byte == end {
                return Some(());
            }
            if byte != b',' {
                return None;
            }
            self.token()?;
        }
    }

    #[allow(clippy::inline_always, reason = "it is short")]
    #[inline(always)]
    fn rest(&self) -> &'a [u8] {
        &self.text[self.position..]
    }

    /// Skips whitespace, unless it is too much; returns the byte after it, which is not taken.
    #[allow(clippy::inline_always, reason = "it is called for each token")]
    #[inline(always)]
    fn token(&mut self) -> Option<u8> {
        let byte = *self.text.get(self.position)?;
        if byte > b' ' {
            return Some(byte);
        }
        self.skip_blanks()
    }

    #[inline(never)]
    fn skip_blanks(&mut self) -> Option<u8> {
        self.flush();
        let mut rest = self.rest();
        while let [b' ' | b'\t' | b'\n' | b'\r', more @ ..] = rest {
            rest = more;
        }
        let length = self.rest().len() - rest.len();
        self.position += length;
        self.copied = self.position;
        self.shift += length;
        rest.first().copied().filter(|_| length <= BLANK_LIMIT)
    }

    /// Copies the text up to the position.
    #[inline]
    fn flush(&mut self) {
        let length = self.position - self.copied;
        self.compact.push(&self.text[self.copied..], length);
        self.copied = self.position;
    }

    /// Returns the position in the compact text.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the text is short enough")]
    fn offset(&self) -> u32 {
        (self.position - self.shift) as u32
    }

    /// Returns a part of the compact text that has no whitespace in it.
    fn slice(&self, (start, end): (u32, u32)) -> &[u8] {
        let (start, length) = (start as usize, (end - start) as usize);
        let compact = &self.compact.as_bytes()[self.start..];
        match start.checked_sub(compact.len()) {
            None => &compact[start..][..length],
            Some(start) => &self.text[self.copied + start..][..length],
        }
    }
}

/// Reads the field of `COLUMN` at the start of `text`, which is the first one of its object, or follows another one;
/// returns the length of its value.
#[allow(clippy::inline_always, reason = "there are two calls per column")]
#[inline(always)]
fn field<const COLUMN: usize>(
    text: &[u8],
    is_first: bool,
    has_escapes: &mut bool,
) -> Option<usize> {
    let opening = Opening::<COLUMN>::LENGTH;
    // In a block of known size, lengths need no checks.
    if let Some(block) = text.get(..opening + usual_length(COLUMN)) {
        if !begins::<COLUMN>(&block[..opening], is_first) {
            return None;
        }
        if let Some(length) = short_value(COLUMN, &block[opening..]) {
            return Some(length);
        }
    } else if !begins::<COLUMN>(text.get(..opening)?, is_first) {
        return None;
    }
    any_value(COLUMN, &text[opening..], has_escapes)
}

/// Returns whether `opening` is that of the field of `COLUMN`, which can only be the first one if it is the first column.
#[allow(clippy::inline_always, reason = "there are two calls per column")]
#[inline(always)]
fn begins<const COLUMN: usize>(opening: &[u8], is_first: bool) -> bool {
    let usual = &Opening::<COLUMN>::BYTES[..Opening::<COLUMN>::LENGTH];
    if COLUMN == 0 && !is_first {
        return opening[0] == b',' && opening[1..] == usual[1..];
    }
    opening == usual
}

/// Returns the length of the value of any known column; see [`known`].
#[allow(clippy::inline_always, reason = "there is one call")]
#[inline(always)]
fn any_known(column: u8, text: &[u8], has_escapes: &mut bool) -> Option<usize> {
    // One call per column, so that the compiler knows its type.
    macro_rules! columns {
        ($($column:literal)*) => {
            match column {
                $($column => known($column, text, has_escapes),)*
                _ => None,
            }
        };
    }
    columns!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17)
}

/// Returns the length of the value of `column` at the start of `text`; `None` if it is not valid. The caller
/// checks what follows it. Sets `has_escapes` if it is text with an escape.
#[allow(clippy::inline_always, reason = "a constant column leaves one case")]
#[inline(always)]
fn known(column: usize, text: &[u8], has_escapes: &mut bool) -> Option<usize> {
    let block = text.get(..usual_length(column));
    match block.and_then(|block| short_value(column, block)) {
        Some(length) => Some(length),
        None => any_value(column, text, has_escapes),
    }
}

/// Returns how many bytes contain most values of `column`.
#[inline]
fn usual_length(column: usize) -> usize {
    if column == ANALYSIS_LINK { 97 } else { 49 }
}

/// Returns the length of a usual value of `column` at the start of `block`; `None` for any other, which may be valid, too.
#[allow(clippy::inline_always, reason = "a constant column leaves one case")]
#[inline(always)]
fn short_value(column: usize, block: &[u8]) -> Option<usize> {
    let (quote, rest) = block.split_first()?;
    let is_quoted = *quote == b'"';
    match COLUMNS[column].kind {
        FieldType::Text if is_quoted => {
            let length = short_string(rest)?;
            (length > 1 || column != BATCH_ID).then_some(length + 1)
        }
        FieldType::Text if COLUMNS[column].nullable => block.starts_with(b"null").then_some(4),
        FieldType::Decimal if is_quoted => Some(short_decimal(rest.first_chunk()?)? + 2),
        FieldType::Text | FieldType::Decimal => None,
        FieldType::Date => date(block),
        FieldType::Integer => integer(block),
        FieldType::Boolean => boolean(block),
    }
}

/// Returns the length of any value of `column`, as [`known`] does.
#[inline(never)]
fn any_value(column: usize, text: &[u8], has_escapes: &mut bool) -> Option<usize> {
    if COLUMNS[column].nullable && text.starts_with(b"null") {
        return Some(4);
    }
    match COLUMNS[column].kind {
        FieldType::Text => {
            let length = string(text, has_escapes)?;
            (length > 2 || column != BATCH_ID).then_some(length)
        }
        FieldType::Date => date(text),
        FieldType::Integer => integer(text),
        FieldType::Decimal => decimal(text),
        FieldType::Boolean => boolean(text),
    }
}
