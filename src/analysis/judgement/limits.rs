//! The limits of a crop in one step, and the reasons why a batch needs attention.

use rust_decimal::Decimal;

use super::history::CropHistory;
use super::verdict::MIN_BATCHES;
use crate::analysis::Target;
use crate::analysis::statistics::{Distribution, Figures, Metric, Period};

/// What a batch of one crop and step is compared with.
pub(crate) struct Limits<'a> {
    target: Option<&'a Target>,
    usable: Option<Usual>,
    germination: Option<Usual>,
}

/// The usual rate of a crop.
#[derive(Clone, Copy, Debug)]
struct Usual {
    median: Decimal,
    /// The median absolute deviation from the median.
    deviation: Decimal,
}

/// The values of a batch that decide whether it needs attention.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BatchValues {
    pub(crate) usable_rate: Option<Decimal>,
    pub(crate) germination_rate: Option<Decimal>,
    pub(crate) variation: Option<Decimal>,
    pub(crate) has_warning: bool,
}

/// Why a batch needs attention, the most serious first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// The rate is zero.
    NothingGerminated,
    NothingUsable,
    /// Less than half of the median of its crop, which is given.
    HalfOfUsable(Decimal),
    HalfOfGermination(Decimal),
    /// Beyond the user's target, which is given.
    UsableBelowTarget(Decimal),
    GerminationBelowTarget(Decimal),
    VariationAboveTarget(Decimal),
    /// Far below the median of its crop, which is given.
    UnusuallyLow(Decimal),
    /// A warning from the service.
    Warning,
}

impl Reason {
    /// Returns whether the batch failed, whatever is usual for its crop.
    pub(crate) fn is_failure(self) -> bool {
        self < Self::UsableBelowTarget(Decimal::MIN)
    }
}

impl<'a> Limits<'a> {
    /// Returns the limits of a crop in `period`: its own four steps before, or the whole range if those
    /// have too few batches.
    pub(crate) fn new(crop: &CropHistory, period: Period, target: Option<&'a Target>) -> Self {
        let before = crop.before(period);
        let usual = |rates: fn(&Figures) -> &Metric| {
            let before = &rates(&before).distribution;
            Usual::of(if before.count() < MIN_BATCHES {
                &rates(crop.total()).distribution
            } else {
                before
            })
        };
        Self {
            target,
            usable: usual(|figures| &figures.usable_rate),
            germination: usual(|figures| &figures.germination_rate),
        }
    }

    /// Returns the reasons why a batch with these values needs attention, the most serious first.
    pub(crate) fn reasons(&self, batch: &BatchValues) -> Vec<Reason> {
        let mut reasons = Vec::new();
        if let Some(rate) = batch.germination_rate {
            let half = self.germination.filter(|usual| usual.is_below_half(rate));
            reasons.extend(match half {
                _ if rate <= Decimal::ZERO => Some(Reason::NothingGerminated),
                half => half.map(|usual| Reason::HalfOfGermination(usual.median)),
            });
        }
        if let Some(rate) = batch.usable_rate {
            let half = self.usable.filter(|usual| usual.is_below_half(rate));
            let low = self.usable.filter(|usual| usual.has_far_below(rate));
            reasons.extend(match half {
                _ if rate <= Decimal::ZERO => Some(Reason::NothingUsable),
                Some(usual) => Some(Reason::HalfOfUsable(usual.median)),
                None => low.map(|usual| Reason::UnusuallyLow(usual.median)),
            });
        }
        if let Some(target) = self.target {
            let below = |rate: Option<Decimal>, target: Option<Decimal>| {
                target.filter(|target| rate.is_some_and(|rate| rate < *target))
            };
            let above = |value: Option<Decimal>, target: Option<Decimal>| {
                target.filter(|target| value.is_some_and(|value| value > *target))
            };
            let usable = below(batch.usable_rate, target.usable_rate_min);
            let germination = below(batch.germination_rate, target.germination_rate_min);
            let variation = above(batch.variation, target.coefficient_of_variation_max);
            reasons.extend(usable.map(Reason::UsableBelowTarget));
            reasons.extend(germination.map(Reason::GerminationBelowTarget));
            reasons.extend(variation.map(Reason::VariationAboveTarget));
        }
        if batch.has_warning {
            reasons.push(Reason::Warning);
        }
        reasons.sort_unstable();
        reasons
    }

    /// Returns the reasons of all batches of a step with these figures, the most serious first.
    pub(crate) fn all_reasons(&self, step: &Figures) -> Vec<Reason> {
        // Each reason depends on one value, so the extremes are enough.
        let extremes = BatchValues {
            usable_rate: step.usable_rate.distribution.min(),
            germination_rate: step.germination_rate.distribution.min(),
            variation: step.coefficient_of_variation.distribution.max(),
            has_warning: step.warnings > 0,
        };
        self.reasons(&extremes)
    }

    /// Returns how many points `rate` is below the target or the usual rate of its crop.
    pub(crate) fn shortfall(&self, rate: Decimal) -> Decimal {
        let target = self.target.and_then(|target| target.usable_rate_min);
        let usual = self.usable.map(|usual| usual.median);
        let below = [target, usual].into_iter().flatten();
        let below = below.filter_map(|level| level.checked_sub(rate));
        below.max().unwrap_or(Decimal::ZERO)
    }
}

