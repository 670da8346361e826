//! Which batches are in a period, from the service, from an archive, and in files.

use std::collections::BTreeMap;
use std::fs;

use chrono::NaiveDate;
use serde_json::{Value, json};

use crate::archives::ArchiveFile;
use crate::fake::live::LiveService;
use crate::fake::{Batch, FakeService};
use crate::harness::{Output, Server, export, run, trayscan};
use crate::settings::Home;
use crate::verify::{Folder, assert_equal, verify, verify_with};

/// Runs an export with these flags.
type Source<'a> = &'a dyn Fn(&[&str]) -> Output;

/// Exports each period and returns the IDs of its batches, sorted.
fn ids_of(source: Source<'_>, zone: &str, period: &str) -> Vec<String> {
    let args = ["-f", "ndjson", "--period", period, "--time-zone", zone];
    let batches = source(&args).expect(0).json_lines();
    let id = |batch: &Value| batch["batch_id"].as_str().unwrap().to_owned();
    let mut ids: Vec<String> = batches.iter().map(id).collect();
    ids.sort();
    ids
}

/// A zone, the batches around an odd day, and the day to which each belongs.
type OddDays = (&'static str, &'static [(&'static str, &'static str)]);

const ODD_DAYS: [OddDays; 4] = [
    (
        "America/Sao_Paulo",
        &[
            ("2018-11-03T03:00:00Z", "2018-11-03"),
            ("2018-11-04T02:59:59Z", "2018-11-03"),
            ("2018-11-04T02:59:59.999Z", "2018-11-03"),
            ("2018-11-04T03:00:00Z", "2018-11-04"),
            ("2018-11-04T03:00:00.5Z", "2018-11-04"),
            ("2018-11-05T01:59:59.5Z", "2018-11-04"),
            ("2018-11-05T02:00:00Z", "2018-11-05"),
        ],
    ),
    (
        "Pacific/Apia",
        &[
            ("2011-12-29T10:00:00Z", "2011-12-29"),
            ("2011-12-30T09:59:59.5Z", "2011-12-29"),
            ("2011-12-30T10:00:00Z", "2011-12-31"),
            ("2011-12-30T10:00:00.5Z", "2011-12-31"),
            ("2011-12-31T09:59:59Z", "2011-12-31"),
            ("2011-12-31T10:00:00Z", "2012-01-01"),
        ],
    ),
    (
        "America/Havana",
        &[
            ("2026-11-01T03:59:59.5Z", "2026-10-31"),
            // Midnight, and an hour later midnight again.
            ("2026-11-01T04:00:00Z", "2026-11-01"),
            ("2026-11-01T05:00:00Z", "2026-11-01"),
            ("2026-11-02T04:59:59.9Z", "2026-11-01"),
            ("2026-11-02T05:00:00Z", "2026-11-02"),
        ],
    ),
    (
        "Asia/Kathmandu",
        &[
            ("2026-05-01T18:14:59.9Z", "2026-05-01"),
            ("2026-05-01T18:15:00Z", "2026-05-02"),
        ],
    ),
];

