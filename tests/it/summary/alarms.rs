//! `--fail-on`: exit code 10 if a crop is down, misses a target or has a batch that needs attention.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use super::{ask, summary};
use crate::fake::live::{DAY, LiveService};
use crate::fake::second;
use crate::harness::{Output, run};
use crate::judge::Field;
use crate::report::config;

const ALL: &str = "down,target,attention";

/// The first second of the newest week.
fn monday() -> i64 {
    second("2026-06-08T00:00:00Z")
}

/// Sows five batches with the rate `before` in each of the four weeks before, and five with `newest`.
fn sow(field: &mut Field, crop: &str, before: &str, newest: &str) {
    for week in 1..=4 {
        field.sow(crop, monday() - 7 * DAY * week, &[before; 5]);
    }
    field.sow(crop, monday(), &[newest; 5]);
}

/// Leek is down, Tomato is below its target of 90 %, Basil has a warning. The others are as usual, although Kale, which
/// is not in the newest week, was below its target and had a warning.
fn nursery() -> LiveService {
    let mut field = Field::default();
    sow(&mut field, "Leek", "81.20", "70.71");
    sow(&mut field, "Tomato", "89.50", "89.50");
    sow(&mut field, "Basil", "85.00", "84.00");
    sow(&mut field, "Pansy", "85.00", "86.00");
    let last = field.batches.len() - 8;
    field.batches[last].set("warnings", "true");
    field.sow("Kale", monday() - 7 * DAY, &["10.00", "50.00", "90.00"]);
    let last = field.batches.len() - 1;
    field.batches[last].set("warnings", "true");
    field.service()
}

const TARGETS: &str = "[targets.Tomato]\nusable_rate_min = 90\n[targets.Pansy]\nusable_rate_min = 86\n[targets.Kale]\nusable_rate_min = 90\n";

/// Runs `summary --fail-on`, and asserts that the summary is that of a run without it.
#[track_caller]
fn fail_on(service: &LiveService, causes: &str, args: &[&str]) -> Output {
    let ended = ask(service, "summary", &[args, &["--fail-on", causes]].concat());
    assert_eq!(ended.stdout, summary(service, args), "{causes} {args:?}");
    ended
}

/// Asserts that the run ends with code 10 and one error that contains all of `words`.
#[track_caller]
fn assert_alarm(ended: &Output, words: &str) {
    assert_eq!(ended.code, Some(10), "{}", ended.stderr);
    let errors: Vec<&str> = ended
        .stderr
        .lines()
        .filter(|line| line.starts_with("error: "))
        .collect();
    assert_eq!(
        errors,
        [format!("error: 2026-W24: {words}")],
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("hint: the summary is complete"),
        "{}",
        ended.stderr
    );
}

const DOWN: &str = "Leek is down 10.49 points to 70.71 % usable";
const TARGET: &str = "Tomato misses its usable target of 90 % with 89.50 %";
const ATTENTION: &str = "has batches that need attention";

#[test]
fn each_cause_has_its_alarm() {
    let nursery = nursery();
    let folder = TempDir::new().unwrap();
    let config = config(folder.path(), TARGETS);
    let with_targets = ["--config", &config];
    assert_alarm(&fail_on(&nursery, "down", &[]), DOWN);
    assert_alarm(&fail_on(&nursery, "down", &with_targets), DOWN);
    assert_alarm(&fail_on(&nursery, "target", &with_targets), TARGET);
    // Leek is far below its own past, and Basil has a warning.
    let both = format!("Leek {ATTENTION}; Basil {ATTENTION}");
    assert_alarm(&fail_on(&nursery, "attention", &[]), &both);
    for (causes, words) in [
        ("down,target", format!("{DOWN}; {TARGET}")),
        ("target,down", format!("{DOWN}; {TARGET}")),
        (
            "down,attention",
            format!("{DOWN}, {ATTENTION}; Tomato {ATTENTION}; Basil {ATTENTION}"),
        ),
        (
            ALL,
            format!("{DOWN}, {ATTENTION}; {TARGET}, {ATTENTION}; Basil {ATTENTION}"),
        ),
    ] {
        assert_alarm(&fail_on(&nursery, causes, &with_targets), &words);
    }
    let separate = ask(
        &nursery,
        "summary",
        &[
            "--config",
            &config,
            "--fail-on",
            "down",
            "--fail-on",
            "target",
        ],
    );
    assert_alarm(&separate, &format!("{DOWN}; {TARGET}"));
}

#[test]
fn there_is_no_alarm_without_a_cause() {
    let nursery = nursery();
    let folder = TempDir::new().unwrap();
    let config = config(folder.path(), TARGETS);
    for (causes, args) in [
        // No targets are set.
        ("target", &[][..]),
        ("down", &["--where", "crop_type!=Leek"]),
        (
            "target",
            &["--config", &config, "--where", "crop_type=Leek,Pansy,Kale"],
        ),
        (
            "attention",
            &[
                "--where",
                "crop_type=Tomato,Pansy,Kale",
                "--start",
                "2026-06-08",
            ],
        ),
        // Three weeks earlier, all was well.
        (ALL, &["--end", "2026-05-24"]),
        // A week without any past cannot be down.
        ("down", &["--start", "2026-06-08"]),
        // Nothing is selected.
        (ALL, &["--start", "2030"]),
    ] {
        let ended = fail_on(&nursery, causes, args);
        assert_eq!(ended.code, Some(0), "{causes} {args:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("error"), "{}", ended.stderr);
    }
    let nothing = ["--start", "2030", "--fail-on-empty", "--fail-on", ALL];
    assert_eq!(ask(&nursery, "summary", &nothing).code, Some(9));
}

#[test]
fn the_summary_is_complete_in_any_format_and_file() {
    let nursery = nursery();
    let folder = TempDir::new().unwrap();
    for format in ["table", "json", "csv"] {
        assert_alarm(&fail_on(&nursery, "down", &["-f", format]), DOWN);
        let file = folder
            .path()
            .join(format!("summary.{}", format.replace("table", "txt")));
        let place = file.to_str().unwrap();
        let ended = ask(&nursery, "summary", &["-o", place, "--fail-on", "down"]);
        assert_alarm(&ended, DOWN);
        assert_eq!(ended.stdout, "");
        let expected = summary(&nursery, &["-f", format]);
        assert_eq!(fs::read_to_string(&file).unwrap(), expected, "{format}");
        assert!(
            ended.stderr.contains("103 batches in 5 groups ("),
            "{}",
            ended.stderr
        );
    }
    let names = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 3, "no temporary files");
}

