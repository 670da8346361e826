//! The terminal, files and failures.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use unicode_width::UnicodeWidthStr as _;

use super::ask;
use crate::fake::live::LiveService;
use crate::fake::{Batch, second};
use crate::harness::{Server, Service, run};
use crate::terminal::on_terminal;

#[test]
fn a_table_fits_any_terminal() {
    let folder = TempDir::new().unwrap();
    for by in [
        "crop_type",
        "crop_type,week",
        "scanned_by_email,crop_type,month",
    ] {
        let mut columns_before = 0;
        for width in [60, 80, 120, 200] {
            let line = format!("NO_COLOR=1 $T summary --sandbox --by {by} 2>told");
            let Some(table) = on_terminal(width, &line, folder.path()) else {
                return;
            };
            let lines: Vec<&str> = table.lines().collect();
            for line in &lines {
                assert!(line.width() <= width as usize, "{width}: {line:?}");
                assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
            }
            let columns = lines[1].split_whitespace().count();
            // Names get wider too.
            let least = columns_before + usize::from(by == "crop_type");
            assert!(
                columns >= least,
                "{width}: more room, more columns: {}",
                lines[0]
            );
            columns_before = columns;
            for label in ["batches", "germ. %", "usable %"] {
                assert!(lines[0].contains(label), "{width}: {}", lines[0]);
            }
            let stderr = fs::read_to_string(folder.path().join("told")).unwrap();
            // Only crops have a verdict.
            let all = if by == "crop_type" { 14 } else { 13 };
            let hidden = all + by.split(',').count() - columns;
            let note = format!("note: {hidden} more column");
            assert_eq!(stderr.contains(&note), hidden > 0, "{stderr}");
            assert!(width < 200 || hidden == 0, "{}", lines[0]);
        }
    }
}

#[test]
fn numbers_are_aligned_and_the_total_is_separate() {
    let table = run(&["summary", "--sandbox"]).stdout;
    let lines: Vec<&str> = table.lines().collect();
    let end = lines[0].find("batches").unwrap() + "batches".len();
    let rules: Vec<usize> = (0..lines.len())
        .filter(|&place| lines[place].starts_with('─'))
        .collect();
    assert_eq!(rules.len(), 2);
    assert_eq!((rules[0], &lines[rules[0]]), (1, &lines[rules[1]]));
    for line in lines[2..rules[1]].iter().chain([&lines[rules[1] + 1]]) {
        let row: Vec<char> = line.chars().collect();
        assert!(row[end - 1].is_ascii_digit() && row[end] == ' ', "{line}");
    }
    assert!(lines[rules[1] + 1].starts_with("total "));
    assert_eq!(lines[rules[1] + 2], "");
    let below = lines[rules[1] + 3..].join("\n");
    for text in [
        "quartiles in brackets",
        "weighted by images",
        "250 batches (all dates), created 2023-11-",
        "28 values missing: 7 of germination rate",
        "each mark is 96 days",
    ] {
        assert!(below.contains(text), "{text} in {below}");
    }
}

#[test]
fn colour_is_only_used_on_a_terminal() {
    let folder = TempDir::new().unwrap();
    let Some(table) = on_terminal(120, "$T summary --sandbox", folder.path()) else {
        return;
    };
    assert!(
        table.contains("\u{1b}[1mcrop"),
        "the header is bold: {table:?}"
    );
    assert!(
        table.contains("\u{1b}[1m\u{1b}[33m2\u{1b}[0m"),
        "warnings are yellow: {table:?}"
    );
    assert!(
        !table.contains("\u{1b}[33m0\u{1b}"),
        "no warnings are not: {table:?}"
    );
    for line in [
        "NO_COLOR=1 $T summary --sandbox 2>told",
        "$T summary --sandbox -o a.txt 2>told",
        "$T summary --sandbox 2>told | cat",
    ] {
        let table = on_terminal(120, line, folder.path()).unwrap();
        assert!(!table.contains('\u{1b}'), "{table:?}");
    }
    let file = fs::read_to_string(folder.path().join("a.txt")).unwrap();
    assert_eq!(file, run(&["summary", "--sandbox"]).stdout);
}

