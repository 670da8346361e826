//! What a report says about the demo batches, computed from their JSON with plain floats.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::crops::TROUBLED;

const DEFAULT: usize = 250;
const OUT_OF_SEASON: &str = "Chicorée";

/// The usable rates of each crop in each week; `None` for a batch without one. Weeks are counted back from the newest.
type Weeks = BTreeMap<String, BTreeMap<i64, Vec<Option<f64>>>>;

fn weeks(seed: u64, count: usize) -> Weeks {
    let catalog = super::generate(seed, count, false);
    let text = catalog.slices(0..catalog.len()).concat();
    let batches: Vec<Value> =
        serde_json::from_slice(&[b"[", &text[..], b"]"].concat()).expect("a list");
    assert_eq!(batches.len(), count);
    let week = |batch: &Value| {
        let created = batch["batch_creation_date"].as_str().expect("a date");
        let created: DateTime<Utc> = created.parse().expect("a date");
        // 1970 began on a Thursday.
        (created.timestamp().div_euclid(86_400) + 3).div_euclid(7)
    };
    let newest = batches.iter().map(week).max().unwrap_or_default();
    let mut weeks = Weeks::new();
    for batch in &batches {
        let Some(crop) = batch["crop_type"].as_str() else {
            continue;
        };
        let rate = batch["avg_usable_seedling_rate"].as_str();
        let ago = newest - week(batch);
        let crop = weeks.entry(crop.to_owned()).or_default();
        crop.entry(ago)
            .or_default()
            .push(rate.map(|rate| rate.parse().expect("a rate")));
    }
    weeks
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len() - 1;
    f64::midpoint(values[last / 2], values[last.div_ceil(2)])
}

/// Returns the change of the newest week against the four weeks before, and its standard error.
fn change(weeks: &BTreeMap<i64, Vec<Option<f64>>>) -> Option<(f64, f64)> {
    let rates = |range: std::ops::RangeInclusive<i64>| -> Vec<f64> {
        weeks
            .range(range)
            .flat_map(|(_, rates)| rates)
            .flatten()
            .copied()
            .collect()
    };
    let (newest, before) = (rates(0..=0), rates(1..=4));
    if newest.len() < 3 || before.len() < 3 {
        return None;
    }
    let usual = median(before.clone());
    let deviation = median(before.iter().map(|rate| (rate - usual).abs()).collect());
    let count = f64::from(u32::try_from(newest.len()).expect("few"));
    Some((
        median(newest) - usual,
        1.4826 * deviation * 1.2533 / count.sqrt(),
    ))
}

/// Returns the crops whose newest week is not as usual: at least two points and three standard errors from it.
fn unusual(weeks: &Weeks) -> Vec<&str> {
    let is_unusual = |weeks: &BTreeMap<i64, Vec<Option<f64>>>| {
        change(weeks).is_some_and(|(points, error)| points.abs() >= f64::max(2.0, 3.0 * error))
    };
    let unusual = weeks.iter().filter(|(_, weeks)| is_unusual(weeks));
    unusual.map(|(crop, _)| crop.as_str()).collect()
}

#[test]
fn one_crop_is_in_trouble_by_default() {
    let weeks = weeks(1, DEFAULT);
    assert_eq!(unusual(&weeks), [TROUBLED]);
    for (crop, weeks) in &weeks {
        let count = |week: i64| weeks.get(&week).map_or(0, Vec::len);
        if crop == OUT_OF_SEASON {
            assert_eq!((count(0), count(1)), (0, 3));
            continue;
        }
        let counts: Vec<usize> = (0..6).map(count).collect();
        assert!(
            counts[..5].iter().all(|count| *count >= 4),
            "{crop}: {counts:?}"
        );
        assert!(counts[5] >= 3, "{crop}: {counts:?}");
        let (points, error) = change(weeks).expect("enough batches");
        if crop == TROUBLED {
            assert!((-11.0..-9.0).contains(&points), "{crop}: {points}");
            assert!(points < -6.0 * error, "{crop}: {points}, {error}");
        } else {
            assert!(
                points.abs() < 1.8 && points.abs() < 2.0 * error,
                "{crop}: {points}, {error}"
            );
        }
    }
    let rates = |crop: &str, week| weeks[crop][&week].iter().flatten().copied();
    let far_lower = rates(TROUBLED, 0).filter(|rate| *rate < 60.0).count();
    assert_eq!(far_lower, 3);
    let all = weeks
        .values()
        .flat_map(|weeks| weeks.values().flatten().flatten());
    let dead = all.filter(|rate| **rate == 0.0).count();
    assert!((1..=2).contains(&dead), "{dead}");
    assert!(rates(TROUBLED, 0).any(|rate| rate == 0.0));
}

#[test]
fn other_seeds_have_the_same_crop_in_trouble() {
    let mut others = Vec::new();
    for seed in 0..50 {
        let weeks = weeks(seed, DEFAULT);
        let unusual = unusual(&weeks);
        assert!(unusual.contains(&TROUBLED), "{seed}: {unusual:?}");
        others.extend(
            unusual
                .into_iter()
                .filter(|crop| *crop != TROUBLED)
                .map(str::to_owned),
        );
    }
    // By chance, rarely.
    assert!(others.len() <= 2, "{others:?}");
}

#[test]
fn other_counts_tell_the_same_story_as_soon_as_there_are_enough_batches() {
    for count in [0, 1, 2, 20] {
        assert!(unusual(&weeks(1, count)).is_empty(), "{count}");
    }
    for count in [80, 100, 249, 251, 1000, 1999, 2000, 5000, 50_000] {
        let weeks = weeks(1, count);
        assert_eq!(unusual(&weeks), [TROUBLED], "{count}");
        let (points, _) = change(&weeks[TROUBLED]).expect("enough batches");
        assert!((-13.0..-7.0).contains(&points), "{count}: {points}");
        assert!(!weeks[OUT_OF_SEASON].contains_key(&0), "{count}");
        assert_eq!(weeks.len(), if count < 2000 { 7 } else { 16 }, "{count}");
        if count < 50_000 {
            continue;
        }
        // Most are spread over the three years.
        let newest: usize = weeks
            .values()
            .flat_map(|weeks| weeks.range(0..12))
            .map(|(_, rates)| rates.len())
            .sum();
        assert!(newest < 50_000 / 10, "{newest}");
    }
}
