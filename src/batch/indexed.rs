//! [`Batch`]: the text of one batch as received, with an index of its values.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use memchr::memchr;

use super::columns::{BATCH_ID, COLUMNS, CREATION_DATE, FieldType, NULLABLE_COLUMNS};
use super::json::index::Index;
use super::json::names::OPENINGS;
use super::json::pieces::Pieces;
use super::json::scan::BatchScanner;
use super::json::strings::{few_escapes, unquote};
use super::timestamp::Timestamp;

/// One batch: its text as received, and an index of its values.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    /// The text that contains the batch: a whole page, or the batch alone.
    pub(super) page: Arc<String>,
    /// The position of the object: in one line, without whitespace between tokens, otherwise as received.
    pub(super) object: Range<u32>,
    pub(super) index: Index,
}

impl Batch {
    /// Reads the batch at `position` in `page`; returns it with its length there. `None` if it is incomplete,
    /// flawed or rare: see [`Batch::read`].
    pub(crate) fn scan(page: &Arc<String>, position: usize) -> Option<(Self, usize)> {
        let mut scanner = BatchScanner::default();
        let found = scanner.object(page.get(position..)?)?;
        let batch = if found.is_compacted {
            let object = offsets(0..scanner.compact.len())?;
            Self::new(Arc::new(scanner.compact.take()), object, found.index)
        } else {
            let object = offsets(position..position + found.length)?;
            Self::new(Arc::clone(page), object, found.index)
        };
        Some((batch, found.length))
    }

    /// Returns the batch at `object` in `page`.
    pub(super) fn new(page: Arc<String>, object: Range<u32>, index: Index) -> Self {
        Self {
            page,
            object,
            index,
        }
    }

    /// Returns the memory that only this batch uses.
    pub(super) fn own_size(&self) -> usize {
        let text = match Arc::strong_count(&self.page) {
            1 => self.page.capacity(),
            _ => 0,
        };
        let index = match &self.index {
            Index::Usual { .. } | Index::Known { .. } => 0,
            Index::Other(other) => other.size(),
        };
        text + index
    }

    /// Returns the whole object as received.
    pub(crate) fn text(&self) -> &str {
        &self.page[self.object.start as usize..self.object.end as usize]
    }

    /// Returns the whole object and what follows it, so that short values can be copied in blocks.
    pub(crate) fn source(&self) -> &[u8] {
        &self.page.as_bytes()[self.object.start as usize..]
    }

    /// Returns the JSON text of `column`; `None` if it is null or absent.
    pub(crate) fn json(&self, column: usize) -> Option<&str> {
        self.member(column).filter(|json| *json != "null")
    }

    /// Returns the JSON text of `column`, including null; `None` if absent.
    pub(crate) fn member(&self, column: usize) -> Option<&str> {
        self.index.span(column).map(|span| self.slice(&span))
    }

    /// Returns which columns are present, including null ones, one bit each.
    pub(crate) fn columns(&self) -> u32 {
        self.index.columns()
    }

    /// Returns which nullable fields are absent, one bit each.
    pub(crate) fn absent(&self) -> u32 {
        NULLABLE_COLUMNS & !self.columns()
    }

    /// Returns whether all values are valid, and no required one is absent.
    pub(crate) fn is_valid(&self) -> bool {
        self.index.flawed() == 0
    }

