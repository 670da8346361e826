//! The batches of each crop, step by step: days, weeks or months.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Bound;

use crate::analysis::statistics::{Figures, Measurements, Period, Step};
use crate::analysis::targets::Targets;
use crate::text::nearest;

/// The number of steps before a step to compare it with. The texts of the page say "four".
const TRAILING: usize = 4;

/// The maximum number of groups of crop and step, to limit memory.
const MAX_GROUPS: usize = 200_000;
/// Groups of crop and step to collect before old steps are merged.
const MIN_GROUPS: usize = 200;

/// The batches of all crops, received in any order.
///
/// Times are those of the clock on the wall in the user's time zone, in seconds since 1970.
pub(crate) struct History {
    pub(crate) step: Step,
    /// Later batches are in the future: a wrong clock must not decide which step is the newest.
    pub(crate) now: i64,
    /// When the newest batch was created that is not in the future.
    newest: Option<i64>,
    /// By name, which is empty for batches without a crop.
    pub(crate) crops: BTreeMap<String, CropHistory>,
    /// The number of crops, and of groups of crop and step.
    pub(crate) groups: usize,
    /// Which steps to keep; `None` to keep all.
    recent: Option<RecentSteps>,
}

/// The steps that may be the newest, or be compared with it. All other batches are counted as if they had no date.
struct RecentSteps {
    /// The first such steps, for batches up to now and for those in the future.
    first: [Option<Period>; 2],
    /// The number of groups of crop and step at which old steps are merged.
    max_groups: usize,
    /// The number of batches in the future that are counted as if they had no date.
    future: u64,
}

/// The batches of one crop.
#[derive(Default)]
pub(crate) struct CropHistory {
    /// Boxed, because a map has room for eleven values even if there is one.
    pub(crate) steps: BTreeMap<Period, Box<Figures>>,
    /// Batches without a valid date, which belong to no step. `None` if there are none.
    undated: Option<Box<Figures>>,
    /// The number of crops that arrived before.
    pub(crate) place: usize,
    /// All of them, once someone asked for it; unset if they are in one step.
    total: OnceCell<Box<Figures>>,
}

impl History {
    pub(crate) fn new(step: Step, now: i64) -> Self {
        Self {
            step,
            now,
            newest: None,
            crops: BTreeMap::new(),
            groups: 0,
            recent: None,
        }
    }

    /// Keeps only what judging the newest step needs. Memory does not depend on the number of steps.
    pub(crate) fn recent(step: Step, now: i64) -> Self {
        Self {
            recent: Some(RecentSteps {
                first: [None; 2],
                max_groups: MIN_GROUPS,
                future: 0,
            }),
            ..Self::new(step, now)
        }
    }

    /// Adds a batch of `crop`, created at `created`. Returns the place of the crop, or `None` if there are too many
    /// groups.
    #[must_use]
    pub(crate) fn add(
        &mut self,
        crop: &str,
        created: Option<i64>,
        batch: &Measurements,
    ) -> Option<usize> {
        let created = created.filter(|created| self.is_recent(*created));
        let place = self.crops.len();
        let history = if let Some(history) = self.crops.get_mut(crop) {
            history
        } else {
            self.groups += 1;
            let history = self.crops.entry(crop.to_owned()).or_default();
            history.place = place;
            history
        };
        self.newest = self
            .newest
            .max(created.filter(|second| *second <= self.now));
        let period = created.map(|second| self.step.period(second));
        let figures = match period {
            Some(period) => history.steps.entry(period).or_insert_with(|| {
                self.groups += 1;
                Box::default()
            }),
            None => history.undated.get_or_insert_default(),
        };
        figures.take(batch);
        let place = history.place;
        if let Some(recent) = &self.recent
            && self.groups > recent.max_groups
        {
            self.merge_old();
        }
        (self.groups <= MAX_GROUPS).then_some(place)
    }

    /// Returns whether the step of a batch is kept.
    fn is_recent(&mut self, created: i64) -> bool {
        let Some(recent) = &mut self.recent else {
            return true;
        };
        let (step, now) = (self.step.period(created), self.now);
        if created > now && step.first() <= now {
            // The running step, which a batch in the future does not make the newest.
            return true;
        }
        let first = &mut recent.first[usize::from(created > now)];
        let is_recent = first.is_none_or(|first| first <= step);
        if is_recent {
            let before = before(step).last().unwrap_or(step);
            *first = (*first).max(Some(before));
        } else {
            recent.future += u64::from(created > now);
        }
        is_recent
    }

