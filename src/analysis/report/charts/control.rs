//! The control chart: the batches of one crop in chronological order, with their mean and limits.

use super::layout::{EdgeNumbers, WIDTH};
use crate::analysis::report::svg::{AltText, Anchor, Axis, Svg, tick_label};

const HEIGHT: f64 = 220.0;
const LEFT: f64 = 34.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = HEIGHT - 22.0;

/// One batch.
pub(crate) struct ControlPoint {
    pub(crate) rate: f64,
    /// The date on the axis.
    pub(crate) day: String,
    pub(crate) tooltip: String,
    pub(crate) is_outside: bool,
}

/// The values of the horizontal lines.
#[derive(Clone, Copy)]
pub(crate) struct ControlLimits {
    pub(crate) low: f64,
    pub(crate) mean: f64,
    pub(crate) high: f64,
}

pub(crate) fn control(
    batches: &[ControlPoint],
    limits: ControlLimits,
    scale: (f64, f64),
    alt: &AltText<'_>,
) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT, alt);
    let y = Axis::new(scale, (BOTTOM, TOP));
    for tick in y.ticks(5) {
        svg.line("grid", (LEFT, y.position(tick)), (RIGHT, y.position(tick)));
        let index = (LEFT - 5.0, y.position(tick) + 4.0);
        svg.label("tick", index, Anchor::End, &tick_label(tick));
    }
    let last = batches.len().saturating_sub(1);
    let width = (RIGHT - LEFT) / batches.len().max(1) as f64;
    let x = |index: usize| LEFT + width * (index as f64 + 0.5);
    for (class, index, anchor, x) in [
        ("tick", 0, Anchor::Start, LEFT),
        // There is no room for it on paper.
        ("tick middle", last / 2, Anchor::Middle, x(last / 2)),
        ("tick", last, Anchor::End, RIGHT),
    ] {
        if let Some(batch) = batches.get(index) {
            svg.label(class, (x, HEIGHT - 6.0), anchor, &batch.day);
        }
    }
    for (class, value) in [
        ("limit", limits.low),
        ("mean", limits.mean),
        ("limit", limits.high),
    ] {
        if value >= scale.0 && value <= scale.1 {
            svg.line(class, (LEFT, y.position(value)), (RIGHT, y.position(value)));
        }
    }
    let points: Vec<(f64, f64)> = batches
        .iter()
        .enumerate()
        .map(|(index, batch)| (x(index), y.position(batch.rate)))
        .collect();
    svg.path("course", &points);
    let mut numbers = EdgeNumbers::new(LEFT, RIGHT);
    for (batch, (x, y)) in batches.iter().zip(points) {
        if batch.is_outside {
            let corners = [(x - 5.0, y), (x, y - 5.0), (x + 5.0, y), (x, y + 5.0)];
            svg.area("edge now", &corners, Some(&batch.tooltip));
        } else {
            svg.dot("mark", (x, y), 2.2, Some(&batch.tooltip));
        }
        if batch.rate < scale.0 || batch.rate > scale.1 {
            numbers.write(&mut svg, (x, y), batch.rate, batch.rate > scale.1);
        }
    }
    svg.finish()
}
