//! What a response contains besides batches: a token, and headers about limits, deprecation and gzip.

use std::collections::BTreeMap;
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::Value;

use super::versions::BothVersions;
use crate::secret::Secret;
use crate::client::{Response, TokenResponse, Version};
use crate::secret::conceal;

#[derive(Clone)]
pub(super) struct TokenReply {
    version: Version,
    pub(super) secret: Secret,
    /// The names of all fields of the response, in order.
    pub(super) fields: Vec<String>,
    pub(super) expires_in: Option<u64>,
    /// Requests with which it was taken.
    pub(super) uses: u32,
    given: Instant,
}

impl TokenReply {
    pub(super) fn new(version: Version, response: TokenResponse, fields: Vec<String>) -> Self {
        Self {
            version,
            secret: response.access_token,
            fields,
            expires_in: response.expires_in,
            uses: 0,
            given: Instant::now(),
        }
    }

    /// Says how it was when it died.
    pub(super) fn age(&self) -> String {
        let uses = self.uses;
        let seconds = self.given.elapsed().as_secs_f64();
        format!(
            "a token of {} was refused after {uses} requests, {seconds:.1} s after it was given",
            self.version
        )
    }

    /// Returns how long the token says that it lives, where it is a JWT and says so.
    pub(super) fn claimed_life(&self) -> Option<TokenLifetime> {
        let mut parts = self.secret.expose().split('.');
        let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let claims = BASE64_URL_SAFE_NO_PAD
            .decode(claims.trim_end_matches('='))
            .ok()?;
        let claims: Value = serde_json::from_slice(&claims).ok()?;
        let expires = claims.get("exp").and_then(Value::as_i64)?;
        let issued = claims.get("iat").and_then(Value::as_i64);
        Some(match issued {
            Some(issued) => TokenLifetime::Seconds(expires.saturating_sub(issued)),
            None => TokenLifetime::Until(expires),
        })
    }
}

/// How long a JWT lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenLifetime {
    /// From `iat` to `exp`.
    Seconds(i64),
    /// To `exp`; when it began is not told.
    Until(i64),
}

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

    fn life(token: &str) -> Option<TokenLifetime> {
        let response = TokenResponse {
            access_token: Secret::new(token),
            expires_in: None,
        };
        TokenReply::new(Version::V2, response, Vec::new()).claimed_life()
    }

    fn jwt(claims: &str) -> String {
        let part = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
        format!(
            "{}.{}.c2lnbmF0dXJl",
            part("{\"alg\":\"none\"}"),
            part(claims)
        )
    }

    #[test]
    fn a_jwt_tells_its_life_and_nothing_else_does() {
        let lives = |claims| life(&jwt(claims));
        assert_eq!(
            lives(r#"{"iat":100,"exp":1000,"sub":"x"}"#),
            Some(TokenLifetime::Seconds(900))
        );
        assert_eq!(lives(r#"{"exp":1000}"#), Some(TokenLifetime::Until(1000)));
        assert_eq!(lives(r#"{"iat":1000}"#), None);
        assert_eq!(lives(r#"{"exp":"soon"}"#), None);
        for token in ["opaque-token", "a.b.c", "a.b", "....", "a.e30.c.d"] {
            assert_eq!(life(token), None, "{token}");
        }
    }

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
