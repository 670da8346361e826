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
pub(crate) use json::strings::unquote;
pub(crate) use meaning::{MEANINGS, Meaning, find_heading};
pub(crate) use page::Page;
pub(crate) use timestamp::{Timestamp, canonical_date, whole_second};
pub(crate) use values::{PlainRow, Representation, Values, canonical, canonical_json};
pub(crate) use zone::Zone;
