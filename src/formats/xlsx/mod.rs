//! `xlsx`: a workbook for Excel and LibreOffice.
//!
//! The writer streams rows into a workbook from rust_xlsxwriter. The reader unpacks each part once, and reads cells in
//! the usual notation without an XML parser. It refuses workbooks that other programs refuse or read differently.

mod excel_date;
pub(crate) mod read;
mod summary;
pub(crate) mod write;
pub(crate) use read::Workbook;

/// The program that writes a workbook.
const PROGRAM: &str = concat!("trayscan ", env!("CARGO_PKG_VERSION"));
/// The sheet with figures, and the one that describes the export.
const SUMMARY: &str = "Summary";
const ABOUT: &str = "About";
/// The labels of the bounds of the figures, if the range has them: the first second, and the first one after it.
const BOUNDS: [&str; 2] = ["Figures from (UTC)", "Figures before (UTC)"];
