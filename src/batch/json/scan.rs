//! Finds the values of a batch in one pass, whatever the order of its fields.
//!
//! The usual batch (all fields in the order of the interface, and no others) has a compact index. Absent and
//! further fields have a general one. What is left to `serde_json` and `index.rs`: batches with a flaw, which
//! need a message, and rare spellings (an escape in a name, a date or a number, a leap second). A batch that is
//! accepted here must have the same result there; the tests compare the two.

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::{BLANK_LIMIT, VALUE_LIMIT};
use crate::batch::{BATCH_ID, COLUMNS, Column, FieldType};

/// Any integer with at most this many digits fits.
const SAFE_DIGITS: usize = 18;
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
    Other(Box<GeneralIndex>),
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

/// Reads the object at the start of `text`; `None` if it is incomplete, flawed or rare. If it has whitespace
/// between its tokens, it is appended to `compact` without it.
pub(in crate::batch) fn object(text: &str, compact: &mut String) -> Option<Found> {
    let bytes = text.as_bytes();
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
    let start = compact.len();
    let mut reader = Reader {
        text,
        position,
        compact,
        start,
        copied: 0,
        index: GeneralIndex::default(),
        expected: usual,
        is_ordered: true,
        unknown_names: 0,
    };
    for (written, (start, end)) in reader.index.written.iter_mut().zip(&spans[..usual]) {
        *written = Some(u32::from(*start)..u32::from(*end));
    }
    let found = reader.finish();
    if found.is_none() {
        compact.truncate(start);
    }
    found
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
    /// From `start` on, the text up to `copied` without whitespace between tokens; empty if there is none.
    compact: &'a mut String,
    start: usize,
    copied: usize,
    /// Positions in the compact text.
    index: GeneralIndex,
    /// The column that probably follows, and whether all columns did so far.
    expected: usize,
    is_ordered: bool,
    /// A bit for each unknown name, so that few must be compared.
    unknown_names: u64,
}

impl<'a> Reader<'a> {
    /// Reads the remaining fields.
    fn finish(mut self) -> Option<Found> {
        let mut is_first = self.position == 0;
        loop {
            self.skip()?;
            match self.take()? {
                b'{' if is_first => is_first = false,
                b',' if !is_first => {}
                b'}' if !is_first => break,
                _ => return None,
            }
            self.field()?;
        }
        let mut columns = COLUMNS.iter().zip(&self.index.written);
        let is_complete = columns.all(|(column, written)| column.nullable || written.is_some());
        if !is_complete || self.offset() > VALUE_LIMIT {
            return None;
        }
        let is_compacted = self.copied > 0;
        if is_compacted {
            self.flush();
        }
        Some(Found {
            index: match self.usual_spans() {
                Some(spans) => Index::Usual(spans),
                None => Index::Other(Box::new(self.index)),
            },
            length: self.position,
            is_compacted,
        })
    }

    /// Returns a compact index, if the batch is usual apart from whitespace.
    fn usual_spans(&self) -> Option<Spans> {
        if !self.is_ordered || !self.index.unknown.is_empty() {
            return None;
        }
        let mut spans = Spans::default();
        for (span, written) in spans.iter_mut().zip(&self.index.written) {
            let written = written.as_ref()?;
            *span = (written.start.try_into().ok()?, written.end.try_into().ok()?);
        }
        Some(spans)
    }

    /// Reads a name and its value.
    fn field(&mut self) -> Option<()> {
        self.skip()?;
        let start = self.offset();
        let name = self.name()?;
        let name_span = self.span(start)?;
        self.skip()?;
        if self.take()? != b':' {
            return None;
        }
        self.skip()?;
        let start = self.offset();
        let Name::Column(column) = name else {
            self.value(MAX_DEPTH)?;
            let value_span = self.span(start)?;
            return self.add_unknown(name_span, value_span);
        };
        self.position += known(&COLUMNS[column], self.rest())?;
        let value = self.span(start)?;
        self.is_ordered &= column == self.expected;
        self.expected = column + 1;
        let before = self.index.written[column].replace(value);
        before.is_none().then_some(())
    }

    /// Reads a name. An escape in one is rare.
    fn name(&mut self) -> Option<Name> {
        let rest = self.rest();
        if let Some(expected) = OPENINGS.get(self.expected) {
            let name = &expected.as_bytes()[1..expected.len() - 1];
            if rest.starts_with(name) {
                self.position += name.len();
                return Some(Name::Column(self.expected));
            }
        }
        let content = rest.strip_prefix(b"\"")?;
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
        let unknown = &self.index.unknown;
        let is_new = self.unknown_names & bit == 0
            || unknown.iter().all(|(other, _)| self.slice(other) != bytes);
        if !is_new || unknown.len() == MAX_UNKNOWN {
            return None;
        }
        if unknown.is_empty() {
            self.index.unknown.reserve(UNKNOWN_ROOM);
        }
        self.unknown_names |= bit;
        self.index.unknown.push((name, value));
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
        self.flush();
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let bytes = self.text.as_bytes();
        while bytes.get(self.position).is_some_and(is_blank) {
            self.position += 1;
        }
        let length = self.position - self.copied;
        self.copied = self.position;
        (length <= BLANK_LIMIT).then_some(())
    }

