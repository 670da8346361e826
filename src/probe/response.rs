//! What a response contains besides batches: a token, and headers about limits, deprecation and gzip.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::batch::range::written;
use crate::client::{BothVersions, Response, TokenResponse, Version};
use crate::secret::conceal;

/// A token with the response that contained it.
#[derive(Clone)]
pub(super) struct TokenReply {
    pub(super) version: Version,
    pub(super) response: TokenResponse,
    /// The number of requests that accepted it.
    pub(super) uses: Cell<u32>,
    /// Whether a token of the other version was issued since this one was accepted last.
    pub(super) is_superseded: Cell<bool>,
    issued: Instant,
}

impl TokenReply {
    pub(super) fn new(version: Version, response: TokenResponse) -> Self {
        Self {
            version,
            response,
            uses: Cell::new(0),
            is_superseded: Cell::new(false),
            issued: Instant::now(),
        }
    }

    /// Describes the age of the token when it was refused.
    pub(super) fn age(&self) -> String {
        let uses = self.uses.get();
        let seconds = self.issued.elapsed().as_secs_f64();
        format!(
            "a token of {} was refused after {uses} requests, {seconds:.1} s after it was issued",
            self.version
        )
    }

    /// Describes that a newer token of the other version may be why the token was refused.
    pub(super) fn revocation(&self) -> String {
        let (version, other) = (self.version, self.version.other());
        format!("a token of {version} was refused as soon as one of {other} was issued")
    }

    /// Describes when the token expires. `None` if it is not a JWT or has no `exp`.
    pub(super) fn expiry(&self) -> Option<String> {
        let mut parts = self.response.access_token.expose().split('.');
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
            Some(issued) => format!("{} s after iat", expires.saturating_sub(issued)),
            None => written(expires),
        })
    }
}

/// The maximum number of headers to keep, and of characters of each.
const MAX_HEADERS: usize = 20;
const MAX_CHARACTERS: usize = 100;

/// The first and the last value of each header.
type HeaderValues = BTreeMap<String, (String, String)>;

/// Statistics of all responses and their headers.
#[derive(Default)]
pub(super) struct ResponseHeaders {
    pub(super) responses: BothVersions<u32>,
    /// The number of compressed responses with batches.
    pub(super) gzip: BothVersions<u32>,
    /// The number of successful responses.
    pub(super) successes: BothVersions<u32>,
    /// The number of responses with status 429.
    pub(super) too_many: u32,
    pub(super) limits: HeaderValues,
    pub(super) deprecations: HeaderValues,
}

impl ResponseHeaders {
    pub(super) fn record(&mut self, version: Version, response: &Response) {
        self.responses[version] += 1;
        self.successes[version] += u32::from(response.is_success());
        self.too_many += u32::from(response.status() == 429);
        for (name, value) in response.headers() {
            if is_limit(name) {
                keep(&mut self.limits, name, value);
            } else if version == Version::V1 && is_deprecation(name, value) {
                keep(&mut self.deprecations, name, value);
            } else if name == "content-encoding" && value.eq_ignore_ascii_case("gzip") {
                self.gzip[version] += u32::from(response.is_success());
            }
        }
    }
}

/// Returns whether a header is `RateLimit` or one of its older spellings.
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

fn keep(headers: &mut HeaderValues, name: &str, value: &str) {
    if headers.len() >= MAX_HEADERS && !headers.contains_key(name) {
        return;
    }
    // Conceal before shortening: half a secret would not be recognised.
    let short = |text: &str| {
        conceal(text)
            .chars()
            .take(MAX_CHARACTERS)
            .collect::<String>()
    };
    let value = short(value);
    headers
        .entry(short(name))
        .and_modify(|(_, last)| last.clone_from(&value))
        .or_insert_with(|| (value.clone(), value));
}

/// Describes headers with their values.
pub(super) fn lines(headers: &HeaderValues) -> Vec<String> {
    let headers = headers.iter();
    let lines = headers.map(|(name, (first, last))| {
        if first == last {
            format!("{name}: {first}")
        } else {
            format!("{name}: {first}, later {last}")
        }
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn expiry_of(token: &str) -> Option<String> {
        let response = TokenResponse {
            access_token: Secret::token(token),
            expires_in: None,
            fields: Vec::new(),
        };
        TokenReply::new(Version::V2, response).expiry()
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
    fn only_a_jwt_says_when_it_expires() {
        let expiry = |claims| expiry_of(&jwt(claims));
        let with_start = expiry(r#"{"iat":100,"exp":1000,"sub":"x"}"#);
        assert_eq!(with_start.as_deref(), Some("900 s after iat"));
        let alone = expiry(r#"{"exp":1000}"#);
        assert_eq!(alone.as_deref(), Some("1970-01-01T00:16:40Z"));
        assert_eq!(expiry(r#"{"iat":1000}"#), None);
        assert_eq!(expiry(r#"{"exp":"soon"}"#), None);
        for token in ["opaque-token", "a.b.c", "a.b", "....", "a.e30.c.d"] {
            assert_eq!(expiry_of(token), None, "{token}");
        }
    }

    #[test]
    fn all_spellings_of_limit_headers_are_known() {
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
    fn only_a_few_short_headers_are_kept() {
        let mut headers = BTreeMap::new();
        for number in 0..100 {
            keep(
                &mut headers,
                &format!("x-quota-{number:03}"),
                &"x".repeat(5000),
            );
        }
        assert_eq!(headers.len(), MAX_HEADERS);
        assert!(lines(&headers).iter().all(|line| line.len() < 150));
        let mut headers = BTreeMap::new();
        for left in ["9", "8", "7"] {
            keep(&mut headers, "ratelimit", left);
        }
        assert_eq!(lines(&headers), ["ratelimit: 9, later 7"]);
    }
}
