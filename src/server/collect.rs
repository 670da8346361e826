//! Builds a catalogue from the JSON text of existing batches, which is served unchanged.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::catalog::Catalog;
use super::query;

/// The creation date of a batch whose own date is missing or invalid.
const UNDATED: i64 = i64::MIN;

/// Builds a catalogue of `objects`, each the JSON text of a batch.
///
/// A batch without a valid creation date counts as older than all others. It is returned unless the
/// request has a `start_date`, so that a client that requests one window after another still gets it.
///
/// If a text is not a JSON object, returns its index as the error.
pub(crate) fn collect(objects: &[Box<str>]) -> Result<Catalog, usize> {
    let mut order = Vec::with_capacity(objects.len());
    for (index, object) in objects.iter().enumerate() {
        let mut json = serde_json::Deserializer::from_str(object);
        let created = json.deserialize_map(CreationDate);
        let created = created.and_then(|created| json.end().map(|()| created));
        let created = created.map_err(|_| index)?;
        order.push((created.unwrap_or(UNDATED), index));
    }
    order.sort_unstable();
    let created = order.iter().map(|(created, _)| *created).collect();
    Ok(Catalog::prepare(created, |batch, text| {
        text.extend_from_slice(objects[order[batch].1].as_bytes());
    }))
}

/// Finds the creation date in the JSON object of a batch, in microseconds since 1970.
struct CreationDate;

impl<'de> Visitor<'de> for CreationDate {
    type Value = Option<i64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<i64>, A::Error> {
        let mut created = None;
        while let Some(name) = map.next_key()? {
            match name {
                FieldName::BatchCreationDate => {
                    // If the field appears twice, the last one counts.
                    let value: &RawValue = map.next_value()?;
                    let text: Option<String> = serde_json::from_str(value.get()).ok();
                    created = text.and_then(|text| micros(&text));
                }
                FieldName::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(created)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum FieldName {
    BatchCreationDate,
    #[serde(other)]
    Other,
}

/// Reads `YYYY-MM-DDTHH:MM:SS` with any fraction of the second, then `Z` or `+00:00`, as microseconds since
/// 1970. A leap second is read as the second that follows it.
fn micros(text: &str) -> Option<i64> {
    let (second, rest) = text.split_at_checked("YYYY-MM-DDTHH:MM:SS".len())?;
    let second = match second.strip_suffix("T23:59:60") {
        Some(day) => query::seconds(format!("{day}T23:59:59").as_bytes())? + 1,
        None => query::seconds(second.as_bytes())?,
    };
    let rest = rest
        .strip_suffix('Z')
        .or_else(|| rest.strip_suffix("+00:00"))?;
    let fraction = match rest {
        "" => "",
        rest => rest.strip_prefix('.').filter(|digits| !digits.is_empty())?,
    };
    if !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let kept = &fraction[..fraction.len().min(6)];
    let micros: i64 = format!("{kept:0<6}").parse().ok()?;
    // Bounds are whole seconds: a date just after one must not be rounded to it.
    let is_after = fraction.bytes().any(|digit| digit != b'0');
    Some(second * 1_000_000 + micros.max(i64::from(is_after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(objects: &[&str]) -> Result<String, usize> {
        let objects: Vec<Box<str>> = objects.iter().map(|text| (*text).into()).collect();
        let catalog = collect(&objects)?;
        let all = catalog.slices(catalog.between(None, None)).concat();
        Ok(String::from_utf8(all).expect("text"))
    }

    #[test]
    fn fractions_never_fall_on_a_whole_second() {
        let second = 1_777_615_200_000_000;
        for (text, expected) in [
            ("2026-05-01T06:00:00Z", 0),
            ("2026-05-01T06:00:00.000Z", 0),
            ("2026-05-01T06:00:00.5Z", 500_000),
            ("2026-05-01T06:00:00.000001Z", 1),
            ("2026-05-01T06:00:00.0000000001Z", 1),
            ("2026-05-01T06:00:00.9999999Z", 999_999),
            ("2026-05-01T06:00:00+00:00", 0),
            ("2026-05-01T06:00:00.250000+00:00", 250_000),
        ] {
            assert_eq!(micros(text), Some(second + expected), "{text}");
        }
    }

    #[test]
    fn a_leap_second_is_the_second_that_follows() {
        let following = micros("2017-01-01T00:00:00Z");
        assert_eq!(micros("2016-12-31T23:59:60Z"), following);
        assert_eq!(micros("2016-12-31T23:59:60+00:00"), following);
        assert_eq!(micros("2016-12-31T22:59:60Z"), None);
    }

    #[test]
    fn a_date_must_be_in_utc() {
        for text in [
            "",
            "Z",
            "2026-05-01T06:00:00",
            "2026-05-01T06:00:00.Z",
            "2026-05-01T06:00:00.5.5Z",
            "2026-05-01T06:00:00.+5Z",
            "2026-05-01T06:00:00,5Z",
            "2026-05-01T06:00:00-00:00",
            "2026-05-01T06:00:00+01:00",
            "2026-02-29T06:00:00Z",
            "2026-05-01T06:00:00é",
        ] {
            assert_eq!(micros(text), None, "{text}");
        }
    }

    #[test]
    fn batches_are_in_order_of_creation_and_those_without_a_date_first() {
        let late = r#"{"batch_creation_date":"2026-05-02T06:00:00Z"}"#;
        let early = r#"{ "x":{"batch_creation_date":7}, "batch_\u0063reation_date":"2026-05-01T06:00:00.5Z"}"#;
        let twice = r#"{"batch_creation_date":"2027-01-01T00:00:00Z","batch_creation_date":"2026-05-01T07:00:00Z"}"#;
        let undated = [
            r#"{"batch_creation_date":null}"#,
            "{}",
            r#"{"batch_creation_date":["2026"],"a":"\ud800","b":1e999}"#,
        ];
        let [null, nothing, list] = undated;
        assert_eq!(
            collected(&[late, null, twice, nothing, early, list]),
            Ok([null, nothing, list, early, twice, late].join(","))
        );
    }

    #[test]
    fn a_text_that_is_not_an_object_is_named_by_its_index() {
        for text in ["", "[]", "7", "{", "{}{}", r#"{"a":}"#, r#"{"a":1,}"#] {
            assert_eq!(collected(&["{}", text]), Err(1), "{text}");
        }
    }
}
