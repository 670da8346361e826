//! What the interface leaves open, found out with small requests that only read.
//!
//! A [`Prober`] asks, one request after another and no more than a few dozen; each subject below draws
//! conclusions. Every [`Topic`] gets one [`TopicAnswer`]: an answer with its evidence, or why there is none.

// The questions, and what an answer looks like.
mod topic;

// Asking: one request, whoever sends it, and what is kept of each version.
mod absence;
mod ask;
mod both;
mod grant;
mod noticed;
mod prober;
mod reading;

// Batches that were seen, and the order in which they came.
mod order;
mod sample;

// The subjects.
mod beside;
mod cursors;
mod flat;
mod pages;
mod ranges;
mod refusals;
mod tokens;

use crate::client::Version;

pub(crate) use absence::MissingVersion;
pub(crate) use both::BothVersions;
pub(crate) use prober::Prober;
pub(crate) use topic::{Topic, TopicAnswer};

/// Asks everything, and tells each answer as soon as it is there.
pub(crate) async fn run(
    prober: &mut Prober,
    mut tell: impl FnMut(TopicAnswer) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut tell_all = |findings: Vec<TopicAnswer>| findings.into_iter().try_for_each(&mut tell);
    let (findings, granted) = tokens::ask(prober).await;
    tell_all(findings)?;
    tell_all(refusals::ask(prober).await)?;
    let (findings, mut sample) = pages::ask(prober).await;
    tell_all(findings)?;
    tell_all(flat::ask(prober, &mut sample).await)?;
    for version in [Version::V2, Version::V1] {
        tell_all(ranges::ask(prober, version, &sample).await)?;
    }
    tell_all(vec![tokens::lifetime(prober, &granted)])?;
    tell_all(beside::told(prober))?;
    tell_all(beside::untold(&sample))
}

/// Tells that nothing was asked, and why.
pub(crate) fn unasked(why: &str) -> Vec<TopicAnswer> {
    Topic::ALL
        .map(|topic| TopicAnswer::open(topic, why, Vec::new()))
        .into()
}
