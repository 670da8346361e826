//! The usable rate over time: medians over a few spans of equal length.
//!
//! The length of the spans is only known after the last batch. So values are collected in spans that grow as
//! needed: from an hour up to many days, each a multiple of the length before. The final length depends only
//! on the first and the last second, not on the order of the batches.

use rust_decimal::Decimal;

use super::distribution::Distribution;
use super::value::ExactValue;

const HOUR: i64 = 3600;
/// The maximum number of marks shown.
pub(crate) const MARKS: i64 = 12;
/// The maximum number of spans to keep: enough for marks that fit the time well.
const MAX_SPANS: i64 = 4 * MARKS;

/// Values over time.
#[derive(Clone, Debug)]
pub(super) struct Trend {
    time: TrendSpans,
    /// The values of each span by its number, ascending.
    spans: Vec<(i64, Distribution)>,
}

/// How time is divided into spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrendSpans {
    /// Counted from 1970, with lengths that grow with the level.
    Growing(u32),
    /// Equal parts of a known time, which ends just before `past`.
    Within { first: i64, past: i64 },
}

/// The time axis of a trend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Seconds since 1970.
    pub(crate) first: i64,
    /// The length of each mark, in seconds.
    pub(crate) each: i64,
    pub(crate) count: i64,
}

impl Trend {
    /// Starts a trend whose time is not known yet.
    pub(super) fn growing() -> Self {
        Self {
            time: TrendSpans::Growing(0),
            spans: Vec::new(),
        }
    }

