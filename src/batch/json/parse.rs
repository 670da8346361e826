//! Parses a batch: finds the values in its text, and checks them against the interface.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr, memrchr};

use super::flaw::{FIELD_LIMIT, Flaw, NAME_LIMIT, flaw};
use super::index::{GeneralIndex, Index, WideSpans};
use crate::batch::values::Members;
use crate::batch::{BATCH_ID, Batch, COLUMNS, FieldType, find_column};

/// A parsed batch with its flaws.
pub(crate) struct ParsedBatch {
    /// `None` if there is no object, or if it has no id although one is required.
    pub(crate) batch: Option<Batch>,
    pub(crate) flaws: Vec<Flaw>,
    /// Nullable fields that are absent, one bit each.
    pub(crate) absent: u32,
}

impl Batch {
    /// Parses a batch from `text`, an object without whitespace between tokens.
    pub(crate) fn read(text: &str) -> ParsedBatch {
        let mut read = Self::read_part(text);
        let has_id = |batch: &Self| batch.index.flawed() & (1 << BATCH_ID) == 0;
        read.batch = read.batch.filter(has_id);
        read
    }

    /// Like [`Batch::read`], but the id may be absent, as `--fields` may write it.
    pub(crate) fn read_part(text: &str) -> ParsedBatch {
        let fields = match serde_json::from_str(text) {
            Ok(Members(fields)) => fields,
            Err(error) => {
                let why = reason(&error);
                let flaw = if error.is_data() {
                    Flaw::NoObject(why)
                } else {
                    Flaw::NotJson(why)
                };
                return ParsedBatch {
                    batch: None,
                    flaws: vec![flaw],
                    absent: 0,
                };
            }
        };
        let mut flaws = Vec::new();
        let mut found: [Option<&str>; COLUMNS.len()] = [None; COLUMNS.len()];
        let mut unknown: Vec<(u32, u32)> = Vec::new();
        // The place of each name in `unknown`.
        let mut places: HashMap<&str, usize> = HashMap::new();
        if fields.len() > FIELD_LIMIT {
            flaws.push(Flaw::TooManyFields);
        }
        let mut previous_end = 0;
        for (name, value) in &fields {
            let value_span = span(text, value.get());
            let between = previous_end..value_span.start;
            previous_end = value_span.end;
            let repeated = if let Some(column) = find_column(name) {
                found[column].replace(value.get()).is_some()
            } else {
                let name_span = name_span(text, between);
                let spans = [name_span, value_span].map(|span| (span.start, span.end));
                let earlier = places.get(&**name).copied();
                if let Some(place) = earlier {
                    // The last value counts, as for known fields.
                    unknown[place..place + 2].copy_from_slice(&spans);
                } else {
                    places.insert(name, unknown.len());
                    unknown.extend(spans);
                }
                earlier.is_some()
            };
            if repeated {
                flaws.push(Flaw::Repeated(name.clone().into_owned()));
            }
            if name.len() > NAME_LIMIT {
                flaws.push(Flaw::LongName(name.clone().into_owned()));
            }
        }
        let mut spans = WideSpans::default();
        let (mut flawed, mut absent, mut columns, mut escaped) = (0, 0, 0, 0);
        for (index, column) in COLUMNS.iter().enumerate() {
            match flaw(column, found[index]) {
                Some(flaw) => {
                    flaws.push(flaw);
                    flawed |= 1 << index;
                }
                None if found[index].is_none() => absent |= 1 << index,
                None => {}
            }
            if let Some(value) = found[index] {
                let Range { start, end } = span(text, value);
                spans[index] = (start, end);
                columns |= 1 << index;
                let is_escaped = column.kind != FieldType::Text && value.contains('\\');
                escaped |= u32::from(is_escaped) << index;
            }
        }
        let batch = Some(Self {
            page: Arc::new(text.to_owned()),
            object: 0..offset(text.len()),
            index: Index::Other(
                GeneralIndex::default()
                    .replace(&spans, columns, &unknown)
                    .with_flaws(flawed, escaped),
            ),
        });
        ParsedBatch {
            batch,
            flaws,
            absent,
        }
    }
}

/// Returns the position of `part`, a slice of `text`.
fn span(text: &str, part: &str) -> Range<u32> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    offset(start)..offset(start + part.len())
}

fn offset(position: usize) -> u32 {
    u32::try_from(position).expect("a batch is at most a megabyte")
}

