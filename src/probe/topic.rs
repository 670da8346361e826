//! The questions: what the interface calls "not shown", and where it says too little for an export to
//! rely on.

use crate::client::Version;
use crate::client::Version::{V1, V2};

/// What the interface leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    TokenResponse,
    AuthDifference,
    TokenLifetime,
    /// Whether a token of this version is good for the other.
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
    /// Every question, in the order in which they are answered.
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

    /// Names the question for programs. These names stay.
    pub(crate) fn id(self) -> String {
        self.row().0
    }

    /// Names the question for people, in a few words.
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
            Self::TokenElsewhere(V2) => plain("token_v2_on_v1", "token of v2 on v1"),
            Self::TokenElsewhere(V1) => plain("token_v1_on_v2", "token of v1 on v2"),
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
            Self::Gzip => plain("gzip", "answers in gzip"),
            Self::Deprecation => plain("v1_deprecation", "end of v1"),
            Self::States => plain("states", "states of a batch"),
            Self::Transitions => plain("transitions", "changes of state"),
            Self::Events => plain("events", "events"),
        }
    }
}

/// The answer to one question, or why there is none.
#[derive(Clone, Debug)]
pub(crate) struct TopicAnswer {
    pub(crate) topic: Topic,
    pub(crate) known: bool,
    pub(crate) answer: String,
    /// What was asked and what came back; never a secret, a token or a cursor.
    pub(crate) evidence: Vec<String>,
}

impl TopicAnswer {
    pub(super) fn found(topic: Topic, answer: impl Into<String>, evidence: Vec<String>) -> Self {
        Self {
            topic,
            known: true,
            answer: answer.into(),
            evidence,
        }
    }

    pub(super) fn unknown(topic: Topic, why: &str, evidence: Vec<String>) -> Self {
        Self {
            topic,
            known: false,
            answer: format!("could not tell, because {why}"),
            evidence,
        }
    }

    /// Takes an answer for found, and anything else for the reason why there is none.
    pub(super) fn from_result(
        topic: Topic,
        told: Result<String, String>,
        evidence: Vec<String>,
    ) -> Self {
        match told {
            Ok(answer) => Self::found(topic, answer, evidence),
            Err(why) => Self::unknown(topic, &why, evidence),
        }
    }
}
