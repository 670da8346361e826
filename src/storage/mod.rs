//! Where bytes go to and come from: standard output, files, and objects in object storage.
//!
//! Start with [`Location`], which a name is parsed into, then [`Storage::create`]: it opens an
//! [`EncodedOutput`], which adds compression and checksums to a [`Transaction`](transaction::Transaction), an
//! output that appears complete or not at all. [`Cleanup`] removes what is unfinished when a run is
//! interrupted. What is written is left to `formats`, and how many files to `export`.

#![cfg_attr(
    not(feature = "cloud"),
    allow(dead_code, reason = "only uploads need some of it")
)]

// Where to write.
pub(crate) mod location;
pub(crate) mod path;

// Writing one file, stream or object completely or not at all.
pub(crate) mod cleanup;
mod encode;
mod local_file;
pub(crate) mod output;
mod private_file;
mod target;
pub(crate) mod temp_file;
mod transaction;

// Kinds of storage with rules of their own.
#[cfg(feature = "cloud")]
pub(crate) mod cloud;
#[cfg(not(feature = "cloud"))]
#[path = "cloud/disabled.rs"]
pub(crate) mod cloud;
pub(crate) mod sqlite;

pub(crate) use cleanup::Cleanup;
use encode::SpareStates;
pub(crate) use encode::{Compression, Encoder};
pub(crate) use local_file::check_folder;
pub(crate) use location::{Location, is_table};
pub(crate) use output::EncodedOutput;
pub(crate) use path::is_same_file;
pub(crate) use private_file::PrivateFile;
pub(crate) use target::Existing;
pub(crate) use transaction::Escapes;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::client::ClientOptions;
use crate::error::Failure;

/// What the outputs of a run share. Clones share it, too.
#[derive(Clone, Default)]
pub(crate) struct Storage {
    pub(crate) cleanup: Cleanup,
    pub(crate) cloud: cloud::Cloud,
    /// Whether a transaction of a table may have been committed.
    pub(crate) is_committing: Arc<AtomicBool>,
    spare: SpareStates,
}

impl Storage {
    /// Returns the same storage with these options for access to object storage.
    pub(crate) fn with_options(&self, options: &ClientOptions) -> Result<Self, Failure> {
        Ok(Self {
            cloud: cloud::Cloud::new(options)?,
            ..self.clone()
        })
    }
}
