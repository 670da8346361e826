//! The newest step, crop by crop: which are down, which miss a target, which need attention.

use std::cmp::Reverse;
use std::collections::HashMap;

use rust_decimal::Decimal;
use serde::Serialize;

use super::history::{CropHistory, History, before};
use super::limits::Limits;
use super::verdict::{CropComparison, Verdict};
use crate::analysis::statistics::{Figures, Metric, Period};
use crate::analysis::{Target, Targets};
use crate::text::count;

/// The newest step of all crops.
pub(crate) struct NewestStep<'a> {
    pub(crate) period: Period,
    /// The worst first; those without a batch in the step last.
    pub(crate) crops: Vec<CropJudgement<'a>>,
    /// The place of each crop in `crops`, by name.
    by_name: HashMap<&'a str, usize>,
    /// The number of batches of later steps. They are in the future.
    later: u64,
}

/// One crop in the newest step.
pub(crate) struct CropJudgement<'a> {
    /// Empty for batches without a crop.
    pub(crate) name: &'a str,
    pub(crate) history: &'a CropHistory,
    /// The figures of the newest step. `None` if it has no batch of this crop.
    pub(crate) newest: Option<&'a Figures>,
    /// The last step that has batches, up to the newest.
    pub(crate) last: Option<(Period, &'a Figures)>,
    /// The figures of the four steps before.
    pub(crate) before: Figures,
    pub(crate) comparison: CropComparison,
    pub(crate) target: Option<&'a Target>,
    pub(crate) missed: Vec<MissedTarget>,
    /// Whether a batch of the step needs attention.
    pub(crate) has_attention: bool,
    /// Whether a batch of the step failed.
    pub(crate) has_failure: bool,
}

/// A target that the median of the newest step misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MissedTarget {
    /// The name of the field for people.
    pub(crate) field: &'static str,
    pub(crate) median: Decimal,
    pub(crate) target: Decimal,
}

/// Whether the newest step of a crop meets its targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TargetState {
    Met,
    Missed,
    /// A target is set, but the step has no values for it.
    NoValues,
}

impl History {
    /// Judges the newest step of each crop. `None` if no batch has a date.
    pub(crate) fn judge<'a>(&'a self, targets: &'a Targets) -> Option<NewestStep<'a>> {
        let period = self.newest()?;
        let crops = self.crops.iter();
        let mut crops: Vec<CropJudgement<'a>> = crops
            .map(|(name, crop)| CropJudgement::new(name, crop, period, targets))
            .collect();
        crops.sort_by_cached_key(CropJudgement::order);
        let names = crops.iter().enumerate();
        let by_name = names.map(|(place, crop)| (crop.name, place)).collect();
        Some(NewestStep {
            period,
            crops,
            by_name,
            later: self.later(period),
        })
    }
}

impl<'a> NewestStep<'a> {
    /// Returns the crops with a batch in the step.
    pub(crate) fn present(&self) -> impl Iterator<Item = &CropJudgement<'a>> {
        self.crops.iter().filter(|crop| crop.newest.is_some())
    }

    /// Says how many of the four steps before are after `start`, if not all. `steps` is their name, such as `weeks`.
    pub(crate) fn cut(&self, start: Option<i64>, steps: &str) -> Option<String> {
        let start = start?;
        let whole = before(self.period).filter(|step| step.first() >= start);
        let mut partly = before(self.period).filter(|step| step.first() < start);
        let is_partly = partly.any(|step| step.next().first() > start);
        let words = match (whole.count(), is_partly) {
            (0, false) => "none is",
            (0, true) => "only a part of one is",
            (1, false) => "only one is",
            (1, true) => "only one and a part of another are",
            (2, false) => "only two are",
            (2, true) => "only two and a part of another are",
            (3, false) => "only three are",
            (3, true) => "only three and a part of the first are",
            _ => return None,
        };
        Some(format!(
            "Of the previous four {steps}, {words} in this range."
        ))
    }

    /// Says how many batches are not judged because they are in the future.
    pub(crate) fn later(&self, steps: &str) -> Option<String> {
        let batches = count(self.later, "batch is", "batches are");
        (self.later > 0)
            .then(|| format!("{batches} dated in later {steps}, in the future, and not judged."))
    }

    pub(crate) fn crop(&self, name: &str) -> Option<&CropJudgement<'a>> {
        self.crops.get(*self.by_name.get(name)?)
    }
}

impl<'a> CropJudgement<'a> {
    fn new(name: &'a str, crop: &'a CropHistory, period: Period, targets: &'a Targets) -> Self {
        let newest = crop.steps.get(&period).map(Box::as_ref);
        let before = crop.before(period);
        let target = targets.of(Some(name).filter(|name| !name.is_empty()));
        let none = Figures::default();
        let rates = |figures: &'_ Figures| figures.usable_rate.distribution.clone();
        let limits = Limits::new(crop, period, target);
        let reasons = newest.map_or_else(Vec::new, |newest| limits.all_reasons(newest));
        Self {
            comparison: CropComparison::of(&rates(newest.unwrap_or(&none)), &rates(&before)),
            missed: target
                .zip(newest)
                .map_or_else(Vec::new, |(target, newest)| missed(target, newest)),
            has_attention: !reasons.is_empty(),
            has_failure: reasons.first().is_some_and(|reason| reason.is_failure()),
            name,
            history: crop,
            newest,
            last: crop.last_until(period),
            before,
            target,
        }
    }

