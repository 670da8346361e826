//! The time span of the figures: how much of a step is in it. `summary`, `report` and workbooks share it.

use super::statistics::{Period, Step};
use crate::batch::Zone;
use crate::batch::range::Range;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// The span for which all batches are known.
#[derive(Clone, Debug)]
pub(crate) struct KnownSpan {
    pub(crate) zone: Zone,
    /// In seconds since 1970, like the other times.
    start: Option<i64>,
    /// The first second after the span.
    past: i64,
    /// When the batches were requested. Later dates are in the future.
    made: i64,
    /// Whether the range ends later, so that more batches may follow.
    is_open: bool,
}

impl KnownSpan {
    /// `archived` is the range that the archive covers.
    pub(crate) fn new(range: &Range, archived: &Range, made: i64, zone: Zone) -> Self {
        let past = |range: &Range| {
            let end = range.end?;
            Some(end + i64::from(!range.excludes_end))
        };
        let ends = [past(range), past(archived), Some(made)];
        let past = ends.into_iter().flatten().min().unwrap_or(made);
        Self {
            zone,
            start: range.start.max(archived.start),
            past,
            made,
            is_open: range.end.is_none_or(|end| end >= made),
        }
    }

    /// Returns the bounds in seconds since 1970: the start, and the first second after the span unless that is when the
    /// batches were requested.
    pub(crate) fn bounds(&self) -> [Option<i64>; 2] {
        [self.start, Some(self.past).filter(|past| *past < self.made)]
    }

    /// Returns the start of the span, if it has one, by the clock on the wall.
    pub(crate) fn start(&self) -> Option<i64> {
        self.start.map(|start| self.zone.local(start))
    }

    /// Returns when the batches were requested, by the clock on the wall.
    pub(crate) fn made(&self) -> i64 {
        self.zone.local(self.made)
    }

    fn is_running(&self, period: Period) -> bool {
        period.next().first() > self.made()
    }

    /// Returns how much of `period` is in the span, such as `3 of 7 days so far`. `None` if all of it is.
    pub(crate) fn share(&self, period: Period) -> Option<String> {
        let (first, next) = (period.first(), period.next().first());
        let (unit, name) = match period.step() {
            Step::Day => (HOUR, "hours"),
            Step::Week | Step::Month => (DAY, "days"),
        };
        // A day has 23 or 25 hours if the clock changes, so hours are not those on the wall.
        let zone = &self.zone;
        let (first, next) = match unit {
            HOUR => (zone.instant(first), zone.instant(next)),
            _ => (first, next),
        };
        let moment = |instant: i64| match unit {
            HOUR => instant,
            _ => zone.local(instant),
        };
        let from = self.start.map_or(first, |start| moment(start).max(first));
        let past = next.min(moment(self.past));
        if (from, past) == (first, next) {
            return None;
        }
        // A day counts even if only its first hour is in the span.
        let units = |from: i64, past: i64| {
            (past - 1 - first).div_euclid(unit) - (from - first).div_euclid(unit) + 1
        };
        let share = if from < past { units(from, past) } else { 0 };
        let all = units(first, next);
        let so_far = if self.is_open && self.is_running(period) {
            " so far"
        } else {
            ""
        };
        Some(if share == all {
            format!("not quite {all} {name}{so_far}")
        } else {
            format!("{share} of {all} {name}{so_far}")
        })
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
        let in_june = |time: &str| Some(second(&format!("2026-06-{time}Z")));
        let from = |time: &str| Range {
            start: in_june(time),
            ..all
        };
        let to = |time: &str, excludes_end| Range {
            end: in_june(time),
            excludes_end,
            ..all
        };
        let share = |range: &Range, archived: &Range, period: Period| {
            KnownSpan::new(range, archived, made, Zone::UTC).share(period)
        };
        for (step, expected) in [
            (Step::Week, "3 of 7 days so far"),
            (Step::Day, "12 of 24 hours so far"),
            (Step::Month, "10 of 30 days so far"),
        ] {
            let running = share(&all, &all, step.period(made));
            assert_eq!(running.as_deref(), Some(expected));
        }
        let over = Step::Week.period(second("2026-06-03T00:00:00Z"));
        for (range, archived, expected) in [
            (all, all, None),
            (from("01T00:00:00"), all, None),
            (from("01T00:00:01"), all, Some("not quite 7 days")),
            (from("05T09:00:00"), all, Some("3 of 7 days")),
            (to("04T00:00:00", true), all, Some("3 of 7 days")),
            (to("04T00:00:00", false), all, Some("4 of 7 days")),
            (to("08T00:00:00", true), all, None),
            (all, to("05T12:00:00", false), Some("5 of 7 days")),
            (all, from("08T00:00:00"), Some("0 of 7 days")),
        ] {
            let found = share(&range, &archived, over);
            assert_eq!(found.as_deref(), expected, "{range:?} {archived:?}");
        }
    }

    #[test]
    fn a_day_ends_at_midnight_of_the_zone() {
        let all = Range::default();
        let made = second("2026-06-10T22:30:00Z");
        let amsterdam = Zone::parse("Europe/Amsterdam").expect("a zone");
        let span = KnownSpan::new(&all, &all, made, amsterdam);
        let today = Step::Day.period(span.made());
        assert_eq!(today.label(), "2026-06-11");
        assert_eq!(span.share(today).as_deref(), Some("1 of 24 hours so far"));
    }

    #[test]
    fn the_hours_of_a_day_are_counted_when_the_clock_changes() {
        let all = Range::default();
        for (zone, made, expected) in [
            (
                "Europe/Amsterdam",
                "2026-10-25T00:30:00Z",
                "3 of 25 hours so far",
            ),
            (
                "Europe/Amsterdam",
                "2026-10-25T01:30:00Z",
                "4 of 25 hours so far",
            ),
            (
                "Europe/Amsterdam",
                "2026-10-25T10:00:00Z",
                "12 of 25 hours so far",
            ),
            (
                "America/Santiago",
                "2026-09-06T10:00:00Z",
                "6 of 23 hours so far",
            ),
            (
                "Asia/Kolkata",
                "2026-09-06T10:00:00Z",
                "16 of 24 hours so far",
            ),
        ] {
            let made = second(made);
            let span = KnownSpan::new(&all, &all, made, Zone::parse(zone).expect(zone));
            let today = Step::Day.period(span.made());
            assert_eq!(span.share(today).as_deref(), Some(expected), "{zone}");
        }
    }

    #[test]
    fn a_range_that_is_over_gets_no_more_batches() {
        let made = second("2026-06-10T12:00:00Z");
        let all = Range::default();
        let yesterday = Range {
            start: Some(second("2026-06-09T00:00:00Z")),
            end: Some(second("2026-06-10T00:00:00Z")),
            excludes_end: true,
        };
        let span = KnownSpan::new(&yesterday, &all, made, Zone::UTC);
        let share = span.share(Step::Week.period(made));
        assert_eq!(share.as_deref(), Some("1 of 7 days"));
    }
}
