//! Verdicts on data sets built for them: on the page and in the summary.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::figures::assert_page;
use super::reading::{attention, classes, column, crops, lead, plain, section, tiles};
use super::{MADE, config, page, page_at, ready};
use crate::fake::live::DAY;
use crate::harness::{Service, trayscan};
use crate::judge::{Field, POINT, Random, Rules, Target, Tray, assert_verdicts, median};

/// The first second of the newest week, of which three days are over.
pub(super) const MONDAY: i64 = MADE - 2 * DAY - DAY / 2;
pub(super) const WEEK: i64 = 7 * DAY;

const PERIOD: &str = "Week 24 (8 to 14 June 2026, 3 of 7 days so far):";

/// Returns the summary as JSON. Unlike the report, it is always about weeks.
pub(super) fn summary(service: &impl Service, args: &[&str]) -> Value {
    let mut command = trayscan(&["summary", "-f", "json"]);
    command.service(service);
    command.args(args).output().expect(0).json()
}

/// Compares the page and the summary with the rules. Returns the page.
#[track_caller]
pub(super) fn check(field: &Field, rules: &Rules<'_>, args: &[&str]) -> String {
    check_service(&field.service(), &field.trays(), rules, args)
}

#[track_caller]
fn check_service(
    service: &impl Service,
    trays: &[Tray],
    rules: &Rules<'_>,
    args: &[&str],
) -> String {
    let with_step = [args, &["--step", rules.step]].concat();
    let html = page_at(rules.now, service, &with_step);
    assert_page(&html, rules, trays);
    let weekly = Rules {
        step: "week",
        ..*rules
    };
    assert_verdicts(&summary(service, args), &weekly.judge(trays));
    html
}

/// Compares the page and the summary with the rules by week. Returns the page.
#[track_caller]
fn check_weekly(field: &Field) -> String {
    check(field, &Rules::weekly(MADE), &[])
}

/// Sows five batches a week that differ by 0.20 points around `rate`, for four weeks before the newest.
fn sow_past(field: &mut Field, crop: &str, rate: i64) {
    for week in 1..=4 {
        field.sow(crop, MONDAY - WEEK * week, &around(rate));
    }
}

/// Returns five rates around `rate`.
fn around(rate: i64) -> [String; 5] {
    [-20, -10, 0, 10, 20].map(|more: i64| {
        let hundredths = rate * 100 + more;
        format!("{}.{:02}", hundredths / 100, hundredths % 100)
    })
}

/// Six crops with four weeks before the newest.
const SIX: [(&str, i64); 6] = [
    ("Basil", 87),
    ("Celery", 75),
    ("Leek", 81),
    ("Lettuce", 92),
    ("Pansy", 80),
    ("Tomato", 90),
];

fn six_crops(newest: impl Fn(&str, i64) -> i64) -> Field {
    let mut field = Field::default();
    for (crop, rate) in SIX {
        sow_past(&mut field, crop, rate);
        field.sow(crop, MONDAY, &around(newest(crop, rate)));
    }
    field
}

/// Returns the names in the table, from the top.
fn order(html: &str) -> Vec<String> {
    let rows = crops(html).into_iter();
    rows.map(|row| row[0].clone()).collect()
}

const CHANGE: &str = "compared with its own previous four weeks";

#[test]
fn one_crop_of_six_is_down() {
    let field = six_crops(|crop, rate| if crop == "Leek" { rate - 10 } else { rate });
    let html = check_weekly(&field);
    assert_eq!(
        lead(&html),
        format!(
            "{PERIOD} Leek fell 10.0 points to 71.0 % usable. 5 batches need attention. 5 other crops as usual."
        )
    );
    // The others changed equally and have as many batches, so they are sorted by name.
    let names = ["Leek", "Basil", "Celery", "Lettuce", "Pansy", "Tomato"];
    assert_eq!(order(&html), names);
    assert_eq!(classes(&html)[..2], ["down", "usual"]);
    assert_eq!(column(&html, CHANGE)["Leek"], "▼ −10.00, down");
    assert_eq!(column(&html, CHANGE)["Basil"], "0.00, as usual");
    assert_eq!(tiles(&html)[1][1..], ["−1.67 points", "mean of 6 crops"]);

    // A target is judged on the newest week.
    let folder = TempDir::new().unwrap();
    let text = "[targets.Leek]\nusable_rate_min = 80\n[targets.Tomato]\nusable_rate_min = 90.01\n";
    let config = config(folder.path(), text);
    let target = |hundredths: i128| Target {
        usable: Some(hundredths * POINT / 100),
        ..Target::default()
    };
    let rules = Rules {
        targets: &[("Leek", target(8000)), ("Tomato", target(9001))],
        ..Rules::weekly(MADE)
    };
    let html = check(&field, &rules, &["--config", &config]);
    assert_eq!(
        lead(&html),
        format!(
            "{PERIOD} Leek fell 10.0 points to 71.0 % usable, below its target of 80 %; Tomato is below its target of 90.01 % with 90.00 % usable. 8 batches need attention. 4 other crops as usual."
        )
    );
    assert_eq!(order(&html)[..2], ["Leek", "Tomato"]);
}

