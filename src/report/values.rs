//! The numbers of one batch, as the page looks at them.

use crate::batch::{
    Batch, COEFFICIENT_OF_VARIATION, GERMINATED, GERMINATION_RATE, NON_GERMINATED, NON_USABLE,
    NUMBER_OF_IMAGES, SEEDLING_SIZE, TOTAL_CELLS, USABLE, USABLE_RATE,
};
use crate::statistics::{Decimal, Value};

/// The values of one batch; nothing where the service gave none, or none that can be computed with.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
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
    pub(super) size: Option<Decimal>,
}

impl Reading {
    pub(super) fn of(batch: &Batch) -> Self {
        let value = |column: usize| Value::parse(&batch.typed(column)?).map(Value::decimal);
        Self {
            created: batch.created().map(|created| created.second),
            images: value(NUMBER_OF_IMAGES),
            cells: value(TOTAL_CELLS),
            germinated: value(GERMINATED),
            not_germinated: value(NON_GERMINATED),
            germination_rate: value(GERMINATION_RATE),
            usable: value(USABLE),
            not_usable: value(NON_USABLE),
            usable_rate: value(USABLE_RATE),
            variation: value(COEFFICIENT_OF_VARIATION),
            size: value(SEEDLING_SIZE),
        }
    }

    /// The averages, without what was counted before the scan.
    pub(super) fn averages(&self) -> [Option<Decimal>; 8] {
        [
            self.germinated,
            self.not_germinated,
            self.germination_rate,
            self.usable,
            self.not_usable,
            self.usable_rate,
            self.variation,
            self.size,
        ]
    }

    /// Tells whether there is no average at all.
    pub(super) fn is_empty(&self) -> bool {
        self.averages().iter().all(Option::is_none)
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
