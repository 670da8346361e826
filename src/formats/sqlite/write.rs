//! `sqlite`: a database with one table, for those who ask questions.

use std::io;

use super::database::ExportDatabase;
use crate::batch::filter::Fields;
use crate::batch::{Batch, COLUMNS};
use crate::error::{Failure, Kind};
use crate::formats::{BatchWriter, WriterReport};
use crate::storage::EncodedOutput;
use crate::storage::sqlite::io_error;
use crate::text;

pub(crate) struct Sqlite {
    /// Closed before its file is published or removed.
    plain: ExportDatabase,
    output: EncodedOutput,
}

impl Sqlite {
    pub(crate) fn new(mut output: EncodedOutput, fields: &Fields) -> Result<Self, Failure> {
        output.expect_database()?;
        let path = output.hand_out().map_err(Failure::from_output)?;
        let plain = ExportDatabase::create(&path, &fields.columns, !fields.named);
        let plain = plain.map_err(|error| Failure::from_output(output.blame(io_error(error))))?;
        Ok(Self { plain, output })
    }
}

impl BatchWriter for Sqlite {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        let added = self.plain.add(batch);
        let added = added.map_err(|error| self.output.blame(io_error(error)))?;
        added.map_err(|too_long| {
            let name = COLUMNS[too_long.column].name;
            let value = batch.plain(too_long.column).unwrap_or_default();
            let refused = Failure::new(
                Kind::Protocol,
                format!(
                    "batch `{}`: `{name}` is {}, which SQLite cannot keep exactly",
                    text::brief(&batch.id()),
                    text::brief(&value)
                ),
            )
            .hint(
                "leave the field out with `--fields`, or write json or csv, which keep every digit",
            );
            io::Error::other(refused)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<(EncodedOutput, WriterReport)> {
        let Self { plain, output } = *self;
        let finished = plain.finish();
        finished.map_err(|error| output.blame(io_error(error)))?;
        Ok((output, WriterReport::default()))
    }
}
