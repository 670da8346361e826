//! Builds batches of several crops.

use serde_json::json;

use super::Tray;
use crate::fake::Batch;
use crate::fake::live::LiveService;
use crate::report::{nursery, sound};

/// Batches, numbered in the order in which they are added.
#[derive(Clone, Default)]
pub(crate) struct Field {
    pub(crate) batches: Vec<Batch>,
}

impl Field {
    /// Adds a batch of `crop` with each of these usable rates, one second after the other. A rate is `null` or a
    /// number.
    pub(crate) fn sow<R: AsRef<str>>(
        &mut self,
        crop: &str,
        created: i64,
        rates: &[R],
    ) -> &mut Self {
        for (rate, second) in rates.iter().zip(created..) {
            let rate = match rate.as_ref() {
                "null" => json!(null),
                rate => json!(rate),
            };
            self.add(|batch| {
                batch
                    .created_at(second)
                    .with("crop_type", json!(crop))
                    .with("avg_usable_seedling_rate", rate)
            });
        }
        self
    }

    /// Adds a batch after changing it.
    pub(crate) fn add(&mut self, change: impl FnOnce(Batch) -> Batch) -> &mut Self {
        let id = format!("{:05}", self.batches.len());
        self.batches.push(change(sound(&id, 0)));
        self
    }

    /// Returns the batches as the rules see them.
    pub(crate) fn trays(&self) -> Vec<Tray> {
        let texts = self.batches.iter().map(Batch::text);
        texts
            .map(|text| Tray::of(&serde_json::from_str(&text).unwrap()))
            .collect()
    }

    pub(crate) fn service(&self) -> LiveService {
        nursery(self.batches.clone())
    }
}

/// Pseudo-random numbers (splitmix64), the same for the same seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Returns a number from 0 up to, not including, `limit`.
    pub(crate) fn below(&mut self, limit: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).cast_signed().rem_euclid(limit)
    }

    /// Returns one of `items`.
    pub(crate) fn one_of<'a, T>(&mut self, items: &'a mut [T]) -> &'a mut T {
        let index = self.below(i64::try_from(items.len()).unwrap());
        &mut items[usize::try_from(index).unwrap()]
    }

    /// Returns a rate within `points` of `middle`, with two digits and rather near the middle.
    pub(crate) fn rate(&mut self, middle: i64, points: i64) -> String {
        let parts: i64 = (0..3).map(|_| self.below(points * 200 / 3)).sum();
        let hundredths = ((middle - points) * 100 + parts).clamp(0, 10_000);
        format!("{}.{:02}", hundredths / 100, hundredths % 100)
    }
}
