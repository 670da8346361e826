//! The batches that need attention: which, in which order, and how many of them are listed.

use super::reading::{AttentionRow, attention, lead, older, parts, plain, section};
use super::{MADE, nursery, page, sound, usable, without_figures};
use crate::fake::Batch;
use crate::fake::live::DAY;
use crate::judge::Field;

/// The first second of the week of `MADE`.
const MONDAY: i64 = MADE - 2 * DAY - DAY / 2;

/// Spreads `rates` over four weeks, adds a batch with `rate` this week, and returns the reason why it is
/// listed, if any.
fn attention_reason(rates: &[&str], rate: &str) -> Option<String> {
    let items = rates
        .iter()
        .enumerate()
        .map(|(place, rate)| {
            let weeks = i64::try_from(place % 4).unwrap() + 1;
            usable(&format!("p{place:02}"), MADE - 7 * DAY * weeks, rate)
        })
        .chain([usable("now", MADE - 60, rate)]);
    let html = page(&nursery(items), &[]);
    let list = attention(&html);
    let mut rows = list.iter().flat_map(|crop| &crop.rows);
    let own = rows.find(|row| row.name == "lot now")?;
    Some(own.reason.clone())
}

#[test]
fn only_batches_far_below_their_crop_are_listed() {
    // Median 90, median deviation 2: only 83.99 is more than three deviations below.
    let spread = ["86.00", "88.00", "90.00", "92.00", "94.00"];
    assert_eq!(attention_reason(&spread, "84.00"), None);
    let low = |usual: &str| {
        Some(format!(
            "unusually low, the median of its crop is {usual} %"
        ))
    };
    assert_eq!(attention_reason(&spread, "83.99"), low("90.00"));
    // If all rates are equal, the threshold is one point.
    let alike = ["90.00"; 5];
    assert_eq!(attention_reason(&alike, "89.01"), None);
    assert_eq!(attention_reason(&alike, "89.00"), low("90.00"));
    assert_eq!(attention_reason(&alike, "99.00"), None, "above is fine");
    // Three batches are enough; two are not, and the whole range counts, with the batch itself: 86, 88 and 80.
    assert_eq!(attention_reason(&spread[..3], "70.00"), low("88.00"));
    assert_eq!(attention_reason(&spread[..2], "80.00"), None);
    assert_eq!(attention_reason(&spread[..2], "79.99"), low("86.00"));
    assert_eq!(attention_reason(&[], "10.00"), None, "nothing is invented");
}

#[test]
fn failures_are_always_listed() {
    let wide = ["10.00", "50.00", "80.00", "95.00", "99.00"];
    assert_eq!(attention_reason(&wide, "40.00"), None);
    let half = "less than half of its crop's usual 80.00 %";
    assert_eq!(attention_reason(&wide, "39.99").as_deref(), Some(half));
    for before in [&wide[..], &["0.00"; 5], &[]] {
        let reason = attention_reason(before, "0.00");
        assert_eq!(reason.as_deref(), Some("no usable seedlings"));
    }
    let dead = usable("now", MADE, "0.00").with("avg_germination_rate", "\"0.00\"");
    let weak = sound("weak", MADE).with("avg_germination_rate", "\"43.74\"");
    let others = (0..3).map(|number| sound(&format!("{number}"), MADE - 7 * DAY));
    let html = page(&nursery(others.chain([dead, weak])), &[]);
    let rows = &attention(&html)[0].rows;
    let reasons: Vec<&str> = rows.iter().map(|row| row.reason.as_str()).collect();
    let half = "germination less than half of the usual 87.50 %";
    assert_eq!(reasons, ["nothing germinated", half]);
    assert!(
        lead(&html).contains("2 batches of Tomato failed."),
        "{}",
        lead(&html)
    );
}

#[test]
fn older_steps_and_other_crops_are_not_compared() {
    // Before the four weeks, and in another crop, all is better.
    let mut field = Field::default();
    field.sow("Tomato", MONDAY - 5 * 7 * DAY, &["90.00"; 9]);
    field.sow("Leek", MONDAY - 7 * DAY, &["90.00"; 9]);
    field.sow("Tomato", MONDAY - 4 * 7 * DAY, &["52.00"; 3]);
    for (rate, reason) in [
        ("51.01", None),
        (
            "51.00",
            Some("unusually low, the median of its crop is 52.00 %"),
        ),
    ] {
        let mut field = field.clone();
        let html = page(&field.sow("Tomato", MADE, &[rate]).service(), &[]);
        let found = attention(&html);
        let found = found.first().map(|crop| crop.rows[0].reason.as_str());
        assert_eq!(found, reason, "{rate}");
        let text = plain(section(&html, "attention"));
        let none = "No batch of the newest week needs attention.";
        assert_eq!(text.contains(none), reason.is_none(), "{text}");
    }
}

