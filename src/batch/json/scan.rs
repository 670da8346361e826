//! Finds the values of a batch in one pass, whatever the order of its fields.
//!
//! The usual batch (all fields in the order of the interface, and no others) has a compact index. Absent and
//! further fields have a general one. What is left to `serde_json` and `index.rs`: batches with a flaw, which
//! need a message, and an escape in a name. A batch that is accepted here must have the same result there; the
//! tests compare the two.

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::flaw::{NAME_LIMIT, flaw};
use super::pieces::Pieces;
use super::tokens::{any_string, boolean, date, decimal, integer, number, plain, string};
use super::{BLANK_LIMIT, VALUE_LIMIT};
use crate::batch::columns::NULLABLE_COLUMNS;
use crate::batch::{ALL_COLUMNS, BATCH_ID, COLUMNS, Column, FieldType};

/// Maximum number of unknown fields: each may have to be compared with all others.
const MAX_UNKNOWN: usize = 128;
/// Maximum nesting of unknown values.
const MAX_DEPTH: usize = 32;

/// Positions of values, each as start and end.
pub(in crate::batch) type Spans = [(u16, u16); COLUMNS.len()];
pub(in crate::batch) type WideSpans = [(u32, u32); COLUMNS.len()];

/// Positions of the values in the text of a batch, relative to its start.
#[derive(Clone, Debug)]
pub(in crate::batch) enum Index {
    /// All fields are present and valid, in the order of the interface, without any others.
    Usual(Spans),
    /// Valid fields in any order, without any others, and the columns that are present, one bit each.
    Known(Spans, u32),
    Other(GeneralIndex),
}

impl Index {
    /// Returns the position of the value of `column`; `None` if absent.
    #[inline]
    pub(in crate::batch) fn span(&self, column: usize) -> Option<Range<u32>> {
        let (start, end) = match self {
            Self::Usual(spans) => spans[column],
            _ if self.columns() & (1 << column) == 0 => return None,
            Self::Known(spans, _) => spans[column],
            Self::Other(other) => {
                let (start, end) = other.0[FLAGS + column];
                return Some(start..end);
            }
        };
        Some(start.into()..end.into())
    }

    /// Returns which columns are present, one bit each.
    pub(in crate::batch) fn columns(&self) -> u32 {
        match self {
            Self::Usual(_) => ALL_COLUMNS,
            Self::Known(_, columns) => *columns,
            Self::Other(other) => other.0[0].0,
        }
    }

    /// Returns which columns have an invalid value, one bit each.
    #[inline]
    pub(in crate::batch) fn flawed(&self) -> u32 {
        match self {
            Self::Usual(_) | Self::Known(..) => 0,
            Self::Other(other) => other.0[0].1,
        }
    }

    /// Returns which columns have an invalid value, or an escape although they are not text, one bit each.
    #[inline]
    pub(in crate::batch) fn unclear(&self) -> u32 {
        match self {
            Self::Usual(_) | Self::Known(..) => 0,
            Self::Other(other) => other.0[1].0,
        }
    }

    /// Returns whether the text without its unknown fields is that of a usual batch.
    pub(in crate::batch) fn is_ordered(&self) -> bool {
        match self {
            Self::Usual(_) => true,
            Self::Known(..) => false,
            Self::Other(other) => other.0[1].1 != 0,
        }
    }

    /// Returns the positions of names and values of unknown fields.
    pub(in crate::batch) fn unknown(&self) -> impl Iterator<Item = (Range<u32>, Range<u32>)> {
        let spans = match self {
            Self::Usual(_) | Self::Known(..) => &[],
            Self::Other(other) => &other.0[FLAGS + COLUMNS.len()..],
        };
        let pairs = spans.as_chunks().0.iter();
        pairs.map(|[name, value]| (name.0..name.1, value.0..value.1))
    }
}

