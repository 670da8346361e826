//! Asks all questions in order.

use super::prober::Prober;
use super::topic::{Topic, TopicAnswer};
use super::{passive, ranges, tokens, v1, v2};
use crate::client::Version;

/// Asks all questions. Calls `report` with each answer as soon as it is known.
pub(crate) async fn run(
    prober: &mut Prober,
    mut report: impl FnMut(TopicAnswer) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut report_all = |answers: Vec<TopicAnswer>| answers.into_iter().try_for_each(&mut report);
    let (answers, granted) = tokens::probe(prober).await;
    report_all(answers)?;
    report_all(tokens::probe_refusals(prober).await)?;
    let (answers, mut sample) = v2::probe(prober).await;
    report_all(answers)?;
    report_all(v1::probe(prober, &mut sample).await)?;
    for version in [Version::V2, Version::V1] {
        report_all(ranges::probe(prober, version, &sample).await)?;
    }
    report_all(vec![tokens::lifetime(prober, &granted)])?;
    report_all(passive::observed(prober))?;
    report_all(passive::unknowable(&sample))
}

/// Returns an unknown answer to every question, if nothing can be asked.
pub(crate) fn unasked(reason: &str) -> Vec<TopicAnswer> {
    Topic::ALL
        .map(|topic| TopicAnswer::unknown(topic, reason, Vec::new()))
        .into()
}
