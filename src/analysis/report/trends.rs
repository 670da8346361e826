//! The usable rate over time: one chart per crop with medians, quartiles and target, and sparklines.

use super::chart::{Chart, EdgeNumbers, Spread, WIDTH, crop_name, rate_scale, spread};
use super::format::{figure, period_name, short_period, to_f64};
use super::gather::ReportData;
use super::svg::{AltText, Anchor, Axis, Svg, tick_label};
use crate::analysis::judgement::{CropJudgement, NewestStep};
use crate::analysis::statistics::{Decimal, Period};
use crate::text;

/// The maximum number of steps in a chart.
const MAX_STEPS: usize = 12;
/// The maximum number of charts.
const MAX_CHARTS: usize = 12;

const HEIGHT: f64 = 180.0;
// Leaves room for the larger letters in print.
const LEFT: f64 = 38.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = HEIGHT - 22.0;

/// The data of one chart.
struct TrendLine {
    name: String,
    /// Whether it is that of a crop.
    is_named: bool,
    target: Option<f64>,
    /// One per step, oldest first. `None` if a step has no values.
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
            step: data.step_words().0,
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
            let (one, many) = data.step_words();
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
            let alt = AltText {
                id: &format!("trend{index}"),
                title: &title,
                description: &description,
            };
            Chart {
                caption: name.clone(),
                aside: target.map_or_else(
                    || "usable, %".to_owned(),
                    |target| format!("usable, %; target {}", tick_label(target)),
                ),
                svg: draw(line, &labels, scale, &alt),
                ..Chart::default()
            }
        })
        .collect()
}

fn note(data: &ReportData, lines: &[TrendLine], shown: &[Period]) -> String {
    let (one, many) = data.step_words();
    let mut notes = Vec::new();
    let drawn = lines.iter().filter(|line| line.is_named).count();
    let unnamed = match lines.len() - drawn {
        0 => "",
        _ => " and the group without a crop",
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

/// Draws a line; `labels` are the names of the steps.
fn draw(line: &TrendLine, labels: &[String], scale: (f64, f64), alt: &AltText<'_>) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT, alt);
    let y = Axis::new(scale, (BOTTOM, TOP));
    for tick in y.ticks(4) {
        svg.line("grid", (LEFT, y.position(tick)), (RIGHT, y.position(tick)));
        let index = (LEFT - 5.0, y.position(tick) + 4.0);
        svg.label("tick", index, Anchor::End, &tick_label(tick));
    }
    let count = line.steps.len();
    let width = (RIGHT - LEFT) / count.max(1) as f64;
    let x = |index: usize| LEFT + width * (index as f64 + 0.5);
    name_steps(&mut svg, labels, x);
    for run in runs(&line.steps) {
        draw_band(&mut svg, &run, width, x, &y);
    }
    if let Some(target) = line.target {
        let height = y.position(target);
        svg.line("target", (LEFT, height), (RIGHT, height));
    }
    draw_medians(&mut svg, line, labels, x, &y);
    svg.finish()
}

/// Labels the first, the middle and the last step: more would not fit.
fn name_steps(svg: &mut Svg, labels: &[String], x: impl Fn(usize) -> f64) {
    let last = labels.len().saturating_sub(1);
    let middle = last / 2;
    if last < 3 {
        // Each has room below its dot.
        for (index, label) in labels.iter().enumerate() {
            svg.label("tick", (x(index), HEIGHT - 6.0), Anchor::Middle, label);
        }
        return;
    }
    let mut places = vec![(0, Anchor::Start, LEFT)];
    if last > 3 {
        places.push((middle, Anchor::Middle, x(middle)));
    }
    places.push((last, Anchor::End, RIGHT));
    for (index, anchor, x) in places {
        if let Some(label) = labels.get(index) {
            svg.label("tick", (x, HEIGHT - 6.0), anchor, label);
        }
    }
}

/// Consecutive steps with values.
type Run<'a> = Vec<(usize, &'a Spread)>;

fn runs(steps: &[Option<Spread>]) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    let mut previous = None;
    for (index, step) in steps.iter().enumerate() {
        let Some(spread) = step else {
            continue;
        };
        match runs.last_mut() {
            Some(run) if previous == Some(index - 1) => run.push((index, spread)),
            _ => runs.push(vec![(index, spread)]),
        }
        previous = Some(index);
    }
    runs
}

