//! Plans the windows that workers fetch in parallel, each of a few pages.
//!
//! The first page of a range shows how dense its batches are. From then on, the planner cuts one window after
//! another, with a length estimated from the latest pages; after empty windows, the length grows. Together,
//! the windows always cover the whole range, no matter how good the estimates are.

use chrono::Utc;

use super::window::{self, LIKELY_FIRST, WalkMode};
use crate::batch::page::PageSpan;
use crate::batch::range::Range;

/// Maximum number of pages in a window. It is lower for large pages, because a whole window may have to wait
/// for the ones before it.
const MAX_PAGES: f64 = 4.0;
/// Bytes of all pages that may be received at the same time, if they are larger than usual.
const IN_FLIGHT: usize = 8 << 20;
const USUAL_PAGE: usize = 3 << 19;
/// Windows are a little shorter than whole pages: a batch too many costs another request.
const SLACK: f64 = 0.1;
/// Minimum number of batches that prove an order.
const MIN_BATCHES: usize = 8;
/// Minimum number of expected pages for parallel work.
const MIN_PAGES: f64 = 6.0;
/// Number of densities remembered, and the weight of each relative to the one after it.
const MAX_DENSITIES: usize = 8;
const WEIGHT: f64 = 0.75;

pub(super) struct WindowPlanner {
    range: Range,
    newest_first: bool,
    workers: usize,
    /// Batches per page.
    page: f64,
    /// Maximum number of pages in a window, given the page size.
    pages: f64,
    /// Maximum number of windows to walk at the same time, so that memory does not depend on the page size.
    pub(super) max_walks: usize,
    /// Creation date of the first batch.
    first_second: i64,
    /// End of the windows planned so far.
    reached: i64,
    /// Estimated creation date of the last batch.
    last_second: i64,
    /// Start of the next window; `None` if open.
    bound: Option<i64>,
    planned: usize,
    is_complete: bool,
    /// Latest densities, the furthest first.
    densities: Vec<Density>,
    /// Number of consecutive windows without batches.
    empty_windows: i32,
}

/// Number of batches in a number of seconds, up to `position`.
#[derive(Clone, Copy)]
struct Density {
    position: i64,
    batches: f64,
    seconds: f64,
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "estimates of seconds and batches"
)]
impl WindowPlanner {
    /// Plans `range`, whose first page has `bytes` bytes and batches created at `seen`. Returns `None` if the batches are not in date order
    /// (windows would then change the order), or if there are too few.
    pub(super) fn new(range: Range, seen: &[i64], bytes: usize, workers: usize) -> Option<Self> {
        let (&first, &last) = (seen.first()?, seen.last()?);
        let newest_first = first > last;
        let ordered = if newest_first {
            seen.iter().rev().is_sorted()
        } else {
            seen.is_sorted()
        };
        let first_second = first.clamp(
            range.start.unwrap_or(i64::MIN),
            range.end.unwrap_or(i64::MAX),
        );
        let now = Utc::now().timestamp();
        let last_second = if newest_first {
            range.start.unwrap_or(LIKELY_FIRST)
        } else {
            // Batches in the future are found by the last window.
            range.end.unwrap_or(now).min(now.max(last))
        };
        let mut planner = Self {
            range,
            newest_first,
            workers,
            page: seen.len() as f64,
            // Some windows turn out larger and still need room. One more than the workers is walked at a time.
            pages: (window::room(workers) * 3 / 4 / (workers + 1) / bytes.max(1)).max(1) as f64,
            max_walks: if bytes > USUAL_PAGE {
                (IN_FLIGHT / bytes).max(1)
            } else {
                usize::MAX
            },
            first_second,
            reached: first_second,
            last_second,
            bound: if newest_first { range.end } else { range.start },
            planned: 0,
            is_complete: false,
            densities: Vec::new(),
            empty_windows: 0,
        };
        planner.add_page(PageSpan {
            first,
            last,
            batches: seen.len(),
        });
        let worthwhile = planner.density() * planner.left() >= MIN_PAGES * planner.page;
        // Batches of a single second do not prove an order.
        (ordered && first != last && seen.len() >= MIN_BATCHES && worthwhile).then_some(planner)
    }

    /// Returns the number of batches per second at the end of the planned windows.
    fn density(&self) -> f64 {
        let (mut batches, mut seconds, mut weight) = (0.0, 0.0, 1.0);
        for densities in &self.densities {
            batches += densities.batches * weight;
            seconds += densities.seconds * weight;
            weight *= WEIGHT;
        }
        // Never zero: there may be batches after an empty window.
        (batches / seconds).max(1e-9)
    }