#[test]
fn the_worst_batches_are_listed_first() {
    // Batches with warnings are sorted by rate.
    let warned = |id: &str, days: i64, rate: &str| {
        usable(id, MADE - days * DAY, rate).with("warnings", "true")
    };
    let nursery = nursery([
        warned("a", 1, "80.00"),
        warned("b", 1, "4.95"),
        warned("c", 70, "39.34"),
        warned("d", 40, "50.96"),
        warned("h", 20, "70.00"),
        warned("e", 140, "90.00"),
        usable("f", MADE - 200 * DAY, "90.00"),
        usable("g", MADE - 201 * DAY, "90.00"),
    ]);
    let html = page(&nursery, &[]);
    let names = |rows: &[AttentionRow]| -> Vec<String> {
        rows.iter().map(|row| row.name.clone()).collect()
    };
    let newest = attention(&html);
    assert_eq!(names(&newest[0].rows), ["lot b", "lot a"]);
    assert_eq!(newest[0].count, "2 of 2 batches");
    // Older steps are folded away, the newest first.
    assert_eq!(names(&older(&html)), ["lot h", "lot d", "lot c", "lot e"]);
    let text = plain(section(&html, "attention"));
    assert!(text.contains("Older weeks: 4 batches"), "{text}");
}

#[test]
fn crops_follow_in_the_order_of_the_table() {
    let mut field = Field::default();
    for (crop, newest) in [("A", "70.00"), ("B", "60.00"), ("C", "80.00")] {
        field.sow(crop, MONDAY - 7 * DAY, &["80.00"; 5]);
        field.sow(crop, MONDAY, &[newest; 3]);
    }
    field.batches.last_mut().unwrap().set("warnings", "true");
    let html = page(&field.service(), &[]);
    let found = attention(&html);
    let crops: Vec<(&str, &str)> = found
        .iter()
        .map(|crop| (crop.name.as_str(), crop.count.as_str()))
        .collect();
    assert_eq!(
        crops,
        [
            ("B", "3 of 3 batches"),
            ("A", "3 of 3 batches"),
            ("C", "1 of 3 batches")
        ]
    );
    // A crop that is down has one line, and short reasons for its batches.
    let line = "The crop is down: its median is 20.00 points below the usual 80.00 %. Its batches, the lowest first:";
    assert_eq!(found[0].down.as_deref(), Some(line));
    assert!(
        found[0]
            .rows
            .iter()
            .all(|row| row.reason == "unusually low")
    );
    assert_eq!(found[2].down, None);
    assert_eq!(found[2].rows[0].reason, "warning");
}

#[test]
fn a_crop_that_is_down_is_listed_even_if_no_batch_is() {
    // The deviation is 1, so that no batch is low from three points on. The median is 2.5 points lower.
    let before = ["79.00", "79.00", "80.00", "81.00", "81.00"];
    let newest = ["77.40", "77.50", "77.50", "77.50", "82.00"];
    let mut field = Field::default();
    field.sow("Leek", MONDAY - 7 * DAY, &before);
    field.sow("Leek", MONDAY, &newest);
    let html = page(&field.service(), &[]);
    let found = attention(&html);
    assert_eq!(found[0].count, "5 batches");
    let line = "The crop is down: its median is 2.50 points below the usual 80.00 %. Its batches, the lowest first:";
    assert_eq!(found[0].down.as_deref(), Some(line));
    let rates: Vec<&str> = found[0].rows.iter().map(|row| row.rate.as_str()).collect();
    assert_eq!(
        rates,
        ["77.40 %", "77.50 %", "77.50 %", "77.50 %", "82.00 %"]
    );
    let text = plain(section(&html, "attention"));
    let lead = "No batch of the newest week stands out, but a whole crop is down.";
    assert!(text.contains(lead), "{text}");
    // If some batches are low, the others follow them.
    field.batches[5].set("avg_usable_seedling_rate", "\"70.00\"");
    let found = attention(&page(&field.service(), &[]));
    assert_eq!(
        (found[0].count.as_str(), found[0].rows.len()),
        ("1 of 5 batches", 5)
    );
    assert_eq!(found[0].rows[0].rate, "70.00 %");
}

