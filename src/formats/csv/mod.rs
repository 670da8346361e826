//! `csv` and `tsv`.

pub(crate) mod dialect;
pub(crate) mod read;
pub(crate) mod write;
pub(crate) use read::read;
pub(crate) use write::CsvOptions;
