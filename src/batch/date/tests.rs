use super::*;
use crate::batch::range::written;
use proptest::prelude::*;
use proptest::sample;

fn at(moment: &str) -> DateTime<Utc> {
    moment.parse().expect(moment)
}

fn clock(now: &str, zone: &str) -> Clock {
    Clock {
        now: at(now),
        zone: Zone::parse(zone).expect(zone),
    }
}

/// A Sunday in the second quarter.
fn now() -> Clock {
    clock("2026-05-31T12:30:15Z", "UTC")
}

fn start(word: &str) -> Result<String, Problem> {
    parse(word, &now()).map(|bound| match bound {
        Bound::Second(second) | Bound::Period { first: second, .. } => written(second.timestamp()),
    })
}

/// Returns the first second of a period, and the first one after it.
fn bounds(word: &str, clock: &Clock) -> (i64, i64) {
    match parse_period(word, clock) {
        Ok(Bound::Period { first, past }) => (first.timestamp(), past.timestamp()),
        other => panic!("{word}: {other:?}"),
    }
}

fn period(word: &str, clock: &Clock) -> (String, String) {
    let (first, past) = bounds(word, clock);
    (written(first), written(past))
}

#[test]
fn every_form_means_what_it_says() {
    for (word, means) in [
        ("2026-05-01T06:00:00Z", "2026-05-01T06:00:00Z"),
        ("2026-05-01T06:00:00+00:00", "2026-05-01T06:00:00Z"),
        ("2026-05-01T08:00:00+02:00", "2026-05-01T06:00:00Z"),
        ("2026-05-01T00:30:00-05:45", "2026-05-01T06:15:00Z"),
        ("2026-05-01", "2026-05-01T00:00:00Z"),
        ("2026-05", "2026-05-01T00:00:00Z"),
        ("2026", "2026-01-01T00:00:00Z"),
        ("2026-W01", "2025-12-29T00:00:00Z"),
        ("2026-W53", "2026-12-28T00:00:00Z"),
        ("2026-Q4", "2026-10-01T00:00:00Z"),
        ("today", "2026-05-31T00:00:00Z"),
        ("yesterday", "2026-05-30T00:00:00Z"),
        ("90m", "2026-05-31T11:00:15Z"),
        ("12h", "2026-05-31T00:30:15Z"),
        ("7d", "2026-05-24T12:30:15Z"),
        ("2w", "2026-05-17T12:30:15Z"),
        ("3mo", "2026-02-28T12:30:15Z"),
        ("1y", "2025-05-31T12:30:15Z"),
        ("0d", "2026-05-31T12:30:15Z"),
    ] {
        assert_eq!(start(word).as_deref(), Ok(means), "{word}");
    }
}

#[test]
fn a_period_goes_up_to_the_first_second_after_it() {
    for (word, first, past) in [
        ("2026-05-01", "2026-05-01", "2026-05-02"),
        ("2026-02", "2026-02-01", "2026-03-01"),
        ("2025", "2025-01-01", "2026-01-01"),
        ("2026-W53", "2026-12-28", "2027-01-04"),
        ("2026-Q2", "2026-04-01", "2026-07-01"),
        ("2026-Q4", "2026-10-01", "2027-01-01"),
        ("today", "2026-05-31", "2026-06-01"),
        ("yesterday", "2026-05-30", "2026-05-31"),
        ("this-week", "2026-05-25", "2026-06-01"),
        ("last-week", "2026-05-18", "2026-05-25"),
        ("this-month", "2026-05-01", "2026-06-01"),
        ("last-month", "2026-04-01", "2026-05-01"),
        ("this-quarter", "2026-04-01", "2026-07-01"),
        ("last-quarter", "2026-01-01", "2026-04-01"),
        ("this-year", "2026-01-01", "2027-01-01"),
        ("last-year", "2025-01-01", "2026-01-01"),
    ] {
        let midnight = |day: &str| format!("{day}T00:00:00Z");
        let expected = (midnight(first), midnight(past));
        assert_eq!(period(word, &now()), expected, "{word}");
    }
}

