//! The verdict on each crop, and the reasons why a batch needs attention: recomputed with integers from the
//! text of the rules, for the tests of `summary` and `report`.

// Batches to judge.
mod field;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, Datelike as _};
use serde_json::Value;

use crate::fake::live::DAY;
use crate::fake::second;

pub(crate) use field::{Field, Random};

/// The units of a point: eight digits, which the medians halve, and the deviations from them once more.
pub(crate) const POINT: i128 = 4 * 100_000_000;

/// A batch as the rules see it.
#[derive(Clone, Debug)]
pub(crate) struct Tray {
    pub(crate) id: String,
    /// Empty if it has none.
    pub(crate) crop: String,
    pub(crate) created: i64,
    pub(crate) usable: Option<i128>,
    pub(crate) germination: Option<i128>,
    pub(crate) variation: Option<i128>,
    pub(crate) has_warning: bool,
}

impl Tray {
    /// Reads a batch as the service sends it or `export` writes it.
    pub(crate) fn of(batch: &Value) -> Self {
        let text = |key: &str| batch[key].as_str().unwrap_or_default().to_owned();
        let value = |key: &str| batch[key].as_str().map(units);
        Self {
            id: text("batch_id"),
            crop: text("crop_type"),
            created: second(&text("batch_creation_date")),
            usable: value("avg_usable_seedling_rate"),
            germination: value("avg_germination_rate"),
            variation: value("avg_coefficient_of_variation"),
            has_warning: batch["warnings"] == true,
        }
    }
}

/// Parses a decimal number.
pub(crate) fn units(text: &str) -> i128 {
    let (sign, size) = text.strip_prefix('-').map_or((1, text), |size| (-1, size));
    let (whole, digits) = size.split_once('.').unwrap_or((size, ""));
    assert!(digits.len() <= 8, "{text}");
    let hundred_millionths: i128 = format!("{whole}{digits:0<8}").parse().unwrap();
    sign * hundred_millionths * 4
}

/// Rounds half up, the sign aside, to `digits` digits.
fn rounded_to(units: i128, digits: u32) -> String {
    let each = POINT / 10_i128.pow(digits);
    let size = (2 * units.abs() + each) / (2 * each);
    let sign = if units < 0 && size > 0 { "-" } else { "" };
    let one = 10_i128.pow(digits);
    let width = digits as usize;
    format!("{sign}{}.{:0width$}", size / one, size % one)
}

pub(crate) fn rounded(units: i128) -> String {
    rounded_to(units, 2)
}

/// Formats a number with all its digits and no zeros at the end.
pub(crate) fn shortest(units: i128) -> String {
    let text = rounded_to(units, 8);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(crate) fn median(values: &[i128]) -> Option<i128> {
    let mut values = values.to_vec();
    values.sort_unstable();
    let last = values.len().checked_sub(1)?;
    Some(i128::midpoint(values[last / 2], values[last.div_ceil(2)]))
}

/// Returns the median absolute deviation from the median.
fn deviation(values: &[i128]) -> Option<i128> {
    let middle = median(values)?;
    let distances: Vec<i128> = values.iter().map(|value| (value - middle).abs()).collect();
    median(&distances)
}

/// The limits that the user sets for a crop.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Target {
    pub(crate) usable: Option<i128>,
    pub(crate) germination: Option<i128>,
    pub(crate) variation: Option<i128>,
}

/// What the rules depend on, apart from the batches.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    /// `day`, `week` or `month`.
    pub(crate) step: &'a str,
    /// Returns the time on the wall at an instant, in seconds since 1970.
    pub(crate) local: fn(i64) -> i64,
    pub(crate) now: i64,
    pub(crate) targets: &'a [(&'a str, Target)],
}

/// The newest step.
#[derive(Debug)]
pub(crate) struct Newest<'a> {
    pub(crate) number: i64,
    /// The worst first.
    pub(crate) crops: Vec<Crop<'a>>,
}

