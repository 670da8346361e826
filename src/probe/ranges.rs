//! Questions about ranges: which field the dates are compared with, whether bounds are inclusive, and
//! fractions of a second (interface, sections 2 and 4).

use super::listing::{BatchList, SampledBatch, batches};
use super::prober::Prober;
use super::request::{Bearer, ProbeRequest};
use super::sample::BatchSample;
use super::topic::{Topic, TopicAnswer};
use crate::client::Version;

const DAY: i64 = 86_400;
/// The units that a filter may compare instead of seconds.
const UNITS: [(i64, &str); 3] = [(60, "minutes"), (3600, "hours"), (DAY, "days")];
/// How far away to look for a batch in a filter that compares seconds: within the same minute, on one side at least.
const FEW_SECONDS: i64 = 6;
/// Longer than any unit.
const YEARS: i64 = 1000 * DAY;

pub(super) async fn probe(
    prober: &mut Prober,
    version: Version,
    sample: &BatchSample,
) -> Vec<TopicAnswer> {
    let mut ranges = Ranges {
        prober,
        version,
        whole: choose(sample, SampledBatch::is_whole),
        partial: choose(sample, |batch| !batch.is_whole()),
    };
    let (field, offset) = ranges.field_and_offset().await;
    // Bounds are only meaningful if the creation date is compared.
    let (bounds, fractions) = match &field {
        TopicAnswer {
            known: true,
            answer,
            ..
        } if answer == CREATED => {
            let bounds = ranges.bounds().await;
            let bounds = ranges.prober.answer(Topic::Bounds(version), bounds);
            let fractions = ranges.fractions().await;
            let fractions = ranges.prober.answer(Topic::Fractions(version), fractions);
            (bounds, fractions)
        }
        field => {
            let reason = if field.known {
                "the date filter does not compare the seconds of batch_creation_date".to_owned()
            } else {
                field.answer.trim_start_matches(UNKNOWN).to_owned()
            };
            let open = |topic| TopicAnswer::unknown(topic, &reason);
            (
                open(Topic::Bounds(version)),
                open(Topic::Fractions(version)),
            )
        }
    };
    vec![field, bounds, fractions, offset]
}

const CREATED: &str = "compares batch_creation_date";
const UNKNOWN: &str = "unknown: ";

struct Ranges<'a> {
    prober: &'a mut Prober,
    version: Version,
    /// A batch created on a whole second, and one that was not.
    whole: Option<&'a SampledBatch>,
    partial: Option<&'a SampledBatch>,
}

