//! The values of a batch by column, and the canonical form in which they are hashed and compared.
//!
//! The form of one column is a length (four bytes, little endian) and the value in UTF-8. Null and empty text
//! both have length 0, because CSV cannot distinguish them. A JSON value whose type is not that of its column
//! (`"3"` for an integer) has the highest bit of its length set and is written as JSON, so that it never
//! equals a value of the right type. `trayscan-manifest(5)` specifies the form.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::decimal::is_number;
use super::json::flaw::is_unicode;
use super::json::strings::quote;
use super::timestamp::canonical_date;
use super::{BATCH_ID, Batch, COLUMNS, FieldType};

/// Marks the length of a JSON value of the wrong type.
const WRONG_TYPE: u32 = 1 << 31;
/// JSON nested deeper than this is compared as written.
const DEPTH_LIMIT: usize = 128;

/// The values of a batch, as received or as read from a file.
pub(crate) trait Values {
    /// Returns the text of `column`; `None` if it is null.
    fn plain(&self, column: usize) -> Option<Cow<'_, str>>;

    /// Returns the unknown fields as one JSON object; `None` if there are none.
    fn unknown_fields(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// Appends the canonical form of `column` to `form`.
    fn encode(&self, column: usize, form: &mut Vec<u8>) {
        let text = self.plain(column);
        let text = text.map(|text| canonical(COLUMNS[column].kind, text));
        put(form, text.as_deref().unwrap_or_default(), 0);
    }
}

/// A row of a file or a table, as plain text.
#[derive(Default)]
pub(crate) struct PlainRow {
    pub(crate) texts: [Option<String>; COLUMNS.len()],
    /// Unknown fields, as JSON.
    pub(crate) extra: Option<String>,
}

impl Values for PlainRow {
    fn plain(&self, column: usize) -> Option<Cow<'_, str>> {
        self.texts[column].as_deref().map(Cow::Borrowed)
    }

    fn unknown_fields(&self) -> Option<Cow<'_, str>> {
        self.extra.as_deref().map(Cow::Borrowed)
    }
}

/// What a format keeps of the values of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    /// JSON as received, types included.
    Json,
    /// The text of each value.
    Text,
    /// Typed columns: null if a value does not fit its column.
    Typed,
}

impl Representation {
    /// Passes what is kept of `batch` to `take`.
    pub(crate) fn of<T>(self, batch: &Batch, take: impl FnOnce(&dyn Values) -> T) -> T {
        match self {
            _ if batch.is_valid() => take(batch),
            Self::Json => take(batch),
            Self::Text => take(&AsText(batch)),
            Self::Typed => take(&Typed(batch)),
        }
    }
}

impl Values for Batch {
    fn plain(&self, column: usize) -> Option<Cow<'_, str>> {
        Self::plain(self, column)
    }

    fn unknown_fields(&self) -> Option<Cow<'_, str>> {
        self.extra().map(Cow::Owned)
    }

    fn encode(&self, column: usize, form: &mut Vec<u8>) {
        let kind = COLUMNS[column].kind;
        let inside = self.inside(column);
        if let Some(text) = inside.and_then(|text| canonical_slice(kind, text)) {
            return put(form, text, 0);
        }
        match self.json(column) {
            // Half of a surrogate pair is no text.
            Some(json) if !has_type(kind, json) || !is_unicode(json) => {
                put(form, json, WRONG_TYPE);
            }
            _ => {
                let text = self.plain(column).map(|text| canonical(kind, text));
                put(form, text.as_deref().unwrap_or_default(), 0);
            }
        }
    }
}

/// Values in typed columns: null if a value does not fit its column. Only the id is kept as received, because
/// every batch needs one.
struct Typed<'a>(&'a Batch);

impl Values for Typed<'_> {
    fn plain(&self, column: usize) -> Option<Cow<'_, str>> {
        match column {
            BATCH_ID => self.0.plain(column),
            _ => self.0.typed(column),
        }
    }

    fn unknown_fields(&self) -> Option<Cow<'_, str>> {
        self.0.unknown_fields()
    }
}

/// Values in a text format without types.
struct AsText<'a>(&'a Batch);

impl Values for AsText<'_> {
    fn plain(&self, column: usize) -> Option<Cow<'_, str>> {
        self.0.plain(column)
    }

    fn unknown_fields(&self) -> Option<Cow<'_, str>> {
        self.0.unknown_fields()
    }
}

/// Appends `text` with its length to `form`.
fn put(form: &mut Vec<u8>, text: &str, mark: u32) {
    // No value reaches 2 GiB: pages and files are read with far lower limits.
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX) | mark;
    form.extend_from_slice(&length.to_le_bytes());
    form.extend_from_slice(text.as_bytes());
}

/// Returns whether a JSON value has the type of its column. Decimals may be strings or numbers.
fn has_type(kind: FieldType, json: &str) -> bool {
    let first = json.as_bytes().first();
    let is_number = first.is_some_and(|byte| matches!(byte, b'-' | b'0'..=b'9'));
    match kind {
        FieldType::Text | FieldType::Date => first == Some(&b'"'),
        FieldType::Integer => is_number,
        FieldType::Decimal => is_number || first == Some(&b'"'),
        FieldType::Boolean => matches!(json, "true" | "false"),
    }
}