#[test]
fn an_empty_summary_says_so() {
    let nothing = ["summary", "--sandbox", "--start", "2020", "--end", "2020"];
    let ended = run(&nothing);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "no batches (2020-01-01 through 2020-12-31)\n")
    );
    assert!(
        ended.stderr.contains("0 batches in 0 groups ("),
        "{}",
        ended.stderr
    );
    let output: Value =
        serde_json::from_str(&run(&[&nothing[..], &["-f", "json"]].concat()).stdout).unwrap();
    assert_eq!(
        (&output["groups"], &output["total"]["batches"]),
        (&serde_json::json!([]), &0.into())
    );
    let csv = run(&[&nothing[..], &["-f", "csv"]].concat()).stdout;
    assert!(
        csv.lines().count() == 1
            && csv.starts_with("crop_type,batches,images,warnings,germination_rate_q1,"),
        "{csv}"
    );
    let ended = run(&[&nothing[..], &["--fail-on-empty"]].concat());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(9), ""));
}

#[test]
fn files_are_atomic_and_typed_by_extension() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let write = |name: &str, more: &[&str]| {
        run(&[&["summary", "--sandbox", "-o", &path(name)], more].concat())
    };
    for (name, format) in [("a.json", "json"), ("a.csv", "csv"), ("a.txt", "table")] {
        let ended = write(name, &[]);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), ""),
            "{}",
            ended.stderr
        );
        assert!(
            ended
                .stderr
                .starts_with("250 batches in 8 groups (all dates, v2, ")
                && ended.stderr.lines().count() == 1,
            "{}",
            ended.stderr
        );
        let expected = run(&["summary", "--sandbox", "-f", format, "-o", "-"]).stdout;
        assert_eq!(fs::read_to_string(path(name)).unwrap(), expected);
    }
    assert_eq!(write("a.csv.gz", &[]).code, Some(0));
    let mut unpacked = String::new();
    flate2::read::GzDecoder::new(fs::File::open(path("a.csv.gz")).unwrap())
        .read_to_string(&mut unpacked)
        .unwrap();
    assert_eq!(unpacked, fs::read_to_string(path("a.csv")).unwrap());
    fs::write(path("old.json"), "before").unwrap();
    for (name, more, code) in [
        ("old.json", &["--no-clobber"][..], 8),
        (
            "old.json",
            &["--start", "2020", "--end", "2020", "--fail-on-empty"],
            9,
        ),
        ("no/such/folder.json", &[], 8),
        ("a.ndjson", &[], 2),
        ("a.xlsx", &[], 2),
        ("a{year}.csv", &[], 2),
        ("a.json", &["--by", "crop"], 2),
        ("a.json", &["--by", "month,month"], 2),
        ("a.json", &["--where", "crop=x"], 2),
        ("a.json", &["--start", "yesterweek"], 2),
    ] {
        let ended = write(name, more);
        assert_eq!(ended.code, Some(code), "{name} {more:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("hint:"), "{}", ended.stderr);
    }
    assert_eq!(fs::read_to_string(path("old.json")).unwrap(), "before");
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["a.csv", "a.csv.gz", "a.json", "a.txt", "old.json"]);
    let ended = write("plain", &[]).expect(2);
    assert!(
        !ended.stderr.contains("xlsx"),
        "not a format of a summary: {ended:?}"
    );
    let slip = run(&["summary", "--sandbox", "-o", "json"]);
    assert_eq!(slip.code, Some(2), "{}", slip.stderr);
    assert!(
        slip.stderr.contains("did you mean `--format json`"),
        "{}",
        slip.stderr
    );
}

