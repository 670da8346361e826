//! What comes beside the answers, and what no request can show (interface, sections 3, 6, 8 and 9).

use super::listing::batches;
use super::prober::Prober;
use super::sample::BatchSample;
use super::topic::{Topic, TopicAnswer};
use crate::client::Version;
use crate::secret::conceal;

/// Tells what all the answers together say.
pub(super) fn observed(prober: &Prober) -> Vec<TopicAnswer> {
    vec![rate_limits(prober), gzip(prober), deprecation(prober)]
}

fn rate_limits(prober: &Prober) -> TopicAnswer {
    let noticed = &prober.noticed;
    let answers = noticed.answers[Version::V1] + noticed.answers[Version::V2];
    let evidence = vec![format!(
        "{answers} answers to requests one after another, {} of them 429",
        noticed.too_many
    )];
    let mut told = noticed.limits();
    if noticed.too_many > 0 {
        told.insert(0, format!("429 came {} times", noticed.too_many));
    }
    let told = match (answers, told.as_slice()) {
        (0, _) => Err("there was no answer".to_owned()),
        (_, []) => Err("no answer has a header that tells one, and none was a 429".to_owned()),
        (_, told) => Ok(told.join("; ")),
    };
    TopicAnswer::from_result(Topic::RateLimits, told, evidence)
}

fn gzip(prober: &Prober) -> TopicAnswer {
    let noticed = &prober.noticed;
    let counts = [Version::V2, Version::V1]
        .map(|version| (version, noticed.gzip[version], noticed.successes[version]));
    let asked = counts.iter().filter(|(_, _, answers)| *answers > 0);
    let evidence: Vec<String> = asked
        .map(|(version, packed, answers)| {
            format!("{version}: {packed} of {answers} answers with Content-Encoding gzip, all asked with Accept-Encoding gzip")
        })
        .collect();
    let packed: u32 = counts.iter().map(|(_, packed, _)| packed).sum();
    let told = if evidence.is_empty() {
        Err("there was no answer".to_owned())
    } else if packed > 0 {
        Ok("yes".to_owned())
    } else {
        Ok("no: they come as they are".to_owned())
    };
    TopicAnswer::from_result(Topic::Gzip, told, evidence)
}

fn deprecation(prober: &Prober) -> TopicAnswer {
    let answers = prober.noticed.answers[Version::V1];
    let told = prober.noticed.deprecations();
    let told = match (answers, told.as_slice()) {
        (0, _) => Err("version 1 gave no answer".to_owned()),
        (_, []) => Err("no answer of version 1 has a Deprecation or Sunset header".to_owned()),
        (_, told) => Ok(told.join("; ")),
    };
    let evidence = vec![format!("{answers} answers of version 1")];
    TopicAnswer::from_result(Topic::Deprecation, told, evidence)
}

/// Tells why the rest cannot be told.
pub(super) fn unknowable(sample: &BatchSample) -> Vec<TopicAnswer> {
    let others: Vec<String> = sample
        .other_fields()
        .into_iter()
        .take(20)
        .map(|name| conceal(name).chars().take(40).collect())
        .collect();
    let seen = format!("{} seen", batches(sample.len()));
    let evidence = if others.is_empty() {
        format!("{seen}, none with a field beyond the interface")
    } else {
        format!(
            "{seen}, with fields beyond the interface: {}",
            others.join(", ")
        )
    };
    let untold = |topic, why| TopicAnswer::unknown(topic, why, Vec::new());
    vec![
        TopicAnswer::unknown(
            Topic::States,
            "the interface names no field for a state",
            vec![evidence],
        ),
        untold(
            Topic::Transitions,
            "that would take watching batches for days",
        ),
        untold(
            Topic::Events,
            "a service that calls back has to be told where, and no request does that",
        ),
    ]
}
