//! Version 1, which answers all at once: in which order, and what it does with more than 1000 batches
//! (interface, sections 4 and 8).

use chrono::Utc;

use super::ask::{ALWAYS, Ask, Bearer, Listing, No, batches};
use super::order;
use super::pages::ENOUGH;
use super::prober::Prober;
use super::sample::{Sample, Seen};
use super::topic::{Finding, Topic};
use crate::client::Version;

const DAY: i64 = 86_400;
/// How far back is asked, step by step, where nobody else tells how many batches there are.
const STEPS: [i64; 3] = [7 * DAY, 90 * DAY, 3 * 366 * DAY];
/// Parts of a range that are counted, at most.
const MOST_PARTS: usize = 9;

/// Asks version 1; where version 2 has shown no batches, `sample` is filled here.
pub(super) async fn ask(prober: &mut Prober, sample: &mut Sample) -> Vec<Finding> {
    let order = Topic::Order(Version::V1);
    if let Err(no) = prober.may_ask(Version::V1, Bearer::Of(Version::V1)) {
        return [order, Topic::Above1000]
            .map(|topic| Finding::open(topic, &no.why(), Vec::new()))
            .into();
    }
    if sample.is_empty() && sample.is_all {
        let why = "there are no batches";
        return [order, Topic::Above1000]
            .map(|topic| Finding::open(topic, why, Vec::new()))
            .into();
    }
    if sample.is_empty() {
        let mut alone = Alone::default();
        let above = alone.run(prober).await;
        let told = order::of(&alone.last).map(order::Order::words);
        let order = Finding::of(order, told, alone.evidence.clone());
        *sample = alone.sample;
        return vec![order, Finding::of(Topic::Above1000, above, alone.evidence)];
    }
    vec![
        in_order(prober, sample).await,
        above_1000(prober, sample).await,
    ]
}

/// Asks for a stretch of time of which batches are known.
async fn in_order(prober: &mut Prober, sample: &Sample) -> Finding {
    let stretch = sample.stretch().unwrap_or(ALWAYS);
    let answered = prober.ask(&Ask::between(Version::V1, stretch)).await;
    let told = match answered.outcome {
        Ok(listing) => order::of(&Sample::of(&listing).batches).map(order::Order::words),
        Err(no) => Err(no.why()),
    };
    Finding::of(Topic::Order(Version::V1), told, answered.evidence)
}

/// Asks for a range of which version 2 has shown that it holds more than 1000 batches.
async fn above_1000(prober: &mut Prober, sample: &Sample) -> Finding {
    let topic = Topic::Above1000;
    let count = sample.len();
    let counted = |place| vec![format!("pages of v2: {} {place}", batches(count))];
    let Some((first, last)) = sample.span().filter(|_| count >= ENOUGH) else {
        if sample.is_all {
            let why = format!("there are only {}", batches(count));
            return Finding::open(topic, &why, counted("in all"));
        }
        // The pages are too small to count them; version 1 may tell it of itself.
        let mut alone = Alone::default();
        let told = alone.run(prober).await;
        return Finding::of(topic, told, alone.evidence);
    };
    let ask = Ask::between(Version::V1, (first, last + 1));
    let answered = prober.ask(&ask).await;
    let told = match answered.outcome {
        Ok(listing) => Ok(compared(&listing, &sample.batches)),
        Err(No::Refused { status, .. }) => Ok(format!("refuses with {status}")),
        Err(no @ No::Lost(_)) => Err(no.why()),
    };
    let evidence = [counted("in that range"), answered.evidence].concat();
    Finding::of(topic, told, evidence)
}

/// Says what is missing from an answer of version 1 that should hold all of `seen`.
fn compared(listing: &Listing, seen: &[Seen]) -> String {
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
struct Alone {
    sample: Sample,
    /// The batches of the last answer, in its order.
    last: Vec<Seen>,
    evidence: Vec<String>,
}

/// What is strange about an answer that should have been whole.
enum Strange {
    Refused(u16),
    /// It has exactly as many batches as version 1 is meant for.
    Round,
}

impl Alone {
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
    ) -> Result<Result<usize, Strange>, String> {
        let answered = prober.ask(&Ask::between(Version::V1, range)).await;
        self.evidence.extend(answered.evidence);
        match answered.outcome {
            Ok(listing) => {
                self.sample.add(&listing.batches);
                self.last = Sample::of(&listing).batches;
                let count = self.last.len();
                Ok(if count == ENOUGH - 1 {
                    Err(Strange::Round)
                } else {
                    Ok(count)
                })
            }
            Err(No::Refused { status, .. }) => Ok(Err(Strange::Refused(status))),
            Err(no @ No::Lost(_)) => Err(no.why()),
        }
    }

    /// Counts a range in parts, from its end, to see whether it holds more than 1000.
    async fn explain(
        &mut self,
        prober: &mut Prober,
        strange: &Strange,
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
                    Strange::Refused(status) => format!("refused with {status}"),
                    Strange::Round => "answered with exactly 1000 batches".to_owned(),
                }
            )),
            Strange::Refused(status) => Ok(format!("refuses with {status}")),
            Strange::Round => Ok(format!(
                "cuts off: 1000 came of a range that holds at least {count}"
            )),
        }
    }
}