#[test]
fn neighbouring_days_share_no_batch_and_miss_none() {
    for (zone, batches) in ODD_DAYS {
        let service = LiveService::start();
        let mut expected: BTreeMap<NaiveDate, Vec<String>> = BTreeMap::new();
        for (number, (created, day)) in batches.iter().enumerate() {
            let id = format!("b{number}");
            service.state().put(&id, Batch::new(&id).created(created));
            expected.entry(day.parse().unwrap()).or_default().push(id);
        }
        let archive = ArchiveFile::new();
        archive.complete(&service, &["--start", "2000"]);
        let path = archive.path.to_str().unwrap();
        let from_archive = |args: &[&str]| run(&[&["export", "--archive", path], args].concat());
        let from_v2 = |args: &[&str]| export(&service, args);
        let from_v1 = |args: &[&str]| export(&service, &[args, &["--api", "v1"]].concat());
        let first = *expected.keys().next().unwrap();
        let last = *expected.keys().last().unwrap();
        let days: Vec<NaiveDate> = first.iter_days().take_while(|day| *day <= last).collect();
        let sources: [(&str, Source<'_>); 3] = [
            ("v2", &from_v2),
            ("v1", &from_v1),
            ("archive", &from_archive),
        ];
        for (name, source) in sources {
            for day in &days {
                let found = ids_of(source, zone, &day.to_string());
                let none = Vec::new();
                let expected = expected.get(day).unwrap_or(&none);
                assert_eq!(&found, expected, "{zone} {day} from {name}");
            }
        }
    }
}

#[test]
fn exported_dates_and_file_names_stay_in_utc() {
    let service = LiveService::start();
    service
        .state()
        .put("a", Batch::new("a").created("2026-04-30T16:00:00Z"));
    service
        .state()
        .put("b", Batch::new("b").created("2026-05-01T01:00:00Z"));
    let folder = Folder::new();
    let template = folder.at("{year}-{month}-{day}.ndjson");
    let zone = ["--time-zone", "Asia/Tokyo"];
    let args = [&["-o", &template, "--period", "2026-05-01"], &zone[..]].concat();
    let ended = export(&service, &args).expect(0);
    let range = "2026-04-30T15:00:00Z through 2026-05-01T14:59:59Z";
    assert!(ended.stderr.contains(range), "{ended:?}");
    for (name, id, created) in [
        ("2026-04-30.ndjson", "a", "2026-04-30T16:00:00Z"),
        ("2026-05-01.ndjson", "b", "2026-05-01T01:00:00Z"),
    ] {
        let [line] = &folder.lines(name)[..] else {
            panic!("{name} has one batch");
        };
        let batch: Value = serde_json::from_str(line).unwrap();
        assert_eq!(batch["batch_id"], id);
        assert_eq!(batch["batch_creation_date"], created);
    }
}

#[test]
fn conditions_on_dates_are_in_the_zone() {
    let service = LiveService::start();
    service
        .state()
        .put("a", Batch::new("a").created("2026-04-30T14:59:59Z"));
    service
        .state()
        .put("b", Batch::new("b").created("2026-04-30T15:00:00Z"));
    let condition = ["--where", "batch_creation_date>=2026-05-01"];
    for (zone, found) in [("Asia/Tokyo", "\"b\""), ("UTC", "")] {
        let args = [&condition[..], &["--time-zone", zone, "-f", "ndjson"]].concat();
        let ended = export(&service, &args).expect(0);
        assert_eq!(
            ended.stdout.is_empty(),
            found.is_empty(),
            "{zone}: {ended:?}"
        );
        assert!(ended.stdout.contains(found), "{zone}: {ended:?}");
    }
}

#[test]
fn a_manifest_records_the_zone_of_its_conditions() {
    let server = Server::start(&["--batches", "2000"]);
    let folder = Folder::new();
    let condition = ["--where", "batch_creation_date<2026-05-15"];
    let zone = ["--period", "2026-05", "--time-zone", "Pacific/Auckland"];
    let path = folder.export(&server, "a.csv", &[&condition[..], &zone].concat());
    let recorded = folder.manifest("a.csv");
    assert_eq!(recorded["request"]["time_zone"], "Pacific/Auckland");
    assert_eq!(recorded["request"]["start"], "2026-04-30T12:00:00Z");
    // Whatever the zone of the settings.
    let manifest = folder.at("a.csv.manifest");
    let ended = verify_with(&server, &[&path, "--manifest", &manifest]);
    assert_equal(&ended, "the zone of the manifest");
    let ended = verify_with(
        &server,
        &[
            &path,
            "--manifest",
            &manifest,
            "--time-zone",
            "America/New_York",
        ],
    );
    assert_equal(&ended, "another zone");
    let mut changed = recorded;
    changed["request"]["time_zone"] = json!("UTC");
    let changed = folder.write("changed", changed.to_string());
    let ended = verify_with(&server, &[&path, "--manifest", &changed]);
    assert_eq!(ended.code, Some(7), "the condition in UTC: {ended:?}");
    // Manifests of earlier versions have none.
    let path = folder.export(&server, "b.csv", &condition);
    let mut manifest = folder.manifest("b.csv");
    let request = manifest["request"].as_object_mut().unwrap();
    assert_eq!(request.remove("time_zone"), Some(json!("UTC")));
    let early = folder.write("early", manifest.to_string());
    assert_equal(
        &verify_with(&server, &[&path, "--manifest", &early]),
        "early",
    );
    manifest["request"]["time_zone"] = json!("Mars/Phobos");
    let unknown = folder.write("unknown", manifest.to_string());
    let ended = verify(&[&path, "--manifest", &unknown]).expect(2);
    assert!(
        ended.stderr.contains("its time zone is unknown"),
        "{ended:?}"
    );
}

#[test]
fn verify_compares_a_period_with_the_service() {
    let server = Server::start(&["--batches", "2000"]);
    let folder = Folder::new();
    let period = ["--period", "2026-04-29", "--time-zone", "Pacific/Auckland"];
    let path = folder.export(&server, "day.csv", &period);
    assert!(fs::read_to_string(&path).unwrap().lines().count() > 2);
    let ended = verify_with(&server, &[&[path.as_str()], &period[..]].concat());
    assert_equal(&ended, "the same period");
    let ended = verify_with(&server, &[&path, "--period", "2026-04-29"]);
    assert_eq!(ended.code, Some(7), "the same day in UTC: {ended:?}");
    let ended = verify(&[&path, "--manifest", "m", "--period", "2026"]).expect(2);
    assert!(ended.stderr.contains("cannot be used with"), "{ended:?}");
}

#[test]
fn summary_and_report_select_a_period_of_the_zone() {
    let service = FakeService::empty();
    let folder = Folder::new();
    let report = ["report", "-o", &folder.at("r.html")];
    for command in [&["summary"][..], &report] {
        for period in ["2026-05-01", "2011-12-30"] {
            let zone = ["--period", period, "--time-zone", "Pacific/Apia", "-v"];
            let mut run = trayscan(command);
            let ended = run.args(zone).service(&service).output().expect(0);
            let start = match period {
                "2026-05-01" => "start_date 2026-04-30T11:00:00Z, end_date 2026-05-01T11:00:00Z",
                _ => "start_date 2011-12-30T10:00:00Z, end_date 2011-12-30T10:00:00Z",
            };
            assert!(ended.stderr.contains(start), "{command:?}: {ended:?}");
        }
    }
}

#[test]
fn sync_starts_at_midnight_of_the_zone() {
    let service = LiveService::start();
    service
        .state()
        .put("a", Batch::new("a").created("2026-04-26T14:59:59Z"));
    service
        .state()
        .put("b", Batch::new("b").created("2026-04-26T15:00:00Z"));
    let archive = ArchiveFile::new();
    let args = ["--start", "2026-W18", "--time-zone", "Asia/Tokyo"];
    assert_eq!(archive.counts(&service, &args), [1, 0, 0]);
    // Without dates, a list needs no settings.
    archive.inspect(&[
        "--changes",
        "--since",
        "last-year",
        "--time-zone",
        "Asia/Tokyo",
    ]);
    let home = Home::with("[profiles.default]\ntime_zone = \"nowhere\"\n");
    let path = archive.path.to_str().unwrap();
    home.run(&["sync", path, "--status"]).expect(0);
    home.run(&["sync", path, "--changes", "--since", "today"])
        .expect(2);
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn consecutive_periods_cover_a_quarter_exactly() {
        let server = Server::start(&["--batches", "20000"]);
        // Its midnight is in the working hours of the demo data, and its clocks are put back on 5 April.
        let zone = "Pacific/Auckland";
        let from_service = |args: &[&str]| export(&server, args);
        let whole = ids_of(&from_service, zone, "2026-Q2");
        assert!(whole.len() > 500, "{}", whole.len());
        let months = ["2026-04", "2026-05", "2026-06"].map(String::from);
        let first = NaiveDate::from_ymd_opt(2026, 4, 1).unwrap();
        let days: Vec<String> = first
            .iter_days()
            .take(30)
            .map(|day| day.to_string())
            .collect();
        for (periods, expected) in [
            (&months[..], whole),
            (&days, ids_of(&from_service, zone, "2026-04")),
        ] {
            let mut found: Vec<String> = periods
                .iter()
                .flat_map(|period| ids_of(&from_service, zone, period))
                .collect();
            found.sort();
            assert!(found == expected, "{periods:?}");
        }
        let utc = ids_of(&from_service, "UTC", "2026-04");
        let auckland = ids_of(&from_service, zone, "2026-04");
        assert!(utc != auckland, "another month than in UTC");
    }
}
