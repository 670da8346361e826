//! How even seedlings are: boxes of the coefficient of variation, one per crop.

use super::{ROW, Spread, WIDTH, short};
use crate::report::svg::{Anchor, Scale, Svg, Words, rounded_out, tick_label};

const LEFT: f64 = 104.0;
const RIGHT: f64 = WIDTH - 12.0;

/// The values of one crop.
pub(in crate::report) struct Boxed {
    pub(in crate::report) name: String,
    pub(in crate::report) spread: Spread,
}

pub(in crate::report) fn boxes(crops: &[Boxed], words: &Words<'_>) -> String {
    let bottom = ROW * crops.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + 26.0, words);
    let most = crops
        .iter()
        .map(|crop| crop.spread.most)
        .fold(0.0, f64::max);
    let x = Scale::new(rounded_out(0.0, most, 4), (LEFT, RIGHT));
    for tick in x.ticks(4) {
        svg.line("grid", (x.place(tick), 0.0), (x.place(tick), bottom));
        let place = (x.place(tick), bottom + 16.0);
        svg.label("tick", place, Anchor::Middle, &tick_label(tick));
    }
    for (row, crop) in crops.iter().enumerate() {
        let middle = ROW * (row as f64 + 0.5);
        let spread = &crop.spread;
        svg.label(
            "name",
            (LEFT - 8.0, middle + 4.0),
            Anchor::End,
            &short(&crop.name),
        );
        let at = |value: f64| x.place(value);
        svg.line(
            "whisker",
            (at(spread.least), middle),
            (at(spread.most), middle),
        );
        let width = (at(spread.high) - at(spread.low)).max(1.0);
        let hint = format!("{}: {}", crop.name, spread.words);
        let corner = (at(spread.low), middle - 7.0);
        svg.rectangle("box", corner, (width, 14.0), Some(&hint));
        let median = at(spread.median);
        svg.line("median", (median, middle - 7.0), (median, middle + 7.0));
    }
    svg.finish()
}
