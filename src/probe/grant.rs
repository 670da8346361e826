//! A token that was given, and what it tells of itself.

use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::client::{TokenResponse, Version};
use crate::secret::Secret;

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
}
