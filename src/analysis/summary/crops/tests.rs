use proptest::prelude::*;

use super::*;
use crate::analysis::statistics::{By, Groups};
use crate::batch::range::{Range, written};

const DAY: i64 = 86_400;
const WEEK: i64 = 7 * DAY;
/// 2026-05-04, a Monday.
const MONDAY: i64 = 1_777_852_800;
const NOW: i64 = MONDAY + 6 * DAY;

fn batch(crop: &str, created: i64, usable: &str) -> Batch {
    let crop = serde_json::json!(crop);
    let text = format!(
        r#"{{"batch_id":"1","batch_name":"n","batch_creation_date":"{}","crop_type":{crop},"number_of_images":1,"avg_germination_rate":"95.00","avg_usable_seedling_rate":{usable},"warnings":false}}"#,
        written(created)
    );
    Batch::read(&text).batch.expect("a batch")
}

/// All dates.
fn all(now: i64, zone: Zone) -> KnownSpan {
    KnownSpan::new(&Range::default(), &Range::default(), now, zone)
}

fn summary(batches: &[Batch]) -> CropSummary {
    let mut figures = CropFigures::new(all(NOW, Zone::UTC));
    for batch in batches {
        figures.add(batch);
    }
    figures.finish()
}

fn names(summary: &CropSummary) -> Vec<String> {
    let name = |row: &CropRow| match &row.name {
        CropName::Named(name) => name.clone(),
        other => format!("{other:?}"),
    };
    summary.crops.iter().map(name).collect()
}

#[test]
fn crops_are_judged_on_the_newest_week() {
    let weeks = |crop: &str, rates: [&str; 5]| -> Vec<Batch> {
        let of_week = |(week, rate): (i64, &str)| {
            let created = MONDAY - week * WEEK;
            (0..3)
                .map(|hour| batch(crop, created + hour * 3600, rate))
                .collect::<Vec<_>>()
        };
        let rates = rates.into_iter().filter(|rate| !rate.is_empty());
        (0..).zip(rates).flat_map(of_week).collect()
    };
    let usual = "\"80.00\"";
    let mut batches = weeks("Leek", ["\"70.50\"", usual, usual, usual, usual]);
    batches.extend(weeks("basil", [usual; 5]));
    batches.extend(weeks(
        "Aubergine",
        ["\"83.00\"", usual, usual, usual, usual],
    ));
    batches.push(batch("", MONDAY, usual));
    batches.push(batch("Pansy", MONDAY - 3 * WEEK, "null"));
    // A wrong clock does not decide which week is the newest.
    batches.push(batch("Tomato", MONDAY + 8 * WEEK, usual));
    let summary = summary(&batches);
    assert_eq!(
        names(&summary),
        ["Aubergine", "basil", "Leek", "Pansy", "Tomato", "Absent"]
    );
    let judged: Vec<(&str, Option<f64>, Option<f64>)> = summary
        .crops
        .iter()
        .map(|row| (row.verdict, row.newest_usable_rate, row.change))
        .collect();
    assert_eq!(
        judged,
        [
            ("up", Some(83.0), Some(3.0)),
            ("usual", Some(80.0), Some(0.0)),
            ("down", Some(70.5), Some(-9.5)),
            ("no batches", None, None),
            ("no batches", None, None),
            ("too few", Some(80.0), None),
        ]
    );
    let leek = &summary.crops[2];
    assert_eq!(
        (leek.batches, leek.usable_rate, leek.gap),
        (15, Some(80.0), Some(15.0))
    );
    assert_eq!(
        (leek.first.as_deref(), leek.last.as_deref()),
        (Some("2026-04-06"), Some("2026-05-04"))
    );
    assert_eq!((summary.total.batches, summary.total.verdict), (48, ""));
    assert!(
        summary.notes[1].starts_with("48 batches, scanned from 2026-04-06 to 2026-06-29 (UTC)")
    );
    let newest = "Newest week: 2026-W19, 2026-05-04 to 2026-05-10, 6 of 7 days so far (UTC)";
    assert!(summary.notes[2].starts_with(newest));
}

#[test]
fn the_number_of_batches_is_written_as_in_older_files() {
    let batches = vec![batch("Leek", MONDAY, "\"80.00\""); 1234];
    assert!(summary(&batches).notes[1].starts_with("1234 batches, scanned"));
}

