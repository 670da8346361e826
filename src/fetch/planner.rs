//! Which windows many fetch side by side: each of a few pages, as far as can be told beforehand.
//!
//! The first page of a range shows how densely its batches lie there. From then on windows are cut
//! one behind another, as long as what was found lately lets expect; after a stretch without
//! anything, longer and longer. Together they cover all of the range, whatever the guesses.

use chrono::Utc;

use super::window::{self, LIKELY_FIRST, WalkMode};
use crate::batch::page::PageSpan;
use crate::batch::range::Range;

/// The most pages that a window should have; fewer where they are large, because all of a window may
/// have to wait for those before it.
const PAGES: f64 = 4.0;
/// A little less than whole pages: what is just too much costs a request.
const SLACK: f64 = 0.1;
/// So many batches in order are no chance.
const PROOF: usize = 8;
/// With fewer pages than these in all, nobody shares the work.
const WORTHWHILE: f64 = 6.0;
/// So many pages are remembered, the furthest ones; each counts for so much of the next one.
const MEMORY: usize = 8;
const WEIGHT: f64 = 0.75;

pub(super) struct WindowPlanner {
    whole: Range,
    newest_first: bool,
    workers: usize,
    /// Batches in a page.
    page: f64,
    /// The most pages that a window should have.
    pages: f64,
    /// Where the batches begin.
    near: i64,
    /// Where the windows so far end.
    reached: i64,
    /// Where the batches end, as far as that can be guessed.
    far: i64,
    /// The bound that the next window begins with; nothing where it is open.
    bound: Option<i64>,
    handed_out: usize,
    ended: bool,
    /// What was found furthest on the way, the furthest first.
    found: Vec<Density>,
    /// Windows without anything in them, one after another.
    empty: i32,
}

/// So many batches in so many seconds, up to there.
#[derive(Clone, Copy)]
struct Density {
    place: i64,
    batches: f64,
    seconds: f64,
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "these are guesses about seconds and batches"
)]
impl WindowPlanner {
    /// Makes a plan for `whole`, whose first page of so many `bytes` was created at `seen`; nothing where it comes in no
    /// order of time (then one window after another would change the order), or is too little.
    pub(super) fn new(
        whole: Range,
        seen: &[i64],
        bytes: usize,
        workers: usize,
        room: usize,
    ) -> Option<Self> {
        let (&first, &last) = (seen.first()?, seen.last()?);
        let newest_first = first > last;
        let ordered = if newest_first {
            seen.iter().rev().is_sorted()
        } else {
            seen.is_sorted()
        };
        let near = first.clamp(
            whole.start.unwrap_or(i64::MIN),
            whole.end.unwrap_or(i64::MAX),
        );
        let now = Utc::now().timestamp();
        let far = if newest_first {
            whole.start.unwrap_or(LIKELY_FIRST)
        } else {
            // What lies in the future is found by the last window.
            whole.end.unwrap_or(now).min(now.max(last))
        };
        let mut plan = Self {
            whole,
            newest_first,
            workers,
            page: seen.len() as f64,
            // Some windows turn out larger, and still have to find room.
            pages: (room / bytes.max(1) * 2 / 3).max(1) as f64,
            near,
            reached: near,
            far,
            bound: if newest_first { whole.end } else { whole.start },
            handed_out: 0,
            ended: false,
            found: Vec::new(),
            empty: 0,
        };
        plan.sighted(PageSpan {
            first,
            last,
            batches: seen.len(),
        });
        let worthwhile = plan.density() * plan.left() >= WORTHWHILE * plan.page;
        // One second says nothing of an order.
        (ordered && first != last && seen.len() >= PROOF && worthwhile).then_some(plan)
    }

    /// Batches in a second, where the windows end.
    fn density(&self) -> f64 {
        let (mut batches, mut seconds, mut weight) = (0.0, 0.0, 1.0);
        for found in &self.found {
            batches += found.batches * weight;
            seconds += found.seconds * weight;
            weight *= WEIGHT;
        }
        // Even where nothing was found there may be something.
        (batches / seconds).max(1e-9)
    }

    /// Seconds that are still to be handed out.
    fn left(&self) -> f64 {
        let left = if self.newest_first {
            self.reached - self.far
        } else {
            self.far - self.reached
        };
        left.max(0) as f64
    }

    /// Returns the next window, and how far to walk in it.
    pub(super) fn next(&mut self) -> Option<(Range, WalkMode)> {
        if self.ended {
            return None;
        }
        let left = self.left();
        let a_page = self.page / self.density();
        // Small ones at first, until there is more to judge by, and towards the end, so that nobody is
        // left with a large one.
        let share = left / a_page / self.workers as f64;
        let most = if self.handed_out < self.workers {
            1.0
        } else {
            self.pages.min(PAGES)
        };
        let pages = share.clamp(1.0, most).floor();
        self.handed_out += 1;
        let usual = (pages - SLACK) * a_page * 2_f64.powi(self.empty);
        let most = (left / self.workers as f64).max(a_page);
        let length = usual.min(most).max(1.0).round();
        let mut window = self.whole;
        if length >= left * 0.8 {
            self.ended = true;
            self.reached = self.far;
        } else {
            let step = length as i64;
            self.reached += if self.newest_first { -step } else { step };
        }
        // All but the last end where the next one begins.
        let end = (!self.ended).then_some(self.reached);
        if self.newest_first {
            (window.start, window.end) = (end.or(self.whole.start), self.bound);
        } else {
            (window.start, window.end) = (self.bound, end.or(self.whole.end));
        }
        window.excludes_end = self.whole.excludes_end && window.end == self.whole.end;
        self.bound = end;
        Some((window, WalkMode::share(pages as u64, self.newest_first)))
    }