/// The index of any other batch, in one piece of memory: three flags for each column, one bit each (present,
/// invalid, unclear); the position of each column's value; and positions of names and values of unknown fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GeneralIndex(Vec<(u32, u32)>);

/// The number of pairs that contain the flags.
const FLAGS: usize = 2;

impl GeneralIndex {
    /// Creates an index of valid values in the memory of this one, which is no longer needed. `unknown` has a name
    /// and a value for each unknown field. `is_ordered` says that all columns are present, in the order of the
    /// interface, with the usual spelling of their names.
    pub(in crate::batch) fn replace(
        mut self,
        spans: &WideSpans,
        columns: u32,
        is_ordered: bool,
        unknown: &[(u32, u32)],
    ) -> Self {
        let all = &mut self.0;
        all.clear();
        all.reserve_exact(FLAGS + spans.len() + unknown.len());
        all.extend([(columns, 0), (0, u32::from(is_ordered))]);
        all.extend_from_slice(spans);
        all.extend_from_slice(unknown);
        self
    }

    /// Marks columns with an invalid value, and those with an escape although they are not text, one bit each.
    pub(in crate::batch) fn with_flaws(mut self, flawed: u32, escaped: u32) -> Self {
        self.0[0].1 = flawed;
        self.0[1].0 = flawed | escaped;
        self
    }

    /// Returns the memory that it uses.
    pub(in crate::batch) fn size(&self) -> usize {
        self.0.capacity() * size_of::<(u32, u32)>()
    }
}

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
    /// Memory for positions of unknown fields.
    unknown: Vec<(u32, u32)>,
    /// Memory for indexes.
    pub(super) spare: Vec<GeneralIndex>,
}

