//! The questions: what the interface calls "not shown", or does not specify enough for an export.

use crate::client::Version;
use crate::client::Version::{V1, V2};

/// A question that the interface leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    TokenResponse,
    AuthDifference,
    TokenLifetime,
    /// Whether a token of this version works with the other.
    TokenElsewhere(Version),
    MissingToken(Version),
    BadToken(Version),
    PageSize,
    DatesWithCursor,
    CursorTwice,
    BadCursor,
    Order(Version),
    Above1000,
    DateField(Version),
    Bounds(Version),
    Fractions(Version),
    Offset(Version),
    RateLimits,
    Gzip,
    Deprecation,
    States,
    Transitions,
    Events,
}

impl Topic {
    /// All questions, in the order of their answers.
    pub(crate) const ALL: [Self; 30] = [
        Self::TokenResponse,
        Self::AuthDifference,
        Self::TokenElsewhere(V2),
        Self::TokenElsewhere(V1),
        Self::MissingToken(V2),
        Self::BadToken(V2),
        Self::MissingToken(V1),
        Self::BadToken(V1),
        Self::PageSize,
        Self::DatesWithCursor,
        Self::CursorTwice,
        Self::BadCursor,
        Self::Order(V2),
        Self::Order(V1),
        Self::Above1000,
        Self::DateField(V2),
        Self::Bounds(V2),
        Self::Fractions(V2),
        Self::Offset(V2),
        Self::DateField(V1),
        Self::Bounds(V1),
        Self::Fractions(V1),
        Self::Offset(V1),
        Self::TokenLifetime,
        Self::RateLimits,
        Self::Gzip,
        Self::Deprecation,
        Self::States,
        Self::Transitions,
        Self::Events,
    ];

    /// Returns the stable name of the question, for programs.
    pub(crate) fn id(self) -> String {
        self.row().0
    }

    /// Returns the short name of the question, for people.
    pub(crate) fn name(self) -> String {
        self.row().1
    }

    fn row(self) -> (String, String) {
        let plain = |id: &str, name: &str| (id.to_owned(), name.to_owned());
        let of = |id: &str, name: &str, version: Version| {
            (format!("{id}_{version}"), format!("{name}, {version}"))
        };
        match self {
            Self::TokenResponse => plain("token_response", "token response"),
            Self::AuthDifference => plain("auth_difference", "auth of v1 and v2"),
            Self::TokenLifetime => plain("token_lifetime", "token lifetime"),
            Self::TokenElsewhere(V2) => plain("token_v2_on_v1", "v2 token on v1"),
            Self::TokenElsewhere(V1) => plain("token_v1_on_v2", "v1 token on v2"),
            Self::MissingToken(version) => of("missing_token", "missing token", version),
            Self::BadToken(version) => of("bad_token", "bad token", version),
            Self::PageSize => plain("page_size", "page size of v2"),
            Self::DatesWithCursor => plain("dates_with_next_token", "dates with next_token"),
            Self::CursorTwice => plain("next_token_twice", "next_token used twice"),
            Self::BadCursor => plain("bad_next_token", "bad next_token"),
            Self::Order(version) => of("order", "order", version),
            Self::Above1000 => plain("v1_above_1000", "v1 above 1000 batches"),
            Self::DateField(version) => of("date_field", "date filter", version),
            Self::Bounds(version) => of("bounds", "bounds", version),
            Self::Fractions(version) => of("fractions", "fractions", version),
            Self::Offset(version) => of("offset", "+00:00 for Z", version),
            Self::RateLimits => plain("rate_limits", "rate limits"),
            Self::Gzip => plain("gzip", "gzip responses"),
            Self::Deprecation => plain("v1_deprecation", "end of v1"),
            Self::States => plain("states", "batch states"),
            Self::Transitions => plain("transitions", "state changes"),
            Self::Events => plain("events", "events"),
        }
    }
}

/// The answer to one question, or the reason why it is unknown.
#[derive(Clone, Debug)]
pub(crate) struct TopicAnswer {
    pub(crate) topic: Topic,
    pub(crate) known: bool,
    pub(crate) answer: String,
    /// The requests and their results, without secrets, tokens or cursors.
    pub(crate) evidence: Vec<String>,
}

impl TopicAnswer {
    pub(super) fn unknown(topic: Topic, reason: &str, evidence: Vec<String>) -> Self {
        Self::from_result(topic, Err(reason.to_owned()), evidence)
    }

    /// Converts a result: the error is the reason why the answer is unknown.
    pub(super) fn from_result(
        topic: Topic,
        result: Result<String, String>,
        evidence: Vec<String>,
    ) -> Self {
        Self {
            topic,
            known: result.is_ok(),
            answer: result.unwrap_or_else(|reason| format!("unknown: {reason}")),
            evidence,
        }
    }
}
