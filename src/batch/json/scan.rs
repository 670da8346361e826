//! Finds the values of a batch in one pass, whatever the order of its fields.
//!
//! The usual batch (all fields in the order of the interface, and no others) has a compact index. Absent and
//! further fields have a general one. What is left to `serde_json` and `index.rs`: batches with a flaw, which
//! need a message, and rare spellings (an escape in a name, a date or a number, a leap second). A batch that is
//! accepted here must have the same result there; the tests compare the two.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::batch::Column;
    use proptest::prelude::*;
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;
    use std::sync::Arc;

    /// Valid values for a column.
    fn right(column: &Column) -> BoxedStrategy<String> {
        let usual = match column.kind {
            FieldType::Text => {
                r#""(x|[a-zé =:,}{\[\]]|\\["\\/bfnrt]|\\u00[0-9a-f]{2}|\\u[0-9A-C][0-9A-F]{3}|\\ud83c\\udf31){1,40}""#
            }
            FieldType::Date => {
                r#""20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|\+00:00)""#
            }
            FieldType::Integer => "(0|[1-9][0-9]{0,17})",
            FieldType::Decimal => r#""-?[0-9]{1,12}(\.[0-9]{1,12})?""#,
            FieldType::Boolean => "(true|false)",
        };
        if column.nullable {
            prop_oneof![5 => usual, 1 => Just("null".to_owned())].boxed()
        } else {
            usual.boxed()
        }
    }

    /// Invalid or almost valid values.
    fn near(kind: FieldType) -> BoxedStrategy<String> {
        let near = match kind {
            FieldType::Text => {
                r#""([a-zé]|\\[a-zA-Z0-9"\\/]|\\u[0-9a-d]{3,4}|["\x00-\x20\x7f]){0,12}""#
            }
            FieldType::Date => {
                r#""[0-2][0-9]{3}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,4})?(Z|z|[+-]0[01]:?00|)""#
            }
            FieldType::Integer => "-?[0-9]{0,21}(\\.0)?(e1)?",
            FieldType::Decimal => r#""?[+-]?[0-9]{0,4}[.,]?[0-9:]{0,3}[.e]?[0-9]{0,2}"?"#,
            FieldType::Boolean => "(true1|\"true\"|1|null|fals|TRUE)",
        };
        prop_oneof![4 => near, 1 => "(null|nul|\"|\\{\\}|\\[1\\]|\"\"|)"].boxed()
    }

    /// Any JSON, or almost.
    fn any_value() -> BoxedStrategy<String> {
        let leaf = prop_oneof![
            r#""([a-zé]|\\["\\/bfnrtu]|\\u[0-9a-fA-F]{4}){0,6}""#,
            "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?",
            "null|true|false|01|1\\.|-|nul|\"|",
        ];
        leaf.prop_recursive(3, 12, 4, |value| {
            let name = r"([a-z]|\\u00[0-9a-f]{2}){0,3}";
            let member =
                (name, value.clone()).prop_map(|(name, value)| format!("\"{name}\":{value}"));
            prop_oneof![
                prop::collection::vec(member, 0..4)
                    .prop_map(|all| format!("{{{}}}", all.join(","))),
                prop::collection::vec(value, 0..4).prop_map(|all| format!("[{}]", all.join(","))),
            ]
        })
        .boxed()
    }

    /// Objects in any order, with absent and further fields, and at most one more change.
    fn objects() -> impl Strategy<Value = String> {
        let values: Vec<_> = COLUMNS.iter().map(right).collect();
        let others: Vec<_> = COLUMNS.iter().map(|column| near(column.kind)).collect();
        let order = prop_oneof![
            Just((0..COLUMNS.len()).collect::<Vec<usize>>()),
            Just((0..COLUMNS.len()).collect::<Vec<usize>>()).prop_shuffle(),
        ];
        let absent = prop_oneof![2 => Just(0), 1 => any::<u32>()];
        let further = (
            "more|extra|batch_ie|(a|b|\\\\u0061)",
            any_value(),
            0..COLUMNS.len(),
        );
        let further = prop_oneof![
            1 => Just(vec![]),
            1 => prop::collection::vec(further, 0..4),
        ];
        let places = (0..COLUMNS.len(), 0_usize..900);
        (
            values,
            others,
            order,
            absent,
            further,
            places,
            0_u8..12,
            any::<u8>(),
        )
            .prop_map(
                |(mut values, others, order, absent, further, (from, position), change, byte)| {
                    if change < 3 {
                        values[from].clone_from(&others[from]);
                    }
                    let mut fields: Vec<String> = order
                        .iter()
                        .filter(|&&column| !COLUMNS[column].nullable || absent & (1 << column) == 0)
                        .map(|&column| format!("\"{}\":{}", COLUMNS[column].name, values[column]))
                        .collect();
                    match change {
                        3 => drop(fields.remove(from % fields.len())),
                        4 => fields.push(fields[from % fields.len()].clone()),
                        _ => {}
                    }
                    for (name, value, place) in further {
                        fields.insert(place % fields.len(), format!("\"{name}\":{value}"));
                    }
                    let mut text = format!("{{{}}}", fields.join(","));
                    match change {
                        5 if text.is_char_boundary(position) => text.insert(position, ' '),
                        6 if text.is_char_boundary(position) => {
                            text.insert(position, char::from(byte));
                        }
                        7 if text.is_char_boundary(position) => text.truncate(position),
                        _ => {}
                    }
                    text
                },
            )
    }

    #[test]
    fn many_of_these_objects_are_read_in_one_pass() {
        let mut runner = TestRunner::deterministic();
        let objects = objects();
        let taken = (0..500).filter(|_| {
            let object = objects.new_tree(&mut runner).expect("an object");
            agrees(&object.current())
        });
        // Objects without a flaw.
        let taken = taken.count();
        assert!((100..350).contains(&taken), "{taken}");
    }

    /// Parses `text` both ways and compares; returns whether it was read in one pass.
    fn agrees(text: &str) -> bool {
        let page = Arc::new(format!("[{text},{text}]"));
        let Some((batch, length)) = Batch::scan(&page, 1) else {
            return false;
        };
        let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).ok();
        assert_eq!(value(&page[1..=length]), value(batch.text()), "{text}");
        let slow = Batch::read(batch.text());
        assert_eq!(
            (&slow.flaws[..], slow.absent),
            (&[][..], batch.absent()),
            "{text}"
        );
        let slow = slow.batch.expect("a batch");
        assert_eq!(batch.text(), slow.text());
        let hash =
            |batch: &Batch| batch.content_hash(xxhash_rust::xxh3::xxh3_64, &mut String::new());
        assert_eq!(hash(&batch), hash(&slow));
        let canonical = Batch::read(&batch.canonical()).batch.expect("a batch");
        assert_eq!(hash(&batch), hash(&canonical), "{text}");
        assert_eq!(batch.canonical(), canonical.canonical(), "{text}");
        assert_eq!(batch.canonical(), slow.canonical());
        for column in 0..COLUMNS.len() {
            assert_eq!(batch.member(column), slow.member(column), "{text}");
            assert_eq!(batch.typed(column), slow.typed(column), "{text}");
        }
        assert!(slow.unknown().eq(batch.unknown()), "{text}");
        true
    }

    fn usual() -> String {
        let fields: Vec<String> = (0..COLUMNS.len()).map(usual_field).collect();
        format!("{{{}}}", fields.join(","))
    }

    fn usual_field(column: usize) -> String {
        let value = match COLUMNS[column].kind {
            FieldType::Text => "\"tä\\\"xt\\n\"",
            FieldType::Date => "\"2026-05-31T06:00:00.250Z\"",
            FieldType::Integer => "12",
            FieldType::Decimal => "\"-87.50\"",
            FieldType::Boolean => "true",
        };
        format!("\"{}\":{value}", COLUMNS[column].name)
    }

    #[test]
    fn every_legal_spelling_is_read_in_one_pass() {
        assert!(agrees(&usual()));
        for date in [
            "2024-12-30T23:59:59Z",
            "2024-02-29T23:59:59Z",
            "2000-02-29T23:59:59Z",
            "2024-12-30T23:59:59+00:00",
            "2024-12-30T23:59:59.123456+00:00",
        ] {
            assert!(
                agrees(&usual().replace("2026-05-31T06:00:00.250Z", date)),
                "{date}"
            );
        }
        for text in ["\\u0026", "\\/", "\\b\\f", "\\ud83c\\udf31", "\\u0000"] {
            assert!(agrees(&usual().replace("tä", text)), "{text}");
        }
        for further in [
            "1",
            "-0.5e+10",
            "\"\\ud800\"",
            "null",
            "true",
            "[]",
            "{}",
            "[1,[{\"a\":[]}],\"x\"]",
            "{\"a\":{\"b\":null},\"a\":false}",
        ] {
            let field = format!("\"further\":{further}");
            assert!(
                agrees(&usual().replace("true}", &format!("true,{field}}}"))),
                "{further}"
            );
            assert!(
                agrees(&usual().replacen('{', &format!("{{{field},"), 1)),
                "{further}"
            );
        }
        let fields: Vec<String> = (0..COLUMNS.len()).map(usual_field).collect();
        for (place, column) in COLUMNS.iter().enumerate() {
            let mut without = fields.clone();
            let field = without.remove(place);
            let absent = format!("{{{}}}", without.join(","));
            assert_eq!(agrees(&absent), column.nullable, "{}", column.name);
            without.insert(0, field);
            assert!(
                agrees(&format!("{{{}}}", without.join(","))),
                "{}",
                column.name
            );
            let null = format!("\"{}\":null", column.name);
            let null = usual().replace(&fields[place], &null);
            assert_eq!(agrees(&null), column.nullable, "{}", column.name);
        }
        let long = usual().replacen("tä", &"x".repeat(u16::MAX.into()), 1);
        assert!(agrees(&long));
    }

    #[test]
    fn what_is_flawed_or_rare_is_handed_back() {
        let nested = format!("true,\"more\":{}{}}}", "[".repeat(33), "]".repeat(33));
        let names: Vec<String> = (0..33).map(|number| format!("\"n{number}\":1")).collect();
        let many = format!("true,{}}}", names.join(","));
        for (from, to) in [
            ("\"tä\\\"xt\\n\",\"batch_name\"", "\"\",\"batch_name\""),
            ("\"batch_name\":\"tä", "\"batch_name\":\"\\ud800"),
            ("\"batch_name\":\"tä", "\"batch_name\":\"\\udc00\\ud800"),
            ("\"batch_name\":\"tä", "\"batch_name\":\"\\u00g0"),
            ("\"batch_name\":\"tä", "\"batch_name\":\"\u{1}"),
            ("\"batch_name\"", "\"batch\\u005fname\""),
            ("05-31", "02-29"),
            ("2026-05-31", "2100-02-29"),
            ("05-31", "06-31"),
            ("05-31", "00-01"),
            ("05-31T06", "05-31T24"),
            ("00.250Z", "00.Z"),
            ("00.250Z", "00.250"),
            ("00.250Z", "00.250+01:00"),
            ("00.250Z", "00.250-00:00"),
            ("06:00:00.250Z", "23:59:60Z"),
            (":12,", ":012,"),
            (":12,", ":12.0,"),
            (":12,", ":-1,"),
            ("\"-87.50\"", "-87.50"),
            ("\"-87.50\"", "\"-87.\""),
            ("\"warnings\":true", "\"warnings\":truee"),
            ("true}", "true,\"more\":1.}"),
            ("true}", "true,\"more\":[1,]}"),
            ("true}", "true,\"more\":{\"a\"}}"),
            ("true}", "true,\"more\":\"\\x\"}"),
            ("true}", "true,\"more\":1,\"more\":1}"),
            ("true}", "true,\"warnings\":true}"),
            ("true}", "true,}"),
            ("true}", &nested),
            ("true}", &many),
        ] {
            let text = usual().replacen(from, to, 1);
            assert_ne!(text, usual(), "{from}");
            assert!(!agrees(&text), "{to}");
        }
        let long = usual().replacen("tä", &"x".repeat(VALUE_LIMIT), 1);
        assert!(!agrees(&long));
        let name = format!("true,\"{}\":1}}", "n".repeat(NAME_LIMIT + 1));
        assert!(!agrees(&usual().replacen("true}", &name, 1)));
    }

    #[test]
    fn whitespace_between_tokens_is_dropped() {
        let text = usual().replacen("true}", "true,\"more\":{\"a b\":[1,{}]}}", 1);
        for text in [usual(), text] {
            for blanks in [" ", "\n", "\t", "\r", "\r\n    "] {
                let spaced = with_blanks(&text, |_| blanks);
                assert!(agrees(&spaced), "{spaced}");
                let (batch, _) = Batch::scan(&Arc::new(spaced), 0).expect("a batch");
                assert_eq!(batch.text(), text);
                assert!(batch.own_size() >= text.len());
            }
            let ends = text.match_indices([',', ':', '}']).map(|(place, _)| place);
            for place in ends.collect::<Vec<_>>() {
                let spaced = with_blanks(&text, |at| if at == place { " " } else { "" });
                assert!(agrees(&spaced), "{spaced}");
            }
        }
        let much = " ".repeat(BLANK_LIMIT + 1);
        assert!(!agrees(&usual().replacen(':', &format!(":{much}"), 1)));
        assert!(agrees(&usual().replacen(
            ':',
            &format!(":{}", &much[1..]),
            1
        )));
        for (from, to) in [
            (":12,", ":1 2,"),
            ("true}", "tr ue}"),
            ("\"batch_id", "\" batch_id"),
        ] {
            assert!(!agrees(&usual().replacen(from, to, 1)), "{to}");
        }
    }

    /// Adds `blanks` before and after each structural character, given its place.
    fn with_blanks<'a>(text: &str, blanks: impl Fn(usize) -> &'a str) -> String {
        let (mut spaced, mut in_string, mut escaped) = (String::new(), false, false);
        for (place, character) in text.char_indices() {
            if in_string {
                in_string = escaped || character != '"';
                escaped = !escaped && character == '\\';
            } else if character == '"' {
                in_string = true;
            } else if "{}[],:".contains(character) {
                let before = if place == 0 { "" } else { blanks(place) };
                let after = if place + 1 == text.len() {
                    ""
                } else {
                    blanks(place)
                };
                spaced.extend([before, character.encode_utf8(&mut [0; 4]), after]);
                continue;
            }
            spaced.push(character);
        }
        spaced
    }

    #[test]
    fn every_character_and_every_escape_is_judged_alike() {
        for character in (0..=255).map(char::from) {
            for text in [
                format!("{character}"),
                format!("\\{character}"),
                format!("\\{character}x"),
            ] {
                agrees(&usual().replacen("tä", &text, 1));
                agrees(&usual().replacen("tä", &format!("seven77{text}"), 1));
            }
            for (from, to) in [
                (":12,", format!(":1{character},")),
                ("-87.50", format!("87.5{character}")),
            ] {
                agrees(&usual().replacen(from, &to, 1));
            }
        }
    }

    #[test]
    fn usual_decimals_are_short() {
        for text in ["0.00", "7.5", "87.50", "100.00", "1234.56"] {
            let padded = format!("{text}\",\"avg_us");
            assert_eq!(
                short_decimal(&padded.as_bytes()[..8]),
                Some(text.len()),
                "{text}"
            );
        }
        for text in [
            "12", ".5", "5.", "-1.5", "1.2.3", "1a.5", "12345.67", "1:5.0", "0.0:",
        ] {
            let padded = format!("{text}\",\"avg_us");
            assert_eq!(short_decimal(&padded.as_bytes()[..8]), None, "{text}");
        }
    }

    #[test]
    fn no_part_of_an_object_is_an_object() {
        let text = usual();
        let cut = (0..text.len()).filter_map(|end| text.get(..end));
        for part in cut {
            assert!(object(part, &mut String::new()).is_none(), "{part}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn both_ways_agree(text in objects()) {
            agrees(&text);
        }

        #[test]
        fn short_decimals_are_decimals(text in "[0-9.\",:\\-]{0,9}|[0-9]{1,3}\\.[0-9]{1,3}\"[ -~]{0,4}|[ -~é]{8}") {
            let text = format!("{text}\",\"avg");
            if let Some(length) = text.as_bytes().get(..8).and_then(short_decimal) {
                prop_assert!(crate::batch::is_number(&text[..length]), "{}", text);
                prop_assert_eq!(text.as_bytes()[length], b'"');
            }
        }

        #[test]
        fn bytes_before_a_special_one_are_counted(text in "[a-zé\"\\\\\u{0}-\u{21}]{0,40}") {
            let slow = text.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\');
            prop_assert_eq!(plain(text.as_bytes()), slow);
        }
    }
}
