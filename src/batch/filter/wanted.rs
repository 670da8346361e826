//! The values that `--where` compares with. Those of a list are sorted, so that a long one takes little time.

use std::cmp::Ordering;

use crate::batch::date::Bound;
use crate::batch::decimal::compare as compare_numbers;
use crate::batch::timestamp::Timestamp;

/// A value to compare with, by the type of the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Number(String),
    Instant(Timestamp),
    /// The seconds from `first` up to, not including, `past`.
    Period {
        first: i64,
        past: i64,
    },
    Text(String),
}

/// The values of a list, which have the type of its field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WantedList {
    /// In the order of the user.
    pub(super) written: Vec<Wanted>,
    numbers: Vec<String>,
    instants: Vec<Timestamp>,
    /// The first second of each period, and the one after its last. They do not overlap.
    periods: Vec<(i64, i64)>,
    texts: Vec<String>,
}

impl Wanted {
    pub(super) fn of_date(bound: Bound) -> Self {
        match bound {
            Bound::Second(second) => Self::Instant(Timestamp::at(second.timestamp())),
            Bound::Period { first, past } => Self::Period {
                first: first.timestamp(),
                past: past.timestamp(),
            },
        }
    }

    /// Compares two values of the field.
    pub(super) fn compare(&self, left: &str, right: &str) -> Ordering {
        match self {
            Self::Number(_) => compare_numbers(left, right),
            Self::Instant(_) | Self::Period { .. } => {
                Timestamp::parse(left).cmp(&Timestamp::parse(right))
            }
            Self::Text(_) => left.cmp(right),
        }
    }

    /// Compares `value`, which is valid for the field, with this. All of a period is equal to it.
    pub(super) fn order(&self, value: &str) -> Option<Ordering> {
        Some(match self {
            Self::Number(number) => compare_numbers(value, number),
            Self::Instant(instant) => Timestamp::parse(value)?.cmp(instant),
            Self::Period { first, past } => match Timestamp::parse(value)?.second {
                second if second < *first => Ordering::Less,
                second if second >= *past => Ordering::Greater,
                _ => Ordering::Equal,
            },
            Self::Text(text) => value.cmp(text.as_str()),
        })
    }
}

impl WantedList {
    pub(super) fn new(written: Vec<Wanted>) -> Self {
        let mut list = Self::default();
        for wanted in &written {
            match wanted {
                Wanted::Number(number) => list.numbers.push(number.clone()),
                Wanted::Instant(instant) => list.instants.push(instant.clone()),
                Wanted::Period { first, past } => list.periods.push((*first, *past)),
                Wanted::Text(text) => list.texts.push(text.clone()),
            }
        }
        list.numbers
            .sort_unstable_by(|left, right| compare_numbers(left, right));
        list.instants.sort_unstable();
        list.periods.sort_unstable();
        list.periods.dedup_by(|(first, past), (_, previous_past)| {
            let overlaps = *first <= *previous_past;
            if overlaps {
                *previous_past = (*previous_past).max(*past);
            }
            overlaps
        });
        list.texts.sort_unstable();
        Self { written, ..list }
    }

    /// Returns whether `value`, which is valid for the field, is in the list.
    pub(super) fn contains(&self, value: &str) -> bool {
        let text = |text: &String| text.as_str().cmp(value);
        let number = |number: &String| compare_numbers(number, value);
        self.texts.binary_search_by(text).is_ok()
            || self.numbers.binary_search_by(number).is_ok()
            || self.contains_date(value)
    }

    fn contains_date(&self, value: &str) -> bool {
        if self.instants.is_empty() && self.periods.is_empty() {
            return false;
        }
        let Some(date) = Timestamp::parse(value) else {
            return false;
        };
        let begun = self
            .periods
            .partition_point(|(first, _)| *first <= date.second);
        let last = self.periods[..begun].last();
        last.is_some_and(|(_, past)| date.second < *past)
            || self.instants.binary_search(&date).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with one value after the other.
    fn is_any(written: &[Wanted], value: &str) -> bool {
        let order = |wanted: &Wanted| wanted.order(value);
        written
            .iter()
            .map(order)
            .any(|order| order == Some(Ordering::Equal))
    }

    /// Holds lists of values made by `wanted` against values made by `value`.
    fn check(
        random: &mut fastrand::Rng,
        wanted: impl Fn(&mut fastrand::Rng) -> Wanted,
        value: impl Fn(&mut fastrand::Rng) -> String,
    ) {
        let mut found = 0;
        for _ in 0..1000 {
            let written: Vec<Wanted> = (0..random.usize(1..12)).map(|_| wanted(random)).collect();
            let list = WantedList::new(written.clone());
            for _ in 0..10 {
                let value = value(random);
                let expected = is_any(&written, &value);
                assert_eq!(list.contains(&value), expected, "{value} {written:?}");
                found += usize::from(expected);
            }
        }
        assert!((500..9500).contains(&found), "{found}");
    }

    #[test]
    fn a_list_contains_what_one_of_its_values_is_equal_to() {
        let mut random = fastrand::Rng::with_seed(1);
        let number = |random: &mut fastrand::Rng| {
            let sign = ["", "", "-"][random.usize(0..3)];
            let whole = ["0", "1", "01", "2", "10", "123456789012345678901"][random.usize(0..6)];
            let fraction = ["", ".0", ".5", ".50", ".05"][random.usize(0..5)];
            format!("{sign}{whole}{fraction}")
        };
        check(&mut random, |random| Wanted::Number(number(random)), number);
        let text = |random: &mut fastrand::Rng| {
            let letters = (0..random.usize(0..3)).map(|_| random.char('a'..='d'));
            letters.collect::<String>()
        };
        check(&mut random, |random| Wanted::Text(text(random)), text);
        let date = |random: &mut fastrand::Rng| {
            let fraction = ["", ".5", ".50", ".1234567890123456789"][random.usize(0..4)];
            format!("1970-01-01T00:00:{:02}{fraction}Z", random.u8(0..60))
        };
        let wanted_date = |random: &mut fastrand::Rng| match random.i64(-20..60) {
            first if random.bool() => Wanted::Period {
                first,
                past: first + random.i64(-1..8),
            },
            _ => Wanted::Instant(Timestamp::parse(&date(random)).expect("a date")),
        };
        check(&mut random, wanted_date, date);
    }
}
