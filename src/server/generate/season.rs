//! The creation dates: three years of working days, busy in spring and quiet around the new year.

use std::ops::Range;

use chrono::{Datelike as _, Days, NaiveDate, Weekday};
use fastrand::Rng;

/// The first day of the three years. They are in the past, so that no date is in the future.
const FIRST_DAY: NaiveDate = NaiveDate::from_ymd_opt(2023, 11, 1).expect("a day");
const DAYS: u64 = 1096;
/// The Monday of the last week.
const NEWEST_WEEK: NaiveDate = NaiveDate::from_ymd_opt(2026, 10, 26).expect("a day");

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3600 * SECOND;
const DAY: i64 = 24 * HOUR;

/// The relative number of scans in each month, January first.
const MONTHS: [u64; 12] = [5, 9, 14, 13, 10, 8, 8, 9, 8, 6, 4, 3];

/// Returns the creation dates of `count` batches, in microseconds since 1970, in no order. Each is in its own part of
/// the three years, so that even a few have no long gaps.
pub(super) fn moments(count: usize, rng: &mut Rng) -> Vec<i64> {
    let days = WeightedDays::new(FIRST_DAY, DAYS);
    let (total, parts) = (u128::from(days.total()), count as u128);
    let place = |part: u128| u64::try_from(total * part / parts).expect("at most the total");
    (0..parts)
        .map(|part| days.moment(place(part)..place(part + 1), rng))
        .collect()
}

/// Returns a creation date in a week that is counted back from the newest, which is zero.
pub(super) fn moment_in_week(week: u32, rng: &mut Rng) -> i64 {
    let monday = NEWEST_WEEK - Days::new(7 * u64::from(week));
    // The three years end on a Saturday.
    let days = if week == 0 { 6 } else { 7 };
    let days = WeightedDays::new(monday, days);
    days.moment(0..days.total(), rng)
}

/// Returns whether a creation date is in the newest week.
pub(super) fn is_newest_week(created: i64) -> bool {
    created >= midnight(NEWEST_WEEK)
}

/// Consecutive days, busy or quiet.
struct WeightedDays {
    first: NaiveDate,
    /// The sum of weights up to the end of each day.
    sums: Vec<u64>,
}

impl WeightedDays {
    fn new(first: NaiveDate, days: u64) -> Self {
        let sums = (0..days).scan(0, |sum, day| {
            *sum += weight(first + Days::new(day));
            Some(*sum)
        });
        Self {
            first,
            sums: sums.collect(),
        }
    }

    fn total(&self) -> u64 {
        self.sums[self.sums.len() - 1]
    }

    /// Returns a date within a range of the total weight.
    fn moment(&self, range: Range<u64>, rng: &mut Rng) -> i64 {
        // With very many batches, several have the same weight.
        let share = rng.u64(range.start..range.end.max(range.start + 1));
        let day = self.sums.partition_point(|&sum| sum <= share);
        midnight(self.first) + i64::try_from(day).expect("a few days") * DAY + time_of_day(rng)
    }
}

fn midnight(day: NaiveDate) -> i64 {
    let midnight = day.and_time(chrono::NaiveTime::MIN).and_utc();
    midnight.timestamp_micros()
}

fn weight(day: NaiveDate) -> u64 {
    let weekday = match day.weekday() {
        Weekday::Sun => 1,
        Weekday::Sat => 5,
        _ => 20,
    };
    MONTHS[day.month0() as usize] * weekday
}

/// Most scans are in working hours. A few are exactly at midnight or just before it, where daily exports
/// meet. Half have a fraction of a second.
fn time_of_day(rng: &mut Rng) -> i64 {
    let milliseconds = rng.i64(1..1000) * (SECOND / 1000);
    match rng.u32(0..100) {
        0 => 0,
        1 => DAY - SECOND,
        2 => DAY - SECOND + milliseconds,
        _ => {
            // Two draws, averaged: more at noon than at the ends of the day.
            let second = 5 * 3600 + i64::midpoint(rng.i64(0..13 * 3600), rng.i64(0..13 * 3600));
            second * SECOND + if rng.bool() { milliseconds } else { 0 }
        }
    }
}