#[test]
fn periods_begin_at_midnight_of_the_zone() {
    // Still the day before in New York, and a Sunday there. The clocks have changed that morning.
    let new_york = clock("2026-03-09T02:00:00Z", "America/New_York");
    let kathmandu = clock("2025-12-31T18:15:00Z", "Asia/Kathmandu");
    for (word, clock, first, past) in [
        (
            "today",
            &new_york,
            "2026-03-08T05:00:00Z",
            "2026-03-09T04:00:00Z",
        ),
        (
            "yesterday",
            &new_york,
            "2026-03-07T05:00:00Z",
            "2026-03-08T05:00:00Z",
        ),
        (
            "this-week",
            &new_york,
            "2026-03-02T05:00:00Z",
            "2026-03-09T04:00:00Z",
        ),
        (
            "2026-W10",
            &new_york,
            "2026-03-02T05:00:00Z",
            "2026-03-09T04:00:00Z",
        ),
        (
            "2026-03",
            &new_york,
            "2026-03-01T05:00:00Z",
            "2026-04-01T04:00:00Z",
        ),
        (
            "2026-Q1",
            &new_york,
            "2026-01-01T05:00:00Z",
            "2026-04-01T04:00:00Z",
        ),
        (
            "2026",
            &new_york,
            "2026-01-01T05:00:00Z",
            "2027-01-01T05:00:00Z",
        ),
        // Already the new year there.
        (
            "this-year",
            &kathmandu,
            "2025-12-31T18:15:00Z",
            "2026-12-31T18:15:00Z",
        ),
    ] {
        let expected = (first.to_owned(), past.to_owned());
        assert_eq!(period(word, clock), expected, "{word}");
    }
    // Ages are exact.
    let exact = Bound::Second(at("2026-03-08T02:00:00Z"));
    assert_eq!(parse("1d", &new_york), Ok(exact));
}

#[test]
fn days_that_the_zone_cuts_short_or_skips() {
    let sao_paulo = clock("2018-11-05T12:00:00Z", "America/Sao_Paulo");
    let expected = (
        "2018-11-04T03:00:00Z".to_owned(),
        "2018-11-05T02:00:00Z".to_owned(),
    );
    assert_eq!(period("2018-11-04", &sao_paulo), expected);
    assert_eq!(period("yesterday", &sao_paulo), expected);
    // 30 December 2011 does not exist in Apia. Its range is empty, and the day before the 31st is the 29th.
    let apia = clock("2011-12-30T12:00:00Z", "Pacific/Apia");
    let skipped = "2011-12-30T10:00:00Z".to_owned();
    assert_eq!(
        period("2011-12-30", &apia),
        (skipped.clone(), skipped.clone())
    );
    let expected = (skipped.clone(), "2011-12-31T10:00:00Z".to_owned());
    assert_eq!(period("today", &apia), expected);
    let expected = ("2011-12-29T10:00:00Z".to_owned(), skipped);
    assert_eq!(period("yesterday", &apia), expected);
}

#[test]
fn a_second_without_an_offset_is_told_apart() {
    assert_eq!(start("2026-05-01T06:00:00"), Err(Problem::NoOffset));
}

#[test]
fn weeks_and_quarters_that_do_not_exist_are_told_apart() {
    for word in ["2026-W54", "2026-W00", "2026-W99", "2026-w54", "W54"] {
        assert_eq!(start(word), Err(Problem::NoSuchWeek(2026, 53)), "{word}");
    }
    assert_eq!(start("2025-W53"), Err(Problem::NoSuchWeek(2025, 52)));
    for word in ["2026-Q5", "2026-Q0", "2026-q5", "Q5"] {
        assert_eq!(start(word), Err(Problem::NoSuchQuarter(2026)), "{word}");
    }
}

#[test]
fn other_spellings_are_told_with_the_right_one() {
    for (word, right) in [
        ("2026-w44", "2026-W44"),
        ("2026w44", "2026-W44"),
        ("2026W44", "2026-W44"),
        ("2026-W4", "2026-W04"),
        ("2026 W44", "2026-W44"),
        ("w44", "2026-W44"),
        ("2026-q2", "2026-Q2"),
        ("2026Q2", "2026-Q2"),
        ("2026-Q02", "2026-Q2"),
        ("Q2", "2026-Q2"),
        ("lastweek", "last-week"),
        ("last_month", "last-month"),
        ("this month", "this-month"),
        ("This-Year", "this-year"),
        ("Yesterday", "yesterday"),
        ("yesteday", "yesterday"),
    ] {
        assert_eq!(
            start(word),
            Err(Problem::Misspelt(right.to_owned())),
            "{word}"
        );
    }
}

