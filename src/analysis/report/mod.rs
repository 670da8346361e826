//! The report: one HTML page with charts, without script and without anything from elsewhere.
//!
//! [`ReportData`] takes in batches as they come; [`render`] makes the page of it. What stands on the page
//! comes from `shared` figures ([`super::statistics`]), the template `page.html` and the pictures of
//! [`charts`]. All text from the service is escaped, by the template and by [`svg`].

// Batches as they come.
mod gather;
mod losses;
mod newest;
mod parse;
mod quality;
mod span;
mod steps;

// Sections of the page.
mod attention;
mod chart;
mod control;
mod crops;
mod dots;
mod format;
mod page;
mod tiles;
mod trends;

// Text, made harmless.
mod escape;

// Pictures.
mod charts;
mod outliers;
mod svg;

pub(crate) use gather::ReportData;
pub(crate) use page::{ReportInfo, render};
pub(crate) use span::ReportSpan;
