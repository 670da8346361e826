//! Ranges: which field is compared with the dates, whether bounds belong to them, what becomes of parts
//! of a second (interface, sections 2 and 4).

use super::listing::{BatchList, SampledBatch, batches};
use super::prober::Prober;
use super::request::{Bearer, NoBatches, ProbeRequest};
use super::sample::BatchSample;
use super::topic::{Topic, TopicAnswer};
use crate::client::Version;

const DAY: i64 = 86_400;

pub(super) async fn probe(
    prober: &mut Prober,
    version: Version,
    sample: &BatchSample,
) -> Vec<TopicAnswer> {
    let mut ranges = Ranges {
        prober,
        version,
        whole: sample.lonely(SampledBatch::is_whole),
        partial: sample.lonely(|batch| !batch.is_whole()),
    };
    let (field, offset) = ranges.field_and_offset().await;
    // Bounds mean nothing where they are compared with something else.
    let (bounds, fractions) = match &field {
        TopicAnswer {
            known: true,
            answer,
            ..
        } if answer == CREATED => (ranges.bounds().await, ranges.fractions().await),
        field => {
            let why = if field.known {
                "the date filter does not compare batch_creation_date, second by second".to_owned()
            } else {
                field.answer.trim_start_matches(UNKNOWN).to_owned()
            };
            let open = |topic| TopicAnswer::unknown(topic, &why, Vec::new());
            (
                open(Topic::Bounds(version)),
                open(Topic::Fractions(version)),
            )
        }
    };
    vec![field, bounds, fractions, offset]
}

const CREATED: &str = "compares batch_creation_date";
const UNKNOWN: &str = "could not tell, because ";

/// The batches of a range, or why there are none.
type Came = Result<BatchList, NoBatches>;

struct Ranges<'a> {
    prober: &'a mut Prober,
    version: Version,
    /// A batch that was created on a whole second, and one that was not.
    whole: Option<&'a SampledBatch>,
    partial: Option<&'a SampledBatch>,
}

