//! Sizes, labels and types that several charts share.

use crate::analysis::report::svg::{Anchor, Svg, tick_label};

/// The quartiles, minimum and maximum of some values, for drawing.
#[derive(Clone, Debug)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
    pub(crate) most: f64,
    /// The same as exact text.
    pub(crate) words: String,
}

/// The width of every chart: fits on a phone without shrinking the text.
pub(super) const WIDTH: f64 = 360.0;
/// The height of a row.
pub(super) const ROW: f64 = 26.0;

/// The maximum width of a name beside a bar, in em.
const NAME_WIDTH: f64 = 7.9;

/// Writes the numbers of values that are drawn at the edge of a chart. Those that would overlap move away from the edge.
pub(super) struct EdgeNumbers {
    written: Vec<(f64, f64)>,
    left: f64,
    right: f64,
}

/// The room for a number.
const NUMBER_WIDTH: f64 = 30.0;
const NUMBER_HEIGHT: f64 = 12.0;
/// The maximum number of steps that a number moves.
const MAX_MOVES: u32 = 20;

impl EdgeNumbers {
    /// `left` and `right` are the ends of the chart.
    pub(super) fn new(left: f64, right: f64) -> Self {
        Self {
            written: Vec::new(),
            left,
            right,
        }
    }

    /// Writes `value` beside its mark at `place`, or further up; down if `is_high`. Returns the height where it stands; `None` if
    /// there is no room.
    pub(super) fn write(
        &mut self,
        svg: &mut Svg,
        (x, y): (f64, f64),
        value: f64,
        is_high: bool,
    ) -> Option<f64> {
        let (anchor, start, offset) = if x + NUMBER_WIDTH + 8.0 > self.right {
            let start = (x - 8.0 - NUMBER_WIDTH).max(self.left);
            (Anchor::End, start, NUMBER_WIDTH)
        } else {
            (Anchor::Start, x + 8.0, 0.0)
        };
        let step = if is_high { 1.0 } else { -1.0 } * NUMBER_HEIGHT;
        let is_free = |y: &f64| {
            !self.written.iter().any(|(other_x, other_y)| {
                (other_x - start).abs() < NUMBER_WIDTH && (other_y - y).abs() < NUMBER_HEIGHT
            })
        };
        let mut heights = (0..MAX_MOVES).map(|moves| y + f64::from(moves) * step);
        let y = heights.find(is_free)?;
        self.written.push((start, y));
        let number = tick_label((value * 10.0).round() / 10.0);
        svg.label("tick", (start + offset, y + 3.0), anchor, &number);
        Some(y)
    }
}

/// Shortens a name to fit beside a bar. Cuts in the middle, since similar names often differ at the end.
pub(super) fn short(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if width(&letters) <= NAME_WIDTH {
        return name.to_owned();
    }
    let cut = |kept: usize| {
        let head = kept.div_ceil(2);
        let tail = &letters[letters.len() - (kept - head)..];
        [&letters[..head], &['…'], tail].concat()
    };
    let most = (0..letters.len())
        .take_while(|kept| width(&cut(*kept)) <= NAME_WIDTH)
        .last();
    cut(most.unwrap_or(0)).into_iter().collect()
}

/// Estimates the width of letters in em, rather too wide: the font is unknown.
fn width(letters: &[char]) -> f64 {
    let of = |letter: &char| match letter {
        ' ' | '!' | '\'' | '(' | ')' | ',' | '-' | '.' | ':' | ';' | 'I' | 'f' | 'i' | 'j'
        | 'l' | 'r' | 't' | '|' => 0.42,
        'M' | 'W' | 'm' | 'w' | '@' | '%' | '…' => 1.0,
        'A'..='Z' => 0.76,
        '\0'..='\u{7f}' => 0.61,
        // East Asian letters are square.
        '\u{1100}'.. => 1.05,
        _ => 0.72,
    };
    letters.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_shortened() {
        for name in ["", "Tomato", "Sweet pepper", "White cabbage"] {
            assert_eq!(short(name), name);
        }
        let wide = "W".repeat(120);
        for (name, shown) in [
            ("Lollo bionda, house 11", "Lollo …use 11"),
            (wide.as_str(), "WWW…WWW"),
            (
                "\u{756a}\u{8304}\u{306e}\u{54c1}\u{7a2e}\u{540d}\u{524d}\u{4e00}",
                "\u{756a}\u{8304}\u{306e}…\u{540d}\u{524d}\u{4e00}",
            ),
        ] {
            assert_eq!(short(name), shown);
            assert!(width(&short(name).chars().collect::<Vec<_>>()) <= NAME_WIDTH);
        }
    }
}
