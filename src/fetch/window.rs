//! Cutting a window in two, for services that answer only so much at a time.

use chrono::Utc;

use crate::dates::Range;

/// The seconds that four digits of a year can write.
const FIRST: i64 = -62_135_596_800;
const LAST: i64 = 253_402_300_799;
/// Before this, nobody scanned trays; an open start is looked for from here first.
const LIKELY_FIRST: i64 = 946_684_800;

/// Cuts `window` in two that share their bound; nothing where it is one second.
///
/// `seen` holds when some of its batches were created, in the order in which they came. They tell the
/// better cut, where it lies inside; which field the service compares is not shown, so where it does
/// not, the middle of the window is taken. Every cut makes the window smaller.
pub(super) fn cut(window: &Range, seen: &[i64]) -> Option<(Range, Range)> {
    let (low, high) = extent(window);
    // Between two neighbouring seconds lie fractions: such a window must stay whole.
    if high - low <= 1 {
        return None;
    }
    let middle = likely_cut(seen).filter(|cut| low < *cut && *cut < high);
    let middle = middle.unwrap_or_else(|| i64::midpoint(low, high));
    let earlier = Range {
        end: Some(middle),
        excludes_end: false,
        ..*window
    };
    let later = Range {
        start: Some(middle),
        ..*window
    };
    Some((earlier, later))
}

/// Returns where to cut by what was seen of a window: in the middle, or, where it came in order and so
/// is only its beginning or its end, near the far side of what was seen, so that one part is just small
/// enough to be answered whole.
fn likely_cut(seen: &[i64]) -> Option<i64> {
    let place = if seen.is_sorted() {
        seen.len() * 9 / 10
    } else if seen.iter().rev().is_sorted() {
        seen.len() / 10
    } else {
        seen.len() / 2
    };
    let mut seen = seen.to_vec();
    seen.sort_unstable();
    seen.get(place).copied()
}

/// Returns the bounds of a window, guessed where they are open.
fn extent(window: &Range) -> (i64, i64) {
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

    #[test]
    fn the_middle_of_what_was_seen_is_the_cut() {
        let (earlier, later) = cut(&range(Some(0), Some(100)), &[5, 1, 9]).expect("two");
        assert_eq!(
            (earlier, later),
            (range(Some(0), Some(5)), range(Some(5), Some(100)))
        );
        let (earlier, _) = cut(&range(Some(0), Some(100)), &[0, 500, 0]).expect("two");
        assert_eq!(earlier.end, Some(50), "nothing is gained at the edge");
    }

    #[test]
    fn what_comes_in_order_is_cut_near_its_far_side() {
        let ascending: Vec<i64> = (1..=20).collect();
        let descending: Vec<i64> = ascending.iter().rev().copied().collect();
        let end = |seen: &[i64]| cut(&range(Some(0), Some(100)), seen).expect("two").0.end;
        assert_eq!((end(&ascending), end(&descending)), (Some(19), Some(3)));
    }

    #[test]
    fn one_second_is_not_cut() {
        assert_eq!(cut(&range(Some(7), Some(8)), &[7]), None);
        assert_eq!(cut(&range(Some(7), Some(7)), &[7]), None);
    }

    #[test]
    fn open_windows_stay_open_outside() {
        let (earlier, later) = cut(&range(None, None), &[]).expect("two");
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
                let seen: Vec<i64> = if blind { Vec::new() } else { inside.iter().map(|tenth| tenth / 10).collect() };
                match cut(&window, &seen) {
                    Some((earlier, later)) if inside.len() > 3 => windows.extend([later, earlier]),
                    _ => found.extend(inside),
                }
            }
            found.sort_unstable();
            found.dedup();
            tenths.dedup();
            prop_assert_eq!(found, tenths);
        }
    }
}
