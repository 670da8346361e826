//! Values that are left out, and charts.

use std::collections::HashSet;

use tempfile::TempDir;

use super::reading::{facts, findings, parts, plain, rows, section};
use super::steps::weeks;
use super::{MADE, config, nursery, page, report, sound, usable};
use crate::archives::ArchiveFile;
use crate::fake::Batch;
use crate::fake::live::DAY;
use crate::harness::{Server, run, trayscan};

#[test]
fn values_with_too_many_digits_are_reported() {
    let nursery = nursery([
        sound("a", MADE - DAY),
        usable("b", MADE - DAY, "10.12345678901"),
    ]);
    let mut command = trayscan(&["summary"]);
    command.service(&nursery);
    let of_summary = command.output().stderr;
    let ended = report(&nursery, &[]);
    let warning =
        "1 value of `avg_usable_seedling_rate` has more than 15 digits before or 10 after";
    for message in [&of_summary, &ended.stderr] {
        assert!(message.contains(warning), "{message}");
    }
    let quality = section(&ended.stdout, "quality");
    assert_eq!(findings(&ended.stdout).len(), 1, "{quality}");
    assert!(plain(quality).contains(
        "1 batch has a value with more than 15 digits before the decimal point or 10 after it"
    ));
    assert!(
        !quality.contains("left out.") && !quality.contains("missing some"),
        "{quality}"
    );
}

#[test]
fn a_negative_gap_has_a_minus_sign() {
    let odd = usable("a", MADE - DAY, "91.50").with("avg_germination_rate", "\"90.00\"");
    let html = page(&nursery([odd]), &[]);
    assert!(html.contains("−1.50") && !html.contains(">-1.50"), "{html}");
}

#[test]
fn batches_left_out_of_figures_are_reported() {
    let at = MADE - DAY;
    let odd = sound("b", at).with("avg_usable_seedlings", "\"120.00\"");
    let html = page(&nursery([sound("a", at), odd]), &[]);
    let cells = "without 1 batch with a share below 0 or above 100 %";
    assert!(html.contains(cells), "{html}");
    assert!(!html.contains("nothing left out"));
    let again = [sound("a", at), sound("a", at).with("comment", "\"again\"")];
    let html = page(&nursery(again), &[]);
    assert!(html.contains("the first version counts") && !html.contains("nothing left out"));
    let odd = sound("a", at).with("avg_non_usable_cells", "\"1.00\"");
    assert!(page(&nursery([odd]), &[]).contains("nothing left out"));
}

#[test]
fn dots_are_counted_and_outliers_are_marked() {
    let at = MADE - DAY;
    let rates = |id: &str, germination: &str, rate: &str, link: &str| {
        usable(id, at, rate)
            .with("avg_germination_rate", format!("\"{germination}\""))
            .with("analysis_link", link)
    };
    let link = "\"https://analysis.example/1\"";
    let chart = |items: Vec<Batch>| {
        let html = page(&nursery(items), &[]);
        let figure = parts(section(&html, "more"), "<figure>", "</figure>");
        let found = figure
            .into_iter()
            .find(|part| part.contains("Germination against usable"));
        found.unwrap().to_owned()
    };
    let one = chart(vec![rates("a", "90.00", "80.00", "null")]);
    assert!(one.contains("<small>1 batch</small>"), "{one}");
    assert!(!one.contains("links to") && !one.contains("edge"));
    let listed = rows(&one);
    assert_eq!(listed[1], ["lot a", "Tomato", "90.00", "80.00", "10.00"]);

    let mut many: Vec<Batch> = (0..12)
        .map(|number| rates(&format!("{number}"), "95.00", "90.00", link))
        .collect();
    let all = chart(many.clone());
    assert!(all.contains("<small>12 batches; each dot links to its analysis</small>"));
    many.push(rates("low", "12.00", "3.00", link));
    many.push(rates("odd", "140.00", "90.00", "null"));
    let far = chart(many);
    assert!(far.contains("14 batches; dots link to their analysis if there is one"));
    let note = "beyond the scale (2 batches, 1 with a rate below 0 or above 100 %)";
    assert!(plain(&far).contains(note), "{}", plain(&far));
    assert_eq!(far.matches("<circle").count(), 12);
    assert_eq!(far.matches("<path class=\"edge now\"").count(), 2);
    // Each has its place and its number, also if several are beyond the same corner.
    let many = (0..200).map(|number| rates(&format!("{number}"), "95.00", "90.00", link));
    let lows = ["0.00", "3.10", "12.30", "33.30"].map(|rate| rates(rate, rate, rate, link));
    let corner = chart(many.chain(lows).collect());
    let marks: HashSet<&str> = parts(&corner, "<path class=\"edge now\"", ">")
        .into_iter()
        .collect();
    assert_eq!(marks.len(), 4, "{marks:?}");
    for number in ["0", "3.1", "12.3", "33.3"] {
        let label = format!(">{number}</text>");
        assert_eq!(corner.matches(&label).count(), 1, "{number}: {corner}");
    }
    // The outliers do not change the scale.
    assert!(
        far.contains(">90</text>") && !far.contains(">20</text>"),
        "{far}"
    );
    // The table for keyboard users lists the largest gaps, as links.
    let listed = rows(&far);
    assert_eq!(listed[1][0], "lot odd");
    assert_eq!(listed[2], ["lot low", "Tomato", "12.00", "3.00", "9.00"]);
    let table = far.split("<details>").nth(1).unwrap();
    assert_eq!(
        table.matches("href=\"https://analysis.example/1\"").count(),
        13
    );
    assert!(!table.contains("tabindex=\"-1\""));
}