#[test]
fn all_crops_are_down() {
    let html = check_weekly(&six_crops(|_, rate| rate - rate / 10));
    assert_eq!(
        lead(&html),
        format!(
            "{PERIOD} Lettuce fell 9.0 points to 83.0 % usable; Tomato fell 9.0 points to 81.0 % usable; Basil fell 8.0 points to 79.0 % usable; 3 more crops in trouble. 30 batches need attention."
        )
    );
    assert_eq!(classes(&html), ["down"; 6]);
    assert_eq!(tiles(&html)[1][2], "mean of 6 crops");
    assert!(attention(&html).iter().all(|crop| crop.down.is_some()));
    let html = check_weekly(&six_crops(|_, rate| rate + 5));
    assert_eq!(classes(&html), ["up"; 6]);
    assert!(lead(&html).starts_with(&format!(
        "{PERIOD} Basil rose 5.0 points to 92.0 % usable; "
    )));
    assert!(lead(&html).ends_with("; 3 more crops rose."));
    let html = check_weekly(&six_crops(|_, rate| rate));
    assert_eq!(lead(&html), format!("{PERIOD} All 6 crops are as usual."));
}

#[test]
fn a_crop_without_a_past_or_without_batches_is_not_judged() {
    let mut field = six_crops(|_, rate| rate);
    field.sow("Rucola", MONDAY, &around(40));
    field.sow("Kale", MONDAY - WEEK - DAY, &around(90));
    field.sow("Maize", MONDAY - 9 * WEEK, &around(90));
    let html = check_weekly(&field);
    assert_eq!(
        lead(&html),
        format!(
            "{PERIOD} 6 crops as usual; Rucola has too few batches to compare; no batches of Kale, unlike in the four weeks before."
        )
    );
    assert_eq!(order(&html)[6..], ["Rucola", "Kale", "Maize"]);
    assert_eq!(classes(&html)[6..], ["few", "absent", "absent"]);
    let changes = column(&html, CHANGE);
    assert_eq!(changes["Rucola"], "too few to compare");
    assert_eq!(changes["Kale"], "no batches, last on 31 May 2026");
    assert_eq!(changes["Maize"], "no batches, last on 6 April 2026");
    assert_eq!(
        tiles(&html)[0][1..],
        ["35", "of 7 crops, 3 of 7 days so far"]
    );
    let output = summary(&field.service(), &[]);
    let groups = output["groups"].as_array().unwrap();
    let kale = groups
        .iter()
        .find(|group| group["crop_type"] == "Kale")
        .unwrap();
    assert_eq!(kale["verdict"], "too_few");
    assert_eq!(
        kale["usable_rate_newest"],
        json!({"median": null, "batches": 0})
    );
    assert_eq!(output["newest_step"]["week"], "2026-W24");
}

#[test]
fn a_different_mix_of_crops_is_not_a_change() {
    // Lettuce is better than celery, and most batches are of the one or the other.
    for (lettuce, celery) in [([30, 3], [3, 30]), ([3, 30], [30, 3])] {
        let mut field = Field::default();
        for (week, place) in [(1, 0), (0, 1)] {
            field.sow(
                "Lettuce",
                MONDAY - WEEK * week,
                &vec!["95.00"; lettuce[place]],
            );
            field.sow(
                "Celery",
                MONDAY - WEEK * week,
                &vec!["60.00"; celery[place]],
            );
        }
        let trays = field.trays();
        let of_week = |from: i64| {
            let own = trays
                .iter()
                .filter(|tray| (from..from + WEEK).contains(&tray.created));
            let rates: Vec<i128> = own.filter_map(|tray| tray.usable).collect();
            median(&rates).unwrap()
        };
        assert_eq!((of_week(MONDAY) - of_week(MONDAY - WEEK)).abs(), 35 * POINT);
        let html = check_weekly(&field);
        assert_eq!(lead(&html), format!("{PERIOD} Both crops are as usual."));
        assert_eq!(tiles(&html)[1][1..], ["0.00 points", "mean of 2 crops"]);
        assert_eq!(attention(&html), []);
    }
    // A crop that collapsed is seen, although the median of all batches rises.
    let mut field = Field::default();
    field
        .sow("Lettuce", MONDAY - WEEK, &["95.00"; 3])
        .sow("Lettuce", MONDAY, &["95.00"; 40]);
    field
        .sow("Leek", MONDAY - WEEK, &["80.00"; 30])
        .sow("Leek", MONDAY, &["20.00"; 5]);
    let html = check_weekly(&field);
    assert_eq!(
        lead(&html),
        format!(
            "{PERIOD} Leek fell 60.0 points to 20.0 % usable. 5 batches of Leek failed. 1 other crop as usual."
        )
    );
}

