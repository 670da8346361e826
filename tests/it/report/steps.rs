//! Steps of time: which are compared, partial or in the future.

use super::attention::body_rows;
use super::{MADE, facts, findings, nursery, page, section, sound, tiles, usable};
use crate::archives::ArchiveFile;
use crate::fake::live::{DAY, LiveService};
use crate::fake::second;

/// Returns a nursery with `counts` batches per week, all on Thursday, the last full week first.
pub(super) fn weeks(counts: &[i64]) -> LiveService {
    let thursday = second("2026-06-04T06:00:00Z");
    let items = counts.iter().zip(0..).flat_map(|(count, weeks)| {
        (0..*count).map(move |number| {
            let created = thursday - 7 * DAY * weeks + number;
            sound(&format!("w{weeks}n{number}"), created)
        })
    });
    nursery(items.collect::<Vec<_>>())
}

#[test]
fn only_steps_entirely_in_the_range_are_compared() {
    let nursery = weeks(&[5, 3, 4, 2, 1, 7]);
    let end = ["--end", "2026-06-07"];
    for (start, one, several) in [
        ("2026-06-01", "· the week before is not in this range", ""),
        (
            "2026-05-26",
            "· the week before is only partly in this range",
            "",
        ),
        (
            "2026-05-20",
            "▲ 2 more than the week before",
            "· only one of the four weeks before is in this range",
        ),
        (
            "2026-05-18",
            "▲ 2 more than the week before",
            "▲ 1.5 more than the median of the two weeks before in this range",
        ),
        (
            "2026-05-11",
            "▲ 2 more than the week before",
            "▲ 2 more than the median of the three weeks before in this range",
        ),
        (
            "2026-05-04",
            "▲ 2 more than the week before",
            "▲ 2.5 more than the median of the four weeks before",
        ),
    ] {
        let html = page(&nursery, &[&["--start", start], &end[..]].concat());
        let batches = ["Batches", "5", one, several];
        let batches = batches.into_iter().filter(|words| !words.is_empty());
        assert_eq!(tiles(&html)[0], batches.collect::<Vec<_>>(), "{start}");
        let usable = &tiles(&html)[2];
        assert_eq!(usable[1], "81.25 %");
        let is_known = !one.starts_with('·');
        let expected = if is_known {
            "= same as the week before"
        } else {
            one
        };
        assert_eq!(usable[2], expected, "{start}");
        assert!(!html.contains("class=\"pill\""), "{start}");
    }
    // Without a range, the first step is complete and has no predecessor.
    let html = page(&weeks(&[5, 3]), &[]);
    assert_eq!(
        tiles(&html)[0],
        ["Batches", "5", "▲ 2 more than the week before"]
    );
    // Empty weeks are used for comparison if they are in the range.
    let html = page(&weeks(&[5]), &["--start", "2026-05-04"]);
    assert_eq!(
        tiles(&html)[0],
        [
            "Batches",
            "5",
            "▲ 5 more than the week before",
            "▲ 5 more than the median of the four weeks before"
        ]
    );
}

#[test]
fn a_step_cut_by_the_range_is_marked_as_partial() {
    let nursery = weeks(&[5, 3, 4]);
    for (args, part) in [
        (&["--end", "2026-06-04"][..], "4 of 7 days"),
        (&["--end", "2026-06-04T12:00:00Z"], "4 of 7 days"),
        (
            &["--start", "2026-06-03", "--end", "2026-06-07"],
            "5 of 7 days",
        ),
    ] {
        let html = page(&nursery, args);
        assert!(
            html.contains(&format!("<span class=\"pill\">{part}</span>")),
            "{args:?}"
        );
        let not_compared = format!("· {part}; not compared");
        assert_eq!(tiles(&html)[0], ["Batches", "5", &not_compared]);
        let comparison = &tiles(&html)[1][2];
        let is_known = args.len() == 2;
        assert_eq!(
            comparison == "= same as the week before",
            is_known,
            "{comparison}"
        );
    }
    let html = page(&nursery, &["--end", "2026-06-07"]);
    assert!(!html.contains("class=\"pill\""));
}

#[test]
fn an_archive_that_starts_or_ends_within_a_step_has_a_partial_step() {
    let nursery = nursery([sound("a", MADE - 9 * DAY), sound("b", MADE - 2 * DAY)]);
    let shelf = ArchiveFile::new();
    shelf.complete(&nursery, &["--start", "2026-06-03"]);
    let html = page(&nursery, &["--archive", shelf.path.to_str().unwrap()]);
    assert_eq!(
        tiles(&html)[1][2],
        "· the week before is only partly in this range"
    );
}

#[test]
fn a_batch_is_not_compared_with_a_partial_step() {
    let before =
        (0..3).map(|number| usable(&format!("p{number}"), MADE - (7 + number) * DAY, "90.00"));
    let nursery = nursery(before.chain([usable("now", MADE - 60, "50.00")]));
    for (start, noticed) in [("2026-06-01", true), ("2026-06-01T00:00:01Z", false)] {
        let html = page(&nursery, &["--start", start]);
        let list = section(&html, "attention");
        assert_eq!(list.contains("points below its crop"), noticed, "{start}");
        assert!(list.contains("Only weeks entirely in this range are compared."));
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
    let list = body_rows(section(&html, "attention"));
    let names: Vec<&str> = list.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(
        names,
        ["lot b", "lot a", "lot h", "lot c", "lot d", "lot e"]
    );
}

#[test]
fn a_future_batch_does_not_become_the_newest_step() {
    let items = [
        sound("a", MADE - DAY),
        sound("b", MADE - 8 * DAY),
        sound("late", second("2031-05-01T06:00:00Z")),
    ];
    let html = page(&nursery(items), &[]);
    assert!(html.contains("<title>Tray scans, Week 2026-W24</title>"));
    assert_eq!(tiles(&html)[0][1], "1");
    assert_eq!(tiles(&html)[1][2], "= same as the week before");
    assert_eq!(facts(&html)["Batches"], "3");
    assert_eq!(
        facts(&html)["Newest batch"],
        "2026-06-09 12:00 UTC, 24 hours before this report"
    );
    assert_eq!(
        findings(&html),
        ["1 batch was created in the future such as lot late"]
    );
    assert!(!section(&html, "trends").contains("2031"));
    // With only a future batch, the page has no step.
    let html = page(&nursery([sound("late", MADE + 30 * DAY)]), &[]);
    assert!(!html.contains("id=\"tiles\"") && html.contains("id=\"crops\""));
}
