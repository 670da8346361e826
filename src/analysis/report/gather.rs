//! Collects what the page needs from the batches, in any order and in bounded memory.

use std::collections::BTreeMap;

use super::losses::Losses;
use super::newest::NewestBatches;
use super::parse::BatchNumbers;
use super::quality::Quality;
use super::span::ReportSpan;
use crate::analysis::Targets;
use crate::analysis::statistics::{Figures, Period, Step};
use crate::batch::digest::SetDigest;
use crate::batch::{Batch, COLUMNS, CROP_TYPE};
use crate::error::{Failure, Kind};
use crate::pipeline::Sink;
use crate::text::nearest;

/// The maximum number of groups of crop and step, to limit memory and the size of the page.
const MAX_GROUPS: usize = 200_000;

/// The data of a report.
pub(crate) struct ReportData {
    pub(super) step: Step,
    pub(super) span: ReportSpan,
    /// By name; `None` for batches without a crop.
    pub(super) crops: BTreeMap<Option<String>, CropData>,
    pub(super) newest: NewestBatches,
    pub(super) quality: Quality,
    /// The number of batches in each square of germination and usable rate, by its lower corner, in percent.
    pub(super) density: BTreeMap<(i16, i16), u64>,
    /// The number of batches without any figures.
    pub(super) without_figures: u64,
    /// The number of batches with both rates.
    pub(super) rated: u64,
    digest: SetDigest,
    /// The number of groups of crop and step.
    cells: usize,
}

/// The batches of one crop.
#[derive(Default)]
pub(super) struct CropData {
    pub(super) steps: BTreeMap<Period, Figures>,
    /// Batches without a valid date, which belong to no step.
    pub(super) undated: Figures,
    pub(super) losses: Losses,
}

impl ReportData {
    pub(crate) fn new(step: Step, span: ReportSpan) -> Self {
        let columns: Vec<usize> = (0..COLUMNS.len()).collect();
        Self {
            step,
            span,
            crops: BTreeMap::new(),
            newest: NewestBatches::default(),
            quality: Quality::new(span.made),
            density: BTreeMap::new(),
            without_figures: 0,
            rated: 0,
            digest: SetDigest::new(&columns),
            cells: 0,
        }
    }

    pub(super) fn set_digest(&self) -> String {
        self.digest.finish()
    }

    /// Returns the figures of all crops in one step.
    pub(super) fn at(&self, period: Period) -> Figures {
        let parts = self
            .crops
            .values()
            .filter_map(|crop| crop.steps.get(&period));
        merged(parts)
    }

    /// Returns the crops of `targets` that no batch has, each with the similar crop that is probably meant.
    pub(crate) fn crops_meant<'a>(&'a self, targets: &'a Targets) -> Vec<(&'a str, &'a str)> {
        let known = || self.crops.keys().flatten().map(String::as_str);
        let is_known =
            |crop: &str| known().any(|known| known.to_lowercase() == crop.to_lowercase());
        let without: Vec<(String, &str)> = known()
            .filter(|crop| targets.of(Some(crop)).is_none())
            .map(|crop| (crop.to_lowercase(), crop))
            .collect();
        let unknown = targets.crops().filter(|crop| !is_known(crop));
        let similar = unknown.filter_map(|crop| {
            let names = without.iter().map(|(lower, _)| lower.as_str());
            let lower = nearest(&crop.to_lowercase(), names)?.to_owned();
            let found = without.iter().find(|(name, _)| *name == lower)?;
            Some((crop, found.1))
        });
        similar.collect()
    }

    /// Returns the crops, largest number of batches first.
    pub(super) fn by_size(&self) -> Vec<(Option<&str>, &CropData)> {
        let mut crops: Vec<(Option<&str>, &CropData, u64)> = self
            .crops
            .iter()
            .map(|(name, crop)| (name.as_deref(), crop, crop.batches()))
            .collect();
        // Batches without a crop are last. Ties are sorted by name.
        crops.sort_by_key(|(name, _, batches)| (name.is_none(), u64::MAX - batches, *name));
        crops
            .into_iter()
            .map(|(name, crop, _)| (name, crop))
            .collect()
    }

    /// Returns the figures of all batches.
    pub(crate) fn total(&self) -> Figures {
        let parts = self
            .crops
            .values()
            .flat_map(|crop| crop.steps.values().chain([&crop.undated]));
        merged(parts)
    }
}

impl CropData {
    pub(super) fn batches(&self) -> u64 {
        let parts = self.steps.values().chain([&self.undated]);
        parts.map(|figures| figures.batches).sum()
    }

    pub(super) fn total(&self) -> Figures {
        merged(self.steps.values().chain([&self.undated]))
    }
}

/// Merges figures of different batches.
pub(super) fn merged<'a>(parts: impl Iterator<Item = &'a Figures>) -> Figures {
    let mut all = Figures::default();
    for part in parts {
        all.merge(part);
    }
    all
}

impl Sink for ReportData {
    fn take(&mut self, batch: &Batch) -> Result<(), Failure> {
        self.digest.add(batch);
        let numbers = BatchNumbers::of(batch);
        let name = batch.typed(CROP_TYPE);
        let name = name.filter(|name| !name.is_empty());
        let crop = self.crops.entry(name.map(Into::into)).or_default();
        let period = numbers.created.map(|second| self.step.period(second));
        let figures = match period {
            Some(period) => crop.steps.entry(period).or_insert_with(|| {
                self.cells += 1;
                Figures::default()
            }),
            None => &mut crop.undated,
        };
        figures.add(batch);
        crop.losses.add(&numbers);
        if self.cells > MAX_GROUPS {
            return Err(too_many());
        }
        if let Some(square) = numbers.square() {
            *self.density.entry(square).or_default() += 1;
        }
        self.rated += u64::from(numbers.rates().is_some());
        self.without_figures += u64::from(numbers.is_empty());
        self.quality.check(batch, &numbers);
        self.newest.add(batch, &numbers);
        Ok(())
    }
}

fn too_many() -> Failure {
    Failure::new(
        Kind::Usage,
        format!("the report has more than {MAX_GROUPS} groups of crop and step"),
    )
    .hint("use a shorter range, longer steps (`--step month`) or fewer crops (`--where`)")
}
