//! Parses the numbers of one batch.

use std::borrow::Cow;

use crate::analysis::statistics::{Decimal, ExactValue};
use crate::batch::{
    Batch, COEFFICIENT_OF_VARIATION, GERMINATED, GERMINATION_RATE, NON_GERMINATED, NON_USABLE,
    NUMBER_OF_IMAGES, SEEDLING_SIZE, TOTAL_CELLS, USABLE, USABLE_RATE,
};

/// The values of one batch. `None` if absent or not computable.
#[derive(Clone, Debug, Default)]
pub(super) struct BatchNumbers {
    /// Seconds since 1970.
    pub(super) created: Option<i64>,
    pub(super) images: Option<Decimal>,
    pub(super) cells: Option<Decimal>,
    pub(super) germinated: Option<Decimal>,
    pub(super) not_germinated: Option<Decimal>,
    pub(super) germination_rate: Option<Decimal>,
    pub(super) usable: Option<Decimal>,
    pub(super) not_usable: Option<Decimal>,
    pub(super) usable_rate: Option<Decimal>,
    pub(super) variation: Option<Decimal>,
    /// The number of averages that are absent.
    absent: usize,
    /// Whether a value has too many digits to compute with.
    pub(super) has_beyond: bool,
}

const AVERAGES: usize = 8;

impl BatchNumbers {
    pub(super) fn of(batch: &Batch) -> Self {
        let (mut absent, mut has_beyond) = (0, false);
        let mut number = |text: Option<Cow<'_, str>>| {
            let value = ExactValue::parse(&text?).map(ExactValue::decimal);
            has_beyond |= value.is_none();
            value
        };
        let images = number(batch.typed(NUMBER_OF_IMAGES));
        let cells = number(batch.typed(TOTAL_CELLS));
        let mut value = |column: usize| {
            let text = batch.typed(column);
            absent += usize::from(text.is_none());
            number(text)
        };
        // Only whether the size is present matters here.
        value(SEEDLING_SIZE);
        Self {
            created: batch.created().map(|created| created.second),
            images,
            cells,
            germinated: value(GERMINATED),
            not_germinated: value(NON_GERMINATED),
            germination_rate: value(GERMINATION_RATE),
            usable: value(USABLE),
            not_usable: value(NON_USABLE),
            usable_rate: value(USABLE_RATE),
            variation: value(COEFFICIENT_OF_VARIATION),
            absent,
            has_beyond,
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
    pub(super) fn rates(&self) -> Option<(Decimal, Decimal)> {
        self.germination_rate.zip(self.usable_rate)
    }

    /// Returns the square of germination and usable rate that contains the batch, one point wide.
    pub(super) fn square(&self) -> Option<(i16, i16)> {
        let corner = |rate: Option<Decimal>| {
            let rate = rate.filter(|rate| is_percentage(*rate))?;
            // 100 % belongs to the last square.
            Some(i16::try_from(rate.trunc().mantissa()).ok()?.min(99))
        };
        Some((corner(self.germination_rate)?, corner(self.usable_rate)?))
    }
}

pub(super) fn is_percentage(rate: Decimal) -> bool {
    rate >= Decimal::ZERO && rate <= Decimal::ONE_HUNDRED
}
