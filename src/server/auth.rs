//! Checks credentials and issues tokens (interface, sections 4 and 5).

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{StatusCode, body::Bytes};
use parking_lot::Mutex;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use serde_json::json;
use subtle::ConstantTimeEq as _;

use super::faults::Faults;
use super::response::{Invalid, ServerResponse};

/// The two versions of the interface (section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApiVersion {
    V1,
    V2,
}

/// The credentials that a client must send. Not `Debug`: the secret must not be logged.
#[derive(Clone)]
pub(crate) struct ExpectedCredentials {
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
}

impl ExpectedCredentials {
    /// Compares both in constant time. Digests make the lengths equal.
    fn matches(&self, given: &Self) -> bool {
        let is_same =
            |one: &str, other: &str| sha256(one.as_bytes()).ct_eq(&sha256(other.as_bytes()));
        let same_id = is_same(&self.client_id, &given.client_id);
        let same_secret = is_same(&self.client_secret, &given.client_secret);
        (same_id & same_secret).into()
    }
}

fn sha256(bytes: &[u8]) -> [u8; SHA256_OUTPUT_LEN] {
    let digest = digest(&SHA256, bytes);
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// Returns 256 random bits as text that is safe in a form, a header and a shell.
pub(crate) fn random_secret() -> Result<String, getrandom::Error> {
    loop {
        let secret = BASE64_URL_SAFE_NO_PAD.encode(random_key()?);
        // A leading hyphen would look like a flag on a command line.
        if !secret.starts_with('-') {
            return Ok(secret);
        }
    }
}

pub(super) fn random_key() -> Result<[u8; 32], getrandom::Error> {
    let mut key = [0; 32];
    getrandom::fill(&mut key)?;
    Ok(key)
}

/// Reads the credentials from a form. The error response names each invalid field.
pub(super) fn read_form(
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<ExpectedCredentials, ServerResponse> {
    let text = str::from_utf8(body).unwrap_or("\u{fffd}");
    let is_form = text.is_empty() || (is_form(headers) && !text.contains('\u{fffd}'));
    if !is_form {
        let msg = "Body should be form-encoded text (application/x-www-form-urlencoded)";
        return Err(Invalid::new("form_parsing", ["body"], msg).into());
    }
    let mut invalid = Vec::new();
    let mut field = |name: &'static str| {
        let loc = ["body", name];
        let mut values = form_urlencoded::parse(body).filter(|(key, _)| key == name);
        let found = match (values.next(), values.next()) {
            (None, _) => Err(Invalid::missing(loc)),
            (Some(_), Some(_)) => Err(Invalid::duplicate(loc)),
            (Some((_, value)), None) if value.is_empty() => Err(Invalid::empty(loc)),
            (Some((_, value)), None) => Ok(value.into_owned()),
        };
        found.map_err(|field| invalid.push(field)).ok()
    };
    let client_id = field("client_id");
    let client_secret = field("client_secret");
    let grant_type = field("grant_type");
    if grant_type.is_some_and(|grant_type| grant_type != "client_credentials") {
        let msg = "Input should be 'client_credentials'";
        invalid.push(Invalid::new("literal_error", ["body", "grant_type"], msg));
    }
    match (client_id, client_secret) {
        (Some(client_id), Some(client_secret)) if invalid.is_empty() => Ok(ExpectedCredentials {
            client_id,
            client_secret,
        }),
        _ => Err(ServerResponse::invalid(&invalid)),
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let essence = content_type.and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| {
        essence
            .trim()
            .eq_ignore_ascii_case("application/x-www-form-urlencoded")
    })
}

/// The valid tokens.
///
/// Only their digests are stored: a lookup does not compare secrets byte by byte, and a leaked copy of
/// this memory grants no access.
pub(super) struct IssuedTokens {
    credentials: ExpectedCredentials,
    ttl: Duration,
    faults: Faults,
    tokens: Mutex<TokenTable>,
}

#[derive(Default)]
struct TokenTable {
    grants: HashMap<[u8; 32], TokenGrant>,
    /// Digests in order of issue, which is also the order of expiry.
    by_age: VecDeque<[u8; 32]>,
}

struct TokenGrant {
    version: ApiVersion,
    /// `None` if it is too far in the future to represent.
    expires: Option<Instant>,
    uses_left: Option<u32>,
}

impl TokenGrant {
    fn is_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

impl IssuedTokens {
    /// The maximum number of stored tokens. Beyond it the oldest is removed, to limit memory.
    const MAX_TOKENS: usize = 100_000;

    pub(super) fn new(credentials: ExpectedCredentials, ttl: Duration, faults: Faults) -> Self {
        Self {
            credentials,
            ttl,
            faults,
            tokens: Mutex::default(),
        }
    }

    /// Responds with a token if the credentials are correct.
    pub(super) fn issue(
        &self,
        version: ApiVersion,
        credentials: &ExpectedCredentials,
    ) -> ServerResponse {
        if !self.credentials.matches(credentials) {
            let detail = "Unknown client_id or wrong client_secret";
            return ServerResponse::error(StatusCode::UNAUTHORIZED, detail);
        }
        let Ok(token) = random_secret() else {
            let detail = "Cannot generate a token";
            return ServerResponse::error(StatusCode::SERVICE_UNAVAILABLE, detail);
        };
        self.store(version, &token);
        let mut body = json!({ "access_token": token });
        // Other fields of the token response: not shown (interface, section 4).
        if self.faults.expires_in {
            body["token_type"] = "bearer".into();
            body["expires_in"] = self.ttl.as_secs().into();
        }
        ServerResponse::json(&body)
            .with(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))
    }

    fn store(&self, version: ApiVersion, token: &str) {
        let now = Instant::now();
        let mut tokens = self.tokens.lock();
        let tokens = &mut *tokens;
        while let Some(oldest) = tokens.by_age.front() {
            let grant = tokens.grants.get(oldest);
            let expired = grant.is_none_or(|grant| grant.is_expired(now));
            if !expired && tokens.by_age.len() < Self::MAX_TOKENS {
                break;
            }
            tokens.grants.remove(oldest);
            tokens.by_age.pop_front();
        }
        let digest = sha256(token.as_bytes());
        let grant = TokenGrant {
            version,
            expires: now.checked_add(self.ttl),
            uses_left: self.faults.token_uses,
        };
        tokens.grants.insert(digest, grant);
        tokens.by_age.push_back(digest);
    }

    /// Returns whether the request with `headers` may read the batches of `version`. Counts as one use of
    /// the token.
    pub(super) fn admit(&self, version: ApiVersion, headers: &HeaderMap) -> bool {
        let Some(token) = bearer(headers) else {
            return false;
        };
        let digest = sha256(token);
        let mut tokens = self.tokens.lock();
        let Some(grant) = tokens.grants.get_mut(&digest) else {
            return false;
        };
        // Whether versions share tokens: not shown (interface, section 5, rule 5).
        let is_foreign = grant.version != version && !self.faults.tokens_shared;
        if grant.is_expired(Instant::now()) || is_foreign {
            return false;
        }
        match &mut grant.uses_left {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        }
    }
}

/// Returns the bearer token. `None` if it is missing or if there is more than one header.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else {
        return None;
    };
    let (scheme, token) = value.as_bytes().split_at_checked("Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then_some(token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_looks_like_a_flag() {
        for _ in 0..2000 {
            let secret = random_secret().expect("random bytes");
            assert!(!secret.starts_with('-'), "{secret}");
        }
    }
}
