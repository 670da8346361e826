//! Cutting a window into smaller ones that share their bounds.
//!
//! A batch created between two whole seconds would fall between windows that do not share their
//! bounds. Which field the service compares is not shown, so what was seen of a window only tells
//! where a cut is useful: the parts always cover all of it.

use chrono::Utc;

use crate::batch::range::Range;

/// The seconds that four digits of a year can write.
const FIRST: i64 = -62_135_596_800;
const LAST: i64 = 253_402_300_799;
/// Before this, nobody scanned trays; an open start is looked for from here first.
pub(super) const LIKELY_FIRST: i64 = 946_684_800;
/// The year 2100. Where the order of the output depends on a cut, this stands for an open end: the
/// current time would change the order from run to run.
pub(super) const LIKELY_LAST: i64 = 4_102_444_800;
/// Pages that a part of a dense window should have.
const PART_PAGES: u64 = 4;
/// The most parts of a window of pages.
const MAX_PARTS: u64 = 64;
/// The parts of a range whose batches come in no order of time.
const EVEN_PARTS: usize = 16;

/// A window that was fetched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchedWindow {
    pub(crate) window: Range,
    pub(crate) pages: u64,
    pub(crate) batches: u64,
}

impl FetchedWindow {
    pub(super) fn new(window: Range) -> Self {
        Self {
            window,
            pages: 0,
            batches: 0,
        }
    }
}

/// How far to walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalkMode {
    /// To the end; no page is asked for before somebody wants it.
    Lazy,
    /// To the end, unless the first page shows that many can share the work, or, `in_windows`, the first
    /// pages that there is no end in sight.
    Probe { workers: usize, in_windows: bool },
    /// To the end, unless there are far more pages than these, or other batches than there should be.
    Window { pages: u64, newest_first: bool },
    /// To the end, whatever comes.
    Full,
    /// Version 1: one answer, which is cut if it may not be whole.
    V1(WindowHint),
}

impl WalkMode {
    /// A window of batches in no order of time, which cannot be cut again by what is seen of it.
    pub(super) const UNORDERED: Self = Self::Window {
        pages: u64::MAX,
        newest_first: false,
    };

    /// A window that should have so many pages, and is cut again where it has far more.
    pub(super) fn window(pages: u64, newest_first: bool) -> Self {
        Self::Window {
            pages: 2 * pages + 4,
            newest_first,
        }
    }
}

/// What is known of a window of version 1 before it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WindowHint {
    /// Whether the service answers the newest batches first; `None` if not known yet.
    pub(super) newest_first: Option<bool>,
    /// How many truncated answers in a row lie before this window.
    pub(super) truncated: u32,
}

/// Cuts `window` in two in the middle; nothing where it is one second. The cut does not depend on the
/// clock.
pub(super) fn halves(window: &Range) -> Option<[Range; 2]> {
    middle(window, bounds_until(window, LIKELY_LAST))
}

/// Cuts `window`, which reaches from `low` to `high`, in two in the middle.
fn middle(window: &Range, (low, high): (i64, i64)) -> Option<[Range; 2]> {
    // Between two neighbouring seconds lie fractions: such a window must stay whole.
    if high - low <= 1 {
        return None;
    }
    let parts = split_at(window, &[i64::midpoint(low, high)]);
    parts.try_into().ok()
}

/// Returns the two seconds of a window of neighbouring ones; nothing where it is one.
pub(super) fn single_seconds(window: &Range) -> Option<[Range; 2]> {
    let (low, high) = bounds_until(window, LIKELY_LAST);
    let single = |second: i64| Range {
        start: Some(second),
        end: Some(second),
        excludes_end: false,
    };
    (high - low == 1).then(|| [single(low), single(high)])
}

/// Cuts `window` in two in the middle; nothing where it is no longer than so many seconds.
pub(crate) fn halves_of_long(window: &Range, seconds: i64) -> Option<[Range; 2]> {
    let (low, high) = bounds(window);
    (high - low > seconds)
        .then(|| middle(window, (low, high)))
        .flatten()
}

/// Cuts `window` at `bounds`, which lie inside of it and ascend.
pub(super) fn split_at(window: &Range, bounds: &[i64]) -> Vec<Range> {
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
    let (low, high) = bounds(window);
    let mut sample = seen.to_vec();
    sample.sort_unstable();
    let mut bounds: Vec<i64> = (1..EVEN_PARTS)
        .filter_map(|part| sample.get(part * sample.len() / EVEN_PARTS).copied())
        .filter(|bound| (low + 1..high).contains(bound))
        .collect();
    bounds.dedup();
    (!bounds.is_empty()).then(|| split_at(window, &bounds))
}

/// Cuts a window of which `pages` have come, the last of them created at `seen`, so that each part has
/// a few; nothing where it is nearly done, or cannot be cut.
pub(super) fn parts(
    window: &Range,
    pages: u64,
    seen: &[i64],
    newest_first: bool,
) -> Option<Vec<Range>> {
    let (low, high) = bounds(window);
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
    if expected < pages + PART_PAGES {
        return None;
    }
    let count = (expected / PART_PAGES).clamp(2, MAX_PARTS).min(length);
    let bounds = (1..count).map(|part| {
        low + i64::try_from(u128::from(length) * u128::from(part) / u128::from(count))
            .unwrap_or_default()
    });
    let mut parts = split_at(window, &bounds.collect::<Vec<_>>());
    if newest_first {
        parts.reverse();
    }
    Some(parts)
}

/// Returns the bounds of a window, guessed where they are open.
pub(super) fn bounds(window: &Range) -> (i64, i64) {
    bounds_until(window, Utc::now().timestamp())
}

/// Returns the bounds of a window, guessed where they are open: an open end is taken for `last`.
fn bounds_until(window: &Range, last: i64) -> (i64, i64) {
    let high = window.end.unwrap_or(match window.start {
        Some(start) if start >= last - 1 => LAST,
        _ => last,
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

    fn range(start: Option<i64>, end: Option<i64>) -> Range {
        Range {
            start,
            end,
            excludes_end: false,
        }
    }

    fn bounds(parts: &[Range]) -> Vec<Option<i64>> {
        parts[1..].iter().map(|part| part.start).collect()
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

    #[test]
    fn halves_do_not_depend_on_the_clock() {
        let cut = |start, end| halves(&range(start, end)).map(|[earlier, _]| earlier.end);
        let middle = i64::midpoint(LIKELY_FIRST, LIKELY_LAST);
        assert_eq!(cut(None, None), Some(Some(middle)));
        let start = 1_700_000_000;
        let middle = i64::midpoint(start, LIKELY_LAST);
        assert_eq!(cut(Some(start), None), Some(Some(middle)));
        let middle = i64::midpoint(LIKELY_LAST, LAST);
        assert_eq!(cut(Some(LIKELY_LAST), None), Some(Some(middle)));
    }
}
