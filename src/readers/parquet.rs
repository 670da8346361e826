//! `parquet`: the columns of an export, or of what others made of one, a few thousand rows at a time.

use std::borrow::Cow;
use std::fs::File;
use std::ops::ControlFlow;

use ::parquet::basic::{Compression, ConvertedType, LogicalType, TimeUnit, Type as Physical};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{ByteArray, DataType};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use ::parquet::file::reader::{FileReader as _, RowGroupReader, SerializedFileReader};
use ::parquet::schema::types::ColumnDescriptor;
use chrono::DateTime;

use super::{Each, Place, Record, Remarks, Unreadable};
use crate::batch::{COLUMNS, Kind, Values, find_column};
use crate::ui;

/// So many rows are taken at a time.
const ROWS: usize = 4096;

/// The column that holds the fields that nobody announced: they are not compared.
const EXTRA: &str = "extra";

pub(super) fn read(file: File, each: &mut Each<'_>) -> Result<Remarks, Unreadable> {
    let reader = contained(|| SerializedFileReader::new(file))?;
    check_packing(reader.metadata())?;
    let (columns, unknown) = columns(reader.metadata().file_metadata().schema_descr().columns())?;
    let bits = columns.iter().fold(0, |all, found| all | 1 << found.column);
    let remarks = Remarks {
        columns: Some(bits),
        unknown,
        ..Remarks::default()
    };
    let mut count = 0;
    for group in 0..reader.num_row_groups() {
        let group = contained(|| reader.get_row_group(group))?;
        let mut rows = Rows::new(group.as_ref(), &columns)?;
        while let Some(length) = rows.next()? {
            for row in 0..length {
                count += 1;
                let record = Record {
                    values: &rows.row(row),
                    columns: bits,
                    sound: false,
                    place: Place::Batch(count),
                };
                if each(&record).map_err(Unreadable::Told)? == ControlFlow::Break(()) {
                    return Ok(remarks);
                }
            }
        }
    }
    Ok(remarks)
}

/// Runs what reads the file: where that is damaged, the parquet crate returns an error, or panics.
fn contained<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, Unreadable> {
    let read = ui::caught(work).ok();
    let read = read.unwrap_or_else(|| Err(ParquetError::General("no sense in it".to_owned())));
    read.map_err(damaged)
}

/// Refuses what others packed in ways that are not unpacked here.
fn check_packing(file: &ParquetMetaData) -> Result<(), Unreadable> {
    let chunks = file.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let mut packings = chunks.map(ColumnChunkMetaData::compression);
    let known =
        |packing: &Compression| matches!(packing, Compression::UNCOMPRESSED | Compression::ZSTD(_));
    match packings.find(|packing| !known(packing)) {
        None => Ok(()),
        Some(packing) => Err(Unreadable::Foreign {
            why: format!("is a Parquet file packed with {packing}, and only zstd can be unpacked"),
            hint: "write it with zstd, or without packing",
        }),
    }
}

fn damaged(error: ParquetError) -> Unreadable {
    let error = match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(error) if error.raw_os_error().is_some() => return Unreadable::Io(*error),
            Ok(error) => ParquetError::from(*error),
            Err(inner) => ParquetError::External(inner),
        },
        other => other,
    };
    broken(format!("it is damaged or cut short: {error}"))
}

fn broken(why: String) -> Unreadable {
    Unreadable::Broken {
        place: None,
        why,
        hint: Some("copy or export it again"),
    }
}

/// A field, and where and how it stands in the file.
struct Found {
    /// Which of all columns of the file.
    leaf: usize,
    column: usize,
    form: Form,
}

/// What the values of a column mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Integer,
    /// So many digits are behind the point.
    Decimal(usize),
    /// So many are a second.
    Instant(i64),
    Boolean,
}

