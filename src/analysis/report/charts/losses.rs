//! Stacked bars of the tray cells: usable, germinated but not usable, not germinated.

use super::layout::{ROW, WIDTH, short};
use crate::analysis::report::svg::{AltText, Anchor, Axis, Svg};

const LEFT: f64 = 104.0;
const RIGHT: f64 = WIDTH - 6.0;

/// The average tray of a crop, in percent of its cells.
pub(crate) struct Loss {
    pub(crate) name: String,
    /// Usable, germinated but not usable, not germinated: as drawn, and as written.
    pub(crate) shares: [(f64, String); 3],
}

const CLASSES: [(&str, &str); 3] = [
    ("usable", "usable"),
    ("weak", "germinated, not usable"),
    ("empty", "not germinated"),
];

pub(crate) fn losses(crops: &[Loss], alt: &AltText<'_>) -> String {
    let height = ROW * crops.len() as f64 + 26.0;
    let mut svg = Svg::new(WIDTH, height, alt);
    let x = Axis::new((0.0, 100.0), (LEFT, RIGHT));
    for (row, crop) in crops.iter().enumerate() {
        let top = ROW * row as f64 + 4.0;
        let beside = (LEFT - 8.0, top + 13.0);
        svg.label("name", beside, Anchor::End, &short(&crop.name));
        let mut from = 0.0;
        for ((share, text), (class, label)) in crop.shares.iter().zip(CLASSES) {
            let (start, end) = (x.position(from), x.position(from + share));
            let tooltip = format!("{}: {text} % {label}", crop.name);
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
