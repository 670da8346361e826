//! Version 1: samples the creation dates of an oversized response, and decides where to split its window.
//!
//! The split depends only on the response: not on the clock, the number of workers, or how the network
//! delivered the body. Windows determine the order of the output, so it is the same in every run.

use super::window::{self, LIKELY_FIRST, LIKELY_LAST, WalkMode, WindowHint};
use crate::batch::Batch;
use crate::batch::range::Range;

/// Number of batches in date order that are enough for a decision; the rest would only be fetched twice.
const ENOUGH: usize = 4000;
/// Target number of batches per part: fewer than a response of version 1 may have.
const PART_BATCHES: usize = 900;
/// Maximum number of dates in a sample.
const MAX_SAMPLES: usize = 1 << 16;
/// Limits of services are round numbers: a response with a multiple of this may have been truncated.
const ROUND: usize = 500;
/// Number of guessed parts after the end of a truncated response. It doubles with each further truncated
/// response, up to the maximum.
const GUESSES: usize = 4;
const MAX_GUESSES: usize = 64;

/// Creation dates of the batches in a response, in its order: all of them, or one in a power of two.
#[derive(Debug, Default)]
pub(super) struct CreationSample {
    seconds: Vec<i64>,
    /// One in `2^thinning` dates is kept.
    thinning: u32,
    dated: u64,
    received: usize,
    /// The rest of the response was not read.
    is_cut_short: bool,
}

impl CreationSample {
    /// Adds a batch created at `second`; returns true once the sample is sufficient.
    fn add(&mut self, second: Option<i64>) -> bool {
        self.received += 1;
        self.sample(second);
        self.is_cut_short = self.received == ENOUGH && self.is_ordered();
        self.is_cut_short
    }

    /// Adds batches; returns true once the sample is sufficient.
    pub(super) fn add_all(&mut self, batches: &[Batch]) -> bool {
        let created = |batch: &Batch| batch.created().map(|created| created.second);
        batches.iter().any(|batch| self.add(created(batch)))
    }

    fn sample(&mut self, second: Option<i64>) {
        let Some(second) = second else {
            return;
        };
        if self.dated.trailing_zeros() >= self.thinning {
            self.seconds.push(second);
        }
        self.dated += 1;
        if self.seconds.len() == MAX_SAMPLES {
            let mut place = 0;
            self.seconds.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.thinning += 1;
        }
    }

    /// Returns whether the batches are in date order, ascending or descending.
    fn is_ordered(&self) -> bool {
        self.seconds.is_sorted() || self.seconds.iter().rev().is_sorted()
    }

    /// Returns whether the newest batches are first; `None` if all dates are equal.
    pub(super) fn order(&self) -> Option<bool> {
        is_newest_first(&self.seconds)
    }

    /// Returns whether the response may end before the last batch.
    fn may_be_truncated(&self) -> bool {
        self.is_ordered() && (self.is_cut_short || self.received.is_multiple_of(ROUND))
    }

    /// Splits the window so that each part should fit in one response. Parts are in fetch order, and each is
    /// smaller than the window.
    pub(super) fn cut(mut self, window: &Range, hint: WindowHint) -> Vec<(Range, WalkMode)> {
        let is_ordered = self.is_ordered();
        let newest_first = self.order().or(hint.newest_first).unwrap_or_default();
        let is_truncated = self.may_be_truncated();
        let batches = if is_ordered {
            PART_BATCHES
        } else {
            PART_BATCHES / 2
        };
        let step = (batches >> self.thinning).max(1);
        // Make the start of the response the lowest value, on an ascending scale.
        let sign = if newest_first { -1 } else { 1 };
        for second in &mut self.seconds {
            *second *= sign;
        }
        self.seconds.sort_unstable();
        let mut bounds: Vec<i64> = self.seconds.iter().copied().step_by(step).skip(1).collect();
        if is_truncated {
            let count = (GUESSES << hint.truncated.min(16)).min(MAX_GUESSES);
            let likely = |bound: &i64| (LIKELY_FIRST..LIKELY_LAST).contains(&(bound * sign));
            let guesses = self.guesses_beyond(step, bounds.last().copied());
            bounds.extend(guesses.take(count).take_while(likely));
        }
        for bound in &mut bounds {
            *bound *= sign;
        }
        bounds.sort_unstable();
        bounds.dedup();
        bounds.retain(|bound| is_inside(window, *bound));
        let parts = if bounds.is_empty() {
            window::halves(window).map_or_else(|| vec![*window], Vec::from)
        } else {
            window::split_at(window, &bounds)
        };
        let truncated = if is_truncated { hint.truncated + 1 } else { 0 };
        ordered_parts(parts, newest_first, truncated)
    }

