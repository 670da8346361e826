//! Writes `csv` and `tsv`: RFC 4180, exact; or the dialect that Excel needs to open a file by double click.
//!
//! A cell without special characters is copied from the text of the batch. The tests compare this fast
//! path with the general one, and that one with the csv crate.

use std::borrow::Cow;

use memchr::memchr;

use super::dialect::{Dialect, FORMULA};
use super::excel_dates::{looks_like_one, to_excel};
use crate::batch::filter::Fields;
use crate::batch::{Batch, COLUMNS, FieldType};
use crate::error::Failure;
use crate::formats::{BatchWriter, ExportOutcome, LeftOut, WriterReport};
use crate::storage::EncodedOutput;

pub(crate) struct Csv {
    output: EncodedOutput,
    fields: Fields,
    dialect: Dialect,
    is_started: bool,
    has_rows: bool,
    /// The current row.
    row: Vec<u8>,
    formula_cells: u64,
    left_out: LeftOut,
}

impl Csv {
    pub(crate) fn new(output: EncodedOutput, fields: Fields, dialect: Dialect) -> Self {
        Self {
            output,
            fields,
            dialect,
            is_started: false,
            has_rows: false,
            row: Vec::new(),
            formula_cells: 0,
            left_out: LeftOut::default(),
        }
    }

    /// Writes the header, not before the first batch or the end: a run that fails earlier writes nothing.
    fn write_header(&mut self) -> Result<(), Failure> {
        if std::mem::replace(&mut self.is_started, true) {
            return Ok(());
        }
        if self.dialect.bom {
            self.output.write_all("\u{feff}".as_bytes())?;
        }
        if self.dialect.header {
            for &column in &self.fields.columns {
                self.dialect.cell(&mut self.row, COLUMNS[column].name);
            }
            self.end_row()?;
        }
        Ok(())
    }

    fn end_row(&mut self) -> Result<(), Failure> {
        // Every cell ends with a delimiter. The line break replaces the last one.
        self.row.pop();
        if self.row.is_empty() {
            // An empty line would not be a row.
            self.row.extend_from_slice(b"\"\"");
        }
        if !std::mem::replace(&mut self.has_rows, true) && !self.dialect.bom {
            quote_leading_bom(&mut self.row, self.dialect.delimiter);
        }
        self.row
            .extend_from_slice(if self.dialect.excel { b"\r\n" } else { b"\n" });
        self.output.write_all(&self.row)?;
        self.row.clear();
        Ok(())
    }

    fn cell<'a>(&mut self, batch: &'a Batch, column: usize) -> Cow<'a, str> {
        let Some(text) = batch.plain(column) else {
            return Cow::Borrowed("");
        };
        match COLUMNS[column].kind {
            FieldType::Decimal if self.dialect.decimal_comma && batch.typed(column).is_some() => {
                Cow::Owned(text.replace('.', ","))
            }
            FieldType::Date if self.dialect.excel && batch.typed(column).is_some() => {
                // Without a header, a comma in the first cell could be taken for the delimiter.
                let has_comma = self.dialect.decimal_comma && self.dialect.header;
                let date = to_excel(&text, has_comma);
                date.map_or(text, Cow::Owned)
            }
            FieldType::Date if self.dialect.excel && looks_like_one(&text) => {
                Cow::Owned(format!("'{text}"))
            }
            // An invalid number is text, too.
            kind if kind == FieldType::Text || batch.typed(column).is_none() => {
                self.formula_cells += u64::from(text.starts_with(FORMULA));
                // Text that already has an apostrophe gets another, so that readers can undo it.
                if self.dialect.excel && text.trim_start_matches('\'').starts_with(FORMULA) {
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
        for place in 0..self.fields.columns.len() {
            let column = self.fields.columns[place];
            if let Some(text) = self.dialect.verbatim(batch, column) {
                self.row.extend_from_slice(text.as_bytes());
                self.row.push(self.dialect.delimiter);
            } else {
                let cell = self.cell(batch, column);
                self.dialect.cell(&mut self.row, &cell);
            }
        }
        self.end_row()?;
        self.left_out.note(batch, &self.fields);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.output.flush()
    }

    fn finish(
        mut self: Box<Self>,
        _: &ExportOutcome<'_>,
    ) -> Result<(EncodedOutput, WriterReport), Failure> {
        self.write_header()?;
        let report = WriterReport {
            formula_cells: if self.dialect.excel {
                0
            } else {
                self.formula_cells
            },
            left_out: self.left_out.names(),
            ..WriterReport::default()
        };
        Ok((self.output, report))
    }
}
