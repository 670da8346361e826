//! Writes `csv` and `tsv`: RFC 4180, exact; or the dialect that Excel needs to open a file by double click.
//!
//! A cell without special characters is copied from the text of the batch. The tests compare this fast
//! path with the general one, and that one with the csv crate.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;

use super::dialect::{CopyRule, Dialect, FORMULA};
use super::excel_dates::{looks_like_one, to_excel};
use crate::batch::filter::Fields;
use crate::batch::{Batch, COLUMNS, FieldType, Pieces, is_number};
use crate::error::Failure;
use crate::formats::{BatchWriter, ExportOutcome, Finished, LeftOut, WriterReport};
use crate::storage::EncodedOutput;

pub(crate) struct Csv {
    output: EncodedOutput,
    fields: Fields,
    /// One for each field.
    copy_rules: Vec<CopyRule>,
    row: Row,
    is_started: bool,
    has_rows: bool,
    left_out: LeftOut,
}

/// The current row.
struct Row {
    dialect: Dialect,
    /// Every cell ends with a delimiter.
    bytes: Pieces,
    /// Cells that would run as formulas, unless the dialect makes them harmless.
    formula_cells: u64,
}

impl Csv {
    pub(crate) fn new(output: EncodedOutput, fields: Fields, dialect: Dialect) -> Self {
        let columns = fields.columns.iter();
        Self {
            output,
            copy_rules: columns.map(|column| dialect.copy_rule(*column)).collect(),
            fields,
            row: Row {
                dialect,
                bytes: Pieces::default(),
                formula_cells: 0,
            },
            is_started: false,
            has_rows: false,
            left_out: LeftOut::default(),
        }
    }

    /// Writes the header, not before the first batch or the end: a run that fails earlier writes nothing.
    fn write_header(&mut self) -> Result<(), Failure> {
        if std::mem::replace(&mut self.is_started, true) {
            return Ok(());
        }
        let Row { dialect, bytes, .. } = &mut self.row;
        if dialect.options.bom {
            self.output.write_all("\u{feff}".as_bytes())?;
        }
        if !dialect.options.no_header {
            for &column in &self.fields.columns {
                dialect.cell(bytes, COLUMNS[column].name);
            }
            self.end_row()?;
        }
        Ok(())
    }

    fn end_row(&mut self) -> Result<(), Failure> {
        let Row { dialect, bytes, .. } = &mut self.row;
        if bytes.len() == 1 {
            // An empty line would not be a row.
            bytes.truncate(0);
            bytes.push_any(&[b'"', b'"', dialect.delimiter]);
        }
        if !std::mem::replace(&mut self.has_rows, true)
            && !dialect.options.bom
            && let Some(quoted) = quoted_bom(bytes.as_bytes(), dialect.delimiter)
        {
            bytes.truncate(0);
            bytes.push_any(&quoted);
        }
        // The line break replaces the last delimiter.
        let last = bytes.len() - 1;
        if dialect.options.excel {
            bytes.set(last, b'\r');
            bytes.push_any(b"\n");
        } else {
            bytes.set(last, b'\n');
        }
        self.output.write_all(bytes.as_bytes())?;
        bytes.truncate(0);
        Ok(())
    }
}

/// Values of up to this length minus one are copied in one block, with what follows them.
const SHORT: usize = 32;
const LONG: usize = 96;

impl Row {
    /// Copies the values of `batch` up to the first that cannot be written as received; returns how many.
    #[inline(never)]
    fn copy(&mut self, batch: &Batch, columns: &[usize], rules: &[CopyRule]) -> usize {
        let object = batch.source();
        let Self { dialect, bytes, .. } = self;
        let delimiter = dialect.delimiter;
        let mut free = bytes.free();
        let all = free.len();
        let mut copied = 0;
        for (column, rule) in columns.iter().zip(rules) {
            let Some(Range { mut start, mut end }) = batch.valid_span(*column) else {
                break;
            };
            match object[start] {
                b'"' => (start, end) = (start + 1, end - 1),
                b'n' => end = start,
                _ => {}
            }
            let (source, length) = (&object[start..], end - start);
            let is_copied = match rule {
                CopyRule::Always => true,
                CopyRule::IfPlain => dialect.is_plain(source, length),
                CopyRule::Never => false,
            };
            if !is_copied {
                break;
            }
            if length < SHORT
                && let Some(from) = source.first_chunk::<SHORT>()
                && let Some(to) = free.first_chunk_mut::<SHORT>()
            {
                *to = *from;
                to[length] = delimiter;
            } else if length < LONG
                && let Some(from) = source.first_chunk::<LONG>()
                && let Some(to) = free.first_chunk_mut::<LONG>()
            {
                *to = *from;
                to[length] = delimiter;
            } else {
                break;
            }
            free = &mut free[length + 1..];
            copied += 1;
        }
        let length = all - free.len();
        bytes.extend(length);
        copied
    }

