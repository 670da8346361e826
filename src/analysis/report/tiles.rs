//! The tiles: five figures of the newest step, compared with the step before and the four before.

use super::format::{figure, points};
use super::gather::{ReportData, merged};
use super::steps::{StepWords, TRAILING};
use crate::analysis::statistics::{Decimal, Figures, Period, two_digits};

pub(super) struct Tile {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) unit: &'static str,
    pub(super) changes: Vec<FigureChange>,
}

/// How a figure differs from an earlier one.
pub(super) struct FigureChange {
    pub(super) arrow: &'static str,
    pub(super) words: String,
    /// The CSS class: `better`, `worse` or `same`.
    pub(super) class: &'static str,
}

impl FigureChange {
    /// Explains why there is no comparison.
    fn none(words: &str) -> Self {
        Self {
            arrow: "·",
            words: words.to_owned(),
            class: "same",
        }
    }
}

/// Which direction of change is better.
#[derive(Clone, Copy)]
enum Direction {
    Up,
    Down,
    Neither,
}

struct TileKind {
    name: &'static str,
    unit: &'static str,
    better: Direction,
    of: fn(&Figures) -> Option<Decimal>,
}

const KINDS: [TileKind; 4] = [
    TileKind {
        name: "Germination",
        unit: "%",
        better: Direction::Up,
        of: |figures| figures.germination_rate.distribution.median(),
    },
    TileKind {
        name: "Usable",
        unit: "%",
        better: Direction::Up,
        of: |figures| figures.usable_rate.distribution.median(),
    },
    TileKind {
        name: "Gap between the two",
        unit: "points",
        better: Direction::Down,
        of: Figures::gap,
    },
    TileKind {
        name: "Size variation (CV)",
        unit: "%",
        better: Direction::Down,
        of: |figures| figures.coefficient_of_variation.distribution.median(),
    },
];

pub(super) fn tiles(data: &ReportData, newest: Period) -> Vec<Tile> {
    let now = data.at(newest);
    let periods = data.before(newest);
    let earlier: Vec<Figures> = periods.iter().map(|period| data.at(*period)).collect();
    let before = earlier
        .first()
        .filter(|_| periods.first() == Some(&newest.previous()));
    let trailing = merged(earlier.iter());
    let words = Earlier::new(data, newest, earlier.len());
    let mut tiles = vec![batches(data, newest, &now, before, &earlier, &words)];
    tiles.extend(KINDS.iter().map(|kind| {
        let value = (kind.of)(&now);
        let change = |other: &Figures, than: &str| {
            let difference = value
                .zip((kind.of)(other))
                .map(|(value, other)| value - other);
            change(difference, than, kind.better, points)
        };
        let changes = words.changes(before.map(|before| change(before, &words.one)), |several| {
            change(&trailing, several)
        });
        Tile {
            name: kind.name,
            value: figure(value),
            unit: value.map_or("", |_| kind.unit),
            changes,
        }
    }));
    tiles
}

/// The texts for the steps before, and for missing comparisons.
struct Earlier {
    one: String,
    /// `None` if there are fewer than two.
    several: Option<String>,
    /// Shown instead of a comparison with the step before.
    without_one: String,
    /// Shown instead of a comparison with several steps. `None` if not needed.
    without_several: Option<String>,
}

impl Earlier {
    /// `known` is the number of steps before `newest` to compare with.
    fn new(data: &ReportData, newest: Period, known: usize) -> Self {
        let StepWords { one, many } = data.step_words();
        let span = &data.span;
        let number = ["no", "one", "two", "three", "four"][known.min(TRAILING)];
        let within = if known < TRAILING && span.has_start() {
            " in this range"
        } else {
            ""
        };
        let without_one = if !span.has_start() {
            format!("no batches before this {one}")
        } else if span.touches(newest.previous()) {
            format!("the {one} before is only partly in this range")
        } else {
            format!("the {one} before is not in this range")
        };
        let without_several = (known == 1 && span.has_start())
            .then(|| format!("only one of the four {many} before is in this range"));
        Self {
            one: format!("the {one} before"),
            several: (known > 1).then(|| format!("the {number} {many} before{within}")),
            without_one,
            without_several,
        }
    }

