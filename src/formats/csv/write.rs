//! `csv` and `tsv`: RFC 4180, exact; and the dialect that a double click in Excel needs.
//!
//! Cells go from the text of a batch to the output as they stand, where nothing in them needs care; the
//! tests hold this against the general road, and that one against the csv crate.

use std::borrow::Cow;
use std::io::{self, Write as _};

use memchr::{memchr, memchr2};

use crate::batch::filter::Fields;
use crate::batch::{Batch, COLUMNS, FieldType};
use crate::error::{self, Failure};
use crate::formats::{BatchWriter, LeftOut, WriterReport};
use crate::storage::EncodedOutput;

/// How cells are parted and written.
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Dialect {
    delimiter: u8,
    decimal_comma: bool,
    bom: bool,
    header: bool,
    excel: bool,
}

/// What the flags for CSV say.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct CsvOptions {
    pub(crate) delimiter: Option<String>,
    pub(crate) decimal_comma: bool,
    pub(crate) bom: bool,
    pub(crate) no_header: bool,
    pub(crate) excel: bool,
}

impl Dialect {
    /// Reads the flags; `usual` stands between cells unless they say otherwise.
    pub(crate) fn new(options: &CsvOptions, usual: u8) -> Result<Self, Failure> {
        let delimiter = match options.delimiter.as_deref() {
            Some(word) => delimiter(word)?,
            // A decimal comma between commas would need quotes around every number.
            None if options.decimal_comma && usual == b',' => b';',
            None => usual,
        };
        Ok(Self {
            delimiter,
            decimal_comma: options.decimal_comma,
            bom: options.bom || options.excel,
            header: !options.no_header,
            excel: options.excel,
        })
    }
}

fn delimiter(word: &str) -> Result<u8, Failure> {
    match word.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n' | b'\0') => Ok(*byte),
        _ => Err(Failure::new(error::Kind::Usage, format!("`--delimiter {word}` is not one character"))
            .hint("write one ASCII character that is neither a quote nor a line break, such as ';' or '\\t'")),
    }
}

/// What opens a cell that spreadsheets run as a formula.
pub(crate) const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

pub(crate) struct Csv {
    output: EncodedOutput,
    fields: Fields,
    dialect: Dialect,
    begun: bool,
    has_rows: bool,
    /// The row that is being written.
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
            begun: false,
            has_rows: false,
            row: Vec::new(),
            formula_cells: 0,
            left_out: LeftOut::default(),
        }
    }

    /// Writes what stands before the first batch: not before there is one, or the end, so that a run
    /// that comes to nothing writes nothing.
    fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
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

    fn end_row(&mut self) -> io::Result<()> {
        // Every cell ends with a delimiter; the last one with the end of the line instead.
        self.row.pop();
        if self.row.is_empty() {
            // An empty line would be no row.
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
            // What should be a number and is none is text as well.
            kind if kind == FieldType::Text || batch.typed(column).is_none() => {
                self.formula_cells += u64::from(text.starts_with(FORMULA));
                // One more for those that have it already: else nobody could tell what was added.
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
        // Without quotes, it holds no delimiter.
        let end = memchr(delimiter, row).unwrap_or(row.len());
        row.insert(end, b'"');
        row.insert(0, b'"');
    }
}

impl Dialect {
    /// Returns a cell that is written as it stands: without escapes, no quote and no line break is in
    /// it, and only in text could anything else need quotes.
    fn verbatim<'a>(&self, batch: &'a Batch, column: usize) -> Option<&'a str> {
        let text = batch.inside(column)?;
        let stands = match COLUMNS[column].kind {
            FieldType::Text => {
                memchr2(b'\\', self.delimiter, text.as_bytes()).is_none()
                    && !text.starts_with(FORMULA)
                    && !text.starts_with('\'')
            }
            FieldType::Decimal => !self.decimal_comma && self.is_apart(),
            FieldType::Date | FieldType::Integer | FieldType::Boolean => self.is_apart(),
        };
        stands.then_some(text)
    }

    /// Tells whether no number and no date holds the delimiter.
    fn is_apart(&self) -> bool {
        matches!(self.delimiter, b',' | b';' | b'\t' | b'|')
    }

    /// Adds a cell and the delimiter behind it to `row`, in quotes only where it needs them.
    fn cell(&self, row: &mut Vec<u8>, text: &str) {
        let is_special = |byte: u8| matches!(byte, b'"' | b'\r' | b'\n') || byte == self.delimiter;
        if text.bytes().any(is_special) {
            row.push(b'"');
            for part in text.split_inclusive('"') {
                row.extend_from_slice(part.as_bytes());
                if part.ends_with('"') {
                    row.push(b'"');
                }
            }
            row.push(b'"');
        } else {
            row.extend_from_slice(text.as_bytes());
        }
        row.push(self.delimiter);
    }
}

