//! Steps of time: named, cut by the range, still running or in the future.

use super::reading::{
    attention, column, crops, facts, findings, freshness, headings, lead, parts, plain, section,
    tiles,
};
use super::{MADE, MADE_TEXT, nursery, page, sound, usable};
use crate::archives::ArchiveFile;
use crate::fake::live::{DAY, LiveService};
use crate::fake::second;
use crate::judge::Field;

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

/// Returns how the page names the newest step.
fn period(html: &str) -> String {
    let period = parts(html, "<time class=\"period\"", "</time>")[0];
    plain(&format!("<{period}"))
}

#[test]
fn steps_have_calendar_names() {
    let items =
        ["2024-12-30T00:00:00Z", "2025-01-05T23:59:59Z"].map(|date| sound(date, second(date)));
    let nursery = nursery(items);
    for (step, iso, title, name, count) in [
        (
            "day",
            "2025-01-05",
            "5 January 2025",
            "5 January 2025:",
            "1",
        ),
        (
            "week",
            "2025-W01",
            "Week 1",
            "Week 1 (30 December 2024 to 5 January 2025):",
            "2",
        ),
        ("month", "2025-01", "January 2025", "January 2025:", "1"),
    ] {
        let html = page(&nursery, &["--step", step]);
        assert_eq!(period(&html), name);
        assert!(html.contains(&format!("<time class=\"period\" datetime=\"{iso}\">")));
        assert_eq!(tiles(&html)[0], ["Batches", count, "of 1 crop"]);
        let shown = plain(parts(&html, "<title>", "</title>")[0]);
        assert_eq!(shown, format!("Tray scans, {title}"));
        let heading = plain(parts(section(&html, "crops"), "<h2 id=\"crops\">", "</h2>")[0]);
        assert_eq!(heading, format!("By crop, newest {step}"));
    }
}

#[test]
fn the_newest_step_is_marked_as_running_until_it_ends() {
    // The week of 2026-06-01 ends when the week of `MADE` starts.
    let over = page(&nursery([sound("a", MADE - 7 * DAY)]), &[]);
    assert_eq!(period(&over), "Week 23 (1 to 7 June 2026):");
    assert_eq!(
        freshness(&over),
        "Newest batch: 3 June 2026, 12:00, 7 days ago"
    );
    let running = nursery([sound("a", MADE)]);
    for (step, name, share) in [
        (
            "day",
            "10 June 2026 (12 of 24 hours so far):",
            "12 of 24 hours so far",
        ),
        (
            "week",
            "Week 24 (8 to 14 June 2026, 3 of 7 days so far):",
            "3 of 7 days so far",
        ),
        (
            "month",
            "June 2026 (10 of 30 days so far):",
            "10 of 30 days so far",
        ),
    ] {
        let html = page(&running, &["--step", step]);
        assert_eq!(period(&html), name);
        assert_eq!(tiles(&html)[0][2], format!("of 1 crop, {share}"));
        let newest = format!("Newest batch: {MADE_TEXT}, less than an hour ago");
        assert_eq!(freshness(&html), newest);
    }
}

#[test]
fn only_batches_in_the_range_are_compared() {
    let mut field = Field::default();
    let thursday = second("2026-06-04T06:00:00Z");
    for (week, rate) in ["70.00", "80.00", "90.00", "90.00", "90.00", "10.00"]
        .into_iter()
        .enumerate()
    {
        let created = thursday - 7 * DAY * i64::try_from(week).unwrap();
        field.sow("Leek", created, &[rate; 3]);
    }
    let nursery = field.service();
    for (start, change, count) in [
        ("2026-06-01", "too few to compare", "–"),
        // Two of the three batches of the week before.
        ("2026-05-28T06:00:01Z", "too few to compare", "–"),
        ("2026-05-28", "▼ −10.00, down", "−10.00 points"),
        // Now the weeks before differ too much from each other.
        (
            "2026-05-18",
            "−15.00, varies too much to tell",
            "−15.00 points",
        ),
        ("2026-05-04", "▼ −20.00, down", "−20.00 points"),
        // The week before those four does not count.
        ("2026-01-01", "▼ −20.00, down", "−20.00 points"),
    ] {
        let html = page(&nursery, &["--start", start, "--end", "2026-06-07"]);
        assert_eq!(crops(&html)[0][2], change, "{start}");
        assert_eq!(tiles(&html)[1][..2], ["Usable", count], "{start}");
        assert_eq!(period(&html), "Week 23 (1 to 7 June 2026):");
    }
    // A batch is compared with the four weeks before too, as far as they are in the range.
    for (start, usual) in [("2026-05-28", "80.00"), ("2026-05-04", "90.00")] {
        let html = page(&nursery, &["--start", start, "--end", "2026-06-07"]);
        let line = attention(&html)[0].down.clone().unwrap();
        assert!(
            line.contains(&format!("below the usual {usual} %")),
            "{line}"
        );
    }
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
        (&["--end", "2026-06-07T23:59:58Z"], "not quite 7 days"),
    ] {
        let html = page(&nursery, args);
        assert_eq!(
            period(&html),
            format!("Week 23 (1 to 7 June 2026, {part}):")
        );
        let note = format!("of 1 crop, {part}");
        assert_eq!(tiles(&html)[0], ["Batches", "5", &note]);
        // The rates are compared all the same, if there are any before.
        let change = &column(&html, "compared with its own previous four weeks")["Tomato"];
        let is_known = !args.contains(&"--start");
        assert_eq!(change == "0.00, as usual", is_known, "{change}");
    }
    let html = page(&nursery, &["--end", "2026-06-07"]);
    assert_eq!(period(&html), "Week 23 (1 to 7 June 2026):");
}

