//! Coverage: the intervals of requested dates that are known to be complete.
//!
//! A single high-water mark is not enough: if the middle of a range failed, both sides of it are complete,
//! and the gap must stay visible until it is filled. It is unknown which date of a batch the service
//! compares, so the dates of batches are not used here.

use crate::batch::range::Range;

/// From `start`, or from the beginning, through `end`; in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: Option<i64>,
    pub(crate) end: i64,
}

/// Spans that neither touch nor overlap, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Coverage {
    spans: Vec<Span>,
}

impl Coverage {
    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the end of the last span.
    pub(crate) fn end(&self) -> Option<i64> {
        self.spans.last().map(|span| span.end)
    }

    /// Adds a window that was fetched completely. An open end, or one after `mark`, counts as `mark`.
    pub(crate) fn add(&mut self, window: &Range, mark: i64) {
        let end = window.end.map_or(mark, |end| end.min(mark));
        if window.start.is_some_and(|start| start > end) {
            return;
        }
        let mut added = Span {
            start: window.start,
            end,
        };
        self.spans.retain(|span| {
            // An open start is before all others, as `None` is before `Some`.
            let apart = span.start > Some(added.end) || added.start > Some(span.end);
            if !apart {
                added.start = added.start.min(span.start);
                added.end = added.end.max(span.end);
            }
            apart
        });
        let index = self.spans.partition_point(|span| span.start < added.start);
        self.spans.insert(index, added);
    }

    /// Removes the inside of `window`, which turned out to be incomplete. Its bounds belong to the
    /// neighbouring spans.
    pub(crate) fn remove(&mut self, window: &Range) {
        let known = std::mem::take(&mut self.spans);
        for span in known {
            // The parts before and after the window, including its bounds.
            let before = window.start.filter(|start| span.start < Some(*start));
            let after = window.end.filter(|end| *end < span.end);
            if before.is_some_and(|start| span.end <= start)
                || after.is_some_and(|end| span.start >= Some(end))
            {
                self.spans.push(span);
                continue;
            }
            self.spans.extend(before.map(|end| Span { end, ..span }));
            self.spans.extend(after.map(|start| Span {
                start: Some(start),
                ..span
            }));
        }
    }

    /// Removes everything after `mark`.
    pub(crate) fn clip(&mut self, mark: i64) {
        self.spans
            .retain(|span| span.start.is_none_or(|start| start <= mark));
        for span in &mut self.spans {
            span.end = span.end.min(mark);
        }
    }

    /// Returns the gaps between spans, and before the first one down to `since`.
    pub(crate) fn gaps(&self, since: Option<i64>) -> Vec<(Option<i64>, i64)> {
        let mut reached = since;
        let mut gaps = Vec::new();
        for span in &self.spans {
            if let Some(start) = span.start.filter(|start| reached < Some(*start)) {
                gaps.push((reached, start));
            }
            reached = reached.max(Some(span.end));
        }
        gaps
    }

    /// Returns the parts of `range` that are not covered.
    pub(crate) fn missing(&self, range: &Range) -> Vec<Range> {
        let mut reached = range.start;
        let mut missing = Vec::new();
        // An open end was added as the last possible second.
        let is_inside = |second: i64| second < range.end.unwrap_or(i64::MAX);
        for span in &self.spans {
            if let Some(start) = span.start
                && reached < Some(start)
                && reached.is_none_or(is_inside)
            {
                let end = range.end.map_or(start, |end| end.min(start));
                missing.push(Range::between(reached, Some(end)));
            }
            reached = reached.max(Some(span.end));
        }
        if reached.is_none_or(is_inside) {
            missing.push(Range::between(reached, range.end));
        }
        missing
    }