impl Usual {
    fn of(rates: &Distribution) -> Option<Self> {
        Some(Self {
            median: rates.median()?,
            deviation: rates.deviation()?,
        })
    }

    /// Returns whether `rate` is less than half of the median.
    fn is_below_half(self, rate: Decimal) -> bool {
        rate.checked_mul(Decimal::TWO)
            .is_some_and(|double| double < self.median)
    }

    /// Returns whether `rate` is below the median by more than three deviations and at least one point.
    fn has_far_below(self, rate: Decimal) -> bool {
        let below = self.median.checked_sub(rate);
        let spread = self.deviation.checked_mul(Decimal::from(3));
        below
            .zip(spread)
            .is_some_and(|(below, spread)| below > spread && below >= Decimal::ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::statistics::Step;

    const WEEK: i64 = 7 * 86_400;

    fn decimal(text: &str) -> Decimal {
        text.parse().expect(text)
    }

    /// Returns the reasons for a batch in week 10 of a crop with these usable rates in week 9.
    fn reasons(before: &[&str], target: Option<&Target>, batch: &BatchValues) -> Vec<Reason> {
        let mut crop = CropHistory::default();
        let week = |week: i64| Step::Week.period(week * WEEK);
        let figures = crop.steps.entry(week(9)).or_default();
        for rate in before {
            assert!(figures.usable_rate.distribution.add(decimal(rate)));
        }
        let own = crop.steps.entry(week(10)).or_default();
        for (rates, value) in [
            (&mut own.usable_rate, batch.usable_rate),
            (&mut own.germination_rate, batch.germination_rate),
        ] {
            assert!(value.is_none_or(|value| rates.distribution.add(value)));
        }
        Limits::new(&crop, week(10), target).reasons(batch)
    }

    fn usable(rate: &str) -> BatchValues {
        BatchValues {
            usable_rate: Some(decimal(rate)),
            ..BatchValues::default()
        }
    }

    #[test]
    fn a_batch_far_below_its_crop_is_unusual() {
        // Median 90, deviation 2: the limit is 84.
        let spread = ["86.00", "88.00", "90.00", "92.00", "94.00"];
        let low = |median: &str| vec![Reason::UnusuallyLow(decimal(median))];
        assert_eq!(reasons(&spread, None, &usable("84.00")), []);
        assert_eq!(reasons(&spread, None, &usable("83.99")), low("90"));
        let alike = ["90.00"; 5];
        assert_eq!(reasons(&alike, None, &usable("89.01")), []);
        assert_eq!(reasons(&alike, None, &usable("89.00")), low("90"));
        assert_eq!(reasons(&alike, None, &usable("99.00")), []);
        // Two are too few, and the median of the whole range is 88: its deviation is 2.
        assert_eq!(reasons(&spread[..2], None, &usable("87.00")), []);
        assert_eq!(
            reasons(&[], None, &usable("60.00")),
            [],
            "nothing to compare"
        );
    }

    #[test]
    fn a_failure_is_always_listed() {
        assert_eq!(reasons(&[], None, &usable("0.00")), [Reason::NothingUsable]);
        let dead = BatchValues {
            germination_rate: Some(Decimal::ZERO),
            ..usable("0.00")
        };
        assert_eq!(
            reasons(&[], None, &dead),
            [Reason::NothingGerminated, Reason::NothingUsable]
        );
        // A wide spread does not hide it.
        let wide = ["20.00", "50.00", "80.00", "95.00", "99.00"];
        assert_eq!(reasons(&wide, None, &usable("40.00")), []);
        let half = [Reason::HalfOfUsable(decimal("80"))];
        assert_eq!(reasons(&wide, None, &usable("39.99")), half);
        assert!(half[0].is_failure() && Reason::NothingUsable.is_failure());
        assert!(!Reason::UsableBelowTarget(Decimal::MIN).is_failure());
        assert!(!Reason::Warning.is_failure());
    }

    #[test]
    fn targets_and_warnings_are_reasons() {
        let target = Target {
            usable_rate_min: Some(decimal("80")),
            germination_rate_min: Some(decimal("90")),
            coefficient_of_variation_max: Some(decimal("20")),
        };
        let batch = BatchValues {
            germination_rate: Some(decimal("89.99")),
            variation: Some(decimal("20.01")),
            has_warning: true,
            ..usable("79.99")
        };
        let expected = [
            Reason::UsableBelowTarget(decimal("80")),
            Reason::GerminationBelowTarget(decimal("90")),
            Reason::VariationAboveTarget(decimal("20")),
            Reason::Warning,
        ];
        assert_eq!(reasons(&[], Some(&target), &batch), expected);
        let met = BatchValues {
            germination_rate: Some(decimal("90")),
            variation: Some(decimal("20")),
            ..usable("80")
        };
        assert_eq!(reasons(&[], Some(&target), &met), []);
        assert_eq!(reasons(&[], Some(&target), &BatchValues::default()), []);
    }
}
