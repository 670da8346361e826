//! The questions: what the interface calls "not shown", or does not specify enough for an export.

use crate::client::Version::{self, V1, V2};

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
    /// All questions, in the order of their answers: the stable name for programs, and the short name for people.
    pub(crate) const ALL: [(Self, &str, &str); 30] = [
        (Self::TokenResponse, "token_response", "token response"),
        (Self::AuthDifference, "auth_difference", "auth of v1 and v2"),
        (Self::TokenElsewhere(V2), "token_v2_on_v1", "v2 token on v1"),
        (Self::TokenElsewhere(V1), "token_v1_on_v2", "v1 token on v2"),
        (
            Self::MissingToken(V2),
            "missing_token_v2",
            "missing token, v2",
        ),
        (Self::BadToken(V2), "bad_token_v2", "bad token, v2"),
        (
            Self::MissingToken(V1),
            "missing_token_v1",
            "missing token, v1",
        ),
        (Self::BadToken(V1), "bad_token_v1", "bad token, v1"),
        (Self::PageSize, "page_size", "page size of v2"),
        (
            Self::DatesWithCursor,
            "dates_with_next_token",
            "dates with next_token",
        ),
        (
            Self::CursorTwice,
            "next_token_twice",
            "next_token used twice",
        ),
        (Self::BadCursor, "bad_next_token", "bad next_token"),
        (Self::Order(V2), "order_v2", "order, v2"),
        (Self::Order(V1), "order_v1", "order, v1"),
        (Self::Above1000, "v1_above_1000", "v1 above 1000 batches"),
        (Self::DateField(V2), "date_field_v2", "date filter, v2"),
        (Self::Bounds(V2), "bounds_v2", "bounds, v2"),
        (Self::Fractions(V2), "fractions_v2", "fractions, v2"),
        (Self::Offset(V2), "offset_v2", "+00:00 for Z, v2"),
        (Self::DateField(V1), "date_field_v1", "date filter, v1"),
        (Self::Bounds(V1), "bounds_v1", "bounds, v1"),
        (Self::Fractions(V1), "fractions_v1", "fractions, v1"),
        (Self::Offset(V1), "offset_v1", "+00:00 for Z, v1"),
        (Self::TokenLifetime, "token_lifetime", "token lifetime"),
        (Self::RateLimits, "rate_limits", "rate limits"),
        (Self::Gzip, "gzip", "gzip responses"),
        (Self::Deprecation, "v1_deprecation", "end of v1"),
        (Self::States, "states", "batch states"),
        (Self::Transitions, "transitions", "state changes"),
        (Self::Events, "events", "events"),
    ];

    /// Returns both names.
    pub(crate) fn names(self) -> (&'static str, &'static str) {
        let row = Self::ALL.iter().find(|(topic, ..)| *topic == self);
        row.map_or(("", ""), |(_, id, name)| (id, name))
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
    /// An answer that is unknown, without evidence.
    pub(super) fn unknown(topic: Topic, reason: &str) -> Self {
        Self::new(topic, Err(reason.to_owned()), Vec::new())
    }

    /// Converts a result: the error is the reason why the answer is unknown.
    pub(super) fn new(topic: Topic, result: Result<String, String>, evidence: Vec<String>) -> Self {
        Self {
            topic,
            known: result.is_ok(),
            answer: result.unwrap_or_else(|reason| format!("unknown: {reason}")),
            evidence,
        }
    }
}
