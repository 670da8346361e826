//! The figures of a group of batches.

use std::borrow::Cow;

use rust_decimal::Decimal;

use super::distribution::Distribution;

use super::value::{ExactValue, FRACTION, divide};
use crate::batch::{
    Batch, COEFFICIENT_OF_VARIATION, CREATION_DATE, GERMINATION_RATE, NUMBER_OF_IMAGES,
    SEEDLING_SIZE, Timestamp, USABLE_RATE, WARNINGS,
};

/// Counts and metrics of a group of batches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) batches: u64,
    /// The sum over all batches.
    pub(crate) images: u64,
    /// The number of batches with an invalid number of images, which counts as zero.
    pub(crate) odd_images: u64,
    /// The number of batches with warnings.
    pub(crate) warnings: u64,
    pub(crate) germination_rate: Metric,
    pub(crate) usable_rate: Metric,
    pub(crate) coefficient_of_variation: Metric,
    pub(crate) seedling_size: Metric,
    /// When the first and the last batch were created.
    pub(crate) first: Option<Timestamp>,
    pub(crate) last: Option<Timestamp>,
}

/// The figures of one field.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metric {
    pub(crate) distribution: Distribution,
    /// The number of batches without a value, including those in `beyond`.
    pub(crate) missing: u64,
    /// The number of batches whose value has too many digits.
    pub(crate) beyond: u64,
    /// The sum of values times images.
    sum: WeightedSum,
    /// The images of the batches with a value.
    images: u64,
}

/// The values of one batch, parsed once.
pub(crate) struct Measurements {
    images: Option<u32>,
    pub(crate) has_warnings: bool,
    /// Germination rate, usable rate, coefficient of variation, seedling size.
    pub(crate) values: [FieldValue; 4],
    pub(crate) created: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValue {
    Nothing,
    /// A number with too many digits.
    Beyond,
    Value(ExactValue),
}

impl FieldValue {
    pub(crate) fn of(batch: &Batch, column: usize) -> Self {
        Self::parse(batch.typed(column).as_deref())
    }

    fn parse(text: Option<&str>) -> Self {
        text.map_or(Self::Nothing, |text| {
            ExactValue::parse(text).map_or(Self::Beyond, Self::Value)
        })
    }

    pub(crate) fn exact(self) -> Option<ExactValue> {
        match self {
            Self::Value(value) => Some(value),
            Self::Nothing | Self::Beyond => None,
        }
    }
}

impl Measurements {
    pub(crate) fn of(batch: &Batch) -> Self {
        Self::read(|column| batch.typed(column))
    }

    /// Takes the text of each column from `typed`, which is `None` if it is null or not valid.
    pub(crate) fn read<'a>(typed: impl Fn(usize) -> Option<Cow<'a, str>>) -> Self {
        let images = typed(NUMBER_OF_IMAGES);
        let columns = [
            GERMINATION_RATE,
            USABLE_RATE,
            COEFFICIENT_OF_VARIATION,
            SEEDLING_SIZE,
        ];
        Self {
            // A number above `u32` is a mistake, and would dominate the mean.
            images: images.and_then(|images| images.parse().ok()),
            has_warnings: typed(WARNINGS).as_deref() == Some("true"),
            values: columns.map(|column| FieldValue::parse(typed(column).as_deref())),
            created: typed(CREATION_DATE).and_then(|text| Timestamp::parse(&text)),
        }
    }

    pub(super) fn usable_rate(&self) -> Option<ExactValue> {
        self.values[1].exact()
    }
}

impl Figures {
    pub(crate) fn take(&mut self, batch: &Measurements) {
        self.batches += 1;
        self.odd_images += u64::from(batch.images.is_none());
        let images = u64::from(batch.images.unwrap_or(0));
        self.images += images;
        self.warnings += u64::from(batch.has_warnings);
        for ((_, metric), value) in self.metrics_mut().into_iter().zip(batch.values) {
            metric.add(value, images);
        }
        if let Some(created) = &batch.created {
            if self.first.as_ref().is_none_or(|first| created < first) {
                self.first = Some(created.clone());
            }
            if self.last.as_ref().is_none_or(|last| created > last) {
                self.last = Some(created.clone());
            }
        }
    }