#[test]
fn everything_else_is_refused() {
    for word in [
        "",
        "now",
        "tomorrow",
        "next-week",
        "last",
        "week",
        "last-decade",
        "2026-W44-3",
        "2026-W444",
        "26-W44",
        "2026-W",
        "-W44x",
        "2026-X4",
        "Q2-2026",
        "7",
        "7 d",
        "7D",
        "d",
        "-7d",
        "1.5d",
        "1M",
        "7days",
        "20260501",
        "2026-5-1",
        "01/02/2026",
        "26-05-01",
        "2026-05-01T06:00",
        "2026-05-01 06:00:00Z",
        "2026-05-01T06:00:00z",
        "2026-05-01T06:00:00.Z",
        "2026-05-01T06:00:00.5",
        "2026-05-01T06:00:60Z",
        "2026-05-01T25:00:00Z",
        "2026-05-01T06:00:00+0200",
        "2026-05-01T06:00:00+24:00",
        "2026-05-01T06:00:00 Z",
        "２026",
        "2026-05-01T06:00:00Zé",
    ] {
        assert_eq!(start(word), Err(Problem::Unknown), "{word}");
    }
    for (word, right) in [
        ("2026-05-01T06:00:00.5Z", "2026-05-01T06:00:00Z"),
        ("2026-05-01T06:00:00.125-02:00", "2026-05-01T06:00:00-02:00"),
    ] {
        let problem = Problem::Fraction(right.to_owned());
        assert_eq!(start(word), Err(problem), "{word}");
    }
    let no_day = Problem::NoSuchDay(2026, 2, 28);
    for (word, problem) in [
        ("2026-02-30", no_day.clone()),
        ("2026-02-30T06:00:00Z", no_day),
        ("2026-13", Problem::NoSuchMonth),
        ("99999999999y", Problem::OutOfRange),
        ("9999y", Problem::OutOfRange),
        ("9999999d", Problem::OutOfRange),
        ("9999-12-31T23:59:59-05:00", Problem::OutOfRange),
        ("0000-01-01T00:00:00+01:00", Problem::OutOfRange),
    ] {
        assert_eq!(start(word), Err(problem), "{word}");
    }
}

#[test]
fn a_time_or_an_age_is_not_a_period() {
    for (word, problem) in [
        ("7d", NotPeriod::Age),
        ("3mo", NotPeriod::Age),
        ("2026-05-01T06:00:00Z", NotPeriod::Time),
        ("2026-05-01T06:00:00", NotPeriod::Time),
    ] {
        let expected = Err(Problem::NoPeriod(problem));
        assert_eq!(parse_period(word, &now()), expected, "{word}");
    }
    assert_eq!(parse_period("soon", &now()), Err(Problem::Unknown));
}

/// Each word of a period, and that of the period after it.
fn neighbours(day: NaiveDate) -> [(String, String); 5] {
    let week = |day: NaiveDate| {
        let week = day.iso_week();
        format!("{:04}-W{:02}", week.year(), week.week())
    };
    let quarter = |day: NaiveDate| format!("{:04}-Q{}", day.year(), day.month0() / 3 + 1);
    let words = |unit: Unit, word: &dyn Fn(NaiveDate) -> String| {
        let next = unit.first(day).and_then(|first| unit.next(first));
        (word(day), word(next.expect("a date")))
    };
    [
        words(Unit::Day, &|day| day.format("%Y-%m-%d").to_string()),
        words(Unit::Week, &week),
        words(Unit::Month, &|day| day.format("%Y-%m").to_string()),
        words(Unit::Quarter, &quarter),
        words(Unit::Year, &|day| day.format("%Y").to_string()),
    ]
}

