//! The creation dates: three years of working days, busy in spring and quiet around the new year.

use chrono::{Datelike as _, Days, NaiveDate, Weekday};
use fastrand::Rng;

use crate::server::rng::mix;

/// The first day of the three years. They are in the past, so that no date is in the future.
const FIRST_DAY: NaiveDate = NaiveDate::from_ymd_opt(2023, 11, 1).expect("a day");
const DAYS: u64 = 1096;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3600 * SECOND;
const DAY: i64 = 24 * HOUR;

/// The relative number of scans in each month, January first.
const MONTHS: [u64; 12] = [5, 9, 14, 13, 10, 8, 8, 9, 8, 6, 4, 3];

/// Returns the creation dates of `count` batches, in microseconds since 1970, ascending.
pub(super) fn moments(seed: u64, count: usize) -> Vec<i64> {
    let mut rng = Rng::with_seed(mix(seed, count as u64));
    // The cumulative weight at the end of each day.
    let before: Vec<u64> = (0..DAYS)
        .scan(0, |sum, day| {
            *sum += weight(FIRST_DAY + Days::new(day));
            Some(*sum)
        })
        .collect();
    let total = before[before.len() - 1];
    let first_midnight = FIRST_DAY
        .and_time(chrono::NaiveTime::MIN)
        .and_utc()
        .timestamp_micros();
    let mut moments: Vec<i64> = (0..count)
        .map(|_| {
            let share = rng.u64(0..total);
            let day = before.partition_point(|&sum| sum <= share);
            first_midnight + i64::try_from(day).expect("a few days") * DAY + time_of_day(&mut rng)
        })
        .collect();
    moments.sort_unstable();
    moments
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
