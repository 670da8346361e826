//! The receipt of an export: what was asked for, what came, and how to recognise it.

use std::path::Path;

use serde::Serialize;

use crate::error::Failure;
use crate::writers::{Compression, Output, Target};

#[derive(Serialize)]
pub(crate) struct Manifest {
    pub(crate) trayscan: &'static str,
    /// Only an export that came to its end has a manifest; from an archive with gaps it is not complete.
    pub(crate) complete: bool,
    pub(crate) request: Request,
    pub(crate) version: Option<String>,
    pub(crate) windows: Vec<Window>,
    pub(crate) batches: u64,
    pub(crate) duplicates_dropped: u64,
    pub(crate) conflicts_dropped: u64,
    pub(crate) requests: u64,
    pub(crate) retries: u64,
    pub(crate) token_renewals: u64,
    pub(crate) warnings: Vec<String>,
    pub(crate) started: String,
    pub(crate) ended: String,
    pub(crate) files: Vec<File>,
    pub(crate) set_digest: String,
}

/// What was asked for.
#[derive(Serialize)]
pub(crate) struct Request {
    /// Nothing for an archive that belongs to nobody yet.
    pub(crate) base_url: Option<String>,
    /// The archive that was read instead of the service.
    pub(crate) archive: Option<String>,
    pub(crate) start: Option<String>,
    pub(crate) end: Option<String>,
    /// Batches created in the second `end` belong to the next period and are left out.
    pub(crate) excludes_end: bool,
    pub(crate) fields: Vec<&'static str>,
    #[serde(rename = "where")]
    pub(crate) conditions: Vec<String>,
    pub(crate) sort: Option<String>,
    pub(crate) limit: Option<u64>,
    pub(crate) lenient: bool,
}

/// Part of the range, as it was fetched.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Window {
    pub(crate) start: Option<String>,
    pub(crate) end: Option<String>,
    pub(crate) pages: u64,
    pub(crate) batches: u64,
}

/// A file that was written; `-` is standard output.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) format: &'static str,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    /// Of this file alone, so that it can be verified alone.
    pub(crate) batches: Option<u64>,
    pub(crate) set_digest: Option<String>,
}

impl Manifest {
    /// Writes the manifest, whole or not at all like any output.
    pub(crate) fn write(&self, output: Output) -> Result<(), Failure> {
        let mut output = output;
        serde_json::to_writer_pretty(&mut output, self)
            .map_err(std::io::Error::from)
            .and_then(|()| std::io::Write::write_all(&mut output, b"\n"))
            .map_err(Failure::from_output)?;
        output.publish().map(drop)
    }

    /// Opens its place; comes before the first request, like that of the data.
    pub(crate) fn open(path: &Path, no_clobber: bool) -> Result<Output, Failure> {
        let target = Target::open(Some(path), no_clobber)?;
        Output::new(target, Compression::None).map_err(Failure::from_output)
    }
}
