//! A batch as a JSON object of the chosen fields, for `json`, `ndjson` and `singer`.

use std::borrow::Cow;

use crate::batch::filter::Fields;
use crate::batch::{Batch, COLUMNS, FieldType};

/// Builds objects, one after another.
pub(crate) struct Objects {
    fields: Fields,
    /// The names of the fields, in quotes.
    names: Vec<String>,
    /// Whether decimals are written as numbers, with the same digits.
    numbers: bool,
    /// Whether values of the wrong type become null.
    typed: bool,
    /// Whether objects stay as received.
    verbatim: bool,
    line: String,
}

impl Objects {
    pub(crate) fn new(fields: Fields, numbers: bool, typed: bool) -> Self {
        let quoted = |column: &usize| format!("\"{}\"", COLUMNS[*column].name);
        Self {
            names: fields.columns.iter().map(quoted).collect(),
            verbatim: fields.is_everything() && !numbers && !typed,
            fields,
            numbers,
            typed,
            line: String::new(),
        }
    }

    /// Returns the object for `batch`: as received, if no option changes it.
    pub(crate) fn object<'a>(&'a mut self, batch: &'a Batch) -> &'a str {
        if self.verbatim {
            return batch.text();
        }
        self.assemble(batch);
        &self.line
    }

    /// Builds the object from the chosen fields.
    fn assemble(&mut self, batch: &Batch) {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        line.push('{');
        let columns = self.fields.columns.iter().copied().zip(&self.names);
        if self.fields.named {
            for (column, name) in columns {
                member(&mut line, name, &self.value(batch, column));
            }
        } else {
            // In the order of the service, without fields that it did not send.
            let start = batch.text().as_ptr() as usize;
            let mut members: Vec<(usize, &str, Cow<'_, str>)> = Vec::with_capacity(COLUMNS.len());
            for (column, name) in columns {
                if let Some(value) = batch.member(column) {
                    let place = value.as_ptr() as usize - start;
                    members.push((place, name, self.value(batch, column)));
                }
            }
            for (name, value) in batch.unknown() {
                let place = value.as_ptr() as usize - start;
                members.push((place, name, Cow::Borrowed(value)));
            }
            members.sort_unstable_by_key(|(place, ..)| *place);
            for (_, name, value) in members {
                member(&mut line, name, &value);
            }
        }
        line.push('}');
        self.line = line;
    }

    /// Returns the JSON text of a value; a decimal as a number if the option is set.
    fn value<'a>(&self, batch: &'a Batch, column: usize) -> Cow<'a, str> {
        let Some(json) = batch.json(column) else {
            return Cow::Borrowed("null");
        };
        let is_number = self.numbers && COLUMNS[column].kind == FieldType::Decimal;
        // Only text may have escapes there.
        match batch.inside(column) {
            Some(valid) if is_number => return number(Cow::Borrowed(valid)),
            Some(_) => return Cow::Borrowed(json),
            None => {}
        }
        match batch.typed(column) {
            Some(valid) if is_number => number(valid),
            // An invalid decimal stays as it is.
            None if self.typed => Cow::Borrowed("null"),
            _ => Cow::Borrowed(json),
        }
    }
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