    /// Adds the figures of `other`, which must have different batches.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.batches += other.batches;
        self.images += other.images;
        self.odd_images += other.odd_images;
        self.warnings += other.warnings;
        for ((_, metric), (_, other)) in self.metrics_mut().into_iter().zip(other.metrics()) {
            metric.merge(other);
        }
        let first = self.first.iter().chain(&other.first).min();
        let last = self.last.iter().chain(&other.last).max();
        (self.first, self.last) = (first.cloned(), last.cloned());
    }

    /// Returns the median germination rate minus the median usable rate, in points.
    pub(crate) fn gap(&self) -> Option<Decimal> {
        let germinated = self.germination_rate.distribution.median()?;
        Some(germinated - self.usable_rate.distribution.median()?)
    }

    /// Returns the fields, each with its column.
    pub(crate) fn metrics(&self) -> [(usize, &Metric); 4] {
        [
            (GERMINATION_RATE, &self.germination_rate),
            (USABLE_RATE, &self.usable_rate),
            (COEFFICIENT_OF_VARIATION, &self.coefficient_of_variation),
            (SEEDLING_SIZE, &self.seedling_size),
        ]
    }

    fn metrics_mut(&mut self) -> [(usize, &mut Metric); 4] {
        [
            (GERMINATION_RATE, &mut self.germination_rate),
            (USABLE_RATE, &mut self.usable_rate),
            (COEFFICIENT_OF_VARIATION, &mut self.coefficient_of_variation),
            (SEEDLING_SIZE, &mut self.seedling_size),
        ]
    }
}

impl Metric {
    fn add(&mut self, value: FieldValue, images: u64) {
        let FieldValue::Value(value) = value else {
            self.missing += 1;
            self.beyond += u64::from(matches!(value, FieldValue::Beyond));
            return;
        };
        self.distribution.take(value);
        self.sum.add(value, images);
        self.images += images;
    }

    fn merge(&mut self, other: &Self) {
        self.distribution.merge(&other.distribution);
        self.missing += other.missing;
        self.beyond += other.beyond;
        self.sum.merge(&other.sum);
        self.images += other.images;
    }

    /// Returns the mean weighted by images, rounded once to two digits. `None` if there are no images.
    pub(crate) fn weighted_mean(&self) -> Option<Decimal> {
        self.sum.divided_by(self.images)
    }
}

/// The sum of values, each with a weight.
///
/// Positive and negative values are added separately, and saturate if they become too large. So whether the
/// sum fits does not depend on the order.
#[derive(Clone, Debug, Default)]
struct WeightedSum {
    /// In units of the last possible digit. The maximum if it became too large.
    positive: u128,
    negative: u128,
}

impl WeightedSum {
    fn add(&mut self, value: ExactValue, weight: u64) {
        let (is_negative, more) = match value {
            // Has at most 123 bits.
            ExactValue::Hundredths(hundredths) => {
                let size = u128::from(hundredths.unsigned_abs()) * u128::from(weight);
                (hundredths < 0, size * 10_u128.pow(FRACTION - 2))
            }
            ExactValue::Other(_) => {
                let units = value.units();
                let more = units.unsigned_abs().saturating_mul(u128::from(weight));
                (units < 0, more)
            }
        };
        let Self { positive, negative } = self;
        let sum = if is_negative { negative } else { positive };
        *sum = sum.saturating_add(more);
    }

    fn merge(&mut self, other: &Self) {
        self.positive = self.positive.saturating_add(other.positive);
        self.negative = self.negative.saturating_add(other.negative);
    }

