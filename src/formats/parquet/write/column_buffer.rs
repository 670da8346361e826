//! Buffers the values of a column until they fill a row group.

use std::borrow::Cow;
use std::ops::Range;

use ::parquet::column::writer::ColumnWriterImpl;
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::writer::SerializedColumnWriter;
use bytes::Bytes;

use crate::batch::{BATCH_ID, Batch, COLUMNS, FieldType, Timestamp};
use crate::formats::record::EXTRA;

/// Rows that are passed to the parquet crate at a time.
const PIECE: usize = 1024;

/// The largest number of 18 digits.
const MOST_HUNDREDTHS: i64 = 999_999_999_999_999_999;

/// The buffered values of one column.
pub(super) struct ColumnBuffer {
    /// `None` for the column of unknown fields.
    pub(super) column: Option<usize>,
    /// Whether each row has a value. Empty if the column is required.
    present: Vec<bool>,
    cells: ColumnValues,
}

/// Values that are not null.
enum ColumnValues {
    /// The bytes of all texts, and where each ends: a group has much less than 4 GiB.
    Texts(Vec<u8>, Vec<u32>),
    Numbers(Vec<i64>),
    Flags(Vec<bool>),
}

impl ColumnBuffer {
    /// Starts with no values.
    pub(super) fn new(column: Option<usize>) -> Self {
        let new = Self {
            column,
            present: Vec::new(),
            cells: ColumnValues::Flags(Vec::new()),
        };
        let cells = match new.kind() {
            FieldType::Text => ColumnValues::Texts(Vec::new(), Vec::new()),
            FieldType::Date | FieldType::Integer | FieldType::Decimal => {
                ColumnValues::Numbers(Vec::new())
            }
            FieldType::Boolean => ColumnValues::Flags(Vec::new()),
        };
        Self { cells, ..new }
    }

    pub(super) fn kind(&self) -> FieldType {
        let column = self.column.map(|column| &COLUMNS[column]);
        column.map_or(FieldType::Text, |column| column.kind)
    }

