//! `xlsx`: a workbook for Excel and LibreOffice.

pub(crate) mod read;
pub(crate) mod write;
pub(crate) use read::read;