    /// Guesses further bounds after the last one, spaced like those in the sample.
    fn guesses_beyond(&self, step: usize, bound: Option<i64>) -> impl Iterator<Item = i64> + use<> {
        let place = self.seconds.len().saturating_sub(1 + step);
        let last = self.seconds.last().zip(self.seconds.get(place));
        let distance = last.map_or(0, |(last, before)| last - before);
        // A little closer, because a part with too many batches costs more requests.
        let distance = (distance - distance / 9).max(1);
        let from = bound.into_iter();
        from.flat_map(move |from| (1..).map(move |number| from + distance * number))
    }
}

/// Returns whether `bound` lies inside `window`.
fn is_inside(window: &Range, bound: i64) -> bool {
    window.start.is_none_or(|start| start < bound) && window.end.is_none_or(|end| bound < end)
}

/// Puts `parts`, which are ascending, into fetch order. The last one follows `truncated` consecutive
/// truncated responses.
pub(super) fn ordered_parts(
    mut parts: Vec<Range>,
    newest_first: bool,
    truncated: u32,
) -> Vec<(Range, WalkMode)> {
    if newest_first {
        parts.reverse();
    }
    let last = parts.len().saturating_sub(1);
    let hint = |place| WindowHint {
        newest_first: Some(newest_first),
        truncated: if place == last { truncated } else { 0 },
    };
    let hints = (0..).map(|place| WalkMode::V1(hint(place)));
    parts.into_iter().zip(hints).collect()
}

