//! What users write: dates, `--where` conditions, and file names with placeholders.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use chrono::DateTime;
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};

use crate::batch::date::{self, Bound, Clock};
use crate::batch::filter::{Condition, Unmatched};
use crate::batch::range::{Range, written};
use crate::batch::{
    Batch, COLUMNS, FieldType, Timestamp, Zone, canonical_date, find_column, is_number,
};
use crate::export::{Crops, Template};

/// What dates refer to.
fn clock() -> Clock {
    clock_in("UTC")
}

fn clock_in(zone: &str) -> Clock {
    Clock {
        now: DateTime::from_timestamp(1_780_230_615, 0).expect("a date"),
        zone: Zone::parse(zone).expect("a zone"),
    }
}

/// A date means the same as in chrono, and after it was written in canonical form.
pub fn date(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let (first, second) = text.split_once('\n').unwrap_or((text, text));
    timestamp(first);
    timestamp(second);
    // With offsets to both sides, skipped midnights and a skipped day.
    for zone in ["UTC", "America/Sao_Paulo", "Pacific/Apia"] {
        let clock = clock_in(zone);
        for word in [first, second] {
            match date::parse(word, &clock) {
                Ok(Bound::Second(second)) => {
                    let again = date::parse(&written(second.timestamp()), &clock);
                    assert_eq!(again, Ok(Bound::Second(second)));
                }
                Ok(Bound::Period { first, past }) => {
                    assert!(first <= past && (first < past || zone != "UTC"));
                    assert_eq!(
                        date::parse_period(word, &clock),
                        Ok(Bound::Period { first, past })
                    );
                }
                Err(_) => assert!(date::parse_period(word, &clock).is_err()),
            }
        }
        if let Ok(range) = Range::parse(Some(first), Some(second), &clock) {
            let (start, end) = (range.start.expect("a start"), range.end.expect("an end"));
            assert!(start <= end && written(end).len() == "2026-05-01T06:00:00Z".len());
            assert_eq!(written(start).len(), written(end).len());
        }
    }
}

fn timestamp(text: &str) {
    let canonical = canonical_date(text);
    let Some(timestamp) = Timestamp::parse(text) else {
        assert!(matches!(canonical, Cow::Borrowed(same) if same == text));
        return;
    };
    assert_eq!(Timestamp::parse(&canonical).as_ref(), Some(&timestamp));
    assert!(matches!(canonical_date(&canonical), Cow::Borrowed(_)));
    assert_eq!(matches!(canonical, Cow::Borrowed(_)), canonical == text);
    let judged = DateTime::parse_from_rfc3339(text).expect("a date for chrono, too");
    let is_leap_second = text.contains("23:59:60");
    assert_eq!(
        timestamp.second,
        judged.timestamp() + i64::from(is_leap_second)
    );
    if let Some(microseconds) = timestamp.microseconds() {
        assert_eq!(microseconds, judged.timestamp_micros());
    }
}

/// A condition holds for a batch if a simple evaluator says so. The first line is the condition, the rest a batch.
pub fn condition(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let (expression, object) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(condition) = Condition::parse(expression, &clock()) else {
        return;
    };
    let default = r#"{"batch_id":"a","batch_name":"n","batch_creation_date":"2026-05-01T06:00:00.5Z","crop_type":"Tomato","number_of_images":12,"avg_germination_rate":"87.50","warnings":true}"#;
    for object in [object, default] {
        let Some(batch) = Batch::read(object).batch else {
            continue;
        };
        let holds = condition.holds(&batch);
        let mut unmatched = Unmatched::new(std::slice::from_ref(&condition)).expect("a condition");
        unmatched.add(&batch);
        assert!(unmatched.describe(&[expression.to_owned()]).is_some());
        let Ok(fields) = serde_json::from_str(object) else {
            continue;
        };
        if let Some(expected) = evaluate(expression.trim_start(), &fields) {
            assert_eq!(holds, expected, "{expression} for {object}");
        }
    }
}

/// Evaluates a valid condition; `None` if this evaluator cannot.
fn evaluate(expression: &str, fields: &Map<String, Value>) -> Option<bool> {
    let (negated, bare) = match expression.strip_prefix('!') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, expression),
    };
    let end = bare.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let (name, rest) = bare.split_at(end.unwrap_or(bare.len()));
    let kind = COLUMNS[find_column(name)?].kind;
    let value = fields.get(name).and_then(|value| typed(kind, value));
    let rest = rest.trim_start();
    if rest.is_empty() {
        return Some(value == Some(if negated { "false" } else { "true" }.to_owned()));
    }
    let operator = ["!=", "<=", ">=", "=", "<", ">", "~"]
        .into_iter()
        .find(|operator| rest.starts_with(operator))?;
    let wanted = rest[operator.len()..].trim_start();
    let Some(value) = value else {
        return Some(operator == "=" && wanted.is_empty());
    };
    if wanted.is_empty() {
        return Some(operator == "!=");
    }
    let is_any = |texts: Vec<String>| {
        let orders = texts.iter().map(|text| order(kind, &value, text));
        let orders: Option<Vec<Ordering>> = orders.collect();
        Some(orders?.contains(&Ordering::Equal))
    };
    let ordering = || order(kind, &value, wanted);
    Some(match operator {
        "~" => value.to_lowercase().contains(&wanted.to_lowercase()),
        "=" => is_any(listed(wanted))?,
        "!=" => !is_any(listed(wanted))?,
        "<" => ordering()? == Ordering::Less,
        ">" => ordering()? == Ordering::Greater,
        "<=" => ordering()? != Ordering::Greater,
        _ => ordering()? != Ordering::Less,
    })
}

