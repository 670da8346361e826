//! The usable rate over time, one chart per crop.

use super::chart::{Chart, crop_name, spread};
use super::charts::{Spread, TrendChart, trend};
use super::format::{figure, plural, to_f64};
use super::gather::ReportData;
use super::outliers::rate_scale;
use super::steps::StepWords;
use super::svg::{AltText, tick_label};
use crate::analysis::Targets;
use crate::analysis::statistics::{Decimal, Period};

/// The maximum number of steps in a chart: a year of weeks.
const MAX_STEPS: usize = 53;
/// The maximum number of charts.
const MAX_CHARTS: usize = 12;

/// The data of one chart.
struct TrendLine {
    name: String,
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
    /// Draws the steps up to `newest`. Empty if there is none.
    pub(super) fn new(data: &ReportData, targets: &Targets, newest: Option<Period>) -> Self {
        let Some(newest) = newest else {
            return Self::default();
        };
        // Oldest first, including those without batches.
        let shown = data.last_steps(newest, MAX_STEPS);
        let lines = lines(data, targets, &shown);
        let rows = shown.iter().enumerate().map(|(index, period)| {
            let medians = lines.iter().map(|line| line.medians[index]);
            (period.label(), medians.map(figure).collect())
        });
        Self {
            rows: rows.collect(),
            note: note(data, &lines, &shown),
            charts: charts(data, &lines, &shown),
            step: data.step_words().one,
        }
    }
}

fn lines(data: &ReportData, targets: &Targets, shown: &[Period]) -> Vec<TrendLine> {
    let lines = data.by_size().into_iter().filter_map(|(crop, figures)| {
        let rates = |period: &Period| Some(&figures.steps.get(period)?.usable_rate);
        let steps = shown.iter().map(|period| spread(rates(period)?, "%"));
        let steps: Vec<Option<Spread>> = steps.collect();
        let medians = shown
            .iter()
            .map(|period| rates(period)?.distribution.median());
        let target = targets.of(crop).and_then(|target| target.usable_rate_min);
        let is_empty = steps.iter().all(Option::is_none);
        (!is_empty).then(|| TrendLine {
            name: crop_name(crop),
            target: target.map(to_f64),
            steps,
            medians: medians.collect(),
        })
    });
    lines.take(MAX_CHARTS).collect()
}

fn charts(data: &ReportData, lines: &[TrendLine], shown: &[Period]) -> Vec<Chart> {
    let labels: Vec<String> = shown.iter().map(|period| period.label()).collect();
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
                plural(labels.len() as u64, one, many)
            );
            let description = with.last().map_or_else(String::new, |last| {
                let last_label = steps
                    .iter()
                    .rposition(Option::is_some)
                    .map_or("", |index| labels[index].as_str());
                format!(
                    "{} with values between {} and {}. The last one, {last_label}: {}.",
                    plural(with.len() as u64, one, many),
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
                    || "usable rate, %".to_owned(),
                    |target| format!("usable rate, %; target {}", tick_label(target)),
                ),
                svg,
                ..Chart::default()
            }
        })
        .collect()
}

fn note(data: &ReportData, lines: &[TrendLine], shown: &[Period]) -> String {
    let words = data.step_words();
    let mut notes = vec![format!(
        "The line is the median per {}, the band the middle half of the batches, on the same scale for all crops. The orange dot is the newest {}; a triangle is below the scale.",
        words.one, words.one
    )];
    if lines.iter().any(|line| line.target.is_some()) {
        notes.push("The dashed line is your target.".to_owned());
    }
    let (first, oldest) = (shown.first(), data.first_step());
    if let (Some(first), Some(oldest)) = (first, oldest)
        && oldest < *first
    {
        notes.push(format!(
            "The charts show the last {} {}; the table by crop covers all since {}.",
            shown.len(),
            words.many,
            oldest.label()
        ));
    }
    let crops = data.crops.len();
    if crops > MAX_CHARTS {
        notes.push(format!(
            "Only the {MAX_CHARTS} crops with the most batches are shown."
        ));
    }
    notes.join(" ")
}