    pub(super) fn name(&self) -> &'static str {
        self.column.map_or(EXTRA, |column| COLUMNS[column].name)
    }

    /// Only the identifier is required: with `--lenient`, any other field may be null.
    pub(super) fn is_required(&self) -> bool {
        self.column == Some(BATCH_ID)
    }

    /// Adds the value of `batch`; returns its size in bytes. The error is the type of the column, if that cannot store the
    /// value exactly.
    pub(super) fn add(&mut self, batch: &Batch) -> Result<usize, &'static str> {
        let value = match self.column {
            None => batch.extra().map(Cow::Owned),
            Some(BATCH_ID) => Some(batch.id()),
            Some(column) => batch.typed(column),
        };
        let Some(text) = value.as_deref() else {
            return Ok(self.add_level(false));
        };
        let kind = self.kind();
        let size = match &mut self.cells {
            ColumnValues::Texts(bytes, ends) => {
                bytes.extend_from_slice(text.as_bytes());
                ends.push(u32::try_from(bytes.len()).expect("a group that is not full"));
                text.len() + size_of::<usize>()
            }
            ColumnValues::Flags(flags) => {
                flags.push(text == "true");
                size_of::<bool>()
            }
            ColumnValues::Numbers(numbers) => {
                numbers.push(number(text, kind)?);
                size_of::<i64>()
            }
        };
        Ok(size + self.add_level(true))
    }

    fn add_level(&mut self, is_there: bool) -> usize {
        if self.is_required() {
            return 0;
        }
        self.present.push(is_there);
        size_of::<i16>()
    }

    /// Returns which rows of a column of numbers have a value, and the values.
    pub(super) fn numbers(&self) -> Option<(&[bool], &[i64])> {
        match &self.cells {
            ColumnValues::Numbers(numbers) => Some((&self.present, numbers)),
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

    /// Writes the values in the given order of rows, or as received.
    pub(super) fn write(
        mut self,
        column: &mut SerializedColumnWriter<'_>,
        order: Option<&[usize]>,
    ) -> Result<(), ParquetError> {
        let places = order.map(|order| self.reorder(order));
        let place = |number: usize| places.as_ref().map_or(number, |places| places[number]);
        let present = (!self.is_required()).then_some(&self.present[..]);
        match self.cells {
            ColumnValues::Numbers(numbers) => {
                let values = (0..numbers.len()).map(|number| numbers[place(number)]);
                write_pieces::<Int64Type>(column.typed(), values, present)
            }
            ColumnValues::Flags(flags) => {
                let values = (0..flags.len()).map(|number| flags[place(number)]);
                write_pieces::<BoolType>(column.typed(), values, present)
            }
            ColumnValues::Texts(bytes, ends) => {
                let bytes = Bytes::from(bytes);
                let text = |number| ByteArray::from(bytes.slice(span(&ends, place(number))));
                let values = (0..ends.len()).map(text);
                write_pieces::<ByteArrayType>(column.typed(), values, present)
            }
        }
    }

    /// Reorders `present`; returns the positions of the values in the new order.
    fn reorder(&mut self, order: &[usize]) -> Vec<usize> {
        if self.is_required() {
            return order.to_vec();
        }
        let mut values = 0;
        let mut place = |is_there: &bool| {
            let place = values;
            values += usize::from(*is_there);
            place
        };
        let places: Vec<usize> = self.present.iter().map(&mut place).collect();
        let is_there = |row: &&usize| self.present[**row];
        let values = order.iter().filter(is_there).map(|row| places[*row]);
        let values = values.collect();
        self.present = order.iter().map(|row| self.present[*row]).collect();
        values
    }
}

/// Returns the range of a text in the bytes of all texts, which end at `ends`.
fn span(ends: &[u32], place: usize) -> Range<usize> {
    let start = place.checked_sub(1).map_or(0, |before| ends[before]);
    start as usize..ends[place] as usize
}

/// Writes values in pieces: the parquet crate needs several times the size of what it is given.
fn write_pieces<T: DataType>(
    writer: &mut ColumnWriterImpl<'_, T>,
    mut values: impl Iterator<Item = T::T>,
    present: Option<&[bool]>,
) -> Result<(), ParquetError> {
    let mut piece = Vec::with_capacity(PIECE);
    let Some(present) = present else {
        loop {
            piece.clear();
            piece.extend(values.by_ref().take(PIECE));
            if piece.is_empty() {
                return Ok(());
            }
            writer.write_batch(&piece, None, None)?;
        }
    };
    for present in present.chunks(PIECE) {
        let levels: Vec<i16> = present.iter().copied().map(i16::from).collect();
        let count = present.iter().filter(|is_there| **is_there).count();
        piece.clear();
        piece.extend(values.by_ref().take(count));
        writer.write_batch(&piece, Some(&levels), None)?;
    }
    Ok(())
}

/// Returns an integer, a decimal or a date as a number; the error is the type that cannot store it exactly.
fn number(text: &str, kind: FieldType) -> Result<i64, &'static str> {
    match kind {
        FieldType::Integer => text.parse().map_err(|_| "INT64"),
        FieldType::Decimal => hundredths(text).ok_or("DECIMAL(18,2)"),
        _ => {
            let moment = Timestamp::parse(text).and_then(|moment| moment.microseconds());
            moment.ok_or("TIMESTAMP(us)")
        }
    }
}

/// Returns a decimal in hundredths; `None` if that would round it or needs more than 18 digits.
fn hundredths(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let digits = unsigned.trim_start_matches('0');
    let (mut size, mut fraction) = (0_i64, None);
    for byte in digits.bytes() {
        match (byte, &mut fraction) {
            (b'.', None) => fraction = Some(0),
            (b'0', Some(2..)) => {}
            (b'0'..=b'9', places @ (None | Some(..2))) => {
                size = size.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
                if let Some(places) = places {
                    *places += 1;
                }
            }
            _ => return None,
        }
    }
    let size = match fraction.unwrap_or(0) {
        0 => size.checked_mul(100)?,
        1 => size.checked_mul(10)?,
        _ => size,
    };
    if size > MOST_HUNDREDTHS {
        return None;
    }
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
            ("92233720368547758.07", None),
            ("99999999999999999999", None),
            ("1.2.3", None),
            ("1.00.", None),
            ("1a", None),
        ] {
            assert_eq!(hundredths(text), expected, "{text}");
        }
    }

    #[test]
    fn the_columns_of_a_batch_have_no_extra() {
        assert_eq!(find_column(EXTRA), None);
    }
}
