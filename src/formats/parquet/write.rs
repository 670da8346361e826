//! Writes `parquet`.
//!
//! Values are buffered column by column until they fill a row group, so memory depends on the size of a
//! group and not of the export. A value that a column cannot store exactly is an error, and never rounded.
//! The rows of a group are sorted by date unless `--sort` is given.

mod column_buffer;
mod order;
mod schema;

use std::io::{self, Write};
use std::sync::Arc;

use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;

use crate::batch::digest;
use crate::batch::filter::Fields;
use crate::batch::{Batch, COLUMNS};
use crate::error::{self, Failure};
use crate::formats::{BatchWriter, ExportInfo, ExportOutcome, WriterReport};
use crate::storage::EncodedOutput;
use crate::text;
use column_buffer::{ColumnBuffer, Inexact};
use order::RowOrder;
use schema::properties;

/// A row group ends at this number of rows, as in DuckDB, or of buffered bytes. Engines read groups in
/// parallel, so a few hundred thousand rows keep several cores busy.
const GROUP_ROWS: usize = 122_880;
const GROUP_BYTES: usize = 48 << 20;

pub(crate) struct Parquet {
    writer: SerializedFileWriter<SharedOutput>,
    columns: Vec<ColumnBuffer>,
    order: RowOrder,
    rows: usize,
    /// Buffered bytes.
    size: usize,
    metadata: Vec<(&'static str, String)>,
}

impl Parquet {
    pub(crate) fn new(
        output: EncodedOutput,
        fields: &Fields,
        info: &ExportInfo,
        extracted: String,
    ) -> Result<Self, Failure> {
        let mut columns: Vec<ColumnBuffer> = fields
            .columns
            .iter()
            .copied()
            .map(ColumnBuffer::field)
            .collect();
        if !fields.named {
            columns.push(ColumnBuffer::extra());
        }
        let types: Result<Vec<_>, ParquetError> =
            columns.iter().map(ColumnBuffer::describe).collect();
        let schema = types.and_then(|types| {
            Type::group_type_builder("batches")
                .with_fields(types)
                .build()
        });
        let order = RowOrder::new(fields, info.sorting.as_ref());
        let writer = schema.and_then(|schema| {
            let properties = properties(&columns, order.declared(&columns), GROUP_ROWS);
            let properties = Arc::new(properties);
            SerializedFileWriter::new(SharedOutput(Some(output)), Arc::new(schema), properties)
        });
        let writer = writer.map_err(|error| Failure::from_output("the output", io_error(error)))?;
        let mut metadata = vec![
            ("trayscan.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("trayscan.range", info.range.clone()),
            ("trayscan.extracted", extracted),
        ];
        let source = Some(info.source.clone()).filter(|source| !source.is_empty());
        metadata.extend(source.map(|source| ("trayscan.base_url", source)));
        Ok(Self {
            writer,
            columns,
            order,
            rows: 0,
            size: 0,
            metadata,
        })
    }

    /// Writes the buffered rows as one row group.
    fn end_group(&mut self) -> Result<(), ParquetError> {
        self.size = 0;
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return Ok(());
        }
        let order = self.order.permutation(&self.columns, rows);
        let mut group = self.writer.next_row_group()?;
        for buffer in &mut self.columns {
            let column = group.next_column()?;
            // Buffers and schema are from the same list of columns, so this never fails.
            let mut column = column.ok_or_else(|| ParquetError::IndexOutOfBound(0, 0))?;
            buffer.write(&mut column, order.as_deref())?;
            column.close()?;
        }
        group.close().map(drop)
    }

    /// Converts an error of the output to a message for the user.
    fn failure(&mut self, error: ParquetError) -> Failure {
        let error = io_error(error);
        match &mut self.writer.inner_mut().0 {
            Some(output) => output.failure(error),
            None => Failure::from_output("the output", error),
        }
    }
}

impl BatchWriter for Parquet {
    fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        for buffer in &mut self.columns {
            match buffer.add(batch) {
                Ok(size) => self.size += size,
                Err(Inexact { column, into }) => return Err(refused(batch, column, into)),
            }
        }
        self.rows += 1;
        if self.rows >= GROUP_ROWS || self.size >= GROUP_BYTES {
            self.end_group().map_err(|error| self.failure(error))?;
        }
        Ok(())
    }

    fn finish(
        mut self: Box<Self>,
        outcome: &ExportOutcome<'_>,
    ) -> Result<(EncodedOutput, WriterReport), Failure> {
        self.end_group().map_err(|error| self.failure(error))?;
        let mut metadata = std::mem::take(&mut self.metadata);
        if let Some(digest) = outcome.digest {
            metadata.push(("trayscan.batches", digest.count().to_string()));
            metadata.push(("trayscan.set_digest", digest.finish()));
            metadata.push(("trayscan.digest_version", digest::VERSION.to_string()));
            let unknown = digest.finish_unknown();
            metadata.extend(unknown.map(|digest| ("trayscan.unknown_fields_digest", digest)));
        }
        for (key, value) in metadata {
            let entry = KeyValue::new(key.to_owned(), value);
            self.writer.append_key_value_metadata(entry);
        }
        let finished = self.writer.finish();
        finished.map_err(|error| self.failure(error))?;
        let flushed = self.writer.flush();
        flushed.map_err(|error| self.failure(error.into()))?;
        let output = self.writer.inner_mut().0.take();
        let closed = || Failure::new(error::Kind::Internal, "the output is already closed");
        Ok((output.ok_or_else(closed)?, WriterReport::default()))
    }
}

/// The output, which `finish` takes back.
struct SharedOutput(Option<EncodedOutput>);

impl Write for SharedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Some(output) => output.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Returns the error of the output, if that is the cause.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

fn refused(batch: &Batch, column: usize, into: &str) -> Failure {
    let value = batch.plain(column).unwrap_or_default();
    Failure::new(
        error::Kind::Protocol,
        format!(
            "batch `{}`: `{}` is {}, which {into} cannot hold exactly",
            text::brief(&batch.id()),
            COLUMNS[column].name,
            text::brief(&value)
        ),
    )
    .hint("leave the field out with `--fields`, or write json or csv, which keep every digit")
}
