//! What is said to a missing token and to a bad one (interface, section 7).

use super::ask::{Ask, Bearer, No};
use super::prober::Prober;
use super::topic::{Finding, Topic};
use crate::client::Version;

pub(super) async fn ask(prober: &mut Prober) -> Vec<Finding> {
    let mut findings = Vec::new();
    for version in [Version::V2, Version::V1] {
        for (topic, bearer) in [
            (Topic::MissingToken(version), Bearer::Missing),
            (Topic::BadToken(version), Bearer::Bad),
        ] {
            let answered = prober.ask(&Ask::nothing(version).bearer(bearer)).await;
            let told = match answered.outcome {
                Ok(_) => Ok("taken with 200, as if it were a good one".to_owned()),
                Err(No::Refused { status, shape }) => Ok(format!("{status}, {shape}")),
                Err(no @ No::Lost(_)) => Err(no.why()),
            };
            findings.push(Finding::of(topic, told, answered.evidence));
        }
    }
    findings
}
