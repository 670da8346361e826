//! `verify`: compares a file, a lake or a table with a manifest, another file, the service or an archive.
//!
//! Start with `run`. Reading files and comparing batches is in `verify` of the crate.

mod run;

// The file that is verified.
mod subject;

// What a manifest says.
mod expected;

// The service or an archive, fetched again.
mod refetch;

// PostgreSQL tables.
mod tables;

// How a file compares with its manifest.
mod result;

// The whole result, as text or JSON.
mod report;

pub(super) use run::run;
