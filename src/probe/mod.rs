//! Finds out what the interface document leaves open (`check --probe`), with small read-only requests.
//!
//! Read `topic.rs` first: each `Topic` is a question and gets one [`TopicAnswer`], with its evidence or the
//! reason why it is unknown. [`run`] asks them in order. A [`Prober`] sends the requests, one at a time and a
//! few dozen at most; `tokens.rs`, `v2.rs`, `v1.rs`, `ranges.rs` and `passive.rs` draw the conclusions.
//!
//! HTTP, credentials and retries are left to `client`, and the output to `commands`.

mod topic;

// Sends requests.
mod prober;
mod request;

// Reads responses.
mod listing;
mod response;
mod sample;

// Draws conclusions.
mod passive;
mod ranges;
mod tokens;
mod v1;
mod v2;

pub(crate) use prober::{MissingVersion, Prober};
pub(crate) use topic::TopicAnswer;

use self::topic::Topic;
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
        .map(|(topic, ..)| TopicAnswer::unknown(topic, reason))
        .into()
}
