//! Text that is written to a terminal: control characters are escaped, and JSON is indented.

use crate::terminal::{self, PrettyJson};
use crate::text;

/// The notation of the escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// For example `\u{1b}`.
    Text,
    /// For example `\u001b`, so that JSON stays valid.
    Json,
    /// The same, and the document is indented and in colour.
    IndentedJson,
}

/// Escapes a stream of text that may be split anywhere.
#[derive(Debug)]
pub(crate) struct Escaping {
    escapes: Escapes,
    /// Bytes that depend on the next ones: part of a character, or a carriage return.
    pending: Vec<u8>,
    pretty: Option<PrettyJson>,
}

impl Escaping {
    pub(crate) fn new(escapes: Escapes) -> Self {
        Self {
            escapes,
            pending: Vec::new(),
            pretty: (escapes == Escapes::IndentedJson)
                .then(|| PrettyJson::new(terminal::color_on_stdout())),
        }
    }

    /// Returns the escaped text of `bytes` and of the bytes held back before.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        let mut bytes = [&std::mem::take(&mut self.pending), bytes].concat();
        let whole = match str::from_utf8(&bytes) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => bytes.len(),
        };
        self.pending = bytes.split_off(whole);
        if self.pending.is_empty() && bytes.last() == Some(&b'\r') {
            self.pending.extend(bytes.pop());
        }
        self.escape(&bytes)
    }

    /// Returns the escaped text of the bytes held back at the end.
    pub(crate) fn finish(&mut self) -> String {
        let pending = std::mem::take(&mut self.pending);
        self.escape(&pending)
    }

    fn escape(&mut self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        match self.escapes {
            // In JSON, a carriage return is whitespace: strings cannot contain one.
            Escapes::Json | Escapes::IndentedJson => {
                let json = text::escape_json(&text.replace('\r', " "));
                match &mut self.pretty {
                    Some(pretty) => pretty.push(&json),
                    None => json,
                }
            }
            Escapes::Text => {
                let lines: Vec<_> = text.split("\r\n").map(text::escape).collect();
                lines.join("\r\n")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Escapes `text`, split into pieces of `size` bytes.
    fn escaped(escapes: Escapes, text: &str, size: usize) -> String {
        let mut escaping = Escaping::new(escapes);
        let pieces = text.as_bytes().chunks(size);
        let mut shown: String = pieces.map(|piece| escaping.push(piece)).collect();
        shown.push_str(&escaping.finish());
        shown
    }

    #[test]
    fn escapes_do_not_depend_on_how_the_text_is_split() {
        let text = "é\u{1b}[2J,\u{202e}\r\n\"\t\ré\u{9b}\"\r\n🌱\u{7f}\r";
        let expected = "é\\u{1b}[2J,\\u{202e}\r\n\"\t\\u{d}é\\u{9b}\"\r\n🌱\\u{7f}\\u{d}";
        for size in 1..=text.len() {
            assert_eq!(escaped(Escapes::Text, text, size), expected, "{size}");
        }
    }

    #[test]
    fn escaped_json_stays_valid() {
        let text = "{\"a\":\r\n\t\"x\u{7f}\u{202e}\u{9b}é\"}\n";
        for size in 1..=text.len() {
            let shown = escaped(Escapes::Json, text, size);
            assert_eq!(shown, "{\"a\": \n\t\"x\\u007f\\u202e\\u009bé\"}\n");
            let value: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
            assert_eq!(value["a"], "x\u{7f}\u{202e}\u{9b}é");
        }
    }
}
