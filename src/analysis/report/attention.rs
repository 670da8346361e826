//! The batches that need attention: those of the newest step by crop, and older ones.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::chart::crop_name;
use super::format::day;
use super::gather::ReportData;
use super::recent::{LinkBudget, MAX_KEPT, Scan};
use crate::analysis::Targets;
use crate::analysis::judgement::{Limits, NewestStep, Reason};
use crate::analysis::statistics::{Decimal, Period, distinct, two_digits};
use crate::text::{self, thousands};

/// The number of batches of a crop that are listed at once; the others are folded away.
const SHOWN: usize = 5;
/// The same for a crop that is down, whose batches are listed in a line.
const SHOWN_OF_DOWN: usize = 12;
/// The maximum number of batches of a crop on the page.
const MAX_PER_CROP: usize = 100;
/// The maximum number of batches in each part of the page.
const MAX_ROWS: usize = 500;
/// The maximum number of older batches.
const MAX_OLDER: usize = 50;
/// The maximum size of all links, in bytes.
const LINKS_SIZE: usize = 128 * 1024;

/// The batches that need attention.
#[derive(Default)]
pub(super) struct Attention {
    /// The crops of the newest step, the worst first.
    pub(super) crops: Vec<AttentionCrop>,
    /// The number of batches of the newest step.
    pub(super) count: u64,
    /// The number of batches of the newest step that failed.
    pub(super) failed: u64,
    /// The crop of these, if they are of one.
    pub(super) failed_crop: Option<String>,
    /// How many of how many batches of the newest step were looked at, if not all.
    pub(super) looked_at: Option<String>,
    /// Whether any batch of the newest step needs attention, and whether any failed, including those not looked at.
    pub(super) has_any: bool,
    pub(super) has_failure: bool,
    /// Batches of older steps, newest first.
    pub(super) older: Vec<AttentionRow>,
    /// Whether a crop has a target.
    pub(super) has_targets: bool,
    /// The number of older batches, including those without a row.
    pub(super) older_count: u64,
    /// The number of older batches that were looked at, if not all.
    pub(super) older_among: Option<String>,
    /// The number of crops without any row.
    pub(super) left_out_crops: u64,
}

/// The batches of one crop in the newest step.
pub(super) struct AttentionCrop {
    pub(super) name: String,
    /// How many of how many batches.
    pub(super) count: String,
    /// Says that the crop is down: all its batches are listed in a line.
    pub(super) down: Option<String>,
    pub(super) shown: Vec<AttentionRow>,
    /// Folded away.
    pub(super) more: Vec<AttentionRow>,
    /// The number of batches without a row.
    pub(super) left_out: u64,
}

impl AttentionCrop {
    /// Returns the CSS class of its lists: those of a crop that is down are side by side.
    pub(super) fn class(&self) -> &'static str {
        if self.down.is_some() { "inline" } else { "" }
    }
}

pub(super) struct AttentionRow {
    pub(super) name: String,
    pub(super) link: Option<String>,
    pub(super) crop: String,
    pub(super) created: String,
    pub(super) usable: String,
    pub(super) reason: String,
    pub(super) comment: String,
    pub(super) email: String,
}

/// A batch with the reasons why it needs attention, the most serious first.
struct Flagged<'a> {
    scan: &'a Scan,
    /// Empty if only its crop is down.
    reasons: Vec<Reason>,
    /// How many points it is below its target or the median of its crop.
    shortfall: Decimal,
}

