//! `parquet`: typed columns, for engines that load and skip.
//!
//! Values are held column by column until they make a row group; each group goes to the output as a
//! whole, so that memory follows the size of a group and not that of the export. What a column cannot
//! hold exactly is refused, never rounded.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use ::parquet::basic::{
    Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel,
};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::{ColumnPath, Type};
use bytes::Bytes;

use super::{BatchWriter, Facts, Notes, Output};
use crate::batch::{BATCH_ID, Batch, COLUMNS, CREATION_DATE, Kind, Moment, Values};
use crate::digest::SetDigest;
use crate::error::{self, Failure};
use crate::select::Fields;
use crate::ui;

/// The column of fields that nobody announced.
const EXTRA: &str = "extra";

/// A row group ends at so many rows, the number that DuckDB takes at once, or at so many bytes held.
const GROUP_ROWS: usize = 122_880;
const GROUP_BYTES: usize = 48 << 20;

/// So many texts are handed over at a time.
const PIECE: usize = 1024;

/// DECIMAL(18,2): all that 64 bits hold.
const PRECISION: i32 = 18;
const SCALE: i32 = 2;

pub(super) struct Parquet {
    writer: SerializedFileWriter<Through>,
    columns: Vec<Held>,
    rows: usize,
    /// Bytes held.
    size: usize,
    digest: SetDigest,
    facts: Vec<(&'static str, String)>,
}

impl Parquet {
    pub(super) fn new(
        output: Output,
        fields: &Fields,
        about: &Facts,
        extracted: String,
    ) -> Result<Self, Failure> {
        let mut columns: Vec<Held> = fields.columns.iter().copied().map(Held::field).collect();
        if !fields.named {
            columns.push(Held::extra());
        }
        let types: Result<Vec<_>, ParquetError> = columns.iter().map(Held::describe).collect();
        let schema = types.and_then(|types| {
            Type::group_type_builder("batches")
                .with_fields(types)
                .build()
        });
        let writer = schema.and_then(|schema| {
            let properties = Arc::new(properties(&columns));
            SerializedFileWriter::new(Through(Some(output)), Arc::new(schema), properties)
        });
        let mut facts = vec![
            ("trayscan.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("trayscan.range", about.range.clone()),
            ("trayscan.extracted", extracted),
        ];
        let source = Some(about.source.clone()).filter(|source| !source.is_empty());
        facts.extend(source.map(|source| ("trayscan.base_url", source)));
        Ok(Self {
            writer: writer.map_err(|error| Failure::from_output(io_error(error)))?,
            columns,
            rows: 0,
            size: 0,
            digest: SetDigest::new(&fields.columns),
            facts,
        })
    }

    /// Writes what is held as one row group.
    fn end_group(&mut self) -> Result<(), ParquetError> {
        self.size = 0;
        if std::mem::take(&mut self.rows) == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for held in &mut self.columns {
            let column = group.next_column()?;
            // There is one for each column of the schema, which was made from the same list.
            let mut column = column.ok_or_else(|| ParquetError::IndexOutOfBound(0, 0))?;
            held.write(&mut column)?;
            column.close()?;
        }
        group.close().map(drop)
    }
}

impl BatchWriter for Parquet {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        for held in &mut self.columns {
            match held.add(batch) {
                Ok(size) => self.size += size,
                Err(Inexact { column, into }) => return Err(refused(batch, column, into)),
            }
        }
        self.digest.add(&Typed(batch));
        self.rows += 1;
        if self.rows >= GROUP_ROWS || self.size >= GROUP_BYTES {
            self.end_group().map_err(io_error)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<(Output, Notes)> {
        self.end_group().map_err(io_error)?;
        let mut facts = std::mem::take(&mut self.facts);
        facts.push(("trayscan.batches", self.digest.count().to_string()));
        facts.push(("trayscan.set_digest", self.digest.finish()));
        for (key, value) in facts {
            let fact = KeyValue::new(key.to_owned(), value);
            self.writer.append_key_value_metadata(fact);
        }
        self.writer.finish().map_err(io_error)?;
        self.writer.flush()?;
        let output = self.writer.inner_mut().0.take();
        let output = output.ok_or_else(|| io::Error::other("the output was taken away"))?;
        Ok((output, Notes::default()))
    }
}

/// What the file holds of a batch: what is not as its column should be is null.
struct Typed<'a>(&'a Batch);

impl Values for Typed<'_> {
    fn plain(&self, column: usize) -> Option<Cow<'_, str>> {
        self.0.typed(column)
    }
}

/// The output, until it is taken out again.
struct Through(Option<Output>);

impl Write for Through {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Some(output) => output.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Output::flush)
    }
}

/// Returns what the output said, where it was the output.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

fn properties(columns: &[Held]) -> WriterProperties {
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(zstd);
    // Where no two values are alike, a dictionary is only in the way.
    let unlike = columns.iter().map(Held::name).filter(|name| {
        let dates = COLUMNS[CREATION_DATE].name;
        matches!(*name, "batch_id" | "analysis_link" | EXTRA) || *name == dates
    });
    let plain = |properties: ::parquet::file::properties::WriterPropertiesBuilder, name: &str| {
        properties.set_column_dictionary_enabled(ColumnPath::from(name), false)
    };
    unlike.fold(properties, plain).build()
}

/// A value that its column cannot hold as it is.
struct Inexact {
    column: usize,
    /// What cannot hold it.
    into: &'static str,
}