#[test]
fn failures_have_their_exit_codes() {
    let server = Server::start(&["--fault", "503:1"]);
    let ended = ask(&server, "summary", &["--retries", "1"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(5), ""),
        "{}",
        ended.stderr
    );
    let nursery = LiveService::start();
    let start = second("2026-05-01T06:00:00Z");
    nursery.state().put(
        "a",
        Batch::new("a")
            .created_at(start)
            .with("avg_usable_seedling_rate", "\"much\""),
    );
    nursery.state().put(
        "b",
        Batch::new("b")
            .created_at(start)
            .with("avg_usable_seedling_rate", "\"80.00\""),
    );
    let ended = ask(&nursery, "summary", &[]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(7), ""),
        "{}",
        ended.stderr
    );
    let ended = ask(&nursery, "summary", &["--lenient", "-f", "json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("1 batch breaks the interface"),
        "{}",
        ended.stderr
    );
    let output: Value = ended.json();
    assert_eq!(
        (
            &output["total"]["batches"],
            &output["total"]["usable_rate"]["missing"]
        ),
        (&2.into(), &1.into())
    );
    let ended = run(&["summary"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
}

#[test]
fn the_summary_in_the_readme_is_real() {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let (_, block) = readme.split_once("$ trayscan summary ").unwrap();
    let (args, shown) = block.split_once('\n').unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let args: Vec<&str> = ["summary"].into_iter().chain(args.split(' ')).collect();
    assert_eq!(run(&args).stdout, shown);
}

/// Returns the table for a terminal of the given width.
fn shown(service: &impl Service, width: u32, args: &str, folder: &Path) -> Option<String> {
    let [base_url, id, secret] = service.access();
    let access = format!(
        "TRAYSCAN_BASE_URL={base_url} TRAYSCAN_CLIENT_ID={id} TRAYSCAN_CLIENT_SECRET='{secret}'"
    );
    let line = format!("NO_COLOR=1 {access} $T summary {args} 2>told");
    on_terminal(width, &line, folder)
}

#[test]
fn names_are_cut_only_if_necessary() {
    let folder = TempDir::new().unwrap();
    let nursery = LiveService::start();
    let crop = "A crop whose name is longer than forty letters, by far";
    let item = Batch::new("a").created_at(second("2026-05-01T06:00:00Z"));
    let item = item
        .with("crop_type", format!("\"{crop}\""))
        .with("scanned_by_email", "\"somebody@nursery.example\"");
    nursery.state().put("a", item);
    let table = |width| shown(&nursery, width, "", folder.path());
    let Some(wide) = table(100) else {
        return;
    };
    assert!(wide.contains(crop), "{wide}");
    for (width, name) in [
        (70, "A crop whose name is longer"),
        (34, "A cr"),
        (12, "A cr"),
    ] {
        let table = table(width).unwrap();
        assert!(table.contains(name) && !table.contains(crop), "{table}");
        assert!(table.contains("\ntotal"), "{table}");
    }
    // Names are not cut below the width of the title or of the total.
    let narrow = table(12).unwrap();
    assert!(narrow.lines().any(|line| line == "A cr…"), "{narrow}");
    let people = shown(&nursery, 20, "--by scanned_by_email", folder.path()).unwrap();
    let name = people.lines().nth(2).unwrap();
    assert!(
        name.split_whitespace().next().unwrap().width() >= 10,
        "{people}"
    );
}

#[test]
fn the_legend_explains_only_what_is_shown() {
    let folder = TempDir::new().unwrap();
    let nursery = LiveService::start();
    for (id, day) in [("a", "01"), ("b", "09")] {
        let created = second(&format!("2026-05-{day}T06:00:00Z"));
        let item = Batch::new(id)
            .created_at(created)
            .with("avg_usable_seedling_rate", "\"81.25\"");
        nursery.state().put(id, item);
    }
    let Some(wide) = shown(&nursery, 200, "", folder.path()) else {
        return;
    };
    for words in [
        "quartiles in brackets",
        "weighted by images",
        "gap in points",
        "Trend: ",
    ] {
        assert!(wide.replace('\n', " ").contains(words), "{words}: {wide}");
    }
    // All values are equal, so there is no range.
    assert!(
        wide.contains("in all marks") && !wide.contains('█'),
        "{wide}"
    );
    let narrow = shown(&nursery, 40, "", folder.path()).unwrap();
    assert!(narrow.contains("Medians of batches"), "{narrow}");
    for words in ["quartiles", "weighted", "gap", "Trend: "] {
        assert!(!narrow.contains(words), "{words}: {narrow}");
    }
    let tiny = shown(&nursery, 16, "", folder.path()).unwrap();
    assert!(!tiny.contains("Medians"), "{tiny}");
}
