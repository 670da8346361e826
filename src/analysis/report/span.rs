//! The time span of the report: which steps are entirely in it, and how much of the others.
//!
//! Only complete steps are compared: how many batches an incomplete one had is unknown. Without a start
//! date, everything was requested, so the step of the first batch is complete, and earlier steps have no
//! batches to compare with.

use crate::analysis::statistics::{Period, Step};
use crate::batch::range::Range;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// The span for which all batches are known, in seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportSpan {
    start: Option<i64>,
    /// The first second after the span.
    past: i64,
    /// When the report is generated. Later dates are in the future.
    pub(super) made: i64,
}

impl ReportSpan {
    /// `archived` is the range that the archive covers.
    pub(crate) fn new(range: &Range, archived: &Range, made: i64) -> Self {
        let past = |range: &Range| {
            let end = range.end?;
            Some(end + i64::from(!range.excludes_end))
        };
        let ends = [past(range), past(archived), Some(made)];
        Self {
            start: range.start.max(archived.start),
            past: ends.into_iter().flatten().min().unwrap_or(made),
            made,
        }
    }

    /// Returns whether a start date was requested.
    pub(super) fn has_start(&self) -> bool {
        self.start.is_some()
    }

    /// Returns whether `period` is entirely in the span.
    pub(super) fn has(&self, period: Period) -> bool {
        self.within(period) == (period.first(), period.next().first())
    }

    /// Returns whether `period` is at least partly in the span.
    pub(super) fn touches(&self, period: Period) -> bool {
        let (from, past) = self.within(period);
        from < past
    }

    pub(super) fn is_running(&self, period: Period) -> bool {
        period.next().first() > self.made
    }

    /// Returns how much of `period` is in the span, such as `3 of 7 days`. `None` if all of it is.
    pub(super) fn share(&self, period: Period) -> Option<String> {
        if self.has(period) {
            return None;
        }
        let (unit, name) = match period.step() {
            Step::Day => (HOUR, "hours"),
            Step::Week | Step::Month => (DAY, "days"),
        };
        let (from, past) = self.within(period);
        // A day counts even if only its first hour is in the span.
        let units = |from: i64, past: i64| (past - 1).div_euclid(unit) - from.div_euclid(unit) + 1;
        let (share, all) = (
            if from < past { units(from, past) } else { 0 },
            units(period.first(), period.next().first()),
        );
        Some(if share == all {
            format!("not quite {all} {name}")
        } else {
            format!("{share} of {all} {name}")
        })
    }

    /// Returns the part of `period` in the span: its first second, and the first second after it.
    fn within(&self, period: Period) -> (i64, i64) {
        let first = period.first();
        let from = self.start.map_or(first, |start| start.max(first));
        (from, period.next().first().min(self.past))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Timestamp;

    fn second(text: &str) -> i64 {
        Timestamp::parse(text).expect(text).second
    }

    #[test]
    fn a_step_is_complete_or_shown_in_parts() {
        let all = Range::default();
        // Wednesday at noon.
        let made = second("2026-06-10T12:00:00Z");
        let from = |date: &str| Range {
            start: Some(second(date)),
            ..all
        };
        let to = |date: &str, excludes_end| Range {
            end: Some(second(date)),
            excludes_end,
            ..all
        };
        let running = second("2026-06-09T00:00:00Z");
        let over = second("2026-06-03T00:00:00Z");
        for (range, archived, step, at, share) in [
            (all, all, Step::Week, running, Some("3 of 7 days")),
            (all, all, Step::Day, made, Some("12 of 24 hours")),
            (all, all, Step::Month, running, Some("10 of 30 days")),
            (all, all, Step::Week, over, None),
            (from("2026-06-01T00:00:00Z"), all, Step::Week, over, None),
            (
                from("2026-06-01T00:00:01Z"),
                all,
                Step::Week,
                over,
                Some("not quite 7 days"),
            ),
            (
                from("2026-06-05T09:00:00Z"),
                all,
                Step::Week,
                over,
                Some("3 of 7 days"),
            ),
            (
                to("2026-06-04T00:00:00Z", true),
                all,
                Step::Week,
                over,
                Some("3 of 7 days"),
            ),
            (
                to("2026-06-04T00:00:00Z", false),
                all,
                Step::Week,
                over,
                Some("4 of 7 days"),
            ),
            (
                to("2026-06-08T00:00:00Z", true),
                all,
                Step::Week,
                over,
                None,
            ),
            (
                all,
                to("2026-06-05T12:00:00Z", false),
                Step::Week,
                over,
                Some("5 of 7 days"),
            ),
            (
                all,
                from("2026-06-08T00:00:00Z"),
                Step::Week,
                over,
                Some("0 of 7 days"),
            ),
        ] {
            let span = ReportSpan::new(&range, &archived, made);
            let period = step.period(at);
            assert_eq!(
                span.share(period).as_deref(),
                share,
                "{range:?} {archived:?}"
            );
            assert_eq!(span.has(period), share.is_none());
            assert_eq!(span.touches(period), share != Some("0 of 7 days"));
        }
        let span = ReportSpan::new(&all, &all, made);
        assert!(span.is_running(Step::Week.period(running)));
        assert!(!span.is_running(Step::Week.period(over)));
    }
}
