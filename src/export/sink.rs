//! The sink of an export: one file or stream, a partitioned export, or a table.

use std::collections::BTreeMap;

use super::partitions::PartitionedWriter;
use super::written::WrittenFile;
use crate::batch::digest::SetDigest;
use crate::batch::{Batch, Representation};
use crate::error::Failure;
use crate::formats::{BatchWriter, ExportOutcome, WriterReport};
use crate::pipeline::Sink;
use crate::postgres::CopyLoader;
use crate::storage::{Cleanup, Location, Published};

pub(crate) enum ExportSink {
    One {
        writer: Box<dyn BatchWriter>,
        place: Location,
    },
    Many(Box<PartitionedWriter>),
    Table {
        loader: Box<CopyLoader>,
        place: Location,
        cleanup: Cleanup,
    },
}

impl ExportSink {
    pub(crate) fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        match self {
            Self::One { writer, .. } => writer.write(batch),
            Self::Many(partitions) => partitions.write(batch),
            Self::Table { loader, .. } => loader.write(batch),
        }
    }

    /// Flushes buffered output if a reader may be waiting for it.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        match self {
            Self::One { writer, .. } => writer.flush(),
            Self::Many(_) | Self::Table { .. } => Ok(()),
        }
    }

    /// Returns the names of crops in file names; `None` if the template does not contain them.
    pub(crate) fn crop_names(&self) -> Option<BTreeMap<String, String>> {
        match self {
            Self::Many(partitions) => partitions.crop_names(),
            Self::One { .. } | Self::Table { .. } => None,
        }
    }

    /// Finishes and publishes the output.
    pub(crate) fn publish(
        self,
        outcome: &ExportOutcome,
    ) -> Result<(Vec<WrittenFile>, WriterReport), Failure> {
        match self {
            Self::One { writer, place } => {
                let (output, report) = writer.finish(outcome)?;
                let published = output.publish()?;
                let written = WrittenFile {
                    place,
                    published,
                    share: None,
                };
                Ok((vec![written], report))
            }
            Self::Many(partitions) => partitions.publish(outcome),
            Self::Table {
                loader,
                place,
                cleanup,
            } => {
                let (counts, escaped_cells) = loader.finish()?;
                // If the run is over, its last message describes the table.
                let _ = cleanup.commit();
                let written = WrittenFile {
                    place,
                    published: Published::default(),
                    share: None,
                };
                let report = WriterReport {
                    escaped_cells,
                    counts: Some(counts),
                    ..WriterReport::default()
                };
                Ok((vec![written], report))
            }
        }
    }
}

/// Writes batches, and adds them to the digest if there is one.
pub(crate) struct DigestingSink<'a> {
    pub(crate) files: &'a mut ExportSink,
    pub(crate) digest: Option<&'a mut SetDigest>,
    /// The fields of a batch that the format keeps.
    pub(crate) kept: Representation,
}

impl Sink for DigestingSink<'_> {
    fn take(&mut self, batch: &Batch) -> Result<(), Failure> {
        if let Some(digest) = &mut self.digest {
            digest.add_kept(batch, self.kept);
        }
        self.files.write(batch)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.files.flush()
    }
}
