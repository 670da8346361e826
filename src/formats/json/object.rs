//! A batch as a JSON object of the chosen fields, for `json`, `ndjson` and `singer`.

use std::borrow::Cow;

use crate::batch::filter::Fields;
use crate::batch::{Batch, COLUMNS, FieldType};

/// Builds objects, one after another.
pub(crate) struct Objects {
    fields: Fields,
    /// Whether decimals are written as numbers, with the same digits.
    numbers: bool,
    /// Whether values of the wrong type become null.
    typed: bool,
    line: String,
}

impl Objects {
    pub(crate) fn new(fields: Fields, numbers: bool, typed: bool) -> Self {
        Self {
            fields,
            numbers,
            typed,
            line: String::new(),
        }
    }

    /// Returns the object for `batch`: as received, if no option changes it.
    pub(crate) fn object<'a>(&'a mut self, batch: &'a Batch) -> &'a str {
        if self.fields.is_everything() && !self.numbers && !self.typed {
            return batch.text();
        }
        self.assemble(batch);
        &self.line
    }

    /// Builds the object from the chosen fields.
    fn assemble(&mut self, batch: &Batch) {
        self.line.clear();
        self.line.push('{');
        if self.fields.named {
            for &column in &self.fields.columns {
                let value = self.value(batch, column).unwrap_or(Cow::Borrowed("null"));
                member(&mut self.line, &quoted(COLUMNS[column].name), &value);
            }
        } else {
            // In the order of the service, without fields that it did not send.
            let start = batch.text().as_ptr() as usize;
            let mut members: Vec<(usize, String, Cow<'_, str>)> = Vec::new();
            for &column in &self.fields.columns {
                if let Some(value) = batch.member(column) {
                    let place = value.as_ptr() as usize - start;
                    let value = self.value(batch, column).unwrap_or(Cow::Borrowed("null"));
                    members.push((place, quoted(COLUMNS[column].name), value));
                }
            }
            for (name, value) in batch.unknown() {
                let place = value.as_ptr() as usize - start;
                members.push((place, name.to_owned(), Cow::Borrowed(value)));
            }
            members.sort_unstable_by_key(|(place, ..)| *place);
            for (_, name, value) in members {
                member(&mut self.line, &name, &value);
            }
        }
        self.line.push('}');
    }

    /// Returns the JSON text of a value; a decimal as a number if the option is set.
    fn value<'a>(&self, batch: &'a Batch, column: usize) -> Option<Cow<'a, str>> {
        let json = batch.json(column)?;
        if self.typed && batch.typed(column).is_none() {
            return None;
        }
        if !self.numbers || COLUMNS[column].kind != FieldType::Decimal {
            return Some(Cow::Borrowed(json));
        }
        // An invalid decimal stays as it is.
        Some(batch.typed(column).map_or(Cow::Borrowed(json), number))
    }
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

fn member(line: &mut String, name: &str, value: &str) {
    if line.len() > 1 {
        line.push(',');
    }
    line.push_str(name);
    line.push(':');
    line.push_str(value);
}

/// Returns a decimal as a JSON number: the same digits, without leading zeros.
fn number(text: Cow<'_, str>) -> Cow<'_, str> {
    let unsigned = text.strip_prefix('-').unwrap_or(&text);
    let bytes = unsigned.as_bytes();
    let is_plain = bytes.first() != Some(&b'0') || !bytes.get(1).is_some_and(u8::is_ascii_digit);
    if is_plain {
        return text;
    }
    let sign = &text[..text.len() - unsigned.len()];
    let significant = unsigned.trim_start_matches('0');
    let zero = if significant.starts_with(|letter: char| letter.is_ascii_digit()) {
        ""
    } else {
        "0"
    };
    Cow::Owned(format!("{sign}{zero}{significant}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        for (text, json) in [
            ("87.50", "87.50"),
            ("0.05", "0.05"),
            ("-0.00", "-0.00"),
            ("007.50", "7.50"),
            ("-007", "-7"),
            ("000", "0"),
            ("00.5", "0.5"),
            ("10", "10"),
        ] {
            assert_eq!(number(text.into()), json);
        }
    }
}
