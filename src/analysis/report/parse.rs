//! The numbers of one batch, as the page looks at them.

use std::borrow::Cow;

use crate::analysis::statistics::{Decimal, ExactValue};
use crate::batch::{
    Batch, COEFFICIENT_OF_VARIATION, GERMINATED, GERMINATION_RATE, NON_GERMINATED, NON_USABLE,
    NUMBER_OF_IMAGES, SEEDLING_SIZE, TOTAL_CELLS, USABLE, USABLE_RATE,
};

/// The values of one batch; nothing where the service gave none, or none that can be computed with.
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
    /// Averages that the service gave none of.
    lacking: usize,
    /// Tells whether it has a value with more digits than can be computed with.
    pub(super) has_beyond: bool,
}

const AVERAGES: usize = 8;

impl BatchNumbers {
    pub(super) fn of(batch: &Batch) -> Self {
        let (mut lacking, mut has_beyond) = (0, false);
        let mut number = |text: Option<Cow<'_, str>>| {
            let value = ExactValue::parse(&text?).map(ExactValue::decimal);
            has_beyond |= value.is_none();
            value
        };
        let images = number(batch.typed(NUMBER_OF_IMAGES));
        let cells = number(batch.typed(TOTAL_CELLS));
        let mut value = |column: usize| {
            let text = batch.typed(column);
            lacking += usize::from(text.is_none());
            number(text)
        };
        // Figures tell the size; here it only matters whether there is one.
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
            lacking,
            has_beyond,
        }
    }

    /// Tells whether there is no average at all; what was counted before the scan is none.
    pub(super) fn is_empty(&self) -> bool {
        self.lacking == AVERAGES
    }

    /// Tells whether there are some averages, but not all.
    pub(super) fn is_partly_empty(&self) -> bool {
        (1..AVERAGES).contains(&self.lacking)
    }

    /// Both rates: germination and usable.
    pub(super) fn rates(&self) -> Option<(Decimal, Decimal)> {
        self.germination_rate.zip(self.usable_rate)
    }

    /// Returns the square of one point of germination and one of usable rate that it lies in.
    pub(super) fn square(&self) -> Option<(i16, i16)> {
        let corner = |rate: Option<Decimal>| {
            let rate = rate.filter(|rate| is_percentage(*rate))?;
            // All that is 100 lies in the last square.
            Some(i16::try_from(rate.trunc().mantissa()).ok()?.min(99))
        };
        Some((corner(self.germination_rate)?, corner(self.usable_rate)?))
    }
}

pub(super) fn is_percentage(rate: Decimal) -> bool {
    rate >= Decimal::ZERO && rate <= Decimal::ONE_HUNDRED
}
