//! From `-o` and `-f` to published files: one file, one file per partition, or a table.
//!
//! Start with [`Destination`], which resolves the flags, then [`ExportSink`], which batches are written to.
//! [`PartitionedWriter`] splits them by the placeholders of a [`Template`]. `manifest.rs` describes what was
//! published. The bytes of each format are left to `formats`, and the files themselves to `storage`.

// Where to write.
pub(crate) mod destination;
pub(crate) mod template;

// Writing.
pub(crate) mod partitions;
pub(crate) mod sink;

// What is about to be changed, what was written, and the record of it.
pub(crate) mod manifest;
pub(crate) mod pending;

pub(crate) use destination::Destination;
pub(crate) use partitions::{PartitionOptions, PartitionedWriter, PublishedExport, check_folder};
pub(crate) use pending::Pending;
pub(crate) use sink::{ExportSink, SummarisedWriter};
pub(crate) use template::{Crops, HiveFolders, Template};
