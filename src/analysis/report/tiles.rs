//! The tiles: the number of batches, and how the figures changed within the crops.

use super::format::signed;
use super::gather::ReportData;
use crate::analysis::judgement::{CropJudgement, MIN_BATCHES, NewestStep, changed};
use crate::analysis::statistics::{Decimal, Figures, Metric};
use crate::text::{self, thousands};

pub(super) struct Tile {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) unit: &'static str,
    pub(super) note: String,
}

/// A figure whose change is shown.
struct TileKind {
    name: &'static str,
    /// The change within one crop.
    change: fn(&Figures, &Figures) -> Option<Decimal>,
}

const KINDS: [TileKind; 4] = [
    TileKind {
        name: "Usable",
        change: |newest, before| of(&newest.usable_rate, &before.usable_rate),
    },
    TileKind {
        name: "Germination",
        change: |newest, before| of(&newest.germination_rate, &before.germination_rate),
    },
    TileKind {
        name: "Gap between the two",
        change: |newest, before| {
            let germination = of(&newest.germination_rate, &before.germination_rate)?;
            germination.checked_sub(of(&newest.usable_rate, &before.usable_rate)?)
        },
    },
    TileKind {
        name: "Size variation (CV)",
        change: |newest, before| {
            let metric = &newest.coefficient_of_variation;
            of(metric, &before.coefficient_of_variation)
        },
    },
];

fn of(newest: &Metric, before: &Metric) -> Option<Decimal> {
    changed(&newest.distribution, &before.distribution)
}

pub(super) fn tiles(data: &ReportData, newest: &NewestStep<'_>) -> Vec<Tile> {
    let present: Vec<&CropJudgement<'_>> = newest.present().collect();
    let batches = present.iter().filter_map(|crop| crop.newest);
    let batches: u64 = batches.map(|figures| figures.batches).sum();
    let crops = text::count(present.len() as u64, "crop", "crops");
    let share = data.span.share(newest.period);
    let mut tiles = vec![Tile {
        name: "Batches",
        value: thousands(batches),
        unit: "",
        note: share.map_or_else(
            || format!("of {crops}"),
            |share| format!("of {crops}, {share}"),
        ),
    }];
    tiles.extend(KINDS.iter().map(|kind| tile(kind, &present)));
    tiles
}

fn tile(kind: &TileKind, crops: &[&CropJudgement<'_>]) -> Tile {
    let changes = crops.iter().filter_map(|crop| {
        let newest = crop.newest?;
        Some(((kind.change)(newest, &crop.before)?, newest.batches))
    });
    let changes: Vec<(Decimal, u64)> = changes.collect();
    let Some(mean) = weighted_mean(&changes) else {
        return Tile {
            name: kind.name,
            value: "–".to_owned(),
            unit: "",
            note: format!("not enough batches to compare (at least {MIN_BATCHES} of a crop)"),
        };
    };
    let compared = text::count(changes.len() as u64, "crop", "crops");
    Tile {
        name: kind.name,
        value: signed(mean),
        unit: "points",
        note: format!("mean of {compared}"),
    }
}

/// Returns the mean of the changes, weighted by batches. `None` if there is none.
fn weighted_mean(changes: &[(Decimal, u64)]) -> Option<Decimal> {
    let mut sum = Decimal::ZERO;
    let mut weights = 0;
    for (change, count) in changes {
        sum = sum.checked_add(change.checked_mul(Decimal::from(*count))?)?;
        weights += count;
    }
    sum.checked_div(Decimal::from(weights))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::statistics::two_digits;

    #[test]
    fn changes_are_weighted_by_their_batches() {
        let mean = |changes: &[(i64, u64)]| {
            let changes = changes.iter();
            let changes: Vec<_> = changes
                .map(|(change, count)| (Decimal::from(*change), *count))
                .collect();
            weighted_mean(&changes).map(two_digits)
        };
        assert_eq!(mean(&[(-10, 3), (1, 30)]).as_deref(), Some("0.00"));
        assert_eq!(mean(&[(-10, 30), (1, 3)]).as_deref(), Some("-9.00"));
        assert_eq!(mean(&[]), None);
    }
}
