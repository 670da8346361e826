//! What is wrong with a batch, and with the value of a field.

use std::fmt;

use super::strings::unquote;
use crate::batch::columns::{BATCH_ID, COLUMNS, Column, FieldType};
use crate::batch::decimal;
use crate::batch::timestamp::Timestamp;

/// Maximum length of a field name in bytes.
pub(super) const NAME_LIMIT: usize = 1024;
/// Maximum number of fields in a batch, known and unknown.
pub(super) const FIELD_LIMIT: usize = 1000;

/// How a batch violates the interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// It is not valid JSON; the text says why.
    NotJson(String),
    /// It is not a JSON object; the text says why.
    NoObject(String),
    /// A required field is absent.
    Missing(&'static str),
    /// A required field is null.
    Null(&'static str),
    /// A field has the wrong type.
    WrongType(&'static str, FieldType),
    /// An integer does not fit 64 bits.
    TooLarge(&'static str),
    /// The id is empty.
    EmptyId,
    /// A field appears twice. Names inside the value of an unknown field, and unknown names beside `data`, are not
    /// compared: that would slow down every page.
    Repeated(String),
    /// A field name is too long.
    LongName(String),
    /// There are too many fields.
    TooManyFields,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson(why) => write!(f, "it is not valid JSON: {why}"),
            Self::NoObject(why) => write!(f, "it is not a JSON object: {why}"),
            Self::Missing(field) => write!(f, "`{field}` is missing"),
            Self::Null(field) => write!(f, "`{field}` is null"),
            Self::WrongType(field, kind) => {
                let expected = match kind {
                    FieldType::Text => "text",
                    FieldType::Date => "a UTC date such as 2026-05-01T06:00:00Z",
                    FieldType::Integer => "a whole number",
                    FieldType::Decimal => "a decimal number in a string, such as \"87.50\"",
                    FieldType::Boolean => "true or false",
                };
                write!(f, "`{field}` is not {expected}")
            }
            Self::TooLarge(field) => write!(f, "`{field}` is too large"),
            Self::EmptyId => f.write_str("`batch_id` is empty"),
            Self::Repeated(field) => write!(f, "`{field}` appears twice"),
            Self::LongName(field) => {
                write!(
                    f,
                    "a field name is longer than {NAME_LIMIT} bytes: `{field}`"
                )
            }
            Self::TooManyFields => {
                write!(f, "it has too many fields (more than {FIELD_LIMIT})")
            }
        }
    }
}

/// Returns what is wrong with the JSON text of `column`.
pub(super) fn flaw(column: &Column, value: Option<&str>) -> Option<Flaw> {
    let name = column.name;
    let value = match value {
        None | Some("null") if column.nullable => return None,
        None => return Some(Flaw::Missing(name)),
        Some("null") => return Some(Flaw::Null(name)),
        Some(value) => value,
    };
    let is_string = value.starts_with('"');
    let fits = match column.kind {
        FieldType::Text => is_string && is_unicode(value),
        FieldType::Date => is_string && Timestamp::parse(&unquote(value)).is_some(),
        FieldType::Decimal => is_string && decimal::is_number(&unquote(value)),
        FieldType::Integer => value.parse::<i64>().is_ok(),
        FieldType::Boolean => matches!(value, "true" | "false"),
    };
    if !fits && column.kind == FieldType::Integer && decimal::is_whole(value) {
        return Some(Flaw::TooLarge(name));
    }
    if !fits {
        return Some(Flaw::WrongType(name, column.kind));
    }
    (column.name == COLUMNS[BATCH_ID].name && value == "\"\"").then_some(Flaw::EmptyId)
}

/// Returns whether a JSON string is valid text: an escape may be half of a surrogate pair.
pub(in crate::batch) fn is_unicode(json: &str) -> bool {
    !json.contains('\\') || serde_json::from_str::<String>(json).is_ok()
}
