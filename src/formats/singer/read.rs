//! Reads Singer messages. A target loads what the schema describes, and passes on the last state: the schema must match
//! the batches, and the state must be one that the next run can start from.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::batch::{
    BATCH_ID, Batch, COLUMNS, CREATION_DATE, FieldType, Timestamp, find_column, is_whole,
};

/// The stream, as its messages describe it so far.
#[derive(Default)]
pub(crate) struct SingerStream {
    /// The name of the stream, and its columns.
    schema: Option<(String, SchemaColumns)>,
    /// Whether the last message was a STATE. An export that was cut short has none.
    has_ended: bool,
}

/// The columns that a schema describes, and those of them that may be null, one bit each.
#[derive(Clone, Copy, Default)]
struct SchemaColumns {
    all: u32,
    nullable: u32,
}

#[derive(Deserialize)]
struct Message<'a> {
    r#type: String,
    stream: Option<String>,
    #[serde(borrow)]
    record: Option<&'a RawValue>,
    schema: Option<ObjectSchema>,
    key_properties: Option<Vec<String>>,
    value: Option<StateValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectSchema {
    #[serde(rename = "type")]
    _type: ObjectType,
    properties: BTreeMap<String, Property>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ObjectType {
    Object,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StateValue {
    bookmarks: BTreeMap<String, Bookmark>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bookmark {
    replication_key: String,
    replication_key_value: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Property {
    r#type: Vec<String>,
    format: Option<String>,
}

impl SingerStream {
    /// Reads a message; returns its record if it has one.
    pub(crate) fn read<'a>(&mut self, text: &'a str) -> Result<Option<&'a str>, String> {
        let message: Message<'a> = serde_json::from_str(text)
            .map_err(|_| "it is not a Singer message of an export".to_owned())?;
        self.has_ended = message.r#type == "STATE";
        match (message.r#type.as_str(), &message.stream, &self.schema) {
            // A target loads each stream into a table of its own.
            ("SCHEMA", Some(stream), Some((name, _))) if stream != name => {
                Err("there is more than one stream".to_owned())
            }
            ("SCHEMA", Some(stream), _) => {
                let columns = schema_columns(&message)?;
                self.schema = Some((stream.clone(), columns));
                Ok(None)
            }
            ("RECORD", Some(stream), Some((name, _))) if stream == name => match message.record {
                Some(record) => Ok(Some(record.get())),
                None => Err("the message has no record".to_owned()),
            },
            ("STATE", _, schema) => {
                let stream = schema.as_ref().map(|(name, _)| name.as_str());
                let state = message.value.filter(|state| state.is_valid(stream));
                let why = "the state is not one that the next run can start from";
                state.map(|_| None).ok_or_else(|| why.to_owned())
            }
            ("ACTIVATE_VERSION", ..) => {
                Err("the message makes a target delete other batches".to_owned())
            }
            ("SCHEMA", None, _) => Err("the schema has no stream".to_owned()),
            ("RECORD", ..) => Err("no schema describes the stream of the record".to_owned()),
            _ => Err("it is not a Singer message".to_owned()),
        }
    }

    /// Checks that the schema describes each value of `batch`.
    pub(crate) fn check(&self, batch: &Batch) -> Result<(), String> {
        let schema = self.schema.as_ref().map(|(_, columns)| *columns);
        let schema = schema.unwrap_or_default();
        for (index, column) in COLUMNS.iter().enumerate() {
            let has = |columns: u32| columns & (1 << index) != 0;
            if !has(batch.columns()) {
                continue;
            }
            if !has(schema.all) {
                return Err(format!("the schema does not describe `{}`", column.name));
            }
            let json = batch.json(index);
            let fits = match (json.and_then(|json| json.bytes().next()), column.kind) {
                (None, _) => has(schema.nullable),
                (Some(b'"'), FieldType::Text | FieldType::Date)
                | (Some(b't' | b'f'), FieldType::Boolean)
                // Targets convert a number in a text.
                | (Some(b'"' | b'-' | b'0'..=b'9'), FieldType::Decimal) => true,
                (Some(b'-' | b'0'..=b'9'), FieldType::Integer) => json.is_some_and(is_whole),
                _ => false,
            };
            if !fits {
                let name = column.name;
                return Err(format!("`{name}` is not of the type that the schema says"));
            }
        }
        Ok(())
    }

    /// Checks the end of the messages.
    pub(crate) fn finish(&self) -> Result<(), &'static str> {
        if self.has_ended {
            return Ok(());
        }
        Err("its last message is not a STATE")
    }
}

impl StateValue {
    fn is_valid(&self, stream: Option<&str>) -> bool {
        self.bookmarks.iter().all(|(name, bookmark)| {
            Some(name.as_str()) == stream
                && bookmark.replication_key == COLUMNS[CREATION_DATE].name
                && Timestamp::parse(&bookmark.replication_key_value).is_some()
        })
    }
}

/// Returns the columns that a schema describes. Each must have the type of its field.
fn schema_columns(message: &Message<'_>) -> Result<SchemaColumns, String> {
    let schema = message.schema.as_ref().ok_or("the message has no schema")?;
    let keys = message.key_properties.as_deref().unwrap_or_default();
    if keys != [COLUMNS[BATCH_ID].name] {
        return Err("the key of the schema is not `batch_id`".to_owned());
    }
    let mut columns = SchemaColumns::default();
    for (name, property) in &schema.properties {
        let column = find_column(name).ok_or_else(|| {
            format!("the schema describes `{name}`, which is not a field of a batch")
        })?;
        let (kind, format) = match COLUMNS[column].kind {
            FieldType::Text => ("string", None),
            FieldType::Date => ("string", Some("date-time")),
            FieldType::Integer => ("integer", None),
            FieldType::Decimal => ("number", None),
            FieldType::Boolean => ("boolean", None),
        };
        let has_type = property.r#type.iter().any(|found| found == kind);
        let is_known = |found: &String| found == kind || found == "null";
        if !has_type
            || !property.r#type.iter().all(is_known)
            || property.format.as_deref() != format
        {
            return Err(format!("the schema has the wrong type for `{name}`"));
        }
        columns.all |= 1 << column;
        let is_nullable = property.r#type.iter().any(|found| found == "null");
        columns.nullable |= u32::from(is_nullable) << column;
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type":"SCHEMA","stream":"batches","schema":{"type":"object","properties":{"batch_id":{"type":["string"]},"batch_creation_date":{"type":["null","string"],"format":"date-time"},"avg_germination_rate":{"type":["null","number"]}}},"key_properties":["batch_id"]}"#;
    const STATE: &str = r#"{"type":"STATE","value":{"bookmarks":{"batches":{"replication_key":"batch_creation_date","replication_key_value":"2026-05-01T06:00:00Z"}}}}"#;
    const RECORD: &str = r#"{"type":"RECORD","stream":"batches","record":{"batch_id":"a"}}"#;

    #[test]
    fn a_schema_must_come_first_and_describe_the_fields() {
        let mut stream = SingerStream::default();
        assert!(stream.read(RECORD).is_err(), "no schema yet");
        assert_eq!(stream.read(SCHEMA), Ok(None));
        assert_eq!(stream.read(RECORD), Ok(Some(r#"{"batch_id":"a"}"#)));
        assert!(stream.finish().is_err(), "cut short");
        assert_eq!(stream.read(STATE), Ok(None));
        assert_eq!(stream.finish(), Ok(()));
        assert_eq!(
            stream.read(r#"{"type":"STATE","value":{"bookmarks":{}}}"#),
            Ok(None)
        );
        for (from, to) in [
            ("batches", "botches"),
            ("_date", "_data"),
            ("2026", "2O26"),
            ("bookmarks", "bookmark"),
            ("{\"bookmarks", "{\"x\":1,\"bookmarks"),
        ] {
            assert!(stream.read(&STATE.replace(from, to)).is_err(), "{to}");
        }
        assert!(stream.read(&RECORD.replace("batches", "botches")).is_err());
        assert!(stream.read(&RECORD.replace("RECORD", "RECURD")).is_err());
        assert_eq!(stream.read(SCHEMA), Ok(None), "once more");
        assert!(stream.read(&SCHEMA.replace("batches", "botches")).is_err());
        let activate = r#"{"type":"ACTIVATE_VERSION","stream":"batches","version":2}"#;
        assert!(stream.read(activate).is_err());
        for (text, fits) in [
            (r#"{"batch_id":"a","more":1}"#, true),
            (
                r#"{"batch_id":"a","avg_germination_rate":1.50,"batch_creation_date":null}"#,
                true,
            ),
            (r#"{"batch_id":"a","comment":"x"}"#, false),
            (r#"{"batch_id":"a","avg_germination_rate":true}"#, false),
        ] {
            let batch = Batch::read_part(text).batch.expect("a batch");
            assert_eq!(stream.check(&batch).is_ok(), fits, "{text}");
        }
        let strict = SCHEMA.replace("[\"null\",\"number\"]", "[\"number\"]");
        assert_eq!(stream.read(&strict), Ok(None));
        let null = Batch::read_part(r#"{"batch_id":"a","avg_germination_rate":null}"#);
        assert!(stream.check(&null.batch.expect("a batch")).is_err());
    }

    #[test]
    fn a_schema_that_does_not_match_is_refused() {
        for (from, to) in [
            ("avg_germination_rate", "avg_germinatiom_rate"),
            ("\"number\"", "\"string\""),
            ("date-time", "date-tine"),
            ("\"format\"", "\"formax\""),
            ("[\"batch_id\"]", "[]"),
            ("\"properties\"", "\"propertias\""),
            ("\"stream\"", "\"strean\""),
            ("\"properties\"", "\"required\":[\"x\"],\"properties\""),
            ("\"format\"", "\"minLength\":99,\"format\""),
            ("\"object\"", "\"array\""),
        ] {
            let forged = SCHEMA.replacen(from, to, 1);
            assert_ne!(forged, SCHEMA);
            assert!(SingerStream::default().read(&forged).is_err(), "{forged}");
        }
    }
}