#[test]
fn a_change_within_a_wide_spread_is_not_called_usual() {
    let mut field = Field::default();
    // The crop collapsed three weeks ago, so the weeks before differ from each other.
    for (week, rate) in (0..).zip(["20.00", "20.00", "20.00", "90.00", "90.00"]) {
        field.sow("Leek", MONDAY - week * WEEK, &[rate; 4]);
    }
    // Rises are named with the largest first.
    for (crop, rate) in [("A", "83.00"), ("B", "99.00"), ("C", "90.00")] {
        let before = ["80.00"; 4];
        field
            .sow(crop, MONDAY - WEEK, &before)
            .sow(crop, MONDAY, &[rate; 3]);
    }
    let html = check_weekly(&field);
    let lead = lead(&html);
    assert!(
        lead.ends_with("B rose 19.0 points to 99.0 % usable; C rose 10.0 points to 90.0 % usable; A rose 3.0 points to 83.0 % usable; Leek varies too much to tell."),
        "{lead}"
    );
    assert_eq!(
        column(&html, CHANGE)["Leek"],
        "−35.00, varies too much to tell, with failures"
    );
}

#[test]
fn zeros_are_values() {
    let mut field = Field::default();
    // Dead before and now, dead now, dead before, and one dead batch.
    for (crop, before, newest) in [
        ("Always", "0.00", "0.00"),
        ("Now", "80.00", "0.00"),
        ("Before", "0.00", "5.00"),
    ] {
        field
            .sow(crop, MONDAY - WEEK, &[before; 4])
            .sow(crop, MONDAY, &[newest; 3]);
    }
    field
        .sow("One", MONDAY - WEEK, &["80.00"; 4])
        .sow("One", MONDAY, &["80.00", "0.00", "80.00"]);
    let html = check_weekly(&field);
    assert_eq!(order(&html), ["Now", "Always", "One", "Before"]);
    assert_eq!(classes(&html), ["down", "failed", "failed", "up"]);
    assert!(
        lead(&html)
            .ends_with("Before rose 5.0 points to 5.0 % usable; 2 other crops otherwise as usual."),
        "{}",
        lead(&html)
    );
    let counts: Vec<(String, String)> = attention(&html)
        .into_iter()
        .map(|crop| (crop.name, crop.count))
        .collect();
    let expected = [("Now", 3), ("Always", 3), ("One", 1)];
    let expected = expected.map(|(name, count)| (name.to_owned(), format!("{count} of 3 batches")));
    assert_eq!(counts, expected);
    assert!(
        lead(&html).contains(" 7 batches failed. "),
        "{}",
        lead(&html)
    );
}

#[test]
fn nulls_are_not_values() {
    let mut field = Field::default();
    field.sow(
        "Leek",
        MONDAY - WEEK,
        &["80.00", "80.00", "80.00", "null", "null"],
    );
    field.sow("Leek", MONDAY, &["null", "60.00", "null", "60.00", "60.00"]);
    field.sow("Few", MONDAY - WEEK, &["80.00", "80.00", "null", "null"]);
    field.sow("Few", MONDAY, &["60.00"; 3]);
    field.sow("Fewer", MONDAY - WEEK, &["80.00"; 3]);
    field.sow("Fewer", MONDAY, &["60.00", "60.00", "null"]);
    field
        .sow("None", MONDAY - WEEK, &["null"; 4])
        .sow("None", MONDAY, &["null"; 4]);
    field.batches.last_mut().unwrap().set("warnings", "true");
    let html = check_weekly(&field);
    assert_eq!(order(&html), ["Leek", "None", "Few", "Fewer"]);
    assert_eq!(classes(&html), ["down", "few", "few", "few"]);
    assert_eq!(column(&html, "usable %")["None"], "–");
    assert_eq!(column(&html, "batches")["Leek"], "5");
    // There is a germination rate, so it is not without measurements.
    let found = attention(&html);
    let none = found.iter().find(|crop| crop.name == "None").unwrap();
    assert_eq!(
        (none.rows[0].rate.as_str(), none.rows[0].reason.as_str()),
        ("no rate", "warning")
    );
    let leek = &summary(&field.service(), &[])["groups"][2];
    assert_eq!(
        leek["usable_rate_newest"],
        json!({"median": 60.00, "batches": 3})
    );
    assert_eq!(
        leek["usable_rate_before"],
        json!({"median": 80.00, "batches": 3})
    );
}

