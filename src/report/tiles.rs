//! Five figures of the newest step, beside the step before and the four before it.

use super::attention::TRAILING;
use super::gather::{Gathered, together};
use super::words::{StepWords, figure, points};
use crate::statistics::{Decimal, Figures, Period, two_digits};

pub(super) struct Tile {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) unit: &'static str,
    pub(super) changes: Vec<Change>,
}

/// How a figure differs from an earlier one.
pub(super) struct Change {
    pub(super) arrow: &'static str,
    pub(super) words: String,
    /// What it is to a grower: `better`, `worse` or neither.
    pub(super) class: &'static str,
}

/// Which way a grower wants a figure to go.
#[derive(Clone, Copy)]
enum Wanted {
    Up,
    Down,
    Neither,
}

struct Kind {
    name: &'static str,
    unit: &'static str,
    wanted: Wanted,
    of: fn(&Figures) -> Option<Decimal>,
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "Germination",
        unit: "%",
        wanted: Wanted::Up,
        of: |figures| figures.germination_rate.distribution.median(),
    },
    Kind {
        name: "Usable",
        unit: "%",
        wanted: Wanted::Up,
        of: |figures| figures.usable_rate.distribution.median(),
    },
    Kind {
        name: "Gap between the two",
        unit: "points",
        wanted: Wanted::Down,
        of: Figures::gap,
    },
    Kind {
        name: "Variation of size (CV)",
        unit: "%",
        wanted: Wanted::Down,
        of: |figures| figures.coefficient_of_variation.distribution.median(),
    },
];

pub(super) fn tiles(gathered: &Gathered, newest: Period) -> Vec<Tile> {
    let steps = gathered.step_words();
    let now = gathered.at(newest);
    let mut earlier = Vec::with_capacity(TRAILING);
    let mut period = newest;
    for _ in 0..TRAILING {
        period = period.previous();
        earlier.push(gathered.at(period));
    }
    let before = &earlier[0];
    let trailing = together(earlier.iter());
    let mut tiles = vec![batches(&now, &earlier, &steps)];
    tiles.extend(KINDS.iter().map(|kind| {
        let value = (kind.of)(&now);
        let change = |other: Option<Decimal>, than: String| {
            let difference = value.zip(other).map(|(value, other)| value - other);
            change(difference, &than, kind.wanted, points)
        };
        let changes = vec![
            change((kind.of)(before), format!("the {} before", steps.one)),
            change(
                (kind.of)(&trailing),
                format!("the four {} before", steps.many),
            ),
        ];
        Tile {
            name: kind.name,
            value: figure(value),
            unit: kind.unit,
            changes,
        }
    }));
    tiles
}

/// Counts the batches, beside the median count of the steps before.
fn batches(now: &Figures, earlier: &[Figures], steps: &StepWords) -> Tile {
    let mut counts: Vec<u64> = earlier.iter().map(|figures| figures.batches).collect();
    counts.sort_unstable();
    let middle = counts.len() / 2;
    let median =
        (Decimal::from(counts[middle - 1]) + Decimal::from(counts[middle])) / Decimal::from(2);
    let value = Decimal::from(now.batches);
    let size = |size: Decimal| size.normalize().to_string();
    let before = value - Decimal::from(earlier[0].batches);
    Tile {
        name: "Batches",
        value: now.batches.to_string(),
        unit: "",
        changes: vec![
            change(
                Some(before),
                &format!("the {} before", steps.one),
                Wanted::Neither,
                size,
            ),
            change(
                Some(value - median),
                &format!("the median of the four {} before", steps.many),
                Wanted::Neither,
                size,
            ),
        ],
    }
}

fn change(
    difference: Option<Decimal>,
    than: &str,
    wanted: Wanted,
    size: impl Fn(Decimal) -> String,
) -> Change {
    let Some(difference) = difference else {
        return Change {
            arrow: "·",
            words: format!("nothing to compare in {than}"),
            class: "same",
        };
    };
    // What is rounded away is no change to whoever reads it.
    if two_digits(difference.abs()) == "0.00" {
        return Change {
            arrow: "=",
            words: format!("as {than}"),
            class: "same",
        };
    }
    let rises = difference > Decimal::ZERO;
    let (arrow, word) = match (rises, wanted) {
        (true, _) => ("▲", "more"),
        (false, Wanted::Neither) => ("▼", "fewer"),
        (false, _) => ("▼", "less"),
    };
    let class = match (wanted, rises) {
        (Wanted::Neither, _) => "same",
        (Wanted::Up, true) | (Wanted::Down, false) => "better",
        (Wanted::Up, false) | (Wanted::Down, true) => "worse",
    };
    let judgement = if class == "same" {
        String::new()
    } else {
        format!(" ({class})")
    };
    Change {
        arrow,
        words: format!("{} {word} than {than}{judgement}", size(difference.abs())),
        class,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(difference: Option<&str>, wanted: Wanted) -> (String, &'static str) {
        let difference = difference.map(|text| text.parse().expect(text));
        let change = change(difference, "before", wanted, points);
        (format!("{} {}", change.arrow, change.words), change.class)
    }

    #[test]
    fn changes_are_told_by_arrow_and_word() {
        for (difference, wanted, words, class) in [
            (
                Some("1.5"),
                Wanted::Up,
                "▲ 1.50 points more than before (better)",
                "better",
            ),
            (
                Some("-1.5"),
                Wanted::Up,
                "▼ 1.50 points less than before (worse)",
                "worse",
            ),
            (
                Some("1"),
                Wanted::Down,
                "▲ 1.00 point more than before (worse)",
                "worse",
            ),
            (
                Some("-0.005"),
                Wanted::Down,
                "▼ 0.01 points less than before (better)",
                "better",
            ),
            (Some("-0.0049"), Wanted::Up, "= as before", "same"),
            (Some("0"), Wanted::Down, "= as before", "same"),
            (None, Wanted::Up, "· nothing to compare in before", "same"),
            (
                Some("-3"),
                Wanted::Neither,
                "▼ 3.00 points fewer than before",
                "same",
            ),
        ] {
            assert_eq!(said(difference, wanted), (words.to_owned(), class));
        }
    }
}
