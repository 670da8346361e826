//! What is sown when: the creation date and the crop of every batch, and how well it does.
//!
//! Most of a few hundred batches are from the newest weeks, so that each crop has enough of them to compare its
//! newest week with the weeks before. Further batches are spread over the three years. In the newest week, one crop
//! is in trouble and another is out of season.

use chrono::{DateTime, Datelike as _, Utc};
use fastrand::Rng;

use super::crops::{CROPS, CropProfile, TROUBLED};
use super::season;
use crate::server::rng::mix;

/// The number of newest weeks with all batches of each crop.
const BUSY_WEEKS: u32 = 5;
/// The number of newest weeks with some batches of each crop.
const WEEKS: u32 = 8;

/// From this number of batches on, all crops are sown.
const LARGE: usize = 2000;

pub(super) struct Plan {
    pub(super) seed: u64,
    /// When each batch was created, in microseconds since 1970, ascending.
    created: Vec<i64>,
    /// The planned batches by index, ascending; the others are random.
    planned: Vec<(usize, Planned)>,
}

/// A batch of one of the newest weeks.
#[derive(Clone, Copy)]
struct Planned {
    /// The index of its crop.
    crop: usize,
    /// Counted back from the newest, which is zero.
    week: u32,
    /// Counted from zero among the batches of the same crop and week.
    number: u32,
}

/// What is sown in a batch, and how well it does.
pub(super) struct Sowing {
    pub(super) crop: &'static CropProfile,
    pub(super) setback: Setback,
    /// The seed lot, if it explains the setback.
    pub(super) lot: Option<u32>,
    /// Decides how the rates differ from the usual ones.
    pub(super) chance: Rng,
    /// Whether they differ in the opposite direction. Every second planned batch differs from the usual rates as much
    /// as the one before, so that the median of a week hardly depends on chance.
    pub(super) is_opposite: bool,
    /// How the germination of the whole week differs, in per mille.
    pub(super) drift: i32,
}

/// How badly a batch does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setback {
    None,
    /// Somewhat less germinates, and less of that is usable.
    Weak,
    /// Most does not germinate.
    Poor,
    /// Nothing germinates.
    Total,
}

impl Plan {
    pub(super) fn new(seed: u64, count: usize) -> Self {
        let mut rng = Rng::with_seed(mix(seed, count as u64));
        let mut planned: Vec<(i64, Planned)> = planned()
            .take(count * 5 / 6)
            .map(|batch| (season::moment_in_week(batch.week, &mut rng), batch))
            .collect();
        planned.sort_by_key(|(moment, _)| *moment);
        let mut created = season::moments(count - planned.len(), &mut rng);
        created.extend(planned.iter().map(|(moment, _)| moment));
        created.sort_unstable();
        let mut past = 0;
        let indexed = planned.into_iter().map(|(moment, batch)| {
            // Several batches may have the same date.
            let index = past.max(created.partition_point(|&other| other < moment));
            past = index + 1;
            (index, batch)
        });
        Self {
            seed,
            planned: indexed.collect(),
            created,
        }
    }

    pub(super) fn created(&self) -> &[i64] {
        &self.created
    }

    pub(super) fn moment(&self, index: usize) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.created[index]).expect("within the three years")
    }

    /// Returns what is sown in batch number `index`.
    pub(super) fn sowing(&self, index: usize, rng: &mut Rng) -> Sowing {
        let found = self
            .planned
            .binary_search_by_key(&index, |(index, _)| *index);
        if let Ok(found) = found {
            return self.planned[found].1.sowing(self.seed);
        }
        let crop = self.crop_of_season(self.moment(index).month0() as usize, rng);
        let is_troubled = crop.name == TROUBLED && season::is_newest_week(self.created[index]);
        let setback = match is_troubled {
            true if rng.u32(0..4) == 0 => Setback::Poor,
            true => Setback::Weak,
            false => random_setback(rng),
        };
        Sowing {
            crop,
            setback,
            lot: bad_lot(self.seed, is_troubled, setback),
            chance: rng.fork(),
            is_opposite: false,
            drift: 0,
        }
    }

    /// Picks a crop, weighted by what is sown in the month.
    fn crop_of_season(&self, month: usize, rng: &mut Rng) -> &'static CropProfile {
        let is_sown = |crop: &&CropProfile| crop.weekly > 0 || self.created.len() >= LARGE;
        let crops = || CROPS.iter().filter(is_sown);
        let mut share = rng.u32(0..crops().map(|crop| crop.months[month]).sum());
        for crop in crops() {
            match share.checked_sub(crop.months[month]) {
                Some(rest) => share = rest,
                None => return crop,
            }
        }
        &CROPS[0]
    }
}

/// Returns the planned batches: the newest week first, and in each week one batch of every crop in turn.
fn planned() -> impl Iterator<Item = Planned> {
    let most = CROPS.iter().map(|crop| crop.weekly.max(crop.newest)).max();
    let numbers = 0..most.unwrap_or(0);
    let weeks = (0..WEEKS).flat_map(move |week| numbers.clone().map(move |number| (week, number)));
    weeks.flat_map(|(week, number)| {
        let batch = move |crop| Planned { crop, week, number };
        let batches = (0..CROPS.len()).map(batch);
        batches.filter(|batch| batch.number < batch.count())
    })
}

impl Planned {
    /// Returns the number of batches of the crop in the week.
    fn count(&self) -> u32 {
        let crop = &CROPS[self.crop];
        match self.week {
            0 => crop.newest,
            1..BUSY_WEEKS => crop.weekly,
            BUSY_WEEKS => crop.weekly.div_ceil(2),
            _ => crop.weekly / 5,
        }
    }

    fn sowing(self, seed: u64) -> Sowing {
        let crop = &CROPS[self.crop];
        let week = mix(mix(seed, self.crop as u64), self.week.into());
        let is_troubled = crop.name == TROUBLED && self.week == 0;
        let setback = match self.number {
            2 if is_troubled => Setback::Total,
            5 | 8 if is_troubled => Setback::Poor,
            _ if is_troubled => Setback::Weak,
            // More than one could change the median of the week.
            1.. if self.week == 0 => Setback::None,
            number => random_setback(&mut Rng::with_seed(mix(week, number.into()))),
        };
        Sowing {
            crop,
            setback,
            lot: bad_lot(seed, is_troubled, setback),
            chance: Rng::with_seed(mix(!week, (self.number / 2).into())),
            is_opposite: self.number % 2 == 1,
            drift: Rng::with_seed(week).i32(-5..=5),
        }
    }
}

/// Returns the seed lot of all batches that fail in the crop that is in trouble.
fn bad_lot(seed: u64, is_troubled: bool, setback: Setback) -> Option<u32> {
    let is_bad = is_troubled && setback != Setback::Weak;
    is_bad.then(|| Rng::with_seed(seed).u32(1000..10_000))
}

fn random_setback(rng: &mut Rng) -> Setback {
    match rng.u32(0..240) {
        0 => Setback::Total,
        1..8 => Setback::Poor,
        _ => Setback::None,
    }
}
