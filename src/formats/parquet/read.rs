//! `parquet`: the columns of an export, or of what others made of one, a few thousand rows at a time.

// The description of the file: its footer, and the Thrift structs that it consists of.
mod footer;
mod layout;
mod node;
mod thrift;

// What the file says about its values, and whether that is true.
mod audit;
mod filter;
mod index;
mod pages;
mod statistics;

// Memory limits for pages, and the meaning of values.
mod delta;
mod guard;
mod logical_type;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fs::File;
use std::ops::ControlFlow;
use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::column::page::PageReader as _;
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use ::parquet::data_type::{AsBytes, ByteArray, DataType};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use ::parquet::file::reader::{FileReader as _, RowGroupReader, SerializedFileReader};
use ::parquet::schema::types::ColumnDescriptor;

use crate::batch::{ALL_COLUMNS, COLUMNS, FieldType, Values, find_column};
use crate::formats::record::{
    Each, EmbeddedDigest, FileInfo, ReadError, Record, RecordPlace, version,
};
use crate::terminal;
use audit::{Claims, ColumnAudit, Sorted};
use footer::Footer;
use guard::{PageGuard, Room};
use logical_type::{ColumnType, form, whole, written};
use node::Refused;

/// So many rows are taken at a time.
const ROWS: usize = 4096;

/// The column that holds the fields that the interface does not know, and its place behind those of a batch.
const EXTRA: &str = "extra";
const EXTRA_PLACE: usize = COLUMNS.len();

/// The longest text of a batch.
const TEXT: usize = 16 << 20;

pub(crate) fn read(file: File, each: &mut Each<'_>) -> Result<FileInfo, ReadError> {
    let footer = Footer::read(&file).map_err(refused)?;
    let again = file.try_clone()?;
    let reader = contained(|| SerializedFileReader::new(file))?;
    // One that is too short was met by the crate.
    let footer = footer.ok_or_else(|| broken("it is damaged or cut short".to_owned()))?;
    check_packing(reader.metadata())?;
    let schema = reader.metadata().file_metadata().schema_descr();
    footer.check(schema).map_err(refused)?;
    let (columns, unknown) = columns(schema.columns())?;
    let fields = columns.iter().filter_map(|leaf| leaf.field);
    let all = fields.fold(0, |all, (column, _)| all | 1 << column);
    let bits = all & ALL_COLUMNS;
    let info = FileInfo {
        columns: Some(bits),
        unknown,
        keeps_unknown_fields: all != bits,
        claim: claim(reader.metadata()),
        ..FileInfo::default()
    };
    let mut count = 0;
    for place in 0..reader.num_row_groups() {
        let group = contained(|| reader.get_row_group(place))?;
        let mut rows = ParquetRows::new(&footer, &again, (place, group.as_ref()), &columns)?;
        while let Some(length) = rows.next()? {
            for row in 0..length {
                count += 1;
                let record = Record {
                    values: &rows.row(row),
                    columns: bits,
                    sound: false,
                    place: RecordPlace::Batch(count),
                };
                if each(&record).map_err(ReadError::Aborted)? == ControlFlow::Break(()) {
                    return Ok(info);
                }
            }
        }
        rows.finish(footer.rows(place))?;
    }
    Ok(info)
}

/// Runs what reads the file: where that is damaged, the parquet crate returns an error, or panics.
fn contained<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ReadError> {
    let read = terminal::caught(work).ok();
    let read = read.unwrap_or_else(|| Err(ParquetError::General("no sense in it".to_owned())));
    read.map_err(damaged)
}

/// Reads what the file says of itself.
fn claim(file: &ParquetMetaData) -> Option<EmbeddedDigest> {
    let facts = file.file_metadata().key_value_metadata()?;
    let fact = |key: &str| {
        let found = facts.iter().find(|fact| fact.key == key);
        found.and_then(|fact| fact.value.clone())
    };
    Some(EmbeddedDigest {
        batches: fact("trayscan.batches").and_then(|count| count.parse().ok()),
        digest_version: version(fact("trayscan.digest_version").as_deref()),
        set_digest: fact("trayscan.set_digest")?,
        unknown_fields_digest: fact("trayscan.unknown_fields_digest"),
    })
}

fn refused(refused: Refused) -> ReadError {
    match refused {
        Refused::Io(error) => ReadError::Io(error),
        Refused::Broken(why) => broken(format!("it is damaged or cut short: {why}")),
        Refused::Foreign(why) => ReadError::Foreign {
            why: format!("is a Parquet file that {why}, which cannot be read"),
            hint: "write it again with the defaults of pyarrow, DuckDB or Spark",
        },
    }
}