#[test]
fn one_outlier_does_not_compress_the_scale() {
    let at = MADE - DAY;
    let uneven = |id: &str, crop: &str, variation: &str| {
        sound(id, at)
            .with("crop_type", format!("\"{crop}\""))
            .with("avg_coefficient_of_variation", format!("\"{variation}\""))
    };
    let mut items: Vec<Batch> = (0..8)
        .map(|number| uneven(&format!("{number}"), &format!("Crop {number}"), "15.00"))
        .collect();
    items.push(uneven("far", "Crop 0", "1500.00"));
    let html = page(&nursery(items), &[]);
    assert!(html.contains("arrow: extends beyond the scale (1 crop)"));
    assert!(html.contains(">1500.00</td>"), "must be in the table");
}

#[test]
fn trends_are_also_given_as_text_and_table() {
    let html = page(&weeks(&[5, 3, 4]), &[]);
    let trends = section(&html, "trends");
    assert!(trends.contains("Usable rate of Tomato in percent, week by week (3 weeks)"));
    let table = rows(trends.split("<details>").last().unwrap());
    assert_eq!(table[0], ["week", "Tomato"]);
    assert_eq!(table[1], ["Week 21, 18 to 24 May 2026", "81.25"]);
    assert_eq!(table.len(), 4);
}

#[test]
fn email_addresses_in_conditions_are_shown_only_on_request() {
    let mail = "a.person@nursery.example";
    let item = sound("a", MADE).with("scanned_by_email", format!("\"{mail}\""));
    let nursery = nursery([item]);
    let condition = format!("scanned_by_email={mail}");
    let html = page(&nursery, &["--where", &condition]);
    assert!(!html.contains(mail));
    assert_eq!(facts(&html)["Filter"], "scanned_by_email (not shown)");
    let elsewhere = "comment!=sent by b.person@nursery.example";
    let html = page(&nursery, &["--where", elsewhere]);
    assert_eq!(facts(&html)["Filter"], "comment (not shown)");
    let html = page(&nursery, &["--where", &condition, "--emails"]);
    assert_eq!(facts(&html)["Filter"], condition);
}

#[test]
fn config_errors_are_reported_with_an_archive_too() {
    let server = Server::start(&["--batches", "20"]);
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &[]);
    let archive = shelf.path.to_str().unwrap();
    let folder = TempDir::new().unwrap();
    let mistaken = config(folder.path(), "[profiles.default]\nbase_ulr = \"x\"\n");
    for command in ["export", "summary", "report"] {
        for (args, words) in [
            (["--config", "/nonexistent.toml"], "nonexistent.toml"),
            (["--config", &mistaken], "base_ulr"),
            (["--profile", "nope"], "nope"),
        ] {
            let ended = run(&[&[command, "--archive", archive], &args[..]].concat());
            assert_eq!(ended.code, Some(2), "{command} {args:?}: {}", ended.stderr);
            assert!(ended.stderr.contains(words), "{command}: {}", ended.stderr);
            assert_eq!(ended.stdout, "");
        }
    }
    // A warning about the config file appears only once.
    let open = config(folder.path(), "[profiles.default]\nclient_secret = \"x\"\n");
    for command in ["export", "summary", "report"] {
        let ended = run(&[command, "--archive", archive, "--config", &open]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let warnings = ended.stderr.matches("other users can read").count();
        assert_eq!(
            warnings,
            usize::from(cfg!(unix)),
            "{command}: {}",
            ended.stderr
        );
    }
}

