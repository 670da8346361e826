//! `json` and `ndjson`: objects as they were received, one to a line.

use std::borrow::Cow;
use std::io::{self, Write as _};

use super::{BatchWriter, Notes, Output};
use crate::batch::{Batch, COLUMNS, Kind};
use crate::select::Fields;

pub(super) struct Json {
    output: Output,
    fields: Fields,
    numbers: bool,
    /// An array, or lines.
    array: bool,
    any: bool,
    line: String,
}

impl Json {
    pub(super) fn array(output: Output, fields: Fields, numbers: bool) -> Self {
        Self {
            output,
            fields,
            numbers,
            array: true,
            any: false,
            line: String::new(),
        }
    }

    pub(super) fn lines(output: Output, fields: Fields, numbers: bool) -> Self {
        Self {
            array: false,
            ..Self::array(output, fields, numbers)
        }
    }

    /// Puts the object together from the values that are wanted.
    fn assemble(&mut self, batch: &Batch) {
        self.line.clear();
        self.line.push('{');
        if self.fields.named {
            for &column in &self.fields.columns {
                let value = self.value(batch, column).unwrap_or(Cow::Borrowed("null"));
                member(&mut self.line, &quoted(COLUMNS[column].name), &value);
            }
        } else {
            // In the order of the service; what it does not say is not said.
            let start = batch.text().as_ptr() as usize;
            let mut members: Vec<(usize, String, Cow<'_, str>)> = Vec::new();
            for &column in &self.fields.columns {
                if let Some(value) = batch.member(column) {
                    let place = value.as_ptr() as usize - start;
                    let value = self.value(batch, column).unwrap_or(Cow::Borrowed(value));
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

    /// Returns the JSON text of a value, a decimal as a number where those are wanted.
    fn value<'a>(&self, batch: &'a Batch, column: usize) -> Option<Cow<'a, str>> {
        let json = batch.json(column)?;
        if !self.numbers || COLUMNS[column].kind != Kind::Decimal {
            return Some(Cow::Borrowed(json));
        }
        // Where it is no decimal, it stays what it is.
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

/// Returns a decimal number as JSON writes it: the same digits, without zeros in front.
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

impl BatchWriter for Json {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        if self.array {
            self.output
                .write_all(if self.any { b",\n" } else { b"[\n" })?;
        }
        self.any = true;
        if self.fields.is_everything() && !self.numbers {
            self.output.write_all(batch.text().as_bytes())?;
        } else {
            self.assemble(batch);
            self.output.write_all(self.line.as_bytes())?;
        }
        if self.array {
            Ok(())
        } else {
            self.output.write_all(b"\n")
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    fn finish(mut self: Box<Self>) -> io::Result<(Output, Notes)> {
        if self.array {
            self.output
                .write_all(if self.any { b"\n]\n" } else { b"[]\n" })?;
        }
        Ok((self.output, Notes::default()))
    }
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