/// Finds the fields of batches among the columns of a file, and names the others.
fn columns<'a>(
    leaves: impl IntoIterator<Item = &'a std::sync::Arc<ColumnDescriptor>>,
) -> Result<(Vec<Found>, Vec<String>), Unreadable> {
    let (mut columns, mut unknown) = (Vec::<Found>::new(), Vec::new());
    for (leaf, descriptor) in leaves.into_iter().enumerate() {
        let name = descriptor.path().string();
        let Some(column) = find_column(&name) else {
            if name != EXTRA {
                unknown.push(name);
            }
            continue;
        };
        if columns.iter().any(|found| found.column == column) {
            return Err(broken(format!("`{name}` is there twice")));
        }
        let form =
            form(descriptor, COLUMNS[column].kind).filter(|_| descriptor.max_rep_level() == 0);
        let form = form.ok_or_else(|| Unreadable::Foreign {
            why: format!("is a Parquet file whose column `{name}` has another type than a batch"),
            hint: "name a file that `trayscan export -f parquet` wrote",
        })?;
        columns.push(Found { leaf, column, form });
    }
    if columns.is_empty() {
        return Err(Unreadable::Foreign {
            why: "is a Parquet file without any field of a batch".to_owned(),
            hint: "name a file that `trayscan export -f parquet` wrote",
        });
    }
    Ok((columns, unknown))
}

/// Tells what the values of a column mean; nothing where that is not what a batch has there.
fn form(descriptor: &ColumnDescriptor, kind: Kind) -> Option<Form> {
    let is_whole = matches!(
        descriptor.physical_type(),
        Physical::INT32 | Physical::INT64
    );
    let logical = descriptor.logical_type_ref();
    match kind {
        Kind::Text => (descriptor.physical_type() == Physical::BYTE_ARRAY).then_some(Form::Text),
        Kind::Boolean => (descriptor.physical_type() == Physical::BOOLEAN).then_some(Form::Boolean),
        Kind::Integer => {
            let plain = matches!(logical, None | Some(LogicalType::Integer(_)));
            (is_whole && plain).then_some(Form::Integer)
        }
        Kind::Decimal => {
            let is_decimal = matches!(logical, Some(LogicalType::Decimal(_)))
                || descriptor.converted_type() == ConvertedType::DECIMAL;
            let scale = usize::try_from(descriptor.type_scale()).ok()?;
            (is_whole && is_decimal).then_some(Form::Decimal(scale))
        }
        Kind::Date => match logical {
            Some(LogicalType::Timestamp(timestamp)) if is_whole => {
                Some(Form::Instant(match timestamp.unit {
                    TimeUnit::MILLIS => 1000,
                    TimeUnit::MICROS => 1_000_000,
                    TimeUnit::NANOS => 1_000_000_000,
                }))
            }
            _ => None,
        },
    }
}

/// Some rows of a group, column by column.
struct Rows<'a> {
    columns: Vec<(&'a Found, ColumnReader)>,
    /// Of each column of a batch, the rows that were taken; nothing where the file has none.
    texts: [Vec<Option<String>>; COLUMNS.len()],
}

impl<'a> Rows<'a> {
    fn new(group: &dyn RowGroupReader, columns: &'a [Found]) -> Result<Self, Unreadable> {
        let reader = |found: &'a Found| {
            let reader = contained(|| group.get_column_reader(found.leaf))?;
            Ok((found, reader))
        };
        Ok(Self {
            columns: columns
                .iter()
                .map(reader)
                .collect::<Result<_, Unreadable>>()?,
            texts: [const { Vec::new() }; COLUMNS.len()],
        })
    }

    /// Takes more rows; tells how many, or nothing at the end of the group.
    fn next(&mut self) -> Result<Option<usize>, Unreadable> {
        let mut length = None;
        for (found, reader) in &mut self.columns {
            let texts = &mut self.texts[found.column];
            texts.clear();
            take(reader, found, texts)?;
            if *length.get_or_insert(texts.len()) != texts.len() {
                let name = COLUMNS[found.column].name;
                return Err(broken(format!(
                    "`{name}` has more or fewer rows than others"
                )));
            }
        }
        Ok(length.filter(|length| *length > 0))
    }

    fn row(&self, row: usize) -> Row<'_> {
        Row { rows: self, row }
    }
}