    /// Returns `column` as plain text: strings without quotes, other values as received.
    pub(crate) fn plain(&self, column: usize) -> Option<Cow<'_, str>> {
        if self.index.is_plain() {
            return self.inside(column).map(Cow::Borrowed);
        }
        self.json(column).map(unquote)
    }

    /// Returns the text of `column` without quotes; only text may have escapes. `None` if the value is null or
    /// needs a closer look.
    pub(crate) fn inside(&self, column: usize) -> Option<&str> {
        let json = &self.text()[self.valid_span(column)?];
        match json.as_bytes()[0] {
            b'"' => Some(&json[1..json.len() - 1]),
            b'n' => None,
            _ => Some(json),
        }
    }

    /// Returns the position of the JSON text of `column` in [`Batch::text`]; only text may have escapes. `None` if the
    /// value is absent or needs a closer look.
    #[allow(clippy::inline_always, reason = "it is called for each cell")]
    #[inline(always)]
    pub(crate) fn valid_span(&self, column: usize) -> Option<Range<usize>> {
        match &self.index {
            Index::Usual { spans, .. } => {
                let (start, end) = spans[column];
                Some(start.into()..end.into())
            }
            Index::Known { spans, columns, .. } => {
                let (start, end) = spans[column];
                (columns & (1 << column) != 0).then(|| start.into()..end.into())
            }
            Index::Other(other) => {
                let (start, end) = other.valid_span(column)?;
                Some(start as usize..end as usize)
            }
        }
    }

    /// Like [`Batch::plain`], but `None` if the value is not valid for its column.
    pub(crate) fn typed(&self, column: usize) -> Option<Cow<'_, str>> {
        if COLUMNS[column].kind != FieldType::Text
            && let Some(text) = self.inside(column)
        {
            return Some(Cow::Borrowed(text));
        }
        let is_valid = self.index.flawed() & (1 << column) == 0;
        is_valid.then(|| self.plain(column)).flatten()
    }

    /// Returns the creation date; `None` if it is not valid.
    pub(crate) fn created(&self) -> Option<Timestamp> {
        Timestamp::parse(&self.typed(CREATION_DATE)?)
    }

    /// Returns the id. Every batch has one, except those from [`Batch::read_part`].
    pub(crate) fn id(&self) -> Cow<'_, str> {
        self.plain(BATCH_ID).unwrap_or_default()
    }

    /// Passes the id to `hash`.
    pub(super) fn id_hash<T>(&self, hash: impl Fn(&[u8]) -> T) -> T {
        let span = self.valid_span(BATCH_ID);
        match span.filter(|_| self.index.is_unescaped()) {
            // Without quotes.
            Some(span) => hash(&self.source()[span.start + 1..span.end - 1]),
            None => hash(self.id().as_bytes()),
        }
    }

    /// Returns the object with its fields in the order of the interface, nullable ones always present, and
    /// unknown ones sorted at the end, with as few escapes as possible: the same text for the same content.
    pub(crate) fn canonical(&self) -> String {
        let mut pieces = Pieces::default();
        let known = str::from_utf8(self.known_part(&mut pieces)).expect("parts of a text");
        let mut text = few_escapes(known).into_owned();
        let unknown = self.unknown();
        let unknown = unknown.map(|(name, value)| (few_escapes(name), few_escapes(value)));
        let mut unknown: Vec<(Cow<'_, str>, Cow<'_, str>)> = unknown.collect();
        unknown.sort_unstable();
        for (name, value) in unknown {
            for part in [",", &*name, ":", &*value] {
                text.push_str(part);
            }
        }
        text.push('}');
        text
    }

    /// Returns the object with only its known fields, as in [`Batch::canonical`], but without the last brace, and
    /// with all escapes. It is put together in `pieces`, unless it is a part of the batch.
    fn known_part<'a>(&'a self, pieces: &'a mut Pieces) -> &'a [u8] {
        let text = self.source();
        if let Index::Usual { .. } = &self.index {
            return &text[..self.object.len() - 1];
        }
        let length = self.object.len();
        match &self.index {
            Index::Known { spans, columns, .. } => {
                write_compact(pieces, text, length, spans, *columns);
            }
            index => match index.compact_spans() {
                Some(spans) => write_compact(pieces, text, length, spans, index.columns()),
                None => self.write_known(pieces),
            },
        }
        pieces.as_bytes()
    }

    /// Writes the known fields in the order of the interface, absent ones as null.
    fn write_known(&self, pieces: &mut Pieces) {
        pieces.truncate(0);
        for (column, opening) in OPENINGS.iter().enumerate() {
            pieces.push(&opening.bytes, opening.length);
            let value = self.member(column).unwrap_or("null");
            pieces.push_any(value.as_bytes());
        }
    }

    /// Returns a hash of the content: the same for batches with the same canonical form. `pieces` is memory that
    /// is used again.
    pub(super) fn content_hash(&self, hash: impl Fn(&[u8]) -> u64, pieces: &mut Pieces) -> u64 {
        let text = &self.page.as_bytes()[self.object.start as usize..self.object.end as usize];
        let is_unescaped = self.index.is_unescaped();
        if is_unescaped && let Index::Usual { .. } = self.index {
            // Without the last brace.
            return hash(&text[..text.len() - 1]);
        }
        if is_unescaped || memchr(b'\\', text).is_none() {
            return self.sum(&hash, pieces);
        }
        self.sum(
            |json| {
                let json = str::from_utf8(json).expect("parts of a text");
                hash(few_escapes(json).as_bytes())
            },
            pieces,
        )
    }

    /// Returns the sum of the hashes of the known part and each unknown field. It does not depend on their order.
    fn sum(&self, hash: impl Fn(&[u8]) -> u64, pieces: &mut Pieces) -> u64 {
        let text = self.source();
        let known = hash(self.known_part(pieces));
        let unknown = self.index.unknown();
        let unknown = unknown.map(|(name, value)| &text[name.start as usize..value.end as usize]);
        unknown.fold(known, |sum, field| sum.wrapping_add(hash(field)))
    }

    /// Returns JSON names (in quotes) and values of unknown fields.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = (&str, &str)> {
        let unknown = self.index.unknown();
        unknown.map(|(name, value)| (self.slice(&name), self.slice(&value)))
    }

    /// Returns the JSON names of unknown fields as bytes, which are quickly compared.
    pub(crate) fn unknown_names(&self) -> impl Iterator<Item = &[u8]> {
        let (text, unknown) = (self.source(), self.index.unknown());
        unknown.map(|(name, _)| &text[name.start as usize..name.end as usize])
    }

    /// Returns the unknown fields as one JSON object; `None` if there are none.
    pub(crate) fn extra(&self) -> Option<String> {
        let fields: Vec<String> = self
            .unknown()
            .map(|(name, value)| format!("{name}:{value}"))
            .collect();
        (!fields.is_empty()).then(|| format!("{{{}}}", fields.join(",")))
    }

    pub(super) fn slice(&self, span: &Range<u32>) -> &str {
        let start = self.object.start;
        &self.page[(start + span.start) as usize..(start + span.end) as usize]
    }
}