    /// Returns whether its targets are met. `None` if it has none, or no batches in the step.
    pub(crate) fn target_state(&self) -> Option<TargetState> {
        let (target, newest) = self.target.zip(self.newest)?;
        let values = target.with_medians(newest);
        let mut set = values.into_iter().filter(|(_, target, _)| target.is_some());
        set.clone().next()?;
        Some(if !self.missed.is_empty() {
            TargetState::Missed
        } else if set.all(|(_, _, median)| median.is_some()) {
            TargetState::Met
        } else {
            TargetState::NoValues
        })
    }

    pub(crate) fn is_down(&self) -> bool {
        self.comparison.verdict == Verdict::Down
    }

    /// The sort key: down, below target, with failures, judged, not judged, absent; then the largest loss first.
    fn order(&self) -> (u8, Decimal, Reverse<u64>, &'a str) {
        const BELOW_TARGET: u8 = 1;
        const ABSENT: u8 = 5;
        let change = self.comparison.change.unwrap_or(Decimal::ZERO);
        let rank = match self.comparison.verdict {
            _ if self.newest.is_none() => ABSENT,
            Verdict::Down => 0,
            _ if !self.missed.is_empty() => BELOW_TARGET,
            _ if self.has_failure => 2,
            Verdict::Up | Verdict::Usual => 3,
            Verdict::TooFew => 4,
        };
        let shortfall = self.missed.iter().filter_map(|missed| {
            let distance = missed.median.checked_sub(missed.target)?;
            Some(-distance.abs())
        });
        let loss = match rank {
            BELOW_TARGET => shortfall.min().unwrap_or(change),
            // The most recent first.
            ABSENT => Decimal::from(-self.last.map_or(0, |(last, _)| last.first())),
            _ => change,
        };
        let batches = self.newest.map_or(0, |newest| newest.batches);
        (rank, loss, Reverse(batches), self.name)
    }
}

impl Target {
    /// Returns each limit with its name and the median of `figures` that must keep it.
    pub(crate) fn with_medians(
        &self,
        figures: &Figures,
    ) -> [(&'static str, Option<Decimal>, Option<Decimal>); 3] {
        let median = |metric: &Metric| metric.distribution.median();
        let [usable, germination] = [&figures.usable_rate, &figures.germination_rate].map(median);
        let variation = median(&figures.coefficient_of_variation);
        [
            ("usable", self.usable_rate_min, usable),
            ("germination", self.germination_rate_min, germination),
            ("CV", self.coefficient_of_variation_max, variation),
        ]
    }
}

fn missed(target: &Target, figures: &Figures) -> Vec<MissedTarget> {
    let values = target.with_medians(figures).into_iter();
    let missed = values.filter_map(|(field, target, median)| {
        let (target, median) = target.zip(median)?;
        let is_missed = match field {
            "CV" => median > target,
            _ => median < target,
        };
        is_missed.then_some(MissedTarget {
            field,
            median,
            target,
        })
    });
    missed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::statistics::Step;

    const WEEK: i64 = 7 * 86_400;

    /// Adds batches with this usable rate to a crop in a week, counted from 1970.
    fn add(history: &mut History, crop: &str, week: i64, count: u64, rate: i64) {
        let crop = history.crops.entry(crop.to_owned()).or_default();
        let figures = crop
            .steps
            .entry(Step::Week.period(week * WEEK))
            .or_default();
        figures.batches += count;
        for _ in 0..count {
            assert!(figures.usable_rate.distribution.add(Decimal::from(rate)));
        }
    }

    fn targets(crop: &str, least: i64) -> Targets {
        let target = Target {
            usable_rate_min: Some(Decimal::from(least)),
            ..Target::default()
        };
        Targets {
            crops: vec![(crop.to_owned(), target)],
        }
    }

    #[test]
    fn the_worst_crop_is_first_and_absent_ones_are_last() {
        let mut history = History::new(Step::Week, 200 * WEEK);
        for (crop, before, newest) in [
            ("a usual", 80, 81),
            ("b down", 80, 70),
            ("c far down", 80, 60),
            ("d low", 70, 70),
            ("e up", 80, 90),
        ] {
            add(&mut history, crop, 99, 5, before);
            add(&mut history, crop, 100, 5, newest);
        }
        add(&mut history, "f new", 100, 5, 80);
        add(&mut history, "g gone", 99, 5, 80);
        add(&mut history, "h long gone", 50, 5, 80);
        let targets = targets("D LOW", 75);
        let newest = history.judge(&targets).expect("a step");
        let crops = newest.crops.iter();
        let crops: Vec<(&str, &str)> = crops
            .map(|crop| (crop.name, crop.comparison.verdict.name()))
            .collect();
        let expected = [
            ("c far down", "down"),
            ("b down", "down"),
            ("d low", "usual"),
            ("a usual", "usual"),
            ("e up", "up"),
            ("f new", "too_few"),
            ("g gone", "too_few"),
            ("h long gone", "too_few"),
        ];
        assert_eq!(crops, expected);
        assert_eq!(newest.present().count(), 6);
        let state = |name: &str| newest.crop(name).and_then(CropJudgement::target_state);
        assert_eq!(state("d low"), Some(TargetState::Missed));
        assert_eq!((state("b down"), state("unknown")), (None, None));
    }

    #[test]
    fn a_target_is_judged_on_the_newest_step() {
        for (before, newest, rate, expected) in [
            (90, 5, 75, TargetState::Met),
            (90, 5, 74, TargetState::Missed),
            (10, 1, 80, TargetState::Met),
            (90, 0, 0, TargetState::NoValues),
        ] {
            let mut history = History::new(Step::Week, 200 * WEEK);
            add(&mut history, "Leek", 99, 5, before);
            add(&mut history, "Leek", 100, newest, rate);
            let targets = targets("Leek", 75);
            let judged = history.judge(&targets).expect("a step");
            assert_eq!(judged.crops[0].target_state(), Some(expected), "{rate}");
        }
    }
}