#[test]
fn a_range_without_the_weeks_before_is_the_reason() {
    let mut field = Field::default();
    for week in 0..5 {
        let rates = ["80.00", "81.00", "82.00"];
        field.sow("Leek", MADE - week * 7 * DAY, &rates);
    }
    let nursery = field.service();
    for (start, cut) in [
        ("2026-06-08", "none is"),
        ("2026-06-05", "only a part of one is"),
    ] {
        let html = page(&nursery, &["--start", start]);
        let told = format!(
            "Too few batches to compare. Of the previous four weeks, {cut} in this range. Begin the range earlier to compare."
        );
        assert!(lead(&html).ends_with(&told), "{}", lead(&html));
    }
    let html = page(&nursery, &["--start", "2026-05-11"]);
    assert!(
        lead(&html).ends_with("The only crop is as usual."),
        "{}",
        lead(&html)
    );
}

#[test]
fn one_batch_in_all_is_not_judged() {
    for rate in ["80.00", "0.00", "null"] {
        let mut field = Field::default();
        let html = check_weekly(field.sow("Leek", MADE, &[rate]));
        let is_dead = rate == "0.00";
        assert_eq!(lead(&html).contains("1 batch of Leek failed."), is_dead);
        assert!(lead(&html).ends_with("Too few batches to compare: no crop has 3 batches with a usable rate both in this week and in the four weeks before."));
        assert_eq!(classes(&html), [if is_dead { "failed" } else { "few" }]);
    }
}

#[test]
fn sixty_crops_are_judged_one_by_one() {
    let mut random = Random(60);
    let mut field = Field::default();
    for crop in 0..60 {
        let name = format!("Crop {crop}");
        let middle = 40 + random.below(50);
        for week in 0..5 {
            let count = random.below(7);
            let shift = if week == 0 { random.below(12) - 6 } else { 0 };
            let rates: Vec<String> = (0..count).map(|_| random.rate(middle + shift, 3)).collect();
            field.sow(&name, MONDAY - WEEK * week, &rates);
        }
    }
    let html = check_weekly(&field);
    let note = plain(section(&html, "trends"));
    let drawn: BTreeSet<String> = field.trays().into_iter().map(|tray| tray.crop).collect();
    let drawn = drawn.len();
    assert!(drawn > 50, "{drawn}");
    let words = format!("12 of {drawn} crops, those that need attention first.");
    assert!(note.contains(&words), "{note}");
    for class in ["down", "up", "usual", "few", "absent"] {
        assert!(classes(&html).contains(&class), "{class}");
    }
}

#[test]
fn names_of_any_script_are_judged() {
    let names = [
        "มะเขือเทศ",
        "فلفل حلو",
        "番茄 (大)",
        "🌶️ 🍅",
        "Ñandú & <b>",
        "c\u{327}a",
        "  ",
        "ΣΑΛΑΤΑ",
    ];
    let mut field = Field::default();
    for (place, name) in names.iter().enumerate() {
        let fall = i64::try_from(place).unwrap() * 3;
        sow_past(&mut field, name, 80);
        field.sow(name, MONDAY, &around(80 - fall));
    }
    let service = field.service();
    let trays = field.trays();
    let newest = Rules::weekly(MADE);
    let newest = newest.judge(&trays);
    assert_verdicts(&summary(&service, &[]), &newest);
    let html = page(&service, &[]);
    // A name of blanks is in quotes, and the page shows single spaces here.
    let shown = newest.crops.iter().map(|crop| match crop.name.trim() {
        "" => "\" \"",
        name => name,
    });
    let shown: Vec<&str> = shown.collect();
    assert_eq!(order(&html), shown);
    assert_eq!(classes(&html), [vec!["down"; 7], vec!["usual"]].concat());
    let first = format!("{PERIOD} ΣΑΛΑΤΑ fell 21.0 points to 59.0 % usable; ");
    assert!(lead(&html).starts_with(&first), "{}", lead(&html));
    assert!(html.contains("Ñandú &#38; &#60;b&#62;") && !html.contains("<b> fell"));
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn thousands_of_batches_are_judged_exactly() {
        // Twenty crops over 25 weeks, and three crops over two weeks.
        for (crops, weeks, each) in [(20, 25, 10), (3, 2, 833)] {
            let mut random = Random(5000);
            let mut field = Field::default();
            for crop in 0..crops {
                let middle = 30 + random.below(60);
                for week in 0..weeks {
                    let shift = if week == 0 { random.below(12) - 6 } else { 0 };
                    let rates: Vec<String> =
                        (0..each).map(|_| random.rate(middle + shift, 4)).collect();
                    field.sow(&format!("Crop {crop}"), MONDAY - WEEK * week, &rates);
                }
            }
            let texts: Vec<String> = field.batches.iter().map(ToString::to_string).collect();
            assert!(texts.len() > 4990);
            let service = ready(&texts);
            check_service(&service, &field.trays(), &Rules::weekly(MADE), &[]);
        }
    }
}