/// A crop in the newest step.
#[derive(Debug)]
pub(crate) struct Crop<'a> {
    pub(crate) name: &'a str,
    pub(crate) all: Vec<&'a Tray>,
    /// The number of its last step.
    last: i64,
    /// The batches of the newest step, and those of the four before.
    pub(crate) newest: Vec<&'a Tray>,
    pub(crate) before: Vec<&'a Tray>,
    pub(crate) verdict: &'static str,
    pub(crate) change: Option<i128>,
    pub(crate) target: Option<Target>,
    /// Each target that is missed: its name, the median and the limit.
    pub(crate) missed: Vec<(&'static str, i128, i128)>,
    /// The batches of the newest step that need attention, with the reasons, the most serious first, and how far
    /// each is below its target or its crop.
    pub(crate) attention: Vec<(&'a Tray, Vec<String>, i128)>,
}

type Pick = fn(&Tray) -> Option<i128>;

pub(crate) fn values(trays: &[&Tray], pick: Pick) -> Vec<i128> {
    trays.iter().filter_map(|tray| pick(tray)).collect()
}

const USABLE: Pick = |tray| tray.usable;
const GERMINATION: Pick = |tray| tray.germination;
const VARIATION: Pick = |tray| tray.variation;

impl Rules<'_> {
    /// Rules by week, in UTC, without targets.
    pub(crate) fn weekly(now: i64) -> Self {
        Self {
            step: "week",
            local: |second| second,
            now,
            targets: &[],
        }
    }

    /// Returns the number of the step that contains `instant`. Steps are numbered without gaps.
    pub(crate) fn number(&self, instant: i64) -> i64 {
        let second = (self.local)(instant);
        let day = second.div_euclid(DAY);
        match self.step {
            "day" => day,
            // 1970 began on a Thursday.
            "week" => (day + 3).div_euclid(7),
            _ => {
                let date = DateTime::from_timestamp(second, 0).unwrap();
                i64::from(date.year()) * 12 + i64::from(date.month0())
            }
        }
    }

    fn target(&self, crop: &str) -> Option<Target> {
        let same = |name: &str| name.to_lowercase() == crop.to_lowercase();
        let mut found = self.targets.iter().filter(|(name, _)| same(name));
        found.next().map(|(_, target)| *target)
    }

    /// Judges the newest step that has begun.
    pub(crate) fn judge<'t>(&self, trays: &'t [Tray]) -> Newest<'t> {
        let steps = || trays.iter().map(|tray| self.number(tray.created));
        let begun = steps().filter(|step| *step <= self.number(self.now));
        let number = begun.max().or_else(|| steps().max()).unwrap();
        let mut by_name: BTreeMap<&str, Vec<&Tray>> = BTreeMap::new();
        for tray in trays {
            by_name.entry(&tray.crop).or_default().push(tray);
        }
        let crops = by_name.into_iter();
        let mut crops: Vec<Crop<'t>> = crops
            .map(|(name, all)| self.crop(name, all, number))
            .collect();
        crops.sort_by_key(Crop::place);
        Newest { number, crops }
    }

    fn crop<'t>(&self, name: &'t str, all: Vec<&'t Tray>, number: i64) -> Crop<'t> {
        let back = |steps: std::ops::RangeInclusive<i64>| -> Vec<&Tray> {
            let trays = all.iter().copied();
            trays
                .filter(|tray| steps.contains(&(number - self.number(tray.created))))
                .collect()
        };
        let (newest, before) = (back(0..=0), back(1..=4));
        let (verdict, change) = verdict(&values(&newest, USABLE), &values(&before, USABLE));
        let target = self.target(name);
        let limits = target.unwrap_or_default();
        let missed = [
            ("usable", limits.usable, USABLE),
            ("germination", limits.germination, GERMINATION),
            ("CV", limits.variation, VARIATION),
        ];
        let missed = missed.into_iter().filter_map(|(field, limit, pick)| {
            let (middle, limit) = median(&values(&newest, pick)).zip(limit)?;
            let misses = is_missed(field, middle, limit);
            misses.then_some((field, middle, limit))
        });
        let steps = all.iter().map(|tray| self.number(tray.created));
        let mut crop = Crop {
            name,
            last: steps.max().unwrap(),
            verdict,
            change,
            target,
            missed: missed.collect(),
            attention: Vec::new(),
            all,
            newest,
            before,
        };
        let attention = crop.newest.iter().filter_map(|tray| {
            let reasons = crop.reasons(tray);
            (!reasons.is_empty()).then(|| (*tray, reasons, crop.shortfall(tray)))
        });
        crop.attention = attention.collect();
        // The lowest first, then the newest.
        crop.attention
            .sort_by_key(|(tray, _, below)| (-below, Reverse((tray.created, tray.id.clone()))));
        crop
    }
}

fn is_missed(field: &str, value: i128, limit: i128) -> bool {
    if field == "CV" {
        value > limit
    } else {
        value < limit
    }
}

/// Returns the verdict on a crop with these usable rates in the newest step and in the four before, and the
/// difference of their medians.
pub(crate) fn verdict(newest: &[i128], before: &[i128]) -> (&'static str, Option<i128>) {
    if newest.len() < 3 || before.len() < 3 {
        return ("too_few", None);
    }
    let change = median(newest).unwrap() - median(before).unwrap();
    // change >= 3 * 1.4826 * deviation * 1.2533 / sqrt(n), squared and without fractions. Both sides are divided
    // by the same number first, so that the squares are not too large.
    let spread = deviation(before).unwrap();
    let common = common_divisor(change.abs(), spread).max(1);
    let left = change / common * 10_000 * 10_000;
    let right = spread / common * 3 * 14_826 * 12_533;
    let is_clear = left * left * newest.len() as i128 >= right * right;
    let name = match change {
        _ if change.abs() < 2 * POINT || !is_clear => "usual",
        ..0 => "down",
        _ => "up",
    };
    (name, Some(change))
}

fn common_divisor(one: i128, other: i128) -> i128 {
    if other == 0 {
        one
    } else {
        common_divisor(other, one % other)
    }
}

