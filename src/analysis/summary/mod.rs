//! How figures over groups look: a table for people, JSON and CSV for programs.
//!
//! What the figures are is for [`super::statistics`]; here they are only put into words and digits.

mod csv;
mod json;
mod sparkline;
mod table;

pub(crate) use csv::csv;
pub(crate) use json::json;
pub(crate) use table::table;

use super::statistics::Decimal;
use super::statistics::figures::{Figures, Metric};
use super::statistics::round::two_digits;
use crate::batch::range::written;

/// What a table is drawn for.
pub(crate) struct TableStyle {
    /// Columns of the terminal that it must fit; nothing where there is none.
    pub(crate) width: Option<usize>,
    pub(crate) color: bool,
}

/// A summary as it is written.
pub(crate) struct SummaryOutput {
    pub(crate) text: String,
    /// Columns for which the terminal has no room.
    pub(crate) hidden_columns: usize,
}

impl From<String> for SummaryOutput {
    fn from(text: String) -> Self {
        Self {
            text,
            hidden_columns: 0,
        }
    }
}

/// The fields that have figures, with their names in files.
fn metrics(figures: &Figures) -> [(&'static str, &Metric); 4] {
    [
        ("germination_rate", &figures.germination_rate),
        ("usable_rate", &figures.usable_rate),
        ("seedling_size_mm2", &figures.seedling_size),
        (
            "coefficient_of_variation",
            &figures.coefficient_of_variation,
        ),
    ]
}

/// What is told of one field, as text: nothing where there is no value.
struct FieldText {
    low: Option<String>,
    median: Option<String>,
    high: Option<String>,
    weighted_mean: Option<String>,
}

impl FieldText {
    fn of(metric: &Metric) -> Self {
        let quartiles = metric.distribution.quartiles();
        let shown = |number: Option<Decimal>| number.map(two_digits);
        Self {
            low: shown(quartiles.map(|quartiles| quartiles.low)),
            median: shown(quartiles.map(|quartiles| quartiles.median)),
            high: shown(quartiles.map(|quartiles| quartiles.high)),
            weighted_mean: shown(metric.weighted_mean()),
        }
    }
}

/// Returns the seconds in which the first batch was created, and the last.
fn span(figures: &Figures) -> [Option<String>; 2] {
    [&figures.first, &figures.last]
        .map(|moment| moment.as_ref().map(|moment| written(moment.second)))
}
