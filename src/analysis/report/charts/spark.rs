//! A line the size of a word: how a rate went, without axes.

use crate::analysis::report::svg::{Axis, Svg};

const SIZE: (f64, f64) = (96.0, 22.0);

/// Draws `values`, one per step, on a scale that is common to all; nothing where a step has none.
pub(in crate::analysis::report) fn spark(values: &[Option<f64>], scale: (f64, f64)) -> String {
    let mut svg = Svg::ornament(SIZE.0, SIZE.1, "spark");
    let last = values.len().saturating_sub(1).max(1);
    let x = |place: usize| 3.0 + (SIZE.0 - 6.0) * place as f64 / last as f64;
    let y = Axis::new(scale, (SIZE.1 - 3.0, 3.0));
    let points: Vec<(usize, (f64, f64))> = values
        .iter()
        .enumerate()
        .filter_map(|(place, value)| value.map(|value| (place, (x(place), y.place(value)))))
        .collect();
    let line: Vec<(f64, f64)> = points.iter().map(|(_, point)| *point).collect();
    if line.len() > 1 {
        svg.path("median", &line);
    }
    for (place, point) in &points {
        if *place == last {
            svg.dot("now", *point, 2.4, None);
        } else if line.len() == 1 {
            svg.dot("mark", *point, 2.0, None);
        }
    }
    svg.finish()
}
