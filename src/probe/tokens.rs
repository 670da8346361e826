//! Tokens: what comes with them, how long they live, where they are good (interface, sections 4 and
//! 5).

use super::prober::Prober;
use super::request::{Bearer, NoBatches, ProbeRequest};
use super::response::{TokenLifetime, TokenReply};
use super::topic::{Topic, TopicAnswer};
use super::versions::other;
use crate::batch::range::written;
use crate::client::Version;
use crate::secret::conceal;

/// The most fields that are named, and the most letters of each.
const MOST_FIELDS: usize = 20;
const MOST_LETTERS: usize = 40;

/// What each version gave.
pub(super) struct Granted {
    v2: Result<TokenReply, NoBatches>,
    v1: Result<TokenReply, NoBatches>,
}

/// Asks for a token of each version, and tries each where it may not belong.
///
/// That comes first, while both are new: a refusal later on might mean that they have died.
pub(super) async fn probe(prober: &mut Prober) -> (Vec<TopicAnswer>, Granted) {
    let granted = Granted {
        v2: prober.grant(Version::V2).await,
        v1: prober.grant(Version::V1).await,
    };
    let mut findings = vec![response(&granted), difference(&granted)];
    for version in [Version::V2, Version::V1] {
        findings.push(elsewhere(prober, version).await);
    }
    (findings, granted)
}

impl Granted {
    fn each(&self) -> [(Version, &Result<TokenReply, NoBatches>); 2] {
        [(Version::V2, &self.v2), (Version::V1, &self.v1)]
    }

    fn evidence(&self) -> Vec<String> {
        let given = self.each().into_iter();
        let given = given.filter_map(|(version, grant)| Some((version, grant.as_ref().ok()?)));
        given
            .map(|(version, grant)| format!("POST /{version}/auth: 200, {}", names(grant)))
            .collect()
    }
}

/// Names the fields of a token response; their values are nobody's business.
fn names(grant: &TokenReply) -> String {
    let name = |name: &String| conceal(name).chars().take(MOST_LETTERS).collect::<String>();
    let names: Vec<String> = grant.fields.iter().take(MOST_FIELDS).map(name).collect();
    names.join(", ")
}

fn response(granted: &Granted) -> TopicAnswer {
    let told: Vec<String> = granted
        .each()
        .into_iter()
        .filter_map(|(version, grant)| Some((version, grant.as_ref().ok()?)))
        .map(|(version, grant)| match grant.fields.as_slice() {
            [_] => format!("{version}: access_token and nothing else"),
            _ => format!("{version}: {}", names(grant)),
        })
        .collect();
    let told = match (&granted.v2, &granted.v1) {
        (Err(no), Err(_)) => Err(no.why()),
        _ => Ok(told.join("; ")),
    };
    TopicAnswer::from_result(Topic::TokenResponse, told, granted.evidence())
}

fn difference(granted: &Granted) -> TopicAnswer {
    let told = match (&granted.v2, &granted.v1) {
        (Err(no), _) | (_, Err(no)) => Err(no.why()),
        (Ok(v2), Ok(v1)) if v2.fields != v1.fields => Ok(format!(
            "v2 answers {}; v1 answers {}",
            names(v2),
            names(v1)
        )),
        (Ok(v2), Ok(v1)) if v2.expires_in != v1.expires_in => {
            Ok("the same fields, but another expires_in".to_owned())
        }
        _ => Ok("no difference: the same fields".to_owned()),
    };
    TopicAnswer::from_result(Topic::AuthDifference, told, granted.evidence())
}

/// Tries a token of `version` on the other.
async fn elsewhere(prober: &mut Prober, version: Version) -> TopicAnswer {
    let topic = Topic::TokenElsewhere(version);
    // Whose fault it is must be plain: without a token there is nothing to try.
    if let Err(no) = prober.may_ask(version, Bearer::Of(version)) {
        return TopicAnswer::unknown(topic, &no.why(), Vec::new());
    }
    let there = other(version);
    let ask = ProbeRequest::nothing(there);
    let answered = prober.ask(&ask.clone().bearer(Bearer::Of(version))).await;
    let mut evidence = answered.evidence;
    let told = match answered.outcome {
        Ok(_) => Ok("accepted".to_owned()),
        Err(NoBatches::Refused {
            status: status @ (401 | 403),
            ..
        }) => Ok(format!("refused with {status}")),
        // It may be the request that is refused, and not the token.
        Err(NoBatches::Refused { status, .. }) => {
            let control = prober.ask(&ask).await;
            evidence.extend(control.evidence);
            match control.outcome {
                Ok(_) => Ok(format!("refused with {status}")),
                Err(no) => Err(format!("with its own token too {}", no.why())),
            }
        }
        Err(no @ NoBatches::Lost(_)) => Err(no.why()),
    };
    TopicAnswer::from_result(topic, told, evidence)
}

/// Tells how long tokens live; asked last, because some may have died on the way.
pub(super) fn lifetime(prober: &Prober, granted: &Granted) -> TopicAnswer {
    let mut hints = Vec::new();
    for (version, grant) in granted.each() {
        let Ok(grant) = grant else { continue };
        if let Some(seconds) = grant.expires_in {
            hints.push(format!("{version}: expires_in says {seconds} s"));
        } else if grant.fields.iter().any(|name| name == "expires_in") {
            hints.push(format!(
                "{version}: expires_in is no whole number of seconds"
            ));
        }
        match grant.claimed_life() {
            Some(TokenLifetime::Seconds(seconds)) => {
                hints.push(format!(
                    "{version}: the token is a JWT, exp is {seconds} s after iat"
                ));
            }
            Some(TokenLifetime::Until(second)) => {
                let until = written(second);
                hints.push(format!("{version}: the token is a JWT, exp is {until}"));
            }
            None => {}
        }
    }
    hints.extend(prober.worn.first().cloned());
    let mut evidence = granted.evidence();
    evidence.extend(prober.worn.iter().cloned());
    let told = match (&granted.v2, &granted.v1) {
        (Err(no), Err(_)) => Err(no.why()),
        _ if hints.is_empty() => Err(
            "there is no expires_in, the token is no JWT, and none was refused on the way"
                .to_owned(),
        ),
        _ => Ok(hints.join("; ")),
    };
    TopicAnswer::from_result(Topic::TokenLifetime, told, evidence)
}

/// Sends requests with a missing and a bad token (interface, section 7).
pub(super) async fn probe_refusals(prober: &mut Prober) -> Vec<TopicAnswer> {
    let mut findings = Vec::new();
    for version in [Version::V2, Version::V1] {
        for (topic, bearer) in [
            (Topic::MissingToken(version), Bearer::Missing),
            (Topic::BadToken(version), Bearer::Bad),
        ] {
            let answered = prober
                .ask(&ProbeRequest::nothing(version).bearer(bearer))
                .await;
            let told = match answered.outcome {
                Ok(_) => Ok("taken with 200, as if it were a good one".to_owned()),
                Err(NoBatches::Refused { status, shape }) => Ok(format!("{status}, {shape}")),
                Err(no @ NoBatches::Lost(_)) => Err(no.why()),
            };
            findings.push(TopicAnswer::from_result(topic, told, answered.evidence));
        }
    }
    findings
}
