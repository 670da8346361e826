//! Dates as users write them, and the range that is sent.

use std::collections::HashSet;

use chrono::{DateTime, Days, Months, NaiveDate, TimeDelta, Utc};
use serde_json::Value;

use super::{values, with};
use crate::data::moment;
use crate::fake::FakeService;
use crate::fake::readings::{Compared, Readings};
use crate::harness::{Server, export};
use crate::paging::ids;

/// Exports and returns the dates as they were sent.
fn asked(args: &[&str]) -> (Option<String>, Option<String>) {
    let stub = FakeService::empty();
    let ended = export(&stub, &[args, &["-v"]].concat()).expect(0);
    let requests = stub.lines();
    let (_, query) = requests.last().unwrap().split_once('?').unwrap_or_default();
    let date = |name: &str| {
        form_urlencoded::parse(query.as_bytes())
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    };
    let dates = (date("start_date"), date("end_date"));
    for date in [&dates.0, &dates.1].into_iter().flatten() {
        assert!(ended.stderr.contains(date), "-v shows {date}: {ended:?}");
    }
    dates
}

#[test]
fn every_date_format_is_sent_as_utc_seconds() {
    for (form, start, end) in [
        (
            "2026-05-01T06:00:00Z",
            "2026-05-01T06:00:00Z",
            "2026-05-01T06:00:00Z",
        ),
        (
            "2026-05-01T06:00:00+00:00",
            "2026-05-01T06:00:00Z",
            "2026-05-01T06:00:00Z",
        ),
        (
            "2026-05-01T08:00:00+02:00",
            "2026-05-01T06:00:00Z",
            "2026-05-01T06:00:00Z",
        ),
        (
            "2025-12-31T20:00:00-05:30",
            "2026-01-01T01:30:00Z",
            "2026-01-01T01:30:00Z",
        ),
        ("2026-05-01", "2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z"),
        ("2024-02-29", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"),
        ("2026-12-31", "2026-12-31T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("2026-05", "2026-05-01T00:00:00Z", "2026-06-01T00:00:00Z"),
        ("2024-02", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"),
        ("2026-12", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("2026", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
    ] {
        let sent = (Some(start.to_owned()), Some(end.to_owned()));
        assert_eq!(asked(&["--start", form, "--end", form]), sent, "{form}");
        assert_eq!(asked(&["--since", form, "--until", form]), sent, "{form}");
        assert_eq!(asked(&["--start", form]), (sent.0, None), "{form}");
        assert_eq!(asked(&["--end", form]), (None, sent.1), "{form}");
    }
    assert_eq!(asked(&[]), (None, None));
}

#[test]
fn relative_dates_are_sent_as_utc_seconds() {
    type Meaning = fn(DateTime<Utc>) -> DateTime<Utc>;
    let midnight = |moment: DateTime<Utc>, days: u64| {
        let day = moment.date_naive().checked_add_days(Days::new(days));
        day.unwrap().and_hms_opt(0, 0, 0).unwrap().and_utc()
    };
    let yesterday = |moment: DateTime<Utc>| moment - TimeDelta::days(1);
    let meanings: [(&str, Meaning); 6] = [
        ("90m", |now| now - TimeDelta::minutes(90)),
        ("12h", |now| now - TimeDelta::hours(12)),
        ("7d", |now| now - TimeDelta::days(7)),
        ("2w", |now| now - TimeDelta::days(14)),
        ("3mo", |now| now.checked_sub_months(Months::new(3)).unwrap()),
        ("1y", |now| now.checked_sub_months(Months::new(12)).unwrap()),
    ];
    let second = |text: Option<String>| text.unwrap().parse::<DateTime<Utc>>().unwrap();
    for (form, meaning) in meanings {
        for flag in ["--start", "--end"] {
            let before = Utc::now();
            let (start, end) = asked(&[flag, form]);
            let sent = second(start.or(end)).timestamp();
            let between = meaning(before).timestamp()..=meaning(Utc::now()).timestamp();
            assert!(between.contains(&sent), "{flag} {form}: {sent} {between:?}");
        }
    }
    // Midnight may pass during the test.
    let before = Utc::now();
    let today = asked(&["--start", "today", "--end", "today"]);
    let day_before = asked(&["--start", "yesterday", "--end", "yesterday"]);
    let nows = [before, Utc::now()];
    let (start, end) = (second(today.0), second(today.1));
    assert!(nows.map(|now| midnight(now, 0)).contains(&start));
    assert!(nows.map(|now| midnight(now, 1)).contains(&end));
    let (start, end) = (second(day_before.0), second(day_before.1));
    assert!(nows.map(|now| midnight(yesterday(now), 0)).contains(&start));
    assert!(nows.map(|now| midnight(now, 0)).contains(&end));
}

#[test]
fn invalid_dates_are_refused_before_any_request() {
    for (args, says) in [
        (
            &["--start", "2026-05-02", "--end", "2026-05-01"][..],
            "the start is after the end",
        ),
        (
            &["--start", "2026-06", "--end", "2026-05"],
            "the start is after the end",
        ),
        (
            &["--start", "2026-05-02T00:00:00Z", "--end", "2026-05-01"],
            "the start is after the end",
        ),
        (
            &["--start", "1d", "--end", "2d"],
            "the start is after the end",
        ),
        (&["--start", "1M"], "m is minutes, mo is months"),
        (&["--start", "soon"], "2026-05-01T06:00:00Z"),
        (&["--end", "01/02/2026"], "today, yesterday"),
        (&["--end", "2026-02-30"], "90m, 12h, 7d, 2w, 3mo, 1y"),
        (
            &["--end", "20260501"],
            "it must be a date, such as 2026-05-01",
        ),
        (&["--start", "-7d"], "it must be a date, such as 2026-05-01"),
        (&["--start", ""], "it must be a date, such as 2026-05-01"),
    ] {
        let stub = FakeService::empty();
        let ended = export(&stub, args);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
        assert!(ended.stderr.contains(says), "{args:?}: {ended:?}");
        assert!(stub.lines().is_empty(), "{args:?}");
    }
}

#[test]
fn a_date_without_a_time_zone_is_refused_with_a_corrected_command() {
    for (flag, other) in [("--start", "--since"), ("--end", "--until")] {
        let stub = FakeService::empty();
        for given in [flag, other] {
            let ended = export(
                &stub,
                &[given, "2026-05-01T06:00:00", "--message-format", "json"],
            );
            assert_eq!(ended.code, Some(2), "{ended:?}");
            let hint = ended.error()["hint"].as_str().unwrap().to_owned();
            assert!(
                hint.contains(&format!("{flag} 2026-05-01T06:00:00Z")),
                "{hint}"
            );
        }
        assert!(stub.lines().is_empty());
    }
}

#[test]
fn the_range_is_shown_with_v_and_in_the_last_line() {
    let server = Server::start(&[]);
    let asked = "start_date 2026-04-01T00:00:00Z, end_date 2026-05-01T00:00:00Z";
    let range = "2026-04-01 through 2026-04-30";
    let flags = ["--start", "2026-04", "--end", "2026-04"];
    let plain = export(&server, &flags).expect(0);
    assert!(!plain.stderr.contains("requesting "), "{plain:?}");
    let verbose = export(&server, &[&flags[..], &["-v"]].concat()).expect(0);
    let first = verbose.stderr.lines().next().unwrap();
    let says = format!(" info: requesting {asked} from http://{}", server.address);
    assert!(first.ends_with(&says), "{first}");
    for ended in [plain, verbose] {
        assert!(ended.stderr.lines().last().unwrap().contains(range));
    }
}

/// Asserts that exports of consecutive `periods` together contain each batch of `whole` exactly once.
fn assert_partitioned(server: &Server, periods: &[String], whole: &[Value], args: &[&str]) {
    let mut found = Vec::new();
    for period in periods {
        let dump = values(
            server,
            &[&["--start", period, "--end", period], args].concat(),
        );
        let stray = dump
            .iter()
            .find(|batch| !moment(batch).starts_with(period.as_str()));
        assert_eq!(stray, None, "{period}");
        found.extend(dump);
    }
    let distinct: HashSet<&str> = ids(&found).into_iter().collect();
    assert_eq!(distinct.len(), found.len(), "a batch is in two exports");
    let expected: HashSet<&str> = ids(whole).into_iter().collect();
    let missed: Vec<_> = expected.difference(&distinct).collect();
    assert_eq!((found.len(), missed), (whole.len(), Vec::new()));
}

#[test]
fn bounds_given_in_seconds_are_inclusive() {
    let server = Server::start(&["--batches", "3000"]);
    let all = server.flat("");
    let batch = all
        .iter()
        .find(|batch| !moment(batch).contains('.'))
        .unwrap();
    let second = format!("{}Z", moment(batch));
    for api in ["v1", "v2"] {
        let found = values(
            &server,
            &["--start", &second, "--end", &second, "--api", api],
        );
        assert!(found.contains(batch), "{api}");
    }
}

#[test]
fn batches_outside_the_range_draw_a_warning() {
    let words = "created before or after the requested dates";
    for (compared, period, outside) in [
        (Compared::Created, "2026-05-02", None),
        (Compared::Day, "2026-05-02", Some("17 batches were ")),
        (Compared::Updated, "2026-05-31", Some("13 batches were ")),
        (Compared::Nothing, "2026-05-01", Some("47 batches were ")),
    ] {
        let service = Readings {
            compared,
            ..Readings::default()
        };
        let service = service.start();
        let told = |args: &[&str]| export(&service, args).expect(0).stderr;
        let warned = told(&["--period", period]);
        match outside {
            Some(count) => assert!(warned.contains(&format!("{count}{words}")), "{warned}"),
            None => assert!(!warned.contains(words), "{warned}"),
        }
        let whole = told(&[]);
        assert!(!whole.contains(words), "{whole}");
    }
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn consecutive_months_and_years_cover_everything_exactly() {
        let server = with(&["--batches", "3000"], &["shuffle"]);
        let all = server.flat("");
        let years: Vec<String> = (2023..=2026).map(|year| year.to_string()).collect();
        let months = (0..36).map(|month| {
            let first = NaiveDate::from_ymd_opt(2023, 11, 1).unwrap();
            let month = first.checked_add_months(Months::new(month)).unwrap();
            month.format("%Y-%m").to_string()
        });
        assert_partitioned(&server, &years, &all, &[]);
        assert_partitioned(&server, &months.collect::<Vec<_>>(), &all, &[]);
        let server = with(&["--batches", "3000"], &["v1-refuse", "newest-first"]);
        assert_partitioned(&server, &years, &all, &["--api", "v1"]);
    }

    #[test]
    #[ignore = "slow"]
    fn consecutive_daily_exports_cover_a_month_exactly() {
        let server = Server::start(&["--batches", "20000"]);
        let month = server.flat("start_date=2026-04-01T00:00:00Z&end_date=2026-05-01T00:00:00Z");
        let month: Vec<Value> = month
            .into_iter()
            .filter(|batch| moment(batch).starts_with("2026-04"))
            .collect();
        let holds = |time: &str| month.iter().any(|batch| moment(batch)[10..] == *time);
        assert!(
            holds("T00:00:00") && holds("T23:59:59"),
            "the data has both ends of a day"
        );
        assert!(
            month
                .iter()
                .any(|batch| moment(batch).contains("T23:59:59.")),
            "batches that naive daily ranges would miss"
        );
        let first = NaiveDate::from_ymd_opt(2026, 4, 1).unwrap();
        let days: Vec<String> = first
            .iter_days()
            .take(30)
            .map(|day| day.to_string())
            .collect();
        assert_partitioned(&server, &days, &month, &[]);
        assert_partitioned(&server, &["2026-04".to_owned()], &month, &[]);
    }
}
