//! What came beside the answers: headers that speak of limits, of an end, of packing.

use std::collections::BTreeMap;

use super::both::BothVersions;
use crate::client::{Response, Version};
use crate::secret::conceal;

/// The most headers that are remembered, and the most of each: whatever a service sends, a report
/// stays one.
const MOST_HEADERS: usize = 20;
const MOST_CHARACTERS: usize = 100;

/// What a header said first and last.
#[derive(Clone, Debug)]
struct HeaderValues {
    first: String,
    last: String,
}

#[derive(Default)]
pub(super) struct ResponseHeaders {
    pub(super) answers: BothVersions<u32>,
    /// Answers of batches that came packed.
    pub(super) gzip: BothVersions<u32>,
    /// Successful answers, which are worth packing.
    pub(super) successes: BothVersions<u32>,
    /// Answers that said 429.
    pub(super) too_many: u32,
    limits: BTreeMap<String, HeaderValues>,
    deprecations: BTreeMap<String, HeaderValues>,
}

impl ResponseHeaders {
    pub(super) fn take(&mut self, version: Version, answer: &Response) {
        self.answers[version] += 1;
        self.successes[version] += u32::from(answer.is_success());
        self.too_many += u32::from(answer.status() == 429);
        for (name, value) in answer.headers() {
            if is_limit(name) {
                note(&mut self.limits, name, value);
            } else if version == Version::V1 && is_deprecation(name, value) {
                note(&mut self.deprecations, name, value);
            } else if name == "content-encoding" && value.eq_ignore_ascii_case("gzip") {
                self.gzip[version] += u32::from(answer.is_success());
            }
        }
    }

    pub(super) fn limits(&self) -> Vec<String> {
        told(&self.limits)
    }

    pub(super) fn deprecations(&self) -> Vec<String> {
        told(&self.deprecations)
    }
}

/// `RateLimit` and its many older spellings.
fn is_limit(name: &str) -> bool {
    name == "retry-after"
        || ["ratelimit", "rate-limit", "quota"]
            .iter()
            .any(|word| name.contains(word))
}

fn is_deprecation(name: &str, value: &str) -> bool {
    match name {
        "deprecation" | "sunset" => true,
        "link" => ["deprecation", "sunset", "successor-version"]
            .iter()
            .any(|word| value.contains(word)),
        _ => false,
    }
}

fn note(notes: &mut BTreeMap<String, HeaderValues>, name: &str, value: &str) {
    if notes.len() >= MOST_HEADERS && !notes.contains_key(name) {
        return;
    }
    // Concealed before it is cut: half a secret would not be recognised any more.
    let short = |text: &str| {
        conceal(text)
            .chars()
            .take(MOST_CHARACTERS)
            .collect::<String>()
    };
    let value = short(value);
    notes
        .entry(short(name))
        .and_modify(|values| values.last.clone_from(&value))
        .or_insert_with(|| HeaderValues {
            first: value.clone(),
            last: value,
        });
}

fn told(notes: &BTreeMap<String, HeaderValues>) -> Vec<String> {
    let told = |(name, values): (&String, &HeaderValues)| match values {
        HeaderValues { first, last } if first == last => format!("{name}: {first}"),
        HeaderValues { first, last } => format!("{name}: {first}, later {last}"),
    };
    notes.iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_limits_are_known_in_every_spelling() {
        for name in [
            "x-ratelimit-remaining",
            "ratelimit",
            "ratelimit-policy",
            "x-rate-limit-limit",
            "x-app-ratelimit-reset",
            "x-quota-left",
            "retry-after",
        ] {
            assert!(is_limit(name), "{name}");
        }
        assert!(!is_limit("date") && !is_limit("x-request-id"));
        assert!(is_deprecation("link", "</v2>; rel=\"successor-version\""));
        assert!(!is_deprecation("link", "</v2>; rel=\"next\""));
    }

    #[test]
    fn whatever_is_sent_little_is_kept() {
        let mut notes = BTreeMap::new();
        for number in 0..100 {
            note(
                &mut notes,
                &format!("x-quota-{number:03}"),
                &"x".repeat(5000),
            );
        }
        assert_eq!(notes.len(), MOST_HEADERS);
        assert!(told(&notes).iter().all(|line| line.len() < 150));
        let mut notes = BTreeMap::new();
        for left in ["9", "8", "7"] {
            note(&mut notes, "ratelimit", left);
        }
        assert_eq!(told(&notes), ["ratelimit: 9, later 7"]);
    }
}
