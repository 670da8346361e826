//! Conditions joined in one `--where`, as other languages do: refused, with the right spelling.

use super::condition::OPERATORS;
use super::mistakes::{argument, flag, mistake};
use super::names::nearest_field;
use crate::batch::{COLUMNS, FieldType, find_column};
use crate::error::Failure;

/// What joins conditions, and whether any of them suffices.
const JOINS: [(&str, bool); 5] = [
    (" or ", true),
    ("||", true),
    (" and ", false),
    ("&&", false),
    (",", false),
];

/// Refuses `text` if a second condition begins after `from`.
///
/// In free text, neither a comma nor a boolean field without an operator is taken for one. A join after `\` is ordinary.
pub(super) fn check(text: &str, from: usize, is_free: bool) -> Result<(), Failure> {
    let mut conditions = Vec::new();
    let (mut start, mut search, mut has_or) = (0, from, false);
    while let Some((place, length, is_or)) = find(&text[search..], is_free) {
        conditions.push(text[start..search + place].trim());
        has_or |= is_or;
        start = search + place + length;
        search = start;
    }
    if conditions.is_empty() {
        return Ok(());
    }
    conditions.push(text[start..].trim());
    if has_or {
        return Err(alternatives(&conditions));
    }
    let flags: Vec<String> = conditions.iter().map(|text| argument(text)).collect();
    Err(mistake("one `--where` takes one condition").hint(format!("write `{}`", flags.join(" "))))
}

/// Refuses conditions joined with `or`.
fn alternatives(conditions: &[&str]) -> Failure {
    let equalities = conditions.iter().map(|condition| {
        let (name, value) = condition.split_once('=')?;
        let is_equality = !name.ends_with(['!', '<', '>']);
        let value = value.trim_start_matches('=').trim();
        is_equality.then_some((name.trim(), value))
    });
    let equalities: Option<Vec<(&str, &str)>> = equalities.collect();
    let same = equalities.filter(|all| all.iter().all(|(name, _)| *name == all[0].0));
    let hint = match same {
        Some(all) => {
            let values: Vec<&str> = all.iter().map(|(_, value)| *value).collect();
            let right = format!("{}={}", all[0].0, values.join(","));
            format!("for any of several values, write {}", flag(&right))
        }
        None => "all conditions must hold, each in its own `--where`; for alternatives on different fields, run the \
                 command once for each"
            .to_owned(),
    };
    mistake("conditions cannot be joined with `or`").hint(hint)
}

/// Finds the first join before another condition: its place, its length, and whether it is an `or`.
fn find(text: &str, is_free: bool) -> Option<(usize, usize, bool)> {
    text.char_indices().find_map(|(place, _)| {
        if text[..place].ends_with('\\') {
            return None;
        }
        let mut joins = JOINS.iter().filter(|(word, _)| !is_free || *word != ",");
        joins.find_map(|&(word, is_or)| {
            let rest = &text[place..];
            let is_join = begins_with(rest, word) && begins_condition(&rest[word.len()..], is_free);
            is_join.then_some((place, word.len(), is_or))
        })
    })
}

/// Returns whether `text` begins with a condition.
fn begins_condition(text: &str, is_free: bool) -> bool {
    let text = text.trim_start();
    let (is_negated, text) = match text.strip_prefix('!') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text),
    };
    let end = text.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    let has_operator = |(sign, _): &(&str, _)| rest.trim_start().starts_with(sign);
    if OPERATORS.iter().any(has_operator) {
        return find_column(name).is_some() || nearest_field(name).is_some();
    }
    let column = find_column(name);
    let is_boolean = column.is_some_and(|column| COLUMNS[column].kind == FieldType::Boolean);
    let mut words = JOINS.iter().map(|(word, _)| word);
    is_boolean
        && (!is_free || is_negated)
        && (rest.trim().is_empty() || words.any(|word| begins_with(rest, word)))
}

fn begins_with(text: &str, word: &str) -> bool {
    let start = text.get(..word.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(word))
}
