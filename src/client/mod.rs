//! The service, as a client sees it: its four endpoints, and nothing else.
//!
//! One exchange at a time: what is sent, what came back, and of which class a failure is. Trying
//! again, tokens and pages are for others.

mod api;
pub(crate) mod base_url;
mod body;
pub(crate) mod bounded;
mod buffers;
pub(crate) mod causes;
pub(crate) mod certificates;
mod connection;
mod error;
mod html;
mod options;
pub(crate) mod proxy;
mod raw_request;
mod redact;
mod request;
pub(crate) mod retry;
pub(crate) mod tokens;
mod tunnel;

use std::fmt;
use std::sync::Arc;

use reqwest::Method;
use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::batch::range::{Range, written};
use crate::error::Failure;
use crate::secret::Secret;

use crate::terminal::Stats;
pub(crate) use api::Api;
pub(crate) use buffers::Buffers;
pub(crate) use error::{Fault, ServiceError};
pub(crate) use options::{ClientOptions, Credentials, Origin, Setting};
pub(crate) use raw_request::RawRequest;
#[cfg(feature = "cloud")]
pub(crate) use request::retry_after;
pub(crate) use request::{Http, Response};

use crate::batch::json::split::ParseError;
pub(crate) use base_url::BaseUrl;
pub(crate) use certificates::read_certificates;
use request::Request;

/// The versions of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        })
    }
}

/// What the auth endpoint gave.
#[derive(Clone, Debug)]
pub(crate) struct TokenResponse {
    pub(crate) access_token: Secret,
    /// In seconds; not shown by the interface, so nothing depends on it.
    pub(crate) expires_in: Option<u64>,
}

/// The most that a token response may hold.
const TOKEN_LIMIT: usize = 64 * 1024;

pub(crate) struct Service {
    http: Http,
    access: Credentials,
}

impl Service {
    pub(crate) fn new(
        access: Credentials,
        manners: &ClientOptions,
        stats: Arc<Stats>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            http: Http::new(&access.base_url, manners, stats)?,
            access,
        })
    }

    pub(crate) fn base_url(&self) -> &BaseUrl {
        &self.access.base_url
    }

    /// Room for bodies; whoever is done with one gives its room back.
    pub(crate) fn buffers(&self) -> &Buffers {
        self.http.buffers()
    }

    pub(crate) fn access(&self) -> &Credentials {
        &self.access
    }

    /// `POST /v1/auth` and `POST /v2/auth`.
    pub(crate) async fn auth(&self, version: Version) -> Result<TokenResponse, ServiceError> {
        let mut answer = self.http.send(&self.credentials(version)).await?;
        let body = answer.whole(TOKEN_LIMIT).await?;
        read_token(&body).map_err(|unreadable| answer.unreadable(unreadable))
    }

    fn credentials(&self, version: Version) -> Request {
        Request {
            method: Method::POST,
            path: format!("/{version}/auth"),
            query: Vec::new(),
            form: Some([
                ("client_id", self.access.client_id.clone()),
                (
                    "client_secret",
                    self.access.client_secret.expose().to_owned(),
                ),
                ("grant_type", "client_credentials".to_owned()),
            ]),
            token: None,
        }
    }

    /// `GET /v1/batches` and `GET /v2/batches`.
    pub(crate) async fn batches(
        &self,
        version: Version,
        token: &Secret,
        range: &Range,
        next_token: Option<&Secret>,
    ) -> Result<Response, ServiceError> {
        let mut query = Vec::new();
        query.extend(range.start.map(|start| ("start_date", written(start))));
        query.extend(range.end.map(|end| ("end_date", written(end))));
        query.extend(next_token.map(|cursor| ("next_token", cursor.expose().to_owned())));
        let exchange = Request {
            method: Method::GET,
            path: format!("/{version}/batches"),
            query,
            form: None,
            token: Some(token.clone()),
        };
        self.http.send(&exchange).await
    }
}

/// The token response, as far as it is of use.
#[derive(Deserialize)]
struct TokenBody<'a> {
    #[serde(borrow)]
    access_token: Option<&'a RawValue>,
    /// Anything may stand here, and only a number of seconds is of use.
    #[serde(borrow)]
    expires_in: Option<&'a RawValue>,
}

fn read_token(body: &[u8]) -> Result<TokenResponse, ParseError> {
    let broken = |why: &str| ParseError::Broken(why.to_owned());
    let body: TokenBody<'_> =
        serde_json::from_slice(body).map_err(|error| match error.classify() {
            Category::Eof => ParseError::Cut,
            _ => broken("the token response is no JSON object with one `access_token`"),
        })?;
    let token = body
        .access_token
        .and_then(|token| serde_json::from_str::<String>(token.get()).ok());
    let token = token.ok_or_else(|| broken("the token response has no text `access_token`"))?;
    // It goes into a header: what cannot stand there is no token.
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(broken(
            "`access_token` is empty or holds what no header can",
        ));
    }
    Ok(TokenResponse {
        access_token: Secret::new(token),
        expires_in: body
            .expires_in
            .and_then(|seconds| seconds.get().parse().ok()),
    })
}
