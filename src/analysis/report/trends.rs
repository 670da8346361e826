//! The usable rate over time, one chart per crop.

use super::chart::{Chart, crop_name, spread};
use super::charts::{Spread, TrendChart, trend};
use super::format::{figure, period_name, short_period, to_f64};
use super::gather::{ReportData, StepWords};
use super::outliers::rate_scale;
use super::svg::{AltText, tick_label};
use crate::analysis::judgement::{CropJudgement, NewestStep};
use crate::analysis::statistics::{Decimal, Period};
use crate::text;

/// The maximum number of steps in a chart.
const MAX_STEPS: usize = 12;
/// The maximum number of charts.
const MAX_CHARTS: usize = 12;

/// The data of one chart.
struct TrendLine {
    name: String,
    /// Whether it is that of a crop.
    is_named: bool,
    target: Option<f64>,
    steps: Vec<Option<Spread>>,
    medians: Vec<Option<Decimal>>,
}

/// The charts, a note, and a table with the same data.
#[derive(Default)]
pub(super) struct Trends {
    pub(super) charts: Vec<Chart>,
    pub(super) note: String,
    /// The name of a step.
    pub(super) step: &'static str,
    /// Each step with the medians of all charts.
    pub(super) rows: Vec<(String, Vec<String>)>,
}

impl Trends {
    /// Draws the steps up to the newest, the crops that need attention first.
    pub(super) fn new(data: &ReportData, newest: &NewestStep<'_>) -> Self {
        // Oldest first, including those without batches.
        let shown = data.history.last_steps(newest.period, MAX_STEPS);
        let mut lines = lines(newest, &shown);
        lines.truncate(MAX_CHARTS);
        let rows = shown.iter().enumerate().map(|(index, period)| {
            let medians = lines.iter().map(|line| line.medians[index]);
            (step_name(*period), medians.map(figure).collect())
        });
        Self {
            rows: rows.collect(),
            note: note(data, &lines, &shown),
            charts: charts(data, &lines, &shown),
            step: data.step_words().one,
        }
    }
}

/// Returns the name of a step with its days.
fn step_name(period: Period) -> String {
    match period_name(period) {
        (name, dates) if dates.is_empty() => name,
        (name, dates) => format!("{name}, {dates}"),
    }
}

/// Returns the crops in the order in which they need attention.
pub(super) fn by_attention<'a>(newest: &'a NewestStep<'a>) -> Vec<&'a CropJudgement<'a>> {
    let mut crops: Vec<&CropJudgement<'_>> = newest.crops.iter().collect();
    // The sort is stable: otherwise the order is that of the table.
    crops.sort_by_key(|crop| match (crop.is_down(), crop.has_attention) {
        _ if crop.newest.is_none() => 3,
        (true, _) => 0,
        _ if !crop.missed.is_empty() => 0,
        (false, true) => 1,
        (false, false) => 2,
    });
    crops
}

fn lines(newest: &NewestStep<'_>, shown: &[Period]) -> Vec<TrendLine> {
    let crops = by_attention(newest).into_iter();
    let lines = crops.filter_map(|crop| {
        let rates = |period: &Period| Some(&crop.history.steps.get(period)?.usable_rate);
        let steps = shown.iter().map(|period| spread(rates(period)?, "%"));
        let steps: Vec<Option<Spread>> = steps.collect();
        let medians = shown
            .iter()
            .map(|period| rates(period)?.distribution.median());
        let target = crop.target.and_then(|target| target.usable_rate_min);
        let is_empty = steps.iter().all(Option::is_none);
        (!is_empty).then(|| TrendLine {
            name: crop_name(crop.name),
            is_named: !crop.name.is_empty(),
            target: target.map(to_f64),
            steps,
            medians: medians.collect(),
        })
    });
    lines.collect()
}

fn charts(data: &ReportData, lines: &[TrendLine], shown: &[Period]) -> Vec<Chart> {
    let labels: Vec<String> = shown.iter().map(|period| short_period(*period)).collect();
    let lows = lines.iter().flat_map(|line| line.steps.iter().flatten());
    let lows = lows.map(|spread| spread.low).collect();
    let scale = rate_scale(lows, lines.iter().filter_map(|line| line.target));
    lines
        .iter()
        .enumerate()
        .map(|(index, line)| {
            let TrendLine {
                name,
                target,
                steps,
                ..
            } = line;
            let with: Vec<&Spread> = steps.iter().flatten().collect();
            let StepWords { one, many } = data.step_words();
            let title = format!(
                "Usable rate of {name} in percent, {one} by {one} ({})",
                text::count(labels.len() as u64, one, many)
            );
            let description = with.last().map_or_else(String::new, |last| {
                let last_label = steps
                    .iter()
                    .rposition(Option::is_some)
                    .map_or("", |index| labels[index].as_str());
                format!(
                    "{} with values between {} and {}. The last one, {last_label}: {}.",
                    text::count(with.len() as u64, one, many),
                    labels.first().map_or("", String::as_str),
                    labels.last().map_or("", String::as_str),
                    last.words
                )
            });
            let svg = trend(&TrendChart {
                words: AltText {
                    id: &format!("trend{index}"),
                    title: &title,
                    description: &description,
                },
                steps,
                labels: &labels,
                target: *target,
                scale,
            });
            Chart {
                caption: name.clone(),
                aside: target.map_or_else(
                    || "usable, %".to_owned(),
                    |target| format!("usable, %; target {}", tick_label(target)),
                ),
                svg,
                ..Chart::default()
            }
        })
        .collect()
}

fn note(data: &ReportData, lines: &[TrendLine], shown: &[Period]) -> String {
    let StepWords { one, many } = data.step_words();
    let mut notes = Vec::new();
    let drawn = lines.iter().filter(|line| line.is_named).count();
    let unnamed = match lines.len() - drawn {
        0 => "",
        _ => " and the batches without a crop",
    };
    if lines.len() > 1 {
        let crops = match data.named_crops() {
            all if drawn < all => format!("{drawn} of {all} crops"),
            1 => "The only crop".to_owned(),
            all => format!("All {all} crops"),
        };
        notes.push(format!(
            "{crops}{unnamed}, those that need attention first."
        ));
    }
    notes.push(format!(
        "Line: median per {one} over {} {many}; band: the middle half of the batches; orange: the newest {one}. All charts have the same scale; a triangle is beyond it, and numbers at an edge say how far a median or a band reaches.",
        shown.len()
    ));
    if lines.iter().any(|line| line.target.is_some()) {
        notes.push("Dashed: your target.".to_owned());
    }
    notes.join(" ")
}
