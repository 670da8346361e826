//! Batches that somebody should look at, and how bad they are: below the user's target, far below what the crop did in the steps
//! before, or with a warning of the service.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::format::{apart, plural, points};
use super::gather::{ReportData, together};
use super::newest::{KEPT, Scan};
use crate::analysis::statistics::{Decimal, Distribution, Period, two_digits};
use crate::analysis::{Target, Targets};

/// Rows on the page, at most.
const ROWS: usize = 15;
/// Values that tell what is usual, at least; the page calls them three. A crop that is scanned once a week
/// has four at best.
const ENOUGH: u64 = 3;

/// What needs attention: of the newest step first, then of the four before, which can still be acted on, then
/// of all others; each from the worst on.
pub(super) struct Attention<'a> {
    pub(super) rows: Vec<FlaggedBatch<'a>>,
    /// All that was noticed, those without a row too.
    pub(super) noticed: usize,
    /// Batches that were looked at, where that is not all of them.
    pub(super) looked_at: Option<usize>,
}

/// A batch with the reasons why it is there.
pub(super) struct FlaggedBatch<'a> {
    pub(super) scan: &'a Scan,
    pub(super) reasons: Vec<String>,
    /// By how many points it misses what was expected, or lies below the median of its crop.
    shortfall: Decimal,
}

/// What was usual for a crop before a step.
struct Usual {
    median: Decimal,
    /// What lies below is not.
    floor: Decimal,
}

impl<'a> Attention<'a> {
    pub(super) fn new(gathered: &'a ReportData, targets: &Targets) -> Self {
        let mut usual = HashMap::new();
        let mut medians = HashMap::new();
        let scans = gathered.newest.sorted();
        let mut rows: Vec<FlaggedBatch<'a>> = Vec::new();
        for scan in scans {
            let period = gathered.step.period(scan.created);
            let usual = usual
                .entry((scan.crop.as_deref(), period))
                .or_insert_with(|| usual_before(gathered, scan.crop.as_ref(), period))
                .as_ref();
            let target = targets.of(scan.crop.as_deref());
            let (reasons, shortfall) = reasons(scan, target, usual);
            if !reasons.is_empty() {
                let median = medians
                    .entry(scan.crop.as_deref())
                    .or_insert_with(|| median_of(gathered, scan.crop.as_ref()));
                let below = median.zip(scan.usable_rate);
                let below = below.map_or(Decimal::ZERO, |(median, rate)| median - rate);
                rows.push(FlaggedBatch {
                    scan,
                    reasons,
                    shortfall: shortfall.max(below),
                });
            }
        }
        let noticed = rows.len();
        let newest = gathered.last_step();
        let recent = newest.map(|newest| gathered.before(newest));
        let age = |noticed: &FlaggedBatch<'_>| {
            let step = gathered.step.period(noticed.scan.created);
            let is_recent = recent.iter().flatten().any(|before| *before == step);
            match newest {
                Some(newest) if newest == step => 0,
                _ if is_recent => 1,
                _ => 2,
            }
        };
        // Stable: within the same shortfall, the newest first.
        rows.sort_by_key(|noticed| (age(noticed), Reverse(noticed.shortfall)));
        rows.truncate(ROWS);
        let offered = gathered.newest.offered;
        Self {
            rows,
            noticed,
            looked_at: (offered > KEPT).then_some(KEPT),
        }
    }

    /// Says what the list is.
    pub(super) fn note(&self, gathered: &ReportData, targets: &Targets) -> String {
        let steps = gathered.step_words();
        let target = if targets.is_empty() {
            ""
        } else {
            ", that miss a target of yours"
        };
        let within = if gathered.span.has_start() {
            format!(" Only {} that lie wholly in this range count.", steps.many)
        } else {
            String::new()
        };
        let rule = format!(
            "Batches that the service warns of{target}, or whose usable rate lies more than three median absolute deviations, and a point at least, below the median of their crop in the four {} before, where three values or more tell it.{within}",
            steps.many
        );
        let looked_at = self.looked_at.map_or_else(String::new, |count| {
            format!(" Of the newest {count} batches:")
        });
        let found = match (self.noticed, self.rows.len()) {
            (0, _) => format!("{looked_at} None."),
            (all, shown) if all == shown => {
                format!(
                    "{looked_at} {}, the newest {} first, then the four before, the worst on top.",
                    plural(all as u64, "batch", "batches"),
                    steps.one
                )
            }
            (all, shown) => format!(
                "{looked_at} {}; the first {shown}, the newest {} first, then the four before, the worst on top.",
                plural(all as u64, "batch", "batches"),
                steps.one
            ),
        };
        format!("{rule}{found}")
    }
}

/// Returns what was usual for `crop` in the steps before `period`; nothing where too little came.
fn usual_before(gathered: &ReportData, crop: Option<&String>, period: Period) -> Option<Usual> {
    let crop = gathered.crops.get(&crop.cloned())?;
    let before = gathered.before(period).into_iter();
    let trailing = before.filter_map(|step| crop.steps.get(&step));
    let rates = together(trailing).usable_rate.distribution;
    usual(&rates)
}

/// Returns the median usable rate of `crop` over the whole range.
fn median_of(gathered: &ReportData, crop: Option<&String>) -> Option<Decimal> {
    let crop = gathered.crops.get(&crop.cloned())?;
    crop.total().usable_rate.distribution.median()
}

fn usual(rates: &Distribution) -> Option<Usual> {
    if rates.count() < ENOUGH {
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
            let (value, most) = (apart(value, most), most.normalize());
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
