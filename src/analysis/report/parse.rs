//! Parses the numbers of one batch.

use crate::analysis::statistics::{Decimal, ExactValue, FieldValue, Measurements};
use crate::batch::{
    Batch, GERMINATED, NON_GERMINATED, NON_USABLE, NUMBER_OF_IMAGES, TOTAL_CELLS, USABLE,
};

/// The values of one batch. `None` if absent or not computable.
#[derive(Clone, Debug, Default)]
pub(super) struct BatchNumbers {
    /// Seconds since 1970.
    pub(super) created: Option<i64>,
    pub(super) images: Option<ExactValue>,
    pub(super) cells: Option<ExactValue>,
    pub(super) germinated: Option<ExactValue>,
    pub(super) not_germinated: Option<ExactValue>,
    pub(super) germination_rate: Option<ExactValue>,
    pub(super) usable: Option<ExactValue>,
    pub(super) not_usable: Option<ExactValue>,
    pub(super) usable_rate: Option<ExactValue>,
    pub(super) variation: Option<ExactValue>,
    pub(super) size: Option<ExactValue>,
    /// Whether the batch has a warning from the service.
    pub(super) has_warning: bool,
    /// The number of averages that are absent.
    absent: usize,
    /// Whether a value has too many digits to compute with.
    pub(super) has_beyond: bool,
}

const AVERAGES: usize = 8;
/// The number of squares along each rate.
pub(super) const SQUARES: usize = 100;

impl BatchNumbers {
    /// Takes the values that `measurements` has, and parses the others.
    pub(super) fn of(batch: &Batch, measurements: &Measurements) -> Self {
        let read = |column: usize| FieldValue::of(batch, column);
        let [germination_rate, usable_rate, variation, size] = measurements.values;
        let whole = [NUMBER_OF_IMAGES, TOTAL_CELLS].map(read);
        let counts = [GERMINATED, NON_GERMINATED, USABLE, NON_USABLE].map(read);
        let averages = counts.iter().chain(&measurements.values);
        let mut all = whole.iter().chain(averages.clone());
        let [images, cells] = whole.map(FieldValue::exact);
        let [germinated, not_germinated, usable, not_usable] = counts.map(FieldValue::exact);
        Self {
            created: measurements.created.as_ref().map(|created| created.second),
            images,
            cells,
            germinated,
            not_germinated,
            germination_rate: germination_rate.exact(),
            usable,
            not_usable,
            usable_rate: usable_rate.exact(),
            variation: variation.exact(),
            size: size.exact(),
            has_warning: measurements.has_warnings,
            absent: averages
                .filter(|value| **value == FieldValue::Nothing)
                .count(),
            has_beyond: all.any(|value| *value == FieldValue::Beyond),
        }
    }

    /// Returns whether all averages are absent. Images and cells do not count.
    pub(super) fn is_empty(&self) -> bool {
        self.absent == AVERAGES
    }

    /// Returns whether some averages are absent, but not all.
    pub(super) fn is_partly_empty(&self) -> bool {
        (1..AVERAGES).contains(&self.absent)
    }

    /// Returns the germination rate and the usable rate.
    pub(super) fn rates(&self) -> Option<(ExactValue, ExactValue)> {
        self.germination_rate.zip(self.usable_rate)
    }

    /// Returns the square of germination and usable rate that contains the batch, one point wide.
    pub(super) fn square(&self) -> Option<(usize, usize)> {
        let corner = |rate: ExactValue| {
            let points = match rate {
                _ if !is_percentage(rate) => return None,
                ExactValue::Hundredths(hundredths) => i128::from(hundredths / 100),
                ExactValue::Other(rate) => rate.trunc().mantissa(),
            };
            // 100 % belongs to the last square.
            Some(usize::try_from(points).ok()?.min(SQUARES - 1))
        };
        let (germination, usable) = self.rates()?;
        Some((corner(germination)?, corner(usable)?))
    }
}

pub(super) fn is_percentage(rate: ExactValue) -> bool {
    match rate {
        ExactValue::Hundredths(hundredths) => (0..=10_000).contains(&hundredths),
        ExactValue::Other(rate) => rate >= Decimal::ZERO && rate <= Decimal::ONE_HUNDRED,
    }
}
