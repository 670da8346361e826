//! `--period` and `--time-zone`, end to end: which range is sent, and which batches are in it.

// Which batches are in a period.
mod batches;

use chrono::{DateTime, Datelike as _, Days, Months, NaiveDate, TimeDelta, Utc};

use crate::fake::FakeService;
use crate::harness::{Output, export, trayscan};
use crate::settings::Home;

/// Returns the dates of the last request, which `-v` must have shown.
fn sent(service: &FakeService, ended: &Output) -> [Option<String>; 2] {
    let last = service.requests().pop().unwrap();
    let dates = ["start_date", "end_date"].map(|name| last.query(name));
    for date in dates.iter().flatten() {
        assert!(ended.stderr.contains(date), "-v shows {date}: {ended:?}");
    }
    dates
}

/// Exports and returns the dates as they were sent.
fn asked(args: &[&str]) -> [Option<String>; 2] {
    let service = FakeService::empty();
    let ended = export(&service, &[args, &["-v"]].concat()).expect(0);
    sent(&service, &ended)
}

/// A zone, a period in it, and the dates that are sent for it.
const SENT: &str = "\
UTC 2026-W44 2026-10-26T00:00:00Z 2026-11-02T00:00:00Z
UTC 2026-W01 2025-12-29T00:00:00Z 2026-01-05T00:00:00Z
UTC 2026-W53 2026-12-28T00:00:00Z 2027-01-04T00:00:00Z
UTC 2026-Q2 2026-04-01T00:00:00Z 2026-07-01T00:00:00Z
UTC 2026-Q4 2026-10-01T00:00:00Z 2027-01-01T00:00:00Z
UTC 2026-05-01 2026-05-01T00:00:00Z 2026-05-02T00:00:00Z
// Daylight saving time begins on 29 March and ends on 25 October.
Europe/Amsterdam 2026-03-29 2026-03-28T23:00:00Z 2026-03-29T22:00:00Z
Europe/Amsterdam 2026-10-25 2026-10-24T22:00:00Z 2026-10-25T23:00:00Z
Europe/Amsterdam 2026-W44 2026-10-25T23:00:00Z 2026-11-01T23:00:00Z
Europe/Amsterdam 2026-05 2026-04-30T22:00:00Z 2026-05-31T22:00:00Z
Europe/Amsterdam 2026-Q2 2026-03-31T22:00:00Z 2026-06-30T22:00:00Z
Europe/Amsterdam 2026 2025-12-31T23:00:00Z 2026-12-31T23:00:00Z
Asia/Kolkata 2026-05-01 2026-04-30T18:30:00Z 2026-05-01T18:30:00Z
Asia/Kathmandu 2026-05-01 2026-04-30T18:15:00Z 2026-05-01T18:15:00Z
Australia/Lord_Howe 2026-04-05 2026-04-04T13:00:00Z 2026-04-05T13:30:00Z
// There is no midnight: the day begins at one.
America/Sao_Paulo 2018-11-04 2018-11-04T03:00:00Z 2018-11-05T02:00:00Z
Asia/Beirut 2024-03-31 2024-03-30T22:00:00Z 2024-03-31T21:00:00Z
// There are two midnights: the day begins with the first.
America/Havana 2026-11-01 2026-11-01T04:00:00Z 2026-11-02T05:00:00Z
// There is no such day.
Pacific/Apia 2011-12-30 2011-12-30T10:00:00Z 2011-12-30T10:00:00Z
Pacific/Apia 2011-12 2011-12-01T10:00:00Z 2011-12-31T10:00:00Z
// Years before the first and after the last cannot be sent.
America/New_York 9999 9999-01-01T05:00:00Z 9999-12-31T23:59:59Z
Asia/Tokyo 0000 0000-01-01T00:00:00Z 0000-12-31T14:41:01Z";

#[test]
fn a_period_is_sent_from_midnight_to_midnight_of_the_zone() {
    for row in SENT.lines().filter(|row| !row.starts_with("//")) {
        let columns: Vec<&str> = row.split_whitespace().collect();
        let [zone, period, start, end] = columns[..] else {
            panic!("{row}");
        };
        let expected = [Some(start.to_owned()), Some(end.to_owned())];
        let told = format!("{zone} {period}");
        let zone = ["--time-zone", zone];
        let args = [&["--period", period], &zone[..]].concat();
        assert_eq!(asked(&args), expected, "{told}");
        let args = [&["--since", period, "--until", period], &zone[..]].concat();
        assert_eq!(asked(&args), expected, "{told}");
    }
}

#[test]
fn words_mean_the_current_period_and_the_one_before_it() {
    // Tokyo is nine hours ahead, all year round.
    for (zone, hours) in [("UTC", 0), ("Asia/Tokyo", 9)] {
        let shift = TimeDelta::hours(hours);
        let midnight = |day: NaiveDate| {
            let midnight = day.and_hms_opt(0, 0, 0).unwrap().and_utc() - shift;
            Some(midnight.format("%Y-%m-%dT%H:%M:%SZ").to_string())
        };
        let expected = |now: DateTime<Utc>| {
            let today = (now + shift).date_naive();
            let week = today - Days::new(u64::from(today.weekday().num_days_from_monday()));
            let month = today.with_day(1).unwrap();
            let quarter = month - Months::new(month.month0() % 3);
            let year = month - Months::new(month.month0());
            let day = Days::new(1);
            [
                ("yesterday", today - day, today),
                ("today", today, today + day),
                ("last-week", week - Days::new(7), week),
                ("this-week", week, week + Days::new(7)),
                ("last-month", month - Months::new(1), month),
                ("this-month", month, month + Months::new(1)),
                ("last-quarter", quarter - Months::new(3), quarter),
                ("this-quarter", quarter, quarter + Months::new(3)),
                ("last-year", year - Months::new(12), year),
                ("this-year", year, year + Months::new(12)),
            ]
            .map(|(word, first, past)| (word, [midnight(first), midnight(past)]))
        };
        // Midnight may pass during the test.
        let before = expected(Utc::now());
        let found = before.clone().map(|(word, _)| {
            let args = ["--period", word, "--time-zone", zone];
            (word, asked(&args))
        });
        let after = expected(Utc::now());
        for ((found, before), after) in found.iter().zip(&before).zip(&after) {
            assert!([before, after].contains(&found), "{found:?}: {before:?}");
        }
    }
}

