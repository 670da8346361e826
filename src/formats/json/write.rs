//! Writes `json` and `ndjson`: objects as received, one per line.

use super::object::Objects;
use crate::batch::Batch;
use crate::batch::filter::Fields;
use crate::error::Failure;
use crate::formats::{BatchWriter, ExportOutcome, WriterReport};
use crate::storage::EncodedOutput;

pub(crate) struct Json {
    output: EncodedOutput,
    objects: Objects,
    /// Whether it is an array; lines otherwise.
    array: bool,
    any: bool,
}

impl Json {
    pub(crate) fn array(output: EncodedOutput, fields: Fields, numbers: bool) -> Self {
        Self {
            output,
            objects: Objects::new(fields, numbers, false),
            array: true,
            any: false,
        }
    }

    pub(crate) fn lines(output: EncodedOutput, fields: Fields, numbers: bool) -> Self {
        Self {
            array: false,
            ..Self::array(output, fields, numbers)
        }
    }
}

impl BatchWriter for Json {
    fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        if self.array {
            self.output
                .write_all(if self.any { b",\n" } else { b"[\n" })?;
        }
        self.any = true;
        let object = self.objects.object(batch);
        self.output.write_all(object.as_bytes())?;
        if self.array {
            Ok(())
        } else {
            self.output.write_all(b"\n")
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.output.flush()
    }

    fn finish(
        mut self: Box<Self>,
        _: &ExportOutcome<'_>,
    ) -> Result<(EncodedOutput, WriterReport), Failure> {
        if self.array {
            self.output
                .write_all(if self.any { b"\n]\n" } else { b"[]\n" })?;
        }
        Ok((self.output, WriterReport::default()))
    }
}
