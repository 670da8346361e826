//! Collects what the page needs from the batches, in any order and in bounded memory.

use std::collections::BTreeMap;

use super::parse::{BatchNumbers, SQUARES};
use super::quality::Quality;
use super::recent::RecentBatches;
use crate::analysis::KnownSpan;
use crate::analysis::judgement::History;
use crate::analysis::statistics::{Decimal, ExactValue, Measurements, Step};
use crate::batch::digest::SetDigest;
use crate::batch::{Batch, COLUMNS, CROP_TYPE};
use crate::error::Failure;
use crate::pipeline::Sink;

/// The data of a report. All times are those of the clock on the wall in the time zone of `span`.
pub(crate) struct ReportData {
    pub(super) span: KnownSpan,
    pub(crate) history: History,
    /// By the place of the crop in the history.
    pub(super) losses: Vec<Losses>,
    pub(super) recent: RecentBatches,
    pub(super) quality: Quality,
    /// The number of batches in each square of germination and usable rate, row by row.
    squares: Vec<u64>,
    /// The number of batches without any measurements.
    pub(super) unmeasured: u64,
    /// The number of batches with both rates.
    pub(super) rated: u64,
    pub(super) digest: SetDigest,
}

impl ReportData {
    /// With `has_emails`, texts may contain e-mail addresses.
    pub(crate) fn new(step: Step, span: KnownSpan, has_emails: bool) -> Self {
        let columns: Vec<usize> = (0..COLUMNS.len()).collect();
        Self {
            history: History::new(step, span.made()),
            losses: Vec::new(),
            recent: RecentBatches::new(step, span.made(), has_emails),
            quality: Quality::new(span.made(), has_emails),
            squares: vec![0; SQUARES * SQUARES],
            unmeasured: 0,
            rated: 0,
            digest: SetDigest::new(&columns),
            span,
        }
    }

    pub(super) fn losses_of(&self, crop: &str) -> Option<&Losses> {
        self.losses.get(self.history.crops.get(crop)?.place)
    }

    /// Returns the squares that have batches.
    pub(super) fn density(&self) -> Density {
        let corners =
            (0..).flat_map(|germination| (0..100).map(move |usable| (germination, usable)));
        let squares = corners.zip(self.squares.iter().copied());
        squares.filter(|(_, count)| *count > 0).collect()
    }

    /// Returns the name of a step, and of several.
    pub(super) fn step_words(&self) -> (&'static str, &'static str) {
        match self.history.step {
            Step::Day => ("day", "days"),
            Step::Week => ("week", "weeks"),
            Step::Month => ("month", "months"),
        }
    }

    /// Returns the number of crops that have a name.
    pub(super) fn named_crops(&self) -> usize {
        let names = self.history.crops.keys();
        names.filter(|name| !name.is_empty()).count()
    }
}

/// The number of batches in each square of germination and usable rate, by its lower corner, in percent.
pub(super) type Density = BTreeMap<(i16, i16), u64>;

impl Sink for ReportData {
    fn take(&mut self, batch: &Batch) -> Result<(), Failure> {
        self.digest.add(batch);
        let measurements = Measurements::of(batch);
        let mut numbers = BatchNumbers::of(batch, &measurements);
        numbers.created = numbers.created.map(|second| self.span.zone.local(second));
        let crop = batch.typed(CROP_TYPE).unwrap_or_default();
        let crop = crop.as_ref();
        let place = self.history.add(crop, numbers.created, &measurements);
        let place = place.ok_or_else(too_many)?;
        if place == self.losses.len() {
            self.losses.push(Losses::default());
        }
        self.losses[place].add(&numbers);
        if let Some((germination, usable)) = numbers.square() {
            self.squares[germination * SQUARES + usable] += 1;
        }
        self.rated += u64::from(numbers.rates().is_some());
        self.unmeasured += u64::from(numbers.is_empty());
        self.quality.check(batch, crop, &numbers);
        self.recent.add(batch, crop, &numbers);
        Ok(())
    }
}

/// The cells of all batches that have the counts, one average tray each.
#[derive(Default)]
pub(super) struct Losses {
    pub(super) batches: u64,
    /// The number of batches left out because a share would be below 0 or above 100 %.
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

fn too_many() -> Failure {
    Failure::usage(
        "the report has too many groups of crop and step",
        "use a shorter range, longer steps (`--step month`) or fewer crops (`--where`)",
    )
}