/// Compares a value with one of a condition; `None` if this evaluator cannot.
fn order(kind: FieldType, value: &str, wanted: &str) -> Option<Ordering> {
    match kind {
        FieldType::Text | FieldType::Boolean => Some(value.cmp(wanted)),
        FieldType::Integer | FieldType::Decimal => {
            let number = |text: &str| Decimal::from_str_exact(text).ok();
            Some(number(value)?.cmp(&number(wanted)?))
        }
        FieldType::Date => {
            // chrono keeps nine digits of a fraction, and has leap seconds.
            let moment = |text: &str| {
                let is_plain = text.len() <= 30 && !text.contains(":60");
                DateTime::parse_from_rfc3339(text).ok().filter(|_| is_plain)
            };
            Some(moment(value)?.cmp(&moment(wanted)?))
        }
    }
}

/// Splits a valid list at each comma that follows an even number of backslashes.
fn listed(list: &str) -> Vec<String> {
    let mut values = Vec::new();
    let mut start = 0;
    let escapes = |end: usize| {
        let before = list[..end].bytes().rev();
        before.take_while(|byte| *byte == b'\\').count()
    };
    for (place, _) in list.match_indices(',') {
        if escapes(place) % 2 == 0 {
            values.push(&list[start..place]);
            start = place + 1;
        }
    }
    values.push(&list[start..]);
    let parts = |value: &str| {
        let parts: Vec<String> = value
            .split("\\\\")
            .map(|part| part.replace('\\', ""))
            .collect();
        parts.join("\\")
    };
    values.into_iter().map(parts).collect()
}

/// Returns the text of a value; `None` if it is null or has the wrong type.
fn typed(kind: FieldType, value: &Value) -> Option<String> {
    match (kind, value) {
        (FieldType::Text, Value::String(text)) => Some(text.clone()),
        (FieldType::Date, Value::String(text)) => {
            Some(text.clone()).filter(|text| Timestamp::parse(text).is_some())
        }
        (FieldType::Decimal, Value::String(text)) => {
            Some(text.clone()).filter(|text| is_number(text))
        }
        (FieldType::Integer, Value::Number(number)) => {
            // `serde_json` reads -0 as a floating-point number.
            let is_zero = number.to_string() == "-0.0";
            let number = number.as_i64().map(|number| number.to_string());
            number.or(is_zero.then(|| "-0".to_owned()))
        }
        (FieldType::Boolean, Value::Bool(is_true)) => Some(is_true.to_string()),
        _ => None,
    }
}

/// Different crops have different file names, and none leaves its folder. The first line is the template, the second
/// a date, and each further line a crop.
pub fn template(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let mut lines = text.split('\n');
    let (path, date) = (lines.next().unwrap_or_default(), lines.next());
    let date = date
        .filter(|date| Timestamp::parse(date).is_some())
        .unwrap_or("2026-05-01T06:00:00Z");
    let Ok(Some(template)) = Template::parse(Path::new(path)) else {
        return;
    };
    assert_eq!(template.text(), path);
    assert!(path.starts_with(template.folder().to_str().expect("text")));
    let alone = Template::parse(Path::new("{crop_type}")).expect("a template");
    let alone = alone.expect("a placeholder");
    let batches: BTreeMap<&str, Batch> = lines.map(|crop| (crop, with_crop(date, crop))).collect();
    for ignores_case in [false, true] {
        let mut crops = Crops::on_disk(&alone, ignores_case);
        let mut names = HashMap::new();
        for (crop, batch) in &batches {
            let name = alone.name(batch, &mut crops);
            check_name(&name);
            let unique = if ignores_case {
                name.to_lowercase()
            } else {
                name.clone()
            };
            let before = names.insert(unique, crop);
            assert_eq!(before, None, "{crop:?} and {before:?} are both {name:?}");
            let path = template.name(batch, &mut crops);
            let texts = template.texts().concat();
            let separators = |text: &str| text.matches(std::path::is_separator).count();
            assert_eq!(separators(&path), separators(&texts), "{path:?}");
        }
        let mut again = Crops::resume(&alone, &crops.names());
        for batch in batches.values().rev() {
            assert_eq!(
                template.name(batch, &mut again),
                template.name(batch, &mut crops)
            );
        }
    }
}

fn with_crop(date: &str, crop: &str) -> Batch {
    let text = json!({"batch_id": "a", "batch_creation_date": date, "crop_type": crop});
    let read = Batch::read(&text.to_string());
    read.batch.expect("a batch")
}

/// Fails if a file of this name cannot be created on every system.
fn check_name(name: &str) {
    assert!(!name.is_empty() && name.len() <= 140, "{name:?}");
    assert!(!name.starts_with(['.', ' ', '-']), "{name:?}");
    assert!(!name.ends_with(['.', ' ']), "{name:?}");
    let is_bad = |character: char| character.is_control() || "/\\:*?\"<>|".contains(character);
    assert!(!name.contains(is_bad), "{name:?}");
}
