//! The scatter chart of germination and usable rate, one dot per batch. Dots far below the diagonal
//! germinated but are not usable.

use std::collections::BTreeMap;

use super::layout::{EdgeNumbers, WIDTH};
use crate::analysis::report::escape::Escaped;
use crate::analysis::report::svg::{AltText, Anchor, Axis, Svg, tick_label};

const HEIGHT: f64 = 340.0;
const LEFT: f64 = 42.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = HEIGHT - 40.0;

/// One batch.
pub(crate) struct ScatterPoint {
    pub(crate) germination: f64,
    pub(crate) usable: f64,
    pub(crate) tooltip: String,
    /// The link to the analysis.
    pub(crate) link: Option<String>,
    /// Whether it belongs to the newest step.
    pub(crate) is_new: bool,
}

impl ScatterPoint {
    /// Returns whether it is beyond the scale and drawn at the edge.
    pub(crate) fn is_beyond(&self, (from, to): (f64, f64)) -> bool {
        let rates = [self.germination, self.usable];
        rates.iter().any(|rate| *rate < from || *rate > to)
    }

    /// Returns the size of its texts on the page, in bytes.
    pub(crate) fn size(&self) -> usize {
        let texts = [Some(&self.tooltip), self.link.as_ref()];
        let texts = texts.into_iter().flatten();
        texts.map(|text| Escaped(text).to_string().len()).sum()
    }
}

pub(crate) struct Scatter<'a> {
    pub(crate) words: AltText<'a>,
    pub(crate) points: &'a [ScatterPoint],
    /// The number of batches in each square of one point, by its lower corner. Empty if every batch is a dot.
    pub(crate) density: &'a BTreeMap<(i16, i16), u64>,
    /// The scale of both axes.
    pub(crate) scale: (f64, f64),
}

pub(crate) fn scatter(scatter: &Scatter<'_>) -> String {
    let mut svg = Svg::with_role("group", WIDTH, HEIGHT, &scatter.words);
    let scale = scatter.scale;
    let x = Axis::new(scale, (LEFT, RIGHT));
    let y = Axis::new(scale, (BOTTOM, TOP));
    for tick in x.ticks(5) {
        svg.line("grid", (x.position(tick), TOP), (x.position(tick), BOTTOM));
        svg.line("grid", (LEFT, y.position(tick)), (RIGHT, y.position(tick)));
        let (below, left) = (
            (x.position(tick), BOTTOM + 15.0),
            (LEFT - 5.0, y.position(tick) + 4.0),
        );
        svg.label("tick", below, Anchor::Middle, &tick_label(tick));
        svg.label("tick", left, Anchor::End, &tick_label(tick));
    }
    draw_crowd(&mut svg, scatter, &x, &y);
    svg.line("diagonal", (LEFT, BOTTOM), (RIGHT, TOP));
    let (new, old): (Vec<&ScatterPoint>, Vec<&ScatterPoint>) =
        scatter.points.iter().partition(|point| point.is_new);
    let mut beyond: Vec<(&ScatterPoint, f64)> = Vec::new();
    for point in old.into_iter().chain(new) {
        if point.is_beyond(scale) {
            let is_usable = point.usable < scale.0 || point.usable > scale.1;
            let values = [point.germination, point.usable];
            beyond.push((point, values[usize::from(is_usable)]));
        } else {
            let position = (x.position(point.germination), y.position(point.usable));
            draw(&mut svg, point, position, false);
        }
    }
    // The lowest has the place at the edge, and the others stand in a row away from it, each with its number.
    beyond.sort_by(|(_, left), (_, right)| left.total_cmp(right));
    let mut numbers = EdgeNumbers::new(LEFT, RIGHT);
    for (point, value) in beyond {
        let (x, y) = (x.position(point.germination), y.position(point.usable));
        let place = numbers.write(&mut svg, (x, y), value, point.usable > scale.1);
        draw(&mut svg, point, (x, place.unwrap_or(y)), true);
    }
    let below = (f64::midpoint(LEFT, RIGHT), HEIGHT - 6.0);
    svg.label("axis", below, Anchor::Middle, "germination rate, %");
    let beside = (-(TOP + BOTTOM) / 2.0, 12.0);
    svg.label("axis upright", beside, Anchor::Middle, "usable rate, %");
    svg.finish()
}

fn draw(svg: &mut Svg, point: &ScatterPoint, position: (f64, f64), is_beyond: bool) {
    let (class, radius) = if point.is_new {
        ("now", 4.5)
    } else {
        ("spot", 3.2)
    };
    let dot = |svg: &mut Svg| {
        if is_beyond {
            // A diamond at the edge: this is not its real position.
            let (x, y) = position;
            let corners = [(x - 5.0, y), (x, y - 5.0), (x + 5.0, y), (x, y + 5.0)];
            svg.area(&format!("edge {class}"), &corners, Some(&point.tooltip));
        } else {
            svg.dot(class, position, radius, Some(&point.tooltip));
        }
    };
    match &point.link {
        Some(link) => svg.link(link, dot),
        None => dot(svg),
    }
}

/// Shades each square by its number of batches. There are five shades, each for four times as many.
fn draw_crowd(svg: &mut Svg, scatter: &Scatter<'_>, x: &Axis, y: &Axis) {
    let mut shades: [Vec<(f64, f64)>; 5] = Default::default();
    for ((germination, usable), count) in scatter.density {
        if f64::from(*germination.min(usable)) < scatter.scale.0 {
            continue;
        }
        let corner = (
            x.position((*germination).into()),
            y.position(f64::from(*usable) + 1.0),
        );
        shades[count.ilog(4).min(4) as usize].push(corner);
    }
    let across = x.position(100.0) - x.position(99.0);
    let up = y.position(99.0) - y.position(100.0);
    for (shade, corners) in (1..).zip(&shades) {
        if !corners.is_empty() {
            let class = format!("crowd crowd{shade}");
            svg.boxes(&class, corners, (across, up));
        }
    }
}
