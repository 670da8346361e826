//! Buffers the values of a column until they fill a row group.

use std::borrow::Cow;
use std::ops::Range;

use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::writer::SerializedColumnWriter;
use bytes::Bytes;

use crate::batch::{BATCH_ID, Batch, COLUMNS, FieldType, Timestamp};

/// The column of fields that the interface does not know.
pub(super) const EXTRA: &str = "extra";

/// Texts that are passed to the parquet crate at a time.
const PIECE: usize = 1024;

/// A value that its column cannot store exactly.
pub(super) struct Inexact {
    pub(super) column: usize,
    /// The type of the column.
    pub(super) into: &'static str,
}

/// The buffered values of one column.
pub(super) struct ColumnBuffer {
    /// `None` for the column of unknown fields.
    pub(super) column: Option<usize>,
    /// One for each row: 1 for a value, 0 for null. Empty if the column is required.
    levels: Vec<i16>,
    cells: ColumnValues,
}

/// Values that are not null.
enum ColumnValues {
    /// The bytes of all texts, and where each ends.
    Texts(Vec<u8>, Vec<usize>),
    Numbers(Vec<i64>),
    Flags(Vec<bool>),
}

impl ColumnBuffer {
    pub(super) fn field(column: usize) -> Self {
        let cells = match COLUMNS[column].kind {
            FieldType::Text => ColumnValues::Texts(Vec::new(), Vec::new()),
            FieldType::Date | FieldType::Integer | FieldType::Decimal => {
                ColumnValues::Numbers(Vec::new())
            }
            FieldType::Boolean => ColumnValues::Flags(Vec::new()),
        };
        Self {
            column: Some(column),
            levels: Vec::new(),
            cells,
        }
    }

    pub(super) fn extra() -> Self {
        Self {
            column: None,
            levels: Vec::new(),
            cells: ColumnValues::Texts(Vec::new(), Vec::new()),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        self.column.map_or(EXTRA, |column| COLUMNS[column].name)
    }

    /// Only the identifier is required: with `--lenient`, any other field may be null.
    pub(super) fn is_required(&self) -> bool {
        self.column == Some(BATCH_ID)
    }

    /// Adds the value of `batch`; returns its size in bytes.
    pub(super) fn add(&mut self, batch: &Batch) -> Result<usize, Inexact> {
        let Some(column) = self.column else {
            let extra = batch.extra();
            return Ok(self.add_text(extra.as_deref()));
        };
        if column == BATCH_ID {
            return Ok(self.add_text(Some(&batch.id())));
        }
        let value = batch.typed(column);
        let value = value.as_deref();
        let inexact = |into| Inexact { column, into };
        let number = match COLUMNS[column].kind {
            FieldType::Text => return Ok(self.add_text(value)),
            FieldType::Boolean => return Ok(self.add_flag(value.map(|text| text == "true"))),
            FieldType::Integer => {
                let number = value.map(str::parse::<i64>).transpose();
                number.map_err(|_| inexact("INT64"))?
            }
            FieldType::Decimal => match value {
                Some(text) => Some(hundredths(text).ok_or_else(|| inexact("DECIMAL(18,2)"))?),
                None => None,
            },
            FieldType::Date => match value {
                Some(text) => {
                    let moment = Timestamp::parse(text).and_then(|moment| moment.microseconds());
                    Some(moment.ok_or_else(|| inexact("TIMESTAMP(us)"))?)
                }
                None => None,
            },
        };
        Ok(self.add_number(number))
    }

    fn add_level(&mut self, is_there: bool) -> usize {
        if self.is_required() {
            return 0;
        }
        self.levels.push(i16::from(is_there));
        size_of::<i16>()
    }

    fn add_text(&mut self, value: Option<&str>) -> usize {
        let level = self.add_level(value.is_some());
        match (&mut self.cells, value) {
            (ColumnValues::Texts(bytes, ends), Some(text)) => {
                bytes.extend_from_slice(text.as_bytes());
                ends.push(bytes.len());
                level + text.len() + size_of::<usize>()
            }
            _ => level,
        }
    }

    fn add_number(&mut self, value: Option<i64>) -> usize {
        let level = self.add_level(value.is_some());
        match (&mut self.cells, value) {
            (ColumnValues::Numbers(numbers), Some(number)) => {
                numbers.push(number);
                level + size_of::<i64>()
            }
            _ => level,
        }
    }

    fn add_flag(&mut self, value: Option<bool>) -> usize {
        let level = self.add_level(value.is_some());
        match (&mut self.cells, value) {
            (ColumnValues::Flags(flags), Some(flag)) => {
                flags.push(flag);
                level + size_of::<bool>()
            }
            _ => level,
        }
    }

    /// Returns the levels and values of a column of numbers.
    pub(super) fn numbers(&self) -> Option<(&[i16], &[i64])> {
        match &self.cells {
            ColumnValues::Numbers(numbers) => Some((&self.levels, numbers)),
            _ => None,
        }
    }

    /// Returns the text at `place` among those that are not null; empty in a column of another type.
    pub(super) fn text(&self, place: usize) -> &[u8] {
        match &self.cells {
            ColumnValues::Texts(bytes, ends) => &bytes[span(ends, place)],
            _ => &[],
        }
    }

    /// Writes and clears the buffer, in the given order of rows or as received.
    pub(super) fn write(
        &mut self,
        column: &mut SerializedColumnWriter<'_>,
        order: Option<&[usize]>,
    ) -> Result<(), ParquetError> {
        let places = order.map(|order| self.reorder(order));
        let levels = (!self.is_required()).then_some(&self.levels[..]);
        match &mut self.cells {
            ColumnValues::Numbers(numbers) => {
                let writer = column.typed::<Int64Type>();
                let values = reordered(numbers, places.as_deref());
                writer.write_batch(&values, levels, None)?;
                numbers.clear();
            }
            ColumnValues::Flags(flags) => {
                let writer = column.typed::<BoolType>();
                let values = reordered(flags, places.as_deref());
                writer.write_batch(&values, levels, None)?;
                flags.clear();
            }
            ColumnValues::Texts(bytes, ends) => {
                let bytes = Bytes::from(std::mem::take(bytes));
                let texts = (0..ends.len()).map(|number| {
                    let place = places.as_ref().map_or(number, |places| places[number]);
                    ByteArray::from(bytes.slice(span(ends, place)))
                });
                write_texts(column, texts, levels)?;
                ends.clear();
            }
        }
        self.levels.clear();
        Ok(())
    }

    /// Reorders the levels; returns the positions of the values in the new order.
    fn reorder(&mut self, order: &[usize]) -> Vec<usize> {
        if self.is_required() {
            return order.to_vec();
        }
        let mut values = 0;
        let mut place = |level: &i16| {
            let place = values;
            values += usize::from(*level == 1);
            place
        };
        let places: Vec<usize> = self.levels.iter().map(&mut place).collect();
        let is_there = |row: &&usize| self.levels[**row] == 1;
        let values = order.iter().filter(is_there).map(|row| places[*row]);
        let values = values.collect();
        self.levels = order.iter().map(|row| self.levels[*row]).collect();
        values
    }
}

/// Returns the values in the order of `places`, or unchanged.
fn reordered<'a, T: Copy>(values: &'a [T], places: Option<&[usize]>) -> Cow<'a, [T]> {
    match places {
        Some(places) => places.iter().map(|place| values[*place]).collect(),
        None => Cow::Borrowed(values),
    }
}

