//! Batches as JSON texts, valid unless a test changes them.

use std::borrow::Cow;
use std::fmt::{self, Display};

use chrono::{DateTime, Utc};
use serde_json::json;

/// The fields of the interface, in order.
pub(crate) const FIELDS: [&str; 18] = [
    "batch_id",
    "batch_name",
    "batch_creation_date",
    "crop_type",
    "number_of_images",
    "total_cells_per_tray",
    "avg_germinated_seedlings",
    "avg_non_germinated_seedlings",
    "avg_germination_rate",
    "avg_usable_seedlings",
    "avg_non_usable_cells",
    "avg_usable_seedling_rate",
    "avg_coefficient_of_variation",
    "avg_median_seedling_size_mm2",
    "scanned_by_email",
    "analysis_link",
    "comment",
    "warnings",
];

/// The decimal fields, in the order of the interface.
pub(crate) const DECIMALS: [&str; 8] = [
    FIELDS[6], FIELDS[7], FIELDS[8], FIELDS[9], FIELDS[10], FIELDS[11], FIELDS[12], FIELDS[13],
];

/// When a new batch was created: 2026-05-01, at 6:00.
const MAY: i64 = 1_777_615_200;

/// A batch. Its `Display` is the JSON object that a service sends.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    /// The creation time, in seconds since 1970.
    pub(crate) created: i64,
    /// The time that `start_date` and `end_date` are compared with; `None` if no date matches.
    pub(crate) compared: Option<i64>,
    fields: Vec<(Cow<'static, str>, Cow<'static, str>)>,
}

impl Batch {
    /// A valid batch with most fields null, created on 2026-05-01.
    pub(crate) fn new(id: &str) -> Self {
        let value = |name: &str| match name {
            "batch_id" => json!(id).to_string().into(),
            "batch_name" => "\"Tray\"".into(),
            "batch_creation_date" => "\"2026-05-01T06:00:00Z\"".into(),
            "number_of_images" => "12".into(),
            "total_cells_per_tray" => "128".into(),
            "avg_germination_rate" => "\"87.50\"".into(),
            "warnings" => "false".into(),
            _ => "null".into(),
        };
        let fields = FIELDS.map(|name| (name.into(), value(name)));
        Self {
            created: MAY,
            compared: Some(MAY),
            fields: fields.into(),
        }
    }

    /// A valid batch without nulls.
    pub(crate) fn full(id: &str) -> Self {
        let names = FIELDS
            .iter()
            .filter(|name| **name != "batch_id" && **name != "warnings");
        let batch = names.fold(Self::new(id), |batch, name| match *name {
            "number_of_images" | "total_cells_per_tray" => batch.with(name, 3),
            name if name.starts_with("avg_") => batch.with(name, "\"87.50\""),
            name => batch.with(name, "\"x\""),
        });
        batch.created("2026-05-01T06:00:00Z")
    }

    /// A valid batch without the fields that may be absent, for tests with many.
    pub(crate) fn small(id: &str) -> Self {
        let mut batch = Self::new(id);
        batch.fields.retain(|(_, value)| value != "null");
        batch
    }

    /// Replaces the creation date, which is sent as it is written here.
    pub(crate) fn created(self, date: &str) -> Self {
        let created = DateTime::parse_from_rfc3339(date).map_or(0, |date| date.timestamp());
        let batch = self.with("batch_creation_date", json!(date));
        Self {
            created,
            compared: Some(created),
            ..batch
        }
    }

    /// Replaces the creation date, in seconds since 1970.
    pub(crate) fn created_at(self, second: i64) -> Self {
        Self {
            created: second,
            compared: Some(second),
            ..self.with("batch_creation_date", json!(date(second)))
        }
    }

    /// Sets `field` to a JSON value, in its place if it is there.
    pub(crate) fn set(&mut self, field: &str, json: impl Display) {
        let json = json.to_string().into();
        match self.fields.iter_mut().find(|(name, _)| name == field) {
            Some((_, value)) => *value = json,
            None => self.fields.push((field.to_owned().into(), json)),
        }
    }

    pub(crate) fn with(mut self, field: &str, json: impl Display) -> Self {
        self.set(field, json);
        self
    }

    pub(crate) fn with_all(self, values: &[(&str, &str)]) -> Self {
        let set = |batch: Self, (field, json): &(&str, &str)| batch.with(field, json);
        values.iter().fold(self, set)
    }

    pub(crate) fn without(mut self, field: &str) -> Self {
        self.fields.retain(|(name, _)| name != field);
        self
    }

    /// Repeats `field`.
    pub(crate) fn with_twice(mut self, field: &str) -> Self {
        let found = self.fields.iter().find(|(name, _)| name == field);
        self.fields.push(found.unwrap().clone());
        self
    }

    /// Reverses the order of the fields.
    pub(crate) fn reverse(&mut self) {
        self.fields.reverse();
    }

    /// Returns the JSON object that a service sends.
    pub(crate) fn text(&self) -> String {
        self.to_string()
    }
}

/// Formats seconds since 1970 as the interface does.
pub(crate) fn date(second: i64) -> String {
    let date: DateTime<Utc> = DateTime::from_timestamp(second, 0).unwrap();
    date.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Parses a date into seconds since 1970.
pub(crate) fn second(date: &str) -> i64 {
    DateTime::parse_from_rfc3339(date).unwrap().timestamp()
}

impl Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, value)) in self.fields.iter().enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            match name {
                // The names of the interface need no escapes.
                Cow::Borrowed(name) => write!(f, "{before}\"{name}\":{value}")?,
                Cow::Owned(name) => write!(f, "{before}{}:{value}", json!(name))?,
            }
        }
        f.write_str("}")
    }
}
