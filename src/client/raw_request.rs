//! Requests whose refusal is as good an answer as any: sent as they are told, and whatever comes back
//! is handed over.

use reqwest::Method;
use serde_json::{Map, Value};

use super::error::ServiceError;
use super::request::Request;
use super::request::Response;
use super::{Service, TOKEN_LIMIT, TokenResponse, Version, read_token};
use crate::secret::Secret;

/// A request for batches, with dates and a token that may be wrong.
pub(crate) struct RawRequest<'a> {
    pub(crate) version: Version,
    pub(crate) token: Option<&'a Secret>,
    pub(crate) start_date: Option<&'a str>,
    pub(crate) end_date: Option<&'a str>,
    pub(crate) next_token: Option<&'a Secret>,
}

impl Service {
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
        let token = read_token(&body).map_err(|unreadable| self.unreadable(unreadable))?;
        let fields: Map<String, Value> = serde_json::from_slice(&body).unwrap_or_default();
        Ok((token, fields.into_iter().map(|(name, _)| name).collect()))
    }
}
