//! Sources, ranges and text.

use chrono::Datelike as _;
use serde_json::Value;

use super::{batches, check_csv, created, json, summary};
use crate::archives::ArchiveFile;
use crate::fake::live::LiveService;
use crate::fake::{Batch, second};
use crate::harness::{Server, trayscan};

#[test]
fn an_archive_gives_the_same_summary_as_the_service() {
    let server = Server::start(&["--batches", "400"]);
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &[]);
    for args in [
        &["-f", "json"][..],
        &["--by", "month"],
        &[
            "--where",
            "crop_type=Tomato",
            "--start",
            "2026",
            "-f",
            "csv",
        ],
    ] {
        let ended = trayscan(&["summary", "--archive"])
            .arg(&shelf.path)
            .args(args)
            .output();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout == summary(&server, args), "{args:?}");
        assert!(
            ended.stderr.contains("a.db`) to standard output"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn ranges_and_conditions_select_batches() {
    let server = Server::start(&["--batches", "500"]);
    let mut all = batches(&server);
    all.retain(|batch| batch["crop_type"] == "Tomato" && created(batch).year() == 2026);
    let output = json(
        &server,
        &[
            "--start",
            "2026",
            "--end",
            "2026",
            "--where",
            "crop_type=Tomato",
        ],
    );
    assert_eq!(output["total"]["batches"], all.len());
    assert_eq!(output["groups"].as_array().unwrap().len(), 1);
    assert_eq!(output["range"]["start"], "2026-01-01T00:00:00Z");
    assert_eq!(
        (&output["range"]["end"], &output["range"]["excludes_end"]),
        (&"2027-01-01T00:00:00Z".into(), &true.into())
    );
    assert_eq!(
        output["range"]["first_batch"],
        output["total"]["first_batch"]
    );
}

#[test]
fn hostile_names_do_no_harm_and_stay_exact_in_files() {
    let nursery = LiveService::start();
    let start = second("2026-05-01T06:00:00Z");
    let names = [
        "\"\\u001b[31mred\\u202e\"",
        "\"a,\\\"b\\\"\\nc\\td\"",
        "\"=1+2\"",
        "\"unknown\"",
        "null",
        "\"\"",
        "\"番茄 🍅\"",
        "\"\\\\n\"",
    ];
    for (place, name) in names.iter().enumerate() {
        let id = format!("b{place}");
        nursery.state().put(
            &id,
            Batch::new(&id).created_at(start).with("crop_type", name),
        );
    }
    let table = summary(&nursery, &[]);
    assert!(
        !table.contains(
            |letter: char| letter != '\n' && (letter.is_control() || letter == '\u{202e}')
        ),
        "{table:?}"
    );
    assert!(
        table.contains("\\u{1b}[31mred\\u{202e}") && table.contains("a,\"b\"\\nc\\td"),
        "{table}"
    );
    // Null and empty text are one group, with a name of its own.
    for name in ["unknown ", "no crop given "] {
        let rows = table.lines().filter(|line| line.starts_with(name));
        assert_eq!(rows.count(), 1, "{name}: {table}");
    }
    let output = json(&nursery, &[]);
    let groups = output["groups"].as_array().unwrap();
    let mut found: Vec<Value> = groups
        .iter()
        .map(|group| group["crop_type"].clone())
        .collect();
    assert_eq!(
        found.last(),
        Some(&Value::Null),
        "the group without a name is last"
    );
    // An empty name counts as absent.
    let mut expected: Vec<Value> = names
        .iter()
        .filter(|name| **name != "\"\"")
        .map(|name| serde_json::from_str(name).unwrap())
        .collect();
    found.sort_by_key(Value::to_string);
    expected.sort_by_key(Value::to_string);
    assert_eq!(found, expected);
    check_csv(&nursery, "crop_type", &output);
}

#[test]
fn email_addresses_are_shown_only_on_request() {
    let server = Server::start(&[]);
    for format in ["table", "json", "csv"] {
        let usual = summary(&server, &["--by", "crop_type,day", "-f", format]);
        assert!(!usual.contains('@'), "{usual}");
        let with_emails = summary(&server, &["--by", "scanned_by_email", "-f", format]);
        assert!(with_emails.contains('@'), "{with_emails}");
    }
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn figures_do_not_depend_on_paging_or_faults() {
        let same = ["--batches", "500", "--page-size", "40"];
        let usual = Server::start(&same);
        let args = [
            ["--by", "crop_type,month", "-f", "json"],
            ["--by", "week", "-f", "csv"],
            ["--by", "crop_type", "-f", "table"],
        ];
        let expected = args.map(|args| summary(&usual, &args));
        for faults in [
            &[
                "--fault",
                "503:0.2",
                "--fault",
                "reset:0.1",
                "--fault",
                "truncate:0.1",
            ][..],
            &["--fault", "shuffle"],
            &["--fault", "newest-first"],
            &["--fault", "duplicates:0.3", "--fault", "empty-pages:0.3"],
            &["--fault", "v2-missing", "--fault", "v1-truncate"],
            &["--fault", "unknown-fields", "--fault", "cursor-expiry:3"],
        ] {
            let server = Server::start(&[&same, faults].concat());
            for (args, expected) in args.iter().zip(&expected) {
                let args = [&args[..], &["--retries", "40"]].concat();
                assert!(summary(&server, &args) == *expected, "{faults:?} {args:?}");
            }
        }
        for more in [
            &["--api", "v1"][..],
            &["--parallel", "1"],
            &["--parallel", "16"],
        ] {
            for (args, expected) in args.iter().zip(&expected) {
                assert!(
                    summary(&usual, &[&args[..], more].concat()) == *expected,
                    "{more:?} {args:?}"
                );
            }
        }
    }
}