/// Returns the position of the name, with its quotes, in `between`: the text from the end of one value to the
/// start of the next. Apart from the name, it contains only a comma or brace, a colon and whitespace.
fn name_span(text: &str, between: Range<u32>) -> Range<u32> {
    let bytes = &text.as_bytes()[between.start as usize..between.end as usize];
    let first = memchr(b'"', bytes).unwrap_or_default();
    let last = memrchr(b'"', bytes).unwrap_or_default();
    between.start + offset(first)..between.start + offset(last + 1)
}

/// Returns the message of `serde_json` without line and column, which do not refer to the whole response.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ")
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Timestamp;

    /// A valid batch, as pairs of name and JSON text.
    fn right() -> Vec<(&'static str, &'static str)> {
        COLUMNS
            .iter()
            .map(|column| {
                let value = match column.kind {
                    FieldType::Text => "\"te\\\"xt\"",
                    FieldType::Date => "\"2026-05-01T06:00:00.5Z\"",
                    FieldType::Integer => "12",
                    FieldType::Decimal => "\"87.50\"",
                    FieldType::Boolean => "true",
                };
                (column.name, value)
            })
            .collect()
    }

    fn read(fields: &[(&str, &str)]) -> ParsedBatch {
        let fields: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect();
        Batch::read(&format!("{{{}}}", fields.join(",")))
    }

    /// Parses a valid batch in which `field` was replaced by `value`.
    fn with(field: &'static str, value: &'static str) -> Vec<Flaw> {
        let mut fields = right();
        fields.retain(|(name, _)| *name != field);
        fields.push((field, value));
        read(&fields).flaws
    }

    #[test]
    fn every_value_is_found_at_its_position() {
        let ParsedBatch {
            batch,
            flaws,
            absent,
        } = read(&right());
        let batch = batch.expect("a batch");
        assert_eq!((flaws, absent), (vec![], 0));
        for (index, (_, value)) in right().into_iter().enumerate() {
            assert_eq!(batch.json(index), Some(value));
        }
        assert_eq!(batch.id(), "te\"xt");
        assert_eq!(batch.created(), Timestamp::parse("2026-05-01T06:00:00.5Z"));
    }

    #[test]
    fn unknown_fields_are_kept_with_their_names_as_written() {
        let mut fields = right();
        fields.insert(3, ("o\\\"d:d\\\\", "{\"a\":[1,null]}"));
        fields.push(("", "1.0"));
        let batch = read(&fields).batch.expect("a batch");
        let unknown: Vec<(&str, &str)> = batch.unknown().collect();
        assert_eq!(
            unknown,
            [("\"o\\\"d:d\\\\\"", "{\"a\":[1,null]}"), ("\"\"", "1.0")]
        );
    }

    #[test]
    fn a_nullable_field_may_be_null_or_absent() {
        assert_eq!(with("comment", "null"), []);
        let mut fields = right();
        fields.retain(|(name, _)| *name != "comment");
        let read = read(&fields);
        let comment = 1 << find_column("comment").expect("a field");
        assert_eq!((read.flaws, read.absent), (vec![], comment));
    }

    #[test]
    fn what_breaks_the_interface_is_named() {
        use Flaw::{EmptyId, Missing, Null, Repeated, TooLarge, WrongType};

        assert_eq!(with("batch_name", "null"), [Null("batch_name")]);
        assert_eq!(with("batch_id", "\"\""), [EmptyId]);
        for value in ["9223372036854775808", "-9223372036854775809"] {
            let flaws = with("total_cells_per_tray", value);
            assert_eq!(flaws, [TooLarge("total_cells_per_tray")]);
        }
        for (field, kind, value) in [
            ("batch_id", FieldType::Text, "7"),
            ("comment", FieldType::Text, "\"\\ud800\""),
            (
                "batch_creation_date",
                FieldType::Date,
                "\"2026-05-01T06:00:00+02:00\"",
            ),
            ("number_of_images", FieldType::Integer, "12.0"),
            ("number_of_images", FieldType::Integer, "\"12\""),
            ("avg_germination_rate", FieldType::Decimal, "87.50"),
            ("avg_germination_rate", FieldType::Decimal, "\"87,50\""),
            ("avg_germination_rate", FieldType::Decimal, "\"\""),
            ("warnings", FieldType::Boolean, "\"true\""),
            ("warnings", FieldType::Boolean, "0"),
        ] {
            assert_eq!(with(field, value), [WrongType(field, kind)], "{value}");
        }
        let mut fields = right();
        fields.retain(|(name, _)| *name != "warnings");
        assert_eq!(read(&fields).flaws, [Missing("warnings")]);
        let mut fields = right();
        fields.extend([("comment", "null"), ("x", "1"), ("x", "1")]);
        assert_eq!(
            read(&fields).flaws,
            [Repeated("comment".into()), Repeated("x".into())]
        );
        fields.extend([("y", "1"), ("x", "2")]);
        let batch = read(&fields).batch.expect("a batch");
        assert_eq!(batch.extra().as_deref(), Some(r#"{"x":2,"y":1}"#));
    }

    /// Parses a valid batch in which these fields were replaced.
    fn with_more(more: &str) -> ParsedBatch {
        let fields = right();
        let fields = fields
            .iter()
            .map(|(name, value)| format!("\"{name}\":{value}"));
        let fields: Vec<String> = fields.collect();
        Batch::read(&format!("{{{},{more}}}", fields.join(",")))
    }

    // In quadratic time, each of these would take minutes to hours.
    #[test]
    fn time_grows_with_the_size_alone() {
        let size = 1_000_000;
        let names = [
            "\\\\".repeat(size / 2),
            "\\\"".repeat(size / 2),
            format!("{}\\\"", "\\\\".repeat(size / 2)),
            "x".repeat(size),
        ];
        for name in names {
            let read = with_more(&format!("\"{name}\":1"));
            let batch = read.batch.expect("a batch");
            let unknown: Vec<_> = batch.unknown().collect();
            assert_eq!(unknown, [(format!("\"{name}\"").as_str(), "1")]);
        }
        for value in [
            "9".repeat(size),
            format!("\"{}\"", "\\\\".repeat(size / 2)),
            format!("[{}0]", "0,".repeat(size / 2)),
        ] {
            let read = with_more(&format!("\"x\":{value}"));
            let batch = read.batch.expect("a batch");
            assert_eq!(batch.unknown().next(), Some(("\"x\"", value.as_str())));
        }
        // Names of equal length with a common prefix are the slowest to compare.
        let alike = "x".repeat(100);
        let many: Vec<String> = (0..200_000)
            .map(|number| format!("\"{alike}{number:06}\":1"))
            .collect();
        let read = with_more(&many.join(","));
        assert_eq!(read.batch.expect("a batch").unknown().count(), many.len());
    }

    #[test]
    fn names_and_their_number_are_limited() {
        let long = |length: usize| "n".repeat(length);
        assert_eq!(with_more(&format!("\"{}\":1", long(NAME_LIMIT))).flaws, []);
        let read = with_more(&format!("\"{}\":1", long(NAME_LIMIT + 1)));
        assert_eq!(read.flaws, [Flaw::LongName(long(NAME_LIMIT + 1))]);
        assert!(read.batch.is_some(), "`--lenient` keeps it");

        let many = |count: usize| {
            let fields: Vec<String> = (0..count)
                .map(|number| format!("\"f{number}\":1"))
                .collect();
            with_more(&fields.join(","))
        };
        assert_eq!(many(FIELD_LIMIT - COLUMNS.len()).flaws, []);
        let read = many(FIELD_LIMIT - COLUMNS.len() + 1);
        assert_eq!(read.flaws, [Flaw::TooManyFields]);
        assert!(read.batch.is_some(), "`--lenient` keeps it");
    }

    #[test]
    fn names_are_found_between_blanks_too() {
        let read = Batch::read("{ \"batch_id\" : \"a\" , \"x y\" :\t1\n,\"z\": [ 2 ] }");
        let batch = read.batch.expect("a batch");
        let unknown: Vec<_> = batch.unknown().collect();
        assert_eq!(unknown, [("\"x y\"", "1"), ("\"z\"", "[ 2 ]")]);
    }

    #[test]
    fn a_batch_without_an_identifier_is_none() {
        let mut fields = right();
        fields.remove(BATCH_ID);
        assert!(read(&fields).batch.is_none());
        for text in ["null", "5", "[]"] {
            let read = Batch::read(text);
            assert!(
                read.batch.is_none() && matches!(read.flaws[..], [Flaw::NoObject(_)]),
                "{text}"
            );
        }
        for text in [
            "{",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":NaN}",
            "{\"\\ud800\":1}",
        ] {
            let read = Batch::read(text);
            assert!(
                read.batch.is_none() && matches!(read.flaws[..], [Flaw::NotJson(_)]),
                "{text}"
            );
        }
    }
}
