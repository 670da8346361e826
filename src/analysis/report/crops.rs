//! The crops in the newest step, the worst first, and over the whole range.

use super::chart::crop_name;
use super::format::{day, figure, short_period, signed_change, to_f64};
use super::gather::ReportData;
use super::trends::spark;
use crate::analysis::judgement::{CropJudgement, NewestStep, TargetState, Verdict};
use crate::analysis::statistics::{Decimal, Figures, Metric, Period, distinct, two_digits};
use crate::text::{join, thousands};

/// The number of steps in a sparkline.
const SPARK_STEPS: usize = 12;
/// The maximum number of rows in a table.
const MAX_ROWS: usize = 100;

/// A crop in the newest step.
pub(super) struct NewestRow {
    pub(super) name: String,
    pub(super) is_unknown: bool,
    /// The CSS class: `down`, `up`, `usual`, `failed`, `few` or `absent`.
    pub(super) class: &'static str,
    pub(super) batches: String,
    pub(super) usable: String,
    pub(super) arrow: &'static str,
    /// The change in points and the verdict in a word.
    pub(super) change: String,
    pub(super) verdict: String,
    pub(super) target: Option<TargetWords>,
    pub(super) germination: String,
    pub(super) gap: String,
    pub(super) variation: String,
    pub(super) size: String,
    pub(super) spark: String,
    /// Says when its last batch was, if the newest step has none.
    pub(super) absent: Option<String>,
}

/// Whether a crop meets its targets.
pub(super) struct TargetWords {
    pub(super) class: &'static str,
    pub(super) words: String,
}

/// The crops in the newest step.
#[derive(Default)]
pub(super) struct NewestTable {
    pub(super) rows: Vec<NewestRow>,
    pub(super) has_targets: bool,
    pub(super) spark_steps: usize,
    /// The number of crops without a row.
    pub(super) left_out: usize,
    /// Says what of the data is missing in the comparison.
    pub(super) limits: String,
}

impl NewestTable {
    pub(super) fn new(data: &ReportData, newest: &NewestStep<'_>) -> Self {
        let steps = data.history.last_steps(newest.period, SPARK_STEPS);
        let rows = newest.crops.iter().take(MAX_ROWS);
        let rows: Vec<NewestRow> = rows.map(|crop| row(data, crop, &steps)).collect();
        let weeks = data.step_words().1;
        let limits = [newest.cut(data.span.start(), weeks), newest.later(weeks)];
        Self {
            has_targets: rows.iter().any(|row| row.target.is_some()),
            spark_steps: steps.len(),
            left_out: newest.crops.len() - rows.len(),
            limits: join(limits.into_iter().flatten(), " "),
            rows,
        }
    }
}

fn row(data: &ReportData, crop: &CropJudgement<'_>, steps: &[Period]) -> NewestRow {
    let judged = &crop.comparison;
    let (class, arrow, verdict) = match judged.verdict {
        _ if crop.newest.is_none() => ("absent", "", "no batches"),
        Verdict::Down => ("down", "▼", "down"),
        Verdict::Up => ("up", "▲", "up"),
        Verdict::Usual if judged.is_unclear() => ("usual", "", "varies too much to tell"),
        Verdict::Usual => ("usual", "", "as usual"),
        Verdict::TooFew => ("few", "", "too few to compare"),
    };
    let (class, failures) = match class {
        _ if !crop.has_failure => (class, ""),
        "down" => (class, ", with failures"),
        _ => ("failed", ", with failures"),
    };
    let none = Figures::default();
    let figures = crop.newest.unwrap_or(&none);
    let medians = steps.iter().map(|step| {
        let figures = crop.history.steps.get(step)?;
        figures.usable_rate.distribution.median()
    });
    let medians: Vec<Option<Decimal>> = medians.collect();
    let values: Vec<Option<f64>> = medians.iter().map(|median| median.map(to_f64)).collect();
    let limit = crop.target.and_then(|target| target.usable_rate_min);
    let germination_limit = crop.target.and_then(|target| target.germination_rate_min);
    let variation_limit = crop.target;
    let variation_limit = variation_limit.and_then(|target| target.coefficient_of_variation_max);
    let last = crop.last.and_then(|(_, figures)| figures.last.as_ref());
    let last = last.map(|last| data.span.zone.local(last.second));
    NewestRow {
        name: crop_name(crop.name),
        is_unknown: crop.name.is_empty(),
        class,
        batches: thousands(figures.batches),
        usable: median(&figures.usable_rate, limit),
        arrow,
        change: judged.change.map_or_else(String::new, signed_change),
        verdict: format!("{verdict}{failures}"),
        target: TargetWords::of(crop),
        germination: median(&figures.germination_rate, germination_limit),
        gap: figure(figures.gap()),
        variation: median(&figures.coefficient_of_variation, variation_limit),
        size: median(&figures.seedling_size, None),
        spark: spark(&values, limit.map(to_f64), &spark_words(steps, &medians)),
        absent: crop.newest.is_none().then(|| match last {
            Some(last) => format!("no batches, last on {}", day(last)),
            None => "no batches with a date in the past".to_owned(),
        }),
    }
}