    /// Returns the number of seconds not planned yet.
    fn left(&self) -> f64 {
        let left = if self.newest_first {
            self.reached - self.last_second
        } else {
            self.last_second - self.reached
        };
        left.max(0) as f64
    }

    /// Returns the next window and how to walk it.
    pub(super) fn next(&mut self) -> Option<(Range, WalkMode)> {
        if self.is_complete {
            return None;
        }
        let left = self.left();
        let page_seconds = self.page / self.density();
        // Windows are small at the start, when little is known, and at the end, so that no worker is left
        // with a large one.
        let share = left / page_seconds / self.workers as f64;
        let most = if self.planned < self.workers {
            1.0
        } else {
            self.pages.min(MAX_PAGES)
        };
        let pages = share.clamp(1.0, most).floor();
        self.planned += 1;
        let usual = (pages - SLACK) * page_seconds * 2_f64.powi(self.empty_windows);
        let most = (left / self.workers as f64).max(page_seconds);
        let length = usual.min(most).max(1.0).round();
        let mut window = self.range;
        if length >= left * 0.8 {
            self.is_complete = true;
            self.reached = self.last_second;
        } else {
            let step = length as i64;
            self.reached += if self.newest_first { -step } else { step };
        }
        // Every window but the last ends where the next one starts.
        let end = (!self.is_complete).then_some(self.reached);
        if self.newest_first {
            (window.start, window.end) = (end.or(self.range.start), self.bound);
        } else {
            (window.start, window.end) = (self.bound, end.or(self.range.end));
        }
        window.excludes_end = self.range.excludes_end && window.end == self.range.end;
        self.bound = end;
        Some((window, WalkMode::window(pages as u64, self.newest_first)))
    }

    /// Adds the density of a page.
    pub(super) fn add_page(&mut self, page: PageSpan) {
        let (batches, seconds) = (
            page.batches as f64,
            page.last.abs_diff(page.first).max(1) as f64,
        );
        self.add_density(page.last, batches, seconds);
        self.empty_windows = 0;
    }

    /// Records that a window was empty.
    pub(super) fn add_empty(&mut self, window: &Range) {
        let (low, high) = window::bounds(window);
        // The first batch is a better bound than the start of the range.
        let (low, high) = if self.newest_first {
            (low, high.min(self.first_second))
        } else {
            (low.max(self.first_second), high)
        };
        let position = if self.newest_first { low } else { high };
        self.add_density(position, 0.0, (high - low).max(1) as f64);
        self.empty_windows = (self.empty_windows + 1).min(30);
    }