/// One row, as plain text.
struct Row<'a> {
    rows: &'a Rows<'a>,
    row: usize,
}

impl Values for Row<'_> {
    fn plain(&self, column: usize) -> Option<Cow<'_, str>> {
        let text = self.rows.texts[column].get(self.row)?;
        text.as_deref().map(Cow::Borrowed)
    }
}

/// Takes rows from a column as plain text.
fn take(
    reader: &mut ColumnReader,
    found: &Found,
    texts: &mut Vec<Option<String>>,
) -> Result<(), Unreadable> {
    let name = COLUMNS[found.column].name;
    let number = |number: i64| {
        written(number, found.form)
            .ok_or_else(|| broken(format!("`{name}` has a date that cannot be: {number}")))
    };
    match reader {
        ColumnReader::BoolColumnReader(reader) => {
            values(reader, texts, |flag| Ok(flag.to_string()))
        }
        ColumnReader::Int32ColumnReader(reader) => {
            values(reader, texts, |value| number(i64::from(*value)))
        }
        ColumnReader::Int64ColumnReader(reader) => values(reader, texts, |value| number(*value)),
        ColumnReader::ByteArrayColumnReader(reader) => {
            values(reader, texts, |value: &ByteArray| {
                let text = std::str::from_utf8(value.data());
                text.map(str::to_owned)
                    .map_err(|_| broken(format!("`{name}` is not UTF-8")))
            })
        }
        // Types were looked at before.
        _ => Err(broken(format!(
            "`{name}` has another type than the schema says"
        ))),
    }
}

/// Takes rows from a column of one type.
fn values<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    texts: &mut Vec<Option<String>>,
    text: impl Fn(&T::T) -> Result<String, Unreadable>,
) -> Result<(), Unreadable> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let (rows, found, _) =
        contained(|| reader.read_records(ROWS, Some(&mut levels), None, &mut values))?;
    let mut values = values[..found].iter().map(text);
    if levels.is_empty() {
        for value in values {
            texts.push(Some(value?));
        }
        return Ok(());
    }
    for level in &levels[..rows] {
        texts.push(match level {
            0 => None,
            _ => values.next().transpose()?,
        });
    }
    Ok(())
}

/// Writes a number as what it means; nothing where no date is that far away.
fn written(number: i64, form: Form) -> Option<String> {
    match form {
        Form::Decimal(scale) if scale > 0 => {
            let sign = if number < 0 { "-" } else { "" };
            let digits = format!("{:0width$}", number.unsigned_abs(), width = scale + 1);
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            Some(format!("{sign}{whole}.{fraction}"))
        }
        Form::Instant(parts) => {
            let (second, rest) = (number.div_euclid(parts), number.rem_euclid(parts));
            let moment = DateTime::from_timestamp(second, 0)?;
            let whole = moment.format("%Y-%m-%dT%H:%M:%S");
            if rest == 0 {
                return Some(format!("{whole}Z"));
            }
            let width = parts.ilog10() as usize;
            Some(format!("{whole}.{rest:0width$}Z"))
        }
        _ => Some(number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_over_damaged_data_is_an_error() {
        let read = contained::<()>(|| panic!("what is this"));
        assert!(matches!(read, Err(Unreadable::Broken { .. })));
    }

    #[test]
    fn numbers_are_written_as_what_they_mean() {
        for (number, form, expected) in [
            (8750, Form::Decimal(2), "87.50"),
            (-5, Form::Decimal(2), "-0.05"),
            (i64::MIN, Form::Decimal(18), "-9.223372036854775808"),
            (7, Form::Decimal(0), "7"),
            (-7, Form::Integer, "-7"),
            (0, Form::Instant(1000), "1970-01-01T00:00:00Z"),
            (-1, Form::Instant(1000), "1969-12-31T23:59:59.999Z"),
            (
                1_500_000,
                Form::Instant(1_000_000),
                "1970-01-01T00:00:01.500000Z",
            ),
        ] {
            assert_eq!(written(number, form).as_deref(), Some(expected));
        }
        assert_eq!(written(i64::MAX, Form::Instant(1000)), None);
    }
}
