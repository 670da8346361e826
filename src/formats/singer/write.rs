//! Writes `singer`: a SCHEMA message, a RECORD per batch, and a STATE with the bookmark for the next run.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::batch::{BATCH_ID, Batch, COLUMNS, CREATION_DATE, FieldType, Timestamp};
use crate::error::Failure;
use crate::formats::json::object::Objects;
use crate::formats::{BatchWriter, ExportOutcome, Finished, WriterOptions, WriterReport};
use crate::secret;
use crate::storage::EncodedOutput;

/// The name of the only stream.
const STREAM: &str = "batches";

pub(crate) struct Singer {
    output: EncodedOutput,
    objects: Objects,
    columns: Vec<usize>,
    is_started: bool,
    /// What is before and after the object in the message of a batch.
    record_start: String,
    record_end: String,
    /// The bookmark is never later.
    complete_until: Option<String>,
    /// The bookmark of an earlier run.
    earlier: Option<String>,
    /// The latest creation date so far, or the bookmark of an earlier run.
    latest: Option<String>,
}

impl Singer {
    pub(crate) fn new(output: EncodedOutput, options: WriterOptions) -> Self {
        let (fields, extracted) = (options.fields, options.extracted);
        Self {
            output,
            columns: fields.columns.clone(),
            objects: Objects::new(fields, true, true),
            is_started: false,
            record_start: format!(r#"{{"type":"RECORD","stream":"{STREAM}","record":"#),
            record_end: format!(",\"time_extracted\":\"{extracted}\"}}\n"),
            complete_until: options.complete_until,
            latest: options.bookmark.clone(),
            earlier: options.bookmark,
        }
    }

    /// Writes the schema, before anything else.
    fn write_schema(&mut self) -> Result<(), Failure> {
        if std::mem::replace(&mut self.is_started, true) {
            return Ok(());
        }
        let columns = self.columns.iter().copied();
        let properties: Map<String, Value> = columns
            .map(|column| (COLUMNS[column].name.to_owned(), schema(column)))
            .collect();
        let has_date = self.columns.contains(&CREATION_DATE);
        let bookmarks = has_date.then_some(COLUMNS[CREATION_DATE].name);
        self.write_message(&json!({
            "type": "SCHEMA",
            "stream": STREAM,
            "schema": {"type": "object", "properties": properties},
            "key_properties": [COLUMNS[BATCH_ID].name],
            "bookmark_properties": bookmarks.as_slice(),
        }))
    }

    fn write_message(&mut self, message: &Value) -> Result<(), Failure> {
        writeln!(self.output, "{message}")
    }
}

/// Returns the JSON Schema of a field. Only the key is never null: with `--lenient`, any other field may be.
fn schema(column: usize) -> Value {
    let kind = match COLUMNS[column].kind {
        _ if column == BATCH_ID => return json!({"type": ["string"]}),
        FieldType::Date => return json!({"type": ["null", "string"], "format": "date-time"}),
        FieldType::Text => "string",
        FieldType::Integer => "integer",
        FieldType::Decimal => "number",
        FieldType::Boolean => "boolean",
    };
    json!({"type": ["null", kind]})
}

impl BatchWriter for Singer {
    fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        self.write_schema()?;
        let object = self.objects.object(batch);
        self.output.write_all(self.record_start.as_bytes())?;
        self.output.write_all(object.as_bytes())?;
        self.output.write_all(self.record_end.as_bytes())?;
        if let Some(created) = batch.typed(CREATION_DATE) {
            let created_at = Timestamp::parse(&created);
            let is_later = |known: &String| Timestamp::parse(known) < created_at;
            if self.latest.as_ref().is_none_or(is_later) {
                self.latest = Some(created.into_owned());
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.output.flush()
    }

    /// Writes the state after the last batch: a run that stops earlier has no state.
    fn finish(mut self: Box<Self>, outcome: &ExportOutcome<'_>) -> Finished {
        self.write_schema()?;
        let bookmark = if outcome.is_cut {
            // `--limit` may have left out batches that are older than the latest one.
            self.earlier.take()
        } else {
            // With a later bookmark, the next run would skip batches. None is before all others.
            let time = |date: &Option<String>| date.as_deref().and_then(Timestamp::parse);
            let latest = self.latest.take();
            std::cmp::min_by_key(latest, self.complete_until.take(), time)
        };
        let bookmarks = match bookmark {
            Some(bookmark) => json!({STREAM: {
                "replication_key": COLUMNS[CREATION_DATE].name,
                "replication_key_value": bookmark,
            }}),
            None => json!({}),
        };
        self.write_message(&json!({"type": "STATE", "value": {"bookmarks": bookmarks}}))?;
        Ok((self.output, WriterReport::default()))
    }
}

/// The state that an earlier run ended with.
pub(crate) struct SingerState {
    bookmark: Option<String>,
}

impl SingerState {
    /// Reads the last STATE in the file at `path`, as a target emits it or as it was written. An empty file is
    /// the state before the first run.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let message = format!("cannot read the state file `{name}`");
            Failure::usage(message, "for a first run, pass an empty file").caused_by(error)
        })?;
        // PowerShell writes a byte order mark.
        let text = text.trim_start_matches('\u{feff}');
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        // A file that was formatted for people may have its object on several lines.
        let value: Value = match last {
            None => return Ok(Self { bookmark: None }),
            Some(last) => serde_json::from_str(last)
                .or_else(|_| serde_json::from_str(text))
                .map_err(|error| no_state(path).caused_by(error))?,
        };
        let value = value.get("value").unwrap_or(&value);
        // Many orchestrators pass `{}` before the first run.
        if value.as_object().is_some_and(Map::is_empty) {
            return Ok(Self { bookmark: None });
        }
        let bookmarks = value.get("bookmarks").and_then(Value::as_object);
        let bookmark = match bookmarks.ok_or_else(|| no_state(path))?.get(STREAM) {
            None | Some(Value::Null) => return Ok(Self { bookmark: None }),
            Some(bookmark) if bookmark.is_object() => bookmark,
            Some(_) => return Err(no_state(path)),
        };
        let key = COLUMNS[CREATION_DATE].name;
        match &bookmark["replication_key"] {
            Value::Null => {}
            Value::String(other) if other == key => {}
            other => {
                let message = format!(
                    "`{name}` is a state with the replication key {}, not `{key}`",
                    secret::brief(&other.to_string())
                );
                let hint = "it may be from another tap; for a first run, pass an empty file";
                return Err(Failure::usage(message, hint));
            }
        }
        let bookmark = match &bookmark["replication_key_value"] {
            Value::Null => None,
            Value::String(date) if Timestamp::parse(date).is_some() => Some(date.clone()),
            _ => return Err(no_state(path)),
        };
        Ok(Self { bookmark })
    }

    pub(crate) fn bookmark(&self) -> Option<String> {
        self.bookmark.clone()
    }

    /// Returns the second to start from: `lookback` before the bookmark.
    pub(crate) fn start(&self, lookback: Duration) -> Option<i64> {
        let reached = Timestamp::parse(self.bookmark.as_ref()?)?.second;
        let lookback = i64::try_from(lookback.as_secs()).unwrap_or(i64::MAX);
        // A year must have four digits.
        Some(reached.saturating_sub(lookback).max(Timestamp::FIRST))
    }
}

fn no_state(path: &Path) -> Failure {
    Failure::usage(
        format!("`{}` is not a state of `-f singer`", path.display()),
        "the file must contain the last STATE that a target emitted: {\"bookmarks\": …}",
    )
}
