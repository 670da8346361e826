//! Wraps the writer of a workbook: computes the figures of its batches while they are written.

use crate::analysis::summary::CropFigures;
use crate::batch::Batch;
use crate::error::Failure;
use crate::formats::{BatchWriter, ExportOutcome, WriterReport};
use crate::storage::EncodedOutput;

/// A writer that learns the figures of its batches when it finishes.
pub(crate) struct SummarisedWriter {
    writer: Box<dyn BatchWriter>,
    figures: CropFigures,
}

impl SummarisedWriter {
    pub(crate) fn new(writer: Box<dyn BatchWriter>, figures: CropFigures) -> Self {
        Self { writer, figures }
    }
}

impl BatchWriter for SummarisedWriter {
    fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        self.writer.write(batch)?;
        self.figures.add(batch);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.writer.flush()
    }

    fn finish(
        self: Box<Self>,
        outcome: &ExportOutcome<'_>,
    ) -> Result<(EncodedOutput, WriterReport), Failure> {
        let summary = self.figures.finish();
        self.writer.finish(&ExportOutcome {
            summary: Some(&summary),
            ..*outcome
        })
    }
}
