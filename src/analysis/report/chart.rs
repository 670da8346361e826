//! A chart on the page with its caption, legend and table, and the helpers that all charts need.

use super::charts::Spread;
use super::format::to_f64;
use crate::analysis::statistics::{Metric, two_digits};
use crate::formats::NO_CROP;
use crate::text;

/// A chart with its caption, legend and table.
#[derive(Default)]
pub(super) struct Chart {
    pub(super) caption: String,
    pub(super) aside: String,
    pub(super) legend: Vec<(&'static str, String)>,
    pub(super) svg: String,
    /// The caption of the table with the same data, if there is one.
    pub(super) rows_caption: String,
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    /// The link of each row, if any.
    pub(super) links: Vec<Option<String>>,
}

impl Chart {
    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "templates pass references"
    )]
    pub(super) fn link(&self, row: &usize) -> Option<&str> {
        self.links.get(*row)?.as_deref()
    }
}

/// Returns the name of a crop as the page shows it.
pub(super) fn crop_name(crop: &str) -> String {
    if crop.is_empty() {
        NO_CROP.to_owned()
    } else {
        text::shortened(crop)
    }
}

/// Returns the spread of a metric for drawing. `None` if it has no values.
pub(super) fn spread(metric: &Metric, unit: &str) -> Option<Spread> {
    let values = &metric.distribution;
    let quartiles = values.quartiles()?;
    let words = format!(
        "median {} {unit}, middle half {} to {}, {}",
        two_digits(quartiles.median),
        two_digits(quartiles.low),
        two_digits(quartiles.high),
        text::count(values.count(), "batch", "batches"),
    );
    Some(Spread {
        least: to_f64(values.min()?),
        low: to_f64(quartiles.low),
        median: to_f64(quartiles.median),
        high: to_f64(quartiles.high),
        most: to_f64(values.max()?),
        words,
    })
}
