//! Finds the values of a batch in one pass, whatever the order of its fields.
//!
//! The usual batch (all fields in the order of the interface, and no others) has a compact index. Absent and
//! further fields have a general one. What is left to `serde_json` and `index.rs`: batches with a flaw, which
//! need a message, and rare spellings (an escape in a name, a date or a number, a leap second). A batch that is
//! accepted here must have the same result there; the tests compare the two.

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::tokens::{any_string, boolean, date, decimal, integer, number, plain, string};
use super::{BLANK_LIMIT, VALUE_LIMIT};
use crate::batch::columns::NULLABLE_COLUMNS;
use crate::batch::{ALL_COLUMNS, BATCH_ID, COLUMNS, Column, FieldType};

/// Maximum length of a field name in bytes.
pub(super) const NAME_LIMIT: usize = 1024;
/// Maximum number of unknown fields: each may have to be compared with all others.
const MAX_UNKNOWN: usize = 32;
/// Room for unknown fields, if there are any.
const UNKNOWN_ROOM: usize = 12;
/// Maximum nesting of unknown values.
const MAX_DEPTH: usize = 32;

/// Positions of values, each as start and end.
pub(in crate::batch) type Spans = [(u16, u16); COLUMNS.len()];

/// Positions of the values in the text of a batch, relative to its start.
#[derive(Clone, Debug)]
pub(in crate::batch) enum Index {
    /// All fields are present and valid, in the order of the interface, without any others.
    Usual(Spans),
    /// Valid fields in any order, without any others, and the columns that are present, one bit each.
    Known(Spans, u32),
    Other(Box<GeneralIndex>),
}

impl Index {
    /// Returns the position of the value of `column`; `None` if absent.
    #[inline]
    pub(in crate::batch) fn span(&self, column: usize) -> Option<Range<u32>> {
        let (start, end) = match self {
            Self::Usual(spans) => spans[column],
            Self::Known(spans, columns) if columns & (1 << column) != 0 => spans[column],
            Self::Known(..) => return None,
            Self::Other(other) => return other.written[column].clone(),
        };
        Some(start.into()..end.into())
    }

    /// Returns which columns are present, one bit each.
    pub(in crate::batch) fn columns(&self) -> u32 {
        match self {
            Self::Usual(_) => ALL_COLUMNS,
            Self::Known(_, columns) => *columns,
            Self::Other(other) => (0..COLUMNS.len())
                .filter(|&column| other.written[column].is_some())
                .fold(0, |columns, column| columns | 1 << column),
        }
    }

    /// Returns which columns have an invalid value, one bit each.
    #[inline]
    pub(in crate::batch) fn flawed(&self) -> u32 {
        match self {
            Self::Usual(_) | Self::Known(..) => 0,
            Self::Other(other) => other.flawed,
        }
    }

    /// Returns the positions of names and values of unknown fields.
    pub(in crate::batch) fn unknown(&self) -> &[(Range<u32>, Range<u32>)] {
        match self {
            Self::Usual(_) | Self::Known(..) => &[],
            Self::Other(other) => &other.unknown,
        }
    }
}

/// The index of any other batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::batch) struct GeneralIndex {
    /// Position of each column's value; `None` if absent.
    pub(in crate::batch) written: [Option<Range<u32>>; COLUMNS.len()],
    /// Positions of names and values of unknown fields.
    pub(in crate::batch) unknown: Vec<(Range<u32>, Range<u32>)>,
    /// Columns with an invalid value, one bit each.
    pub(in crate::batch) flawed: u32,
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
pub(in crate::batch) struct BatchScanner {
    /// The text of objects that had whitespace between their tokens, without it.
    pub(in crate::batch) compact: String,
    /// The column that probably follows each column, as in the objects before; the first one at the end.
    followers: [u8; COLUMNS.len() + 1],
}

impl BatchScanner {
    pub(in crate::batch) fn new() -> Self {
        const FOLLOWERS: [u8; COLUMNS.len() + 1] = {
            let mut followers = [0; COLUMNS.len() + 1];
            let mut column = 0;
            while column < COLUMNS.len() {
                #[allow(clippy::cast_possible_truncation, reason = "there are few columns")]
                {
                    followers[column] = column as u8 + 1;
                }
                column += 1;
            }
            followers
        };
        Self {
            compact: String::new(),
            followers: FOLLOWERS,
        }
    }

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
        let start = self.compact.len();
        let mut reader = Reader {
            text,
            position,
            start,
            copied: 0,
            shift: 0,
            spans: [(0, 0); COLUMNS.len()],
            columns: (1 << found.len()) - 1,
            unknown: Vec::new(),
            latest: found.len().checked_sub(1).unwrap_or(COLUMNS.len()),
            is_ordered: true,
            unknown_names: 0,
            scanner: self,
        };
        for (wide, (start, end)) in reader.spans.iter_mut().zip(found) {
            *wide = (u32::from(*start), u32::from(*end));
        }
        let found = reader.finish();
        if found.is_none() {
            self.compact.truncate(start);
        }
        found
    }
}

