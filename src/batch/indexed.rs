//! [`Batch`]: the text of one batch as received, with an index of its values.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use memchr::memchr;

use super::columns::{ALL_COLUMNS, BATCH_ID, COLUMNS, CREATION_DATE};
use super::json::scan;
use super::timestamp::Timestamp;

/// Positions of the values in the text of a batch, relative to its start.
#[derive(Clone, Debug)]
pub(super) enum Index {
    /// All fields are present and valid, in the order of the interface, without any others.
    Usual([(u16, u16); COLUMNS.len()]),
    Other(Box<GeneralIndex>),
}

/// The index of any other batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GeneralIndex {
    /// Position of each column's value; `None` if absent.
    pub(super) written: [Option<Range<u32>>; COLUMNS.len()],
    /// Positions of names and values of unknown fields.
    pub(super) unknown: Vec<(Range<u32>, Range<u32>)>,
    /// Columns with an invalid value, one bit each.
    pub(super) flawed: u32,
}

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
    /// Reads the batch at `position` in `page`; returns it with its length. `None` if it is incomplete or not
    /// written exactly as the interface shows it.
    pub(crate) fn scan(page: &Arc<String>, position: usize) -> Option<(Self, usize)> {
        let (spans, length) = scan::object(page.as_bytes().get(position..)?)?;
        let object = u32::try_from(position).ok()?..u32::try_from(position + length).ok()?;
        let page = Arc::clone(page);
        let index = Index::Usual(spans);
        Some((
            Self {
                page,
                object,
                index,
            },
            length,
        ))
    }

    /// Returns a copy that does not keep the whole page in memory.
    pub(crate) fn detached(&self) -> Self {
        let page = Arc::new(self.text().to_owned());
        let object = 0..self.object.end - self.object.start;
        let index = self.index.clone();
        Self {
            page,
            object,
            index,
        }
    }

    /// Returns the whole object as received.
    pub(crate) fn text(&self) -> &str {
        &self.page[self.object.start as usize..self.object.end as usize]
    }

    /// Returns the JSON text of `column`; `None` if it is null or absent.
    pub(crate) fn json(&self, column: usize) -> Option<&str> {
        self.member(column).filter(|json| *json != "null")
    }

    /// Returns the JSON text of `column`, including null; `None` if absent.
    pub(crate) fn member(&self, column: usize) -> Option<&str> {
        match &self.index {
            Index::Usual(spans) => {
                let (start, end) = spans[column];
                Some(self.slice(&(u32::from(start)..u32::from(end))))
            }
            Index::Other(other) => other.written[column].as_ref().map(|span| self.slice(span)),
        }
    }

    /// Returns which columns are present, including null ones, one bit each.
    pub(crate) fn columns(&self) -> u32 {
        match &self.index {
            Index::Usual(_) => ALL_COLUMNS,
            Index::Other(other) => (0..COLUMNS.len())
                .filter(|&column| other.written[column].is_some())
                .fold(0, |columns, column| columns | 1 << column),
        }
    }

    /// Returns whether all fields are present and valid, in order, without any others.
    pub(crate) fn is_usual(&self) -> bool {
        matches!(self.index, Index::Usual(_))
    }

    /// Returns `column` as plain text: strings without quotes, other values as received.
    pub(crate) fn plain(&self, column: usize) -> Option<Cow<'_, str>> {
        self.json(column).map(unquote)
    }

    /// Returns the text of `column` without quotes but with escapes. `None` if it is null, or if the batch is
    /// not usual.
    pub(crate) fn inside(&self, column: usize) -> Option<&str> {
        let Index::Usual(spans) = &self.index else {
            return None;
        };
        let (start, end) = spans[column];
        let (start, end) = (u32::from(start), u32::from(end));
        let json = self.slice(&(start..end));
        match json.as_bytes()[0] {
            b'"' => Some(&json[1..json.len() - 1]),
            b'n' => None,
            _ => Some(json),
        }
    }

    /// Like [`Batch::plain`], but `None` if the value is not valid for its column.
    pub(crate) fn typed(&self, column: usize) -> Option<Cow<'_, str>> {
        match &self.index {
            Index::Other(other) if other.flawed & (1 << column) != 0 => None,
            _ => self.plain(column),
        }
    }

    /// Returns the creation date; `None` if it is not valid.
    pub(crate) fn created(&self) -> Option<Timestamp> {
        Timestamp::parse(&self.typed(CREATION_DATE)?)
    }

    /// Returns the id. Every batch has one, except those from [`Batch::read_part`].
    pub(crate) fn id(&self) -> Cow<'_, str> {
        self.plain(BATCH_ID).unwrap_or_default()
    }

    /// Returns the object with its fields in the order of the interface, nullable ones always present, and
    /// unknown ones sorted at the end: the same text for the same content.
    pub(crate) fn canonical(&self) -> Cow<'_, str> {
        if let Index::Usual(_) = self.index {
            return Cow::Borrowed(self.text());
        }
        let known = COLUMNS.iter().enumerate().map(|(position, column)| {
            let value = self.json(position).unwrap_or("null");
            format!("\"{}\":{value}", column.name)
        });
        let unknown = self
            .unknown()
            .map(|(name, value)| format!("{name}:{value}"));
        let mut unknown: Vec<String> = unknown.collect();
        unknown.sort_unstable();
        let fields: Vec<String> = known.chain(unknown).collect();
        Cow::Owned(format!("{{{}}}", fields.join(",")))
    }

    /// Returns JSON names (in quotes) and values of unknown fields.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = (&str, &str)> {
        let unknown = match &self.index {
            Index::Usual(_) => &[][..],
            Index::Other(other) => &other.unknown,
        };
        unknown
            .iter()
            .map(|(name, value)| (self.slice(name), self.slice(value)))
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

/// Returns the content of a JSON string; any other JSON text as it is.
pub(crate) fn unquote(json: &str) -> Cow<'_, str> {
    match json
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        None => Cow::Borrowed(json),
        Some(content) if memchr(b'\\', content.as_bytes()).is_none() => Cow::Borrowed(content),
        // An unpaired surrogate has no text. With `--lenient`, it is kept as written.
        Some(content) => serde_json::from_str(json).map_or(Cow::Borrowed(content), Cow::Owned),
    }
}