impl Crop<'_> {
    pub(crate) fn is_present(&self) -> bool {
        !self.newest.is_empty()
    }

    /// Returns whether the crop meets its targets, as JSON names it.
    pub(crate) fn target_state(&self) -> Option<&'static str> {
        let target = self.target.filter(|_| self.is_present())?;
        let limits = [
            (target.usable, USABLE),
            (target.germination, GERMINATION),
            (target.variation, VARIATION),
        ];
        let lacks = |(limit, pick): &(Option<i128>, Pick)| {
            limit.is_some() && values(&self.newest, *pick).is_empty()
        };
        Some(match () {
            () if !self.missed.is_empty() => "missed",
            () if limits.iter().any(lacks) => "no_values",
            () => "met",
        })
    }

    /// Returns the values that a batch of the newest step is compared with: those of the four steps before, or of
    /// the whole range if they are fewer than three.
    fn usual(&self, pick: Pick) -> Vec<i128> {
        let before = values(&self.before, pick);
        if before.len() < 3 {
            values(&self.all, pick)
        } else {
            before
        }
    }

    /// Returns the reasons why a batch of the newest step needs attention, as the page words them, the most serious
    /// first.
    fn reasons(&self, tray: &Tray) -> Vec<String> {
        let mut reasons = Vec::new();
        let percent = |units: i128| format!("{} %", rounded(units));
        let (usable, germination) = (self.usual(USABLE), self.usual(GERMINATION));
        // A failure.
        if tray.germination.is_some_and(|rate| rate <= 0) {
            reasons.push("nothing germinated".to_owned());
        }
        if tray.usable.is_some_and(|rate| rate <= 0) {
            reasons.push("no usable seedlings".to_owned());
        }
        let half = |rate: Option<i128>, usual: &[i128]| {
            let (rate, middle) = rate.zip(median(usual))?;
            (rate > 0 && 2 * rate < middle).then_some(percent(middle))
        };
        let usable_half = half(tray.usable, &usable);
        reasons
            .extend(usable_half.map(|usual| format!("less than half of its crop's usual {usual}")));
        let germination_half = half(tray.germination, &germination);
        reasons.extend(
            germination_half
                .map(|usual| format!("germination less than half of the usual {usual}")),
        );
        // A target.
        let target = self.target.unwrap_or_default();
        let limits = [
            ("usable", target.usable, tray.usable),
            ("germination", target.germination, tray.germination),
            ("CV", target.variation, tray.variation),
        ];
        for (field, limit, value) in limits {
            let Some((value, limit)) = value.zip(limit) else {
                continue;
            };
            let (own, limit_text) = (distinct(value, limit), shortest(limit));
            if is_missed(field, value, limit) {
                reasons.push(match field {
                    "usable" => format!("below target of {limit_text} %"),
                    "CV" => format!("CV {own} %, above target of {limit_text} %"),
                    _ => format!("germination {own} %, below target of {limit_text} %"),
                });
            }
        }
        // Unusually low.
        let spread = median(&usable).zip(deviation(&usable));
        if let Some((rate, (middle, spread))) = tray.usable.zip(spread) {
            let below = middle - rate;
            if below > 3 * spread && below >= POINT {
                reasons.push(format!("unusually low, its crop has {}", percent(middle)));
            }
        }
        if tray.has_warning {
            let is_empty = tray.usable.is_none() && tray.germination.is_none();
            let more = if is_empty { ", no measurements" } else { "" };
            reasons.push(format!("warning{more}"));
        }
        reasons
    }

    /// Returns how far the usable rate is below the target or the usual rate of the crop, whichever is more.
    fn shortfall(&self, tray: &Tray) -> i128 {
        let target = self.target.and_then(|target| target.usable);
        let levels = [target, median(&self.usual(USABLE))];
        let below = |rate: i128| levels.into_iter().flatten().map(|level| level - rate).max();
        tray.usable.and_then(below).unwrap_or(0)
    }

    /// Returns its place in the table: down, below a target, judged, not judged, without batches. Among those, the
    /// largest loss is first, or the last step that has batches, then the most batches.
    fn place(&self) -> (u8, i128, usize, String) {
        let rank = match self.verdict {
            _ if !self.is_present() => 4,
            "down" => 0,
            _ if !self.missed.is_empty() => 1,
            "too_few" => 3,
            _ => 2,
        };
        let distances = self
            .missed
            .iter()
            .map(|(_, value, limit)| (value - limit).abs());
        let loss = match rank {
            1 => -distances.max().unwrap(),
            4 => -i128::from(self.last),
            _ => self.change.unwrap_or(0),
        };
        (
            rank,
            loss,
            usize::MAX - self.newest.len(),
            self.name.to_owned(),
        )
    }
}

/// Formats a number with two digits, or with all if it would look like `other`.
pub(crate) fn distinct(units: i128, other: i128) -> String {
    let text = rounded(units);
    if text == rounded(other) && units != other {
        shortest(units)
    } else {
        text
    }
}