    /// Takes into account what was read.
    pub(super) fn sighted(&mut self, page: PageSpan) {
        let (batches, seconds) = (
            page.batches as f64,
            page.last.abs_diff(page.first).max(1) as f64,
        );
        self.remember(page.last, batches, seconds);
        self.empty = 0;
    }

    /// Takes into account that a window had nothing in it.
    pub(super) fn empty(&mut self, window: &Range) {
        let (low, high) = window::extent(window);
        // Where batches begin is known better than where their range does.
        let (low, high) = if self.newest_first {
            (low, high.min(self.near))
        } else {
            (low.max(self.near), high)
        };
        let place = if self.newest_first { low } else { high };
        self.remember(place, 0.0, (high - low).max(1) as f64);
        self.empty = (self.empty + 1).min(30);
    }

    fn remember(&mut self, place: i64, batches: f64, seconds: f64) {
        let further = |other: &Density| {
            if self.newest_first {
                other.place < place
            } else {
                other.place > place
            }
        };
        let rank = self.found.iter().filter(|other| further(other)).count();
        let found = Density {
            place,
            batches,
            seconds,
        };
        self.found.insert(rank, found);
        self.found.truncate(MEMORY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ROOM: usize = 5 << 19;
    const DAY: i64 = 86_400;
    const FIRST: i64 = 1_700_000_000;

    fn range(start: Option<i64>, end: Option<i64>) -> Range {
        Range {
            start,
            end,
            excludes_end: false,
        }
    }

    /// Plans for batches created at `seconds` (ascending), in pages of `page`; returns the windows with
    /// what is in them. So many windows are handed out before the first is known as there are workers.
    fn windows(
        seconds: &[i64],
        whole: Range,
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
        let all = inside(&whole);
        let Some(mut plan) =
            WindowPlanner::new(whole, &all[..page.min(all.len())], 600_000, workers, ROOM)
        else {
            return vec![(whole, all.len() as u64)];
        };
        let mut windows: Vec<(Range, u64)> = Vec::new();
        while let Some((window, _)) = plan.next() {
            windows.push((window, inside(&window).len() as u64));
            assert!(windows.len() < 20_000, "it never ends");
            if windows.len() >= workers {
                let (window, ..) = windows[windows.len() - workers];
                let inside = inside(&window);
                if inside.is_empty() {
                    plan.empty(&window);
                }
                for page in inside.chunks(page) {
                    let (first, last) = (page[0], page[page.len() - 1]);
                    plan.sighted(PageSpan {
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

    #[test]
    fn even_data_costs_few_requests_more_than_its_pages() {
        let seconds: Vec<i64> = (0..100_000).map(|number| FIRST + number * 900).collect();
        for (workers, newest_first) in [(2, false), (8, false), (16, false), (8, true)] {
            let windows = windows(
                &seconds,
                range(None, Some(FIRST + 100_000 * 900)),
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
            range(Some(FIRST - 400 * DAY), Some(FIRST + 2000 * DAY)),
            1000,
            4,
            false,
        );
        let requests = requests(&windows, 1000);
        assert!(requests < 120, "{requests} requests");
    }

    #[test]
    fn what_is_small_or_in_no_order_is_for_one() {
        let seconds: Vec<i64> = (0..2500).map(|number| FIRST + number * 900).collect();
        let whole = range(Some(FIRST), Some(FIRST + 2500 * 900));
        assert!(
            WindowPlanner::new(whole, &seconds[..1000], 600_000, 8, ROOM).is_none(),
            "two pages and a half"
        );
        let later = range(Some(FIRST), Some(FIRST + 25_000 * 900));
        assert!(WindowPlanner::new(later, &seconds[..1000], 600_000, 8, ROOM).is_some());
        let mut mixed = seconds[..1000].to_vec();
        mixed.swap(3, 900);
        assert!(WindowPlanner::new(later, &mixed, 600_000, 8, ROOM).is_none());
        assert!(WindowPlanner::new(later, &[], 1, 8, ROOM).is_none());
    }

    proptest! {
        #[test]
        fn windows_cover_the_range_and_share_their_bounds(
            mut gaps in prop::collection::vec(prop_oneof![0_i64..5, 0_i64..50_000, 0_i64..90 * DAY], 50..300),
            page in PROOF..30, workers in 1_usize..9,
            open_start: bool, open_end: bool, newest_first: bool,
        ) {
            gaps[0] = 0;
            let seconds: Vec<i64> = gaps.iter().scan(FIRST, |second, gap| { *second += gap; Some(*second) }).collect();
            let last = seconds[seconds.len() - 1];
            let whole = range((!open_start).then_some(FIRST - 7), (!open_end).then_some(last + 7));
            let mut windows = windows(&seconds, whole, page, workers, newest_first);
            if newest_first && windows.len() > 1 {
                windows.reverse();
            }
            prop_assert_eq!(windows[0].0.start, whole.start);
            prop_assert_eq!(windows[windows.len() - 1].0.end, whole.end);
            for pair in windows.windows(2) {
                prop_assert!(pair[0].0.end.is_some());
                prop_assert_eq!(pair[0].0.end, pair[1].0.start);
            }
        }
    }
}
