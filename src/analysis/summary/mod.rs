//! Formats the figures of groups: a table for people, JSON and CSV for programs, and rows for a workbook.
//!
//! Read `table.rs` first. The figures are computed by [`super::statistics`]. Where the
//! text is written is left to `commands`.

mod data;

// For people, and for programs.
mod files;
mod table;

// The figures of a workbook, which `formats` writes.
mod crops;

pub(crate) use crops::CropFigures;
pub(crate) use data::SummaryData;
pub(crate) use files::{csv, json};
pub(crate) use table::table;