/// The words for the current period and the one before it.
const CURRENT: [(&str, &str); 5] = [
    ("today", "yesterday"),
    ("this-week", "last-week"),
    ("this-month", "last-month"),
    ("this-quarter", "last-quarter"),
    ("this-year", "last-year"),
];

/// Checks that the periods around an instant neither overlap nor leave a gap, and that one of each length contains it.
fn check_tiles(zone: &Zone, second: i64) {
    let moment = |second| DateTime::from_timestamp(second, 0).expect("a date");
    let clock = Clock {
        now: moment(second),
        zone: zone.clone(),
    };
    let told = || format!("{} at {}", zone.name(), written(second));
    let day = moment(zone.local(second)).date_naive();
    // Just after midnight the clock may be put back, and show the end of the day before once more.
    let shown_again = zone.instant(zone.local(second)) < second;
    for ((word, next), (this, last)) in neighbours(day).iter().zip(CURRENT) {
        let ((first, past), after) = (bounds(word, &clock), bounds(next, &clock));
        assert_eq!(past, after.0, "{word}, {next}, {}", told());
        let contains = (first..past).contains(&second);
        let in_next = shown_again && (after.0..after.1).contains(&second);
        assert!(contains || in_next, "{word}, {}", told());
        assert_eq!(bounds(this, &clock), (first, past), "{this}, {}", told());
        let before = bounds(last, &clock);
        assert!(before.0 < before.1, "{last}, {}", told());
        assert_eq!(before.1, first, "{last}, {}", told());
    }
}

#[test]
fn periods_tile_around_odd_days() {
    for (zone, moment) in [
        ("America/Sao_Paulo", "2018-11-04T03:00:00Z"),
        ("America/Sao_Paulo", "2018-02-18T02:30:00Z"),
        ("Asia/Beirut", "2024-03-30T22:00:00Z"),
        ("Asia/Beirut", "2024-10-26T21:30:00Z"),
        ("Asia/Amman", "2022-02-24T22:00:00Z"),
        ("Pacific/Apia", "2011-12-30T10:00:00Z"),
        ("Pacific/Kwajalein", "1993-08-21T12:00:00Z"),
        ("Pacific/Kiritimati", "1994-12-31T10:00:00Z"),
        ("America/Juneau", "1867-10-18T12:00:00Z"),
        ("America/St_Johns", "2010-11-07T02:31:00Z"),
        ("America/Havana", "2026-11-01T05:00:00Z"),
        ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
        ("Africa/Casablanca", "2026-02-15T02:00:00Z"),
        ("Antarctica/Troll", "2026-03-29T01:00:00Z"),
        ("Europe/Amsterdam", "1937-06-30T23:40:28Z"),
        ("Africa/Monrovia", "1972-01-07T00:44:30Z"),
    ] {
        let zone = Zone::parse(zone).expect(zone);
        let second = at(moment).timestamp();
        for nearby in (second - 2 * 86_400..second + 2 * 86_400).step_by(599) {
            check_tiles(&zone, nearby);
        }
        check_tiles(&zone, second - 1);
        check_tiles(&zone, second);
    }
}

proptest! {
    #[test]
    fn periods_tile_in_every_zone(
        zone in sample::select(Zone::names().collect::<Vec<_>>()),
        second in at("1850-01-01T00:00:00Z").timestamp()..at("2110-01-01T00:00:00Z").timestamp(),
    ) {
        check_tiles(&Zone::parse(zone).expect("a zone"), second);
    }

    #[test]
    fn what_is_written_is_read_again(second in 0_i64..253_402_300_799) {
        prop_assert_eq!(start(&written(second)), Ok(written(second)));
    }

    #[test]
    fn no_word_makes_it_stumble(
        word: String,
        digits in "[0-9a-zA-Z:+. -]{0,25}",
        year in "[0-9]{4}-?[WwQq]?[0-9]{0,3}",
        zone in sample::select(Zone::names().collect::<Vec<_>>()),
    ) {
        let clock = clock("2026-05-31T12:30:15Z", zone);
        for word in [word, digits, year] {
            let _ = parse(&word, &clock);
            let _ = parse_period(&word, &clock);
        }
    }
}
