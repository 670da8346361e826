//! Formats: batches to bytes and back.
//!
//! Start with [`writer`] (the trait that every format implements) and [`record`] (what every reader
//! produces). Each format has a folder with `write.rs` and `read.rs`; a table is for people and has only a
//! writer. Readers share hardly any code with the writers, so they see what other programs see.
//!
//! To add a format, add a folder, a variant of [`Format`], an arm in [`new_writer`], and, if it can be
//! verified, a case in [`detect`]. Where the bytes go is up to `storage`; which files are written, to
//! `export`.

// The writing side: the formats, the trait of their writers and its options, and figures that they may show.
mod format;
mod summary;
mod writer;

// The reading side: what a reader returns, and which format a file has.
pub(crate) mod detect;
pub(crate) mod record;

pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod parquet;
pub(crate) mod singer;
pub(crate) mod sqlite;
mod table;
pub(crate) mod xlsx;

// Tests that every writer must pass.
#[cfg(test)]
mod suite;

pub(crate) use format::{Format, check_options, new_writer};
pub(crate) use summary::{CropName, CropRow, CropSummary, NO_CROP};
pub(crate) use writer::{
    BatchWriter, ExportInfo, ExportOutcome, Finished, LEFT_OUT_LIMIT, LeftOut, WriterOptions,
    WriterReport,
};
