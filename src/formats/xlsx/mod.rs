//! `xlsx`: a workbook for Excel and LibreOffice.
//!
//! The writer streams rows into a workbook from rust_xlsxwriter. The reader recognises cells in the
//! notation of an export, and takes all others from calamine. It checks the zip archive and the XML itself, because
//! calamine accepts workbooks that other programs refuse or read differently.

pub(crate) mod read;
pub(crate) mod write;
pub(crate) use read::read;
