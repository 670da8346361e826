//! TODO

pub(crate) mod destination;
pub(crate) mod manifest;
pub(crate) mod partitions;
pub(crate) mod pending;
pub(crate) mod sink;
pub(crate) mod template;
pub(crate) use destination::Destination;
pub(crate) use partitions::{PartitionOptions, PartitionedWriter};
pub(crate) use pending::Pending;
pub(crate) use sink::{DigestingSink, ExportSink, Share, WrittenFile};
pub(crate) use template::{Crops, Template};
