//! Reads `csv` and `tsv` in every dialect that can be written.

use std::borrow::Cow;
use std::io::{self, Read};
use std::ops::ControlFlow;

use csv::{ErrorKind, ReaderBuilder, StringRecord};

use super::detect::{DetectedDialect, MARK, with_point};
use super::excel_dates::{from_excel, looks_like_one};
use super::lines::{BadLine, LineChecker};
use crate::batch::{COLUMNS, FieldType, Values, is_number};
use crate::formats::record::{FileInfo, ReadError, Record, RecordHandler, RecordPlace};

/// The largest row: a batch is well below a kilobyte. Without a limit, one stray quote would turn the rest
/// of the file into one cell.
const ROW_LIMIT: usize = 4 << 20;

/// Reads the rows in `bytes`, which start with `head`.
pub(crate) fn read(
    head: &[u8],
    bytes: impl Read,
    default_delimiter: u8,
    layout: Option<&[usize]>,
    each: &mut RecordHandler<'_>,
) -> Result<FileInfo, ReadError> {
    let Some(dialect) = DetectedDialect::detect(head, default_delimiter, layout)? else {
        return Ok(FileInfo::default());
    };
    let mut input = CheckedInput {
        bytes,
        lines: LineChecker::new(dialect.delimiter),
        bad_line: None,
        mark: if head.starts_with(MARK) {
            MARK.len()
        } else {
            0
        },
        since_row: 0,
    };
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(dialect.delimiter)
        .buffer_capacity(128 * 1024)
        .from_reader(&mut input);
    let columns = dialect.columns();
    let mut separator = None;
    let mut wrong_type = None;
    let mut record = StringRecord::new();
    let mut skip = dialect.header;
    // Counted here: the csv crate counts the line feed of CR LF with the next row.
    let mut next = 1;
    loop {
        let line = next;
        let place = RecordPlace::Line(line);
        let more = reader.read_record(&mut record);
        if let Some((line, why)) = reader.get_mut().bad_line.take() {
            return Err(ReadError::broken(RecordPlace::Line(line), why, None));
        }
        if !more.map_err(|error| broken(error, place, &dialect))? {
            break;
        }
        if reader.get_ref().since_row > ROW_LIMIT {
            let why = format!("a row is larger than {} MB", ROW_LIMIT >> 20);
            return Err(ReadError::broken(place, why, None));
        }
        reader.get_mut().since_row = 0;
        next += 1 + memchr::memchr_iter(b'\n', record.as_slice().as_bytes()).count() as u64;
        if std::mem::take(&mut skip) {
            continue;
        }
        if record.len() != dialect.width {
            let cells = if record.len() == 1 { "cell" } else { "cells" };
            let why = format!("found {} {cells}, expected {}", record.len(), dialect.width);
            return Err(ReadError::broken(place, why, None));
        }
        separator = separator.or_else(|| find_separator(&record, &dialect));
        dialect.check_formulas(&record, place)?;
        if separator == Some(',') && wrong_type.is_none() {
            wrong_type = describe_wrong_point(&record, &dialect, place);
        }
        let row = CsvRow {
            record: &record,
            dialect: &dialect,
            separator,
        };
        let record = Record::of_row(&row, columns, place);
        if each(&record).map_err(ReadError::Aborted)? == ControlFlow::Break(()) {
            return Ok(FileInfo {
                columns: Some(columns),
                ..FileInfo::default()
            });
        }
    }
    if !input.lines.is_complete() {
        let hint = "the file is cut short: copy or export it again";
        let why = "the file ends inside a quoted cell";
        return Err(ReadError::broken(None, why, hint));
    }
    Ok(FileInfo {
        columns: Some(columns),
        unended: input.lines.last != b'\n',
        wrong_type,
        unknown: dialect.unknown,
        ..FileInfo::default()
    })
}

fn broken(error: csv::Error, place: RecordPlace, dialect: &DetectedDialect) -> ReadError {
    match error.into_kind() {
        ErrorKind::Io(error) => ReadError::Io(error),
        ErrorKind::Utf8 { err, .. } => {
            let column = (0..COLUMNS.len()).find(|&at| dialect.cells[at] == Some(err.field()));
            let name = column.map_or("a cell", |column| COLUMNS[column].name);
            ReadError::broken(place, format!("`{name}` is not UTF-8"), None)
        }
        kind => ReadError::broken(place, format!("{kind:?}"), None),
    }
}

/// Finds the decimal separator of a file in its first number with a fraction. The rest must use the same one.
fn find_separator(record: &StringRecord, dialect: &DetectedDialect) -> Option<char> {
    let columns = dialect.cells.iter().zip(&COLUMNS);
    let mut decimals = columns.filter(|(_, column)| column.kind == FieldType::Decimal);
    decimals.find_map(|(cell, _)| match record.get((*cell)?)? {
        cell if cell.contains('.') && is_number(cell) => Some('.'),
        cell => with_point(cell).map(|_| ','),
    })
}

/// One row, cell by cell.
struct CsvRow<'a> {
    record: &'a StringRecord,
    dialect: &'a DetectedDialect,
    separator: Option<char>,
}

impl Values for CsvRow<'_> {
    fn plain(&self, column: usize) -> Option<Cow<'_, str>> {
        let cell = self.record.get(self.dialect.cells[column]?)?;
        if self.dialect.excel && COLUMNS[column].kind == FieldType::Date {
            // With decimal points, spreadsheets read a comma in a date as text.
            let is_text = self.separator == Some('.') && cell.contains(',');
            if let Some(date) = from_excel(cell).filter(|_| !is_text) {
                return Some(Cow::Owned(date));
            }
            if let Some(text) = cell.strip_prefix('\'').filter(|text| looks_like_one(text)) {
                return Some(Cow::Borrowed(text));
            }
        }
        // An empty cell is null.
        let text = Some(self.dialect.unescape(cell)).filter(|text| !text.is_empty())?;
        let is_decimal = COLUMNS[column].kind == FieldType::Decimal;
        let has_comma = is_decimal && self.separator == Some(',');
        let decimal = has_comma.then(|| with_point(text)).flatten();
        Some(decimal.unwrap_or(Cow::Borrowed(text)))
    }
}

/// Describes a number with a decimal point in a file with decimal commas: other programs would read it as text.
fn describe_wrong_point(
    record: &StringRecord,
    dialect: &DetectedDialect,
    place: RecordPlace,
) -> Option<String> {
    let mut columns = dialect.cells.iter().zip(&COLUMNS);
    let (_, column) = columns.find(|(cell, column)| {
        let cell = cell.and_then(|cell| record.get(cell)).unwrap_or_default();
        let is_numeric = matches!(column.kind, FieldType::Decimal | FieldType::Integer);
        is_numeric && cell.contains('.') && is_number(cell)
    })?;
    let name = column.name;
    Some(format!(
        "{place}: `{name}` has a decimal point, but earlier decimals have a comma"
    ))
}

/// Checks the lines of a file as they are read.
struct CheckedInput<R> {
    bytes: R,
    lines: LineChecker,
    bad_line: Option<BadLine>,
    /// Bytes of the byte order mark that have not been read yet.
    mark: usize,
    /// Bytes read since the last complete row.
    since_row: usize,
}

impl<R: Read> Read for CheckedInput<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.since_row > ROW_LIMIT || self.bad_line.is_some() {
            // Ends the input; the caller reports the reason.
            return Ok(0);
        }
        let length = self.bytes.read(room)?;
        self.since_row += length;
        let marked = self.mark.min(length);
        self.mark -= marked;
        self.bad_line = self.lines.check(&room[marked..length]).err();
        Ok(length)
    }
}