impl Ranges<'_> {
    /// Returns whether the service returns `batch` for a range. The error is the reason why it is unknown.
    async fn contains(&mut self, batch: &SampledBatch, range: (i64, i64)) -> Result<bool, String> {
        let request = ProbeRequest::between(self.version, range);
        let listing = self.prober.send_window(&request).await?;
        self.check_contains(&listing, batch)
    }

    /// Returns whether `batch` is in the listing, and adds that to the last line of evidence.
    fn check_contains(
        &mut self,
        listing: &BatchList,
        batch: &SampledBatch,
    ) -> Result<bool, String> {
        let contains = listing
            .contains(&batch.id)
            .ok_or("too many batches in a range to find one")?;
        if let Some(line) = self.prober.evidence.last_mut() {
            line.push_str(if contains {
                ", including that one"
            } else {
                ", without that one"
            });
        }
        Ok(contains)
    }

    /// Adds to the evidence when `batch` was created.
    fn note_creation(&mut self, batch: &SampledBatch) {
        let line = format!("a batch was created at {}", batch.written);
        self.prober.evidence.push(line);
    }

    /// Requests a range around a batch and one beside it, then the first again with the other zone.
    async fn field_and_offset(&mut self) -> (TopicAnswer, TopicAnswer) {
        let topic = Topic::DateField(self.version);
        let Some(batch) = self.whole.or(self.partial) else {
            let reason = match self.prober.may_ask(self.version, Bearer::Of(self.version)) {
                Ok(()) => "no batch is known".to_owned(),
                Err(error) => error.into(),
            };
            let request = ProbeRequest::nothing(self.version);
            let offset = self.offset(&request, None).await;
            return (TopicAnswer::unknown(topic, &reason), offset);
        };
        let range = around(batch.second());
        self.note_creation(batch);
        let request = ProbeRequest::between(self.version, range);
        let listing = self.prober.send_window(&request).await;
        let result = match &listing {
            Ok(listing) => self.field(batch, range, listing).await,
            Err(error) => Err(error.clone().into()),
        };
        let field = self.prober.answer(topic, result);
        let offset = self.offset(&request, listing.ok().as_ref()).await;
        (field, offset)
    }

    /// Interprets the batches of a range around `batch`.
    async fn field(
        &mut self,
        batch: &SampledBatch,
        (first, last): (i64, i64),
        listing: &BatchList,
    ) -> Result<String, String> {
        if !self.check_contains(listing, batch)? {
            return self.another_field(batch).await;
        }
        let outside = |seen: &&SampledBatch| !(first..=last).contains(&seen.second());
        let outside_batches: Vec<&SampledBatch> = listing.batches.iter().filter(outside).collect();
        if outside_batches.is_empty() {
            return self.unit(batch).await;
        }
        let count = batches(outside_batches.len());
        let line = format!("{count} of them were created outside that range");
        self.prober.evidence.push(line);
        let all = |is: &dyn Fn(i64) -> bool| outside_batches.iter().all(|seen| is(seen.second()));
        let shared = UNITS.iter().position(|(unit, _)| {
            let units = first.div_euclid(*unit)..=last.div_euclid(*unit);
            all(&|second| units.contains(&second.div_euclid(*unit)))
        });
        let is_near = all(&|second| (first - DAY..=last + DAY).contains(&second));
        let units = match shared {
            Some(smallest) => &UNITS[smallest..],
            // Days of another time zone.
            None if is_near => &UNITS[UNITS.len() - 1..],
            None => &[],
        };
        match self.larger_unit(batch, units).await? {
            Some(unit) if shared.is_some() => Ok(by_unit(unit)),
            Some(_) => Err("batches created up to a day away are returned too".to_owned()),
            // All batches may be of one day.
            None => Ok(
                "does not compare batch_creation_date: other batches are returned too".to_owned(),
            ),
        }
    }

    /// Finds out which unit is compared, if a range of a few seconds returns only batches that were created in it.
    ///
    /// With a single batch, a service that ignores dates would pass so far.
    async fn unit(&mut self, batch: &SampledBatch) -> Result<String, String> {
        if !self.is_beside(batch, FEW_SECONDS).await? {
            return Ok(CREATED.to_owned());
        }
        if let Some(unit) = self.larger_unit(batch, &UNITS).await? {
            return Ok(by_unit(unit));
        }
        let second = batch.second();
        for range in [before(second, YEARS), after(second, YEARS)] {
            if !self.contains(batch, range).await? {
                return Err(
                    "the batch is returned for other days, but not for any dates".to_owned(),
                );
            }
        }
        Ok("compares nothing: a batch is returned for any dates".to_owned())
    }

    /// Returns the name of the first of `units` for which ranges beside the batch do not return it. `None` if there is none.
    async fn larger_unit(
        &mut self,
        batch: &SampledBatch,
        units: &[(i64, &'static str)],
    ) -> Result<Option<&'static str>, String> {
        for (unit, name) in units {
            if !self.is_beside(batch, 2 * unit).await? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Returns whether the service returns `batch` for a range `distance` seconds before or after it.
    async fn is_beside(&mut self, batch: &SampledBatch, distance: i64) -> Result<bool, String> {
        let second = batch.second();
        Ok(self.contains(batch, before(second, distance)).await?
            || self.contains(batch, after(second, distance)).await?)
    }

    /// Tries the dates in fields that are not in the interface.
    async fn another_field(&mut self, batch: &SampledBatch) -> Result<String, String> {
        const MAX_FIELDS: usize = 3;
        let dates = batch
            .others
            .iter()
            .filter_map(|(name, date)| Some((name, date.as_ref()?)));
        for (name, date) in dates.take(MAX_FIELDS) {
            if self.contains(batch, around(date.second)).await == Ok(true) {
                return Ok(format!("compares `{name}`, not batch_creation_date"));
            }
        }
        // A filter of whole minutes or days with an exclusive bound leaves a batch out of a few seconds.
        let days = (batch.second() - 2 * DAY, batch.second() + 2 * DAY);
        if self.contains(batch, days).await? {
            return Err(
                "a range of days around it returns the batch, one of seconds does not; it may compare larger units or another date"
                    .to_owned(),
            );
        }
        Ok(
            "does not compare batch_creation_date: a range around it does not return the batch"
                .to_owned(),
        )
    }

    /// Writes the dates of `request` with `+00:00`, and compares the batches.
    async fn offset(&mut self, request: &ProbeRequest, before: Option<&BatchList>) -> TopicAnswer {
        let request = request.clone().with_offset();
        let result = match self.prober.send_window(&request).await {
            Ok(listing) => Ok(match before {
                Some(before) if before.ids() != listing.ids() => {
                    "accepted, but not with the same batches as with Z"
                }
                Some(_) => "accepted: the same batches as with Z",
                None => "accepted",
            }
            .to_owned()),
            Err(error) => error
                .refusal()
                .map(|(status, _)| format!("refused with {status}")),
        };
        self.prober.answer(Topic::Offset(self.version), result)
    }

    /// Tries a batch created exactly on a bound.
    async fn bounds(&mut self) -> Result<String, String> {
        let no_batch = "no known batch was created on a whole second";
        let batch = self.whole.ok_or(no_batch)?;
        self.note_creation(batch);
        let second = batch.second();
        if self.contains(batch, (second, second)).await? {
            return Ok("both are included".to_owned());
        }
        Ok(match self.at_both_ends(batch).await? {
            (true, true) => "both are included, unless they are the same second",
            (true, false) => "start_date is included, end_date is not",
            (false, true) => "end_date is included, start_date is not",
            (false, false) => "neither is included",
        }
        .to_owned())
    }

    /// Returns whether the service returns `batch` for a range that starts, and for one that ends, with its second.
    async fn at_both_ends(&mut self, batch: &SampledBatch) -> Result<(bool, bool), String> {
        let second = batch.second();
        let start = self.contains(batch, (second, second + 1)).await?;
        let end = self.contains(batch, (second - 1, second)).await?;
        Ok((start, end))
    }

    /// Tries a batch created within the second of a bound.
    async fn fractions(&mut self) -> Result<String, String> {
        let no_batch = "all known batches were created on whole seconds";
        let batch = self.partial.ok_or(no_batch)?;
        self.note_creation(batch);
        Ok(match self.at_both_ends(batch).await? {
            (true, false) => "count: batches created within the second of end_date are excluded",
            (true, true) => {
                "do not count: batches created within the second of end_date are included"
            }
            (false, false) => {
                "batches created within the second of a bound are excluded at both ends"
            }
            (false, true) => {
                "batches created within the second of start_date are excluded, of end_date included"
            }
        }
        .to_owned())
    }
}

/// Returns a range around a second that contains it whether or not bounds are inclusive.
fn around(second: i64) -> (i64, i64) {
    (second - 1, second + 2)
}

/// Returns short ranges that end before a second, or start after it, at this distance.
fn before(second: i64, distance: i64) -> (i64, i64) {
    (second - distance - 5, second - distance)
}

fn after(second: i64, distance: i64) -> (i64, i64) {
    (second + distance, second + distance + 5)
}

fn by_unit(unit: &str) -> String {
    format!("{CREATED}, by whole {unit}")
}

/// Chooses a batch with few others nearby. If possible, the range around it is within one minute: only then does it show
/// whether whole minutes are compared.
fn choose(sample: &BatchSample, filter: impl Fn(&SampledBatch) -> bool) -> Option<&SampledBatch> {
    let is_inside = |batch: &SampledBatch| {
        let (first, last) = around(batch.second());
        first.div_euclid(60) == last.div_euclid(60)
    };
    sample
        .most_isolated(|batch| filter(batch) && is_inside(batch))
        .or_else(|| sample.most_isolated(&filter))
}
