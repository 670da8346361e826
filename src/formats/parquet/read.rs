//! Reads `parquet` files, also those that other programs rewrote, a few thousand rows at a time.

// The description of the file: its footer, and the Thrift structs that it consists of.
mod footer;
mod layout;
mod thrift;

// What the file says about its values, and whether that is true.
mod arrow_schema;
mod audit;
mod data_frame;
mod filter;
mod pages;
mod statistics;

// What pages contain, memory limits for them, and the meaning of values.
mod delta;
mod guard;
mod logical_type;
mod runs;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Display;
use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::column::page::PageReader as _;
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use ::parquet::data_type::{AsBytes, ByteArray, DataType};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use ::parquet::file::reader::{FileReader as _, RowGroupReader, SerializedFileReader};
use ::parquet::schema::types::ColumnDescriptor;
use simdutf8::basic::from_utf8;

use crate::batch::{ALL_COLUMNS, COLUMNS, FieldType, Values, find_column};
use crate::formats::record::{
    EXTRA, EmbeddedDigest, FileInfo, ReadError, Record, RecordHandler, RecordPlace,
    parse_digest_version,
};
use crate::terminal;
use audit::ColumnAudit;
use filter::Filter;
use footer::Footer;
use guard::{MemoryBudget, PageGuard};
use logical_type::{ColumnType, big_endian, column_type, write_number};
use statistics::Claimed;
use thrift::{Node, broken, damaged};

/// Rows read at a time.
const ROWS: usize = 4096;

/// The index of the column of unknown fields, after those of a batch.
const EXTRA_PLACE: usize = COLUMNS.len();

/// The longest text of a value.
const TEXT: usize = 16 << 20;

/// Reads the rows of `file`.
pub(crate) fn read(file: File, each: &mut RecordHandler<'_>) -> Result<FileInfo, ReadError> {
    let footer = Footer::read(&file)?;
    let again = file.try_clone()?;
    let reader = catch_panic(|| SerializedFileReader::new(file))?;
    // The crate has already reported a file that is too short.
    let footer = footer.ok_or_else(|| broken("it is damaged or cut short".to_owned()))?;
    check_compression(reader.metadata())?;
    let schema = reader.metadata().file_metadata().schema_descr();
    footer.check(schema)?;
    let (columns, unknown) = columns(schema.columns())?;
    let types = columns
        .iter()
        .filter_map(|leaf| Some((leaf.descriptor.path().string(), leaf.field?.1)));
    data_frame::check(
        reader.metadata().file_metadata(),
        &types.collect::<Vec<_>>(),
    )?;
    let fields = columns.iter().filter_map(|leaf| leaf.field);
    let all = fields.fold(0, |all, (column, _)| all | 1 << column);
    let bits = all & ALL_COLUMNS;
    let info = FileInfo {
        columns: Some(bits),
        unknown,
        keeps_unknown_fields: all != bits,
        embedded_digest: embedded_digest(reader.metadata()),
        ..FileInfo::default()
    };
    let mut count = 0;
    for (place, node) in footer.groups().iter().enumerate() {
        let group = catch_panic(|| reader.get_row_group(place))?;
        if is_empty(group.metadata()) {
            // pyarrow writes them, with columns without a place.
            continue;
        }
        let mut rows = ParquetRows::new(&footer, &again, (node, group.as_ref()), &columns)?;
        while let Some(length) = rows.next()? {
            for row in 0..length {
                count += 1;
                rows.row = row;
                let record = Record::of_row(&rows, bits, RecordPlace::Batch(count));
                if each(&record).map_err(ReadError::Aborted)? == ControlFlow::Break(()) {
                    return Ok(info);
                }
            }
        }
        rows.finish(footer::rows(node))?;
    }
    Ok(info)
}

/// Returns whether a group says in all places that it has no rows.
fn is_empty(group: &RowGroupMetaData) -> bool {
    let mut columns = group.columns().iter();
    group.num_rows() == 0 && columns.all(|column| column.num_values() == 0)
}

/// Runs code of the parquet crate, which returns an error or panics if the file is damaged.
fn catch_panic<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ReadError> {
    let read = terminal::caught(work).ok();
    let read = read.unwrap_or_else(|| Err(ParquetError::General("invalid structure".to_owned())));
    read.map_err(crate_error)
}

