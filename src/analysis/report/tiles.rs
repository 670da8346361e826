//! The tiles: the number of batches, and how the figures changed within the crops.

use super::format::signed;
use super::gather::ReportData;
use super::verdict::count_crops;
use crate::analysis::judgement::{CropJudgement, MIN_BATCHES, NewestStep, changed};
use crate::analysis::statistics::{Decimal, Figures, Metric};
use crate::text::thousands;

pub(super) struct Tile {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) unit: &'static str,
    pub(super) note: String,
}

/// The change of a figure within one crop.
type Change = fn(&Figures, &Figures) -> Option<Decimal>;

/// The figures whose change is shown.
const KINDS: [(&str, Change); 4] = [
    ("Usable", |newest, before| {
        of(&newest.usable_rate, &before.usable_rate)
    }),
    ("Germination", |newest, before| {
        of(&newest.germination_rate, &before.germination_rate)
    }),
    ("Gap between the two", |newest, before| {
        let germination = of(&newest.germination_rate, &before.germination_rate)?;
        germination.checked_sub(of(&newest.usable_rate, &before.usable_rate)?)
    }),
    ("Size variation (CV)", |newest, before| {
        let metric = &newest.coefficient_of_variation;
        of(metric, &before.coefficient_of_variation)
    }),
];

fn of(newest: &Metric, before: &Metric) -> Option<Decimal> {
    changed(&newest.distribution, &before.distribution)
}

pub(super) fn tiles(data: &ReportData, newest: &NewestStep<'_>) -> Vec<Tile> {
    let present: Vec<&CropJudgement<'_>> = newest.present().collect();
    let batches = present.iter().filter_map(|crop| crop.newest);
    let batches: u64 = batches.map(|figures| figures.batches).sum();
    let crops = count_crops(&present);
    let share = data.span.share(newest.period);
    let share = share.map_or_else(String::new, |share| format!(", {share}"));
    let batches = Tile {
        name: "Batches",
        value: thousands(batches),
        unit: "",
        note: format!("of {crops}{share}"),
    };
    let tiles = KINDS.map(|(name, change)| tile(name, change, &present));
    [batches].into_iter().chain(tiles).collect()
}

fn tile(name: &'static str, change: Change, crops: &[&CropJudgement<'_>]) -> Tile {
    let changes = crops.iter().filter_map(|crop| {
        let newest = crop.newest?;
        Some((*crop, (change(newest, &crop.before)?, newest.batches)))
    });
    let (compared, changes): (Vec<_>, Vec<(Decimal, u64)>) = changes.unzip();
    let (value, unit, note) = match weighted_mean(&changes) {
        Some(mean) => {
            let compared = count_crops(&compared);
            (signed(mean), "points", format!("mean of {compared}"))
        }
        None => (
            "–".to_owned(),
            "",
            format!("not enough batches to compare (at least {MIN_BATCHES} of a crop)"),
        ),
    };
    Tile {
        name,
        value,
        unit,
        note,
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
