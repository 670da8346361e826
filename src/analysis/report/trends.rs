//! The usable rate over the steps, one chart per crop.

use super::chart::{Chart, crop_name, spread};
use super::charts::{Spread, TrendChart, trend};
use super::format::{drawn, figure, plural};
use super::gather::ReportData;
use super::outliers::rate_scale;
use super::steps::StepWords;
use super::svg::{AltText, tick_label};
use crate::analysis::Targets;
use crate::analysis::statistics::{Decimal, Period};

/// Steps in a chart, at most: a year of weeks.
const STEPS: usize = 53;
/// Charts, at most.
const CHARTS: usize = 12;

/// What is drawn of one crop.
struct TrendLine {
    name: String,
    target: Option<f64>,
    steps: Vec<Option<Spread>>,
    medians: Vec<Option<Decimal>>,
}

/// The charts, what is said of them, and the same as a table.
#[derive(Default)]
pub(super) struct Trends {
    pub(super) charts: Vec<Chart>,
    pub(super) note: String,
    /// What a step is called.
    pub(super) step: &'static str,
    /// Each step with the medians of the charts.
    pub(super) rows: Vec<(String, Vec<String>)>,
}

impl Trends {
    /// Draws the steps up to `newest`; nothing where no batch has a step.
    pub(super) fn new(gathered: &ReportData, targets: &Targets, newest: Option<Period>) -> Self {
        let Some(newest) = newest else {
            return Self::default();
        };
        // Oldest first, those without batches too.
        let shown = gathered.last_steps(newest, STEPS);
        let lines = lines(gathered, targets, &shown);
        let rows = shown.iter().enumerate().map(|(place, period)| {
            let medians = lines.iter().map(|line| line.medians[place]);
            (period.label(), medians.map(figure).collect())
        });
        Self {
            rows: rows.collect(),
            note: note(gathered, &lines, &shown),
            charts: charts(gathered, &lines, &shown),
            step: gathered.step_words().one,
        }
    }
}

fn lines(gathered: &ReportData, targets: &Targets, shown: &[Period]) -> Vec<TrendLine> {
    let lines = gathered
        .by_size()
        .into_iter()
        .filter_map(|(crop, figures)| {
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
                target: target.map(drawn),
                steps,
                medians: medians.collect(),
            })
        });
    lines.take(CHARTS).collect()
}

fn charts(gathered: &ReportData, lines: &[TrendLine], shown: &[Period]) -> Vec<Chart> {
    let labels: Vec<String> = shown.iter().map(|period| period.label()).collect();
    let lows = lines.iter().flat_map(|line| line.steps.iter().flatten());
    let lows = lows.map(|spread| spread.low).collect();
    let scale = rate_scale(lows, lines.iter().filter_map(|line| line.target));
    lines
        .iter()
        .enumerate()
        .map(|(place, line)| {
            let TrendLine {
                name,
                target,
                steps,
                ..
            } = line;
            let with: Vec<&Spread> = steps.iter().flatten().collect();
            let StepWords { one, many } = gathered.step_words();
            let title = format!(
                "Usable rate of {name} in percent, {one} by {one} ({})",
                plural(labels.len() as u64, one, many)
            );
            let description = with.last().map_or_else(String::new, |last| {
                let last_label = steps
                    .iter()
                    .rposition(Option::is_some)
                    .map_or("", |place| labels[place].as_str());
                format!(
                    "{} with values between {} and {}. The last, {last_label}: {}.",
                    plural(with.len() as u64, one, many),
                    labels.first().map_or("", String::as_str),
                    labels.last().map_or("", String::as_str),
                    last.words
                )
            });
            let svg = trend(&TrendChart {
                words: AltText {
                    id: &format!("trend{place}"),
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

fn note(gathered: &ReportData, lines: &[TrendLine], shown: &[Period]) -> String {
    let words = gathered.step_words();
    let mut notes = vec![format!(
        "Median per {} as a line, the middle half of the batches as a band, on one scale; the orange dot is the newest {}, a triangle lies below the scale.",
        words.one, words.one
    )];
    if lines.iter().any(|line| line.target.is_some()) {
        notes.push("The dashed line is your target.".to_owned());
    }
    let (first, oldest) = (shown.first(), gathered.first_step());
    if let (Some(first), Some(oldest)) = (first, oldest)
        && oldest < *first
    {
        notes.push(format!(
            "The charts show the last {} {}; the table has all since {}.",
            shown.len(),
            words.many,
            oldest.label()
        ));
    }
    let crops = gathered.crops.len();
    if crops > CHARTS {
        notes.push(format!("The {CHARTS} crops with the most batches."));
    }
    notes.join(" ")
}
