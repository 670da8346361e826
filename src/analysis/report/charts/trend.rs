//! The usable rate of one crop over time: a chart with medians, quartiles and target, and a sparkline.

use super::layout::{EdgeNumbers, Spread, WIDTH};
use crate::analysis::report::svg::{AltText, Anchor, Axis, Svg, tick_label};

const HEIGHT: f64 = 180.0;
// Leaves room for the larger letters in print.
const LEFT: f64 = 38.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = HEIGHT - 22.0;

/// The data of one chart.
pub(crate) struct TrendChart<'a> {
    pub(crate) words: AltText<'a>,
    /// One per step, oldest first. `None` if a step has no values.
    pub(crate) steps: &'a [Option<Spread>],
    /// The names of the steps.
    pub(crate) labels: &'a [String],
    pub(crate) target: Option<f64>,
    /// The scale, the same for all crops.
    pub(crate) scale: (f64, f64),
}

pub(crate) fn trend(trend: &TrendChart<'_>) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT, &trend.words);
    let y = Axis::new(trend.scale, (BOTTOM, TOP));
    for tick in y.ticks(4) {
        svg.line("grid", (LEFT, y.position(tick)), (RIGHT, y.position(tick)));
        let index = (LEFT - 5.0, y.position(tick) + 4.0);
        svg.label("tick", index, Anchor::End, &tick_label(tick));
    }
    let count = trend.steps.len();
    let width = (RIGHT - LEFT) / count.max(1) as f64;
    let x = |index: usize| LEFT + width * (index as f64 + 0.5);
    name_steps(&mut svg, trend.labels, x);
    for run in runs(trend.steps) {
        draw_band(&mut svg, &run, width, x, &y);
    }
    if let Some(target) = trend.target {
        let height = y.position(target);
        svg.line("target", (LEFT, height), (RIGHT, height));
    }
    draw_medians(&mut svg, trend, x, &y);
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

fn draw_medians(svg: &mut Svg, trend: &TrendChart<'_>, x: impl Fn(usize) -> f64, y: &Axis) {
    let point = |(index, spread): &(usize, &Spread)| (x(*index), y.position(spread.median));
    let runs = runs(trend.steps);
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
    let last = trend.steps.len().saturating_sub(1);
    let mut numbers = EdgeNumbers::new(LEFT, RIGHT);
    for entry in runs.iter().flatten() {
        let (index, spread) = entry;
        let (class, radius) = if *index == last {
            ("now", 4.0)
        } else {
            ("mark", 2.2)
        };
        let tooltip = trend.labels.get(*index);
        let tooltip = tooltip.map(|label| format!("{label}: {}", spread.words));
        let (x, y) = point(entry);
        let is_below = spread.median < trend.scale.0;
        if is_below || spread.median > trend.scale.1 {
            // A triangle at the edge: the value is beyond the scale.
            let inner = if is_below { y - 7.0 } else { y + 7.0 };
            let corners = [(x - 4.0, inner), (x + 4.0, inner), (x, y)];
            svg.area("below", &corners, tooltip.as_deref());
            numbers.write(svg, (x, f64::midpoint(y, inner)), spread.median, !is_below);
        } else {
            svg.dot(class, (x, y), radius, tooltip.as_deref());
            // The band is cut off at the edge.
            if spread.low < trend.scale.0 {
                numbers.write(svg, (x, BOTTOM - 4.0), spread.low, false);
            }
            if spread.high > trend.scale.1 {
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
pub(crate) fn spark(values: &[Option<f64>], target: Option<f64>) -> String {
    let mut svg = Svg::ornament(SPARK.0, SPARK.1, "spark");
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