    /// Copies the text up to the position.
    fn flush(&mut self) {
        self.compact
            .push_str(&self.text[self.copied..self.position]);
        self.copied = self.position;
    }

    /// Returns the position in the compact text.
    #[inline]
    fn offset(&self) -> usize {
        self.compact.len() - self.start + self.position - self.copied
    }

    /// Returns the positions in the compact text from `start` on.
    fn span(&self, start: usize) -> Option<Range<u32>> {
        Some(start.try_into().ok()?..self.offset().try_into().ok()?)
    }

    /// Returns a part of the compact text that has no whitespace in it.
    fn slice(&self, span: &Range<u32>) -> &[u8] {
        let (start, end) = (span.start as usize, span.end as usize);
        let compact = &self.compact.as_bytes()[self.start..];
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
#[inline]
fn field<const COLUMN: usize>(text: &[u8], position: usize, spans: &mut Spans) -> Option<usize> {
    let start = position + Opening::<COLUMN>::LENGTH;
    if text.get(position..start)? != &Opening::<COLUMN>::BYTES[..Opening::<COLUMN>::LENGTH] {
        return None;
    }
    let end = start + known(&COLUMNS[COLUMN], &text[start..])?;
    // Longer objects need a general index.
    spans[COLUMN] = (start.try_into().ok()?, end.try_into().ok()?);
    Some(end)
}

/// Returns the length of the value of `column` at the start of `text`; `None` if it is not valid. The caller
/// checks what follows it.
#[inline]
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

fn boolean(text: &[u8]) -> Option<usize> {
    if text.starts_with(b"true") {
        Some(4)
    } else {
        text.starts_with(b"false").then_some(5)
    }
}

/// Returns the length of the number at the start of `text`.
fn number(text: &[u8]) -> Option<usize> {
    let mut position = usize::from(text.first() == Some(&b'-'));
    let whole = digits(&text[position..]);
    if whole == 0 || whole > 1 && text[position] == b'0' {
        return None;
    }
    position += whole;
    if text.get(position) == Some(&b'.') {
        let fraction = digits(&text[position + 1..]);
        position += 1 + fraction;
        if fraction == 0 {
            return None;
        }
    }
    if let Some(b'e' | b'E') = text.get(position) {
        position += 1;
        position += usize::from(matches!(text.get(position), Some(b'+' | b'-')));
        let exponent = digits(&text[position..]);
        position += exponent;
        if exponent == 0 {
            return None;
        }
    }
    Some(position)
}

/// Returns the length of the string at the start of `text`, including quotes. Its escapes are valid text.
#[inline]
fn string(text: &[u8]) -> Option<usize> {
    string_with(text, |escape| match hex(escape)? {
        0xdc00..=0xdfff => None,
        // The other half of the pair follows.
        0xd800..=0xdbff => {
            let is_pair =
                escape.get(4..6)? == b"\\u" && (0xdc00..=0xdfff).contains(&hex(&escape[6..])?);
            is_pair.then_some(10)
        }
        _ => Some(4),
    })
}

/// The same, but an escape may be half of a surrogate pair.
fn any_string(text: &[u8]) -> Option<usize> {
    string_with(text, |escape| hex(escape).map(|_| 4))
}

/// Returns the length of a string. `unicode` returns the length of an escape after `\u`; `None` if it is not
/// valid.
#[inline]
fn string_with(text: &[u8], unicode: impl Fn(&[u8]) -> Option<usize>) -> Option<usize> {
    if text.first() != Some(&b'"') {
        return None;
    }
    let mut position = 1;
    loop {
        position += plain(text.get(position..)?)?;
        if text[position] == b'"' {
            return Some(position + 1);
        }
        if text[position] != b'\\' {
            return None;
        }
        position += match text.get(position + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' => 2 + unicode(&text[position + 2..])?,
            _ => return None,
        };
    }
}

/// Returns the value of the four hexadecimal digits at the start of `text`.
pub(in crate::batch) fn hex(text: &[u8]) -> Option<u32> {
    let mut digits = text.get(..4)?.iter();
    digits.try_fold(0, |value, byte| {
        Some(value << 4 | char::from(*byte).to_digit(16)?)
    })
}

/// The value 1 in each of eight bytes, and the top bit of each.
const ONES: u64 = u64::from_ne_bytes([1; 8]);
const TOPS: u64 = u64::from_ne_bytes([0x80; 8]);

/// Returns the top bit of each of eight bytes that is less than `limit` (at most 128). A match may cause
/// false matches in later bytes; the first one is always correct.
#[inline]
fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(limit)) & !word & TOPS
}

