//! `csv` and `tsv`: RFC 4180, exact; and the dialect that a double click in Excel needs.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write as _};

use ::csv::{QuoteStyle, Terminator, Writer, WriterBuilder};

use super::{BatchWriter, Notes, Output};
use crate::batch::{Batch, COLUMNS, Kind, unquote};
use crate::cli::OutputArgs;
use crate::error::{self, Failure};
use crate::select::Fields;

/// How cells are parted and written.
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct Dialect {
    delimiter: u8,
    decimal_comma: bool,
    bom: bool,
    header: bool,
    excel: bool,
}

impl Dialect {
    /// Reads the flags; `usual` stands between cells unless they say otherwise.
    pub(super) fn new(args: &OutputArgs, usual: u8) -> Result<Self, Failure> {
        let delimiter = match args.delimiter.as_deref() {
            Some(word) => delimiter(word)?,
            // A decimal comma between commas would need quotes around every number.
            None if args.decimal_comma && usual == b',' => b';',
            None => usual,
        };
        Ok(Self {
            delimiter,
            decimal_comma: args.decimal_comma,
            bom: args.bom || args.excel,
            header: !args.no_header,
            excel: args.excel,
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
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

pub(super) struct Csv {
    writer: Writer<Output>,
    fields: Fields,
    dialect: Dialect,
    formula_cells: u64,
    left_out: BTreeSet<String>,
}

impl Csv {
    pub(super) fn new(
        mut output: Output,
        fields: Fields,
        dialect: Dialect,
    ) -> Result<Self, Failure> {
        if dialect.bom {
            output
                .write_all("\u{feff}".as_bytes())
                .map_err(Failure::from_output)?;
        }
        let terminator = if dialect.excel {
            Terminator::CRLF
        } else {
            Terminator::Any(b'\n')
        };
        let mut writer = WriterBuilder::new()
            .delimiter(dialect.delimiter)
            .quote_style(QuoteStyle::Necessary)
            .terminator(terminator)
            .from_writer(output);
        if dialect.header {
            let names = fields.columns.iter().map(|&column| COLUMNS[column].name);
            writer
                .write_record(names)
                .map_err(|error| Failure::from_output(into_io(error)))?;
        }
        Ok(Self {
            writer,
            fields,
            dialect,
            formula_cells: 0,
            left_out: BTreeSet::new(),
        })
    }

    fn cell<'a>(&mut self, batch: &'a Batch, column: usize) -> Cow<'a, str> {
        let Some(text) = batch.plain(column) else {
            return Cow::Borrowed("");
        };
        match COLUMNS[column].kind {
            Kind::Decimal if self.dialect.decimal_comma && batch.typed(column).is_some() => {
                Cow::Owned(text.replace('.', ","))
            }
            Kind::Text if text.starts_with(FORMULA) => {
                self.formula_cells += 1;
                if self.dialect.excel {
                    Cow::Owned(format!("'{text}"))
                } else {
                    text
                }
            }
            _ => text,
        }
    }
}

/// Takes the cause out of the error of the csv crate: all that can fail here is the output.
fn into_io(error: ::csv::Error) -> io::Error {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

impl BatchWriter for Csv {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        for place in 0..self.fields.columns.len() {
            let cell = self.cell(batch, self.fields.columns[place]);
            self.writer.write_field(cell.as_bytes()).map_err(into_io)?;
        }
        self.writer.write_record(None::<&[u8]>).map_err(into_io)?;
        if !self.fields.named {
            for (name, _) in batch.unknown() {
                let name = unquote(name);
                if !self.left_out.contains(name.as_ref()) {
                    self.left_out.insert(name.into_owned());
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    fn finish(self: Box<Self>) -> io::Result<(Output, Notes)> {
        let notes = Notes {
            formula_cells: if self.dialect.excel {
                0
            } else {
                self.formula_cells
            },
            left_out: self.left_out.into_iter().collect(),
            hidden_columns: 0,
        };
        let output = self
            .writer
            .into_inner()
            .map_err(::csv::IntoInnerError::into_error)?;
        Ok((output, notes))
    }
}
