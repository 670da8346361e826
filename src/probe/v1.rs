//! Version 1, which answers all at once: in which order, and what it does with more than 1000 batches
//! (interface, sections 4 and 8).

use chrono::Utc;

use super::listing::{BatchList, SampledBatch, batches};
use super::prober::Prober;
use super::request::{ALWAYS, Bearer, NoBatches, ProbeRequest};
use super::sample::{BatchSample, ObservedOrder, order_of};
use super::topic::{Topic, TopicAnswer};
use super::v2::ENOUGH;
use crate::client::Version;

const DAY: i64 = 86_400;
/// How far back is asked, step by step, where nobody else tells how many batches there are.
const STEPS: [i64; 3] = [7 * DAY, 90 * DAY, 3 * 366 * DAY];
/// Parts of a range that are counted, at most.
const MOST_PARTS: usize = 9;

/// Asks version 1; where version 2 has shown no batches, `sample` is filled here.
pub(super) async fn probe(prober: &mut Prober, sample: &mut BatchSample) -> Vec<TopicAnswer> {
    let order = Topic::Order(Version::V1);
    if let Err(no) = prober.may_ask(Version::V1, Bearer::Of(Version::V1)) {
        return [order, Topic::Above1000]
            .map(|topic| TopicAnswer::unknown(topic, &no.why(), Vec::new()))
            .into();
    }
    if sample.is_empty() && sample.is_all {
        let why = "there are no batches";
        return [order, Topic::Above1000]
            .map(|topic| TopicAnswer::unknown(topic, why, Vec::new()))
            .into();
    }
    if sample.is_empty() {
        let mut alone = V1Only::default();
        let above = alone.run(prober).await;
        let told = order_of(&alone.last).map(ObservedOrder::words);
        let order = TopicAnswer::from_result(order, told, alone.evidence.clone());
        *sample = alone.sample;
        return vec![
            order,
            TopicAnswer::from_result(Topic::Above1000, above, alone.evidence),
        ];
    }
    vec![
        in_order(prober, sample).await,
        above_1000(prober, sample).await,
    ]
}

/// Asks for a stretch of time of which batches are known.
async fn in_order(prober: &mut Prober, sample: &BatchSample) -> TopicAnswer {
    let stretch = sample.stretch().unwrap_or(ALWAYS);
    let answered = prober
        .ask(&ProbeRequest::between(Version::V1, stretch))
        .await;
    let told = match answered.outcome {
        Ok(listing) => order_of(&BatchSample::of(&listing).batches).map(ObservedOrder::words),
        Err(no) => Err(no.why()),
    };
    TopicAnswer::from_result(Topic::Order(Version::V1), told, answered.evidence)
}

/// Asks for a range of which version 2 has shown that it holds more than 1000 batches.
async fn above_1000(prober: &mut Prober, sample: &BatchSample) -> TopicAnswer {
    let topic = Topic::Above1000;
    let count = sample.len();
    let counted = |place| vec![format!("pages of v2: {} {place}", batches(count))];
    let Some((first, last)) = sample.span().filter(|_| count >= ENOUGH) else {
        if sample.is_all {
            let why = format!("there are only {}", batches(count));
            return TopicAnswer::unknown(topic, &why, counted("in all"));
        }
        // The pages are too small to count them; version 1 may tell it of itself.
        let mut alone = V1Only::default();
        let told = alone.run(prober).await;
        return TopicAnswer::from_result(topic, told, alone.evidence);
    };
    let ask = ProbeRequest::between(Version::V1, (first, last + 1));
    let answered = prober.ask(&ask).await;
    let told = match answered.outcome {
        Ok(listing) => Ok(compared(&listing, &sample.batches)),
        Err(NoBatches::Refused { status, .. }) => Ok(format!("refuses with {status}")),
        Err(no @ NoBatches::Lost(_)) => Err(no.why()),
    };
    let evidence = [counted("in that range"), answered.evidence].concat();
    TopicAnswer::from_result(topic, told, evidence)
}

/// Says what is missing from an answer of version 1 that should hold all of `seen`.
fn compared(listing: &BatchList, seen: &[SampledBatch]) -> String {
    let ids = listing.ids();
    let came = ids.len();
    let missing = seen.iter().filter(|batch| !ids.contains(batch.id.as_str()));
    let missing = missing.count();
    if !listing.whole {
        format!("answers more than {came} at once")
    } else if missing == 0 {
        format!("answers all of them at once: {}", batches(came))
    } else {
        format!("cuts off: {came} came, {missing} that v2 has did not")
    }
}

/// Version 1 without anybody to count for it.
#[derive(Default)]
struct V1Only {
    sample: BatchSample,
    /// The batches of the last answer, in its order.
    last: Vec<SampledBatch>,
    evidence: Vec<String>,
}

/// What is strange about an answer that should have been whole.
enum OddAnswer {
    Refused(u16),
    /// It has exactly as many batches as version 1 is meant for.
    Round,
}

impl V1Only {
    /// Asks for more and more time; an error says why nothing can be told.
    async fn run(&mut self, prober: &mut Prober) -> Result<String, String> {
        let now = Utc::now().timestamp();
        let mut past = now;
        let ranges = STEPS.map(|step| (now - step, now)).into_iter();
        for range in ranges.chain([ALWAYS]) {
            match self.count(prober, range).await? {
                Ok(count) if count >= ENOUGH => {
                    return Ok(format!("answers at least {} at once", batches(count)));
                }
                Ok(_) => past = range.0,
                Err(strange) => return self.explain(prober, &strange, (range.0, past)).await,
            }
        }
        self.sample.is_all = true;
        Err(match self.sample.len() {
            0 => "there are no batches".to_owned(),
            count => format!("there are only {}", batches(count)),
        })
    }

    /// Counts the batches of a range, or tells what is strange about the answer.
    async fn count(
        &mut self,
        prober: &mut Prober,
        range: (i64, i64),
    ) -> Result<Result<usize, OddAnswer>, String> {
        let answered = prober.ask(&ProbeRequest::between(Version::V1, range)).await;
        self.evidence.extend(answered.evidence);
        match answered.outcome {
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
            Err(NoBatches::Refused { status, .. }) => Ok(Err(OddAnswer::Refused(status))),
            Err(no @ NoBatches::Lost(_)) => Err(no.why()),
        }
    }

    /// Counts a range in parts, from its end, to see whether it holds more than 1000.
    async fn explain(
        &mut self,
        prober: &mut Prober,
        strange: &OddAnswer,
        (mut first, mut past): (i64, i64),
    ) -> Result<String, String> {
        for _ in 0..MOST_PARTS {
            if self.sample.len() >= ENOUGH {
                break;
            }
            let middle = first + (past - first) / 2;
            match self.count(prober, (middle, past)).await? {
                Ok(_) => past = middle,
                Err(_) => first = middle,
            }
        }
        let count = batches(self.sample.len());
        match strange {
            _ if self.sample.len() < ENOUGH => Err(format!(
                "a range was {}, but {count} are all that shorter ones show",
                match strange {
                    OddAnswer::Refused(status) => format!("refused with {status}"),
                    OddAnswer::Round => "answered with exactly 1000 batches".to_owned(),
                }
            )),
            OddAnswer::Refused(status) => Ok(format!("refuses with {status}")),
            OddAnswer::Round => Ok(format!(
                "cuts off: 1000 came of a range that holds at least {count}"
            )),
        }
    }
}