impl BatchWriter for Csv {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        self.begin()?;
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

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    fn finish(mut self: Box<Self>) -> io::Result<(EncodedOutput, WriterReport)> {
        self.begin()?;
        let notes = WriterReport {
            formula_cells: if self.dialect.excel {
                0
            } else {
                self.formula_cells
            },
            left_out: self.left_out.names(),
            ..WriterReport::default()
        };
        Ok((self.output, notes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use ::csv::{QuoteStyle, Terminator, WriterBuilder};
    use proptest::prelude::*;

    /// Returns a batch with `text` in each field that may hold it.
    fn batch(text: &str, number: &str) -> Batch {
        let fields = COLUMNS.iter().map(|column| {
            let value = match column.kind {
                FieldType::Text => format!("\"{text}\""),
                FieldType::Date => "\"2026-05-01T06:00:00.5Z\"".to_owned(),
                FieldType::Integer => "12".to_owned(),
                FieldType::Decimal => format!("\"{number}\""),
                FieldType::Boolean => "true".to_owned(),
            };
            format!("\"{}\":{value}", column.name)
        });
        let object = format!("{{{}}}", fields.collect::<Vec<_>>().join(","));
        let scanned = Batch::scan(&Arc::new(object), 0);
        scanned.expect("a usual batch").0
    }

    proptest! {
        #[test]
        fn what_is_written_as_it_stands_needs_no_care(
            text in r#"([a-c,;| .=+@'-]|\\["\\/nrt]){1,6}"#,
            number in "-?[0-9]{1,3}\\.[0-9]{2}",
            delimiter in prop::sample::select(&b",;\t|.-5aT "[..]),
            decimal_comma: bool,
        ) {
            let dialect = Dialect { delimiter, decimal_comma, bom: false, header: false, excel: true };
            let batch = batch(&text, &number);
            for (place, column) in COLUMNS.iter().enumerate() {
                let Some(verbatim) = dialect.verbatim(&batch, place) else { continue };
                let plain = batch.plain(place).expect("a value");
                prop_assert_eq!(verbatim, plain.as_ref());
                let mut row = Vec::new();
                dialect.cell(&mut row, &plain);
                prop_assert_eq!(row.split_last(), Some((&delimiter, verbatim.as_bytes())));
                prop_assert!(column.kind != FieldType::Decimal || !decimal_comma);
                prop_assert!(column.kind != FieldType::Text || !plain.trim_start_matches('\'').starts_with(FORMULA));
            }
        }

        #[test]
        fn cells_are_those_of_the_csv_crate(
            cells in prop::collection::vec("[a-c,;\t\"\r\né ]{0,6}", 1..6),
            delimiter in prop::sample::select(&b",;\t a"[..]),
        ) {
            let dialect = Dialect { delimiter, decimal_comma: false, bom: false, header: false, excel: false };
            let mut row = Vec::new();
            for cell in &cells {
                dialect.cell(&mut row, cell);
            }
            row.pop();
            let mut writer = WriterBuilder::new()
                .delimiter(delimiter)
                .quote_style(QuoteStyle::Necessary)
                .terminator(Terminator::Any(b'\n'))
                .from_writer(Vec::new());
            writer.write_record(&cells).expect("memory");
            let mut expected = writer.into_inner().expect("memory");
            expected.pop();
            // Alone in its row, an empty cell is for the row to write.
            if cells != [""] {
                prop_assert_eq!(String::from_utf8(row), String::from_utf8(expected));
            }
        }
    }
}