    /// Merges steps that can no longer be compared with the newest.
    fn merge_old(&mut self) {
        let Some(recent) = &mut self.recent else {
            return;
        };
        let (now, [begun, future]) = (self.now, recent.first);
        let is_old = |step: &Period| {
            let first = if step.first() > now { future } else { begun };
            first.is_some_and(|first| *step < first)
        };
        self.groups = self.crops.len();
        for crop in self.crops.values_mut() {
            let old: Vec<Period> = crop.steps.keys().copied().filter(is_old).collect();
            for step in old {
                let batches = crop.remove_step(step);
                recent.future += if step.first() > now { batches } else { 0 };
            }
            self.groups += crop.steps.len();
        }
        recent.max_groups = MIN_GROUPS.max(2 * self.groups);
    }

    /// Merges old steps above this number of groups of crop and step.
    #[cfg(test)]
    pub(crate) fn merge_above(&mut self, max_groups: usize) {
        if let Some(recent) = &mut self.recent {
            recent.max_groups = max_groups;
        }
    }

    /// Returns the number of batches after `newest`, the newest step.
    pub(super) fn later(&self, newest: Period) -> u64 {
        let later = (Bound::Excluded(newest), Bound::Unbounded);
        let crops = self.crops.values();
        let kept = crops.flat_map(|crop| crop.steps.range(later).map(|(_, step)| step.batches));
        // If all batches are in the future, those that were merged are before the newest.
        let merged = self.recent.as_ref().filter(|_| self.newest.is_some());
        kept.sum::<u64>() + merged.map_or(0, |recent| recent.future)
    }

    /// Returns the step of the newest batch that is not in the future, or the newest step if all are.
    pub(crate) fn newest(&self) -> Option<Period> {
        let steps = self.crops.values().flat_map(|crop| crop.steps.keys());
        let newest = self.newest.map(|second| self.step.period(second));
        newest.or_else(|| steps.max().copied())
    }

    /// Returns the oldest step with batches.
    pub(crate) fn oldest(&self) -> Option<Period> {
        let first = |crop: &CropHistory| crop.steps.keys().next().copied();
        self.crops.values().filter_map(first).min()
    }

    /// Returns the last steps up to `newest`, oldest first: at most `most`, at least two.
    pub(crate) fn last_steps(&self, newest: Period, most: usize) -> Vec<Period> {
        let first = self.oldest().unwrap_or(newest);
        let mut steps = vec![newest];
        while steps.len() < most {
            let before = steps[steps.len() - 1].previous();
            if before < first && steps.len() >= 2 {
                break;
            }
            steps.push(before);
        }
        steps.reverse();
        steps
    }

    /// Returns the figures of all batches.
    pub(crate) fn total(&self) -> Figures {
        merged(self.crops.values().map(CropHistory::total))
    }

    /// Returns the crops of `targets` that no batch has, each with the similar crop that is probably meant.
    pub(crate) fn crops_meant<'a>(&'a self, targets: &'a Targets) -> Vec<(&'a str, &'a str)> {
        let known = || {
            let names = self.crops.keys().map(String::as_str);
            names.filter(|name| !name.is_empty())
        };
        let is_known =
            |crop: &str| known().any(|known| known.to_lowercase() == crop.to_lowercase());
        let without: Vec<(String, &str)> = known()
            .filter(|crop| targets.of(Some(crop)).is_none())
            .map(|crop| (crop.to_lowercase(), crop))
            .collect();
        let unknown = targets.crops().filter(|crop| !is_known(crop));
        let similar = unknown.filter_map(|crop| {
            let names = without.iter().map(|(lower, _)| lower.as_str());
            let lower = nearest(&crop.to_lowercase(), names)?.to_owned();
            let found = without.iter().find(|(name, _)| *name == lower)?;
            Some((crop, found.1))
        });
        similar.collect()
    }
}

impl CropHistory {
    /// Returns the figures of the four steps before `period`.
    pub(crate) fn before(&self, period: Period) -> Figures {
        let figures = before(period).filter_map(|step| self.steps.get(&step));
        merged(figures.map(Box::as_ref))
    }

    /// Returns the figures of all batches. None may be added afterwards.
    pub(crate) fn total(&self) -> &Figures {
        let all = || self.steps.values().chain(&self.undated).map(Box::as_ref);
        let mut first = all();
        match (first.next(), first.next()) {
            (Some(only), None) => only,
            _ => self.total.get_or_init(|| Box::new(merged(all()))),
        }
    }