#[test]
fn the_zone_comes_from_flag_variable_or_file() {
    let service = FakeService::empty();
    let home = Home::with("[profiles.default]\ntime_zone = \"Asia/Tokyo\"\n");
    let start = |flag: Option<&str>, variable: Option<&str>| {
        let mut command = home.command(&["export", "--period", "2026-05-01", "-v"]);
        command.service(&service);
        if let Some(variable) = variable {
            command.env("TRAYSCAN_TIME_ZONE", variable);
        }
        if let Some(flag) = flag {
            command.args(["--time-zone", flag]);
        }
        let ended = command.output().expect(0);
        let [start, _] = sent(&service, &ended);
        start.unwrap()
    };
    assert_eq!(start(None, None), "2026-04-30T15:00:00Z");
    assert_eq!(
        start(None, Some("America/New_York")),
        "2026-05-01T04:00:00Z"
    );
    assert_eq!(
        start(Some("UTC"), Some("America/New_York")),
        "2026-05-01T00:00:00Z"
    );
}

#[test]
fn a_wrong_zone_is_refused_before_any_request() {
    let service = FakeService::empty();
    let refused = |ended: &Output, says: &[&str]| {
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(2), ""),
            "{ended:?}"
        );
        for says in says {
            assert!(ended.stderr.contains(says), "{says}: {ended:?}");
        }
    };
    let wrong = "`--time-zone` is `Europe/amsterdam`; it must be written `Europe/Amsterdam`";
    refused(
        &export(&service, &["--time-zone", "Europe/amsterdam"]),
        &[wrong],
    );
    let mut command = trayscan(&["export", "--sandbox"]);
    command.env("TRAYSCAN_TIME_ZONE", "Amsterdam");
    let wrong = "TRAYSCAN_TIME_ZONE is `Amsterdam`; it must be the name of a time zone; \
                 did you mean `Europe/Amsterdam`?";
    refused(&command.output(), &[wrong]);
    let home = Home::with("[profiles.default]\nretries = 1\ntime_zone = \"Europe/Amsterdan\"\n");
    for args in [
        &["export", "--sandbox"][..],
        &["export", "--archive", "missing.db"],
        &["sync", "a.db", "--start", "today"],
        &["config", "show"],
        &["check", "--sandbox"],
    ] {
        let ended = home.run(args);
        let key = "invalid value for `profiles.default.time_zone` on line 3 in the config file";
        if args[0] != "check" {
            refused(
                &ended,
                &[key, "config.toml", "did you mean `Europe/Amsterdam`?"],
            );
        }
        assert_eq!(ended.code, Some(2), "{ended:?}");
    }
    assert!(service.lines().is_empty());
}

#[test]
fn wrong_periods_are_refused_before_any_request() {
    let service = FakeService::empty();
    for (args, says) in [
        (
            "--period 2026-W54",
            "`--period` is `2026-W54`; 2026 has 53 weeks",
        ),
        ("--period 2026-W54", "its weeks are 2026-W01 to 2026-W53"),
        ("--start 2025-W53", "its weeks are 2025-W01 to 2025-W52"),
        (
            "--end 2026-Q5",
            "`--end` is `2026-Q5`; a year has 4 quarters",
        ),
        ("--end 2026-Q5", "write 2026-Q1 to 2026-Q4"),
        ("--period 2026-w44", "did you mean `2026-W44`?"),
        ("--start 2026-q2", "did you mean `2026-Q2`?"),
        ("--period lastweek", "did you mean `last-week`?"),
        (
            "--period 7d",
            "`--period` is `7d`; it must be a period, such as last-month",
        ),
        (
            "--period 7d",
            "to select everything since then, use `--start 7d`",
        ),
        ("--period 2026-05-01T06:00:00Z", "use `--start` and `--end`"),
        ("--period 2026-05-01T06:00:00", "use `--start` and `--end`"),
        ("--period soon", "today, yesterday"),
        ("--period=", "2026-W18, 2026-Q2"),
        ("--period -7d", "this-week, last-week"),
        ("--start soon", "this-week, last-week"),
        (
            "--period 2026 --start 2026",
            "`--period` cannot be used with `--start`",
        ),
        (
            "--period 2026 --since 2026",
            "`--period` cannot be used with `--start`",
        ),
        (
            "--period 2026 --end 2026",
            "`--period` cannot be used with `--end`",
        ),
        ("--until 2026 --period 2026", "cannot be used with"),
        ("--period 2026 -f singer --state s", "cannot be used with"),
    ] {
        let words: Vec<&str> = args.split(' ').collect();
        let ended = export(&service, &words);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(2), ""),
            "{ended:?}"
        );
        assert!(ended.stderr.contains(says), "{args}: {ended:?}");
    }
    assert!(service.lines().is_empty());
}
