//! A chart on the page with its caption, legend and table, and what all charts share: sizes, labels, and the ends of an axis.

use super::format::to_f64;
use super::svg::{Anchor, Svg, rounded_out, tick_label};
use crate::analysis::statistics::{Metric, two_digits};
use crate::formats::NO_CROP;
use crate::text;

/// A chart with its caption, legend and table.
#[derive(Default)]
pub(super) struct Chart {
    pub(super) caption: String,
    pub(super) aside: String,
    pub(super) legend: Vec<(&'static str, String)>,
    pub(super) svg: String,
    /// The caption of the table with the same data, if there is one.
    pub(super) rows_caption: String,
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    /// The link of each row, if any.
    pub(super) links: Vec<Option<String>>,
}

impl Chart {
    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "templates pass references"
    )]
    pub(super) fn link(&self, row: &usize) -> Option<&str> {
        self.links.get(*row)?.as_deref()
    }
}

/// Returns the name of a crop as the page shows it.
pub(super) fn crop_name(crop: &str) -> String {
    if crop.is_empty() {
        NO_CROP.to_owned()
    } else {
        text::shortened(&text::visible(crop))
    }
}

/// Returns the spread of a metric for drawing. `None` if it has no values.
pub(super) fn spread(metric: &Metric, unit: &str) -> Option<Spread> {
    let values = &metric.distribution;
    let quartiles = values.quartiles()?;
    let [low, median, high] = quartiles.map(two_digits);
    let batches = text::count(values.count(), "batch", "batches");
    let words = format!("median {median} {unit}, middle half {low} to {high}, {batches}");
    let [low, median, high] = quartiles.map(to_f64);
    Some(Spread {
        least: to_f64(values.min()?),
        low,
        median,
        high,
        most: to_f64(values.max()?),
        words,
    })
}

/// The quartiles, minimum and maximum of some values, for drawing.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    pub(super) least: f64,
    pub(super) low: f64,
    pub(super) median: f64,
    pub(super) high: f64,
    pub(super) most: f64,
    /// The same as exact text.
    pub(super) words: String,
}

/// The width of every chart: fits on a phone without shrinking the text.
pub(super) const WIDTH: f64 = 360.0;
/// The height of a row.
pub(super) const ROW: f64 = 26.0;

/// The maximum width of a name beside a bar, in em.
const NAME_WIDTH: f64 = 7.9;