    /// Moves a step to the batches that belong to no step; returns how many.
    pub(crate) fn remove_step(&mut self, period: Period) -> u64 {
        let Some(figures) = self.steps.remove(&period) else {
            return 0;
        };
        let batches = figures.batches;
        match &mut self.undated {
            Some(undated) => undated.merge(&figures),
            None => self.undated = Some(figures),
        }
        batches
    }

    /// Returns the last step up to `period`: a date in the future does not show when a crop was last seen.
    pub(crate) fn last_until(&self, period: Period) -> Option<(Period, &Figures)> {
        let last = self.steps.range(..=period).next_back();
        last.map(|(period, figures)| (*period, figures.as_ref()))
    }
}

/// Returns the four steps before `period`, the nearest first.
pub(super) fn before(period: Period) -> impl Iterator<Item = Period> {
    std::iter::successors(Some(period.previous()), |step| Some(step.previous())).take(TRAILING)
}

/// Merges figures of different batches.
fn merged<'a>(parts: impl Iterator<Item = &'a Figures>) -> Figures {
    let mut all = Figures::default();
    for part in parts {
        all.merge(part);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK: i64 = 7 * 86_400;

    /// Returns the history of one batch in each of these weeks, counted from 1970.
    fn history(weeks: &[i64], now: i64) -> History {
        let mut history = History::new(Step::Week, now * WEEK);
        let batch = Measurements::read(|_| None);
        for week in weeks {
            let place = history.add("Tomato", Some(week * WEEK), &batch);
            assert_eq!(place, Some(0));
        }
        history
    }

    #[test]
    fn the_last_steps_have_no_gap_and_are_at_least_two() {
        for (weeks, most, count) in [
            (&[100][..], 12, 2),
            (&[99, 100], 12, 2),
            (&[95, 100], 12, 6),
            (&[10, 100], 12, 12),
            (&[0, 100], 53, 53),
        ] {
            let history = history(weeks, 200);
            let newest = history.newest().expect("a step");
            let steps = history.last_steps(newest, most);
            assert_eq!(steps.len(), count, "{weeks:?}");
            assert_eq!(steps.last(), Some(&newest));
            assert!(steps.windows(2).all(|pair| pair[0].next() == pair[1]));
        }
    }

    #[test]
    fn a_date_in_the_future_is_not_the_newest_step() {
        let newest = |weeks: &[i64]| history(weeks, 100).newest();
        let week = |week: i64| Some(Step::Week.period(week * WEEK));
        assert_eq!(newest(&[90, 100, 101]), week(100));
        assert_eq!(newest(&[90, 101]), week(90));
        assert_eq!(newest(&[102, 103]), week(103), "all are in the future");
        assert_eq!(newest(&[]), None);
    }

    #[test]
    fn a_date_later_in_the_same_step_is_in_the_future_too() {
        let mut history = history(&[99], 100);
        let batch = Measurements::read(|_| None);
        let mut add = |second| {
            let place = history.add("Tomato", Some(second), &batch);
            assert_eq!(place, Some(0));
            history.newest()
        };
        let week = |week: i64| Some(Step::Week.period(week * WEEK));
        assert_eq!(add(100 * WEEK + 1), week(99));
        assert_eq!(add(100 * WEEK), week(100));
    }

    #[test]
    fn the_total_has_all_batches_with_or_without_a_date() {
        let batch = Measurements::read(|_| None);
        for (weeks, undated, removed) in [
            (&[99][..], 0, false),
            (&[99], 0, true),
            (&[99], 2, false),
            (&[98, 99, 99], 0, true),
            (&[98, 99], 3, true),
            (&[], 1, false),
        ] {
            let mut history = history(weeks, 200);
            for _ in 0..undated {
                assert_eq!(history.add("Tomato", None, &batch), Some(0));
            }
            let crop = history.crops.get_mut("Tomato").expect("a crop");
            if removed {
                crop.remove_step(Step::Week.period(99 * WEEK));
            }
            let batches = weeks.len() as u64 + undated;
            assert_eq!(crop.total().batches, batches, "{weeks:?}");
        }
    }

    #[test]
    fn only_the_four_steps_before_are_compared() {
        let history = history(&[93, 94, 95, 96, 98, 99], 200);
        let crop = &history.crops["Tomato"];
        let before = |week: i64| crop.before(Step::Week.period(week * WEEK)).batches;
        assert_eq!((before(99), before(98), before(94)), (3, 3, 1));
    }
}