impl Attention {
    pub(super) fn new(data: &ReportData, newest: &NewestStep<'_>, targets: &Targets) -> Self {
        let step = data.history.step;
        let (now, older): (Vec<Flagged<'_>>, Vec<Flagged<'_>>) = flagged(data, newest, targets)
            .into_iter()
            .filter(|flagged| step.period(flagged.scan.created) <= newest.period)
            .partition(|flagged| step.period(flagged.scan.created) == newest.period);
        let in_step = newest.present().filter_map(|crop| crop.newest);
        let in_step: u64 = in_step.map(|figures| figures.batches).sum();
        let looked_at = data.recent.count(newest.period);
        let mut links = LinkBudget(LINKS_SIZE);
        let failed = now.iter().filter(|flagged| flagged.has_failed());
        let failed: Vec<&str> = failed.map(|flagged| flagged.scan.crop()).collect();
        let mut attention = Self {
            count: now.iter().filter(|flagged| flagged.has_reason()).count() as u64,
            failed: failed.len() as u64,
            failed_crop: failed.first().and_then(|first| {
                let is_same = failed.iter().all(|crop| crop == first);
                (is_same && !first.is_empty()).then(|| crop_name(first))
            }),
            looked_at: (looked_at < in_step)
                .then(|| format!("{} of {}", thousands(looked_at), thousands(in_step))),
            has_any: newest.present().any(|crop| crop.has_attention),
            has_failure: newest.present().any(|crop| crop.has_failure),
            older_among: (data.recent.has_dropped()).then(|| thousands(MAX_KEPT as u64)),
            has_targets: newest.crops.iter().any(|crop| crop.target.is_some()),
            older_count: older.len() as u64,
            ..Self::default()
        };
        let mut by_crop: HashMap<&str, Vec<Flagged<'_>>> = HashMap::new();
        for flagged in now {
            let crop = by_crop.entry(flagged.scan.crop());
            crop.or_default().push(flagged);
        }
        let mut room = MAX_ROWS;
        for crop in newest.present() {
            let mut rows = by_crop.remove(crop.name).unwrap_or_default();
            if rows.is_empty() && !crop.has_attention {
                continue;
            }
            // Its batches may be among those not looked at.
            if room == 0 || rows.is_empty() {
                attention.left_out_crops += 1;
                continue;
            }
            // Failures first, and batches without a rate last. The sort is stable: with the same shortfall, the newest is first.
            rows.sort_by_key(|flagged| {
                let has_rate = flagged.scan.usable_rate.is_some();
                (!flagged.has_failed(), !has_rate, Reverse(flagged.shortfall))
            });
            let all = crop.newest.map_or(0, |figures| figures.batches);
            let count = rows.iter().filter(|row| row.has_reason()).count();
            let listed = rows.len();
            let rates = rows.iter().map(|row| row.scan.usable_rate);
            let is_by_rate = rates.is_sorted_by(|before, after| match (before, after) {
                (Some(before), Some(after)) => before <= after,
                (before, after) => before.is_some() || after.is_none(),
            });
            let order = if is_by_rate {
                "the lowest first"
            } else {
                "the failed ones first, then the lowest"
            };
            rows.truncate(MAX_PER_CROP.min(room));
            room -= rows.len();
            let is_down = crop.is_down();
            let shown = rows.iter().map(|flagged| flagged.row(is_down, &mut links));
            let mut shown: Vec<AttentionRow> = shown.collect();
            let visible = if is_down { SHOWN_OF_DOWN } else { SHOWN };
            let more = shown.split_off(visible.min(shown.len()));
            attention.crops.push(AttentionCrop {
                name: crop_name(crop.name),
                count: match (count, text::count(all, "batch", "batches")) {
                    (0, all) => all,
                    (count, all) => format!("{} of {all}", thousands(count as u64)),
                },
                down: is_down.then(|| {
                    let change = crop.comparison.change.unwrap_or_default();
                    let usual = crop.comparison.before.unwrap_or_default();
                    format!(
                        "The crop is down: its median is {} points below the usual {} %. Its batches, {order}:",
                        two_digits(change.abs()),
                        two_digits(usual)
                    )
                }),
                left_out: (listed - shown.len() - more.len()) as u64,
                shown,
                more,
            });
        }
        let older = older.iter().take(MAX_OLDER);
        let older = older.map(|flagged| flagged.row(false, &mut links));
        attention.older = older.collect();
        attention
    }
}