#[test]
fn an_archive_that_starts_within_a_step_has_a_partial_step() {
    let nursery = nursery([sound("a", MADE - 9 * DAY), sound("b", MADE - 7 * DAY)]);
    for (start, part) in [("2026-06-01", ""), ("2026-06-03", ", 5 of 7 days")] {
        let shelf = ArchiveFile::new();
        shelf.complete(&nursery, &["--start", start]);
        let html = page(&nursery, &["--archive", shelf.path.to_str().unwrap()]);
        assert_eq!(period(&html), format!("Week 23 (1 to 7 June 2026{part}):"));
    }
}

#[test]
fn a_future_batch_does_not_become_the_newest_step() {
    let items = [
        sound("a", MADE - DAY),
        sound("b", MADE - 8 * DAY),
        sound("late", second("2031-05-01T06:00:00Z")),
    ];
    let html = page(&nursery(items), &[]);
    assert!(html.contains("<title>Tray scans, Week 24</title>"));
    assert_eq!(tiles(&html)[0][1], "1");
    assert_eq!(facts(&html)["Batches"], "3");
    assert_eq!(
        freshness(&html),
        "Newest batch up to now: 9 June 2026, 12:00, 24 hours ago"
    );
    assert_eq!(
        findings(&html),
        ["1 batch was created in the future: lot late"]
    );
    let note = "1 batch is dated in later weeks, in the future, and not judged.";
    assert!(section(&html, "crops").contains(note));
    assert!(!section(&html, "trends").contains("2031"));
    // It needs no attention now, whatever it is like.
    let items = [
        sound("a", MADE - DAY),
        usable("late", MADE + 30 * DAY, "0.00").with("warnings", "true"),
    ];
    let html = page(&nursery(items), &[]);
    assert_eq!(attention(&html), []);
    assert!(!section(&html, "attention").contains("lot late"));
    // Nor is it the last batch of its crop, if there are earlier ones.
    let of = |id: &str, crop: &str, created: i64| {
        sound(id, created).with("crop_type", format!("\"{crop}\""))
    };
    let html = page(
        &nursery([
            of("a", "Tomato", MADE),
            of("b", "Leek", MADE - 21 * DAY),
            of("c", "Leek", MADE + 30 * DAY),
            of("d", "Basil", MADE - 14 * DAY),
        ]),
        &[],
    );
    let changes: Vec<(String, String)> = crops(&html)
        .into_iter()
        .map(|row| (row[0].clone(), row[2].clone()))
        .collect();
    let expected = [
        ("Tomato", "too few to compare"),
        ("Basil", "no batches, last on 27 May 2026"),
        ("Leek", "no batches, last on 20 May 2026"),
    ];
    let expected = expected.map(|(crop, change)| (crop.to_owned(), change.to_owned()));
    assert_eq!(changes, expected);
    // A crop that has no others was never seen.
    let html = page(
        &nursery([of("a", "Tomato", MADE), of("c", "Leek", MADE + 30 * DAY)]),
        &[],
    );
    assert_eq!(crops(&html)[1][2], "no batches with a date in the past");
    // The running week is the newest only if it has a batch up to now: MADE is a Wednesday.
    let low = |id: &str| usable(id, MADE - 5 * DAY, "60.00");
    let usual = |id: &str| usable(id, MADE - 14 * DAY, "80.00");
    let html = page(
        &nursery([
            usual("a"),
            usual("b"),
            usual("c"),
            low("d"),
            low("e"),
            low("f"),
            usable("late", MADE + DAY, "80.00"),
        ]),
        &[],
    );
    assert_eq!(period(&html), "Week 23 (1 to 7 June 2026):");
    assert!(lead(&html).contains("fell 20.0 points"), "{}", lead(&html));
    assert!(section(&html, "crops").contains(note));
    // If there is nothing else, it is the newest step.
    let html = page(&nursery([sound("late", MADE + 30 * DAY)]), &[]);
    let name = "Week 28 (6 to 12 July 2026, 0 of 7 days so far):";
    assert_eq!(period(&html), name);
    assert_eq!(
        freshness(&html),
        "Newest batch: 10 July 2026, 12:00, in the future"
    );
    assert_eq!(headings(&html)[0], "verdict");
    assert!(lead(&html).contains("Too few batches to compare"));
}
