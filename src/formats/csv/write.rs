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
use crate::batch::{Batch, COLUMNS, FieldType};
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
    bytes: Vec<u8>,
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
                bytes: Vec::new(),
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
        // The line break replaces the last delimiter.
        bytes.pop();
        if bytes.is_empty() {
            // An empty line would not be a row.
            bytes.extend_from_slice(b"\"\"");
        }
        if !std::mem::replace(&mut self.has_rows, true) && !dialect.options.bom {
            quote_leading_bom(bytes, dialect.delimiter);
        }
        bytes.extend_from_slice(if dialect.options.excel {
            b"\r\n"
        } else {
            b"\n"
        });
        self.output.write_all(bytes)?;
        bytes.clear();
        Ok(())
    }
}

impl Row {
    /// Adds a cell.
    #[inline]
    fn add(&mut self, batch: &Batch, object: &[u8], column: usize, rule: CopyRule) {
        if rule == CopyRule::Never || !self.copy(batch, object, column, rule) {
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
    }

    /// Copies a value from `object`, the text of `batch`; returns false if it cannot be written as received.
    #[inline]
    fn copy(&mut self, batch: &Batch, object: &[u8], column: usize, rule: CopyRule) -> bool {
        /// Most cells are not longer. To copy a constant number of bytes is faster.
        const SHORT: usize = 16;
        let Some(Range { mut start, mut end }) = batch.valid_span(column) else {
            return false;
        };
        match object[start] {
            b'"' => (start, end) = (start + 1, end - 1),
            b'n' => end = start,
            _ => {}
        }
        let text = &object[start..end];
        if rule == CopyRule::IfPlain && !self.dialect.is_plain(text) {
            return false;
        }
        match object[start..].first_chunk::<SHORT>() {
            Some(bytes) if text.len() <= SHORT => {
                let length = self.bytes.len() + text.len();
                self.bytes.extend_from_slice(bytes);
                self.bytes.truncate(length);
            }
            _ => self.bytes.extend_from_slice(text),
        }
        self.bytes.push(self.dialect.delimiter);
        true
    }

    fn cell<'a>(&mut self, batch: &'a Batch, column: usize) -> Cow<'a, str> {
        let Some(text) = batch.plain(column) else {
            return Cow::Borrowed("");
        };
        match COLUMNS[column].kind {
            FieldType::Decimal
                if self.dialect.options.decimal_comma && batch.typed(column).is_some() =>
            {
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
            kind if kind == FieldType::Text || batch.typed(column).is_none() => {
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

/// Puts the first cell of a file in quotes if it begins with a byte order mark: readers would take the mark for that of the
/// file, and drop it.
fn quote_leading_bom(row: &mut Vec<u8>, delimiter: u8) {
    if row.starts_with("\u{feff}".as_bytes()) {
        // Without quotes, it contains no delimiter.
        let end = memchr(delimiter, row).unwrap_or(row.len());
        row.insert(end, b'"');
        row.insert(0, b'"');
    }
}

impl BatchWriter for Csv {
    fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        self.write_header()?;
        let object = batch.text().as_bytes();
        for (column, rule) in self.fields.columns.iter().zip(&self.copy_rules) {
            self.row.add(batch, object, *column, *rule);
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