/// Returns the range of a text in the bytes of all texts, which end at `ends`.
fn span(ends: &[usize], place: usize) -> Range<usize> {
    let start = place.checked_sub(1).map_or(0, |before| ends[before]);
    start..ends[place]
}

/// Writes texts in pieces: the parquet crate needs several times the size of what it is given.
fn write_texts(
    column: &mut SerializedColumnWriter<'_>,
    mut texts: impl Iterator<Item = ByteArray>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let writer = column.typed::<ByteArrayType>();
    let Some(levels) = levels else {
        loop {
            let piece: Vec<ByteArray> = texts.by_ref().take(PIECE).collect();
            if piece.is_empty() {
                return Ok(());
            }
            writer.write_batch(&piece, None, None)?;
        }
    };
    for levels in levels.chunks(PIECE) {
        let count = levels.iter().filter(|level| **level == 1).count();
        let piece: Vec<ByteArray> = texts.by_ref().take(count).collect();
        writer.write_batch(&piece, Some(levels), None)?;
    }
    Ok(())
}

/// Returns a decimal in hundredths; `None` if that would round it or needs more than 18 digits.
fn hundredths(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    if whole.len() > 16 || fraction.len() > 2 {
        return None;
    }
    let padding = &b"00"[fraction.len()..];
    let digits = whole.bytes().chain(fraction.bytes());
    let size = digits
        .chain(padding.iter().copied())
        .try_fold(0, |number, digit| {
            let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
            Some(number * 10 + digit)
        })?;
    Some(if unsigned.len() < text.len() {
        -size
    } else {
        size
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::find_column;

    #[test]
    fn hundredths_are_exact_or_none() {
        for (text, expected) in [
            ("87.50", Some(8750)),
            ("87.5", Some(8750)),
            ("-0.05", Some(-5)),
            ("-12", Some(-1200)),
            ("-0.00", Some(0)),
            ("0", Some(0)),
            ("007.10000", Some(710)),
            ("9999999999999999.99", Some(999_999_999_999_999_999)),
            ("-9999999999999999.99", Some(-999_999_999_999_999_999)),
            ("10000000000000000", None),
            ("0.001", None),
            ("1.005", None),
        ] {
            assert_eq!(hundredths(text), expected, "{text}");
        }
    }

    #[test]
    fn the_columns_of_a_batch_have_no_extra() {
        assert_eq!(find_column(EXTRA), None);
    }
}
