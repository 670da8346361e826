//! A chart on the page with its caption, legend and table, and the helpers that all charts need.

use super::charts::Spread;
use super::format::{drawn, plural};
use crate::analysis::statistics::{Metric, two_digits};
use crate::text;

/// A chart with what stands around it.
#[derive(Default)]
pub(super) struct Chart {
    pub(super) caption: String,
    pub(super) aside: String,
    pub(super) legend: Vec<(&'static str, String)>,
    pub(super) svg: String,
    /// The same as a table, where the chart alone does not say it all.
    pub(super) rows_caption: String,
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    /// Where rows lead to, as far as they do.
    pub(super) links: Vec<Option<String>>,
}

impl Chart {
    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "templates pass everything so"
    )]
    pub(super) fn link(&self, row: &usize) -> Option<&str> {
        self.links.get(*row)?.as_deref()
    }
}

/// What a batch without a crop is called.
const NO_CROP: &str = "no crop given";

pub(super) fn crop_name(crop: Option<&str>) -> String {
    crop.map_or_else(|| NO_CROP.to_owned(), text::brief)
}

/// Returns the spread of some values, to be drawn.
pub(super) fn spread(metric: &Metric, unit: &str) -> Option<Spread> {
    let values = &metric.distribution;
    let quartiles = values.quartiles()?;
    let words = format!(
        "median {} {unit}, middle half {} to {}, {}",
        two_digits(quartiles.median),
        two_digits(quartiles.low),
        two_digits(quartiles.high),
        plural(values.count(), "batch", "batches"),
    );
    Some(Spread {
        least: drawn(values.min()?),
        low: drawn(quartiles.low),
        median: drawn(quartiles.median),
        high: drawn(quartiles.high),
        most: drawn(values.max()?),
        words,
    })
}