/// Reads the digest that the file contains.
fn embedded_digest(file: &ParquetMetaData) -> Option<EmbeddedDigest> {
    let metadata = file.file_metadata().key_value_metadata()?;
    let value = |key: &str| {
        let found = metadata.iter().find(|entry| entry.key == key);
        found.and_then(|entry| entry.value.clone())
    };
    Some(EmbeddedDigest {
        batches: value("trayscan.batches").and_then(|count| count.parse().ok()),
        digest_version: parse_digest_version(value("trayscan.digest_version").as_deref()),
        set_digest: value("trayscan.set_digest")?,
        unknown_fields_digest: value("trayscan.unknown_fields_digest"),
    })
}

/// Rejects files of other programs with a compression that is not supported.
fn check_compression(file: &ParquetMetaData) -> Result<(), ReadError> {
    let chunks = file.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let mut compressions = chunks.map(ColumnChunkMetaData::compression);
    let known = |compression: &Compression| {
        matches!(
            compression,
            Compression::UNCOMPRESSED
                | Compression::SNAPPY
                | Compression::GZIP(_)
                | Compression::ZSTD(_)
        )
    };
    match compressions.find(|compression| !known(compression)) {
        None => Ok(()),
        Some(compression) => Err(ReadError::foreign(
            format!(
                "is a Parquet file compressed with {compression}; only gzip, snappy and zstd are supported"
            ),
            "write it with zstd, snappy or gzip, or uncompressed",
        )),
    }
}

fn crate_error(error: ParquetError) -> ReadError {
    let error = match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(error) if error.raw_os_error().is_some() => return ReadError::Io(*error),
            Ok(error) => ParquetError::from(*error),
            Err(inner) => ParquetError::External(inner),
        },
        other => other,
    };
    damaged(error)
}

/// A column of the file.
struct Leaf {
    descriptor: Arc<ColumnDescriptor>,
    /// The field that it contains, and its type.
    field: Option<(usize, ColumnType)>,
}

/// Finds the fields of a batch among the columns of a file; returns the names of the other columns, too.
fn columns(leaves: &[Arc<ColumnDescriptor>]) -> Result<(Vec<Leaf>, Vec<String>), ReadError> {
    let foreign = |what: String| {
        let hint = "pass a file that `trayscan export -f parquet` wrote";
        ReadError::foreign(format!("is a Parquet file {what}"), hint)
    };
    let (mut columns, mut unknown) = (Vec::<Leaf>::new(), Vec::new());
    for descriptor in leaves {
        let name = descriptor.path().string();
        let descriptor = Arc::clone(descriptor);
        let is_extra = name == EXTRA && is_text(&descriptor);
        let Some(column) = find_column(&name).or(is_extra.then_some(EXTRA_PLACE)) else {
            unknown.push(name);
            let field = None;
            columns.push(Leaf { descriptor, field });
            continue;
        };
        let is_it = |leaf: &Leaf| leaf.field.is_some_and(|(known, _)| known == column);
        if columns.iter().any(is_it) {
            return Err(broken(format!("`{name}` appears twice")));
        }
        let kind = COLUMNS
            .get(column)
            .map_or(FieldType::Text, |column| column.kind);
        let found = column_type(&descriptor, kind).filter(|_| descriptor.max_rep_level() == 0);
        let found = found.ok_or_else(|| {
            let expected = match kind {
                FieldType::Text => "text",
                FieldType::Integer => "whole numbers",
                FieldType::Decimal => "decimals",
                FieldType::Boolean => "booleans",
                FieldType::Date => "times in UTC",
            };
            let stored = descriptor.physical_type();
            foreign(format!(
                "whose column `{name}` is stored as {stored}, not as {expected}"
            ))
        })?;
        let field = Some((column, found));
        columns.push(Leaf { descriptor, field });
    }
    let is_batch = |leaf: &Leaf| leaf.field.is_some_and(|(column, _)| column < EXTRA_PLACE);
    if !columns.iter().any(is_batch) {
        return Err(foreign("without any field of a batch".to_owned()));
    }
    Ok((columns, unknown))
}

/// Returns whether a column has one text per row.
fn is_text(descriptor: &ColumnDescriptor) -> bool {
    descriptor.max_rep_level() == 0 && column_type(descriptor, FieldType::Text).is_some()
}

/// Some rows of a group, column by column.
struct ParquetRows<'a> {
    columns: Vec<OpenColumn<'a>>,
    /// The columns that the file says its rows are sorted by, the most significant first.
    sorted_by: Vec<usize>,
    /// The values of the current rows for each column of a batch; empty if the file lacks the column.
    texts: [ColumnTexts; COLUMNS.len() + 1],
    /// Which of the current rows is the one whose values are asked for.
    row: usize,
}

