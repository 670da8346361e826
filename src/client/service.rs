//! The four endpoints of the service: token and batches, in both versions.

use std::sync::Arc;

use reqwest::Method;
use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::body::Buffers;
use super::error::ServiceError;
use super::options::{ClientOptions, Credentials, Version};
use super::request::{Http, Request, Response};
use super::retry::RetryPolicy;
use crate::batch::json::split::ParseError;
use crate::batch::range::{Range, written};
use crate::error::Failure;
use crate::secret::Secret;
use crate::terminal::Stats;

/// The response of the auth endpoint.
#[derive(Clone, Debug)]
pub(crate) struct TokenResponse {
    pub(crate) access_token: Secret,
    /// In seconds. The interface does not show it, so it is optional.
    pub(crate) expires_in: Option<u64>,
    /// The names of all fields, in order.
    pub(crate) fields: Vec<String>,
}

/// Maximum size of a token response.
const TOKEN_LIMIT: usize = 64 * 1024;

/// A request for batches. The dates are sent as given.
#[derive(Clone)]
pub(crate) struct PageRequest {
    pub(crate) version: Version,
    pub(crate) start_date: Option<String>,
    pub(crate) end_date: Option<String>,
    pub(crate) next_token: Option<Secret>,
}

impl PageRequest {
    pub(crate) fn new(version: Version, range: &Range, next_token: Option<Secret>) -> Self {
        Self {
            version,
            start_date: range.start.map(written),
            end_date: range.end.map(written),
            next_token,
        }
    }
}

pub(crate) struct Service {
    http: Http,
    pub(crate) retry: RetryPolicy,
    pub(crate) credentials: Credentials,
}

impl Service {
    pub(crate) fn new(credentials: Credentials, options: &ClientOptions) -> Result<Self, Failure> {
        let Credentials {
            client_id,
            client_secret,
            ..
        } = &credentials;
        client_secret.conceal_pair(client_id);
        Ok(Self {
            http: Http::new(&credentials.base_url, options)?,
            retry: options.retry,
            credentials,
        })
    }

    /// What its requests count.
    pub(crate) fn stats(&self) -> &Arc<Stats> {
        &self.http.stats
    }

    /// Buffers for response bodies, to be recycled after use.
    pub(crate) fn buffers(&self) -> &Buffers {
        &self.http.buffers
    }

    /// `POST /v1/auth` and `POST /v2/auth`.
    pub(crate) async fn auth(
        &self,
        version: Version,
        attempt: u32,
    ) -> Result<Response, ServiceError> {
        let request = Request {
            method: Method::POST,
            path: format!("/{version}/auth"),
            query: Vec::new(),
            form: Some([
                ("client_id", self.credentials.client_id.clone()),
                (
                    "client_secret",
                    self.credentials.client_secret.expose().to_owned(),
                ),
                ("grant_type", "client_credentials".to_owned()),
            ]),
            token: None,
            attempt,
        };
        self.http.send(&request).await
    }

    /// `GET /v1/batches` and `GET /v2/batches`.
    pub(crate) async fn batches(
        &self,
        request: &PageRequest,
        token: Option<&Secret>,
        attempt: u32,
    ) -> Result<Response, ServiceError> {
        let parameters = [
            ("start_date", request.start_date.as_deref()),
            ("end_date", request.end_date.as_deref()),
            (
                "next_token",
                request.next_token.as_ref().map(Secret::expose),
            ),
        ];
        let parameters = parameters.into_iter();
        let request = Request {
            method: Method::GET,
            path: format!("/{}/batches", request.version),
            query: parameters
                .filter_map(|(name, value)| Some((name, value?.to_owned())))
                .collect(),
            form: None,
            token: token.cloned(),
            attempt,
        };
        self.http.send(&request).await
    }
}

impl Response {
    /// Reads a token response.
    pub(crate) async fn token(self) -> Result<TokenResponse, ServiceError> {
        let mut response = self.success().await?;
        let body = response.read_all(TOKEN_LIMIT).await?;
        read_token(&body).map_err(|error| response.parse_error(error))
    }
}

/// The fields of a token response that are used.
#[derive(Deserialize)]
struct TokenBody<'a> {
    #[serde(borrow)]
    access_token: Option<&'a RawValue>,
    /// A number of seconds, which some servers send as text. May have any type.
    #[serde(borrow)]
    expires_in: Option<&'a RawValue>,
}

/// Returns a lifetime in whole seconds; `None` if it is not a positive number or zero.
fn lifetime(json: &str) -> Option<u64> {
    let seconds: f64 = json.trim_matches('"').parse().ok()?;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a fraction does not matter, and a large number becomes the largest"
    )]
    (seconds >= 0.0).then_some(seconds as u64)
}

fn read_token(body: &[u8]) -> Result<TokenResponse, ParseError> {
    let invalid = |why: &str| ParseError::Broken(why.to_owned());
    let used: TokenBody<'_> =
        serde_json::from_slice(body).map_err(|error| match error.classify() {
            Category::Eof => ParseError::Cut,
            _ => invalid("the token response is not a JSON object with one `access_token`"),
        })?;
    let token = used
        .access_token
        .and_then(|token| serde_json::from_str::<String>(token.get()).ok());
    let token = token.ok_or_else(|| invalid("the token response has no string `access_token`"))?;
    // The token is sent in a header.
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(invalid(
            "`access_token` is empty or contains characters that are not allowed in a header",
        ));
    }
    let fields: Map<String, Value> = serde_json::from_slice(body).unwrap_or_default();
    Ok(TokenResponse {
        access_token: Secret::token(token),
        expires_in: used.expires_in.and_then(|seconds| lifetime(seconds.get())),
        fields: fields.into_iter().map(|(name, _)| name).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::lifetime;

    #[test]
    fn a_lifetime_is_a_number_or_a_text() {
        for (json, seconds) in [
            ("3", Some(3)),
            ("3.0", Some(3)),
            ("3.9e2", Some(390)),
            ("\"3\"", Some(3)),
            ("0", Some(0)),
            ("1e300", Some(u64::MAX)),
            ("-1", None),
            ("\"NaN\"", None),
            ("\"soon\"", None),
            ("null", None),
            ("{}", None),
        ] {
            assert_eq!(lifetime(json), seconds, "{json}");
        }
    }
}
