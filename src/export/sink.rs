//! The sink of an export: one file or stream, a partitioned export, or a table.

use std::collections::BTreeMap;

use super::manifest::ManifestFile;
use super::partitions::{PartitionedWriter, PublishedExport, add};
use crate::analysis::summary::CropFigures;
use crate::batch::Batch;
use crate::batch::digest::SetDigest;
use crate::error::Failure;
use crate::formats::{BatchWriter, ExportOutcome, WriterReport};
use crate::pipeline::Sink;
use crate::postgres::CopyLoader;
use crate::storage::{EncodedOutput, Location, Storage};

pub(crate) enum ExportSink {
    One {
        writer: Box<dyn BatchWriter>,
        place: Location,
        digest: Option<SetDigest>,
    },
    Many(Box<PartitionedWriter>),
    Table {
        loader: Box<CopyLoader>,
        place: Location,
        digest: Option<SetDigest>,
        storage: Storage,
    },
}

impl ExportSink {
    /// Returns the names of crops in file names; `None` if the template does not contain them.
    pub(crate) fn crop_names(&self) -> Option<BTreeMap<String, String>> {
        match self {
            Self::Many(partitions) => partitions.crop_names(),
            Self::One { .. } | Self::Table { .. } => None,
        }
    }

    /// Finishes and publishes the output.
    pub(crate) fn publish(self, outcome: &ExportOutcome<'_>) -> Result<PublishedExport, Failure> {
        let (file, report, digest) = match self {
            Self::One {
                writer,
                place,
                digest,
            } => {
                let (output, report) = writer.finish(&ExportOutcome {
                    digest: digest.as_ref(),
                    ..*outcome
                })?;
                let published = output.publish()?;
                let file = ManifestFile {
                    path: place.address(),
                    bytes: Some(published.bytes),
                    sha256: published.sha256,
                    ..ManifestFile::default()
                };
                (file, report, digest)
            }
            Self::Many(partitions) => return partitions.publish(outcome),
            Self::Table {
                loader,
                place,
                digest,
                storage,
            } => {
                let (counts, escaped_cells) = loader.finish(&storage.is_committing)?;
                // If the run is over, its last message describes the table.
                let _ = storage.cleanup.commit();
                let report = WriterReport {
                    escaped_cells,
                    counts: Some(counts),
                    ..WriterReport::default()
                };
                let file = ManifestFile {
                    path: place.address(),
                    ..ManifestFile::default()
                };
                (file, report, digest)
            }
        };
        Ok(PublishedExport {
            files: vec![file],
            report,
            digest,
        })
    }
}

impl Sink for ExportSink {
    fn take(&mut self, batch: &Batch) -> Result<(), Failure> {
        match self {
            Self::One { writer, digest, .. } => add(batch, writer.as_mut(), digest.as_mut()),
            Self::Many(partitions) => partitions.write(batch),
            Self::Table { loader, digest, .. } => {
                if let Some(digest) = digest {
                    digest.add_kept(batch);
                }
                loader.write(batch)
            }
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        match self {
            Self::One { writer, .. } => writer.flush(),
            Self::Many(_) | Self::Table { .. } => Ok(()),
        }
    }
}

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
