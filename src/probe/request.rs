//! One request of the probe, its result, and both as text for the evidence.

use serde_json::Value;

use crate::batch::range::Range;
use crate::client::{Fault, PageRequest, ServiceError, Version};
use crate::secret::Secret;

/// A second without batches, before the service existed.
const EMPTY_SECOND: i64 = 946_684_800;
/// A range with all batches: the years from 2000 to 2100.
pub(super) const ALWAYS: (i64, i64) = (EMPTY_SECOND, 4_102_444_800);

/// The token to send with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bearer {
    /// A token of this version, renewed once if it is refused.
    Of(Version),
    Missing,
    Bad,
}

/// A request for batches.
#[derive(Clone)]
pub(super) struct ProbeRequest {
    pub(super) page: PageRequest,
    pub(super) bearer: Bearer,
    /// Whether the service is expected to refuse it.
    pub(super) is_bad: bool,
}

impl ProbeRequest {
    /// Requests the batches of a range from `version`.
    pub(super) fn between(version: Version, (start, end): (i64, i64)) -> Self {
        let range = Range::between(Some(start), Some(end));
        Self {
            page: PageRequest::new(version, &range, None),
            bearer: Bearer::Of(version),
            is_bad: false,
        }
    }

    /// Requests all batches, without dates.
    pub(super) fn all(version: Version) -> Self {
        Self {
            page: PageRequest::new(version, &Range::default(), None),
            ..Self::between(version, ALWAYS)
        }
    }

    pub(super) fn has_dates(&self) -> bool {
        self.page.start_date.is_some() || self.page.end_date.is_some()
    }

    /// Requests an empty range, if only the status matters.
    pub(super) fn nothing(version: Version) -> Self {
        Self::between(version, (EMPTY_SECOND, EMPTY_SECOND))
    }

    /// Replaces the token.
    pub(super) fn bearer(mut self, bearer: Bearer) -> Self {
        self.bearer = bearer;
        self.bad()
    }

    /// Marks the request as one that the service should refuse.
    pub(super) fn bad(mut self) -> Self {
        self.is_bad = true;
        self
    }

    /// Writes both dates with `+00:00`, the other zone that the interface allows.
    pub(super) fn with_offset(mut self) -> Self {
        let PageRequest {
            start_date,
            end_date,
            ..
        } = &mut self.page;
        for date in [start_date, end_date].into_iter().flatten() {
            *date = date.replace('Z', "+00:00");
        }
        self
    }

    /// Requests the page at `cursor`, with or without the dates.
    pub(super) fn page(&self, cursor: &Secret, with_dates: bool) -> Self {
        let mut request = self.clone();
        request.page.next_token = Some(cursor.clone());
        if !with_dates {
            request.page.start_date = None;
            request.page.end_date = None;
        }
        request
    }

    /// Describes the request, without secrets.
    pub(super) fn describe(&self) -> String {
        let page = &self.page;
        let mut describe = format!("GET /{}/batches", page.version);
        let dates = [
            ("start_date", &page.start_date),
            ("end_date", &page.end_date),
        ];
        for (name, date) in dates {
            if let Some(date) = date {
                describe = format!("{describe}, {name} {date}");
            }
        }
        if page.next_token.is_some() {
            describe += ", next_token";
        }
        match self.bearer {
            Bearer::Of(version) if version != page.version => {
                format!("{describe}, token of {version}")
            }
            Bearer::Of(_) => describe,
            Bearer::Missing => describe + ", no token",
            Bearer::Bad => describe + ", bad token",
        }
    }
}

/// Why a request returned no batches.
#[derive(Clone, Debug)]
pub(super) enum NoBatches {
    /// The service refused the request.
    Refused { status: u16, shape: String },
    /// There was no usable response, with the reason.
    Lost(String),
}

impl NoBatches {
    /// Returns the status and the format of a refusal, or the reason why an answer is unknown.
    pub(super) fn refusal(self) -> Result<(u16, String), String> {
        match self {
            Self::Refused { status, shape } => Ok((status, shape)),
            Self::Lost(reason) => Err(reason),
        }
    }

    /// Converts an error response. `None` for any other error.
    pub(super) fn refused(error: &ServiceError) -> Option<Self> {
        match &error.fault {
            Fault::Status {
                status,
                detail,
                value,
                ..
            } => Some(Self::Refused {
                status: *status,
                shape: shape(detail.as_deref(), value.as_ref()).to_owned(),
            }),
            _ => None,
        }
    }
}

/// The reason why an answer is unknown.
impl From<NoBatches> for String {
    fn from(error: NoBatches) -> Self {
        match error {
            NoBatches::Refused { status, .. } => format!("the request was refused with {status}"),
            NoBatches::Lost(reason) => reason,
        }
    }
}

/// Describes the format of an error body, without quoting it.
fn shape(detail: Option<&str>, value: Option<&Value>) -> &'static str {
    let interface = ["type", "loc", "msg"];
    let is_usual = |entry: &Value| interface.iter().all(|name| entry.get(name).is_some());
    match (value, detail) {
        (Some(Value::String(_)), _) => "`detail` is text",
        (Some(Value::Array(entries)), _) if entries.iter().all(is_usual) => {
            "`detail` is a list with type, loc and msg"
        }
        (Some(Value::Array(_)), _) => "`detail` is a list, but not of type, loc and msg",
        (Some(Value::Object(_)), _) => "`detail` is an object",
        (Some(_), _) => "`detail` is neither text nor a list",
        (None, Some(_)) => "a body without `detail`",
        (None, None) => "an empty body",
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
            page.describe(),
            format!("GET /v2/batches, {dates}, next_token")
        );
        let alone = ask.page(&Secret::cursor("seldom-seen"), false);
        let alone = alone.bearer(Bearer::Of(Version::V1));
        assert_eq!(alone.describe(), "GET /v2/batches, next_token, token of v1");
    }
}