/// Returns the number of bytes before the first quote, backslash or control character.
#[inline]
fn plain(text: &[u8]) -> Option<usize> {
    let mut rest = text;
    while let Some((bytes, more)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*bytes);
        // With this bit flipped, the quote directly follows the control characters.
        let found = below(word ^ (ONES * 2), 0x21) | below(word ^ (ONES * u64::from(b'\\')), 1);
        if found != 0 {
            return Some(text.len() - rest.len() + found.trailing_zeros() as usize / 8);
        }
        rest = more;
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..0x20);
    Some(text.len() - rest.len() + rest.iter().position(is_special)?)
}

#[inline]
fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Returns the length of the whole number at the start of `text`.
#[inline]
fn integer(text: &[u8]) -> Option<usize> {
    let count = digits(text);
    let is_plain = (1..=SAFE_DIGITS).contains(&count) && (text[0] != b'0' || count == 1);
    is_plain.then_some(count)
}

/// Returns the length of the decimal number in quotes at the start of `text`.
#[inline]
fn decimal(text: &[u8]) -> Option<usize> {
    if text.first() != Some(&b'"') {
        return None;
    }
    if let Some(length) = text.get(1..9).and_then(short_decimal) {
        return Some(length + 2);
    }
    let mut position = 1 + usize::from(text.get(1) == Some(&b'-'));
    let mut count = digits(text.get(position..)?);
    position += count;
    if count > 0 && text.get(position) == Some(&b'.') {
        count = digits(&text[position + 1..]);
        position += 1 + count;
    }
    (count > 0 && text.get(position) == Some(&b'"')).then_some(position + 1)
}

/// Returns the length of a decimal number that ends with a quote within these eight bytes; `None` if it is
/// longer, invalid, or has no fraction.
#[inline]
fn short_decimal(text: &[u8]) -> Option<usize> {
    let word = u64::from_le_bytes(text.try_into().ok()?);
    let quotes = below(word ^ (ONES * u64::from(b'"')), 1);
    if quotes == 0 {
        return None;
    }
    let length = quotes.trailing_zeros() as usize / 8;
    // Bytes that are not digits; there are no false matches here. Bytes after the quote do not matter.
    let values = word ^ (ONES * u64::from(b'0'));
    let no_digits = (((values & !TOPS) + ONES * (0x7f - 9)) | values) & TOPS;
    let others = no_digits & ((quotes & quotes.wrapping_neg()) - 1);
    let point = others.trailing_zeros() as usize / 8;
    let one_point = others.is_power_of_two() && text.get(point) == Some(&b'.');
    (one_point && 0 < point && point + 1 < length).then_some(length)
}

/// Returns the length of the date in quotes at the start of `text`.
#[inline]
fn date(text: &[u8]) -> Option<usize> {
    let (shape, rest) = text.split_first_chunk::<20>()?;
    let [
        b'"',
        year @ ..,
        b'-',
        _,
        _,
        b'-',
        _,
        _,
        b'T',
        _,
        _,
        b':',
        _,
        _,
        b':',
        _,
        _,
    ] = shape
    else {
        return None;
    };
    let two = |position: usize| {
        let [tens, ones] = [shape[position], shape[position + 1]];
        let both = tens.is_ascii_digit() && ones.is_ascii_digit();
        // A value that is not a number is out of range.
        if both {
            (tens - b'0') * 10 + ones - b'0'
        } else {
            u8::MAX
        }
    };
    let (month, day) = (two(6), two(9));
    let is_day = (1..=28).contains(&day)
        || (29..=30).contains(&day) && month != 2
        || day == 31 && has_31_days(month)
        || day == 29 && is_leap_year(two(1), two(3));
    let fits = digits(year) == 4
        && (1..=12).contains(&month)
        && is_day
        && two(12) < 24
        && two(15) < 60
        && two(18) < 60;
    if !fits {
        return None;
    }
    let mut position = 0;
    if rest.first() == Some(&b'.') {
        let count = digits(&rest[1..]);
        position = if count > 0 { 1 + count } else { return None };
    }
    // Leap seconds are left to the general parser.
    let zone = rest.get(position..)?;
    if zone.starts_with(b"Z\"") {
        Some(20 + position + 2)
    } else {
        zone.starts_with(b"+00:00\"").then_some(20 + position + 7)
    }
}

/// Returns whether a year is a leap year, given its first two digits and its last two.
fn is_leap_year(century: u8, year: u8) -> bool {
    let decisive = if year == 0 { century } else { year };
    decisive.is_multiple_of(4)
}

fn has_31_days(month: u8) -> bool {
    matches!(month, 1 | 3 | 5 | 7 | 8 | 10 | 12)
}