#[test]
fn dates_in_the_future_do_not_change_a_verdict_in_any_order() {
    // A Wednesday: two batches of its week are in the future, and one is much later.
    let now = MONDAY + 2 * DAY;
    let mut batches: Vec<Batch> = (0..3)
        .flat_map(|hour| {
            let usual = batch("Leek", MONDAY - WEEK + hour, "\"80.00\"");
            [usual, batch("Leek", MONDAY + hour, "\"60.00\"")]
        })
        .collect();
    batches.push(batch("Leek", now + DAY, "\"61.00\""));
    batches.push(batch("Leek", MONDAY + 1000 * WEEK, "\"80.00\""));
    for _ in 0..2 {
        let mut figures = CropFigures::new(all(now, Zone::UTC));
        for batch in &batches {
            figures.add(batch);
        }
        let row = &figures.finish().crops[0];
        assert_eq!(row.verdict, "down");
        batches.reverse();
    }
}

#[test]
fn days_and_weeks_are_those_of_the_time_zone() {
    let zone = Zone::parse("Pacific/Auckland").expect("a zone");
    let mut figures = CropFigures::new(all(NOW, zone));
    // Still Sunday in UTC, but Monday there.
    figures.add(&batch("Leek", MONDAY - 3600, "null"));
    let summary = figures.finish();
    assert_eq!(summary.crops[0].first.as_deref(), Some("2026-05-04"));
    assert!(summary.notes[2].contains("2026-W19"), "{:?}", summary.notes);
    assert!(summary.notes[2].contains("(Pacific/Auckland)"));
}

#[test]
fn a_range_that_cuts_weeks_is_told() {
    for (start, end, share, cut) in [
        (None, None, "", ""),
        (Some(MONDAY - 4 * WEEK), None, "", ""),
        (
            Some(MONDAY - WEEK - DAY),
            Some(MONDAY + 3 * DAY),
            ", 3 of 7 days",
            "Of the previous four weeks, only one and a part of another are in this range.",
        ),
        (
            Some(MONDAY + 1),
            None,
            ", not quite 7 days",
            "Of the previous four weeks, none is in this range.",
        ),
    ] {
        let range = Range {
            start,
            end,
            excludes_end: true,
        };
        let now = MONDAY + 3 * WEEK;
        let mut figures =
            CropFigures::new(KnownSpan::new(&range, &Range::default(), now, Zone::UTC));
        figures.add(&batch("Leek", MONDAY, "null"));
        let notes = figures.finish().notes;
        let week = format!("Newest week: 2026-W19, 2026-05-04 to 2026-05-10{share} (UTC).");
        assert!(notes[2].starts_with(&week), "{notes:?}");
        assert_eq!(notes[3] == cut, !cut.is_empty(), "{notes:?}");
        assert_eq!(notes.len(), if cut.is_empty() { 4 } else { 5 });
    }
}

#[test]
fn no_batches_have_no_rows() {
    let summary = summary(&[]);
    assert!(summary.crops.is_empty());
    assert_eq!(summary.total.batches, 0);
}

#[test]
fn crops_beyond_the_limit_share_a_row() {
    let mut figures = CropFigures::new(all(NOW, Zone::UTC));
    figures.limit = 2;
    for (crop, rate) in [
        ("b", "\"10.00\""),
        ("a", "\"20.00\""),
        ("c", "\"30.00\""),
        ("d", "\"50.00\""),
        ("b", "\"30.00\""),
        ("", "\"90.00\""),
    ] {
        figures.add(&batch(crop, MONDAY, rate));
    }
    let summary = figures.finish();
    assert_eq!(names(&summary), ["a", "b", "Absent", "Others"]);
    let rates: Vec<(u64, Option<f64>)> = summary
        .crops
        .iter()
        .map(|row| (row.batches, row.usable_rate))
        .collect();
    assert_eq!(
        rates,
        [
            (1, Some(20.0)),
            (2, Some(20.0)),
            (1, Some(90.0)),
            (2, Some(40.0))
        ]
    );
    assert_eq!(
        (summary.total.batches, summary.total.usable_rate),
        (6, Some(30.0))
    );
    let note = summary.notes.last().expect("notes");
    assert!(note.contains("the first 3 that arrived"), "{note}");
}