/// Returns a week of `count` batches that are all low, and weeks before that are not.
fn low_week(crop: &str, count: usize, rest: usize) -> Vec<Batch> {
    let mut field = Field::default();
    field.sow(crop, MONDAY - 7 * DAY, &["90.00"; 5]);
    field.sow(crop, MONDAY, &vec!["60.00"; count]);
    field.sow(crop, MONDAY, &vec!["90.00"; rest]);
    field.batches
}

#[test]
fn long_lists_are_folded_and_cut() {
    // Of a crop that is down, twelve batches are shown; otherwise five. At most a hundred are on the page.
    for (low, rest, shown) in [
        (12, 0, 12),
        (13, 0, 12),
        (130, 0, 12),
        (5, 9, 5),
        (6, 9, 5),
        (130, 140, 5),
    ] {
        let html = page(&nursery(low_week("Leek", low, rest)), &[]);
        let found = attention(&html);
        assert_eq!(found[0].down.is_some(), rest == 0);
        assert_eq!(found[0].count, format!("{low} of {} batches", low + rest));
        assert_eq!(found[0].rows.len(), low.min(100));
        let list = section(&html, "attention");
        let folded = parts(list, "<details><summary>", "</details>");
        let at_once = low.min(100)
            - folded
                .first()
                .map_or(0, |rows| rows.matches("<li>").count());
        assert_eq!(at_once, shown, "{low} low and {rest} others");
        let more = low.min(100) - shown;
        let words = parts(list, "<details><summary>", "</summary>");
        let expected = (more > 0).then(|| format!("{more} more"));
        assert_eq!(words, Vec::from_iter(expected));
        let left_out = format!("{} more not listed.", low.saturating_sub(100));
        assert_eq!(plain(list).contains(&left_out), low > 100);
    }
    // At most 500 in all.
    let mut all = Field::default();
    for crop in 0..7 {
        let name = format!("Crop {crop}");
        all.sow(&name, MONDAY - 7 * DAY, &["90.00"; 5]);
        all.sow(&name, MONDAY, &["60.00"; 90]);
    }
    let html = page(&all.service(), &[]);
    let found = attention(&html);
    let rows: Vec<usize> = found.iter().map(|crop| crop.rows.len()).collect();
    assert_eq!(rows, [90, 90, 90, 90, 90, 50]);
    assert!(lead(&html).contains("630 batches need attention."));
    let list = plain(section(&html, "attention"));
    assert!(
        list.contains("Batches of 1 more crop not listed."),
        "{list}"
    );
}

#[test]
fn older_batches_are_cut_and_counted() {
    let warned = |number: i64| {
        let created = MADE - 7 * DAY - number * 3600;
        sound(&format!("{number:02}"), created).with("warnings", "true")
    };
    for (count, words) in [
        (1, "Older weeks: 1 batch"),
        (50, "Older weeks: 50 batches"),
        (51, "Older weeks: 51 batches, 50 listed"),
    ] {
        let html = page(
            &nursery((0..count).map(warned).chain([sound("now", MADE)])),
            &[],
        );
        let rows = older(&html);
        assert_eq!(rows.len(), usize::try_from(count.min(50)).unwrap());
        assert_eq!(rows[0].name, "lot 00");
        let summary = parts(section(&html, "attention"), "<summary>", "</summary>");
        assert_eq!(summary.into_iter().map(plain).collect::<Vec<_>>(), [words]);
        assert_eq!(attention(&html), []);
    }
    let html = page(&nursery([sound("now", MADE)]), &[]);
    assert!(!section(&html, "attention").contains("Older"));
}

#[test]
fn a_row_has_link_day_and_comment() {
    let item = sound("a", MADE - DAY)
        .with("warnings", "true")
        .with("comment", "\"asked the <supplier>\"")
        .with("analysis_link", "\"https://analysis.example/1?a=1&b=2\"");
    let service = nursery([item]);
    let html = page(&service, &[]);
    let section = section(&html, "attention");
    let text = plain(section);
    let row = "lot a 81.25 % warning 9 June 2026, asked the <supplier>";
    assert!(text.contains(row), "{text}");
    assert!(section.contains("href=\"https://analysis.example/1?a=1&#38;b=2\""));
    // There is no address to show, and no comma before it.
    assert_eq!(page(&service, &["--emails"]), html);
    let item = sound("a", MADE).with("warnings", "true");
    let html = page(&nursery([without_figures(item)]), &[]);
    assert_eq!(
        attention(&html)[0].rows[0].reason,
        "warning, no measurements"
    );
}
