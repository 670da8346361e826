//! Windows: parts of a date range, how to walk them, and how to split them.
//!
//! Parts share their bounds, because a batch created between two whole seconds would otherwise be missed. The
//! interface does not say which date the service compares, so dates only suggest where to split: the parts
//! always cover the whole window.

use chrono::Utc;

use crate::batch::range::{LAST_SECOND, Range};

/// The first second of the year 1.
const FIRST: i64 = -62_135_596_800;
/// The year 2000. An open start is searched from here first.
pub(super) const LIKELY_FIRST: i64 = 946_684_800;
/// The year 2100, used for an open end if the split determines the order of the output. The current time
/// would change the order from run to run.
pub(super) const LIKELY_LAST: i64 = 4_102_444_800;
/// Target number of pages per part of a dense window.
const PART_PAGES: u64 = 4;
/// Maximum number of parts of a dense window.
const MAX_PARTS: u64 = 64;
/// Number of parts of a range whose batches are not in date order.
const EVEN_PARTS: usize = 16;

/// Bytes of pages per worker that may be requested or wait, in all windows but the first; more for a few workers, whose
/// windows can be longer then.
const ROOM: usize = 15 << 17;
const ROOM_OF_FEW: usize = 7 << 19;
const FEW: usize = 4;

/// Returns the bytes of pages that may be requested or wait, in all windows but the first.
pub(super) fn room(workers: usize) -> usize {
    (ROOM * workers).max(ROOM_OF_FEW * workers.min(FEW))
}

/// A window that was fetched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchedWindow {
    pub(crate) window: Range,
    pub(crate) pages: u64,
    pub(crate) batches: u64,
    /// Whether version 1 may have returned only some of its batches.
    pub(crate) held_back: bool,
}

impl FetchedWindow {
    pub(super) fn new(window: Range) -> Self {
        Self {
            window,
            pages: 0,
            batches: 0,
            held_back: false,
        }
    }
}

/// How to walk a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalkMode {
    /// To the end, requesting each page only on demand.
    Lazy,
    /// To the end, unless the first page shows that several workers can share the work or, with `in_windows`,
    /// the first pages show that the range is long.
    Probe { workers: usize, in_windows: bool },
    /// To the end, unless there are far more pages than expected, or batches outside the window.
    Window { pages: u64, newest_first: bool },
    /// To the end in any case.
    Full,
    /// Version 1: a single response; the window is split if the response may be incomplete.
    V1(WindowHint),
}

impl WalkMode {
    /// A window of batches without date order. It cannot be split further by what was seen.
    pub(super) const UNORDERED: Self = Self::Window {
        pages: u64::MAX,
        newest_first: false,
    };

    /// A window with this expected number of pages. It is split again if it has far more.
    pub(super) fn window(pages: u64, newest_first: bool) -> Self {
        Self::Window {
            pages: 2 * pages + 4,
            newest_first,
        }
    }
}

/// What is known about a window of version 1 before it is requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WindowHint {
    /// Whether the service returns the newest batches first; `None` if not known yet.
    pub(super) newest_first: Option<bool>,
    /// Number of consecutive truncated responses before this window.
    pub(super) truncated: u32,
}

/// Splits `window` in half; `None` if it cannot be split. The result does not depend on the clock.
pub(super) fn halves(window: &Range) -> Option<[Range; 2]> {
    middle(window, bounds_until(window, LIKELY_LAST))
}

/// Splits `window`, which reaches from `low` to `high`, in half.
fn middle(window: &Range, (low, high): (i64, i64)) -> Option<[Range; 2]> {
    // A batch may lie between two adjacent seconds, so such a window is not split.
    if high - low <= 1 {
        return None;
    }
    let parts = split_at(window, &[i64::midpoint(low, high)]);
    parts.try_into().ok()
}

/// Returns the two seconds of a window of two adjacent ones; otherwise `None`.
pub(super) fn single_seconds(window: &Range) -> Option<[Range; 2]> {
    let (low, high) = bounds_until(window, LIKELY_LAST);
    let single = |second: i64| Range::between(Some(second), Some(second));
    (high - low == 1).then(|| [single(low), single(high)])
}

/// Splits `window` in half; `None` unless it is longer than `seconds`.
pub(crate) fn long_halves(window: &Range, seconds: i64) -> Option<[Range; 2]> {
    let (low, high) = bounds(window);
    (high - low > seconds)
        .then(|| middle(window, (low, high)))
        .flatten()
}

/// Splits `window` at `bounds`, which are ascending and inside it.
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

/// Splits `window` into parts of about equal size, judging by batches created at `seen` in no particular
/// order; `None` if it cannot be split.
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

/// Splits a window into parts of a few pages. `pages` were read so far, and the batches of the last one were
/// created at `seen`. Returns `None` if the window is nearly done or cannot be split.
pub(super) fn parts(
    window: &Range,
    pages: u64,
    seen: &[i64],
    newest_first: bool,
) -> Option<Vec<Range>> {
    let (low, high) = bounds(window);
    // A duplicate may follow newer batches.
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

/// Returns the bounds of a window; open ones are guessed.
pub(super) fn bounds(window: &Range) -> (i64, i64) {
    bounds_until(window, Utc::now().timestamp())
}

/// Returns the bounds of a window; open ones are guessed, and an open end is `last`.
fn bounds_until(window: &Range, last: i64) -> (i64, i64) {
    let high = window.end.unwrap_or(match window.start {
        Some(start) if start >= last - 1 => LAST_SECOND,
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

    fn bounds(parts: &[Range]) -> Vec<Option<i64>> {
        parts[1..].iter().map(|part| part.start).collect()
    }

    #[test]
    fn a_dense_window_is_cut_into_parts_of_a_few_pages() {
        let window = Range::between(Some(0), Some(1000));
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
        assert_eq!(
            super::parts(&Range::between(Some(7), Some(8)), 8, &[7], false),
            None
        );
    }

    #[test]
    fn one_second_is_not_cut() {
        assert_eq!(halves(&Range::between(Some(7), Some(8))), None);
        assert_eq!(halves(&Range::between(Some(7), Some(7))), None);
    }

    #[test]
    fn open_windows_stay_open_outside() {
        let [earlier, later] = halves(&Range::between(None, None)).expect("two");
        assert_eq!((earlier.start, later.end), (None, None));
        assert_eq!(earlier.end, later.start);
    }

    #[test]
    fn halves_do_not_depend_on_the_clock() {
        let cut = |start, end| halves(&Range::between(start, end)).map(|[earlier, _]| earlier.end);
        let middle = i64::midpoint(LIKELY_FIRST, LIKELY_LAST);
        assert_eq!(cut(None, None), Some(Some(middle)));
        let start = 1_700_000_000;
        let middle = i64::midpoint(start, LIKELY_LAST);
        assert_eq!(cut(Some(start), None), Some(Some(middle)));
        let middle = i64::midpoint(LIKELY_LAST, LAST_SECOND);
        assert_eq!(cut(Some(LIKELY_LAST), None), Some(Some(middle)));
    }
}