#[test]
fn many_crops_and_weeks_need_little_memory() {
    let mut figures = CropFigures::new(all(NOW, Zone::UTC));
    for number in 0..20_000 {
        figures.add(&batch(
            &number.to_string(),
            MONDAY - number % 3 * WEEK,
            "null",
        ));
    }
    assert_eq!(figures.history.crops.len(), MAX_CROPS);
    let mut figures = CropFigures::new(all(NOW, Zone::UTC));
    for week in (0..10_000).rev() {
        for crop in ["a", "b"] {
            figures.add(&batch(crop, MONDAY - week / 2 * WEEK, "\"80.00\""));
        }
    }
    assert!(figures.history.groups <= 200, "{}", figures.history.groups);
    let summary = figures.finish();
    assert_eq!(summary.crops[1].batches, 10_000);
}

#[test]
fn names_are_one_line_of_limited_length_and_stay_different() {
    let long = "é".repeat(500_000);
    let crops = [
        format!("{long}1"),
        format!("{long}2"),
        "=1+1".to_owned(),
        "a\nb\u{1}\u{202e}c".to_owned(),
        r"a\nb\u{1}\u{202e}c".to_owned(),
        "é".repeat(MAX_NAME),
    ];
    let batches: Vec<Batch> = crops
        .iter()
        .map(|crop| batch(crop, MONDAY, "null"))
        .collect();
    let summary = summary(&batches);
    let mut shown = names(&summary);
    assert_eq!(shown.len(), crops.len());
    for name in &shown {
        assert!(name.chars().count() <= MAX_NAME + 19, "{name}");
        assert!(!name.chars().any(char::is_control), "{name}");
    }
    assert_eq!(
        shown
            .iter()
            .filter(|name| *name == r"a\nb\u{1}\u{202e}c")
            .count(),
        2
    );
    assert!(shown.contains(&"=1+1".to_owned()) && shown.contains(&"é".repeat(MAX_NAME)));
    shown.dedup();
    assert_eq!(shown.len(), crops.len() - 1);
}

proptest! {
    /// Whatever the order, the figures are those of `Groups`, and the verdicts those of a whole `History`.
    #[test]
    fn figures_and_verdicts_are_those_of_the_summary(
        rows in prop::collection::vec((0_usize..3, -60_i64..12, 0_u32..7, 7000_u32..9000, any::<bool>()), 1..120),
        max_groups in 1_usize..40,
    ) {
        let batches: Vec<Batch> = rows.iter().map(|(crop, week, day, rate, is_null)| {
            let rate = if *is_null { "null".to_owned() } else { format!("\"{}.{:02}\"", rate / 100, rate % 100) };
            let created = MONDAY + week * WEEK + i64::from(*day) * DAY;
            batch(["a", "B", ""][*crop], created, &rate)
        }).collect();
        let mut figures = CropFigures::new(all(NOW, Zone::UTC));
        let mut groups = Groups::new(vec![By::CropType]);
        let mut history = History::new(Step::Week, NOW);
        for batch in &batches {
            figures.history.merge_above(max_groups);
            figures.add(batch);
            let measurements = Measurements::of(batch);
            let second = measurements.created.as_ref().map(|created| created.second);
            groups.add(batch, second, &measurements).expect("few groups");
            let crop = batch.typed(CROP_TYPE).unwrap_or_default();
            prop_assert!(history.add(&crop, second, &measurements).is_some());
        }
        let targets = Targets::default();
        let newest = history.judge(&targets).expect("a week");
        let recent = figures.history.judge(&targets).expect("a week");
        prop_assert_eq!(recent.later("weeks"), newest.later("weeks"));
        let summary = figures.finish();
        let grouped = groups.finish();
        prop_assert_eq!(summary.crops.len(), grouped.groups.len());
        for (shown, group) in summary.crops.iter().zip(&grouped.groups) {
            let name = group.key[0].name().unwrap_or_default();
            let expected = row(&group.figures, newest.crop(&name), &Zone::UTC);
            prop_assert_eq!(CropRow { name: CropName::Absent, ..shown.clone() }, expected);
        }
        prop_assert_eq!(summary.total, row(&grouped.total.figures, None, &Zone::UTC));
    }
}