/// Refuses what others packed in ways that are not unpacked here.
fn check_packing(file: &ParquetMetaData) -> Result<(), ReadError> {
    let chunks = file.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let mut packings = chunks.map(ColumnChunkMetaData::compression);
    let known = |packing: &Compression| {
        matches!(
            packing,
            Compression::UNCOMPRESSED
                | Compression::SNAPPY
                | Compression::GZIP(_)
                | Compression::ZSTD(_)
        )
    };
    match packings.find(|packing| !known(packing)) {
        None => Ok(()),
        Some(packing) => Err(ReadError::Foreign {
            why: format!(
                "is a Parquet file compressed with {packing}, and only gzip, snappy and zstd can be read"
            ),
            hint: "write it with zstd, snappy or gzip, or uncompressed",
        }),
    }
}

fn damaged(error: ParquetError) -> ReadError {
    let error = match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(error) if error.raw_os_error().is_some() => return ReadError::Io(*error),
            Ok(error) => ParquetError::from(*error),
            Err(inner) => ParquetError::External(inner),
        },
        other => other,
    };
    broken(format!("it is damaged or cut short: {error}"))
}

fn broken(why: String) -> ReadError {
    ReadError::Broken {
        place: None,
        why,
        hint: Some("copy or export it again"),
    }
}

/// A column of the file.
struct Leaf {
    descriptor: Arc<ColumnDescriptor>,
    /// The field that it holds, and how.
    field: Option<(usize, ColumnType)>,
}

/// Finds the fields of batches among the columns of a file, and names the others.
fn columns(leaves: &[Arc<ColumnDescriptor>]) -> Result<(Vec<Leaf>, Vec<String>), ReadError> {
    let (mut columns, mut unknown) = (Vec::<Leaf>::new(), Vec::new());
    for descriptor in leaves {
        let name = descriptor.path().string();
        let descriptor = Arc::clone(descriptor);
        let is_extra = name == EXTRA && is_text(&descriptor);
        let Some(column) = find_column(&name).or(is_extra.then_some(EXTRA_PLACE)) else {
            unknown.push(name);
            columns.push(Leaf {
                descriptor,
                field: None,
            });
            continue;
        };
        let is_it = |leaf: &Leaf| leaf.field.is_some_and(|(known, _)| known == column);
        if columns.iter().any(is_it) {
            return Err(broken(format!("`{name}` appears twice")));
        }
        let kind = COLUMNS
            .get(column)
            .map_or(FieldType::Text, |column| column.kind);
        let form = form(&descriptor, kind).filter(|_| descriptor.max_rep_level() == 0);
        let form = form.ok_or_else(|| ReadError::Foreign {
            why: format!("is a Parquet file whose column `{name}` has another type than a batch"),
            hint: "name a file that `trayscan export -f parquet` wrote",
        })?;
        columns.push(Leaf {
            descriptor,
            field: Some((column, form)),
        });
    }
    let is_batch = |leaf: &Leaf| leaf.field.is_some_and(|(column, _)| column < EXTRA_PLACE);
    if !columns.iter().any(is_batch) {
        return Err(ReadError::Foreign {
            why: "is a Parquet file without any field of a batch".to_owned(),
            hint: "name a file that `trayscan export -f parquet` wrote",
        });
    }
    Ok((columns, unknown))
}

/// Returns whether a column holds one text to a row.
fn is_text(descriptor: &ColumnDescriptor) -> bool {
    descriptor.max_rep_level() == 0 && form(descriptor, FieldType::Text).is_some()
}

/// Some rows of a group, column by column.
struct ParquetRows<'a> {
    columns: Vec<OpenColumn<'a>>,
    /// The columns that rows are said to be sorted by, the first one first.
    sorted_by: Vec<usize>,
    /// Of each column of a batch, the rows that were taken; nothing where the file has none.
    texts: [Vec<Option<ParquetValue>>; COLUMNS.len() + 1],
}

/// A column of a row group that is being read.
struct OpenColumn<'a> {
    leaf: &'a Leaf,
    reader: ColumnReader,
    audit: ColumnAudit,
}

/// A value.
enum ParquetValue {
    /// As it stands in the page, or in the dictionary that many rows share.
    Text(ByteArray),
    /// Written as the service would.
    Written(String),
}

