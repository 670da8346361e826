//! Formats the figures of groups: a table for people, JSON and CSV for programs, and rows for a workbook.
//!
//! Read `table.rs` first. The figures are computed by [`super::statistics`]. Where the
//! text is written is left to `commands`.

// For people, and for programs.
mod files;
mod table;

// The figures of a workbook, which `formats` writes.
mod crops;

pub(crate) use crops::CropFigures;
pub(crate) use files::{csv, json};
pub(crate) use table::table;

use super::judgement::History;
use super::statistics::{By, Groups, Measurements, Step};
use crate::batch::{Batch, CROP_TYPE, Zone};
use crate::error::Failure;
use crate::pipeline::Sink;

/// The groups, and the history of each crop if the crops are judged.
pub(crate) struct SummaryData {
    pub(crate) groups: Groups,
    /// `None` if nobody asked for it, or if there are too many crops.
    pub(crate) history: Option<History>,
    zone: Zone,
    /// Whether the summary fails without the history.
    needs_history: bool,
    /// Whether there are too many crops and weeks to judge them.
    pub(crate) is_too_large: bool,
}

impl SummaryData {
    /// `now` is in seconds since 1970. With `needs_history`, the crops are judged whatever the groups are.
    pub(crate) fn new(by: Vec<By>, now: i64, zone: Zone, needs_history: bool) -> Self {
        let is_judged = needs_history || by == [By::CropType];
        Self {
            groups: Groups::new(by),
            history: is_judged.then(|| History::recent(Step::Week, zone.local(now))),
            zone,
            needs_history,
            is_too_large: false,
        }
    }
}

impl Sink for SummaryData {
    fn take(&mut self, batch: &Batch) -> Result<(), Failure> {
        let measurements = Measurements::of(batch);
        let created = measurements.created.as_ref();
        let created = created.map(|created| self.zone.local(created.second));
        self.groups.add(batch, created, &measurements)?;
        if let Some(history) = &mut self.history {
            let crop = batch.typed(CROP_TYPE);
            let crop = crop.as_deref().unwrap_or("");
            if history.add(crop, created, &measurements).is_none() {
                if self.needs_history {
                    return Err(too_many());
                }
                self.history = None;
                self.is_too_large = true;
            }
        }
        Ok(())
    }
}

fn too_many() -> Failure {
    Failure::usage(
        "there are too many crops and weeks to judge the crops",
        "use a shorter range or fewer crops (`--where`), or leave out `--fail-on`",
    )
}
