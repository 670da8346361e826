//! The four endpoints of the service: token and batches, in both versions.

use std::sync::Arc;

use reqwest::Method;
use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::base_url::BaseUrl;
use super::buffers::Buffers;
use super::error::ServiceError;
use super::options::{ClientOptions, Credentials};
use super::request::{Http, Request, Response};
use super::version::Version;
use crate::batch::json::split::ParseError;
use crate::batch::range::{Range, written};
use crate::error::Failure;
use crate::secret::Secret;
use crate::terminal::Stats;

/// What the auth endpoint gave.
#[derive(Clone, Debug)]
pub(crate) struct TokenResponse {
    pub(crate) access_token: Secret,
    /// In seconds; not shown by the interface, so nothing depends on it.
    pub(crate) expires_in: Option<u64>,
}

/// The most that a token response may hold.
const TOKEN_LIMIT: usize = 64 * 1024;

/// A request for batches, with dates and a token that may be wrong.
pub(crate) struct RawRequest<'a> {
    pub(crate) version: Version,
    pub(crate) token: Option<&'a Secret>,
    pub(crate) start_date: Option<&'a str>,
    pub(crate) end_date: Option<&'a str>,
    pub(crate) next_token: Option<&'a Secret>,
}

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
        read_token(&body).map_err(|error| answer.parse_error(error))
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

    /// Asks for batches, and returns any answer.
    pub(crate) async fn ask(&self, question: &RawRequest<'_>) -> Result<Response, ServiceError> {
        let parameters = [
            ("start_date", question.start_date),
            ("end_date", question.end_date),
            ("next_token", question.next_token.map(Secret::expose)),
        ];
        let given = parameters.into_iter();
        let exchange = Request {
            method: Method::GET,
            path: format!("/{}/batches", question.version),
            query: given
                .filter_map(|(name, value)| Some((name, value?.to_owned())))
                .collect(),
            form: None,
            token: question.token.cloned(),
        };
        self.http.ask(&exchange).await
    }

    /// Asks for a token, and returns any answer.
    pub(crate) async fn ask_token(&self, version: Version) -> Result<Response, ServiceError> {
        self.http.ask(&self.credentials(version)).await
    }
}

impl Response {
    /// Reads a token response: the token, and the names of all fields.
    pub(crate) async fn token(&mut self) -> Result<(TokenResponse, Vec<String>), ServiceError> {
        let body = self.whole(TOKEN_LIMIT).await?;
        let token = read_token(&body).map_err(|error| self.parse_error(error))?;
        let fields: Map<String, Value> = serde_json::from_slice(&body).unwrap_or_default();
        Ok((token, fields.into_iter().map(|(name, _)| name).collect()))
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
