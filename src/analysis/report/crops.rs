//! Compares the crops: the table, and the charts with one row per crop.

use super::chart::{Chart, crop_name, spread};
use super::charts::{BoxPlot, Loss, boxes, boxes_scale, losses, spark};
use super::format::{figure, plural, to_f64};
use super::gather::ReportData;
use super::outliers::{rate_scale, usual_most};
use super::svg::AltText;
use crate::analysis::statistics::{Decimal, Figures, Metric, Period, two_digits};
use crate::analysis::{Target, Targets};

/// The number of steps in a sparkline.
const SPARK_STEPS: usize = 12;
/// The maximum number of rows in a table.
const MAX_ROWS: usize = 100;
/// The maximum number of rows in a chart.
const MAX_BARS: usize = 16;

/// A row of the table.
#[derive(Default)]
pub(super) struct CropRow {
    pub(super) name: String,
    pub(super) is_unknown: bool,
    pub(super) batches: u64,
    pub(super) germination: MedianAndQuartiles,
    pub(super) usable: MedianAndQuartiles,
    pub(super) gap: String,
    pub(super) variation: String,
    pub(super) size: String,
    pub(super) spark: String,
    pub(super) spark_words: String,
    pub(super) target: Option<TargetResult>,
}

/// A median and the quartiles around it.
#[derive(Default)]
pub(super) struct MedianAndQuartiles {
    pub(super) median: String,
    pub(super) quartiles: String,
}

/// Whether a crop meets its targets.
pub(super) struct TargetResult {
    pub(super) class: &'static str,
    pub(super) words: String,
}

pub(super) struct CropTable {
    pub(super) rows: Vec<CropRow>,
    pub(super) total: CropRow,
    pub(super) note: String,
    pub(super) spark_steps: usize,
}

pub(super) fn table(data: &ReportData, targets: &Targets, newest: Option<Period>) -> CropTable {
    let words = data.step_words();
    let steps = newest.map_or_else(Vec::new, |newest| data.last_steps(newest, SPARK_STEPS));
    let crops = data.by_size();
    let medians: Vec<Vec<Option<Decimal>>> = crops
        .iter()
        .map(|(_, crop)| medians(&steps, |period| crop.steps.get(&period).cloned()))
        .collect();
    let all = medians_of_all(data, &steps);
    let values = medians
        .iter()
        .chain([&all])
        .flatten()
        .flatten()
        .map(|median| to_f64(*median));
    let scale = rate_scale(values.collect(), std::iter::empty());
    let rows = crops.iter().zip(&medians).take(MAX_ROWS);
    let rows = rows.map(|((name, crop), medians)| {
        let total = crop.total();
        CropRow {
            name: crop_name(*name),
            is_unknown: name.is_none(),
            target: targets
                .of(*name)
                .and_then(|target| TargetResult::of(&total, target)),
            ..row(&total, &steps, medians, scale)
        }
    });
    let rows: Vec<CropRow> = rows.collect();
    let mut notes = Vec::new();
    if !steps.is_empty() {
        notes.push(format!(
            "The sparklines go from {:.0} % (or less) to 100 % in all rows, {} by {}.",
            scale.0, words.one, words.one
        ));
    }
    match crops.len() - rows.len() {
        0 => {}
        1 => notes.push(
            "One crop with fewer batches is not listed; `trayscan summary` lists all.".to_owned(),
        ),
        left_out => notes.push(format!(
            "{left_out} crops with fewer batches are not listed; `trayscan summary` lists all."
        )),
    }
    CropTable {
        rows,
        total: row(&data.total(), &steps, &all, scale),
        note: notes.join(" "),
        spark_steps: steps.len(),
    }
}

fn medians_of_all(data: &ReportData, steps: &[Period]) -> Vec<Option<Decimal>> {
    medians(steps, |period| Some(data.at(period)))
}

fn medians(steps: &[Period], figures: impl Fn(Period) -> Option<Figures>) -> Vec<Option<Decimal>> {
    let median = |period: &Period| figures(*period)?.usable_rate.distribution.median();
    steps.iter().map(median).collect()
}

