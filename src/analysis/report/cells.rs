//! The charts with one row per crop: what became of the cells, and how uniform the seedlings are.

use super::chart::{Chart, ROW, Spread, WIDTH, crop_name, short, spread, usual_most};
use super::format::{figure, to_f64};
use super::gather::ReportData;
use super::svg::{AltText, Anchor, Axis, Svg, rounded_out, tick_label};
use crate::analysis::statistics::two_digits;
use crate::text;

/// The maximum number of rows in a table.
const MAX_ROWS: usize = 100;
/// The maximum number of rows in a chart.
const MAX_BARS: usize = 16;

/// Where the names of the crops end.
const LEFT: f64 = 104.0;

/// The parts of a bar: their CSS classes and names.
const PARTS: [(&str, &str); 3] = [
    ("usable", "usable"),
    ("weak", "germinated, not usable"),
    ("empty", "not germinated"),
];

/// The name of a crop, and the parts of its average tray in percent of the cells: as drawn, and as written.
type Bar = (String, [(f64, String); 3]);

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
    let mut bars: Vec<Bar> = Vec::new();
    let left_out = data.losses.iter().map(|losses| losses.left_out);
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
        bars.push((name, parts.map(|part| (to_f64(part), two_digits(part)))));
    }
    if bars.is_empty() {
        return None;
    }
    let shown = shown_of(rows.len());
    let rows_caption = shorten(&mut bars, &mut rows);
    let worst = bars.iter();
    let worst = worst.min_by(|(_, left), (_, right)| left[0].0.total_cmp(&right[0].0));
    let description = worst.map_or_else(String::new, |(name, shares)| {
        let [(_, usable), (_, weak), (_, empty)] = shares;
        let bars = match bars.len() {
            1 => format!("A stacked bar for {name}"),
            crops => format!("Stacked bars for {crops} crops. Of these, {name} has the fewest usable cells"),
        };
        format!(
            "{bars}: {usable} % usable, {weak} % germinated but not usable, {empty} % not germinated."
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
                "{CELLS}{shown}; without {} with a share below 0 or above 100 %",
                text::count(left_out, "batch", "batches")
            ),
        },
        legend: PARTS.map(|(class, label)| (class, label.to_owned())).into(),
        svg: draw_bars(&bars, &words),
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
    let mut plots: Vec<(String, Spread)> = Vec::new();
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
        if let Some([low, median, high]) = values.quartiles() {
            let quartiles = [low, median, high].map(Some);
            let [low, median, high] = quartiles.map(figure);
            row.extend([
                figure(values.min()),
                low,
                median,
                high,
                figure(values.max()),
            ]);
        }
        row.push(values.count().to_string());
        rows.push(row);
        plots.push((name, spread));
    }
    if plots.is_empty() {
        return None;
    }
    let shown = shown_of(rows.len());
    let rows_caption = shorten(&mut plots, &mut rows);
    let spreads = || plots.iter().map(|(_, spread)| spread);
    let ends = spreads().flat_map(|spread| [spread.high, spread.most]);
    let most = usual_most(ends).unwrap_or(0.0);
    let scale = rounded_out(0.0, most.max(0.0), 4);
    let beyond = spreads().filter(|spread| spread.least < scale.0 || spread.most > scale.1);
    let crops = |crops: usize| text::count(crops as u64, "crop", "crops");
    let beyond = match beyond.count() {
        0 => String::new(),
        count => format!("; arrow: extends beyond the scale ({})", crops(count)),
    };
    let least_uniform = plots.iter();
    let least_uniform =
        least_uniform.max_by(|(_, left), (_, right)| left.median.total_cmp(&right.median));
    let description = least_uniform.map_or_else(String::new, |(name, spread)| {
        let plots = match plots.len() {
            1 => format!("A box plot for {name}; lower is more uniform"),
            crops => format!(
                "Box plots for {crops} crops; lower is more uniform. Of these, the least uniform is {name}"
            ),
        };
        format!("{plots}: {}.", spread.words)
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
        svg: draw_boxes(&plots, scale, &words),
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

fn draw_bars(crops: &[Bar], alt: &AltText<'_>) -> String {
    let height = ROW * crops.len() as f64 + 26.0;
    let mut svg = Svg::new(WIDTH, height, alt);
    let x = Axis::new((0.0, 100.0), (LEFT, WIDTH - 6.0));
    for (row, (name, shares)) in crops.iter().enumerate() {
        let top = ROW * row as f64 + 4.0;
        let beside = (LEFT - 8.0, top + 13.0);
        svg.label("name", beside, Anchor::End, &short(name));
        let mut from = 0.0;
        for ((share, text), (class, label)) in shares.iter().zip(PARTS) {
            let (start, end) = (x.position(from), x.position(from + share));
            let tooltip = format!("{name}: {text} % {label}");
            // A thin gap separates the parts even without colour.
            let width = (end - start - 1.0).max(0.0);
            svg.rectangle(class, (start, top), (width, ROW - 8.0), Some(&tooltip));
            if end - start > 40.0 {
                let position = (f64::midpoint(start, end), top + 13.0);
                svg.label(&format!("on-{class}"), position, Anchor::Middle, text);
            }
            from += share;
        }
    }
    let foot = ROW * crops.len() as f64 + 18.0;
    for (tick, anchor, label) in [
        (0.0, Anchor::Middle, "0 %"),
        (50.0, Anchor::Middle, "50 %"),
        (100.0, Anchor::End, "100 %"),
    ] {
        svg.label("tick", (x.position(tick), foot), anchor, label);
    }
    svg.finish()
}

fn draw_boxes(crops: &[(String, Spread)], scale: (f64, f64), alt: &AltText<'_>) -> String {
    const RIGHT: f64 = WIDTH - 12.0;
    let bottom = ROW * crops.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + 26.0, alt);
    let x = Axis::new(scale, (LEFT, RIGHT));
    for tick in x.ticks(4) {
        svg.line("grid", (x.position(tick), 0.0), (x.position(tick), bottom));
        let label = tick_label(tick);
        // A long label would be cut off at the edge of the image.
        let (anchor, position) = if tick >= scale.1 && label.len() > 3 {
            (Anchor::End, WIDTH - 1.0)
        } else {
            (Anchor::Middle, x.position(tick))
        };
        svg.label("tick", (position, bottom + 16.0), anchor, &label);
    }
    for (row, (name, spread)) in crops.iter().enumerate() {
        let middle = ROW * (row as f64 + 0.5);
        let beside = (LEFT - 8.0, middle + 4.0);
        svg.label("name", beside, Anchor::End, &short(name));
        let at = |value: f64| x.position(value);
        let (least, most) = (at(spread.least), at(spread.most));
        svg.line("whisker", (least, middle), (most, middle));
        let width = (at(spread.high) - at(spread.low)).max(1.0);
        let tooltip = format!("{name}: {}", spread.words);
        let corner = (at(spread.low), middle - 7.0);
        svg.rectangle("box", corner, (width, 14.0), Some(&tooltip));
        let median = at(spread.median);
        svg.line("median", (median, middle - 7.0), (median, middle + 7.0));
        let low = (spread.least < scale.0).then_some((spread.least, LEFT, -1.0, Anchor::Start));
        let high = (spread.most > scale.1).then_some((spread.most, RIGHT, 1.0, Anchor::End));
        for (value, edge, out, anchor) in low.into_iter().chain(high) {
            // An arrow: it extends beyond the scale.
            let inner = edge - out;
            let corners = [
                (inner, middle - 4.0),
                (edge + 7.0 * out, middle),
                (inner, middle + 4.0),
            ];
            svg.area("below", &corners, Some(&tooltip));
            let number = tick_label((value * 10.0).round() / 10.0);
            let place = (edge - 4.0 * out, middle - 5.0);
            svg.label("tick", place, anchor, &number);
        }
    }
    svg.finish()
}