impl<'a> ParquetRows<'a> {
    fn new(
        footer: &Footer,
        file: &File,
        (place, group): (usize, &dyn RowGroupReader),
        leaves: &'a [Leaf],
    ) -> Result<Self, ReadError> {
        let mut room = Room::new();
        let mut columns = Vec::new();
        let (keys, sorted): (Vec<usize>, Vec<_>) = footer.sorted_by(place).into_iter().unzip();
        let mut sorted: Vec<Option<Sorted>> = sorted.into_iter().map(Some).collect();
        let mut sorted_by = vec![None; keys.len()];
        for (number, leaf) in leaves.iter().enumerate() {
            let descriptor = &leaf.descriptor;
            let chunk = group.metadata().column(number);
            let pages = pages::read(file, chunk, footer.start, &mut room).map_err(refused)?;
            let index = footer.indexes(file, (place, number), descriptor, &pages);
            let index = index.map_err(refused)?;
            let page_reader = contained(|| group.get_column_page_reader(number))?;
            let mut page_reader = PageGuard::new(page_reader, descriptor);
            if descriptor.max_rep_level() > 0 {
                // No field of a batch: it is only unpacked.
                while contained(|| page_reader.get_next_page())?.is_some() {}
                continue;
            }
            let filter = footer.filter(file, (place, number), &mut room);
            let key = keys.iter().position(|leaf| *leaf == number);
            if let Some(key) = key {
                sorted_by[key] = Some(columns.len());
            }
            let claims = Claims {
                column: footer.claimed(place, number),
                pages,
                index,
                filter: filter.map_err(refused)?,
                sorted: key.and_then(|key| sorted[key].take()),
            };
            columns.push(OpenColumn {
                leaf,
                reader: get_column_reader(Arc::clone(descriptor), Box::new(page_reader)),
                audit: ColumnAudit::new(descriptor, claims),
            });
        }
        Ok(Self {
            columns,
            // Where one is not read, nothing is known of those behind it.
            sorted_by: sorted_by.into_iter().map_while(|column| column).collect(),
            texts: [const { Vec::new() }; COLUMNS.len() + 1],
        })
    }

    /// Takes more rows; tells how many, or nothing at the end of the group.
    fn next(&mut self) -> Result<Option<usize>, ReadError> {
        let mut length = None;
        for column in &mut self.columns {
            let rows = match column.leaf.field {
                None => skip(column)?,
                Some((field, form)) => {
                    let texts = &mut self.texts[field];
                    texts.clear();
                    take(column, form, texts)?;
                    texts.len()
                }
            };
            if *length.get_or_insert(rows) != rows {
                let name = column.leaf.descriptor.path().string();
                return Err(broken(format!(
                    "`{name}` has more or fewer rows than others"
                )));
            }
        }
        let length = length.unwrap_or_default();
        self.check_order(length)?;
        Ok(Some(length).filter(|length| *length > 0))
    }

    /// Checks that the rows that were taken are sorted as the file says.
    fn check_order(&mut self, length: usize) -> Result<(), ReadError> {
        let mut undecided: Vec<usize> = (0..length).collect();
        for column in &self.sorted_by {
            let audit = &mut self.columns[*column].audit;
            let steps = audit.take_steps().unwrap_or_default();
            let step = |row: &usize| steps.get(*row).copied().unwrap_or(Ordering::Less);
            if undecided.iter().any(|row| step(row).is_gt()) {
                let name = audit.name();
                return Err(altered(format!(
                    "the rows are not sorted by `{name}`, as the file says"
                )));
            }
            undecided.retain(|row| step(row).is_eq());
        }
        Ok(())
    }

    /// Ends the group, which must have `rows` rows.
    fn finish(self, rows: u64) -> Result<(), ReadError> {
        for column in self.columns {
            column.audit.finish(rows).map_err(altered)?;
        }
        Ok(())
    }

    fn row(&self, row: usize) -> ParquetRow<'_> {
        ParquetRow { rows: self, row }
    }
}

/// One row, as plain text.
struct ParquetRow<'a> {
    rows: &'a ParquetRows<'a>,
    row: usize,
}

impl Values for ParquetRow<'_> {
    fn plain(&self, column: usize) -> Option<Cow<'_, str>> {
        let text = self.rows.texts[column].get(self.row)?;
        Some(match text.as_ref()? {
            ParquetValue::Text(bytes) => String::from_utf8_lossy(bytes.data()),
            ParquetValue::Written(text) => Cow::Borrowed(text),
        })
    }

    fn unknown_fields(&self) -> Option<Cow<'_, str>> {
        self.plain(EXTRA_PLACE)
    }
}

