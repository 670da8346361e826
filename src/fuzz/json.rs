//! Responses and batches, with `serde_json` as the judge.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::batch::json::split::{Item, ParseError, Splitter};
use crate::batch::json::{Flaw, Shape};
use crate::batch::{Batch, COLUMNS, FieldType, find_column, unquote};

/// What a splitter makes of a response.
#[derive(Debug, PartialEq)]
struct SplitResponse {
    batches: Vec<String>,
    end: Result<Option<String>, ParseError>,
    exceeded_limit: Option<String>,
}

/// A response is split in the same way however it arrives, and accepted if and only if `serde_json` accepts it.
pub fn split(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    for shape in [Shape::Flat, Shape::Page, Shape::Lines] {
        let whole = split_pieces(shape, text, usize::MAX);
        for size in [1, 2, 3, 5, 64] {
            assert_eq!(split_pieces(shape, text, size), whole, "pieces of {size}");
        }
        let expected = match shape {
            Shape::Flat => serde_json::from_str(text)
                .ok()
                .map(|batches| (batches, None)),
            Shape::Page => serde_json::from_str(text).ok().and_then(JudgedPage::parts),
            Shape::Lines => {
                let batches = serde_json::Deserializer::from_str(text).into_iter();
                let batches: Result<Vec<&RawValue>, _> = batches.collect();
                batches.ok().map(|batches| (batches, None))
            }
        };
        match (&whole.end, expected) {
            (Ok(next_token), Some((batches, expected))) => {
                let batches: Vec<String> = batches.iter().map(|raw| compact(raw.get())).collect();
                assert_eq!(whole.batches, batches);
                assert_eq!(*next_token, expected);
            }
            (Ok(_), None) => panic!("{shape:?} is accepted, but is not valid"),
            // Batches one after another may need whitespace that JSON does not need.
            (Err(_), Some(_)) if shape == Shape::Lines => {}
            (Err(error), Some(_)) => assert!(whole.exceeded_limit.is_some(), "{shape:?}: {error}"),
            (Err(_), None) => {}
        }
    }
}

fn split_pieces(shape: Shape, text: &str, size: usize) -> SplitResponse {
    let mut splitter = Splitter::new(shape);
    let mut batches = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = (size.min(rest.len())..=rest.len()).find(|end| rest.is_char_boundary(*end));
        let (piece, behind) = rest.split_at(end.unwrap_or(rest.len()));
        rest = behind;
        let fed = splitter.feed(&Arc::new(piece.to_owned()), &mut |item| {
            let text = match &item {
                Item::Batch(batch) => batch.text(),
                Item::Text(text) => text,
            };
            // The caller parses each batch.
            if serde_json::from_str::<IgnoredAny>(text).is_err() {
                return Err(ParseError::Broken("a batch is malformed".to_owned()));
            }
            batches.push(text.to_owned());
            Ok(())
        });
        if let Err(error) = fed {
            return SplitResponse {
                batches,
                end: Err(error),
                exceeded_limit: splitter.exceeded_limit().map(String::from),
            };
        }
    }
    SplitResponse {
        batches,
        end: splitter.finish(),
        exceeded_limit: None,
    }
}

/// A response of version 2.
#[derive(Deserialize)]
struct JudgedPage<'a> {
    #[serde(borrow)]
    data: Vec<&'a RawValue>,
    next_token: Value,
}

impl<'a> JudgedPage<'a> {
    fn parts(self) -> Option<(Vec<&'a RawValue>, Option<String>)> {
        match self.next_token {
            Value::Null => Some((self.data, None)),
            Value::String(next_token) => Some((self.data, Some(next_token))),
            _ => None,
        }
    }
}

/// Removes whitespace between the tokens of valid JSON.
fn compact(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    let is_kept = |character: &char| {
        if in_string {
            in_string = escaped || *character != '"';
            escaped = !escaped && *character == '\\';
            return true;
        }
        in_string = *character == '"';
        !character.is_ascii_whitespace()
    };
    json.chars().filter(is_kept).collect()
}

/// A batch has the fields that `serde_json` finds, and the fast path agrees with the general one.
pub fn batch(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    let parsed = Batch::read_part(text);
    let judged = serde_json::from_str::<BTreeMap<String, &RawValue>>(text).ok();
    let is_object = !matches!(parsed.flaws[..], [Flaw::NotJson(_) | Flaw::NoObject(_), ..]);
    assert_eq!(is_object, judged.is_some(), "{:?}", parsed.flaws);
    if let (Some(batch), Some(judged)) = (&parsed.batch, &judged) {
        compare_fields(batch, judged, &parsed.flaws);
    }
    let page = Arc::new(format!("[{text},{text}]"));
    if let Some((scanned, length)) = Batch::scan(&page, 1) {
        assert_eq!(scanned.text(), compact(&page[1..=length]));
        let read = Batch::read(scanned.text());
        assert_eq!((&read.flaws[..], read.absent), (&[][..], scanned.absent()));
        let read = read.batch.expect("a batch without flaws");
        assert_eq!(scanned.text(), read.text());
        assert_eq!(scanned.canonical(), read.canonical());
        for column in 0..COLUMNS.len() {
            assert_eq!(scanned.member(column), read.member(column));
            assert_eq!(scanned.typed(column), read.typed(column));
        }
        assert!(read.unknown().eq(scanned.unknown()));
    }
}

fn compare_fields(batch: &Batch, judged: &BTreeMap<String, &RawValue>, flaws: &[Flaw]) {
    for (column, field) in COLUMNS.iter().enumerate() {
        let value = judged.get(field.name).map(|raw| raw.get());
        assert_eq!(batch.member(column), value, "{}", field.name);
        let Some(typed) = batch.typed(column) else {
            continue;
        };
        let value: Value = serde_json::from_str(value.expect("a value")).expect("a typed value");
        match field.kind {
            FieldType::Text | FieldType::Date | FieldType::Decimal => {
                assert_eq!(value.as_str(), Some(typed.as_ref()));
            }
            FieldType::Boolean => assert_eq!(value.as_bool(), typed.parse().ok()),
            // `serde_json` reads -0 as a floating-point number.
            FieldType::Integer => assert!(value.is_i64() || typed == "-0", "{value}"),
        }
    }
    let unknown: BTreeMap<String, &str> = batch
        .unknown()
        .map(|(name, value)| (unquote(name).into_owned(), value))
        .collect();
    let expected: BTreeMap<String, &str> = judged
        .iter()
        .filter(|(name, _)| find_column(name).is_none())
        .map(|(name, value)| (name.clone(), value.get()))
        .collect();
    assert_eq!(unknown, expected);
    if flaws.is_empty() {
        assert_eq!(batch.unknown().count(), unknown.len());
    }
}