/// Returns the canonical form of a valid value; `None` if more than its end must change.
fn canonical_slice(kind: FieldType, text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    match kind {
        _ if bytes.is_empty() => Some(text),
        FieldType::Boolean => Some(text),
        FieldType::Text => memchr(b'\\', bytes).is_none().then_some(text),
        FieldType::Date => (bytes.len() == "2026-05-01T06:00:00Z".len()
            && bytes.ends_with(b"Z")
            && &bytes[17..19] != b"60")
            .then_some(text),
        FieldType::Integer | FieldType::Decimal => {
            if !bytes
                .first()
                .is_some_and(|byte| matches!(byte, b'1'..=b'9'))
            {
                return None;
            }
            let Some(point) = memchr(b'.', bytes) else {
                return Some(text);
            };
            let end = bytes.iter().rposition(|byte| *byte != b'0')?;
            Some(&text[..if end == point { end } else { end + 1 }])
        }
    }
}

/// Returns the canonical form of a value.
pub(crate) fn canonical(kind: FieldType, text: Cow<'_, str>) -> Cow<'_, str> {
    match kind {
        FieldType::Integer | FieldType::Decimal => canonical_number(text),
        FieldType::Date => match text {
            Cow::Borrowed(text) => canonical_date(text),
            Cow::Owned(text) => Cow::Owned(canonical_date(&text).into_owned()),
        },
        FieldType::Text | FieldType::Boolean => text,
    }
}

/// Returns a number without insignificant zeros; other text unchanged.
fn canonical_number(text: Cow<'_, str>) -> Cow<'_, str> {
    if !is_number(&text) {
        return text;
    }
    if let Cow::Borrowed(text) = text
        && let Some(slice) = canonical_slice(FieldType::Decimal, text)
    {
        return Cow::Borrowed(slice);
    }
    let (sign, unsigned) = text
        .strip_prefix('-')
        .map_or(("", text.as_ref()), |rest| ("-", rest));
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let significant = whole.trim_start_matches('0');
    let digits = fraction.trim_end_matches('0');
    // Most numbers are canonical already, except for trailing zeros of the fraction.
    if significant.len() == whole.len() || whole == "0" && !digits.is_empty() {
        let point = usize::from(!digits.is_empty());
        let end = sign.len() + whole.len() + point + digits.len();
        return match text {
            Cow::Borrowed(text) => Cow::Borrowed(&text[..end]),
            Cow::Owned(mut text) => {
                text.truncate(end);
                Cow::Owned(text)
            }
        };
    }
    let point = if digits.is_empty() { "" } else { "." };
    let zero = if significant.is_empty() { "0" } else { "" };
    let sign = if significant.is_empty() && digits.is_empty() {
        ""
    } else {
        sign
    };
    Cow::Owned(format!("{sign}{zero}{significant}{point}{digits}"))
}

/// Returns the canonical form of JSON: members sorted by name, no whitespace, as few escapes as possible, and
/// numbers as digits and a power of ten.
pub(crate) fn canonical_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    write_canonical(json, DEPTH_LIMIT, &mut text);
    text
}

fn write_canonical(json: &str, depth: usize, out: &mut String) {
    let json = json.trim();
    if write_parts(json, depth, out).is_none() {
        out.push_str(json);
    }
}

/// Writes a value that needs a canonical form; `None` if it can stay as it is.
fn write_parts(json: &str, depth: usize, out: &mut String) -> Option<()> {
    match json.as_bytes().first() {
        Some(b'{') if depth > 0 => write_object(json, depth, out),
        Some(b'[') if depth > 0 => write_array(json, depth, out),
        Some(b'"') => serde_json::from_str(json)
            .ok()
            .map(|text: String| quote(&text, out)),
        Some(b'-' | b'0'..=b'9') => {
            out.push_str(&scientific(json)?);
            Some(())
        }
        _ => None,
    }
}

/// Returns a JSON number as digits without leading or trailing zeros, and a power of ten unless it is 0: both
/// `12.50` and `1.25e1` become `125e-1`.
fn scientific(json: &str) -> Option<String> {
    let (mantissa, exponent) = json.split_once(['e', 'E']).unwrap_or((json, "0"));
    let (sign, unsigned) = mantissa
        .strip_prefix('-')
        .map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_end_matches('0');
    let zeros = i64::try_from(all.len() - digits.len()).ok()?;
    let places = i64::try_from(fraction.len()).ok()?;
    let exponent: i64 = exponent.parse().ok()?;
    let exponent = exponent.checked_add(zeros)?.checked_sub(places)?;
    let digits = digits.trim_start_matches('0');
    Some(match (digits, exponent) {
        ("", _) => "0".to_owned(),
        (_, 0) => format!("{sign}{digits}"),
        _ => format!("{sign}{digits}e{exponent}"),
    })
}

fn write_object(json: &str, depth: usize, out: &mut String) -> Option<()> {
    let Members(mut members) = serde_json::from_str(json).ok()?;
    // A stable sort: a name that appears twice keeps both of its values.
    members.sort_by(|left, right| left.0.cmp(&right.0));
    out.push('{');
    for (place, (name, value)) in members.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        quote(name, out);
        out.push(':');
        write_canonical(value.get(), depth - 1, out);
    }
    out.push('}');
    Some(())
}

