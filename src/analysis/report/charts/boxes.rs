//! Box plots of the coefficient of variation, one per crop.

use super::layout::{ROW, Spread, WIDTH, short};
use crate::analysis::report::svg::{AltText, Anchor, Axis, Svg, rounded_out, tick_label};

const LEFT: f64 = 104.0;
const RIGHT: f64 = WIDTH - 12.0;

/// The values of one crop, which may extend beyond the scale.
pub(crate) struct BoxPlot {
    pub(crate) name: String,
    pub(crate) spread: Spread,
}

/// Draws crops on a scale from 0 to `most`, rounded up.
pub(crate) fn boxes(crops: &[BoxPlot], most: f64, alt: &AltText<'_>) -> String {
    let bottom = ROW * crops.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + 26.0, alt);
    let scale = scale(most);
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
    for (row, crop) in crops.iter().enumerate() {
        let middle = ROW * (row as f64 + 0.5);
        let spread = &crop.spread;
        let beside = (LEFT - 8.0, middle + 4.0);
        svg.label("name", beside, Anchor::End, &short(&crop.name));
        let at = |value: f64| x.position(value);
        let (least, most) = (at(spread.least), at(spread.most));
        svg.line("whisker", (least, middle), (most, middle));
        let width = (at(spread.high) - at(spread.low)).max(1.0);
        let tooltip = format!("{}: {}", crop.name, spread.words);
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

/// Returns the scale of a chart up to `most`.
pub(crate) fn scale(most: f64) -> (f64, f64) {
    rounded_out(0.0, most.max(0.0), 4)
}
