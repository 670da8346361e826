//! Cutting a window into smaller ones that share their bounds.
//!
//! A batch created between two whole seconds would fall between windows that do not share their
//! bounds. Which field the service compares is not shown, so what was seen of a window only tells
//! where a cut is useful: the parts always cover all of it.

use chrono::Utc;

use super::plan::Plan;
use crate::dates::Range;

/// The seconds that four digits of a year can write.
const FIRST: i64 = -62_135_596_800;
const LAST: i64 = 253_402_300_799;
/// Before this, nobody scanned trays; an open start is looked for from here first.
pub(super) const LIKELY_FIRST: i64 = 946_684_800;
/// Pages that a part of a dense window should have.
const PART: u64 = 4;
/// The most parts of a window of pages.
const PARTS: u64 = 64;
/// Batches that a part of a crowded window should have: fewer than an answer of version 1 may hold.
const CALM: usize = 900;
/// The parts of a range whose batches come in no order of time.
const EVEN_PARTS: usize = 16;
/// The most dates that a sample holds.
const SAMPLE: usize = 1 << 16;

/// Cuts `window` in two in the middle; nothing where it is one second.
pub(super) fn halves(window: &Range) -> Option<[Range; 2]> {
    let (low, high) = extent(window);
    // Between two neighbouring seconds lie fractions: such a window must stay whole.
    if high - low <= 1 {
        return None;
    }
    let parts = at(window, &[i64::midpoint(low, high)]);
    parts.try_into().ok()
}

/// Returns the two seconds of a window of neighbouring ones; nothing where it is one.
pub(super) fn seconds(window: &Range) -> Option<[Range; 2]> {
    let (low, high) = extent(window);
    let alone = |second: i64| Range {
        start: Some(second),
        end: Some(second),
        excludes_end: false,
    };
    (high - low == 1).then(|| [alone(low), alone(high)])
}

/// Cuts `window` in two in the middle; nothing where it is no longer than so many seconds.
pub(crate) fn halves_of_long(window: &Range, seconds: i64) -> Option<[Range; 2]> {
    let (low, high) = extent(window);
    (high - low > seconds).then(|| halves(window)).flatten()
}

/// Cuts `window` at `bounds`, which lie inside of it and ascend.
fn at(window: &Range, bounds: &[i64]) -> Vec<Range> {
    let mut parts = Vec::with_capacity(bounds.len() + 1);
    let mut rest = *window;
    for &bound in bounds {
        parts.push(Range {
            end: Some(bound),
            excludes_end: false,
            ..rest
        });
        rest.start = Some(bound);
    }
    parts.push(rest);
    parts
}

/// Cuts `window` so that each part has about as many batches as the others, as far as those that were
/// created at `seen`, and came in no order of time, tell; nothing where it cannot be cut.
pub(super) fn even_parts(window: &Range, seen: &[i64]) -> Option<Vec<Range>> {
    let (low, high) = extent(window);
    let mut sample = seen.to_vec();
    sample.sort_unstable();
    let mut bounds: Vec<i64> = (1..EVEN_PARTS)
        .filter_map(|part| sample.get(part * sample.len() / EVEN_PARTS).copied())
        .filter(|bound| (low + 1..high).contains(bound))
        .collect();
    bounds.dedup();
    (!bounds.is_empty()).then(|| at(window, &bounds))
}