/// The members of a JSON object in order, including repeated ones.
pub(crate) struct Members<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

/// A name, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;

        impl<'de> Visitor<'de> for All {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(COLUMNS.len() + 2);
                while let Some((Name(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(All)
    }
}

fn write_array(json: &str, depth: usize, out: &mut String) -> Option<()> {
    let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    out.push('[');
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        write_canonical(item.get(), depth - 1, out);
    }
    out.push(']');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_dates_have_one_form() {
        for (kind, text, form) in [
            (FieldType::Decimal, "087.50", "87.5"),
            (FieldType::Decimal, "-0.00", "0"),
            (FieldType::Decimal, "-0.50", "-0.5"),
            (FieldType::Decimal, "0.50", "0.5"),
            (FieldType::Decimal, "12.00", "12"),
            (FieldType::Decimal, "100.00", "100"),
            (FieldType::Decimal, "-12.05", "-12.05"),
            (FieldType::Decimal, "0.0", "0"),
            (FieldType::Decimal, "87,50", "87,50"),
            (FieldType::Integer, "12", "12"),
            (FieldType::Integer, "100", "100"),
            (
                FieldType::Date,
                "2026-05-01T06:00:00.500Z",
                "2026-05-01T06:00:00.5Z",
            ),
            (
                FieldType::Date,
                "2026-05-01T06:00:00.000Z",
                "2026-05-01T06:00:00Z",
            ),
            (
                FieldType::Date,
                "2026-05-01T06:00:00Z",
                "2026-05-01T06:00:00Z",
            ),
            (FieldType::Text, "0.50", "0.50"),
        ] {
            assert_eq!(canonical(kind, text.into()), form);
            if let Some(slice) = canonical_slice(kind, text).filter(|_| !text.contains(',')) {
                assert_eq!(slice, form, "{text}");
            }
        }
    }

    fn batch(images: &str, name: &str, rate: &str, warnings: &str) -> Batch {
        Batch::read_part(&format!(
            r#"{{"batch_id":"a","batch_name":{name},"batch_creation_date":"2026-05-01T06:00:00Z","number_of_images":{images},"avg_germination_rate":{rate},"warnings":{warnings}}}"#
        ))
        .batch
        .expect("a batch")
    }

    fn form(values: &dyn Values) -> Vec<u8> {
        let mut form = Vec::new();
        (0..COLUMNS.len()).for_each(|column| values.encode(column, &mut form));
        form
    }

    #[test]
    fn json_types_count_except_for_decimals() {
        let usual = batch("3", "\"3\"", "\"12.50\"", "false");
        assert_eq!(form(&usual), form(&batch("3", "\"3\"", "12.5", "false")));
        for other in [
            batch("\"3\"", "\"3\"", "\"12.50\"", "false"),
            batch("3", "3", "\"12.50\"", "false"),
            batch("3", "\"3\"", "\"12.50\"", "\"false\""),
            batch("3", "\"3\"", "true", "false"),
        ] {
            assert_ne!(form(&usual), form(&other));
        }
        // A backslash as text, and half of a surrogate pair.
        let [text, half] =
            [r#""x\\ud83d""#, r#""x\ud83d""#].map(|name| batch("3", name, "1", "true"));
        assert_ne!(form(&text), form(&half));
        let text = batch("\"3\"", "3", "\"12.50\"", "\"false\"");
        assert_eq!(form(&usual), form(&AsText(&text)), "text has no types");
    }

    #[test]
    fn json_has_one_spelling() {
        for (json, canonical) in [
            (
                r#"{ "b" : 1.50, "a":[ true , null ] }"#,
                r#"{"a":[true,null],"b":15e-1}"#,
            ),
            (r#"{"\u0061":"\u00e9\/"}"#, r#"{"a":"é/"}"#),
            (r#"{"a":{"c":"x","b":-0.0}}"#, r#"{"a":{"b":0,"c":"x"}}"#),
            (r#"{"a":2,"b":0,"a":1}"#, r#"{"a":2,"a":1,"b":0}"#),
            (
                "[1e5,100000,-1E+5,0.10,10.0e-2,120]",
                "[1e5,1e5,-1e5,1e-1,1e-1,12e1]",
            ),
            (
                "[0,-0,0.00,5,1e99999999999999999999]",
                "[0,0,0,5,1e99999999999999999999]",
            ),
            (r#"{"a":"\ud800"}"#, r#"{"a":"\ud800"}"#),
        ] {
            assert_eq!(canonical_json(json), canonical);
        }
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(canonical_json(&deep), deep);
    }
}