    /// Returns both comparisons, or the reasons why they are missing.
    fn changes(
        &self,
        one: Option<FigureChange>,
        several: impl Fn(&str) -> FigureChange,
    ) -> Vec<FigureChange> {
        let first = one.unwrap_or_else(|| FigureChange::none(&self.without_one));
        let without = || self.without_several.as_deref().map(FigureChange::none);
        let second = self.several.as_deref().map(several).or_else(without);
        std::iter::once(first).chain(second).collect()
    }
}

/// Returns the tile of the number of batches, compared with the median of the steps before.
fn batches(
    data: &ReportData,
    newest: Period,
    now: &Figures,
    before: Option<&Figures>,
    earlier: &[Figures],
    words: &Earlier,
) -> Tile {
    let value = Decimal::from(now.batches);
    let size = |size: Decimal| size.normalize().to_string();
    let changes = if let Some(share) = data.span.share(newest) {
        // An incomplete step has fewer batches, so a comparison would mean nothing.
        vec![FigureChange::none(&format!("{share}; not compared"))]
    } else {
        let change = |other: Decimal, than: &str| {
            change(Some(value - other), than, Direction::Neither, size)
        };
        words.changes(
            before.map(|before| change(Decimal::from(before.batches), &words.one)),
            |several| change(median_count(earlier), &format!("the median of {several}")),
        )
    };
    Tile {
        name: "Batches",
        value: now.batches.to_string(),
        unit: "",
        changes,
    }
}

fn median_count(steps: &[Figures]) -> Decimal {
    let mut counts: Vec<u64> = steps.iter().map(|figures| figures.batches).collect();
    counts.sort_unstable();
    let Some(last) = counts.len().checked_sub(1) else {
        return Decimal::ZERO;
    };
    let middle = counts[last / 2] + counts[last.div_ceil(2)];
    Decimal::from(middle) / Decimal::from(2)
}

fn change(
    difference: Option<Decimal>,
    than: &str,
    better: Direction,
    size: impl Fn(Decimal) -> String,
) -> FigureChange {
    let Some(difference) = difference else {
        return FigureChange::none(&format!("no values to compare in {than}"));
    };
    // A change that disappears when rounded is not shown as one.
    if two_digits(difference.abs()) == "0.00" {
        return FigureChange {
            arrow: "=",
            words: format!("same as {than}"),
            class: "same",
        };
    }
    let rises = difference > Decimal::ZERO;
    let (arrow, word) = match (rises, better) {
        (true, _) => ("▲", "more"),
        (false, Direction::Neither) => ("▼", "fewer"),
        (false, _) => ("▼", "less"),
    };
    let class = match (better, rises) {
        (Direction::Neither, _) => "same",
        (Direction::Up, true) | (Direction::Down, false) => "better",
        (Direction::Up, false) | (Direction::Down, true) => "worse",
    };
    let judgement = if class == "same" {
        String::new()
    } else {
        format!(" ({class})")
    };
    FigureChange {
        arrow,
        words: format!("{} {word} than {than}{judgement}", size(difference.abs())),
        class,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(difference: Option<&str>, better: Direction) -> (String, &'static str) {
        let difference = difference.map(|text| text.parse().expect(text));
        let change = change(difference, "before", better, points);
        (format!("{} {}", change.arrow, change.words), change.class)
    }

    #[test]
    fn changes_have_an_arrow_and_words() {
        for (difference, better, words, class) in [
            (
                Some("1.5"),
                Direction::Up,
                "▲ 1.50 points more than before (better)",
                "better",
            ),
            (
                Some("-1.5"),
                Direction::Up,
                "▼ 1.50 points less than before (worse)",
                "worse",
            ),
            (
                Some("1"),
                Direction::Down,
                "▲ 1.00 point more than before (worse)",
                "worse",
            ),
            (
                Some("-0.005"),
                Direction::Down,
                "▼ 0.01 points less than before (better)",
                "better",
            ),
            (Some("-0.0049"), Direction::Up, "= same as before", "same"),
            (Some("0"), Direction::Down, "= same as before", "same"),
            (
                None,
                Direction::Up,
                "· no values to compare in before",
                "same",
            ),
            (
                Some("-3"),
                Direction::Neither,
                "▼ 3.00 points fewer than before",
                "same",
            ),
        ] {
            assert_eq!(text(difference, better), (words.to_owned(), class));
        }
    }
}