#[test]
fn a_page_about_one_crop_has_a_control_chart() {
    // The rates alternate by one point, except for one failed batch.
    let rate = |number: i64| match number {
        7 => "20.00",
        _ if number % 2 == 0 => "90.00",
        _ => "91.00",
    };
    let items = |count: i64| {
        (0..count)
            .map(move |number| usable(&format!("{number:02}"), MADE - number * DAY, rate(number)))
    };
    let control = |html: &str| {
        let figures = parts(section(html, "trends"), "<figure>", "</figure>");
        let found = figures
            .into_iter()
            .find(|part| part.contains("batch by batch"));
        found.map(str::to_owned)
    };
    let found = control(&page(&nursery(items(12)), &[])).unwrap();
    // The mean of twelve rates, and of eleven differences: nine of one point, two of about seventy.
    let rates: Vec<i128> = (0..12)
        .map(|number| rate(number).replace('.', "").parse().unwrap())
        .collect();
    let sum: i128 = rates.iter().sum();
    let ranges: i128 = rates.windows(2).map(|pair| (pair[0] - pair[1]).abs()).sum();
    let hundredths = |numerator: i128| {
        let denominator = 12 * 11 * 100;
        (2 * numerator + denominator).div_euclid(2 * denominator)
    };
    let two = |hundredths: i128| format!("{}.{:02}", hundredths / 100, hundredths % 100);
    let text = plain(&found);
    let mean = two(hundredths(sum * 1100));
    let low = two(hundredths(sum * 1100 - 266 * ranges * 12));
    let high = two(hundredths(sum * 1100 + 266 * ranges * 12));
    let range = two(hundredths(ranges * 1200));
    for words in [
        format!("mean {mean}"),
        format!(
            "limits {low} and {high}: the mean ± 2.66 times the average difference from batch to batch, {range}"
        ),
        "diamond or orange triangle: outside the limits, 1 batch; look for a cause".to_owned(),
        "triangle with a number: beyond the scale, 1 batch".to_owned(),
    ] {
        assert!(text.contains(&words), "{words}: {text}");
    }
    assert_eq!(found.matches(r#"class="beyond now""#).count(), 1);
    assert!(!found.contains(r#"class="edge now""#), "{found}");
    let table = rows(&found);
    assert_eq!(table.len(), 13);
    assert_eq!(
        table[1],
        ["lot 11", "30 May 2026, 12:00", "91.00", "within"]
    );
    assert_eq!(
        table[5],
        ["lot 07", "3 June 2026, 12:00", "20.00", "outside"]
    );
    // No chart for too few batches or for several crops.
    assert!(control(&page(&nursery(items(9)), &[])).is_none());
    let other = sound("x", MADE).with("crop_type", "null");
    let html = page(&nursery(items(12).chain([other])), &[]);
    assert!(control(&html).is_none());
    let html = page(
        &nursery(items(12)),
        &["--where", "avg_usable_seedling_rate>50"],
    );
    let text = plain(&control(&html).unwrap());
    assert!(!text.contains("outside the limits"), "{text}");
    // A crop that fell in the newest week does not widen its own limits.
    let fell = (0..40).map(|number| usable(&format!("n{number}"), MADE, "80.00"));
    let before =
        (8..24).map(|number| usable(&format!("{number}"), MADE - number * DAY, rate(number)));
    let text = plain(&control(&page(&nursery(before.chain(fell)), &[])).unwrap());
    for words in [
        "mean 90.50, of the batches before the newest week",
        "limits 87.84 and 93.16",
        "outside the limits, 40 batches",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}
