//! `csv` and `tsv`: RFC 4180, exact; and the dialect that a double click in Excel needs.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};

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

/// Puts a byte order mark before the first byte, where one is wanted.
struct Marked {
    output: Output,
    mark: bool,
}

impl Marked {
    fn mark(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.mark) {
            self.output.write_all("\u{feff}".as_bytes())?;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<Output> {
        self.mark()?;
        Ok(self.output)
    }
}

impl Write for Marked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !bytes.is_empty() {
            self.mark()?;
        }
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

pub(super) struct Csv {
    writer: Writer<Marked>,
    fields: Fields,
    dialect: Dialect,
    begun: bool,
    formula_cells: u64,
    left_out: BTreeSet<String>,
}

impl Csv {
    pub(super) fn new(output: Output, fields: Fields, dialect: Dialect) -> Self {
        let terminator = if dialect.excel {
            Terminator::CRLF
        } else {
            Terminator::Any(b'\n')
        };
        let writer = WriterBuilder::new()
            .delimiter(dialect.delimiter)
            .quote_style(QuoteStyle::Necessary)
            .terminator(terminator)
            .from_writer(Marked {
                output,
                mark: dialect.bom,
            });
        Self {
            writer,
            fields,
            dialect,
            begun: false,
            formula_cells: 0,
            left_out: BTreeSet::new(),
        }
    }

    /// Writes what stands before the first batch: not before there is one, or the end, so that a run
    /// that comes to nothing writes nothing.
    fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        if self.dialect.header {
            let names = self
                .fields
                .columns
                .iter()
                .map(|&column| COLUMNS[column].name);
            self.writer.write_record(names).map_err(into_io)?;
        }
        Ok(())
    }

    fn cell<'a>(&mut self, batch: &'a Batch, column: usize) -> Cow<'a, str> {
        let Some(text) = batch.plain(column) else {
            return Cow::Borrowed("");
        };
        match COLUMNS[column].kind {
            Kind::Decimal if self.dialect.decimal_comma && batch.typed(column).is_some() => {
                Cow::Owned(text.replace('.', ","))
            }
            // What should be a number and is none is text as well.
            kind if text.starts_with(FORMULA)
                && (kind == Kind::Text || batch.typed(column).is_none()) =>
            {
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
        self.begin()?;
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

    fn finish(mut self: Box<Self>) -> io::Result<(Output, Notes)> {
        self.begin()?;
        let notes = Notes {
            formula_cells: if self.dialect.excel {
                0
            } else {
                self.formula_cells
            },
            left_out: self.left_out.into_iter().collect(),
            hidden_columns: 0,
        };
        let marked = self
            .writer
            .into_inner()
            .map_err(::csv::IntoInnerError::into_error)?;
        Ok((marked.finish()?, notes))
    }
}
