//! The verdict on each crop, and the reasons why a batch needs attention: recomputed with integers from the
//! text of the rules, for the tests of `summary` and `report`.

// Batches to judge.
mod field;

// As `summary -f json` writes them.
mod json;

// Exact numbers.
mod numbers;

// Why a batch needs attention.
mod reasons;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Datelike as _};
use serde_json::Value;

use crate::fake::live::DAY;
use crate::fake::second;

use numbers::common_divisor;

pub(crate) use field::{Field, Random};
pub(crate) use json::{assert_verdicts, fields};
pub(crate) use numbers::{
    POINT, deviation, distinct, in_prose, median, quartile, rounded, rounded_ratio, shortest, units,
};
pub(crate) use reasons::Flagged;

/// A batch as the rules see it.
#[derive(Clone, Debug)]
pub(crate) struct Tray {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Empty if it has none.
    pub(crate) crop: String,
    pub(crate) created: i64,
    pub(crate) usable: Option<i128>,
    pub(crate) germination: Option<i128>,
    pub(crate) variation: Option<i128>,
    pub(crate) size: Option<i128>,
    pub(crate) has_warning: bool,
}

impl Tray {
    /// Reads a batch as the service sends it or `export` writes it.
    pub(crate) fn of(batch: &Value) -> Self {
        let text = |key: &str| batch[key].as_str().unwrap_or_default().to_owned();
        let value = |key: &str| batch[key].as_str().map(units);
        Self {
            id: text("batch_id"),
            name: text("batch_name"),
            crop: text("crop_type"),
            created: second(&text("batch_creation_date")),
            usable: value("avg_usable_seedling_rate"),
            germination: value("avg_germination_rate"),
            variation: value("avg_coefficient_of_variation"),
            size: value("avg_median_seedling_size_mm2"),
            has_warning: batch["warnings"] == true,
        }
    }
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
    /// Its last batch up to the newest step, or the last one if all are later, and the number of its step.
    pub(crate) last: (i64, &'a Tray),
    /// The batches of the newest step, and those of the four before.
    pub(crate) newest: Vec<&'a Tray>,
    pub(crate) before: Vec<&'a Tray>,
    pub(crate) verdict: &'static str,
    pub(crate) change: Option<i128>,
    pub(crate) target: Option<Target>,
    /// Each target that is missed: its name, the median and the limit.
    pub(crate) missed: Vec<(&'static str, i128, i128)>,
    /// The batches of the newest step that need attention, the lowest first.
    pub(crate) attention: Vec<Flagged<'a>>,
}

pub(crate) type Pick = fn(&Tray) -> Option<i128>;

pub(crate) fn values(trays: &[&Tray], pick: Pick) -> Vec<i128> {
    trays.iter().filter_map(|tray| pick(tray)).collect()
}

pub(crate) const USABLE: Pick = |tray| tray.usable;
pub(crate) const GERMINATION: Pick = |tray| tray.germination;
pub(crate) const VARIATION: Pick = |tray| tray.variation;

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
        let created = || trays.iter().map(|tray| tray.created);
        let past = created().filter(|second| *second <= self.now);
        let newest = past.max().or_else(|| created().max()).unwrap();
        let number = self.number(newest);
        let crops = by_name(trays).into_iter();
        let mut crops: Vec<Crop<'t>> = crops
            .map(|(name, all)| self.crop(name, all, number))
            .collect();
        crops.sort_by_key(Crop::place);
        Newest { number, crops }
    }

    /// Returns the batches of steps before `newest` that need attention, judged on their own step, newest first.
    pub(crate) fn older<'t>(&self, trays: &'t [Tray], newest: i64) -> Vec<Flagged<'t>> {
        let mut steps: BTreeSet<(&str, i64)> = BTreeSet::new();
        for tray in trays {
            let number = self.number(tray.created);
            if number < newest {
                steps.insert((&tray.crop, number));
            }
        }
        let by_name = by_name(trays);
        let judged = steps.into_iter().flat_map(|(name, number)| {
            let all = by_name[name].clone();
            self.crop(name, all, number).attention
        });
        let mut older: Vec<Flagged<'t>> = judged.collect();
        older.sort_by_key(|flagged| newest_first(flagged.tray));
        older
    }

    fn crop<'t>(&self, name: &'t str, all: Vec<&'t Tray>, number: i64) -> Crop<'t> {
        let steps = all.iter().map(|tray| (self.number(tray.created), *tray));
        let steps: Vec<(i64, &Tray)> = steps.collect();
        let back = |range: std::ops::RangeInclusive<i64>| -> Vec<&Tray> {
            let inside = steps
                .iter()
                .filter(|(step, _)| range.contains(&(number - step)));
            inside.map(|(_, tray)| *tray).collect()
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
        let last = steps
            .into_iter()
            .max_by_key(|(step, tray)| (*step <= number, tray.created));
        let mut crop = Crop {
            name,
            last: last.unwrap(),
            verdict,
            change,
            target,
            missed: missed.collect(),
            attention: Vec::new(),
            all,
            newest,
            before,
        };
        crop.attention = crop.flagged();
        crop.attention.retain(|flagged| !flagged.reasons.is_empty());
        crop
    }
}

/// Returns the batches of each crop.
fn by_name(trays: &[Tray]) -> BTreeMap<&str, Vec<&Tray>> {
    let mut by_name: BTreeMap<&str, Vec<&Tray>> = BTreeMap::new();
    for tray in trays {
        by_name.entry(&tray.crop).or_default().push(tray);
    }
    by_name
}

fn newest_first(tray: &Tray) -> Reverse<(i64, String)> {
    Reverse((tray.created, tray.id.clone()))
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

impl Crop<'_> {
    pub(crate) fn is_present(&self) -> bool {
        !self.newest.is_empty()
    }

    pub(crate) fn is_down(&self) -> bool {
        self.verdict == "down"
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

    /// Returns whether a batch of the newest step failed.
    pub(crate) fn has_failure(&self) -> bool {
        self.attention.iter().any(|flagged| flagged.has_failed)
    }

    /// Returns whether the change would count if the batches varied less.
    pub(crate) fn is_unclear(&self) -> bool {
        self.verdict == "usual" && self.change.is_some_and(|change| change.abs() >= 2 * POINT)
    }

    /// Returns its place in the table: down, below a target, with failures, judged, not judged, without batches. Among
    /// those, the largest loss is first, or the last step that has batches, then the most batches.
    fn place(&self) -> (u8, i128, usize, String) {
        let rank = match self.verdict {
            _ if !self.is_present() => 5,
            "down" => 0,
            _ if !self.missed.is_empty() => 1,
            _ if self.has_failure() => 2,
            "too_few" => 4,
            _ => 3,
        };
        let distances = self
            .missed
            .iter()
            .map(|(_, value, limit)| (value - limit).abs());
        let loss = match rank {
            1 => -distances.max().unwrap(),
            5 => -i128::from(self.last.0),
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
