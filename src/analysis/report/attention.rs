//! Lists the batches that need attention, worst first: below the user's target, far below the crop's
//! median in the steps before, or with a warning from the service.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::format::{distinct, plural, points};
use super::gather::{ReportData, merged};
use super::newest::{MAX_KEPT, Scan};
use crate::analysis::statistics::{Decimal, Distribution, Period, two_digits};
use crate::analysis::{Target, Targets};

/// The maximum number of rows on the page.
const ROWS: usize = 15;
/// The minimum number of values to compare with. The page's text says "three". A crop that is scanned once
/// a week has at most four.
const MIN_VALUES: u64 = 3;

/// The batches that need attention: those of the newest step, then of the four before, which can still be
/// acted on, then all others. Within each, the worst is first.
pub(super) struct Attention<'a> {
    pub(super) rows: Vec<FlaggedBatch<'a>>,
    /// The number of all flagged batches, including those without a row.
    pub(super) flagged: usize,
    /// The number of checked batches. `None` if all were checked.
    pub(super) checked: Option<usize>,
}

/// A batch with the reasons why it is listed.
pub(super) struct FlaggedBatch<'a> {
    pub(super) scan: &'a Scan,
    pub(super) reasons: Vec<String>,
    /// How many points it is below its target or the median of its crop.
    shortfall: Decimal,
}

/// The usual usable rate of a crop before a step.
struct Usual {
    median: Decimal,
    /// The lowest rate that is still usual.
    floor: Decimal,
}

impl<'a> Attention<'a> {
    pub(super) fn new(data: &'a ReportData, targets: &Targets) -> Self {
        let mut usual = HashMap::new();
        let mut medians = HashMap::new();
        let scans = data.newest.sorted();
        let mut rows: Vec<FlaggedBatch<'a>> = Vec::new();
        for scan in scans {
            let period = data.step.period(scan.created);
            let usual = usual
                .entry((scan.crop.as_deref(), period))
                .or_insert_with(|| usual_before(data, scan.crop.as_ref(), period))
                .as_ref();
            let target = targets.of(scan.crop.as_deref());
            let (reasons, shortfall) = reasons(scan, target, usual);
            if !reasons.is_empty() {
                let median = medians
                    .entry(scan.crop.as_deref())
                    .or_insert_with(|| median_of(data, scan.crop.as_ref()));
                let below = median.zip(scan.usable_rate);
                let below = below.map_or(Decimal::ZERO, |(median, rate)| median - rate);
                rows.push(FlaggedBatch {
                    scan,
                    reasons,
                    shortfall: shortfall.max(below),
                });
            }
        }
        let flagged = rows.len();
        let newest = data.last_step();
        let recent = newest.map(|newest| data.before(newest));
        let age = |flagged: &FlaggedBatch<'_>| {
            let step = data.step.period(flagged.scan.created);
            let is_recent = recent.iter().flatten().any(|before| *before == step);
            match newest {
                Some(newest) if newest == step => 0,
                _ if is_recent => 1,
                _ => 2,
            }
        };
        // The sort is stable: with the same shortfall, the newest is first.
        rows.sort_by_key(|flagged| (age(flagged), Reverse(flagged.shortfall)));
        rows.truncate(ROWS);
        let dated = data.newest.dated;
        Self {
            rows,
            flagged,
            checked: (dated > MAX_KEPT).then_some(MAX_KEPT),
        }
    }

    /// Describes the list.
    pub(super) fn note(&self, data: &ReportData, targets: &Targets) -> String {
        let steps = data.step_words();
        let target = if targets.is_empty() {
            ""
        } else {
            ", batches that miss one of your targets"
        };
        let within = if data.span.has_start() {
            format!(" Only {} entirely in this range are compared.", steps.many)
        } else {
            String::new()
        };
        let rule = format!(
            "Batches with a warning from the service{target}, and batches with a usable rate far below the median of their crop in the four {} before: by more than three median absolute deviations and at least one point, compared with at least three values.{within}",
            steps.many
        );
        let checked = self.checked.map_or_else(String::new, |count| {
            format!(" Of the newest {count} batches:")
        });
        let found = match (self.flagged, self.rows.len()) {
            (0, _) => format!("{checked} None."),
            (all, shown) if all == shown => {
                format!(
                    "{checked} {}: the newest {} first, then the four before, worst first.",
                    plural(all as u64, "batch", "batches"),
                    steps.one
                )
            }
            (all, shown) => format!(
                "{checked} {}, {shown} of them listed: the newest {} first, then the four before, worst first.",
                plural(all as u64, "batch", "batches"),
                steps.one
            ),
        };
        format!("{rule}{found}")
    }
}

/// Returns the usual rate of `crop` in the steps before `period`. `None` if there are too few values.
fn usual_before(data: &ReportData, crop: Option<&String>, period: Period) -> Option<Usual> {
    let crop = data.crops.get(&crop.cloned())?;
    let before = data.before(period).into_iter();
    let trailing = before.filter_map(|step| crop.steps.get(&step));
    let rates = merged(trailing).usable_rate.distribution;
    usual(&rates)
}

/// Returns the median usable rate of `crop` over the whole range.
fn median_of(data: &ReportData, crop: Option<&String>) -> Option<Decimal> {
    let crop = data.crops.get(&crop.cloned())?;
    crop.total().usable_rate.distribution.median()
}

fn usual(rates: &Distribution) -> Option<Usual> {
    if rates.count() < MIN_VALUES {
        return None;
    }
    let median = rates.median()?;
    let spread = Decimal::from(3).checked_mul(rates.deviation()?)?;
    let floor = median.checked_sub(spread.max(Decimal::ONE))?;
    Some(Usual { median, floor })
}

fn reasons(scan: &Scan, target: Option<&Target>, usual: Option<&Usual>) -> (Vec<String>, Decimal) {
    let mut reasons = Vec::new();
    let mut shortfall = Decimal::ZERO;
    let mut short = |by: Decimal| shortfall = shortfall.max(by);
    if let Some(target) = target {
        for (name, value, least) in [
            ("usable", scan.usable_rate, target.usable_rate_min),
            (
                "germination",
                scan.germination_rate,
                target.germination_rate_min,
            ),
        ] {
            if let (Some(value), Some(least)) = (value, least)
                && value < least
            {
                let by = least - value;
                short(by);
                let (by, least) = (points(by), least.normalize());
                reasons.push(format!("{name} {by} below target ({least}\u{a0}%)"));
            }
        }
        if let (Some(value), Some(most)) = (scan.variation, target.coefficient_of_variation_max)
            && value > most
        {
            short(value - most);
            let (value, most) = (distinct(value, most), most.normalize());
            reasons.push(format!("CV {value} % above target ({most}\u{a0}%)"));
        }
    }
    if let (Some(usual), Some(rate)) = (usual, scan.usable_rate)
        && rate < usual.floor
    {
        let by = usual.median - rate;
        short(by);
        let median = two_digits(usual.median);
        reasons.push(format!(
            "usable {} below its crop ({median}\u{a0}%)",
            points(by)
        ));
    }
    if scan.warnings {
        let without = scan.usable_rate.is_none() && scan.germination_rate.is_none();
        reasons.push(if without {
            "warning, no figures".to_owned()
        } else {
            "warning".to_owned()
        });
    }
    (reasons, shortfall)
}
