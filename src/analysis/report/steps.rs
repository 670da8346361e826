//! The days, weeks or months of the report: which are shown, which are compared, and their names.

use super::gather::{CropData, ReportData};
use crate::analysis::statistics::{Period, Step};

/// The number of previous steps to compare with. The page's texts say "four".
pub(super) const TRAILING: usize = 4;

/// The name of a step.
pub(super) struct StepWords {
    pub(super) one: &'static str,
    pub(super) many: &'static str,
}

impl ReportData {
    /// Returns the name of the report's step.
    pub(super) fn step_words(&self) -> StepWords {
        match self.step {
            Step::Day => StepWords {
                one: "day",
                many: "days",
            },
            Step::Week => StepWords {
                one: "week",
                many: "weeks",
            },
            Step::Month => StepWords {
                one: "month",
                many: "months",
            },
        }
    }

    /// Returns the newest step with batches that has started. Dates in the future, from a wrong clock, must
    /// not decide what the page is about.
    pub(super) fn last_step(&self) -> Option<Period> {
        let last = |crop: &CropData| {
            let mut begun = crop.steps.keys().rev();
            begun.find(|step| step.first() <= self.span.made).copied()
        };
        self.crops.values().filter_map(last).max()
    }

    /// Returns the oldest step with batches.
    pub(super) fn first_step(&self) -> Option<Period> {
        let first = |crop: &CropData| crop.steps.keys().next().copied();
        self.crops.values().filter_map(first).min()
    }

    /// Returns the steps before `period` to compare it with, nearest first: those that are entirely in the
    /// range. They may have no batches.
    pub(super) fn before(&self, period: Period) -> Vec<Period> {
        let first = self.first_step().filter(|_| !self.span.has_start());
        let is_known =
            |step: &Period| self.span.has(*step) && first.is_none_or(|first| *step >= first);
        std::iter::successors(Some(period.previous()), |step| Some(step.previous()))
            .take(TRAILING)
            .filter(is_known)
            .collect()
    }

    /// Returns the last steps up to `newest`, oldest first: at most `most`, at least two.
    pub(super) fn last_steps(&self, newest: Period, most: usize) -> Vec<Period> {
        let first = self.first_step().unwrap_or(newest);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::report::ReportSpan;
    use crate::analysis::statistics::Step;
    use crate::batch::range::Range;

    /// Returns the data of one batch in each of these weeks, counted from 1970.
    fn data(weeks: &[i64]) -> ReportData {
        let all = Range::default();
        let mut data = ReportData::new(Step::Week, ReportSpan::new(&all, &all, i64::MAX));
        let crop = data.crops.entry(Some("Tomato".to_owned())).or_default();
        for week in weeks {
            let period = Step::Week.period(week * 7 * 86_400);
            crop.steps.entry(period).or_default().batches = 1;
        }
        data
    }

    #[test]
    fn charts_show_the_last_steps_without_a_gap_and_at_least_two() {
        for (weeks, most, count) in [
            (&[100][..], 12, 2),
            (&[99, 100], 12, 2),
            (&[95, 100], 12, 6),
            (&[10, 100], 12, 12),
            (&[0, 100], 53, 53),
        ] {
            let data = data(weeks);
            let newest = data.last_step().expect("a step");
            let steps = data.last_steps(newest, most);
            assert_eq!(steps.len(), count, "{weeks:?}");
            assert_eq!(steps.last(), Some(&newest));
            assert!(steps.windows(2).all(|pair| pair[0].next() == pair[1]));
        }
    }
}
