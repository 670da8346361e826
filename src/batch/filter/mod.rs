//! What to select and in which order: `--where`, `--fields` and `--sort`.

// `--where`: what a condition is, how to read one, and what to say if nothing matches.
mod condition;
mod joins;
mod lookalikes;
mod mistakes;
mod parse;
mod unmatched;

mod fields;

mod sorting;

// The names of fields.
mod names;

pub(crate) use condition::Condition;
pub(crate) use fields::Fields;
pub(crate) use lookalikes::Lookalikes;
pub(crate) use sorting::Sorting;
pub(crate) use unmatched::Unmatched;

/// A batch with these values in JSON, and usual ones in the other fields.
#[cfg(test)]
fn test_batch(changes: &[(&str, &str)]) -> super::Batch {
    use super::{COLUMNS, FieldType};
    let field = |column: &super::Column| {
        let changed = changes.iter().find(|(name, _)| *name == column.name);
        let value = changed.map_or(
            match column.kind {
                FieldType::Text => "\"Tomato\"",
                FieldType::Date => "\"2026-05-01T06:00:00.5Z\"",
                FieldType::Integer => "12",
                FieldType::Decimal => "\"87.50\"",
                FieldType::Boolean => "false",
            },
            |(_, value)| value,
        );
        format!("\"{}\":{value}", column.name)
    };
    let fields: Vec<String> = COLUMNS.iter().map(field).collect();
    let read = super::Batch::read(&format!("{{{}}}", fields.join(",")));
    read.batch.expect("a batch")
}