    /// Starts a trend for the time from `first` to just before `past`.
    pub(super) fn within(first: i64, past: i64) -> Self {
        Self {
            time: TrendSpans::Within { first, past },
            spans: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, second: i64, value: ExactValue) {
        let number = self.time.number(second);
        let spans = &mut self.spans;
        let found = spans.binary_search_by_key(&number, |(number, _)| *number);
        let index = found.unwrap_or_else(|index| {
            spans.reserve_exact(1);
            spans.insert(index, (number, Distribution::default()));
            index
        });
        self.spans[index].1.take(value);
        while let TrendSpans::Growing(level) = self.time
            && self.length() > MAX_SPANS
        {
            self.coarsen(level + 1);
        }
    }

    /// Returns the number of spans from the first to the last.
    fn length(&self) -> i64 {
        match (self.spans.first(), self.spans.last()) {
            (Some((first, _)), Some((last, _))) => last - first + 1,
            _ => 0,
        }
    }

    /// Merges spans to the length of `level`.
    fn coarsen(&mut self, level: u32) {
        let TrendSpans::Growing(before) = self.time else {
            return;
        };
        let times = width(level) / width(before);
        self.time = TrendSpans::Growing(level);
        let mut spans: Vec<(i64, Distribution)> = Vec::new();
        for (number, distribution) in std::mem::take(&mut self.spans) {
            let number = number.div_euclid(times);
            match spans.last_mut() {
                Some((last, whole)) if *last == number => whole.merge(&distribution),
                _ => spans.push((number, distribution)),
            }
        }
        self.spans = spans;
    }

    /// Returns the time axis that shows all values. `None` if there are none.
    pub(super) fn marks(&self) -> Option<Marks> {
        Some(match self.time {
            TrendSpans::Growing(level) => {
                let (first, _) = self.spans.first()?;
                let together = ceiling(self.length(), MARKS);
                Marks {
                    first: first * width(level),
                    each: together * width(level),
                    count: ceiling(self.length(), together),
                }
            }
            TrendSpans::Within { first, past } => Marks {
                first,
                each: (past - first) / MARKS,
                count: MARKS,
            },
        })
    }

    /// Returns the median of each mark. `marks` must be of this trend or of one that includes it.
    pub(super) fn medians(&self, marks: &Marks) -> Vec<Option<Decimal>> {
        // Each span is entirely in one mark, since longer spans are multiples of shorter ones.
        let index = |number: i64| match self.time {
            TrendSpans::Growing(level) => {
                (number * width(level) - marks.first).div_euclid(marks.each)
            }
            TrendSpans::Within { .. } => number,
        };
        let median = |mark: i64| {
            let mut whole = Distribution::default();
            let spans = self.spans.iter();
            for (_, distribution) in spans.filter(|(number, _)| index(*number) == mark) {
                whole.merge(distribution);
            }
            whole.median()
        };
        (0..marks.count).map(median).collect()
    }
}

impl TrendSpans {
    /// Returns the number of the span that contains `second`.
    fn number(self, second: i64) -> i64 {
        match self {
            Self::Growing(level) => second.div_euclid(width(level)),
            Self::Within { first, past } => ((second - first) * MARKS).div_euclid(past - first),
        }
    }
}

/// Returns the length of a span of `level` in seconds: 1, 2, 4 and 8 hours; 1, 2, 4 days and so on.
fn width(level: u32) -> i64 {
    match level {
        0..4 => HOUR << level,
        _ => (24 * HOUR) << (level - 4),
    }
}

fn ceiling(number: i64, divisor: i64) -> i64 {
    (number + divisor - 1).div_euclid(divisor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[(i64, i32)]) -> Trend {
        let mut trend = Trend::growing();
        for (second, value) in values {
            trend.add(*second, ExactValue::Hundredths(*value));
        }
        trend
    }

    #[test]
    fn spans_grow_with_the_time() {
        for (last, expected) in [
            (0, (HOUR, 1)),
            (11 * HOUR, (HOUR, 12)),
            (12 * HOUR, (2 * HOUR, 7)),
            (47 * HOUR, (4 * HOUR, 12)),
            (48 * HOUR, (6 * HOUR, 9)),
            (1065 * 24 * HOUR, (96 * 24 * HOUR, 12)),
        ] {
            let marks = of(&[(0, 1), (last, 1)]).marks().expect("values");
            assert_eq!((marks.each, marks.count), expected, "{last}");
        }
    }

    #[test]
    fn a_known_time_has_twelve_marks() {
        let mut trend = Trend::within(100, 124);
        for (second, value) in [(100, 1), (101, 3), (102, 7), (123, 9)] {
            trend.add(second, ExactValue::Hundredths(value));
        }
        let marks = trend.marks().expect("values");
        let mut expected = vec![None; 12];
        expected[0] = Some(Decimal::new(2, 2));
        expected[1] = Some(Decimal::new(7, 2));
        expected[11] = Some(Decimal::new(9, 2));
        assert_eq!(trend.medians(&marks), expected);
    }

    proptest! {
        #[test]
        fn the_order_does_not_matter(
            (values, others) in prop::collection::vec((-10_i64.pow(8)..10_i64.pow(8), 0_i32..10_000), 1..60)
                .prop_flat_map(|values| (Just(values.clone()), Just(values).prop_shuffle())),
        ) {
            let (trend, other) = (of(&values), of(&others));
            let marks = trend.marks().expect("values");
            prop_assert_eq!(Some(marks), other.marks());
            prop_assert_eq!(trend.medians(&marks), other.medians(&marks));
            prop_assert!(marks.count <= MARKS);
            let (first, last) = (values.iter().min().expect("values").0, values.iter().max().expect("values").0);
            prop_assert!(marks.first <= first && last < marks.first + marks.count * marks.each);
            // A part has the same medians with the marks of the whole as a sorted list.
            let part: Vec<(i64, i32)> = values.iter().step_by(3).copied().collect();
            let expected = (0..marks.count).map(|mark| {
                let start = marks.first + mark * marks.each;
                let mut within: Vec<i32> = part.iter().filter(|(second, _)| (start..start + marks.each).contains(second)).map(|(_, value)| *value).collect();
                within.sort_unstable();
                let last = within.len().checked_sub(1)?;
                Some(Decimal::new(i64::from(within[last / 2] + within[last.div_ceil(2)]) * 5, 3))
            });
            prop_assert_eq!(of(&part).medians(&marks), expected.collect::<Vec<_>>());
        }
    }
}