/// Returns positions in a page; `None` if the page is too large.
pub(super) fn offsets(positions: Range<usize>) -> Option<Range<u32>> {
    Some(positions.start.try_into().ok()?..positions.end.try_into().ok()?)
}

/// Writes the known fields of an object in the order of the interface, absent ones as null. `text` begins with the
/// object, which has `length` bytes; each value follows its name in the usual spelling. Fields that are in the right order
/// are copied together.
fn write_compact<T: Copy + Into<u32>>(
    pieces: &mut Pieces,
    text: &[u8],
    length: usize,
    spans: &[(T, T); COLUMNS.len()],
    columns: u32,
) {
    pieces.truncate(0);
    pieces.reserve(length + ABSENT_LENGTH);
    let mut free = pieces.free();
    let size = free.len();
    let mut copied = 0..0;
    for (column, (opening, (start, end))) in OPENINGS.iter().zip(spans).enumerate() {
        let (start, end) = ((*start).into() as usize, (*end).into() as usize);
        let name = start.wrapping_sub(opening.length);
        if name == copied.end {
            copied.end = end;
            continue;
        }
        free = write_fields(free, text, &copied);
        copied = name..end;
        if columns & (1 << column) == 0 {
            free = write(free, &opening.bytes, opening.length);
            free = write(free, b"null", 4);
            copied = length..length;
        }
    }
    let rest = write_fields(free, text, &copied).len();
    pieces.extend(size - rest);
    // The first field follows a brace.
    pieces.set(0, b'{');
}

/// The length of all fields if they are absent, at most.
const ABSENT_LENGTH: usize = COLUMNS.len() * 36 + BLOCK;

/// Writes fields with the text before them, after other fields; returns the rest of the memory.
#[allow(clippy::inline_always, reason = "there are two calls")]
#[inline(always)]
fn write_fields<'a>(free: &'a mut [u8], text: &[u8], fields: &Range<usize>) -> &'a mut [u8] {
    let length = fields.len();
    if length == 0 {
        return free;
    }
    write(free, &text[fields.start..], length);
    free[0] = b',';
    &mut free[length..]
}

/// Writes the first `length` bytes of `source`; returns the rest of the memory. If possible, a block is copied at once.
#[allow(clippy::inline_always, reason = "it is called for each piece")]
#[inline(always)]
fn write<'a>(free: &'a mut [u8], source: &[u8], length: usize) -> &'a mut [u8] {
    match (free.first_chunk_mut::<BLOCK>(), source.first_chunk()) {
        (Some(to), Some(from)) if length <= BLOCK => *to = *from,
        _ => free[..length].copy_from_slice(&source[..length]),
    }
    &mut free[length..]
}

/// Bytes that are copied at a time.
const BLOCK: usize = 64;