/// Returns whether `seconds` mostly descend; `None` if all are equal.
fn is_newest_first(seconds: &[i64]) -> Option<bool> {
    let count =
        |is_step: fn(&[i64]) -> bool| seconds.windows(2).filter(|pair| is_step(pair)).count();
    let (up, down) = (
        count(|pair| pair[0] < pair[1]),
        count(|pair| pair[0] > pair[1]),
    );
    // Without any order, batches go up as often as down.
    (up + down > 0).then_some(down > 2 * up)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(seconds: &[i64]) -> CreationSample {
        let mut sample = CreationSample::default();
        for second in seconds {
            if sample.add(Some(*second)) {
                break;
            }
        }
        sample
    }

    fn cut(seconds: &[i64], window: &Range) -> Vec<Range> {
        let parts = sample(seconds).cut(window, WindowHint::default());
        parts.into_iter().map(|(part, _)| part).collect()
    }

    /// Returns the starts of the parts of a window that covers 5000 seconds from `FIRST`.
    fn starts(seconds: &[i64]) -> Vec<i64> {
        let seconds: Vec<i64> = seconds.iter().map(|second| FIRST + second).collect();
        let parts = cut(&seconds, &Range::between(Some(FIRST), Some(FIRST + 5000)));
        let starts = parts.iter().filter_map(|part| part.start);
        starts.map(|start| start - FIRST).collect()
    }

    const FIRST: i64 = 1_700_000_000;

    #[test]
    fn a_window_is_cut_from_the_end_at_which_the_answer_begins() {
        let ascending: Vec<i64> = (1..=999).chain([999, 999]).collect();
        assert_eq!(starts(&ascending), [0, 901]);
        let descending: Vec<i64> = ascending.iter().rev().copied().collect();
        assert_eq!(starts(&descending), [101, 0], "the later part first");
        let mixed: Vec<i64> = (0..1001).map(|number| number * 5 % 1001).collect();
        assert_eq!(starts(&mixed), [0, 450, 900]);
        assert_eq!(
            starts(&[0, 5000, 0]),
            [0, 2500],
            "nothing is gained at the edge"
        );
    }

    #[test]
    fn beyond_a_truncated_answer_parts_are_guessed() {
        let ascending: Vec<i64> = (1..=1000).collect();
        assert_eq!(starts(&ascending), [0, 901, 1701, 2501, 3301, 4101]);
        let descending: Vec<i64> = (4000..5000).rev().collect();
        assert_eq!(starts(&descending), [4099, 3299, 2499, 1699, 899, 0]);
        let window = Range::between(None, None);
        let further = WindowHint {
            newest_first: Some(false),
            truncated: 2,
        };
        let parts = sample(&ascending).cut(&window, further);
        assert_eq!(parts.len(), 1 + 1, "no guesses before the year 2000");
        let later: Vec<i64> = ascending.iter().map(|second| second + FIRST).collect();
        let parts = sample(&later).cut(&window, further);
        assert_eq!(parts.len(), 1 + 16 + 1);
        let hints: Vec<u32> = parts.iter().map(|(_, mode)| truncated(*mode)).collect();
        assert_eq!(
            (hints[0], hints[17]),
            (0, 3),
            "only the rest lies behind more"
        );
    }

    fn truncated(mode: WalkMode) -> u32 {
        match mode {
            WalkMode::V1(hint) => hint.truncated,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_sample_does_not_depend_on_how_the_body_arrived() {
        let ascending: Vec<i64> = (FIRST..FIRST + 100_000).collect();
        let window = Range::between(None, None);
        let enough = cut(&ascending[..ENOUGH], &window);
        assert_eq!(cut(&ascending, &window), enough);
        let mut late = CreationSample::default();
        let place = ascending.iter().position(|second| late.add(Some(*second)));
        assert_eq!(place, Some(ENOUGH - 1));
    }

    #[test]
    fn a_flood_is_cut_into_many_by_a_bounded_sample() {
        let mut seconds: Vec<i64> = (FIRST..FIRST + 300_000).collect();
        seconds.rotate_right(1000);
        let sample = sample(&seconds);
        assert!(sample.seconds.len() <= MAX_SAMPLES);
        let parts = cut(&seconds, &Range::between(None, None));
        assert!((600..900).contains(&parts.len()), "{}", parts.len());
        assert_eq!((parts[0].start, parts[parts.len() - 1].end), (None, None));
        assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert!(
            parts[1..parts.len() - 1]
                .iter()
                .all(|part| part.end.expect("an end") - part.start.expect("a start") < 1000)
        );
    }

    #[test]
    fn the_order_is_that_of_most_batches() {
        assert_eq!(is_newest_first(&[1, 2, 3]), Some(false));
        assert_eq!(is_newest_first(&[3, 2, 1, 9]), Some(false));
        assert_eq!(is_newest_first(&[9, 8, 7, 6, 9, 5]), Some(true));
        assert_eq!(is_newest_first(&[7, 7]), None);
        assert_eq!(is_newest_first(&[]), None);
    }

    proptest! {
        /// Splits until every window has few batches, as a client does. No batch may be lost.
        #[test]
        fn no_instant_falls_between_windows(
            mut tenths in prop::collection::vec(0_i64..20_000, 1..60),
            open_start: bool, open_end: bool, blind: bool, newest_first: bool, limit in 3_usize..9,
        ) {
            tenths.sort_unstable();
            if newest_first {
                tenths.reverse();
            }
            let tenths: Vec<i64> = tenths.iter().map(|tenth| FIRST * 10 + tenth).collect();
            let whole = Range::between((!open_start).then_some(FIRST), (!open_end).then_some(FIRST + 2_000));
            let mut windows = vec![whole];
            let mut found = Vec::new();
            let mut asked = 0;
            while let Some(window) = windows.pop() {
                asked += 1;
                prop_assert!(asked < 5_000, "it never ends");
                let inside: Vec<i64> = tenths.iter().copied().filter(|tenth| {
                    window.start.is_none_or(|start| *tenth >= start * 10)
                        && window.end.is_none_or(|end| *tenth <= end * 10)
                }).collect();
                let halves = window::halves(&window);
                if inside.len() <= limit || halves.is_none() {
                    found.extend(inside);
                } else if blind {
                    windows.extend(halves.into_iter().flatten());
                } else {
                    let seen: Vec<i64> = inside.iter().take(limit).map(|tenth| tenth / 10).collect();
                    windows.extend(cut(&seen, &window));
                }
            }
            let mut expected = tenths.clone();
            for list in [&mut found, &mut expected] {
                list.sort_unstable();
                list.dedup();
            }
            prop_assert_eq!(found, expected);
        }
    }
}