fn row(
    figures: &Figures,
    steps: &[Period],
    medians: &[Option<Decimal>],
    scale: (f64, f64),
) -> CropRow {
    let values: Vec<Option<f64>> = medians.iter().map(|median| median.map(to_f64)).collect();
    CropRow {
        batches: figures.batches,
        germination: middle(&figures.germination_rate),
        usable: middle(&figures.usable_rate),
        gap: figure(figures.gap()),
        variation: figure(figures.coefficient_of_variation.distribution.median()),
        size: figure(figures.seedling_size.distribution.median()),
        spark: spark(&values, scale),
        spark_words: spark_words(steps, medians),
        ..CropRow::default()
    }
}

/// Returns the text of a sparkline for screen readers.
fn spark_words(steps: &[Period], medians: &[Option<Decimal>]) -> String {
    let words: Vec<String> = steps
        .iter()
        .zip(medians)
        .filter_map(|(step, median)| Some(format!("{} {}", step.label(), two_digits((*median)?))))
        .collect();
    if words.is_empty() {
        "no values in these steps".to_owned()
    } else {
        words.join(", ")
    }
}

fn middle(metric: &Metric) -> MedianAndQuartiles {
    match metric.distribution.quartiles() {
        Some(quartiles) => MedianAndQuartiles {
            median: two_digits(quartiles.median),
            quartiles: format!(
                "[{}, {}]",
                two_digits(quartiles.low),
                two_digits(quartiles.high)
            ),
        },
        None => MedianAndQuartiles {
            median: "–".to_owned(),
            quartiles: String::new(),
        },
    }
}

impl TargetResult {
    /// Compares the medians with the targets. `None` if no target is set.
    fn of(figures: &Figures, target: &Target) -> Option<Self> {
        type Check = fn(Decimal, Decimal) -> bool;
        let median = |metric: &Metric| metric.distribution.median();
        let at_least = |value: Decimal, target: Decimal| value >= target;
        let at_most = |value: Decimal, target: Decimal| value <= target;
        let all: [(&str, _, _, Check); 3] = [
            (
                "usable",
                median(&figures.usable_rate),
                target.usable_rate_min,
                at_least,
            ),
            (
                "germination",
                median(&figures.germination_rate),
                target.germination_rate_min,
                at_least,
            ),
            (
                "CV",
                median(&figures.coefficient_of_variation),
                target.coefficient_of_variation_max,
                at_most,
            ),
        ];
        let (mut met, mut missed, mut open) = (Vec::new(), Vec::new(), Vec::new());
        for (name, median, target, check) in all {
            let Some(target) = target else {
                continue;
            };
            let words = format!("{name}\u{a0}{}\u{a0}%", target.normalize());
            match median {
                None => open.push(words),
                Some(median) if check(median, target) => met.push(words),
                Some(_) => missed.push(words),
            }
        }
        let (class, words) = match (&met[..], &missed[..], &open[..]) {
            ([], [], []) => return None,
            (_, [], []) => ("met", format!("✓ met: {}", met.join(", "))),
            (_, [], _) => ("open", format!("no values for {}", open.join(", "))),
            _ => ("missed", format!("✗ missed: {}", missed.join(", "))),
        };
        Some(Self { class, words })
    }
}

/// Shortens a chart and its table to the maximum size. Returns the caption of the table.
fn shorten<T>(bars: &mut Vec<T>, rows: &mut Vec<Vec<String>>) -> String {
    bars.truncate(MAX_BARS);
    let all = rows.len();
    rows.truncate(MAX_ROWS);
    match (bars.len(), rows.len()) {
        (bars, listed) if bars == listed => "As a table".to_owned(),
        (_, listed) if listed == all => format!("All {all} rows as a table"),
        (_, listed) => format!("The first {listed} of {all} rows as a table"),
    }
}

