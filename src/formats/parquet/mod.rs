//! `parquet`: typed columns, for engines.

pub(crate) mod read;
pub(crate) mod write;
pub(crate) use read::read;
