//! `parquet`: typed columns, for query engines.
//!
//! The writer buffers columns until they fill a row group. The reader uses the parquet crate for the values, and
//! reads footer, page headers and indexes itself, because the crate ignores much that other readers rely on.

pub(crate) mod read;
pub(crate) mod write;
pub(crate) use read::read;
