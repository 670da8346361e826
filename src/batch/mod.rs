//! A batch: one tray scan session, as the service sent it, and everything computed from it.
//!
//! Start with `columns.rs` ([`COLUMNS`] is the only list of fields) and `indexed.rs`. A [`Batch`] keeps its
//! text as received, with an index of its values, so that nothing is lost before the output: no decimal
//! becomes a float, and unknown fields are kept. `json` finds batches on a page and values in a batch.
//! Requests belong to `fetch`, output formats to `formats`.

mod columns;
mod indexed;
// Titles, units and descriptions of the fields.
mod meaning;

pub(crate) mod json;
pub(crate) mod page;

// Values: how to parse and compare them, and their canonical form.
mod decimal;
mod timestamp;
pub(crate) mod values;

// Dates, their ranges and time zones, and the conditions of `--where`, `--sort` and `--fields`.
pub(crate) mod date;
pub(crate) mod filter;
pub(crate) mod range;
mod zone;

// Duplicates within a run, and the digest of a set of batches.
pub(crate) mod dedup;
pub(crate) mod digest;

pub(crate) use columns::{
    ALL_COLUMNS, ANALYSIS_LINK, BATCH_ID, BATCH_NAME, COEFFICIENT_OF_VARIATION, COLUMNS, COMMENT,
    CREATION_DATE, CROP_TYPE, Column, FieldType, GERMINATED, GERMINATION_RATE, NON_GERMINATED,
    NON_USABLE, NUMBER_OF_IMAGES, SCANNED_BY, SEEDLING_SIZE, TOTAL_CELLS, USABLE, USABLE_RATE,
    WARNINGS, column_bits, columns_of_bits, find_column,
};
pub(crate) use decimal::{exact_float, is_number, is_whole};
pub(crate) use indexed::Batch;
pub(crate) use json::pieces::Pieces;
pub(crate) use json::strings::{few_escapes, unquote};
pub(crate) use meaning::{MEANINGS, Meaning, find_heading};
pub(crate) use page::Page;
pub(crate) use timestamp::{Timestamp, canonical_date, whole_second};
pub(crate) use values::{PlainRow, Representation, Values, canonical, canonical_json};
pub(crate) use zone::Zone;

/// A batch with usual values in all fields except these, which are in JSON.
#[cfg(test)]
pub(crate) fn sample(changes: &[(&str, &str)]) -> Batch {
    let field = |column: &Column| {
        let changed = changes.iter().find(|(name, _)| *name == column.name);
        let usual = match column.kind {
            FieldType::Text => "\"Tomato\"",
            FieldType::Date => "\"2026-05-01T06:00:00.5Z\"",
            FieldType::Integer => "12",
            FieldType::Decimal => "\"87.50\"",
            FieldType::Boolean => "false",
        };
        let value = changed.map_or(usual, |(_, value)| value);
        format!("\"{}\":{value}", column.name)
    };
    let fields: Vec<String> = COLUMNS.iter().map(field).collect();
    let read = Batch::read(&format!("{{{}}}", fields.join(",")));
    read.batch.expect("a batch")
}

/// A batch with this id that has only the required fields, and `more`: `,"comment":"a"`.
#[cfg(test)]
pub(crate) fn minimal(id: &str, more: &str) -> Batch {
    let text = format!(
        r#"{{"batch_id":"{id}","batch_name":"n","batch_creation_date":"2026-05-01T06:00:00Z","number_of_images":1,"warnings":true{more}}}"#
    );
    Batch::read(&text).batch.expect("a batch")
}
