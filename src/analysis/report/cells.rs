//! The charts with one row per crop: what became of the cells, and how uniform the seedlings are.

use super::chart::{Chart, crop_name, spread};
use super::charts::{BoxPlot, Loss, Spread, boxes, boxes_scale, losses};
use super::format::{figure, to_f64};
use super::gather::ReportData;
use super::outliers::usual_most;
use super::svg::AltText;
use crate::analysis::statistics::two_digits;
use crate::text;

/// The maximum number of rows in a table.
const MAX_ROWS: usize = 100;
/// The maximum number of rows in a chart.
const MAX_BARS: usize = 16;

/// Says that the cells are counted, which gives other figures than the medians of batches.
const CELLS: &str = "mean of one average tray per batch over the whole range, % of its cells; not the medians above";

/// Says which crops a chart shows, if not all.
fn shown_of(all: usize) -> String {
    if all > MAX_BARS {
        format!("; {MAX_BARS} of {all} crops, those that need attention first")
    } else {
        String::new()
    }
}

/// Shortens a chart and its table to the maximum size. Returns the caption of the table.
fn shorten<T>(bars: &mut Vec<T>, rows: &mut Vec<Vec<String>>) -> String {
    bars.truncate(MAX_BARS);
    let all = rows.len();
    rows.truncate(MAX_ROWS);
    match (bars.len(), rows.len()) {
        (bars, listed) if bars == listed => "As a table".to_owned(),
        (_, listed) if listed == all => format!("All {all} crops as a table"),
        (_, listed) => format!("The first {listed} of {all} crops as a table"),
    }
}

/// Draws what became of the cells of each of `crops`.
pub(super) fn losses_chart(data: &ReportData, crops: &[&str]) -> Option<Chart> {
    let mut rows = Vec::new();
    let mut bars = Vec::new();
    let left_out = data.losses().iter().map(|losses| losses.left_out);
    let left_out: u64 = left_out.sum();
    for crop in crops {
        let losses = data.losses_of(crop);
        let Some((losses, parts)) = losses.and_then(|losses| Some((losses, losses.shares()?)))
        else {
            continue;
        };
        let name = crop_name(crop);
        let mut row = vec![name.clone()];
        row.extend(parts.map(two_digits));
        row.push(losses.batches.to_string());
        rows.push(row);
        bars.push(Loss {
            name,
            shares: parts.map(|part| (to_f64(part), two_digits(part))),
        });
    }
    if bars.is_empty() {
        return None;
    }
    let shown = shown_of(rows.len());
    let rows_caption = shorten(&mut bars, &mut rows);
    let worst = bars.iter();
    let worst = worst.min_by(|left, right| left.shares[0].0.total_cmp(&right.shares[0].0));
    let description = worst.map_or_else(String::new, |Loss { name, shares }| {
        let crops = text::count(bars.len() as u64, "crop", "crops");
        let [(_, usable), (_, weak), (_, empty)] = shares;
        format!(
            "Stacked bars for {crops}. The crop with the fewest usable cells is {name}: {usable} % usable, {weak} % germinated but not usable, {empty} % not germinated."
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
            0 => format!("{CELLS}{shown}"),
            _ => format!(
                "{CELLS}{shown}; without {} with contradictory counts",
                text::count(left_out, "batch", "batches")
            ),
        },
        legend: vec![
            ("usable", "usable".to_owned()),
            ("weak", "germinated, not usable".to_owned()),
            ("empty", "not germinated".to_owned()),
        ],
        svg: losses(&bars, &words),
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

/// Draws the spread of the size variation of each of `crops`.
pub(super) fn variation_chart(data: &ReportData, crops: &[&str]) -> Option<Chart> {
    let mut plots = Vec::new();
    let mut rows = Vec::new();
    for crop in crops {
        let Some(history) = data.history.crops.get(*crop) else {
            continue;
        };
        let figures = history.total();
        let metric = &figures.coefficient_of_variation;
        let Some(spread) = spread(metric, "%") else {
            continue;
        };
        let name = crop_name(crop);
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
        plots.push(BoxPlot { name, spread });
    }
    if plots.is_empty() {
        return None;
    }
    let shown = shown_of(rows.len());
    let rows_caption = shorten(&mut plots, &mut rows);
    let ends = plots
        .iter()
        .flat_map(|crop| [crop.spread.high, crop.spread.most]);
    let most = usual_most(ends).unwrap_or(0.0);
    let (start, end) = boxes_scale(most);
    let is_beyond = |spread: &Spread| spread.least < start || spread.most > end;
    let beyond = plots.iter().filter(|crop| is_beyond(&crop.spread));
    let crops = |crops: usize| text::count(crops as u64, "crop", "crops");
    let beyond = match beyond.count() {
        0 => String::new(),
        count => format!("; arrow: extends beyond the scale ({})", crops(count)),
    };
    let least_uniform = plots.iter();
    let least_uniform =
        least_uniform.max_by(|left, right| left.spread.median.total_cmp(&right.spread.median));
    let description = least_uniform.map_or_else(String::new, |crop| {
        format!(
            "Box plots for {}; lower is more uniform. The least uniform is {}: {}.",
            crops(plots.len()),
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
            "coefficient of variation of size, %; lower is more uniform. Box: middle half; line: median; whiskers: minimum and maximum{beyond}{shown}"
        ),
        svg: boxes(&plots, most, &words),
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