/// Returns the median, with more digits if it would look like a target that it misses.
fn median(metric: &Metric, target: Option<Decimal>) -> String {
    match (metric.distribution.median(), target) {
        (Some(median), Some(target)) => distinct(median, target),
        (median, _) => figure(median),
    }
}

/// Returns the values of a sparkline as text.
fn spark_words(steps: &[Period], medians: &[Option<Decimal>]) -> String {
    let words = steps.iter().zip(medians).filter_map(|(step, median)| {
        let median = two_digits((*median)?);
        Some(format!("{} {median}", short_period(*step)))
    });
    match join(words, ", ") {
        none if none.is_empty() => "no values in these steps".to_owned(),
        words => words,
    }
}

impl TargetWords {
    fn of(crop: &CropJudgement<'_>) -> Option<Self> {
        let state = crop.target_state()?;
        let (target, newest) = crop.target.zip(crop.newest)?;
        let set = target.with_medians(newest).into_iter();
        let set = set.filter_map(|(name, target, median)| Some((name, target?, median)));
        let is_missed = |name: &str| crop.missed.iter().any(|missed| missed.field == name);
        let named = set.filter(|(name, _, median)| match state {
            TargetState::Missed => is_missed(name),
            TargetState::Met => true,
            TargetState::NoValues => median.is_none(),
        });
        let words =
            named.map(|(name, target, _)| format!("{name}\u{a0}{}\u{a0}%", target.normalize()));
        let words = join(words, ", ");
        let (class, words) = match state {
            TargetState::Met => ("met", format!("✓ met: {words}")),
            TargetState::Missed => ("missed", format!("✗ missed: {words}")),
            TargetState::NoValues => ("open", format!("no values for {words}")),
        };
        Some(Self { class, words })
    }
}

/// A crop over the whole range.
#[derive(Default)]
pub(super) struct RangeRow {
    pub(super) name: String,
    pub(super) is_unknown: bool,
    pub(super) batches: String,
    /// The median, and the quartiles around it.
    pub(super) germination: (String, String),
    pub(super) usable: (String, String),
    pub(super) gap: String,
    pub(super) variation: String,
    pub(super) size: String,
}

/// Returns the crops over the whole range by name, those without one last.
pub(super) fn range_rows(data: &ReportData) -> Vec<RangeRow> {
    let crops = data.history.crops.iter();
    let mut crops: Vec<_> = crops.map(|(name, crop)| (name, crop.total())).collect();
    crops.sort_by_cached_key(|(name, _)| (name.is_empty(), name.to_lowercase()));
    crops.truncate(MAX_ROWS);
    let rows = crops.iter().map(|(name, total)| RangeRow {
        name: crop_name(name),
        is_unknown: name.is_empty(),
        batches: thousands(total.batches),
        germination: middle(&total.germination_rate),
        usable: middle(&total.usable_rate),
        gap: figure(total.gap()),
        variation: median(&total.coefficient_of_variation, None),
        size: median(&total.seedling_size, None),
    });
    rows.collect()
}

/// Returns the median, and the quartiles around it.
fn middle(metric: &Metric) -> (String, String) {
    match metric.distribution.quartiles() {
        Some(quartiles) => {
            let [low, median, high] = quartiles.map(two_digits);
            (median, format!("[{low}, {high}]"))
        }
        None => (figure(None), String::new()),
    }
}
