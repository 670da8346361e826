//! One question to the service, what came back, and both in words.

use serde_json::Value;

use super::listing::BatchList;
use crate::secret::Secret;
use crate::batch::range::written;
use crate::client::{Fault, ServiceError, Version};

/// A second in which no batch was created: before there was such a service.
const NOBODYS: i64 = 946_684_800;
/// A range that holds every batch: the years from 2000 to 2100.
pub(super) const ALWAYS: (i64, i64) = (NOBODYS, 4_102_444_800);

/// Which token goes with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bearer {
    /// One of this version; renewed once where it is refused.
    Of(Version),
    Missing,
    Bad,
}

/// A request for batches.
#[derive(Clone)]
pub(super) struct ProbeRequest {
    pub(super) version: Version,
    pub(super) bearer: Bearer,
    pub(super) start: Option<String>,
    pub(super) end: Option<String>,
    pub(super) cursor: Option<Secret>,
    /// It should be refused; how is the question.
    pub(super) is_bad: bool,
}

impl ProbeRequest {
    /// Asks `version` for the batches from one second to another.
    pub(super) fn between(version: Version, (start, end): (i64, i64)) -> Self {
        Self {
            version,
            bearer: Bearer::Of(version),
            start: Some(written(start)),
            end: Some(written(end)),
            cursor: None,
            is_bad: false,
        }
    }

    /// Asks without dates.
    pub(super) fn all(version: Version) -> Self {
        Self {
            start: None,
            end: None,
            ..Self::between(version, ALWAYS)
        }
    }

    pub(super) fn has_dates(&self) -> bool {
        self.start.is_some() || self.end.is_some()
    }

    /// Asks for a range that holds nothing: the status is what matters.
    pub(super) fn nothing(version: Version) -> Self {
        Self::between(version, (NOBODYS, NOBODYS))
    }

    /// Sends another token than the version's own.
    pub(super) fn bearer(mut self, bearer: Bearer) -> Self {
        self.bearer = bearer;
        self.bad()
    }

    /// Expects to be refused.
    pub(super) fn bad(mut self) -> Self {
        self.is_bad = true;
        self
    }

    /// Writes both dates with the other zone that the interface allows.
    pub(super) fn with_offset(mut self) -> Self {
        for date in [&mut self.start, &mut self.end].into_iter().flatten() {
            *date = date.replace('Z', "+00:00");
        }
        self
    }

    /// Asks for the page at `cursor`, with the dates or without them.
    pub(super) fn page(&self, cursor: &Secret, with_dates: bool) -> Self {
        let dates = |date: &Option<String>| date.clone().filter(|_| with_dates);
        Self {
            start: dates(&self.start),
            end: dates(&self.end),
            cursor: Some(cursor.clone()),
            ..self.clone()
        }
    }

    /// Tells whether the token is the version's own, so that a refusal may mean that it has died.
    pub(super) fn has_own_token(&self) -> bool {
        self.bearer == Bearer::Of(self.version)
    }

    /// Says what is asked, as far as anybody may know.
    pub(super) fn words(&self) -> String {
        let mut words = format!("GET /{}/batches", self.version);
        let dates = [("start_date", &self.start), ("end_date", &self.end)];
        for (name, date) in dates {
            if let Some(date) = date {
                words = format!("{words}, {name} {date}");
            }
        }
        if self.cursor.is_some() {
            words += ", next_token";
        }
        match self.bearer {
            Bearer::Of(version) if version != self.version => {
                format!("{words}, token of {version}")
            }
            Bearer::Of(_) => words,
            Bearer::Missing => words + ", no token",
            Bearer::Bad => words + ", bad token",
        }
    }
}

/// Why there are no batches.
#[derive(Clone, Debug)]
pub(super) enum NoBatches {
    /// The service understood, and does not want to.
    Refused { status: u16, shape: String },
    /// There was no answer that tells anything; the text says why.
    Lost(String),
}

impl NoBatches {
    /// Says why nothing can be told.
    pub(super) fn why(&self) -> String {
        match self {
            Self::Refused { status, .. } => format!("it was refused with {status}"),
            Self::Lost(why) => why.clone(),
        }
    }

    /// Reads a refusal.
    pub(super) fn refused(error: &ServiceError) -> Option<Self> {
        let Fault::Status {
            status,
            detail,
            value,
            ..
        } = &error.fault
        else {
            return None;
        };
        Some(Self::Refused {
            status: *status,
            shape: shape(detail.as_deref(), value.as_ref()),
        })
    }
}

/// What came back, and the line that proves it.
pub(super) struct ProbeAnswer {
    /// Empty where nothing was sent.
    pub(super) evidence: Vec<String>,
    pub(super) outcome: Result<BatchList, NoBatches>,
}

/// Says what the body of an error looks like, without repeating it.
fn shape(detail: Option<&str>, value: Option<&Value>) -> String {
    match (value, detail) {
        (Some(Value::String(_)), _) => "`detail` is text".to_owned(),
        (Some(Value::Array(entries)), _) => {
            let interface = ["type", "loc", "msg"];
            let usual = |entry: &Value| interface.iter().all(|name| entry.get(name).is_some());
            if entries.iter().all(usual) {
                "`detail` is a list with type, loc and msg".to_owned()
            } else {
                "`detail` is a list, but not of type, loc and msg".to_owned()
            }
        }
        (Some(Value::Object(_)), _) => "`detail` is an object".to_owned(),
        (Some(_), _) => "`detail` is neither text nor a list".to_owned(),
        (None, Some(_)) => "a body without `detail`".to_owned(),
        (None, None) => "an empty body".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_shape_of_an_error_has_a_name() {
        let named = |value: Value| shape(Some("x"), Some(&value));
        assert_eq!(named(json!("no")), "`detail` is text");
        let entry = json!({"type": "a", "loc": ["b"], "msg": "c"});
        assert!(named(json!([entry])).ends_with("list with type, loc and msg"));
        assert!(named(json!([entry, 1])).ends_with("not of type, loc and msg"));
        assert_eq!(named(json!({})), "`detail` is an object");
        assert_eq!(named(json!(1)), "`detail` is neither text nor a list");
        assert_eq!(shape(Some("<html>"), None), "a body without `detail`");
        assert_eq!(shape(None, None), "an empty body");
    }

    #[test]
    fn a_cursor_is_named_and_not_shown() {
        let ask = ProbeRequest::between(Version::V2, (0, 1));
        let page = ask.page(&Secret::cursor("seldom-seen"), true);
        let dates = "start_date 1970-01-01T00:00:00Z, end_date 1970-01-01T00:00:01Z";
        assert_eq!(
            page.words(),
            format!("GET /v2/batches, {dates}, next_token")
        );
        let alone = ask.page(&Secret::cursor("seldom-seen"), false);
        let alone = alone.bearer(Bearer::Of(Version::V1));
        assert_eq!(alone.words(), "GET /v2/batches, next_token, token of v1");
    }
}
