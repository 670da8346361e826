//! Where bytes go to and come from: standard output, files, and objects in object storage.
//!
//! Start with [`Location`], which a name is parsed into, then [`OutputTarget`]: a file or object that appears
//! complete or not at all. [`EncodedOutput`] adds compression and checksums. `cleanup.rs` removes unfinished
//! files when a run is interrupted. What is written is left to `formats`, and how many files to `export`.

pub(crate) mod path;

// Where to write.
pub(crate) mod location;

// Writing one file or object completely or not at all.
pub(crate) mod cleanup;
pub(crate) mod escaping;
pub(crate) mod output;
pub(crate) mod target;
pub(crate) mod temp_file;

// Kinds of storage with rules of their own.
pub(crate) mod cloud;
pub(crate) mod sqlite;

pub(crate) use escaping::Escapes;
pub(crate) use location::{Location, is_table};
pub(crate) use output::{Compression, EncodedOutput, Published};
pub(crate) use path::is_same_file;
pub(crate) use target::OutputTarget;
