//! The formats of exports: what each can store, and its writer.

use super::csv::CsvOptions;
use super::csv::dialect::Dialect;
use super::csv::write::Csv;
use super::json::write::Json;
use super::parquet::write::Parquet;
use super::singer::write::Singer;
use super::sqlite::write::Sqlite;
use super::table::Table;
use super::writer::{BatchWriter, WriterOptions};
use super::xlsx::write::Xlsx;
use crate::batch::filter::Fields;
use crate::batch::{BATCH_ID, Representation};
use crate::error::{Failure, Kind};
use crate::storage::{EncodedOutput, Escapes};

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Ndjson,
    Csv,
    Tsv,
    Table,
    Xlsx,
    Parquet,
    Sqlite,
    Singer,
    /// Rows of a table, chosen by a `postgres://` address and not by name.
    Postgres,
}

impl Format {
    /// The formats that can be chosen by name.
    pub(crate) const ALL: [Self; 9] = [
        Self::Json,
        Self::Ndjson,
        Self::Csv,
        Self::Tsv,
        Self::Table,
        Self::Xlsx,
        Self::Parquet,
        Self::Sqlite,
        Self::Singer,
    ];

    /// Returns whether it can only be written to a file.
    pub(crate) fn needs_file(self) -> bool {
        matches!(self, Self::Xlsx | Self::Parquet | Self::Sqlite)
    }

    /// Returns how it represents the values of a batch.
    pub(crate) fn representation(self) -> Representation {
        match self {
            Self::Json | Self::Ndjson => Representation::Json,
            Self::Parquet | Self::Sqlite | Self::Singer => Representation::Typed,
            Self::Csv | Self::Tsv | Self::Table | Self::Xlsx | Self::Postgres => {
                Representation::Text
            }
        }
    }

    /// Returns whether it keeps fields that the interface does not know.
    pub(crate) fn keeps_unknown_fields(self) -> bool {
        !matches!(self, Self::Csv | Self::Tsv | Self::Table | Self::Xlsx)
    }

    /// Returns whether a file contains the digest of its batches.
    pub(crate) fn embeds_digest(self) -> bool {
        matches!(self, Self::Parquet | Self::Xlsx)
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Table => "table",
            Self::Xlsx => "xlsx",
            Self::Parquet => "parquet",
            Self::Sqlite => "sqlite",
            Self::Singer => "singer",
            Self::Postgres => "postgres",
        }
    }
}

/// Fails if batches cannot be written with these options.
pub(crate) fn check_options(
    format: Format,
    csv: &CsvOptions,
    fields: &Fields,
) -> Result<(), Failure> {
    let has_id = fields.columns.contains(&BATCH_ID);
    match format {
        Format::Csv | Format::Tsv => Dialect::new(csv, b',').map(drop),
        Format::Singer if !has_id => Err(Failure::usage(
            "singer needs `batch_id`: targets identify batches by it",
            "add it to `--fields`",
        )),
        Format::Postgres if !has_id => Err(Failure::usage(
            "without `batch_id`, rows of the table cannot be matched to batches",
            "add `batch_id` to `--fields`",
        )),
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
        Format::Singer => Box::new(Singer::new(output, options)),
        // Rows go to the server, not to a file.
        Format::Postgres => {
            let why = "a PostgreSQL table is not written as a file";
            return Err(Failure::new(Kind::Internal, why));
        }
    })
}
