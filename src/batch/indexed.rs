//! [`Batch`]: the text of one batch as received, with an index of its values.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use memchr::memchr;

use super::columns::{ALL_COLUMNS, BATCH_ID, COLUMNS, CREATION_DATE};
use super::json::scan;
use super::timestamp::Timestamp;

/// Where the values of a batch stand in its text, counted from its start.
#[derive(Clone, Debug)]
pub(super) enum Index {
    /// All fields are there, in the order of the interface, nothing else, and nothing is wrong.
    Usual([(u16, u16); COLUMNS.len()]),
    Other(Box<GeneralIndex>),
}

/// The index of a batch that may have anything in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GeneralIndex {
    /// Where each column's value stands; nothing where the service wrote none.
    pub(super) written: [Option<Range<u32>>; COLUMNS.len()],
    /// Names and values of the fields that the interface does not know.
    pub(super) unknown: Vec<(Range<u32>, Range<u32>)>,
    /// Columns whose value breaks the interface, one bit each.
    pub(super) flawed: u32,
}

/// One batch.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    /// What came together with it, or its text alone.
    pub(super) page: Arc<String>,
    /// The object in it: on one line, without blanks between its parts, otherwise as received.
    pub(super) object: Range<u32>,
    pub(super) index: Index,
}

impl Batch {
    /// Reads the batch that begins at `place` in `page`, and tells how long it is; nothing where it is
    /// not written just as the interface shows it, or not all there.
    pub(crate) fn scan(page: &Arc<String>, place: usize) -> Option<(Self, usize)> {
        let (spans, length) = scan::object(page.as_bytes().get(place..)?)?;
        let object = u32::try_from(place).ok()?..u32::try_from(place + length).ok()?;
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

    /// Returns the batch alone, without holding on to what came together with it.
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

    /// Returns the JSON text of `column`; nothing where it is null.
    pub(crate) fn json(&self, column: usize) -> Option<&str> {
        self.member(column).filter(|json| *json != "null")
    }

    /// Returns what the service wrote for `column`, null too; nothing where it wrote nothing.
    pub(crate) fn member(&self, column: usize) -> Option<&str> {
        match &self.index {
            Index::Usual(spans) => {
                let (start, end) = spans[column];
                Some(self.part(&(u32::from(start)..u32::from(end))))
            }
            Index::Other(other) => other.written[column].as_ref().map(|span| self.part(span)),
        }
    }

    /// Returns which columns are there, null ones too, one bit each.
    pub(crate) fn columns(&self) -> u32 {
        match &self.index {
            Index::Usual(_) => ALL_COLUMNS,
            Index::Other(other) => (0..COLUMNS.len())
                .filter(|&column| other.written[column].is_some())
                .fold(0, |columns, column| columns | 1 << column),
        }
    }

    /// Tells whether all fields are there, in order, nothing else, and nothing is wrong with any.
    pub(crate) fn is_usual(&self) -> bool {
        matches!(self.index, Index::Usual(_))
    }

    /// Returns `column` as plain text: strings without their quotes, the rest as received.
    pub(crate) fn plain(&self, column: usize) -> Option<Cow<'_, str>> {
        self.json(column).map(unquote)
    }

    /// Returns the text of `column` between its quotes, escapes and all, or as it is where it has none;
    /// nothing where it is null, or the batch is unusual.
    pub(crate) fn inside(&self, column: usize) -> Option<&str> {
        let Index::Usual(spans) = &self.index else {
            return None;
        };
        let (start, end) = spans[column];
        let (start, end) = (u32::from(start), u32::from(end));
        let json = self.part(&(start..end));
        match json.as_bytes()[0] {
            b'"' => Some(&json[1..json.len() - 1]),
            b'n' => None,
            _ => Some(json),
        }
    }

    /// Like [`Batch::plain`], but nothing where the value is not what its column holds.
    pub(crate) fn typed(&self, column: usize) -> Option<Cow<'_, str>> {
        match &self.index {
            Index::Other(other) if other.flawed & (1 << column) != 0 => None,
            _ => self.plain(column),
        }
    }

    /// Returns when the batch was created; nothing where that is not known.
    pub(crate) fn created(&self) -> Option<Timestamp> {
        Timestamp::parse(&self.typed(CREATION_DATE)?)
    }

    /// Returns the identifier. Only a batch that has one is ever made, but for [`Batch::read_part`].
    pub(crate) fn id(&self) -> Cow<'_, str> {
        self.plain(BATCH_ID).unwrap_or_default()
    }

    /// Returns the object with its fields in the order of the interface, those that may be null always
    /// there, and others behind them: the same text for the same content.
    pub(crate) fn canonical(&self) -> Cow<'_, str> {
        if let Index::Usual(_) = self.index {
            return Cow::Borrowed(self.text());
        }
        let known = COLUMNS.iter().enumerate().map(|(place, column)| {
            let value = self.json(place).unwrap_or("null");
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

    /// Returns JSON names (in quotes) and values of the fields that the interface does not know.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = (&str, &str)> {
        let unknown = match &self.index {
            Index::Usual(_) => &[][..],
            Index::Other(other) => &other.unknown,
        };
        unknown
            .iter()
            .map(|(name, value)| (self.part(name), self.part(value)))
    }

    /// Returns the fields that the interface does not know as one JSON object; nothing where there are none.
    pub(crate) fn extra(&self) -> Option<String> {
        let fields: Vec<String> = self
            .unknown()
            .map(|(name, value)| format!("{name}:{value}"))
            .collect();
        (!fields.is_empty()).then(|| format!("{{{}}}", fields.join(",")))
    }

    pub(super) fn part(&self, span: &Range<u32>) -> &str {
        let start = self.object.start;
        &self.page[(start + span.start) as usize..(start + span.end) as usize]
    }
}

/// Returns what a JSON string says; any other JSON text as it is.
pub(crate) fn unquote(json: &str) -> Cow<'_, str> {
    match json
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        None => Cow::Borrowed(json),
        Some(inside) if memchr(b'\\', inside.as_bytes()).is_none() => Cow::Borrowed(inside),
        // Half of a surrogate pair says nothing; with `--lenient` it is carried as it was written.
        Some(inside) => serde_json::from_str(json).map_or(Cow::Borrowed(inside), Cow::Owned),
    }
}