/// The name of a field.
enum Name {
    Column(usize),
    Unknown,
}

/// Reads fields in any order, with or without whitespace between tokens.
struct Reader<'a> {
    text: &'a str,
    position: usize,
    scanner: &'a mut BatchScanner,
    /// From `start` on, `scanner.compact` is the text up to `copied` without whitespace between tokens; empty if
    /// there is none.
    start: usize,
    copied: usize,
    /// How much whitespace was left out.
    shift: usize,
    /// Positions of the columns in the compact text, and those that are present, one bit each.
    spans: [(u32, u32); COLUMNS.len()],
    columns: u32,
    /// Positions of names and values of unknown fields.
    unknown: Vec<(Range<u32>, Range<u32>)>,
    /// The latest column, and whether all were in the order of the interface so far.
    latest: usize,
    is_ordered: bool,
    /// A bit for each unknown name, so that few must be compared.
    unknown_names: u64,
}

impl<'a> Reader<'a> {
    /// Reads the remaining fields.
    fn finish(&mut self) -> Option<Found> {
        let mut is_first = self.position == 0;
        loop {
            self.skip()?;
            match self.take()? {
                b',' if !is_first => {}
                b'{' if is_first => is_first = false,
                b'}' if !is_first => break,
                _ => return None,
            }
            self.skip()?;
            if !self.probable_field()? {
                self.field()?;
            }
        }
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
        if is_short && self.unknown.is_empty() {
            #[allow(clippy::cast_possible_truncation, reason = "the text is short enough")]
            let spans = self.spans.map(|(start, end)| (start as u16, end as u16));
            return if self.is_ordered && self.columns == ALL_COLUMNS {
                Index::Usual(spans)
            } else {
                Index::Known(spans, self.columns)
            };
        }
        let span = |column: usize| {
            let (start, end) = self.spans[column];
            (self.columns & (1 << column) != 0).then_some(start..end)
        };
        Index::Other(Box::new(GeneralIndex {
            written: std::array::from_fn(span),
            unknown: std::mem::take(&mut self.unknown),
            flawed: 0,
        }))
    }