    fn add_density(&mut self, position: i64, batches: f64, seconds: f64) {
        let further = |other: &Density| {
            if self.newest_first {
                other.position < position
            } else {
                other.position > position
            }
        };
        let rank = self.densities.iter().filter(|other| further(other)).count();
        let densities = Density {
            position,
            batches,
            seconds,
        };
        self.densities.insert(rank, densities);
        self.densities.truncate(MAX_DENSITIES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY: i64 = 86_400;
    const FIRST: i64 = 1_700_000_000;

    /// Plans for batches created at `seconds` (ascending), in pages of `page`; returns the windows with their
    /// number of batches. As many windows are planned ahead as there are workers.
    fn windows(
        seconds: &[i64],
        range: Range,
        page: usize,
        workers: usize,
        newest_first: bool,
    ) -> Vec<(Range, u64)> {
        let inside = |window: &Range| -> Vec<i64> {
            let within = |second: &&i64| {
                window.start.is_none_or(|start| **second >= start)
                    && window.end.is_none_or(|end| **second <= end)
            };
            let mut inside: Vec<i64> = seconds.iter().filter(within).copied().collect();
            if newest_first {
                inside.reverse();
            }
            inside
        };
        let all = inside(&range);
        let Some(mut planner) =
            WindowPlanner::new(range, &all[..page.min(all.len())], 600_000, workers)
        else {
            return vec![(range, all.len() as u64)];
        };
        let mut windows: Vec<(Range, u64)> = Vec::new();
        while let Some((window, _)) = planner.next() {
            windows.push((window, inside(&window).len() as u64));
            assert!(windows.len() < 20_000, "the plan never ends");
            if windows.len() >= workers {
                let (window, ..) = windows[windows.len() - workers];
                let inside = inside(&window);
                if inside.is_empty() {
                    planner.add_empty(&window);
                }
                for page in inside.chunks(page) {
                    let (first, last) = (page[0], page[page.len() - 1]);
                    planner.add_page(PageSpan {
                        first,
                        last,
                        batches: page.len(),
                    });
                }
            }
        }
        windows
    }

    fn requests(windows: &[(Range, u64)], page: u64) -> u64 {
        windows.iter().map(|(_, count)| count / page + 1).sum()
    }

    /// A plan for one batch a second from `FIRST` on, in pages of a thousand.
    fn plan(seconds: i64, bytes: usize, workers: usize, newest_first: bool) -> WindowPlanner {
        let last = FIRST + seconds;
        let mut seen: Vec<i64> = (FIRST..FIRST + 1001).collect();
        if newest_first {
            seen = (last - 1000..=last).rev().collect();
        }
        let range = Range::between(Some(FIRST), Some(last));
        WindowPlanner::new(range, &seen, bytes, workers).expect("a plan")
    }

    /// Returns the lengths of all windows; too many if the plan never ends.
    fn lengths(mut planner: WindowPlanner) -> Vec<i64> {
        let windows = std::iter::from_fn(|| planner.next());
        windows
            .take(1000)
            .map(|(window, _)| window.end.expect("an end") - window.start.expect("a start"))
            .collect()
    }

    #[test]
    fn windows_are_small_at_the_start_and_at_the_end() {
        // The first page has 1001 batches in 1000 seconds: a page takes 1000 seconds.
        for newest_first in [false, true] {
            let lengths = lengths(plan(20_000, 800_000, 2, newest_first));
            // One page each for the workers, then two, as many as fit; one again when fewer than two are left for
            // each worker, and the rest.
            let expected = [&[900, 900][..], &[1900; 8], &[900, 900, 900, 300]].concat();
            assert_eq!(lengths, expected, "newest first: {newest_first}");
        }
        let small = lengths(plan(40_000, 1000, 1, false));
        assert_eq!(
            small[..4],
            [900, 3900, 3900, 3900],
            "four pages at the most"
        );
        let large = lengths(plan(40_000, 2 << 20, 1, false));
        assert_eq!(large[..4], [900; 4], "no more than there is room for");
    }

    #[test]
    fn empty_windows_make_the_next_ones_longer() {
        // Plans a million seconds, and returns the lengths of the first windows, all empty.
        let lengths = |workers: usize, windows: usize| {
            let mut planner = plan(1_000_000, 1000, workers, false);
            let lengths = (0..windows).map(|_| {
                let (window, _) = planner.next().expect("a window");
                planner.add_empty(&window);
                window.end.expect("an end") - window.start.expect("a start")
            });
            (lengths.collect::<Vec<i64>>(), planner)
        };
        let (alone, mut planner) = lengths(1, 3);
        // The page is further than the empty window, which counts three quarters: 1001 batches in 1675 seconds.
        assert_eq!(alone[..2], [900, 2 * 39 * 1675 / 10]);
        assert!(alone[2] > 4 * alone[1], "{alone:?}");
        planner.add_page(PageSpan {
            first: FIRST + 100_000,
            last: FIRST + 101_000,
            batches: 1001,
        });
        assert_eq!(planner.empty_windows, 0);
        // None is longer than the share of a worker: a quarter of what is left.
        let (four, _) = lengths(4, 4);
        let before: i64 = four[..3].iter().sum();
        assert_eq!(four[3], (1_000_000 - before + 2) / 4);
    }

    #[test]
    fn the_last_window_is_extended_rather_than_followed_by_a_short_one() {
        // One page of 900 seconds at a time. It is the last one if it covers four fifths of what is left.
        let last = |left: i64| lengths(plan(8 * 900 + left, 2 << 20, 1, false)).split_off(8);
        assert_eq!(last(1125), [1125]);
        assert_eq!(last(1126), [900, 226]);
        assert_eq!(last(700), [700]);
    }

    #[test]
    fn of_two_pages_with_the_same_end_the_later_one_counts_more() {
        for newest_first in [false, true] {
            let mut planner = plan(100_000, 1000, 2, newest_first);
            let last = planner.densities[0].position;
            for batches in [500, 700] {
                let first = if newest_first { last + 9 } else { last - 9 };
                planner.add_page(PageSpan {
                    first,
                    last,
                    batches,
                });
            }
            let batches: Vec<f64> = planner.densities.iter().map(|one| one.batches).collect();
            assert_eq!(batches, [700.0, 500.0, 1001.0]);
        }
    }

    #[test]
    fn the_furthest_pages_count_most() {
        for newest_first in [false, true] {
            let mut planner = plan(100_000, 1000, 2, newest_first);
            let at = |seconds: i64| {
                if newest_first {
                    FIRST + 100_000 - seconds
                } else {
                    FIRST + seconds
                }
            };
            // Twice as dense further on, whatever the order in which pages arrive.
            for seconds in [3000, 2000] {
                planner.add_page(PageSpan {
                    first: at(seconds - 1000),
                    last: at(seconds),
                    batches: 2002,
                });
            }
            let positions: Vec<i64> = planner.densities.iter().map(|one| one.position).collect();
            assert_eq!(positions, [at(3000), at(2000), at(1000)]);
            let batches = 2002.0 + 0.75 * 2002.0 + 0.5625 * 1001.0;
            let expected = batches / (1000.0 + 750.0 + 562.5);
            assert!((planner.density() - expected).abs() < 1e-9);
        }
    }

    #[test]
    fn only_the_last_window_excludes_the_end() {
        let mut planner = plan(20_000, 600_000, 2, false);
        planner.range.excludes_end = true;
        let windows = std::iter::from_fn(|| planner.next().map(|(window, _)| window));
        let windows: Vec<Range> = windows.take(1000).collect();
        let (last, others) = windows.split_last().expect("windows");
        assert!(last.excludes_end);
        assert!(others.iter().all(|window| !window.excludes_end));
    }

    #[test]
    fn large_pages_are_received_a_few_at_a_time() {
        let walks = |bytes| plan(100_000, bytes, 8, false).max_walks;
        assert_eq!(walks(600_000), usize::MAX);
        assert_eq!(walks(1 << 20), usize::MAX);
        assert_eq!((walks(2 << 20), walks(3 << 20), walks(9 << 20)), (4, 2, 1));
    }

    #[test]
    fn even_data_costs_few_requests_more_than_its_pages() {
        let seconds: Vec<i64> = (0..100_000).map(|number| FIRST + number * 900).collect();
        for (workers, newest_first) in [(2, false), (8, false), (16, false), (8, true)] {
            let windows = windows(
                &seconds,
                Range::between(None, Some(FIRST + 100_000 * 900)),
                1000,
                workers,
                newest_first,
            );
            let requests = requests(&windows, 1000);
            assert!(
                requests <= 130,
                "{requests} requests with {workers} workers"
            );
        }
    }

    #[test]
    fn empty_years_cost_few_requests() {
        let seconds: Vec<i64> = (0..20_000)
            .map(|number| FIRST + (number / 10_000) * 3650 * DAY / 2 + number % 10_000)
            .collect();
        let windows = windows(
            &seconds,
            Range::between(Some(FIRST - 400 * DAY), Some(FIRST + 2000 * DAY)),
            1000,
            4,
            false,
        );
        let requests = requests(&windows, 1000);
        assert!(requests < 120, "{requests} requests");
    }

    #[test]
    fn a_small_or_unordered_range_has_no_plan() {
        let seconds: Vec<i64> = (0..2500).map(|number| FIRST + number * 900).collect();
        let short = Range::between(Some(FIRST), Some(FIRST + 2500 * 900));
        assert!(
            WindowPlanner::new(short, &seconds[..1000], 600_000, 8).is_none(),
            "two pages and a half"
        );
        let later = Range::between(Some(FIRST), Some(FIRST + 25_000 * 900));
        assert!(WindowPlanner::new(later, &seconds[..1000], 600_000, 8).is_some());
        let mut mixed = seconds[..1000].to_vec();
        mixed.swap(3, 900);
        assert!(WindowPlanner::new(later, &mixed, 600_000, 8).is_none());
        assert!(WindowPlanner::new(later, &[], 1, 8).is_none());
    }

    proptest! {
        #[test]
        fn windows_cover_the_range_and_share_their_bounds(
            mut gaps in prop::collection::vec(prop_oneof![0_i64..5, 0_i64..50_000, 0_i64..90 * DAY], 50..300),
            page in MIN_BATCHES..30, workers in 1_usize..9,
            open_start: bool, open_end: bool, newest_first: bool,
        ) {
            gaps[0] = 0;
            let seconds: Vec<i64> = gaps.iter().scan(FIRST, |second, gap| { *second += gap; Some(*second) }).collect();
            let last = seconds[seconds.len() - 1];
            let range = Range::between((!open_start).then_some(FIRST - 7), (!open_end).then_some(last + 7));
            let mut windows = windows(&seconds, range, page, workers, newest_first);
            if newest_first && windows.len() > 1 {
                windows.reverse();
            }
            prop_assert_eq!(windows[0].0.start, range.start);
            prop_assert_eq!(windows[windows.len() - 1].0.end, range.end);
            for pair in windows.windows(2) {
                prop_assert!(pair[0].0.end.is_some());
                prop_assert_eq!(pair[0].0.end, pair[1].0.start);
            }
        }
    }
}
