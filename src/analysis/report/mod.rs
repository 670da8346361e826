//! The report: one HTML page with charts, without scripts and without external resources.
//!
//! [`ReportData`] collects the batches; [`render`] builds the page. Read `gather.rs` first, then `page.rs`,
//! which lists the sections. The figures come from [`super::statistics`], the layout from `page.html` and
//! the images from `control.rs`, `trends.rs`, `cells.rs` and `dots.rs`. All text from the service is escaped, by the template and by [`svg`].
//!
//! Where the page is written, and what the terminal shows, is left to `commands`.

#![allow(clippy::cast_precision_loss, reason = "counts on a page are small")]

// Collects the batches.
mod gather;
mod parse;
mod quality;
mod recent;

// The page and its sections.
mod attention;
mod cells;
mod control;
mod crops;
mod dots;
mod page;
mod tiles;
mod trends;
mod verdict;

// Numbers and dates as text.
mod format;

// Charts.
mod chart;
mod svg;

pub(crate) use gather::ReportData;
pub(crate) use page::{ReportInfo, render};
