//! The files that an export has published.

use crate::batch::digest::SetDigest;
use crate::formats::WriterReport;
use crate::storage::{Location, Published};

/// A published file.
pub(crate) struct WrittenFile {
    pub(crate) place: Location,
    pub(crate) published: Published,
    /// The batches in this file, if there are several files and a manifest.
    pub(crate) share: Option<Share>,
}

/// What an export has published.
pub(crate) struct PublishedExport {
    pub(crate) files: Vec<WrittenFile>,
    pub(crate) report: WriterReport,
    /// The digest of all batches, if one was computed.
    pub(crate) digest: Option<SetDigest>,
}

/// The batches of one file of several.
#[derive(Clone)]
pub(crate) struct Share {
    pub(crate) batches: u64,
    pub(crate) set_digest: String,
    /// `None` if the format does not keep unknown fields.
    pub(crate) unknown_fields_digest: Option<String>,
}