/// Takes rows from a column as plain text.
fn take(
    column: &mut OpenColumn<'_>,
    form: ColumnType,
    texts: &mut Vec<Option<ParquetValue>>,
) -> Result<(), ReadError> {
    let name = column.leaf.descriptor.name();
    let audit = &mut column.audit;
    let number = |number: i128| {
        let written = written(number, form).map(ParquetValue::Written);
        written.ok_or_else(|| broken(format!("`{name}` has a date that cannot be: {number}")))
    };
    let decimal = |bytes: &[u8]| {
        let whole = whole(bytes);
        number(whole.ok_or_else(|| broken(format!("`{name}` has a number past all digits")))?)
    };
    match &mut column.reader {
        ColumnReader::BoolColumnReader(reader) => values(reader, audit, |flag| {
            texts.push(flag.map(|flag| ParquetValue::Written(flag.to_string())));
            Ok(())
        }),
        ColumnReader::Int32ColumnReader(reader) => values(reader, audit, |value| {
            texts.push(value.map(|value| number(i128::from(*value))).transpose()?);
            Ok(())
        }),
        ColumnReader::Int64ColumnReader(reader) => values(reader, audit, |value| {
            texts.push(value.map(|value| number(i128::from(*value))).transpose()?);
            Ok(())
        }),
        ColumnReader::Int96ColumnReader(reader) => values(reader, audit, |value| {
            let value = value.map(|value| number(i128::from(value.to_nanos())));
            texts.push(value.transpose()?);
            Ok(())
        }),
        ColumnReader::FixedLenByteArrayColumnReader(reader) => values(reader, audit, |value| {
            texts.push(value.map(|value| decimal(value.as_bytes())).transpose()?);
            Ok(())
        }),
        ColumnReader::ByteArrayColumnReader(reader) if form != ColumnType::Text => {
            values(reader, audit, |value| {
                texts.push(value.map(|value| decimal(value.data())).transpose()?);
                Ok(())
            })
        }
        ColumnReader::ByteArrayColumnReader(reader) => values(reader, audit, |value| {
            texts.push(value.map(|value| text(name, value)).transpose()?);
            Ok(())
        }),
        // Types were looked at before.
        _ => Err(broken(format!(
            "`{name}` has another type than the schema says"
        ))),
    }
    .map(drop)
}

fn text(name: &str, value: &ByteArray) -> Result<ParquetValue, ReadError> {
    if value.len() > TEXT {
        let limit = TEXT >> 20;
        return Err(broken(format!("`{name}` has more than {limit} MiB")));
    }
    match std::str::from_utf8(value.data()) {
        Ok(_) => Ok(ParquetValue::Text(value.clone())),
        Err(_) => Err(broken(format!("`{name}` is not UTF-8"))),
    }
}

/// Reads rows of a column that is no field, only to check it; tells how many.
fn skip(column: &mut OpenColumn<'_>) -> Result<usize, ReadError> {
    let audit = &mut column.audit;
    match &mut column.reader {
        ColumnReader::BoolColumnReader(reader) => values(reader, audit, |_| Ok(())),
        ColumnReader::Int32ColumnReader(reader) => values(reader, audit, |_| Ok(())),
        ColumnReader::Int64ColumnReader(reader) => values(reader, audit, |_| Ok(())),
        ColumnReader::Int96ColumnReader(reader) => values(reader, audit, |_| Ok(())),
        ColumnReader::FloatColumnReader(reader) => values(reader, audit, |_| Ok(())),
        ColumnReader::DoubleColumnReader(reader) => values(reader, audit, |_| Ok(())),
        ColumnReader::ByteArrayColumnReader(reader) => values(reader, audit, |_| Ok(())),
        ColumnReader::FixedLenByteArrayColumnReader(reader) => values(reader, audit, |_| Ok(())),
    }
}

/// Takes rows from a column of one type; tells how many.
fn values<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    audit: &mut ColumnAudit,
    mut take: impl FnMut(Option<&T::T>) -> Result<(), ReadError>,
) -> Result<usize, ReadError> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let (rows, found, _) =
        contained(|| reader.read_records(ROWS, Some(&mut levels), None, &mut values))?;
    let not_null = audit.level();
    let mut take = |value: Option<&T::T>| {
        audit.add(value.map(AsBytes::as_bytes)).map_err(altered)?;
        take(value)
    };
    let mut values = values[..found].iter();
    if levels.is_empty() {
        for value in values {
            take(Some(value))?;
        }
        return Ok(found);
    }
    for level in &levels[..rows] {
        let value = (*level == not_null).then(|| values.next()).flatten();
        take(value)?;
    }
    Ok(rows)
}

/// Says that the file is not what it says of itself.
fn altered(why: impl std::fmt::Display) -> ReadError {
    broken(format!("it is damaged or altered: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_over_damaged_data_is_an_error() {
        let read = contained::<()>(|| panic!("what is this"));
        assert!(matches!(read, Err(ReadError::Broken { .. })));
    }
}
