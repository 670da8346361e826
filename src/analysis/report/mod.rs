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

// Sections of the page.
mod attention;
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
pub(crate) use span::ReportSpan;

use askama::Template as _;

use super::targets::Targets;
use crate::error::{Failure, Kind};

/// What a page tells of itself.
pub(crate) struct ReportInfo {
    pub(crate) title: String,
    /// The profile of the settings, where it has a name.
    pub(crate) profile: Option<String>,
    /// Where the batches came from.
    pub(crate) source: String,
    /// Of dates, in words.
    pub(crate) range: String,
    /// What batches had to fulfil.
    pub(crate) conditions: Vec<String>,
    /// The version of the interface, where a service was asked.
    pub(crate) version: Option<String>,
    /// When it was made, in seconds since 1970.
    pub(crate) made: i64,
    /// Whether the page names who scanned.
    pub(crate) has_emails: bool,
    /// What was noticed on the way here: how many batches, and what of them.
    pub(crate) noticed: Vec<(u64, String)>,
    /// Whether something that came is in no figure.
    pub(crate) has_left_out: bool,
}

/// Returns the page.
pub(crate) fn render(
    gathered: &ReportData,
    facts: &ReportInfo,
    targets: &Targets,
) -> Result<String, Failure> {
    page::ReportPage::new(gathered, facts, targets)
        .render()
        .map_err(|error| Failure::new(Kind::Internal, "cannot make the page").caused_by(error))
}
