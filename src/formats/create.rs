//! Creates the writer for a format.

use super::csv::CsvOptions;
use super::csv::dialect::Dialect;
use super::csv::write::Csv;
use super::format::Format;
use super::json::write::Json;
use super::parquet::write::Parquet;
use super::singer::write::Singer;
use super::sqlite::write::Sqlite;
use super::table::Table;
use super::writer::{BatchWriter, WriterOptions};
use super::xlsx::write::Xlsx;
use crate::error::{Failure, Kind};
use crate::storage::{EncodedOutput, Escapes};

/// Fails if [`new_writer`] would refuse the options.
pub(crate) fn check_options(format: Format, csv: &CsvOptions) -> Result<(), Failure> {
    match format {
        Format::Csv | Format::Tsv => Dialect::new(csv, b',').map(drop),
        _ => Ok(()),
    }
}

/// Creates the writer for `format`.
pub(crate) fn new_writer(
    format: Format,
    mut output: EncodedOutput,
    options: WriterOptions,
) -> Result<Box<dyn BatchWriter>, Failure> {
    match format {
        Format::Json => output.escape_on_terminal(Escapes::IndentedJson),
        Format::Ndjson | Format::Singer => output.escape_on_terminal(Escapes::Json),
        Format::Csv | Format::Tsv => output.escape_on_terminal(Escapes::Text),
        // A table escapes its own cells. The other formats never go to a terminal.
        _ => {}
    }
    Ok(match format {
        Format::Json | Format::Ndjson => {
            let is_array = format == Format::Json;
            Box::new(Json::new(output, options.fields, options.numbers, is_array))
        }
        Format::Csv | Format::Tsv => {
            let delimiter = if format == Format::Csv { b',' } else { b'\t' };
            let dialect = Dialect::new(&options.csv, delimiter)?;
            Box::new(Csv::new(output, options.fields, dialect))
        }
        Format::Table => Box::new(Table::new(output, options)),
        Format::Parquet => Box::new(Parquet::new(
            output,
            &options.fields,
            &options.info,
            options.extracted,
        )?),
        Format::Sqlite => Box::new(Sqlite::new(output, &options.fields)?),
        Format::Xlsx => Box::new(Xlsx::new(output, options)?),
        Format::Singer => Box::new(Singer::new(output, options)?),
        // Rows go to the server, not to a file.
        Format::Postgres => {
            let why = "a PostgreSQL table is not written as a file";
            return Err(Failure::new(Kind::Internal, why));
        }
    })
}