impl Ranges<'_> {
    async fn come(&mut self, range: (i64, i64), evidence: &mut Vec<String>) -> Came {
        let ask = ProbeRequest::between(self.version, range);
        let answered = self.prober.window(&ask).await;
        evidence.extend(answered.evidence);
        answered.outcome
    }

    /// Tells whether `batch` is in a range; an error says why that cannot be told.
    async fn holds(
        &mut self,
        batch: &SampledBatch,
        range: (i64, i64),
        evidence: &mut Vec<String>,
    ) -> Result<bool, String> {
        let listing = self.come(range, evidence).await.map_err(|no| no.why())?;
        judge(&listing, batch, evidence)
    }

    /// Asks for a range around a batch and for one beside it; then for the first with the other zone.
    async fn field_and_offset(&mut self) -> (TopicAnswer, TopicAnswer) {
        let topic = Topic::DateField(self.version);
        let Some(batch) = self.whole.or(self.partial) else {
            let why = match self.prober.may_ask(self.version, Bearer::Of(self.version)) {
                Ok(()) => "no batch is known to try it with".to_owned(),
                Err(no) => no.why(),
            };
            let ask = ProbeRequest::nothing(self.version);
            return (
                TopicAnswer::unknown(topic, &why, Vec::new()),
                self.offset(&ask, None).await,
            );
        };
        let (first, last) = around(batch.second());
        let mut evidence = vec![format!("a batch was created at {}", batch.written)];
        let came = self.come((first, last), &mut evidence).await;
        let told = match &came {
            Ok(listing) => {
                self.field(batch, (first, last), listing, &mut evidence)
                    .await
            }
            Err(no) => Err(no.why()),
        };
        let ask = ProbeRequest::between(self.version, (first, last));
        let offset = self.offset(&ask, came.ok().as_ref()).await;
        (TopicAnswer::from_result(topic, told, evidence), offset)
    }

    /// Judges what came of a range around `batch`.
    async fn field(
        &mut self,
        batch: &SampledBatch,
        (first, last): (i64, i64),
        listing: &BatchList,
        evidence: &mut Vec<String>,
    ) -> Result<String, String> {
        if !judge(listing, batch, evidence)? {
            return Ok(self.another_field(batch, evidence).await);
        }
        let outside = |seen: &&SampledBatch| !(first..=last).contains(&seen.second());
        let strangers: Vec<&SampledBatch> = listing.batches.iter().filter(outside).collect();
        if !strangers.is_empty() {
            let count = batches(strangers.len());
            evidence.push(format!("{count} of them were created outside that range"));
            let day = |second: i64| second.div_euclid(DAY);
            let days = day(first)..=day(last);
            let same_day = strangers
                .iter()
                .all(|seen| days.contains(&day(seen.second())));
            let other_day = (first - 3 * DAY, last - 2 * DAY);
            // All there is may be of one day.
            return Ok(
                if same_day && !self.holds(batch, other_day, evidence).await? {
                    "compares batch_creation_date, by whole days".to_owned()
                } else {
                    "does not compare batch_creation_date: others come too".to_owned()
                },
            );
        }
        // Where there is but one batch, a service that looks at no date would pass so far.
        if self.holds(batch, (first - 10, first - 5), evidence).await? {
            return Ok("compares nothing: a batch comes whatever the dates".to_owned());
        }
        Ok(CREATED.to_owned())
    }

    /// Looks for a date in fields that the interface does not know.
    async fn another_field(&mut self, batch: &SampledBatch, evidence: &mut Vec<String>) -> String {
        const MOST: usize = 3;
        let dates = batch
            .others
            .iter()
            .filter_map(|(name, date)| Some((name, date.as_ref()?)));
        for (name, date) in dates.take(MOST) {
            if self.holds(batch, around(date.second), evidence).await == Ok(true) {
                return format!("compares `{name}`, not batch_creation_date");
            }
        }
        "does not compare batch_creation_date: a range around it does not hold the batch".to_owned()
    }

    /// Writes the dates of `ask` with `+00:00`, and compares with what came before.
    async fn offset(&mut self, ask: &ProbeRequest, before: Option<&BatchList>) -> TopicAnswer {
        let answered = self.prober.window(&ask.clone().with_offset()).await;
        let told = match answered.outcome {
            Ok(listing) => match before {
                Some(before) if before.ids() != listing.ids() => {
                    Ok("taken, but other batches come than with Z".to_owned())
                }
                Some(_) => Ok("taken: the same batches come as with Z".to_owned()),
                None => Ok("taken".to_owned()),
            },
            Err(NoBatches::Refused { status, .. }) => Ok(format!("refused with {status}")),
            Err(no @ NoBatches::Lost(_)) => Err(no.why()),
        };
        TopicAnswer::from_result(Topic::Offset(self.version), told, answered.evidence)
    }

    /// Tries a batch that was created exactly on a bound.
    async fn bounds(&mut self) -> TopicAnswer {
        let mut evidence = Vec::new();
        let told = match self.whole {
            Some(batch) => self.bounds_at(batch, &mut evidence).await,
            None => Err("no batch that was seen was created on a whole second".to_owned()),
        };
        TopicAnswer::from_result(Topic::Bounds(self.version), told, evidence)
    }

    async fn bounds_at(
        &mut self,
        batch: &SampledBatch,
        evidence: &mut Vec<String>,
    ) -> Result<String, String> {
        evidence.push(format!("a batch was created at {}", batch.written));
        let second = batch.second();
        if self.holds(batch, (second, second), evidence).await? {
            return Ok("both are included".to_owned());
        }
        let start = self.holds(batch, (second, second + 1), evidence).await?;
        let end = self.holds(batch, (second - 1, second), evidence).await?;
        Ok(match (start, end) {
            (true, true) => "both are included, but not where they are the same second",
            (true, false) => "start_date is included, end_date is not",
            (false, true) => "end_date is included, start_date is not",
            (false, false) => "neither is included",
        }
        .to_owned())
    }

    /// Tries a batch that was created within the second of a bound.
    async fn fractions(&mut self) -> TopicAnswer {
        let mut evidence = Vec::new();
        let told = match self.partial {
            Some(batch) => self.fractions_at(batch, &mut evidence).await,
            None => Err("all batches that were seen were created on whole seconds".to_owned()),
        };
        TopicAnswer::from_result(Topic::Fractions(self.version), told, evidence)
    }

    async fn fractions_at(
        &mut self,
        batch: &SampledBatch,
        evidence: &mut Vec<String>,
    ) -> Result<String, String> {
        evidence.push(format!("a batch was created at {}", batch.written));
        let second = batch.second();
        let by_start = self.holds(batch, (second, second + 1), evidence).await?;
        let by_end = self.holds(batch, (second - 1, second), evidence).await?;
        Ok(match (by_start, by_end) {
            (true, false) => "count: what was created within the second of end_date is left out",
            (true, true) => {
                "do not count: what was created within the second of end_date comes too"
            }
            (false, false) => {
                "what was created within the second of a bound is left out at both ends"
            }
            (false, true) => {
                "what was created within the second of start_date is left out, of end_date not"
            }
        }
        .to_owned())
    }
}

/// Tells whether `batch` is among those that came, and adds that to what was told of them.
fn judge(
    listing: &BatchList,
    batch: &SampledBatch,
    evidence: &mut [String],
) -> Result<bool, String> {
    let crowded = || "there are too many batches within a few seconds".to_owned();
    let holds = listing.holds(&batch.id).ok_or_else(crowded)?;
    if let Some(line) = evidence.last_mut() {
        line.push_str(if holds {
            ", that one among them"
        } else {
            ", not that one"
        });
    }
    Ok(holds)
}

/// The seconds around one, so that it lies inside whether bounds belong to the range or not.
fn around(second: i64) -> (i64, i64) {
    (second - 1, second + 2)
}