    /// Divides the sum, rounded to two digits. `None` if the divisor is zero or the sum is too large.
    fn divided_by(&self, number: u64) -> Option<Decimal> {
        let divisor = u128::from(number) * 10_u128.pow(FRACTION - 2);
        if divisor == 0 || self.positive.max(self.negative) == u128::MAX {
            return None;
        }
        let distance = self.positive.abs_diff(self.negative);
        let hundredths = i128::try_from(divide(distance, divisor)).ok()?;
        let sign = if self.positive < self.negative { -1 } else { 1 };
        Decimal::try_from_i128_with_scale(sign * hundredths, 2).ok()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::analysis::statistics::two_digits;
    use crate::batch::sample;
    use proptest::prelude::*;

    fn figures(batches: &[&[(&str, &str)]]) -> Figures {
        let mut figures = Figures::default();
        for changes in batches {
            figures.take(&Measurements::of(&sample(changes)));
        }
        figures
    }

    #[test]
    fn nulls_are_left_out_and_counted() {
        let figures = figures(&[
            &[
                ("avg_germination_rate", "\"90.00\""),
                ("number_of_images", "3"),
            ],
            &[
                ("avg_germination_rate", "null"),
                ("number_of_images", "100"),
                ("warnings", "true"),
            ],
            &[
                ("avg_germination_rate", "\"80.01\""),
                ("number_of_images", "1"),
            ],
        ]);
        assert_eq!(
            (figures.batches, figures.images, figures.warnings),
            (3, 104, 1)
        );
        let rate = &figures.germination_rate;
        assert_eq!(
            (rate.missing, rate.beyond, rate.distribution.count()),
            (1, 0, 2)
        );
        // (90.00 * 3 + 80.01) / 4 = 87.5025
        assert_eq!(
            rate.weighted_mean().map(two_digits).as_deref(),
            Some("87.50")
        );
        assert_eq!(figures.usable_rate.missing, 0);
        // 85.005 - 87.50
        assert_eq!(figures.gap().map(two_digits).as_deref(), Some("-2.50"));
    }

    #[test]
    fn values_that_are_too_large_are_counted_and_left_out() {
        let huge = format!("\"{}\"", "9".repeat(60));
        let most = "\"999999999999999.9999999999\"";
        let figures = figures(&[
            &[
                ("avg_usable_seedling_rate", &huge),
                ("number_of_images", "99999999999999999999999"),
            ],
            &[
                ("avg_usable_seedling_rate", most),
                ("number_of_images", "4294967295"),
            ],
            &[
                ("avg_usable_seedling_rate", most),
                ("number_of_images", "-1"),
            ],
        ]);
        let rate = &figures.usable_rate;
        assert_eq!((rate.missing, rate.beyond), (1, 1));
        assert_eq!((figures.images, figures.odd_images), (4_294_967_295, 2));
        assert_eq!(
            rate.weighted_mean().map(two_digits).as_deref(),
            Some("1000000000000000.00")
        );
        let mut sum = WeightedSum::default();
        let value = ExactValue::parse("999999999999999").expect("a value");
        for _ in 0..3 {
            sum.add(value, u64::MAX);
        }
        assert_eq!(sum.divided_by(1), None, "too large, and no panic");
    }

    #[test]
    fn a_mean_without_images_is_none() {
        let figures = figures(&[&[("number_of_images", "0")]]);
        assert_eq!(figures.germination_rate.weighted_mean(), None);
        assert_eq!(Figures::default().gap(), None);
    }

    proptest! {
        #[test]
        fn parts_make_the_whole(
            rows in prop::collection::vec((0_u32..10_000, 0_u32..500, 0_i64..10_i64.pow(9), any::<bool>()), 1..40),
            cut in 0_usize..40,
        ) {
            let batches: Vec<Batch> = rows.iter().map(|(rate, images, second, is_null)| {
                let rate = if *is_null { "null".to_owned() } else { format!("\"{}.{:02}\"", rate / 100, rate % 100) };
                let date = format!("\"{}\"", crate::batch::range::written(*second));
                sample(&[("avg_usable_seedling_rate", &rate), ("number_of_images", &images.to_string()), ("batch_creation_date", &date)])
            }).collect();
            let of = |batches: &[Batch]| {
                let mut figures = Figures::default();
                for batch in batches {
                    figures.take(&Measurements::of(batch));
                }
                figures
            };
            let (left, right) = batches.split_at(cut.min(batches.len()));
            let mut merged = of(left);
            merged.merge(&of(right));
            let whole = of(&batches);
            prop_assert_eq!((merged.batches, merged.images), (whole.batches, whole.images));
            prop_assert_eq!((&merged.first, &merged.last), (&whole.first, &whole.last));
            prop_assert_eq!(merged.usable_rate.weighted_mean(), whole.usable_rate.weighted_mean());
            prop_assert_eq!(merged.usable_rate.missing, whole.usable_rate.missing);
            prop_assert_eq!(merged.gap(), whole.gap());
            // Recomputed with integers: add half of the divisor, then truncate.
            let with: Vec<_> = rows.iter().filter(|row| !row.3).collect();
            let images: u64 = with.iter().map(|row| u64::from(row.1)).sum();
            let sum: u64 = with.iter().map(|row| u64::from(row.0) * u64::from(row.1)).sum();
            let expected = (images > 0).then(|| Decimal::new(i64::try_from((2 * sum + images) / (2 * images)).expect("small"), 2));
            prop_assert_eq!(whole.usable_rate.weighted_mean(), expected);
        }
    }
}