/// Cuts a window of which `pages` have come, the last of them created at `seen`, so that each part has
/// a few; nothing where it is nearly done, or cannot be cut.
pub(super) fn parts(
    window: &Range,
    pages: u64,
    seen: &[i64],
    newest_first: bool,
) -> Option<Vec<Range>> {
    let (low, high) = extent(window);
    // A batch that came again may stand behind later ones.
    let last = *if newest_first {
        seen.iter().min()
    } else {
        seen.iter().max()
    }?;
    let covered = if newest_first {
        high - last
    } else {
        last - low
    };
    if high - low <= 1 || covered >= high - low {
        return None;
    }
    let length = u64::try_from(high - low).ok()?;
    let covered = u64::try_from(covered).unwrap_or_default().max(1);
    let expected = (u128::from(pages) * u128::from(length) / u128::from(covered)).min(1 << 40);
    let expected = u64::try_from(expected).ok()?;
    if expected < pages + PART {
        return None;
    }
    let count = (expected / PART).clamp(2, PARTS).min(length);
    let bounds = (1..count).map(|part| {
        low + i64::try_from(u128::from(length) * u128::from(part) / u128::from(count))
            .unwrap_or_default()
    });
    let mut parts = at(window, &bounds.collect::<Vec<_>>());
    if newest_first {
        parts.reverse();
    }
    Some(parts)
}

/// When the batches of an answer were created, in the order in which they came: all of them, or every
/// so many.
#[derive(Debug, Default)]
pub(super) struct Sample {
    seconds: Vec<i64>,
    /// Of so many batches (a power of two, as its exponent) one is held.
    thinned: u32,
    seen: u64,
}

impl Sample {
    pub(super) fn add(&mut self, second: Option<i64>) {
        let Some(second) = second else {
            return;
        };
        if self.seen.trailing_zeros() >= self.thinned {
            self.seconds.push(second);
        }
        self.seen += 1;
        if self.seconds.len() == SAMPLE {
            let mut place = 0;
            self.seconds.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.thinned += 1;
        }
    }

    /// Tells whether the batches came in an order of time.
    pub(super) fn is_ordered(&self) -> bool {
        self.seconds.is_sorted() || self.seconds.iter().rev().is_sorted()
    }

    /// Makes a plan for `whole`, of which this is the beginning.
    pub(super) fn plan(&self, whole: Range, workers: usize) -> Option<Plan> {
        // Each window is to be answered at once, however small it is.
        let page = self.seconds.get(..CALM >> self.thinned)?;
        Plan::new(whole, page, usize::MAX, workers)
    }

    /// Cuts the window of the answer so that each part may be answered whole; every part is smaller.
    ///
    /// An answer that came in order may be only the beginning, or the end, of what there is: then what
    /// was seen lies in parts that are just small enough, and the rest in one more.
    pub(super) fn cut(mut self, window: &Range) -> Vec<Range> {
        let (low, high) = extent(window);
        let ascends = self.seconds.is_sorted();
        let descends = !ascends && self.seconds.iter().rev().is_sorted();
        let calm = if ascends || descends { CALM } else { CALM / 2 };
        let step = (calm >> self.thinned).max(1);
        self.seconds.sort_unstable();
        let count = self.seconds.len();
        let places: Vec<usize> = if descends {
            let mut places: Vec<usize> =
                (1..=count / step).map(|part| count - part * step).collect();
            places.reverse();
            places
        } else {
            (1..=count / step).map(|part| part * step).collect()
        };
        let mut bounds: Vec<i64> = places
            .into_iter()
            .filter_map(|place| self.seconds.get(place).copied())
            .filter(|bound| low < *bound && *bound < high)
            .collect();
        bounds.dedup();
        if bounds.is_empty() {
            return halves(window).map_or_else(|| vec![*window], Vec::from);
        }
        at(window, &bounds)
    }
}

