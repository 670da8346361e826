//! What is said to a missing token and to a bad one (interface, section 7).

use super::ask::{Ask, Bearer, NoBatches};
use super::prober::Prober;
use super::topic::{Topic, TopicAnswer};
use crate::client::Version;

pub(super) async fn ask(prober: &mut Prober) -> Vec<TopicAnswer> {
    let mut findings = Vec::new();
    for version in [Version::V2, Version::V1] {
        for (topic, bearer) in [
            (Topic::MissingToken(version), Bearer::Missing),
            (Topic::BadToken(version), Bearer::Bad),
        ] {
            let answered = prober.ask(&Ask::nothing(version).bearer(bearer)).await;
            let told = match answered.outcome {
                Ok(_) => Ok("taken with 200, as if it were a good one".to_owned()),
                Err(NoBatches::Refused { status, shape }) => Ok(format!("{status}, {shape}")),
                Err(no @ NoBatches::Lost(_)) => Err(no.why()),
            };
            findings.push(TopicAnswer::of(topic, told, answered.evidence));
        }
    }
    findings
}
