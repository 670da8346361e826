//! `sqlite`: a database with one table, `batches`. The archive of `sync` has tables of its own, in `archive`.

pub(crate) mod read;
pub(crate) mod write;

pub(crate) use read::read;
pub(crate) use write::column_definition;