/// Returns all batches with a reason, and those of the newest step whose crop is down, newest first.
fn flagged<'a>(
    data: &'a ReportData,
    newest: &NewestStep<'_>,
    targets: &Targets,
) -> Vec<Flagged<'a>> {
    let down = newest.present().filter(|crop| crop.is_down());
    let down: HashSet<&str> = down.map(|crop| crop.name).collect();
    let mut limits: HashMap<(&str, Period), Limits<'_>> = HashMap::new();
    let mut flagged = Vec::new();
    for scan in &data.recent.scans {
        let Some(crop) = data.history.crops.get(scan.crop()) else {
            continue;
        };
        let period = data.history.step.period(scan.created);
        let limits = limits.entry((scan.crop(), period)).or_insert_with(|| {
            let name = Some(scan.crop()).filter(|name| !name.is_empty());
            Limits::new(crop, period, targets.of(name))
        });
        let reasons = limits.reasons(&scan.values());
        let is_down = period == newest.period && down.contains(scan.crop());
        if is_down || !reasons.is_empty() {
            let rate = scan.usable_rate;
            flagged.push(Flagged {
                shortfall: rate.map_or(Decimal::ZERO, |rate| limits.shortfall(rate)),
                scan,
                reasons,
            });
        }
    }
    flagged
}

impl Flagged<'_> {
    fn has_reason(&self) -> bool {
        !self.reasons.is_empty()
    }

    fn has_failed(&self) -> bool {
        self.reasons
            .first()
            .is_some_and(|reason| reason.is_failure())
    }

    /// Returns its row. In a crop that is down, the reasons are short: the line above says what is usual.
    fn row(&self, is_down: bool, links: &mut LinkBudget) -> AttentionRow {
        let scan = self.scan;
        let has_warning = self.reasons.contains(&Reason::Warning);
        let main = self.reasons.first().copied();
        let mut reason = match main {
            None => String::new(),
            Some(Reason::UnusuallyLow(_)) if is_down => "unusually low".to_owned(),
            Some(Reason::UsableBelowTarget(_)) if is_down => "below target".to_owned(),
            Some(main) => words(main, scan),
        };
        if has_warning && main != Some(Reason::Warning) {
            let comma = if reason.is_empty() { "" } else { ", " };
            reason = format!("{reason}{comma}with a warning");
        }
        AttentionRow {
            name: scan.name(),
            link: links.take(scan),
            crop: crop_name(scan.crop()),
            created: day(scan.created),
            usable: match (main, scan.usable_rate) {
                (Some(Reason::UsableBelowTarget(target)), Some(rate)) => {
                    format!("{}\u{a0}%", distinct(rate, target))
                }
                (_, Some(rate)) => format!("{}\u{a0}%", two_digits(rate)),
                (_, None) => "no rate".to_owned(),
            },
            reason,
            comment: scan.comment(),
            email: scan.email(),
        }
    }
}

fn words(reason: Reason, scan: &Scan) -> String {
    let percent = |value: Decimal| format!("{}\u{a0}%", value.normalize());
    let usual = |median: Decimal| format!("{}\u{a0}%", two_digits(median));
    let own = |value: Option<Decimal>, limit: Decimal| {
        value.map_or_else(String::new, |value| distinct(value, limit))
    };
    match reason {
        Reason::NothingGerminated => "nothing germinated".to_owned(),
        Reason::NothingUsable => "no usable seedlings".to_owned(),
        Reason::HalfOfUsable(median) => {
            format!("less than half of its crop's usual {}", usual(median))
        }
        Reason::HalfOfGermination(median) => {
            format!("germination less than half of the usual {}", usual(median))
        }
        Reason::UsableBelowTarget(target) => format!("below target of {}", percent(target)),
        Reason::GerminationBelowTarget(target) => format!(
            "germination {} %, below target of {}",
            own(scan.germination_rate, target),
            percent(target)
        ),
        Reason::VariationAboveTarget(target) => format!(
            "CV {} %, above target of {}",
            own(scan.variation, target),
            percent(target)
        ),
        Reason::UnusuallyLow(median) => {
            format!("unusually low, the median of its crop is {}", usual(median))
        }
        Reason::Warning if scan.usable_rate.is_none() && scan.germination_rate.is_none() => {
            "warning, no measurements".to_owned()
        }
        Reason::Warning => "warning".to_owned(),
    }
}
