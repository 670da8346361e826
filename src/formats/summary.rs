//! The figures of each crop, for formats that show them beside the batches. `analysis` computes them.

/// The figures of the batches in one file.
#[derive(Debug, Default)]
pub(crate) struct CropSummary {
    /// Sorted by name, then batches without a crop, then those of crops that are not listed.
    pub(crate) crops: Vec<CropRow>,
    /// All batches together.
    pub(crate) total: CropRow,
    /// What the figures are, line by line.
    pub(crate) notes: Vec<String>,
    /// The name of the time zone of days and weeks.
    pub(crate) zone: &'static str,
    /// The first second of the span that the figures are about, and the first one after it. `None` if it has no start, or if
    /// it ends when the batches were requested.
    pub(crate) bounds: [Option<i64>; 2],
}

impl CropSummary {
    /// Returns whether each crop has its own row.
    pub(crate) fn lists_all(&self) -> bool {
        self.crops.iter().all(|crop| crop.name != CropName::Others)
    }
}

/// The figures of one crop. Numbers are rounded to two digits, and `None` if no batch has a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CropRow {
    pub(crate) name: CropName,
    pub(crate) batches: u64,
    pub(crate) usable_rate: Option<f64>,
    pub(crate) usable_rate_low: Option<f64>,
    pub(crate) usable_rate_high: Option<f64>,
    pub(crate) germination_rate: Option<f64>,
    /// In points.
    pub(crate) gap: Option<f64>,
    pub(crate) coefficient_of_variation: Option<f64>,
    pub(crate) seedling_size: Option<f64>,
    pub(crate) warnings: u64,
    /// The days of the first and the last batch, such as `2026-05-01`.
    pub(crate) first: Option<String>,
    pub(crate) last: Option<String>,
    /// The usable rate of the newest week, and its change in points.
    pub(crate) newest_usable_rate: Option<f64>,
    pub(crate) change: Option<f64>,
    /// Empty if the row is not judged.
    pub(crate) verdict: &'static str,
}

/// What people see instead of the name of an absent crop.
pub(crate) const NO_CROP: &str = "no crop given";

/// What a row is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum CropName {
    /// A crop: one line of moderate length, with visible escapes.
    Named(String),
    /// Batches without a crop.
    #[default]
    Absent,
    /// Batches of all crops that are not listed.
    Others,
}
