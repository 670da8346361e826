//! Writes `json` and `ndjson`: objects as received, one per line.

use super::object::Objects;
use crate::batch::Batch;
use crate::batch::filter::Fields;
use crate::error::Failure;
use crate::formats::{BatchWriter, ExportOutcome, Finished, WriterReport};
use crate::storage::EncodedOutput;

pub(crate) struct Json {
    output: EncodedOutput,
    objects: Objects,
    /// Whether it is an array; lines otherwise.
    array: bool,
    any: bool,
}

impl Json {
    pub(crate) fn new(output: EncodedOutput, fields: Fields, numbers: bool, array: bool) -> Self {
        Self {
            output,
            objects: Objects::new(fields, numbers, false),
            array,
            any: false,
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
        if !self.array {
            self.output.write_all(b"\n")?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.output.flush()
    }

    fn finish(mut self: Box<Self>, _: &ExportOutcome<'_>) -> Finished {
        if self.array {
            self.output
                .write_all(if self.any { b"\n]\n" } else { b"[]\n" })?;
        }
        Ok((self.output, WriterReport::default()))
    }
}
