//! Questions about tokens: the response, the lifetime, use with the other version, and refusals (interface,
//! sections 4, 5 and 7).

use super::prober::Prober;
use super::request::{Bearer, NoBatches, ProbeRequest};
use super::response::TokenReply;
use super::topic::{Topic, TopicAnswer};
use crate::client::Version;
use crate::secret::conceal;
use crate::text::join;

/// The maximum number of fields to name, and of letters of each.
const MAX_FIELDS: usize = 20;
const MAX_LETTERS: usize = 40;

/// The tokens of version 2 and version 1.
pub(super) type Granted = [Result<TokenReply, NoBatches>; 2];

/// Requests a token of each version, and tries each with the other version.
///
/// This is done first, while both are new: a later refusal might mean that they have expired. Each is tried before the
/// other is requested, which might revoke it.
pub(super) async fn probe(prober: &mut Prober) -> (Vec<TopicAnswer>, Granted) {
    let v2 = prober.token_reply(Version::V2).await;
    let v2_on_v1 = elsewhere(prober, Version::V2).await;
    let v1 = prober.token_reply(Version::V1).await;
    let v1_on_v2 = elsewhere(prober, Version::V1).await;
    let granted = [v2, v1];
    let about_response = [response(&granted), difference(&granted)];
    let findings = about_response.into_iter().chain([v2_on_v1, v1_on_v2]);
    (findings.collect(), granted)
}

fn evidence(granted: &Granted) -> Vec<String> {
    let tokens = granted.iter().flatten();
    tokens
        .map(|token| format!("POST /{}/auth: 200, {}", token.version, names(token)))
        .collect()
}

/// Returns the names of the fields in a token response, without their values.
fn names(token: &TokenReply) -> String {
    let name = |name: &String| conceal(name).chars().take(MAX_LETTERS).collect::<String>();
    let fields = token.response.fields.iter().take(MAX_FIELDS);
    join(fields.map(name), ", ")
}

fn response(granted: &Granted) -> TopicAnswer {
    let tokens = granted.iter().flatten();
    let fields = tokens.map(|token| match token.response.fields.as_slice() {
        [_] => format!("{}: only access_token", token.version),
        _ => format!("{}: {}", token.version, names(token)),
    });
    let result = match granted {
        [Err(error), Err(_)] => Err(error.clone().into()),
        _ => Ok(join(fields, "; ")),
    };
    TopicAnswer::new(Topic::TokenResponse, result, evidence(granted))
}

fn difference(granted: &Granted) -> TopicAnswer {
    let result = match granted {
        [Err(error), _] | [_, Err(error)] => Err(error.clone().into()),
        [Ok(v2), Ok(v1)] if v2.response.fields != v1.response.fields => Ok(format!(
            "v2 answers {}; v1 answers {}",
            names(v2),
            names(v1)
        )),
        [Ok(v2), Ok(v1)] if v2.response.expires_in != v1.response.expires_in => {
            Ok("the same fields, but a different expires_in".to_owned())
        }
        _ => Ok("no difference: the same fields".to_owned()),
    };
    TopicAnswer::new(Topic::AuthDifference, result, evidence(granted))
}

/// Tries a token of `version` with the other version.
async fn elsewhere(prober: &mut Prober, version: Version) -> TopicAnswer {
    let result = try_elsewhere(prober, version).await;
    prober.answer(Topic::TokenElsewhere(version), result)
}

async fn try_elsewhere(prober: &mut Prober, version: Version) -> Result<String, String> {
    // Without a token there is nothing to try.
    prober.may_ask(version, Bearer::Of(version))?;
    let request = ProbeRequest::nothing(version.other());
    let foreign = request.clone().bearer(Bearer::Of(version));
    let status = match prober.send(&foreign).await {
        Ok(_) => return Ok("accepted".to_owned()),
        Err(error) => error.refusal()?.0,
    };
    // The service may refuse the request, not the token.
    if !matches!(status, 401 | 403)
        && let Err(error) = prober.send(&request).await
    {
        return Err(format!("with its own token: {}", String::from(error)));
    }
    Ok(format!("refused with {status}"))
}

/// Returns what is known about the lifetime. Called last, since tokens may have expired during the probe.
pub(super) fn lifetime(prober: &Prober, granted: &Granted) -> TopicAnswer {
    let mut facts = Vec::new();
    for token in granted.iter().flatten() {
        let version = token.version;
        let mut fields = token.response.fields.iter();
        if let Some(seconds) = token.response.expires_in {
            facts.push(format!("{version}: expires_in says {seconds} s"));
        } else if fields.any(|name| name == "expires_in") {
            facts.push(format!(
                "{version}: expires_in is not a whole number of seconds"
            ));
        }
        if let Some(expiry) = token.expiry() {
            facts.push(format!("{version}: the token is a JWT, exp is {expiry}"));
        }
    }
    let revoked = prober.revoked.first();
    let revoked = revoked.map(|what| format!("a new token may revoke the one before: {what}"));
    facts.extend(prober.expired.first().cloned().or(revoked));
    let mut evidence = evidence(granted);
    let refused = prober.expired.iter().chain(&prober.revoked);
    evidence.extend(refused.cloned());
    let result = match granted {
        [Err(error), Err(_)] => Err(error.clone().into()),
        _ if facts.is_empty() => Err(
            "there is no expires_in, the token is not a JWT, and none was refused during the probe"
                .to_owned(),
        ),
        _ => Ok(facts.join("; ")),
    };
    TopicAnswer::new(Topic::TokenLifetime, result, evidence)
}

/// Sends requests with a missing and a bad token (interface, section 7).
pub(super) async fn probe_refusals(prober: &mut Prober) -> Vec<TopicAnswer> {
    let mut findings = Vec::new();
    for version in [Version::V2, Version::V1] {
        for (topic, bearer) in [
            (Topic::MissingToken(version), Bearer::Missing),
            (Topic::BadToken(version), Bearer::Bad),
        ] {
            let request = ProbeRequest::nothing(version).bearer(bearer);
            let result = match prober.send(&request).await {
                Ok(_) => Ok("accepted with 200, like a valid token".to_owned()),
                Err(error) => error
                    .refusal()
                    .map(|(status, shape)| format!("{status}, {shape}")),
            };
            findings.push(prober.answer(topic, result));
        }
    }
    findings
}