/// Writes the numbers of values that are drawn at the edge of a chart. Those that would overlap move away from the edge.
pub(super) struct EdgeNumbers {
    /// What a number must not cover: from, to and height.
    taken: Vec<(f64, f64, f64)>,
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
            taken: Vec::new(),
            left,
            right,
        }
    }

    /// Keeps the numbers off the mark at this place.
    pub(super) fn avoid(&mut self, (x, y): (f64, f64)) {
        self.taken.push((x - 4.0, x + 4.0, y));
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
        let end = start + NUMBER_WIDTH;
        let is_free = |y: &f64| {
            !self.taken.iter().any(|(from, to, other)| {
                *from < end && *to > start && (other - y).abs() < NUMBER_HEIGHT
            })
        };
        let mut heights = (0..MAX_MOVES).map(|moves| y + f64::from(moves) * step);
        let y = heights.find(is_free)?;
        self.taken.push((start, end, y));
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

/// Values nearer than this to the middle half are never outliers, in units of the axis.
const NEAR: f64 = 5.0;

/// Returns the smallest of `values`, each with its count, that is not an outlier.
///
/// An outlier is below the middle half by more than three times its width, and among the lowest twentieth.
pub(super) fn usual_least(mut values: Vec<(f64, u64)>) -> Option<f64> {
    values.retain(|(value, count)| value.is_finite() && *count > 0);
    values.sort_unstable_by(|left, right| left.0.total_cmp(&right.0));
    let all: u64 = values.iter().map(|(_, count)| count).sum();
    let at = |place: u64| {
        let mut before = 0;
        let found = values.iter().find(|(_, count)| {
            before += count;
            before > place
        });
        found.map(|(value, _)| *value)
    };
    let last = all.checked_sub(1)?;
    let (low, high) = (at(last / 4)?, at(last - last / 4)?);
    let fence = low - (3.0 * (high - low)).max(NEAR);
    let near = values.iter().find(|(value, _)| *value >= fence);
    // With fewer than 20 values, a single one is more than a twentieth.
    let many = (all >= 20).then(|| at(all / 20)).flatten();
    near.map(|(value, _)| *value)
        .into_iter()
        .chain(many)
        .reduce(f64::min)
}

/// Returns the largest of `values` that is not an outlier.
pub(super) fn usual_most(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let negated = values.into_iter().map(|value| (-value, 1)).collect();
    usual_least(negated).map(|least| -least)
}

/// Returns the scale of rates that all charts share, up to 100. It ignores the lowest twentieth: one failed
/// week would flatten all others.
pub(super) fn rate_scale(mut values: Vec<f64>, targets: impl Iterator<Item = f64>) -> (f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let usual = values.get(values.len() / 20).copied();
    let least = targets.chain(usual).fold(90.0, f64::min).max(0.0);
    (rounded_out(least, 100.0, 4).0, 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crop_has_a_name_that_can_be_seen() {
        for (crop, name) in [
            ("", NO_CROP),
            (" ", "\" \""),
            ("\u{a0}\u{200b}", "\"\\u{a0}\\u{200b}\""),
            (" b", "\" b\""),
            ("a b", "a b"),
        ] {
            assert_eq!(crop_name(crop), name);
        }
    }

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

    #[test]
    fn one_outlier_does_not_decide() {
        let once = |values: &[f64]| values.iter().map(|value| (*value, 1)).collect();
        let near = [85.0, 88.0, 90.0, 91.0, 93.0, 95.0];
        for (more, least) in [
            (&[][..], 85.0),
            (&[3.0][..], 85.0),
            (&[70.5][..], 70.5),
            (&[-400.0][..], 85.0),
            (&[f64::NAN][..], 85.0),
        ] {
            let values = once(&[&near, more].concat());
            assert_eq!(usual_least(values), Some(least), "{more:?}");
        }
        assert_eq!(usual_least(once(&[3.0])), Some(3.0));
        assert_eq!(usual_least(Vec::new()), None);
        // All equal, and one a little lower.
        assert_eq!(usual_least(vec![(90.0, 30), (88.0, 1)]), Some(88.0));
        // A twentieth may be outliers, more may not.
        assert_eq!(usual_least(vec![(90.0, 38), (3.0, 2)]), Some(90.0));
        assert_eq!(usual_least(vec![(90.0, 37), (3.0, 3)]), Some(3.0));
        assert_eq!(usual_most([10.0, 12.0, 14.0, 15.0, 900.0]), Some(15.0));
    }

    #[test]
    fn one_failed_week_does_not_flatten_the_others() {
        let none = std::iter::empty;
        let mut values = vec![85.0; 39];
        assert!(same(rate_scale(values.clone(), none()), (85.0, 100.0)));
        values.push(3.0);
        assert!(same(rate_scale(values.clone(), none()), (85.0, 100.0)));
        values.extend([3.0, 3.0]);
        assert!(same(rate_scale(values, none()), (0.0, 100.0)));
        assert!(same(
            rate_scale(vec![99.0], [55.0].into_iter()),
            (40.0, 100.0)
        ));
        assert!(same(rate_scale(Vec::new(), none()), (90.0, 100.0)));
        assert!(same(rate_scale(vec![-50.0], none()), (0.0, 100.0)));
    }

    fn same(left: (f64, f64), right: (f64, f64)) -> bool {
        (left.0 - right.0).abs() < 1e-9 && (left.1 - right.1).abs() < 1e-9
    }
}
