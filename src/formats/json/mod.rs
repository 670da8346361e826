//! `json` and `ndjson`.

pub(crate) mod lines;
pub(crate) mod object;
pub(crate) mod read;
pub(crate) mod write;
pub(crate) use read::read;
