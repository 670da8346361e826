//! Questions about version 1, which returns all batches at once: their order, and more than 1000 batches
//! (interface, sections 4 and 8).

use chrono::Utc;

use super::listing::{BatchList, SampledBatch, batches};
use super::prober::Prober;
use super::request::{ALWAYS, Bearer, ProbeRequest};
use super::sample::{BatchSample, order_of};
use super::topic::{Topic, TopicAnswer};
use super::v2::ENOUGH;
use crate::client::Version;

const DAY: i64 = 86_400;
/// How far back to request, step by step, if version 2 does not show the number of batches.
const STEPS: [i64; 3] = [7 * DAY, 90 * DAY, 3 * 366 * DAY];
/// The maximum number of parts of a range to count.
const MAX_PARTS: usize = 9;

/// Asks version 1. Fills `sample` if version 2 returned no batches.
pub(super) async fn probe(prober: &mut Prober, sample: &mut BatchSample) -> Vec<TopicAnswer> {
    let order = Topic::Order(Version::V1);
    let unknown = match prober.may_ask(Version::V1, Bearer::Of(Version::V1)) {
        Err(error) => Some(error.into()),
        Ok(()) if sample.is_empty() && sample.is_all => Some("there are no batches".to_owned()),
        Ok(()) => None,
    };
    if let Some(reason) = unknown {
        let unknown = |topic| TopicAnswer::unknown(topic, &reason);
        return [order, Topic::Above1000].map(unknown).into();
    }
    if sample.is_empty() {
        let mut v1_only = V1Only::default();
        let above = v1_only.run(prober).await;
        *sample = v1_only.sample;
        let above = prober.answer(Topic::Above1000, above);
        let result = order_of(&v1_only.last);
        let order = TopicAnswer::new(order, result, above.evidence.clone());
        return vec![order, above];
    }
    let in_order = in_order(prober, sample).await;
    let in_order = prober.answer(order, in_order);
    let above = above_1000(prober, sample).await;
    vec![in_order, prober.answer(Topic::Above1000, above)]
}

/// Requests a short range with known batches.
async fn in_order(prober: &mut Prober, sample: &BatchSample) -> Result<String, String> {
    let range = sample.short_range().unwrap_or(ALWAYS);
    let request = ProbeRequest::between(Version::V1, range);
    let listing = prober.send(&request).await?;
    order_of(&BatchSample::of(&listing).batches)
}

/// Requests a range that has more than 1000 batches according to version 2.
async fn above_1000(prober: &mut Prober, sample: &BatchSample) -> Result<String, String> {
    let count = sample.len();
    let counted = |place| format!("pages of v2: {} {place}", batches(count));
    let Some((first, last)) = sample.span().filter(|_| count >= ENOUGH) else {
        if sample.is_all {
            prober.evidence.push(counted("in all"));
            return Err(format!("too few: {}", batches(count)));
        }
        // The pages are too small to count; try with version 1 alone.
        return V1Only::default().run(prober).await;
    };
    prober.evidence.push(counted("in that range"));
    let request = ProbeRequest::between(Version::V1, (first, last + 1));
    match prober.send(&request).await {
        Ok(listing) => Ok(compared(&listing, &sample.batches)),
        Err(error) => error
            .refusal()
            .map(|(status, _)| format!("refuses with {status}")),
    }
}

/// Describes what is missing from a response of version 1 that should contain all of `seen`.
fn compared(listing: &BatchList, seen: &[SampledBatch]) -> String {
    let ids = listing.ids();
    let returned = ids.len();
    let missing = seen.iter().filter(|batch| !ids.contains(batch.id.as_str()));
    let missing = missing.count();
    if !listing.whole {
        format!("returns more than {returned} at once")
    } else if missing == 0 {
        format!("returns all of them at once: {}", batches(returned))
    } else {
        format!("truncates: {returned} returned, {missing} that v2 has are missing")
    }
}

/// Version 1 without counts from version 2.
#[derive(Default)]
struct V1Only {
    sample: BatchSample,
    /// The batches of the last response, in its order.
    last: Vec<SampledBatch>,
}

/// Why a response may be incomplete.
enum OddAnswer {
    Refused(u16),
    /// It has exactly 1000 batches, the documented size of version 1.
    Round,
}

impl V1Only {
    /// Requests longer and longer ranges. The error is the reason why the answer is unknown.
    async fn run(&mut self, prober: &mut Prober) -> Result<String, String> {
        let now = Utc::now().timestamp();
        let mut end = now;
        let ranges = STEPS.map(|step| (now - step, now)).into_iter();
        for range in ranges.chain([ALWAYS]) {
            match self.count(prober, range).await? {
                Ok(count) if count >= ENOUGH => {
                    return Ok(format!("returns at least {} at once", batches(count)));
                }
                Ok(_) => end = range.0,
                Err(odd) => return self.explain(prober, &odd, (range.0, end)).await,
            }
        }
        self.sample.is_all = true;
        Err(match self.sample.len() {
            0 => "there are no batches".to_owned(),
            count => format!("too few: {}", batches(count)),
        })
    }

    /// Counts the batches of a range, or returns why the response may be incomplete.
    async fn count(
        &mut self,
        prober: &mut Prober,
        range: (i64, i64),
    ) -> Result<Result<usize, OddAnswer>, String> {
        let request = ProbeRequest::between(Version::V1, range);
        match prober.send(&request).await {
            Ok(listing) => {
                self.sample.add(&listing.batches);
                self.last = BatchSample::of(&listing).batches;
                let count = self.last.len();
                Ok(if count == ENOUGH - 1 {
                    Err(OddAnswer::Round)
                } else {
                    Ok(count)
                })
            }
            Err(error) => {
                let (status, _) = error.refusal()?;
                Ok(Err(OddAnswer::Refused(status)))
            }
        }
    }

    /// Counts a range in parts, from its end, to find out whether it has more than 1000 batches.
    async fn explain(
        &mut self,
        prober: &mut Prober,
        odd: &OddAnswer,
        (mut first, mut end): (i64, i64),
    ) -> Result<String, String> {
        for _ in 0..MAX_PARTS {
            if self.sample.len() >= ENOUGH {
                break;
            }
            let middle = first + (end - first) / 2;
            match self.count(prober, (middle, end)).await? {
                Ok(_) => end = middle,
                Err(_) => first = middle,
            }
        }
        let count = batches(self.sample.len());
        match odd {
            _ if self.sample.len() < ENOUGH => Err(format!(
                "a range was {}, but shorter ranges have only {count}",
                match odd {
                    OddAnswer::Refused(status) => format!("refused with {status}"),
                    OddAnswer::Round => "answered with exactly 1000 batches".to_owned(),
                }
            )),
            OddAnswer::Refused(status) => Ok(format!("refuses with {status}")),
            OddAnswer::Round => Ok(format!(
                "truncates: 1000 returned from a range with at least {count}"
            )),
        }
    }
}