/// A column of a row group that is being read.
struct OpenColumn<'a> {
    leaf: &'a Leaf,
    reader: ColumnReader,
    audit: ColumnAudit,
}

/// The values of a column in the current rows.
#[derive(Default)]
struct ColumnTexts {
    values: Vec<Option<ParquetValue>>,
    /// All values that had to be formatted, as the service would.
    formatted: String,
}

/// A value.
enum ParquetValue {
    /// The bytes of the page, or of the dictionary that many rows share.
    Text(ByteArray),
    /// Where the text is among the formatted ones.
    Formatted(Range<usize>),
}

impl<'a> ParquetRows<'a> {
    fn new(
        footer: &Footer,
        file: &File,
        (node, group): (&Node, &dyn RowGroupReader),
        leaves: &'a [Leaf],
    ) -> Result<Self, ReadError> {
        let mut budget = MemoryBudget::default();
        let mut columns = Vec::new();
        let mut keys = footer::sorted_by(node);
        let mut sorted_by = vec![None; keys.len()];
        let chunks = leaves.iter().zip(footer::chunks(node));
        for (number, (leaf, (chunk, column))) in chunks.enumerate() {
            let descriptor = &leaf.descriptor;
            let metadata = group.metadata().column(number);
            let mut pages = pages::read(file, metadata, footer.start, &mut budget)?;
            footer.check_indexes(file, chunk, descriptor, &mut pages)?;
            let page_reader = catch_panic(|| group.get_column_page_reader(number))?;
            let mut page_reader = PageGuard::new(page_reader, descriptor);
            if descriptor.max_rep_level() > 0 {
                // Not a field of a batch: it is only unpacked.
                while catch_panic(|| page_reader.get_next_page())?.is_some() {}
                continue;
            }
            let key = keys.iter().position(|(leaf, _)| *leaf == number);
            if let Some(key) = key {
                sorted_by[key] = Some(columns.len());
            }
            let claimed = column.field(12).map(Claimed::read).unwrap_or_default();
            let filter = Filter::read(file, column, footer.start, &mut budget)?;
            let sorted = key.and_then(|key| keys[key].1.take());
            columns.push(OpenColumn {
                leaf,
                reader: get_column_reader(Arc::clone(descriptor), Box::new(page_reader)),
                audit: ColumnAudit::new(descriptor, claimed, pages, filter, sorted),
            });
        }
        Ok(Self {
            columns,
            // If a key is not read, the order of the keys after it is unknown.
            sorted_by: sorted_by.into_iter().map_while(|column| column).collect(),
            texts: std::array::from_fn(|_| ColumnTexts::default()),
            row: 0,
        })
    }

    /// Reads more rows; returns how many, or `None` at the end of the group.
    fn next(&mut self) -> Result<Option<usize>, ReadError> {
        let mut length = None;
        for column in &mut self.columns {
            let field = column.leaf.field;
            let texts = field.map(|(field, _)| &mut self.texts[field]);
            let rows = read_column(column, texts)?;
            if *length.get_or_insert(rows) != rows {
                let name = column.leaf.descriptor.path().string();
                return Err(broken(format!(
                    "`{name}` has more or fewer rows than other columns"
                )));
            }
        }
        let length = length.unwrap_or_default();
        self.check_order(length)?;
        Ok(Some(length).filter(|length| *length > 0))
    }

    /// Checks that the current rows are sorted as the file says.
    fn check_order(&mut self, length: usize) -> Result<(), ReadError> {
        let mut undecided: Vec<usize> = (0..length).collect();
        for column in &self.sorted_by {
            let audit = &mut self.columns[*column].audit;
            let steps = audit.take_steps();
            let step = |row: &usize| steps.get(*row).copied().unwrap_or(Ordering::Less);
            if undecided.iter().any(|row| step(row).is_gt()) {
                let name = &audit.name;
                return Err(altered(format!(
                    "the rows are not sorted by `{name}`, although the file says so"
                )));
            }
            undecided.retain(|row| step(row).is_eq());
        }
        Ok(())
    }

    /// Checks the end of the group, which must have `rows` rows.
    fn finish(self, rows: u64) -> Result<(), ReadError> {
        for column in self.columns {
            column.audit.finish(rows).map_err(altered)?;
        }
        Ok(())
    }
}

/// The current row, as plain text.
impl Values for ParquetRows<'_> {
    fn plain(&self, column: usize) -> Option<Cow<'_, str>> {
        let texts = &self.texts[column];
        Some(Cow::Borrowed(
            match texts.values.get(self.row)?.as_ref()? {
                // It was checked when it was read.
                ParquetValue::Text(bytes) => from_utf8(bytes.data()).unwrap_or_default(),
                ParquetValue::Formatted(range) => &texts.formatted[range.clone()],
            },
        ))
    }

    fn unknown_fields(&self) -> Option<Cow<'_, str>> {
        self.plain(EXTRA_PLACE)
    }
}

