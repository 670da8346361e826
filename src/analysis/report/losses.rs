//! Sums up the outcome of a crop's tray cells: usable, not usable, not germinated.

use super::parse::BatchNumbers;
use crate::analysis::statistics::{Decimal, ExactValue};

/// The cells of all batches that have the counts, one average tray each.
#[derive(Default)]
pub(super) struct Losses {
    pub(super) batches: u64,
    /// The number of batches left out because their counts are contradictory.
    pub(super) left_out: u64,
    cells: Decimal,
    germinated: Decimal,
    usable: Decimal,
}

impl Losses {
    pub(super) fn add(&mut self, numbers: &BatchNumbers) {
        let (Some(cells), Some(germinated), Some(usable)) =
            (numbers.cells, numbers.germinated, numbers.usable)
        else {
            return;
        };
        if ExactValue::Hundredths(0) > usable || usable > germinated || germinated > cells {
            self.left_out += 1;
            return;
        }
        let sums = [
            self.cells.checked_add(cells.decimal()),
            self.germinated.checked_add(germinated.decimal()),
            self.usable.checked_add(usable.decimal()),
        ];
        if let [Some(cells), Some(germinated), Some(usable)] = sums {
            (self.cells, self.germinated, self.usable) = (cells, germinated, usable);
            self.batches += 1;
        } else {
            self.left_out += 1;
        }
    }

    /// Returns the shares in percent: usable, germinated but not usable, not germinated. `None` if no batch has the counts.
    pub(super) fn shares(&self) -> Option<[Decimal; 3]> {
        let of_cells = |part: Decimal| {
            part.checked_mul(Decimal::ONE_HUNDRED)?
                .checked_div(self.cells)
        };
        Some([
            of_cells(self.usable)?,
            of_cells(self.germinated - self.usable)?,
            of_cells(self.cells - self.germinated)?,
        ])
    }
}