#[test]
fn crops_are_judged_whatever_the_groups_are() {
    let nursery = nursery();
    for by in ["week", "day,crop_type", "scanned_by_email", "month"] {
        let args = ["--by", by, "-f", "json", "--fail-on", "down"];
        let ended = ask(&nursery, "summary", &args);
        assert_alarm(&ended, DOWN);
        let with: Value = serde_json::from_str(&ended.stdout).unwrap();
        let without: Value = serde_json::from_str(&summary(&nursery, &args[..4])).unwrap();
        for part in ["by", "range", "sparkline", "groups", "total"] {
            assert_eq!(with[part], without[part], "{part} by {by}");
        }
        assert_alarm(&fail_on(&nursery, "down", &["--by", by]), DOWN);
    }
}

#[test]
fn many_crops_are_counted_and_names_do_no_harm() {
    let mut field = Field::default();
    for crop in ["\u{1b}[31mred\n", "", "番茄 🍅", "فجل", "a", "b", "c"] {
        sow(&mut field, crop, "80.00", "60.00");
    }
    let ended = fail_on(&field.service(), "down", &[]);
    // The crops are equally bad, so they are sorted by name. The one without a name is first.
    let words = " is down 20.00 points to 60.00 % usable";
    let names = [
        "the group without a crop",
        "\"\\u{1b}[31mred\\n\"",
        "a",
        "b",
        "c",
    ];
    let named = names.map(|name| format!("{name}{words}")).join("; ");
    assert_alarm(&ended, &format!("{named}; and 2 more crops"));
    field.batches.truncate(6 * 25);
    let ended = fail_on(&field.service(), "down", &[]);
    assert!(
        ended.stderr.contains("; and 1 more crop\n"),
        "{}",
        ended.stderr
    );
}

#[test]
fn unknown_causes_are_refused_before_any_request() {
    let nursery = nursery();
    for causes in ["up", "down,up", "", "down,", "Down", "all"] {
        let ended = ask(&nursery, "summary", &["--fail-on", causes]);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(2), ""),
            "{causes}: {}",
            ended.stderr
        );
        for word in ["--fail-on", "down", "target", "attention"] {
            assert!(ended.stderr.contains(word), "{causes}: {}", ended.stderr);
        }
    }
    assert_eq!(nursery.asked(), 0);
    let ended = run(&["report", "--sandbox", "--fail-on", "down"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
}

#[test]
fn an_alarm_for_targets_without_any_target_is_told() {
    let nursery = nursery();
    let folder = TempDir::new().unwrap();
    for (targets, is_told) in [
        ("", true),
        ("[targets.Tomatoe]\nusable_rate_min = 90\n", true),
        // Kale has no batches in the newest week.
        ("[targets.Kale]\nusable_rate_min = 90\n", true),
        ("[targets.Tomato]\nusable_rate_min = 10\n", false),
    ] {
        let config = config(folder.path(), targets);
        let ended = fail_on(&nursery, "target", &["--config", &config]);
        assert_eq!(ended.code, Some(0), "{targets}: {}", ended.stderr);
        let words = "no crop of 2026-W24 has a target";
        let warned = ended.stderr.contains(words);
        assert_eq!(warned, is_told, "{targets}: {}", ended.stderr);
    }
}

#[test]
fn batches_in_the_future_are_told_not_judged() {
    let mut field = Field::default();
    sow(&mut field, "Leek", "81.20", "81.20");
    let later = second("2099-06-01T00:00:00Z");
    field.sow("Leek", later, &["10.00", "10.00", "10.00"]);
    let nursery = field.service();
    let ended = fail_on(&nursery, ALL, &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let words = "3 batches are dated in later weeks, in the future, and not judged";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    assert!(ended.stdout.contains(words), "{}", ended.stdout);
}

#[test]
fn a_range_that_is_too_short_to_judge_is_told() {
    let nursery = nursery();
    for (start, is_told) in [("2026-W20", false), ("2026-W21", true), ("2026-W24", true)] {
        let ended = ask(
            &nursery,
            "summary",
            &["--start", start, "--fail-on", "down"],
        );
        let words = "the range begins less than four weeks before 2026-W24";
        assert_eq!(
            ended.stderr.contains(words),
            is_told,
            "{start}: {}",
            ended.stderr
        );
        let table = summary(&nursery, &["--start", start]);
        let remark = "Of the previous four weeks, ";
        assert_eq!(table.contains(remark), is_told, "{start}: {table}");
    }
    let ended = ask(
        &nursery,
        "summary",
        &["--start", "2026-W24", "--fail-on", "target"],
    );
    assert!(!ended.stderr.contains("four weeks"), "{}", ended.stderr);
}