fn refused(batch: &Batch, column: usize, into: &str) -> io::Error {
    let value = batch.plain(column).unwrap_or_default();
    let refused = Failure::new(
        error::Kind::Protocol,
        format!(
            "batch `{}`: `{}` is {}, which {into} cannot hold exactly",
            ui::brief(&batch.id()),
            COLUMNS[column].name,
            ui::brief(&value)
        ),
    )
    .hint("leave the field out with `--fields`, or write json or csv, which keep every digit");
    io::Error::other(refused)
}

/// The values of one column that wait for their row group.
struct Held {
    /// Nothing for the fields that nobody announced.
    column: Option<usize>,
    /// One for each row: 1 for a value, 0 for null. None where there is no null.
    levels: Vec<i16>,
    cells: Cells,
}

/// Values that are not null.
enum Cells {
    /// All texts, and where each ends.
    Texts(Vec<u8>, Vec<usize>),
    Numbers(Vec<i64>),
    Flags(Vec<bool>),
}

impl Held {
    fn field(column: usize) -> Self {
        let cells = match COLUMNS[column].kind {
            Kind::Text => Cells::Texts(Vec::new(), Vec::new()),
            Kind::Date | Kind::Integer | Kind::Decimal => Cells::Numbers(Vec::new()),
            Kind::Boolean => Cells::Flags(Vec::new()),
        };
        Self {
            column: Some(column),
            levels: Vec::new(),
            cells,
        }
    }

    fn extra() -> Self {
        Self {
            column: None,
            levels: Vec::new(),
            cells: Cells::Texts(Vec::new(), Vec::new()),
        }
    }

    fn name(&self) -> &'static str {
        self.column.map_or(EXTRA, |column| COLUMNS[column].name)
    }

    /// Only the identifier is always there: with `--lenient`, anything else may be null.
    fn is_required(&self) -> bool {
        self.column == Some(BATCH_ID)
    }

    fn describe(&self) -> Result<Arc<Type>, ParquetError> {
        let kind = self
            .column
            .map_or(Kind::Text, |column| COLUMNS[column].kind);
        let (physical, logical) = match kind {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Integer => (Physical::INT64, None),
            Kind::Decimal => {
                let logical = LogicalType::decimal(SCALE, PRECISION);
                (Physical::INT64, Some(logical))
            }
            Kind::Date => {
                let logical = LogicalType::timestamp(true, TimeUnit::MILLIS);
                (Physical::INT64, Some(logical))
            }
            Kind::Boolean => (Physical::BOOLEAN, None),
        };
        let builder = Type::primitive_type_builder(self.name(), physical)
            .with_logical_type(logical)
            .with_repetition(if self.is_required() {
                Repetition::REQUIRED
            } else {
                Repetition::OPTIONAL
            });
        let builder = if kind == Kind::Decimal {
            builder.with_precision(PRECISION).with_scale(SCALE)
        } else {
            builder
        };
        builder.build().map(Arc::new)
    }

    /// Adds what `batch` has here; tells how many bytes that takes.
    fn add(&mut self, batch: &Batch) -> Result<usize, Inexact> {
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
            Kind::Text => return Ok(self.add_text(value)),
            Kind::Boolean => return Ok(self.add_flag(value.map(|text| text == "true"))),
            Kind::Integer => {
                let number = value.map(str::parse::<i64>).transpose();
                number.map_err(|_| inexact("INT64"))?
            }
            Kind::Decimal => match value {
                Some(text) => Some(hundredths(text).ok_or_else(|| inexact("DECIMAL(18,2)"))?),
                None => None,
            },
            Kind::Date => match value {
                Some(text) => {
                    let moment = Moment::parse(text).and_then(|moment| moment.milliseconds());
                    Some(moment.ok_or_else(|| inexact("TIMESTAMP(ms)"))?)
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
            (Cells::Texts(bytes, ends), Some(text)) => {
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
            (Cells::Numbers(numbers), Some(number)) => {
                numbers.push(number);
                level + size_of::<i64>()
            }
            _ => level,
        }
    }

    fn add_flag(&mut self, value: Option<bool>) -> usize {
        let level = self.add_level(value.is_some());
        match (&mut self.cells, value) {
            (Cells::Flags(flags), Some(flag)) => {
                flags.push(flag);
                level + size_of::<bool>()
            }
            _ => level,
        }
    }

    /// Writes what is held, and holds it no longer.
    fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = (!self.is_required()).then_some(&self.levels[..]);
        match &mut self.cells {
            Cells::Numbers(numbers) => {
                let writer = column.typed::<Int64Type>();
                writer.write_batch(numbers, levels, None)?;
                numbers.clear();
            }
            Cells::Flags(flags) => {
                let writer = column.typed::<BoolType>();
                writer.write_batch(flags, levels, None)?;
                flags.clear();
            }
            Cells::Texts(bytes, ends) => {
                let bytes = Bytes::from(std::mem::take(bytes));
                write_texts(column, &bytes, ends, levels)?;
                ends.clear();
            }
        }
        self.levels.clear();
        Ok(())
    }
}

/// Writes texts piece by piece: each that is handed over takes several times its own size.
fn write_texts(
    column: &mut SerializedColumnWriter<'_>,
    bytes: &Bytes,
    ends: &[usize],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let writer = column.typed::<ByteArrayType>();
    let mut start = 0;
    let mut texts = ends.iter().map(|&end| {
        let text = bytes.slice(start..end);
        start = end;
        ByteArray::from(text)
    });
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

/// Reads a decimal number as so many hundredths; nothing where that would round it, or has more than 18
/// digits.
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