fn draw_band(svg: &mut Svg, run: &Run<'_>, width: f64, x: impl Fn(usize) -> f64, y: &Axis) {
    if let [(index, spread)] = run.as_slice() {
        // A single step has no neighbours to connect to.
        let half = (width * 0.3).clamp(1.0, 5.0);
        let (top, bottom) = (y.position(spread.high), y.position(spread.low));
        let corner = (x(*index) - half, top);
        svg.rectangle("band", corner, (2.0 * half, (bottom - top).max(1.0)), None);
        return;
    }
    let point = |index: usize, value: f64| (x(index), y.position(value));
    let above = run.iter().map(|(index, spread)| point(*index, spread.high));
    let below = run.iter().rev();
    let below = below.map(|(index, spread)| point(*index, spread.low));
    svg.area("band", &above.chain(below).collect::<Vec<_>>(), None);
}

fn draw_medians(
    svg: &mut Svg,
    line: &TrendLine,
    labels: &[String],
    x: impl Fn(usize) -> f64,
    axis: &Axis,
) {
    let point = |(index, spread): &(usize, &Spread)| (x(*index), axis.position(spread.median));
    let runs = runs(&line.steps);
    for pair in runs.windows(2) {
        if let (Some(from), Some(to)) = (pair[0].last(), pair[1].first()) {
            svg.line("bridge", point(from), point(to));
        }
    }
    for run in &runs {
        if run.len() > 1 {
            svg.path("median", &run.iter().map(point).collect::<Vec<_>>());
        }
    }
    let last = line.steps.len().saturating_sub(1);
    let mut numbers = EdgeNumbers::new(LEFT, RIGHT);
    for entry in runs.iter().flatten() {
        let (index, spread) = entry;
        let (class, radius) = if *index == last {
            ("now", 4.0)
        } else {
            ("mark", 2.2)
        };
        let tooltip = labels.get(*index);
        let tooltip = tooltip.map(|label| format!("{label}: {}", spread.words));
        let (x, y) = point(entry);
        let is_below = spread.median < axis.from;
        if is_below || spread.median > axis.to {
            svg.triangle("beyond", (x, y), is_below, tooltip.as_deref());
            let middle = if is_below { y - 3.5 } else { y + 3.5 };
            numbers.write(svg, (x, middle), spread.median, !is_below);
        } else {
            svg.dot(class, (x, y), radius, tooltip.as_deref());
            // The band is cut off at the edge.
            if spread.low < axis.from {
                numbers.write(svg, (x, BOTTOM - 4.0), spread.low, false);
            }
            if spread.high > axis.to {
                numbers.write(svg, (x, TOP + 4.0), spread.high, true);
            }
        }
    }
}

/// The size of a sparkline.
const SPARK: (f64, f64) = (96.0, 22.0);

/// The least height of a sparkline, in points, so that chance does not look like a change.
const SPARK_POINTS: f64 = 20.0;

/// Draws a sparkline of `values`, one per step, with the line of the target and a scale of its own. `None` if
/// a step has no value.
pub(super) fn spark(values: &[Option<f64>], target: Option<f64>, words: &str) -> String {
    let mut svg = Svg::sparkline(SPARK.0, SPARK.1, words);
    let all = values.iter().flatten().copied().chain(target);
    let (least, most) = all.fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, most), value| (least.min(value), most.max(value)),
    );
    let more = ((SPARK_POINTS - (most - least)) / 2.0).max(0.0);
    let scale = (least - more, most + more);
    let last = values.len().saturating_sub(1).max(1);
    let x = |index: usize| 3.0 + (SPARK.0 - 6.0) * index as f64 / last as f64;
    let y = Axis::new(scale, (SPARK.1 - 3.0, 3.0));
    let points: Vec<(usize, (f64, f64))> = values
        .iter()
        .enumerate()
        .filter_map(|(index, value)| value.map(|value| (index, (x(index), y.position(value)))))
        .collect();
    let line: Vec<(f64, f64)> = points.iter().map(|(_, point)| *point).collect();
    if let Some(target) = target {
        let height = y.position(target);
        svg.line("target", (0.0, height), (SPARK.0, height));
    }
    if line.len() > 1 {
        svg.path("median", &line);
    }
    for (index, point) in &points {
        if *index == last {
            svg.dot("now", *point, 2.4, None);
        } else if line.len() == 1 {
            svg.dot("mark", *point, 2.0, None);
        }
    }
    svg.finish()
}
