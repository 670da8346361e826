//! The charts of the report. Each takes figures and words, and returns the text of a picture.

mod boxes;
mod losses;
mod scatter;
mod spark;
mod trend;

pub(super) use boxes::{Boxed, boxes};
pub(super) use losses::{Loss, losses};
pub(super) use scatter::{Scatter, Spot, scatter};
pub(super) use spark::spark;
pub(super) use trend::{Trend, trend};

/// The middle half of some values, their median and their ends, to be drawn.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    pub(super) least: f64,
    pub(super) low: f64,
    pub(super) median: f64,
    pub(super) high: f64,
    pub(super) most: f64,
    /// The same in words, exact.
    pub(super) words: String,
}

/// The width of every chart: what a phone has room for without shrinking letters.
const WIDTH: f64 = 360.0;
/// The height of a line of labels.
const ROW: f64 = 26.0;

/// Cuts a name to what fits beside a bar.
fn short(name: &str) -> String {
    const CHARACTERS: usize = 15;
    if name.chars().count() <= CHARACTERS {
        return name.to_owned();
    }
    let mut text: String = name.chars().take(CHARACTERS - 1).collect();
    text.push('…');
    text
}
