//! Questions without requests of their own: answered by all responses together, or not at all (interface,
//! sections 3, 6, 8 and 9).

use super::listing::batches;
use super::prober::Prober;
use super::response::lines;
use super::sample::BatchSample;
use super::topic::{Topic, TopicAnswer};
use crate::client::Version;
use crate::secret::conceal;

/// Answers the questions about headers, from all responses.
pub(super) fn observed(prober: &Prober) -> Vec<TopicAnswer> {
    vec![rate_limits(prober), gzip(prober), deprecation(prober)]
}

fn rate_limits(prober: &Prober) -> TopicAnswer {
    let headers = prober.headers.borrow();
    let responses = headers.responses[Version::V1] + headers.responses[Version::V2];
    let evidence = vec![format!(
        "{responses} responses to sequential requests, {} of them 429",
        headers.too_many
    )];
    let mut result = lines(&headers.limits);
    if headers.too_many > 0 {
        result.insert(0, format!("429 was returned {} times", headers.too_many));
    }
    let result = match (responses, result.as_slice()) {
        (0, _) => Err("there was no response".to_owned()),
        (_, []) => Err("no response has a rate limit header, and none has status 429".to_owned()),
        (_, result) => Ok(result.join("; ")),
    };
    TopicAnswer::new(Topic::RateLimits, result, evidence)
}

fn gzip(prober: &Prober) -> TopicAnswer {
    let headers = prober.headers.borrow();
    let counts = [Version::V2, Version::V1]
        .map(|version| (version, headers.gzip[version], headers.successes[version]));
    let used = counts.iter().filter(|(_, _, responses)| *responses > 0);
    let evidence: Vec<String> = used
        .map(|(version, compressed, responses)| {
            format!("{version}: {compressed} of {responses} responses have Content-Encoding gzip; all requests had Accept-Encoding gzip")
        })
        .collect();
    let compressed: u32 = counts.iter().map(|(_, compressed, _)| compressed).sum();
    let result = if evidence.is_empty() {
        Err("there was no response".to_owned())
    } else if compressed > 0 {
        Ok("yes".to_owned())
    } else {
        Ok("no: responses are not compressed".to_owned())
    };
    TopicAnswer::new(Topic::Gzip, result, evidence)
}

fn deprecation(prober: &Prober) -> TopicAnswer {
    let responses = prober.headers.borrow().responses[Version::V1];
    let result = lines(&prober.headers.borrow().deprecations);
    let result = match (responses, result.as_slice()) {
        (0, _) => Err("the probe had no response of version 1".to_owned()),
        (_, []) => Err("no response of version 1 has a Deprecation or Sunset header".to_owned()),
        (_, result) => Ok(result.join("; ")),
    };
    let evidence = vec![format!("{responses} responses of version 1")];
    TopicAnswer::new(Topic::Deprecation, result, evidence)
}

/// Returns the questions that no request can answer, with the reasons.
pub(super) fn unknowable(sample: &BatchSample) -> Vec<TopicAnswer> {
    let others = sample.other_fields().into_iter().take(20);
    let others = others.map(|name| conceal(name).chars().take(40).collect::<String>());
    let others: Vec<String> = others.collect();
    let seen = format!("{} seen", batches(sample.len()));
    let evidence = match others.as_slice() {
        [] => format!("{seen}, none with a field that is not in the interface"),
        _ => format!(
            "{seen}, with fields that are not in the interface: {}",
            others.join(", ")
        ),
    };
    let no_field = Err("the interface has no field for a state".to_owned());
    vec![
        TopicAnswer::new(Topic::States, no_field, vec![evidence]),
        TopicAnswer::unknown(Topic::Transitions, "it would need days of observation"),
        TopicAnswer::unknown(
            Topic::Events,
            "callbacks need a registered address, and no request can register one",
        ),
    ]
}