    /// Returns the ranges to fetch to be complete from `since` on: each gap, and everything after the end.
    /// Both start `lookback` seconds earlier, because batches may arrive late or change.
    pub(crate) fn ranges_to_fetch(&self, since: Option<i64>, lookback: i64) -> Vec<Range> {
        let Some(end) = self.end() else {
            return vec![Range::between(since, None)];
        };
        let earlier = |start: Option<i64>| match start {
            // Nothing before the first gap was ever requested.
            start if start == since => since,
            start => start.map(|start| start.saturating_sub(lookback)).max(since),
        };
        let gaps = self.gaps(since).into_iter();
        let gaps = gaps.map(|(start, end)| Range::between(earlier(start), Some(end)));
        let mut ranges: Vec<Range> = Vec::new();
        for range in gaps.chain([Range::between(earlier(Some(end)), None)]) {
            match ranges.last_mut() {
                // With the lookback, a range may overlap the one before.
                Some(last) if last.end >= range.start => last.end = range.end,
                _ => ranges.push(range),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(start: Option<i64>, end: i64) -> Span {
        Span { start, end }
    }

    fn covered(spans: &[(Option<i64>, i64)]) -> Coverage {
        let mut coverage = Coverage::default();
        for &(start, end) in spans {
            coverage.add(&Range::between(start, Some(end)), i64::MAX);
        }
        coverage
    }

    #[test]
    fn windows_that_touch_become_one_span() {
        let coverage = covered(&[(Some(10), 20), (Some(40), 50), (Some(20), 30)]);
        assert_eq!(coverage.spans(), [span(Some(10), 30), span(Some(40), 50)]);
        assert_eq!(covered(&[(None, 5), (Some(5), 9)]).spans(), [span(None, 9)]);
        assert_eq!(
            covered(&[(None, 5), (Some(6), 9)]).spans(),
            [span(None, 5), span(Some(6), 9)],
            "what lies between whole seconds is not known"
        );
    }

    #[test]
    fn coverage_never_extends_into_the_future() {
        let mut coverage = Coverage::default();
        coverage.add(&Range::between(Some(10), None), 100);
        coverage.add(&Range::between(Some(200), Some(300)), 100);
        assert_eq!(coverage.spans(), [span(Some(10), 100)]);
        coverage.clip(60);
        assert_eq!(coverage.spans(), [span(Some(10), 60)]);
        coverage.clip(5);
        assert!(coverage.is_empty());
    }

    #[test]
    fn nothing_is_missing_after_an_open_end() {
        let mut coverage = Coverage::default();
        coverage.add(&Range::between(Some(10), None), i64::MAX);
        assert_eq!(coverage.missing(&Range::between(Some(20), None)), []);
        assert_eq!(
            coverage.missing(&Range::between(None, None)),
            [Range::between(None, Some(10))]
        );
    }

    #[test]
    fn incomplete_windows_are_removed() {
        let without = |start, end| {
            let mut coverage = covered(&[(None, 100), (Some(200), 300)]);
            coverage.remove(&Range::between(start, end));
            let spans = coverage.spans().iter();
            spans.map(|span| (span.start, span.end)).collect::<Vec<_>>()
        };
        let all = [(None, 100), (Some(200), 300)];
        assert_eq!(without(Some(100), Some(200)), all, "there was nothing");
        assert_eq!(without(Some(300), None), all);
        assert_eq!(
            without(Some(40), Some(50)),
            [(None, 40), (Some(50), 100), (Some(200), 300)]
        );
        assert_eq!(without(Some(40), Some(250)), [(None, 40), (Some(250), 300)]);
        assert_eq!(without(None, Some(200)), [(Some(200), 300)]);
        assert_eq!(without(Some(90), None), [(None, 90)]);
        assert_eq!(without(None, None), []);
    }

    #[test]
    fn gaps_and_the_end_are_fetched_with_a_lookback() {
        let everything = Coverage::default();
        assert_eq!(
            everything.ranges_to_fetch(None, 7),
            [Range::between(None, None)]
        );
        assert_eq!(
            everything.ranges_to_fetch(Some(3), 7),
            [Range::between(Some(3), None)]
        );
        let coverage = covered(&[(None, 100)]);
        assert_eq!(
            coverage.ranges_to_fetch(None, 7),
            [Range::between(Some(93), None)]
        );
        let gap = covered(&[(None, 100), (Some(200), 300)]);
        assert_eq!(
            gap.ranges_to_fetch(None, 7),
            [
                Range::between(Some(93), Some(200)),
                Range::between(Some(293), None)
            ]
        );
        assert_eq!(
            gap.ranges_to_fetch(None, 150),
            [Range::between(Some(-50), None)],
            "they meet"
        );
        let late = covered(&[(Some(50), 100)]);
        assert_eq!(
            late.ranges_to_fetch(Some(50), 7),
            [Range::between(Some(93), None)]
        );
        assert_eq!(
            late.ranges_to_fetch(Some(50), 70),
            [Range::between(Some(50), None)],
            "what lies before the beginning was never wanted"
        );
        assert_eq!(
            late.ranges_to_fetch(None, 7),
            [
                Range::between(None, Some(50)),
                Range::between(Some(93), None)
            ]
        );
    }

    #[test]
    fn missing_parts_of_a_range_are_between_the_spans() {
        let there = covered(&[(Some(10), 20), (Some(40), 50)]);
        assert_eq!(
            there.missing(&Range::between(Some(0), Some(100))),
            [
                Range::between(Some(0), Some(10)),
                Range::between(Some(20), Some(40)),
                Range::between(Some(50), Some(100))
            ]
        );
        assert_eq!(there.missing(&Range::between(Some(10), Some(20))), []);
        assert_eq!(
            there.missing(&Range::between(Some(15), Some(45))),
            [Range::between(Some(20), Some(40))]
        );
        assert_eq!(
            there.missing(&Range::between(None, None)),
            [
                Range::between(None, Some(10)),
                Range::between(Some(20), Some(40)),
                Range::between(Some(50), None)
            ]
        );
    }

    proptest! {
        #[test]
        fn spans_match_what_was_added_and_ranges_to_fetch_close_every_gap(
            windows in prop::collection::vec((prop::option::of(0_i64..60), 0_i64..60), 0..12),
            since in prop::option::of(0_i64..60), lookback in 0_i64..20,
        ) {
            let mut coverage = Coverage::default();
            for (start, end) in &windows {
                coverage.add(&Range::between(*start, Some(*end)), 50);
            }
            // Half seconds distinguish spans that touch from those that do not.
            let inside = |instant: i64, start: Option<i64>, end: i64| {
                start.is_none_or(|start| 2 * start <= instant) && instant <= 2 * end
            };
            for instant in -10..110 {
                let known = coverage.spans().iter().any(|span| inside(instant, span.start, span.end));
                let added = windows.iter().any(|(start, end)| {
                    start.is_none_or(|start| start <= 50.min(*end)) && inside(instant, *start, 50.min(*end))
                });
                prop_assert_eq!(known, added, "{}", instant);
            }
            for pair in coverage.spans().windows(2) {
                prop_assert!(Some(pair[0].end) < pair[1].start);
            }
            let ranges = coverage.ranges_to_fetch(since, lookback);
            for pair in ranges.windows(2) {
                prop_assert!(pair[0].end < pair[1].start);
            }
            prop_assert_eq!(ranges[ranges.len() - 1].end, None);
            for window in &ranges {
                prop_assert!(window.start >= since);
                coverage.add(window, 60);
            }
            prop_assert!(coverage.gaps(since).is_empty());
            prop_assert_eq!(coverage.end(), Some(60));
        }
    }
}
