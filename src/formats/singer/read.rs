//! Reads Singer messages. A target loads what the schema describes, so the schema must match the batches.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::batch::{BATCH_ID, Batch, COLUMNS, FieldType, find_column};

/// The stream, as its messages describe it so far.
#[derive(Default)]
pub(crate) struct SingerStream {
    /// The name of the stream, and the columns of its schema, one bit each.
    schema: Option<(String, u32)>,
}

#[derive(Deserialize)]
struct Message<'a> {
    r#type: String,
    stream: Option<String>,
    #[serde(borrow)]
    record: Option<&'a RawValue>,
    schema: Option<ObjectSchema>,
    key_properties: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct ObjectSchema {
    properties: BTreeMap<String, Property>,
}

#[derive(Deserialize)]
struct Property {
    r#type: Vec<String>,
    format: Option<String>,
}

impl SingerStream {
    /// Reads a message; returns its record if it has one.
    pub(crate) fn read<'a>(&mut self, text: &'a str) -> Result<Option<&'a str>, String> {
        let message: Message<'a> =
            serde_json::from_str(text).map_err(|_| "it is not a Singer message".to_owned())?;
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
            ("STATE", ..) => Ok(None),
            ("ACTIVATE_VERSION", ..) => {
                Err("the message makes a target delete other batches".to_owned())
            }
            ("SCHEMA", None, _) => Err("the schema has no stream".to_owned()),
            ("RECORD", ..) => Err("no schema describes the stream of the record".to_owned()),
            _ => Err("it is not a Singer message".to_owned()),
        }
    }

    /// Checks that the schema describes each field of `batch`.
    pub(crate) fn check(&self, batch: &Batch) -> Result<(), String> {
        let columns = self.schema.as_ref().map_or(0, |(_, columns)| *columns);
        match (batch.columns() & !columns).trailing_zeros() as usize {
            column if column < COLUMNS.len() => Err(format!(
                "the schema does not describe `{}`",
                COLUMNS[column].name
            )),
            _ => Ok(()),
        }
    }
}

/// Returns the columns that a schema describes, one bit each. Each must have the type of its field.
fn schema_columns(message: &Message<'_>) -> Result<u32, String> {
    let schema = message.schema.as_ref().ok_or("the message has no schema")?;
    let keys = message.key_properties.as_deref().unwrap_or_default();
    if keys != [COLUMNS[BATCH_ID].name] {
        return Err("the key of the schema is not `batch_id`".to_owned());
    }
    let mut columns = 0;
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
        columns |= 1 << column;
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type":"SCHEMA","stream":"batches","schema":{"type":"object","properties":{"batch_id":{"type":["string"]},"batch_creation_date":{"type":["null","string"],"format":"date-time"},"avg_germination_rate":{"type":["null","number"]}}},"key_properties":["batch_id"]}"#;
    const RECORD: &str = r#"{"type":"RECORD","stream":"batches","record":{"batch_id":"a"}}"#;

    #[test]
    fn a_schema_must_come_first_and_describe_the_fields() {
        let mut stream = SingerStream::default();
        assert!(stream.read(RECORD).is_err(), "no schema yet");
        assert_eq!(stream.read(SCHEMA), Ok(None));
        assert_eq!(stream.read(RECORD), Ok(Some(r#"{"batch_id":"a"}"#)));
        assert_eq!(stream.read(r#"{"type":"STATE","value":{}}"#), Ok(None));
        assert!(stream.read(&RECORD.replace("batches", "botches")).is_err());
        assert!(stream.read(&RECORD.replace("RECORD", "RECURD")).is_err());
        assert_eq!(stream.read(SCHEMA), Ok(None), "once more");
        assert!(stream.read(&SCHEMA.replace("batches", "botches")).is_err());
        let activate = r#"{"type":"ACTIVATE_VERSION","stream":"batches","version":2}"#;
        assert!(stream.read(activate).is_err());
        let batch = |text: &str| Batch::read_part(text).batch.expect("a batch");
        assert_eq!(stream.check(&batch(r#"{"batch_id":"a","more":1}"#)), Ok(()));
        assert!(
            stream
                .check(&batch(r#"{"batch_id":"a","comment":"x"}"#))
                .is_err()
        );
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
        ] {
            let forged = SCHEMA.replacen(from, to, 1);
            assert_ne!(forged, SCHEMA);
            assert!(SingerStream::default().read(&forged).is_err(), "{forged}");
        }
    }
}
