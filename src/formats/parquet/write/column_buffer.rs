//! Buffers the values of a column until they fill a row group.

use std::borrow::Cow;

use ::parquet::column::writer::ColumnWriterImpl;
use ::parquet::data_type::{BoolType, ByteArrayType, DataType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::writer::SerializedColumnWriter;
use bytes::Bytes;

use super::chunks::{CHUNK, ChunkPool};
use super::packed_numbers::PackedNumbers;
use super::text_store::TextStore;
use crate::batch::{BATCH_ID, Batch, COLUMNS, FieldType, Timestamp};
use crate::formats::record::EXTRA;

/// Rows that are passed to the parquet crate at a time: it needs several times the size of what it is given.
const PIECE: usize = 1024;

/// The largest number of 18 digits.
const MOST_HUNDREDTHS: i64 = 999_999_999_999_999_999;

/// The buffered values of one column.
pub(super) struct ColumnBuffer {
    /// `None` for the column of unknown fields.
    pub(super) column: Option<usize>,
    /// Numbers, booleans as 0 or 1, or the codes of texts.
    numbers: PackedNumbers,
    texts: TextStore,
}

impl ColumnBuffer {
    /// Starts with no values.
    pub(super) fn new(column: Option<usize>) -> Self {
        Self {
            column,
            numbers: PackedNumbers::default(),
            texts: TextStore::default(),
        }
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

    /// Adds the value of `batch`; returns its size, in bytes, before it is packed. The error is the type of the
    /// column, if that cannot store the value exactly.
    pub(super) fn add(
        &mut self,
        batch: &Batch,
        pool: &mut ChunkPool,
    ) -> Result<usize, &'static str> {
        let value = match self.column {
            None => batch.extra().map(Cow::Owned),
            Some(BATCH_ID) => Some(batch.id()),
            Some(column) => batch.typed(column),
        };
        let (number, size) = match value.as_deref() {
            None => (None, 0),
            Some(text) => match self.kind() {
                FieldType::Text => {
                    let code = self.texts.add(text.as_bytes(), pool);
                    (Some(code), text.len() + size_of::<usize>())
                }
                FieldType::Boolean => (Some(i64::from(text == "true")), size_of::<bool>()),
                kind => (Some(number(text, kind)?), size_of::<i64>()),
            },
        };
        self.numbers.push(number, pool);
        let level = if self.is_required() {
            0
        } else {
            size_of::<i16>()
        };
        Ok(size + level)
    }

    /// Returns the number of each row.
    pub(super) fn numbers(&self) -> impl Iterator<Item = Option<i64>> {
        self.numbers.iter()
    }

    /// Returns the text of each row.
    pub(super) fn texts(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let spans = self.texts.spans(self.numbers.iter());
        spans.map(|span| Some(self.texts.text(span?)))
    }

    /// Writes the rows in the given order. Returns the memory of the values, for the next group.
    pub(super) fn write(
        self,
        column: &mut SerializedColumnWriter<'_>,
        order: &[u32],
    ) -> Result<Vec<Bytes>, ParquetError> {
        let is_required = self.is_required();
        let (kind, numbers) = (self.kind(), self.numbers);
        let mut chunks = Vec::new();
        match kind {
            FieldType::Text => {
                let spans: Vec<_> = self.texts.spans(numbers.iter()).collect();
                chunks = self.texts.into_chunks();
                let rows = |row: u32| {
                    let span = spans[row as usize]?;
                    Some(chunks[span.chunk as usize].slice(span.range()).into())
                };
                write_rows::<ByteArrayType>(column.typed(), order, is_required, rows)?;
            }
            FieldType::Boolean => {
                let flags: Vec<_> = numbers.iter().map(|flag| Some(flag? != 0)).collect();
                let rows = |row: u32| flags[row as usize];
                write_rows::<BoolType>(column.typed(), order, is_required, rows)?;
            }
            FieldType::Date | FieldType::Integer | FieldType::Decimal => {
                let unpacked: Vec<_> = numbers.iter().collect();
                let rows = |row: u32| unpacked[row as usize];
                write_rows::<Int64Type>(column.typed(), order, is_required, rows)?;
            }
        }
        chunks.retain(|chunk| chunk.len() == CHUNK);
        chunks.extend(numbers.into_chunks());
        Ok(chunks)
    }
}

/// Writes the values of the rows in pieces.
fn write_rows<T: DataType>(
    writer: &mut ColumnWriterImpl<'_, T>,
    order: &[u32],
    is_required: bool,
    value: impl Fn(u32) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let mut values = Vec::with_capacity(PIECE);
    let mut levels = Vec::with_capacity(PIECE);
    for rows in order.chunks(PIECE) {
        values.clear();
        levels.clear();
        for row in rows {
            let value = value(*row);
            levels.push(i16::from(value.is_some()));
            if let Some(value) = value {
                values.push(value);
            }
        }
        let levels = (!is_required).then_some(&levels[..]);
        writer.write_batch(&values, levels, None)?;
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
