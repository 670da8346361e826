//! Formats the figures of groups: a table for people, JSON and CSV for programs, and rows for a workbook.
//!
//! One file per format; read `table.rs` first. The figures are computed by [`super::statistics`]. Where the
//! text is written is left to `commands`.

mod data;

mod sparkline;
mod table;

mod csv;
mod json;

// The figures of a workbook, which `formats` writes.
mod crops;

// Used by all formats.
mod fields;

pub(crate) use crops::CropFigures;
pub(crate) use csv::csv;
pub(crate) use data::SummaryData;
pub(crate) use json::json;
pub(crate) use table::{TableStyle, table};