    /// Reads the field that probably follows; returns false if it is another one.
    #[inline]
    fn probable_field(&mut self) -> Option<bool> {
        macro_rules! columns {
            ($($column:literal)*) => {
                match self.scanner.followers[self.latest] {
                    $($column => self.known_field::<$column>(),)*
                    _ => Some(false),
                }
            };
        }
        columns!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17)
    }

    /// Reads the field of `COLUMN`; returns false if it is another one.
    #[allow(clippy::inline_always, reason = "there is one call per column")]
    #[inline(always)]
    fn known_field<const COLUMN: usize>(&mut self) -> Option<bool> {
        let length = Opening::<COLUMN>::LENGTH - 2;
        if self.rest().get(..length) != Some(&Opening::<COLUMN>::BYTES[1..=length]) {
            return Some(false);
        }
        self.position += length;
        self.colon()?;
        let start = self.offset()?;
        self.position += known(&COLUMNS[COLUMN], self.rest())?;
        self.add_known(COLUMN, start)?;
        Some(true)
    }

    /// Reads a name and its value.
    fn field(&mut self) -> Option<()> {
        let start = self.offset()?;
        let name = self.name()?;
        let name_end = self.offset()?;
        self.colon()?;
        let value_start = self.offset()?;
        let Name::Column(column) = name else {
            self.value(MAX_DEPTH)?;
            let value_end = self.offset()?;
            return self.add_unknown(start..name_end, value_start..value_end);
        };
        self.position += any_known(column, self.rest())?;
        #[allow(clippy::cast_possible_truncation, reason = "there are few columns")]
        {
            self.scanner.followers[self.latest] = column as u8;
        }
        self.add_known(column, value_start)
    }

    /// Reads the colon after a name.
    #[allow(clippy::inline_always, reason = "it is short")]
    #[inline(always)]
    fn colon(&mut self) -> Option<()> {
        self.skip()?;
        if self.take()? != b':' {
            return None;
        }
        self.skip()
    }

    /// Adds the value of `column` from `start` up to the position; `None` if there is one already.
    #[inline]
    fn add_known(&mut self, column: usize, start: u32) -> Option<()> {
        self.spans[column] = (start, self.offset()?);
        // All before it, and none after it.
        self.is_ordered &= self.columns == (1 << column) - 1;
        self.latest = column;
        let is_new = self.columns & (1 << column) == 0;
        self.columns |= 1 << column;
        is_new.then_some(())
    }

    /// Reads a name. An escape in one is rare.
    fn name(&mut self) -> Option<Name> {
        let content = self.rest().strip_prefix(b"\"")?;
        let length = plain(content)?;
        if content[length] != b'"' || length > NAME_LIMIT {
            return None;
        }
        self.position += length + 2;
        Some(column(&content[..length]).map_or(Name::Unknown, Name::Column))
    }

    fn add_unknown(&mut self, name: Range<u32>, value: Range<u32>) -> Option<()> {
        let bytes = self.slice(&name);
        let bit = 1 << ((bytes[bytes.len() / 2] ^ bytes[bytes.len() - 2]) % 64);
        let unknown = &self.unknown;
        let is_new = self.unknown_names & bit == 0
            || unknown.iter().all(|(other, _)| self.slice(other) != bytes);
        if !is_new || unknown.len() == MAX_UNKNOWN {
            return None;
        }
        if unknown.is_empty() {
            self.unknown.reserve(UNKNOWN_ROOM);
        }
        self.unknown_names |= bit;
        self.unknown.push((name, value));
        Some(())
    }

    /// Reads any value.
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
    fn container(&mut self, depth: usize) -> Option<()> {
        let is_object = self.take()? == b'{';
        let end = if is_object { b'}' } else { b']' };
        self.skip()?;
        if self.rest().first() == Some(&end) {
            self.position += 1;
            return Some(());
        }
        loop {
            self.skip()?;
            if is_object {
                self.position += any_string(self.rest())?;
                self.skip()?;
                if self.take()? != b':' {
                    return None;
                }
                self.skip()?;
            }
            self.value(depth - 1)?;
            self.skip()?;
            match self.take()? {
                b',' => {}
                byte if byte == end => return Some(()),
                _ => return None,
            }
        }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.position..]
    }

    /// Takes a byte.
    #[inline]
    fn take(&mut self) -> Option<u8> {
        let byte = *self.text.as_bytes().get(self.position)?;
        self.position += 1;
        Some(byte)
    }

    /// Skips whitespace, unless it is too much.
    #[inline]
    fn skip(&mut self) -> Option<()> {
        if *self.text.as_bytes().get(self.position)? > b' ' {
            return Some(());
        }
        self.skip_blanks()
    }

    #[inline(never)]
    fn skip_blanks(&mut self) -> Option<()> {
        self.flush();
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let bytes = self.text.as_bytes();
        while bytes.get(self.position).is_some_and(is_blank) {
            self.position += 1;
        }
        let length = self.position - self.copied;
        self.copied = self.position;
        self.shift += length;
        (length <= BLANK_LIMIT).then_some(())
    }

    /// Copies the text up to the position.
    fn flush(&mut self) {
        let piece = &self.text[self.copied..self.position];
        self.scanner.compact.push_str(piece);
        self.copied = self.position;
    }

    /// Returns the position in the compact text.
    #[inline]
    fn offset(&self) -> Option<u32> {
        (self.position - self.shift).try_into().ok()
    }

    /// Returns a part of the compact text that has no whitespace in it.
    fn slice(&self, span: &Range<u32>) -> &[u8] {
        let (start, end) = (span.start as usize, span.end as usize);
        let compact = &self.scanner.compact.as_bytes()[self.start..];
        match start.checked_sub(compact.len()) {
            None => &compact[start..end],
            Some(start) => {
                &self.text.as_bytes()[self.copied + start..][..end - span.start as usize]
            }
        }
    }
}

/// Returns the place of a name in [`BY_NAME`].
const fn slot(name: &[u8]) -> usize {
    (name.len() * 4 + name[4] as usize) % BY_NAME_SIZE
}

const BY_NAME_SIZE: usize = 64;

/// The columns by their names. No two share a place.
const BY_NAME: [u8; BY_NAME_SIZE] = {
    let mut table = [u8::MAX; BY_NAME_SIZE];
    let mut column = 0;
    while column < COLUMNS.len() {
        let slot = slot(COLUMNS[column].name.as_bytes());
        assert!(table[slot] == u8::MAX);
        #[allow(clippy::cast_possible_truncation, reason = "there are few columns")]
        {
            table[slot] = column as u8;
        }
        column += 1;
    }
    table
};

/// Returns the column with this name.
#[inline]
fn column(name: &[u8]) -> Option<usize> {
    if name.len() < 5 {
        return None;
    }
    let column = usize::from(BY_NAME[slot(name)]);
    (COLUMNS.get(column)?.name.as_bytes() == name).then_some(column)
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
    const TEXT: &str = match str::from_utf8(Self::BYTES.split_at(Self::LENGTH).0) {
        Ok(text) => text,
        Err(_) => panic!("names are text"),
    };
}

/// The text before the value of each column in the usual order.
pub(in crate::batch) const OPENINGS: [&str; COLUMNS.len()] = {
    macro_rules! openings {
        ($($column:literal)*) => { [$(Opening::<$column>::TEXT),*] };
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
fn any_known(column: usize, text: &[u8]) -> Option<usize> {
    known(&COLUMNS[column], text)
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