impl BatchScanner {
    /// Reads the object at the start of `text`; `None` if it is incomplete, flawed or rare. If it has whitespace
    /// between its tokens, it is appended to `compact` without it.
    pub(in crate::batch) fn object(&mut self, text: &str) -> Option<Found> {
        // Longer objects need a general index.
        let bytes = &text.as_bytes()[..text.len().min(u16::MAX.into())];
        let mut spans = Spans::default();
        let mut position = 0;
        let usual = 'usual: {
            // One call per column, so that the compiler knows names, lengths and types.
            macro_rules! columns {
                ($($column:literal)*) => {
                    $(match field::<$column>(bytes, position, &mut spans) {
                        Some(end) => position = end,
                        None => break 'usual $column,
                    })*
                    const { assert!([$($column),*].len() == COLUMNS.len()) };
                };
            }
            columns!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17);
            COLUMNS.len()
        };
        if usual == COLUMNS.len() && bytes.get(position) == Some(&b'}') {
            return Some(Found {
                index: Index::Usual(spans),
                length: position + 1,
                is_compacted: false,
            });
        }
        self.other_object(text, position, &spans[..usual])
    }

    /// Reads an object whose first columns, up to `position`, were found already.
    #[inline(never)]
    fn other_object(&mut self, text: &str, position: usize, found: &[(u16, u16)]) -> Option<Found> {
        // A longer text cannot be indexed.
        u32::try_from(text.len()).ok()?;
        let start = self.compact.len();
        let mut reader = Reader::new(self, text.as_bytes(), position, found);
        let object = reader.object();
        if object.is_none() {
            self.compact.truncate(start);
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
    /// Prepares to read an object whose first columns, up to `position`, were found already.
    fn new(
        scanner: &'a mut BatchScanner,
        text: &'a [u8],
        position: usize,
        found: &[(u16, u16)],
    ) -> Self {
        let BatchScanner {
            compact,
            unknown,
            spare,
        } = scanner;
        unknown.clear();
        let mut spans = WideSpans::default();
        for (span, (start, end)) in spans.iter_mut().zip(found) {
            *span = (u32::from(*start), u32::from(*end));
        }
        Self {
            text,
            position,
            start: compact.len(),
            compact,
            copied: 0,
            shift: 0,
            spans,
            columns: (1 << found.len()) - 1,
            escaped: 0,
            unknown,
            spare,
            is_ordered: true,
            unknown_names: [0; 4],
        }
    }

    /// Reads the rest of the object.
    fn object(&mut self) -> Option<Found> {
        loop {
            let is_first = self.position == 0;
            match self.token()? {
                b'{' if is_first => {}
                b',' if !is_first => {}
                b'}' if !is_first => {
                    self.position += 1;
                    return self.found();
                }
                _ => return None,
            }
            self.position += 1;
            self.token()?;
            let Some(column) = known_name(self.rest()) else {
                self.other_field()?;
                continue;
            };
            self.position += NAMES[usize::from(column)].length;
            self.token()?;
            self.known_value(column)?;
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
                Index::Usual(spans)
            } else {
                Index::Known(spans, self.columns)
            };
        }
        let spare = self.spare.pop().unwrap_or_default();
        let is_ordered = self.is_ordered && self.columns == ALL_COLUMNS;
        let index = spare.replace(&self.spans, self.columns, is_ordered, self.unknown);
        Index::Other(index.with_flaws(0, self.escaped))
    }

    /// Reads the value of `column`, unless it has one already.
    #[allow(clippy::inline_always, reason = "it is called for each field")]
    #[inline(always)]
    fn known_value(&mut self, column: u8) -> Option<()> {
        let start = self.offset();
        self.position += match any_known(column, self.rest()) {
            Some(length) => length,
            None => self.rare(column.into())?,
        };
        self.spans[usize::from(column)] = (start, self.offset());
        let bit = 1 << column;
        // All before it, and none after it.
        self.is_ordered &= self.columns == bit - 1;
        let is_new = self.columns & bit == 0;
        self.columns |= bit;
        is_new.then_some(())
    }

    /// Reads a field whose name [`known_name`] does not find.
    #[inline(never)]
    fn other_field(&mut self) -> Option<()> {
        let (rest, start) = (self.rest(), self.offset());
        let length = self.name()?;
        let end = self.offset();
        self.colon()?;
        let name = &rest[..length];
        // Otherwise, it would have been found.
        let is_unclear = rest.len() < NAME_WORDS * 8 || rest[length] != b':';
        if is_unclear && let Some(column) = column(&name[1..length - 1]) {
            return self.known_value(column);
        }
        let value = self.offset();
        self.value(MAX_DEPTH)?;
        self.add_unknown(name, (start, end), value)
    }

    /// Returns the length of a valid value of `column` in a rare spelling, such as an escape in a date.
    #[inline(never)]
    fn rare(&mut self, column: usize) -> Option<usize> {
        let rest = self.rest();
        let length = match rest.first()? {
            b'"' => string(rest)?,
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
    fn colon(&mut self) -> Option<()> {
        if self.token()? != b':' {
            return None;
        }
        self.position += 1;
        self.token().map(|_| ())
    }

    /// Reads a name; returns its length with quotes. An escape in a name is rare.
    fn name(&mut self) -> Option<usize> {
        let content = self.rest().strip_prefix(b"\"")?;
        let length = plain(content)?;
        if content[length] != b'"' || length > NAME_LIMIT {
            return None;
        }
        self.position += length + 2;
        Some(length + 2)
    }

    /// Adds an unknown field, of which `name` is in quotes; `None` if there is one already, or there are too many.
    fn add_unknown(&mut self, name: &[u8], (start, end): (u32, u32), value: u32) -> Option<()> {
        // Most names differ in these characters.
        let [middle, last] = [name[name.len() / 2], name[name.len() - 2]].map(usize::from);
        let sum = middle * 7 + last * 31 + name.len();
        let (word, bit) = (sum / 64 % 4, 1 << (sum % 64));
        if self.unknown_names[word] & bit != 0 {
            let mut names = self.unknown.iter().step_by(2);
            if names.any(|other| other.1 - other.0 == end - start && self.slice(*other) == name) {
                return None;
            }
        }
        self.unknown_names[word] |= bit;
        self.unknown.extend([(start, end), (value, self.offset())]);
        (self.unknown.len() <= 2 * MAX_UNKNOWN).then_some(())
    }

    /// Reads any value.
    #[allow(clippy::inline_always, reason = "most values are short")]
    #[inline(always)]
    fn value(&mut self, depth: usize) -> Option<()> {
        let rest = self.rest();
        self.position += match rest.first()? {
            b'"' => any_string(rest)?,
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
                self.position += any_string(self.rest())?;
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
        let from = &self.text[self.copied..];
        let length = self.position - self.copied;
        self.compact.push(from, length);
        let mut rest = &from[length..];
        while let [b' ' | b'\t' | b'\n' | b'\r', more @ ..] = rest {
            rest = more;
        }
        let blanks = from.len() - length - rest.len();
        self.position += blanks;
        self.copied = self.position;
        self.shift += blanks;
        rest.first().copied().filter(|_| blanks <= BLANK_LIMIT)
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

/// The name of a column in quotes, with the colon.
#[derive(Clone, Copy)]
struct KnownName {
    words: [u64; NAME_WORDS],
    /// Which bits of the words belong to it.
    mask: [u64; NAME_WORDS],
    length: usize,
}

/// Any known name fits in this many words of eight bytes.
const NAME_WORDS: usize = 4;

impl KnownName {
    const fn new(column: usize) -> Self {
        let opening = &OPENINGS[column];
        let (mut words, mut mask) = ([0; NAME_WORDS], [0; NAME_WORDS]);
        let length = opening.length - 1;
        let mut position = 0;
        while position < length {
            let (word, shift) = (position / 8, position % 8 * 8);
            words[word] |= (opening.bytes[position + 1] as u64) << shift;
            mask[word] |= 0xff << shift;
            position += 1;
        }
        Self {
            words,
            mask,
            length,
        }
    }

    /// Returns whether a text that begins with these words begins with the name.
    #[allow(clippy::inline_always, reason = "it is called for each field")]
    #[inline(always)]
    fn begins(&self, words: &[u64; NAME_WORDS]) -> bool {
        let difference = |word: usize| (words[word] ^ self.words[word]) & self.mask[word];
        difference(1) | difference(2) | difference(3) == 0
    }
}

const NAMES: &[KnownName; COLUMNS.len()] = {
    let mut names = [KnownName::new(0); COLUMNS.len()];
    let mut column = 0;
    while column < COLUMNS.len() {
        names[column] = KnownName::new(column);
        column += 1;
    }
    &{ names }
};

/// Returns the place of a column in [`BY_NAME`], given its name in quotes.
const fn slot(name: &[u8]) -> usize {
    (name[6] as usize + name[9] as usize) % BY_NAME_SIZE
}

const BY_NAME_SIZE: usize = 64;

/// The columns by their names. At most two have the same place, and these begin alike. A place that has fewer is filled
/// with others.
const BY_NAME: [[u8; 2]; BY_NAME_SIZE] = {
    let mut table = [[0; 2]; BY_NAME_SIZE];
    let mut column = 0;
    while column < COLUMNS.len() {
        let [first, second] = &mut table[slot(OPENINGS[column].bytes.split_at(1).1)];
        assert!(*second == 0);
        *second = *first;
        #[allow(clippy::cast_possible_truncation, reason = "there are few columns")]
        {
            *first = column as u8;
        }
        column += 1;
    }
    table
};

/// Returns the column whose name, in quotes and with a colon, is at the start of `text`. `None` if there is none, or it
/// needs a closer look.
#[allow(clippy::inline_always, reason = "it is called for each field")]
#[inline(always)]
fn known_name(text: &[u8]) -> Option<u8> {
    let block = text.first_chunk::<{ NAME_WORDS * 8 }>()?;
    let (words, _) = block.as_chunks::<8>();
    let words = [words[0], words[1], words[2], words[3]].map(u64::from_le_bytes);
    let [first, second] = BY_NAME[slot(block)];
    // Both begin alike.
    if words[0] != NAMES[usize::from(first)].words[0] {
        return None;
    }
    if NAMES[usize::from(first)].begins(&words) {
        return Some(first);
    }
    NAMES[usize::from(second)].begins(&words).then_some(second)
}

/// Returns the column with this name.
fn column(name: &[u8]) -> Option<u8> {
    let column = COLUMNS
        .iter()
        .position(|column| column.name.as_bytes() == name)?;
    u8::try_from(column).ok()
}

/// The text before a value: brace or comma, the name in quotes, and the colon.
struct Opening<const COLUMN: usize>;

impl<const COLUMN: usize> Opening<COLUMN> {
    const LENGTH: usize = COLUMNS[COLUMN].name.len() + 4;
    const BYTES: [u8; 64] = {
        let name = COLUMNS[COLUMN].name.as_bytes();
        let mut bytes = [0; 64];
        bytes[0] = if COLUMN == 0 { b'{' } else { b',' };
        bytes[1] = b'"';
        let mut position = 0;
        while position < name.len() {
            bytes[2 + position] = name[position];
            position += 1;
        }
        bytes[2 + position] = b'"';
        bytes[3 + position] = b':';
        bytes
    };
}

/// The text before a value in the usual order: the first `length` bytes.
pub(in crate::batch) struct UsualOpening {
    pub(in crate::batch) bytes: [u8; 64],
    pub(in crate::batch) length: usize,
}

pub(in crate::batch) const OPENINGS: &[UsualOpening; COLUMNS.len()] = {
    macro_rules! openings {
        ($($column:literal)*) => {
            &[$(UsualOpening { bytes: Opening::<$column>::BYTES, length: Opening::<$column>::LENGTH }),*]
        };
    }
    openings!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17)
};

/// Reads the field of `COLUMN` at `position`; returns its end.
#[allow(clippy::inline_always, reason = "there is one call per column")]
#[inline(always)]
fn field<const COLUMN: usize>(text: &[u8], position: usize, spans: &mut Spans) -> Option<usize> {
    let start = position + Opening::<COLUMN>::LENGTH;
    if text.get(position..start)? != &Opening::<COLUMN>::BYTES[..Opening::<COLUMN>::LENGTH] {
        return None;
    }
    let end = start + known(&COLUMNS[COLUMN], &text[start..])?;
    #[allow(clippy::cast_possible_truncation, reason = "the text is short enough")]
    {
        spans[COLUMN] = (start as u16, end as u16);
    }
    Some(end)
}

/// Returns the length of the value of any known column.
#[allow(clippy::inline_always, reason = "there is one call")]
#[inline(always)]
fn any_known(column: u8, text: &[u8]) -> Option<usize> {
    // One call per column, so that the compiler knows its type.
    macro_rules! columns {
        ($($column:literal)*) => {
            match column {
                $($column => known(&COLUMNS[$column], text),)*
                _ => None,
            }
        };
    }
    columns!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17)
}

/// Returns the length of the value of `column` at the start of `text`; `None` if it is not valid. The caller
/// checks what follows it.
#[allow(clippy::inline_always, reason = "a constant column leaves one case")]
#[inline(always)]
fn known(column: &Column, text: &[u8]) -> Option<usize> {
    if column.nullable && text.starts_with(b"null") {
        return Some(4);
    }
    match column.kind {
        FieldType::Text => {
            let length = string(text)?;
            let is_id = column.name.len() == COLUMNS[BATCH_ID].name.len()
                && column.name == COLUMNS[BATCH_ID].name;
            (length > 2 || !is_id).then_some(length)
        }
        FieldType::Date => date(text),
        FieldType::Integer => integer(text),
        FieldType::Decimal => decimal(text),
        FieldType::Boolean => boolean(text),
    }
}
