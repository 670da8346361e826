//! Groups batches by key: the sink of the pipeline for `summary`.

use std::collections::HashMap;

use rust_decimal::Decimal;

use super::figures::{Figures, Measurements};
use super::key::{By, Key, KeyPart};
use super::period::Period;
use super::trend::{Marks, Trend};
use crate::batch::Batch;
use crate::error::Failure;
use crate::text::join;

/// The maximum number of groups. This many need about a gigabyte of memory.
const MAX_GROUPS: usize = 500_000;

/// The groups while batches arrive.
pub(crate) struct Groups {
    by: Vec<By>,
    by_key: HashMap<Key, (Box<Figures>, Trend)>,
    /// All batches together. Merging the groups at the end would take more time and memory.
    total: (Box<Figures>, Trend),
    limit: usize,
    /// The key of the current batch, kept to reuse its memory.
    key: Vec<KeyPart>,
}

/// The finished groups.
pub(crate) struct GroupedFigures {
    pub(crate) by: Vec<By>,
    /// Sorted by key.
    pub(crate) groups: Vec<Group>,
    /// All groups together. Its key is empty.
    pub(crate) total: Group,
    /// The time axis of the total. `None` if no batch has a usable rate.
    pub(crate) marks: Option<Marks>,
}

pub(crate) struct Group {
    pub(crate) key: Key,
    /// Boxed, since lists of many groups are moved and sorted.
    pub(crate) figures: Box<Figures>,
    /// Medians of the usable rate over time. Empty if the time is not known. A group of a day, week or month has
    /// the time axis of that period; any other has that of the total.
    pub(crate) trend: Vec<Option<Decimal>>,
}

impl Groups {
    pub(crate) fn new(by: Vec<By>) -> Self {
        Self {
            by,
            by_key: HashMap::new(),
            total: (Box::default(), Trend::growing()),
            limit: MAX_GROUPS,
            key: Vec::new(),
        }
    }

    /// Adds a batch, which was created at `second`.
    pub(crate) fn add(
        &mut self,
        batch: &Batch,
        second: Option<i64>,
        measurements: &Measurements,
    ) -> Result<(), Failure> {
        self.key.clear();
        self.key
            .extend(self.by.iter().map(|by| by.part(batch, second)));
        let is_full = self.by_key.len() == self.limit;
        let (figures, trend) = match self.by_key.get_mut(self.key.as_slice()) {
            Some(group) => group,
            None if is_full => return Err(too_many(&self.by, self.limit)),
            None => {
                let group = || (Box::default(), trend(&self.key));
                let key = self.key.as_slice().into();
                self.by_key.entry(key).or_insert_with(group)
            }
        };
        figures.take(measurements);
        self.total.0.take(measurements);
        if let (Some(second), Some(rate)) = (second, measurements.usable_rate()) {
            trend.add(second, rate);
            self.total.1.add(second, rate);
        }
        Ok(())
    }

    /// Finishes and sorts the groups.
    pub(crate) fn finish(self) -> GroupedFigures {
        let (total, trend) = self.total;
        let marks = trend.marks();
        let is_timed = self.by.iter().any(|by| by.step().is_some());
        let groups = self.by_key.into_iter().map(|(key, (figures, trend))| {
            let own = if is_timed { trend.marks() } else { marks };
            Group {
                key,
                figures,
                trend: medians(&trend, own),
            }
        });
        let mut groups: Vec<Group> = groups.collect();
        groups.sort_unstable_by(|left, right| left.key.cmp(&right.key));
        GroupedFigures {
            by: self.by,
            groups,
            total: Group {
                key: Key::default(),
                figures: total,
                trend: medians(&trend, marks),
            },
            marks,
        }
    }
}

fn medians(trend: &Trend, marks: Option<Marks>) -> Vec<Option<Decimal>> {
    marks.map_or_else(Vec::new, |marks| trend.medians(&marks))
}

/// Starts the trend of a group, over its own period if it has one.
fn trend(key: &[KeyPart]) -> Trend {
    let periods = key.iter().filter_map(|part| match part {
        KeyPart::Time(period) => *period,
        KeyPart::Text(_) => None,
    });
    // With several periods, such as a week and a month: their intersection.
    let first = periods.clone().map(Period::first).max();
    let past = periods.map(|period| period.next().first()).min();
    match (first, past) {
        (Some(first), Some(past)) => Trend::within(first, past),
        _ => Trend::growing(),
    }
}