    /// Adds any cell.
    fn add(&mut self, batch: &Batch, column: usize) {
        let cell = self.cell(batch, column);
        // Without a header, a separator in a date could be taken for the delimiter.
        let is_unclear = COLUMNS[column].kind == FieldType::Date
            && self.dialect.options.excel
            && self.dialect.options.no_header
            && cell.contains(['.', ',']);
        if is_unclear {
            self.dialect.quoted_cell(&mut self.bytes, &cell);
        } else {
            self.dialect.cell(&mut self.bytes, &cell);
        }
    }

    fn cell<'a>(&mut self, batch: &'a Batch, column: usize) -> Cow<'a, str> {
        let Some(text) = batch.plain(column) else {
            return Cow::Borrowed("");
        };
        let kind = COLUMNS[column].kind;
        // A number that should be a text in JSON, too.
        let is_number = matches!(kind, FieldType::Integer | FieldType::Decimal) && is_number(&text);
        match kind {
            FieldType::Decimal if self.dialect.options.decimal_comma && is_number => {
                Cow::Owned(text.replace('.', ","))
            }
            FieldType::Date if self.dialect.options.excel && batch.typed(column).is_some() => {
                let date = to_excel(&text, self.dialect.options.decimal_comma);
                date.map_or(text, Cow::Owned)
            }
            FieldType::Date if self.dialect.options.excel && looks_like_one(&text) => {
                Cow::Owned(format!("'{text}"))
            }
            // An invalid number is text, too.
            kind if kind == FieldType::Text || batch.typed(column).is_none() && !is_number => {
                let is_formula = !self.dialect.options.excel && text.starts_with(FORMULA);
                self.formula_cells += u64::from(is_formula);
                // Text that already has an apostrophe gets another, so that readers can undo it.
                if self.dialect.options.excel && text.trim_start_matches('\'').starts_with(FORMULA)
                {
                    Cow::Owned(format!("'{text}"))
                } else {
                    text
                }
            }
            _ => text,
        }
    }
}

/// Returns the first row of a file with its first cell in quotes, if it begins with a byte order mark: readers would take
/// the mark for that of the file, and drop it.
fn quoted_bom(row: &[u8], delimiter: u8) -> Option<Vec<u8>> {
    row.starts_with("\u{feff}".as_bytes()).then(|| {
        // Without quotes, it contains no delimiter.
        let end = memchr(delimiter, row).unwrap_or(row.len());
        [b"\"", &row[..end], b"\"", &row[end..]].concat()
    })
}

impl BatchWriter for Csv {
    fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        self.write_header()?;
        let (mut columns, mut rules) = (&self.fields.columns[..], &self.copy_rules[..]);
        loop {
            let copied = self.row.copy(batch, columns, rules);
            let Some((column, rest)) = columns[copied..].split_first() else {
                break;
            };
            self.row.add(batch, *column);
            (columns, rules) = (rest, &rules[copied + 1..]);
        }
        self.end_row()?;
        self.left_out.note(batch, &self.fields);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.output.flush()
    }

    fn finish(mut self: Box<Self>, _: &ExportOutcome<'_>) -> Finished {
        self.write_header()?;
        let report = WriterReport {
            formula_cells: self.row.formula_cells,
            left_out: self.left_out.names(),
            ..WriterReport::default()
        };
        Ok((self.output, report))
    }
}
