//! `csv` and `tsv`.
//!
//! Writing: [`dialect`] turns the flags into a dialect, `write.rs` writes rows in it. Reading: [`detect`]
//! finds out the dialect of a file, `lines` rejects what other programs would read differently, and
//! [`read()`] reads the rows.

pub(crate) mod dialect;
pub(crate) mod write;

mod detect;
mod excel_dates;
mod lines;
pub(crate) mod read;

pub(crate) use dialect::CsvOptions;
pub(crate) use excel_dates::is_excel_date;
pub(crate) use read::read;