fn too_many(by: &[By], limit: usize) -> Failure {
    let names = join(by.iter().map(|by| by.name()), ",");
    Failure::usage(
        format!("`--by {names}` makes more than {limit} groups"),
        "use fewer or longer groups, such as month instead of day, or a shorter range with `--start` and `--end`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::statistics::two_digits;
    use crate::batch::sample as batch;
    use crate::error::Kind;

    fn take(groups: &mut Groups, crop: &str, date: &str, rate: &str) -> Result<(), Failure> {
        let batch = batch(&[
            ("crop_type", crop),
            ("batch_creation_date", &format!("\"{date}\"")),
            ("avg_usable_seedling_rate", rate),
        ]);
        let second = batch.created().map(|created| created.second);
        groups.add(&batch, second, &Measurements::of(&batch))
    }

    fn names(sums: &GroupedFigures) -> Vec<Vec<Option<String>>> {
        let groups = sums.groups.iter();
        groups
            .map(|group| group.key.iter().map(KeyPart::name).collect())
            .collect()
    }

    fn shown(trend: &[Option<Decimal>]) -> Vec<String> {
        trend
            .iter()
            .map(|median| median.map_or_else(String::new, two_digits))
            .collect()
    }

    #[test]
    fn batches_are_put_into_groups() {
        let mut groups = Groups::new(vec![By::CropType, By::Month]);
        for (crop, date) in [
            ("\"Tomato\"", "2026-05-01T00:00:00Z"),
            ("null", "2026-04-30T23:59:59Z"),
            ("\"Tomato\"", "2026-04-30T23:59:59Z"),
            ("\"Tomato\"", "2026-05-31T23:59:59Z"),
            ("\"unknown\"", "2026-05-31T23:59:59Z"),
        ] {
            take(&mut groups, crop, date, "\"50.00\"").expect("few groups");
        }
        let sums = groups.finish();
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(
            names(&sums),
            [
                [name("Tomato"), name("2026-04")],
                [name("Tomato"), name("2026-05")],
                [name("unknown"), name("2026-05")],
                [None, name("2026-04")],
            ]
        );
        assert_eq!(
            sums.groups
                .iter()
                .map(|group| group.figures.batches)
                .collect::<Vec<_>>(),
            [1, 2, 1, 1]
        );
        assert_eq!(sums.total.figures.batches, 5);
        assert_eq!(sums.total.key.len(), 0);
    }

    #[test]
    fn trends_of_groups_are_aligned() {
        let mut groups = Groups::new(vec![By::CropType]);
        for (crop, date, rate) in [
            ("\"Tomato\"", "2026-05-01T00:00:00Z", "\"50.00\""),
            ("\"Tomato\"", "2026-05-01T02:00:00Z", "\"60.00\""),
            ("\"Leek\"", "2026-05-01T01:30:00Z", "\"70.00\""),
            ("\"Leek\"", "2026-05-01T02:30:00Z", "null"),
        ] {
            take(&mut groups, crop, date, rate).expect("few groups");
        }
        let sums = groups.finish();
        assert_eq!(shown(&sums.groups[0].trend), ["", "70.00", ""]);
        assert_eq!(shown(&sums.groups[1].trend), ["50.00", "", "60.00"]);
        assert_eq!(shown(&sums.total.trend), ["50.00", "70.00", "60.00"]);
    }

    #[test]
    fn a_group_of_a_day_has_the_trend_of_that_day() {
        let mut groups = Groups::new(vec![By::Day]);
        take(&mut groups, "null", "2026-05-01T00:00:00Z", "\"50.00\"").expect("few groups");
        take(&mut groups, "null", "2026-05-02T23:59:59Z", "\"60.00\"").expect("few groups");
        let sums = groups.finish();
        assert_eq!(
            shown(&sums.groups[0].trend)
                .iter()
                .position(|mark| mark == "50.00"),
            Some(0)
        );
        assert_eq!(
            shown(&sums.groups[1].trend)
                .iter()
                .position(|mark| mark == "60.00"),
            Some(11)
        );
        assert_eq!(sums.groups[0].trend.len(), 12);
    }

    #[test]
    fn too_many_groups_are_refused() {
        let mut groups = Groups::new(vec![By::CropType, By::Day]);
        groups.limit = 2;
        let date = "2026-05-01T00:00:00Z";
        take(&mut groups, "\"a\"", date, "null").expect("one");
        take(&mut groups, "\"b\"", date, "null").expect("two");
        take(&mut groups, "\"a\"", date, "null").expect("still two");
        let refused = take(&mut groups, "\"c\"", date, "null").expect_err("three");
        assert_eq!(
            refused.to_string(),
            "`--by crop_type,day` makes more than 2 groups"
        );
        assert_eq!(refused.kind, Kind::Usage);
    }

    #[test]
    fn no_batches_make_no_groups() {
        let sums = Groups::new(vec![By::CropType]).finish();
        assert_eq!((sums.groups.len(), sums.total.figures.batches), (0, 0));
        assert_eq!((sums.total.trend.len(), sums.marks), (0, None));
    }
}