/// Reads rows of a column; returns how many. The values of a field replace `texts`; others are only checked.
fn read_column(
    column: &mut OpenColumn<'_>,
    texts: Option<&mut ColumnTexts>,
) -> Result<usize, ReadError> {
    let OpenColumn {
        leaf,
        reader,
        audit,
    } = column;
    let name = leaf.descriptor.name();
    let column_type = leaf.field.map_or(ColumnType::Text, |(_, found)| found);
    let number = |number: i128, out: &mut String| {
        let start = out.len();
        let written = write_number(number, column_type, out);
        written.ok_or_else(|| broken(format!("`{name}` has a date out of range: {number}")))?;
        Ok(ParquetValue::Formatted(start..out.len()))
    };
    let decimal = |bytes: &[u8], out: &mut String| {
        let whole = big_endian(bytes);
        let whole = whole.ok_or_else(|| broken(format!("`{name}` has a number that is too large")));
        number(whole?, out)
    };
    // The types of fields were checked before.
    let wrong = || Err(broken(format!("`{name}` has the wrong type")));
    match reader {
        ColumnReader::BoolColumnReader(reader) => read_values(reader, audit, texts, |flag, out| {
            let start = out.len();
            out.push_str(if *flag { "true" } else { "false" });
            Ok(ParquetValue::Formatted(start..out.len()))
        }),
        ColumnReader::Int32ColumnReader(reader) => {
            read_values(reader, audit, texts, |value, out| {
                number((*value).into(), out)
            })
        }
        ColumnReader::Int64ColumnReader(reader) => {
            read_values(reader, audit, texts, |value, out| {
                number((*value).into(), out)
            })
        }
        ColumnReader::Int96ColumnReader(reader) => {
            read_values(reader, audit, texts, |value, out| {
                number(value.to_nanos().into(), out)
            })
        }
        ColumnReader::FloatColumnReader(reader) => {
            read_values(reader, audit, texts, |_, _| wrong())
        }
        ColumnReader::DoubleColumnReader(reader) => {
            read_values(reader, audit, texts, |_, _| wrong())
        }
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            read_values(reader, audit, texts, |value, out| {
                decimal(value.data(), out)
            })
        }
        ColumnReader::ByteArrayColumnReader(reader) => {
            read_values(reader, audit, texts, |value, out| match column_type {
                ColumnType::Text => text(name, value),
                _ => decimal(value.data(), out),
            })
        }
    }
}

fn text(name: &str, value: &ByteArray) -> Result<ParquetValue, ReadError> {
    if value.len() > TEXT {
        let limit = TEXT >> 20;
        return Err(broken(format!("`{name}` has more than {limit} MiB")));
    }
    match from_utf8(value.data()) {
        Ok(_) => Ok(ParquetValue::Text(value.clone())),
        Err(_) => Err(broken(format!("`{name}` is not UTF-8"))),
    }
}

/// Reads rows of a column of one type; returns how many.
fn read_values<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    audit: &mut ColumnAudit,
    mut texts: Option<&mut ColumnTexts>,
    text: impl Fn(&T::T, &mut String) -> Result<ParquetValue, ReadError>,
) -> Result<usize, ReadError> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let (rows, found, _) =
        catch_panic(|| reader.read_records(ROWS, Some(&mut levels), None, &mut values))?;
    if let Some(texts) = &mut texts {
        texts.values.clear();
        texts.formatted.clear();
    }
    let (mut values, not_null) = (values[..found].iter(), audit.level);
    // Without levels, no value is null.
    for row in 0..rows {
        let is_there = levels.get(row).is_none_or(|level| *level == not_null);
        let value = is_there.then(|| values.next()).flatten();
        audit.add(value.map(AsBytes::as_bytes)).map_err(altered)?;
        if let Some(texts) = &mut texts {
            let value = value.map(|value| text(value, &mut texts.formatted));
            texts.values.push(value.transpose()?);
        }
    }
    Ok(rows)
}

/// Returns the error for a file that contradicts itself.
fn altered(why: impl Display) -> ReadError {
    broken(format!("it is damaged or altered: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_over_damaged_data_is_an_error() {
        let read = catch_panic::<()>(|| panic!("damaged"));
        assert!(matches!(read, Err(ReadError::Broken { .. })));
    }
}
