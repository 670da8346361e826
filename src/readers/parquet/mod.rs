//! `parquet`: the columns of an export, or of what others made of one, a few thousand rows at a time.

// What values mean.
mod form;

// What pages take.
mod pages;

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::ControlFlow;

use ::parquet::basic::Compression;
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{AsBytes as _, ByteArray, DataType};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use ::parquet::file::reader::{FileReader as _, RowGroupReader, SerializedFileReader};
use ::parquet::schema::types::ColumnDescriptor;

use super::{Claim, Each, Place, Record, Remarks, Unreadable, version};
use crate::batch::{COLUMNS, Values, find_column};
use crate::ui;
use form::{Form, form, whole, written};
use pages::Refused;

/// So many rows are taken at a time.
const ROWS: usize = 4096;

/// The column that holds the fields that nobody announced: they are not compared.
const EXTRA: &str = "extra";

/// The longest description of a file: what is read of it takes many times its size.
const FOOTER: u32 = 16 << 20;
/// The longest text of a batch.
const TEXT: usize = 16 << 20;

pub(super) fn read(file: File, each: &mut Each<'_>) -> Result<Remarks, Unreadable> {
    check_footer(&file)?;
    let again = file.try_clone()?;
    let reader = contained(|| SerializedFileReader::new(file))?;
    check_packing(reader.metadata())?;
    let (columns, unknown) = columns(reader.metadata().file_metadata().schema_descr().columns())?;
    let bits = columns.iter().fold(0, |all, found| all | 1 << found.column);
    let remarks = Remarks {
        columns: Some(bits),
        unknown,
        claim: claim(reader.metadata()),
        ..Remarks::default()
    };
    let mut count = 0;
    for group in 0..reader.num_row_groups() {
        let leaves = columns.iter().map(|found| found.leaf);
        pages::check(&again, reader.metadata().row_group(group), leaves).map_err(refused)?;
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

/// Refuses a file whose description is longer than that of any export.
fn check_footer(mut file: &File) -> Result<(), Unreadable> {
    let mut end = [0; 4];
    // One that is too short is met again.
    if file.seek(SeekFrom::End(-8)).is_ok() {
        file.read_exact(&mut end)?;
    }
    file.rewind()?;
    if u32::from_le_bytes(end) > FOOTER {
        return Err(broken(format!(
            "it is damaged or cut short: its description takes more than {} MiB",
            FOOTER >> 20
        )));
    }
    Ok(())
}

/// Reads what the file says of itself.
fn claim(file: &ParquetMetaData) -> Option<Claim> {
    let facts = file.file_metadata().key_value_metadata()?;
    let fact = |key: &str| {
        let found = facts.iter().find(|fact| fact.key == key);
        found.and_then(|fact| fact.value.clone())
    };
    Some(Claim {
        batches: fact("trayscan.batches").and_then(|count| count.parse().ok()),
        digest_version: version(fact("trayscan.digest_version").as_deref()),
        set_digest: fact("trayscan.set_digest")?,
        unknown_fields_digest: fact("trayscan.unknown_fields_digest"),
    })
}

fn refused(refused: Refused) -> Unreadable {
    match refused {
        Refused::Io(error) => Unreadable::Io(error),
        Refused::Broken(why) => broken(format!("it is damaged or cut short: {why}")),
        Refused::Foreign(why) => Unreadable::Foreign {
            why: format!("is a Parquet file that {why}, which cannot be read"),
            hint: "write it with plain texts or dictionaries: version 1 of the pages",
        },
    }
}

/// Refuses what others packed in ways that are not unpacked here.
fn check_packing(file: &ParquetMetaData) -> Result<(), Unreadable> {
    let chunks = file.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let mut packings = chunks.map(ColumnChunkMetaData::compression);
    let known = |packing: &Compression| {
        matches!(
            packing,
            Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_)
        )
    };
    match packings.find(|packing| !known(packing)) {
        None => Ok(()),
        Some(packing) => Err(Unreadable::Foreign {
            why: format!(
                "is a Parquet file packed with {packing}, and only zstd and snappy can be unpacked"
            ),
            hint: "write it with zstd or snappy, or without packing",
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

/// Some rows of a group, column by column.
struct Rows<'a> {
    columns: Vec<(&'a Found, ColumnReader)>,
    /// Of each column of a batch, the rows that were taken; nothing where the file has none.
    texts: [Vec<Option<Cell>>; COLUMNS.len()],
}

/// A value.
enum Cell {
    /// As it stands in the page, or in the dictionary that many rows share.
    Text(ByteArray),
    /// Written as the service would.
    Written(String),
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
        Some(match text.as_ref()? {
            Cell::Text(bytes) => String::from_utf8_lossy(bytes.data()),
            Cell::Written(text) => Cow::Borrowed(text),
        })
    }
}

/// Takes rows from a column as plain text.
fn take(
    reader: &mut ColumnReader,
    found: &Found,
    texts: &mut Vec<Option<Cell>>,
) -> Result<(), Unreadable> {
    let name = COLUMNS[found.column].name;
    let number = |number: i128| {
        let written = written(number, found.form).map(Cell::Written);
        written.ok_or_else(|| broken(format!("`{name}` has a date that cannot be: {number}")))
    };
    let decimal = |bytes: &[u8]| {
        let whole = whole(bytes);
        number(whole.ok_or_else(|| broken(format!("`{name}` has a number past all digits")))?)
    };
    match reader {
        ColumnReader::BoolColumnReader(reader) => {
            values(reader, texts, |flag| Ok(Cell::Written(flag.to_string())))
        }
        ColumnReader::Int32ColumnReader(reader) => {
            values(reader, texts, |value| number(i128::from(*value)))
        }
        ColumnReader::Int64ColumnReader(reader) => {
            values(reader, texts, |value| number(i128::from(*value)))
        }
        ColumnReader::Int96ColumnReader(reader) => {
            values(reader, texts, |value| number(i128::from(value.to_nanos())))
        }
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            values(reader, texts, |value| decimal(value.as_bytes()))
        }
        ColumnReader::ByteArrayColumnReader(reader) if found.form != Form::Text => {
            values(reader, texts, |value: &ByteArray| decimal(value.data()))
        }
        ColumnReader::ByteArrayColumnReader(reader) => {
            values(reader, texts, |value: &ByteArray| {
                if value.len() > TEXT {
                    let limit = TEXT >> 20;
                    return Err(broken(format!("`{name}` has more than {limit} MiB")));
                }
                match std::str::from_utf8(value.data()) {
                    Ok(_) => Ok(Cell::Text(value.clone())),
                    Err(_) => Err(broken(format!("`{name}` is not UTF-8"))),
                }
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
    texts: &mut Vec<Option<Cell>>,
    text: impl Fn(&T::T) -> Result<Cell, Unreadable>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_over_damaged_data_is_an_error() {
        let read = contained::<()>(|| panic!("what is this"));
        assert!(matches!(read, Err(Unreadable::Broken { .. })));
    }
}
