//! Where the values of a batch are in its text.

use std::ops::Range;

use crate::batch::{ALL_COLUMNS, COLUMNS};

/// Positions of values, each as start and end.
pub(in crate::batch) type Spans = [(u16, u16); COLUMNS.len()];
pub(in crate::batch) type WideSpans = [(u32, u32); COLUMNS.len()];

/// Positions of the values in the text of a batch, relative to its start.
#[derive(Clone, Debug)]
pub(in crate::batch) enum Index {
    /// All fields are present and valid, in the order of the interface, without any others.
    Usual {
        spans: Spans,
        has_escapes: bool,
    },
    /// Valid fields in any order, without any others, and the columns that are present, one bit each.
    Known {
        spans: Spans,
        columns: u32,
        has_escapes: bool,
    },
    Other(GeneralIndex),
}

impl Index {
    /// Returns the position of the value of `column`; `None` if absent.
    #[inline]
    pub(in crate::batch) fn span(&self, column: usize) -> Option<Range<u32>> {
        let (start, end) = match self {
            Self::Usual { spans, .. } => spans[column],
            _ if self.columns() & (1 << column) == 0 => return None,
            Self::Known { spans, .. } => spans[column],
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
            Self::Usual { .. } => ALL_COLUMNS,
            Self::Known { columns, .. } => *columns,
            Self::Other(other) => other.0[0].0,
        }
    }

    /// Returns which columns have an invalid value, one bit each.
    #[inline]
    pub(in crate::batch) fn flawed(&self) -> u32 {
        match self {
            Self::Usual { .. } | Self::Known { .. } => 0,
            Self::Other(other) => other.0[0].1,
        }
    }

    /// Returns the positions of the values of a batch with a general index, if each value follows its name in the usual
    /// spelling.
    pub(in crate::batch) fn compact_spans(&self) -> Option<&WideSpans> {
        match self {
            Self::Other(other) if other.0[1].1 & COMPACT != 0 => other.0[FLAGS..].first_chunk(),
            _ => None,
        }
    }

    /// Returns whether it is known that all values are valid, that no string has an escape, and that there are no
    /// unknown fields.
    #[inline]
    pub(in crate::batch) fn is_plain(&self) -> bool {
        match self {
            Self::Usual { has_escapes, .. } | Self::Known { has_escapes, .. } => !has_escapes,
            Self::Other(_) => false,
        }
    }

    /// Returns whether it is known that no string has an escape, those in unknown fields included.
    #[inline]
    pub(in crate::batch) fn is_unescaped(&self) -> bool {
        match self {
            Self::Other(other) => other.0[1].1 & UNESCAPED != 0,
            _ => self.is_plain(),
        }
    }

    /// Returns the positions of names and values of unknown fields.
    pub(in crate::batch) fn unknown(&self) -> impl Iterator<Item = (Range<u32>, Range<u32>)> {
        let spans = match self {
            Self::Usual { .. } | Self::Known { .. } => &[],
            Self::Other(other) => &other.0[FLAGS + COLUMNS.len()..],
        };
        let pairs = spans.as_chunks().0.iter();
        pairs.map(|[name, value]| (name.0..name.1, value.0..value.1))
    }
}

/// The index of any other batch, in one piece of memory: flags for each column, one bit each (present, invalid,
/// unclear), and flags of the batch; the position of each column's value; and positions of names and values of unknown fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GeneralIndex(Vec<(u32, u32)>);

/// The number of pairs that contain the flags.
const FLAGS: usize = 2;
/// Flags of a batch: each value follows its name in the usual spelling, and no string has an escape.
const COMPACT: u32 = 1;
const UNESCAPED: u32 = 2;

impl GeneralIndex {
    /// Creates an index of valid values in the memory of this one, which is no longer needed. `unknown` has a name
    /// and a value for each unknown field.
    pub(in crate::batch) fn replace(
        mut self,
        spans: &WideSpans,
        columns: u32,
        unknown: &[(u32, u32)],
    ) -> Self {
        let all = &mut self.0;
        all.clear();
        all.reserve_exact(FLAGS + spans.len() + unknown.len());
        all.extend([(columns, 0), (0, 0)]);
        all.extend_from_slice(spans);
        all.extend_from_slice(unknown);
        self
    }

    /// Marks a batch in which each value follows its name in the usual spelling.
    pub(in crate::batch) fn compact(mut self, has_escapes: bool) -> Self {
        self.0[1].1 = if has_escapes {
            COMPACT
        } else {
            COMPACT | UNESCAPED
        };
        self
    }

    /// Marks columns with an invalid value, and those with an escape although they are not text, one bit each.
    pub(in crate::batch) fn with_flaws(mut self, flawed: u32, escaped: u32) -> Self {
        self.0[0].1 = flawed;
        self.0[1].0 = flawed | escaped;
        self
    }

    /// Returns the position of the value of `column`; `None` if it is absent or unclear.
    #[inline]
    pub(in crate::batch) fn valid_span(&self, column: usize) -> Option<(u32, u32)> {
        let flags = self.0.first_chunk::<FLAGS>()?;
        let clear = flags[0].0 & !flags[1].0;
        let span = *self.0.get(FLAGS + column)?;
        (clear & (1 << column) != 0).then_some(span)
    }

    /// Returns the memory that it uses.
    pub(in crate::batch) fn size(&self) -> usize {
        self.0.capacity() * size_of::<(u32, u32)>()
    }
}