pub(super) fn losses_chart(data: &ReportData) -> Option<Chart> {
    let mut rows = Vec::new();
    let mut crops = Vec::new();
    let left_out = data.crops.values().map(|crop| crop.losses.left_out);
    let left_out: u64 = left_out.sum();
    for (name, crop) in data.by_size() {
        let Some(shares) = crop.losses.shares() else {
            continue;
        };
        let name = crop_name(name);
        let parts = [shares.usable, shares.weak, shares.empty];
        let mut row = vec![name.clone()];
        row.extend(parts.iter().map(|part| two_digits(*part)));
        row.push(crop.losses.batches.to_string());
        rows.push(row);
        crops.push(Loss {
            name,
            shares: parts.map(|part| (to_f64(part), two_digits(part))),
        });
    }
    if crops.is_empty() {
        return None;
    }
    let rows_caption = shorten(&mut crops, &mut rows);
    let worst = crops
        .iter()
        .min_by(|left, right| left.shares[0].0.total_cmp(&right.shares[0].0));
    let description = worst.map_or_else(String::new, |worst| {
        format!(
            "Stacked bars for {}. The crop with the fewest usable cells is {}: {} % usable, {} % germinated but not usable, {} % not germinated.",
            plural(crops.len() as u64, "crop", "crops"),
            worst.name,
            worst.shares[0].1,
            worst.shares[1].1,
            worst.shares[2].1
        )
    });
    let words = AltText {
        id: "losses",
        title: "Outcome of the cells of an average tray, in percent",
        description: &description,
    };
    Some(Chart {
        caption: "Outcome of the tray cells".to_owned(),
        aside: match left_out {
            0 => "% of all cells, over the whole range".to_owned(),
            _ => format!(
                "% of all cells, over the whole range; without {} with contradictory counts",
                plural(left_out, "batch", "batches")
            ),
        },
        legend: vec![
            ("usable", "usable".to_owned()),
            ("weak", "germinated, not usable".to_owned()),
            ("empty", "not germinated".to_owned()),
        ],
        svg: losses(&crops, &words),
        head: vec![
            "crop",
            "usable %",
            "not usable %",
            "not germinated %",
            "batches",
        ],
        rows_caption,
        rows,
        ..Chart::default()
    })
}

pub(super) fn variation_chart(data: &ReportData) -> Option<Chart> {
    let mut crops = Vec::new();
    let mut rows = Vec::new();
    for (name, crop) in data.by_size() {
        let figures = crop.total();
        let metric = &figures.coefficient_of_variation;
        let Some(spread) = spread(metric, "%") else {
            continue;
        };
        let name = crop_name(name);
        let values = &metric.distribution;
        let mut row = vec![name.clone()];
        if let Some(quartiles) = values.quartiles() {
            let cells = [
                values.min(),
                Some(quartiles.low),
                Some(quartiles.median),
                Some(quartiles.high),
                values.max(),
            ];
            row.extend(cells.map(figure));
        }
        row.push(values.count().to_string());
        rows.push(row);
        crops.push(BoxPlot { name, spread });
    }
    if crops.is_empty() {
        return None;
    }
    let rows_caption = shorten(&mut crops, &mut rows);
    let ends = crops
        .iter()
        .flat_map(|crop| [crop.spread.high, crop.spread.most]);
    let most = usual_most(ends).unwrap_or(0.0);
    let (_, edge) = boxes_scale(most);
    let beyond = crops.iter().filter(|crop| crop.spread.most > edge);
    let beyond = match beyond.count() as u64 {
        0 => String::new(),
        count => format!(
            "; arrow: extends beyond the scale ({})",
            plural(count, "crop", "crops")
        ),
    };
    let least_uniform = crops
        .iter()
        .max_by(|left, right| left.spread.median.total_cmp(&right.spread.median));
    let description = least_uniform.map_or_else(String::new, |crop| {
        format!(
            "Box plots for {}; lower is more uniform. The least uniform is {}: {}.",
            plural(crops.len() as u64, "crop", "crops"),
            crop.name,
            crop.spread.words
        )
    });
    let words = AltText {
        id: "variation",
        title: "Coefficient of variation of seedling size by crop, in percent",
        description: &description,
    };
    Some(Chart {
        caption: "Uniformity of the seedlings".to_owned(),
        aside: format!(
            "coefficient of variation of size, %; lower is more uniform. Box: middle half; line: median; whiskers: minimum and maximum{beyond}"
        ),
        svg: boxes(&crops, most, &words),
        head: vec![
            "crop",
            "minimum",
            "lower quartile",
            "median",
            "upper quartile",
            "maximum",
            "batches",
        ],
        rows_caption,
        rows,
        ..Chart::default()
    })
}