/// Returns the bounds of a window, guessed where they are open.
pub(super) fn extent(window: &Range) -> (i64, i64) {
    let now = Utc::now().timestamp();
    let high = window.end.unwrap_or(match window.start {
        Some(start) if start >= now - 1 => LAST,
        _ => now,
    });
    let low = window.start.unwrap_or(if high > LIKELY_FIRST + 1 {
        LIKELY_FIRST
    } else {
        FIRST
    });
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(start: Option<i64>, end: Option<i64>) -> Range {
        Range {
            start,
            end,
            excludes_end: false,
        }
    }

    fn sample(seconds: &[i64]) -> Sample {
        let mut sample = Sample::default();
        for second in seconds {
            sample.add(Some(*second));
        }
        sample
    }

    fn bounds(parts: &[Range]) -> Vec<Option<i64>> {
        parts[1..].iter().map(|part| part.start).collect()
    }

    #[test]
    fn what_comes_in_order_is_cut_near_its_far_side() {
        let ascending: Vec<i64> = (1..=1000).collect();
        let descending: Vec<i64> = ascending.iter().rev().copied().collect();
        let cut = |seen: &[i64]| bounds(&sample(seen).cut(&range(Some(0), Some(5000))));
        assert_eq!(cut(&ascending), [Some(901)]);
        assert_eq!(cut(&descending), [Some(101)]);
        let mixed: Vec<i64> = (0..1000).map(|number| number * 7 % 1000).collect();
        assert_eq!(cut(&mixed), [Some(450), Some(900)]);
        assert_eq!(
            cut(&[0, 5000, 0]),
            [Some(2500)],
            "nothing is gained at the edge"
        );
    }

    #[test]
    fn a_flood_is_cut_into_many_by_a_bounded_sample() {
        let seconds: Vec<i64> = (1_700_000_000..1_700_300_000).collect();
        let sample = sample(&seconds);
        assert!(sample.seconds.len() <= SAMPLE);
        let parts = sample.cut(&range(None, None));
        assert!((300..450).contains(&parts.len()), "{}", parts.len());
        assert_eq!((parts[0].start, parts[parts.len() - 1].end), (None, None));
        assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert!(
            parts[1..parts.len() - 1]
                .iter()
                .all(|part| part.end.expect("an end") - part.start.expect("a start") < 1000)
        );
    }

    #[test]
    fn a_dense_window_is_cut_into_parts_of_a_few_pages() {
        let window = range(Some(0), Some(1000));
        let parts = |seen: &[i64], newest_first| {
            parts(&window, 8, seen, newest_first).map(|parts| (parts.len(), bounds(&parts)[0]))
        };
        assert_eq!(
            parts(&[90, 100, 95], false),
            Some((20, Some(50))),
            "eighty pages"
        );
        assert_eq!(
            parts(&[900, 900], true),
            Some((20, Some(900))),
            "from the end"
        );
        assert_eq!(parts(&[900, 950], false), None, "nearly done");
        assert_eq!(parts(&[], false), None);
        assert_eq!(super::parts(&range(Some(7), Some(8)), 8, &[7], false), None);
    }

    #[test]
    fn one_second_is_not_cut() {
        assert_eq!(halves(&range(Some(7), Some(8))), None);
        assert_eq!(halves(&range(Some(7), Some(7))), None);
    }

    #[test]
    fn open_windows_stay_open_outside() {
        let [earlier, later] = halves(&range(None, None)).expect("two");
        assert_eq!((earlier.start, later.end), (None, None));
        assert_eq!(earlier.end, later.start);
    }

    proptest! {
        /// Cuts until every window holds few batches, as a client does; none may be lost.
        #[test]
        fn no_instant_falls_between_windows(
            mut tenths in prop::collection::vec(0_i64..20_000, 1..60),
            open_start: bool, open_end: bool, blind: bool,
        ) {
            tenths.sort_unstable();
            let whole = range((!open_start).then_some(0), (!open_end).then_some(2_000));
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
                let halves = halves(&window);
                if inside.len() <= 3 || halves.is_none() {
                    found.extend(inside);
                } else if blind {
                    windows.extend(halves.into_iter().flatten());
                } else {
                    let seen: Vec<i64> = inside.iter().map(|tenth| tenth / 10).collect();
                    windows.extend(sample(&seen).cut(&window));
                }
            }
            found.sort_unstable();
            found.dedup();
            tenths.dedup();
            prop_assert_eq!(found, tenths);
        }
    }
}
