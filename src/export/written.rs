//! The files that an export has published.

use crate::storage::{Location, Published};

/// A published file.
pub(crate) struct WrittenFile {
    pub(crate) place: Location,
    pub(crate) published: Published,
    /// The batches in this file, if there are several files and a manifest.
    pub(crate) share: Option<Share>,
}

/// The batches of one file of several.
#[derive(Clone)]
pub(crate) struct Share {
    pub(crate) batches: u64,
    pub(crate) set_digest: String,
    /// `None` if the format does not keep unknown fields.
    pub(crate) unknown_fields_digest: Option<String>,
}
