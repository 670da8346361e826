//! JSON for people: indented, and in colour.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

const INDENT: &str = "  ";
const NAME: Style = AnsiColor::Blue.on_default().bold();
const STRING: Style = AnsiColor::Green.on_default();
const WORD: Style = AnsiColor::Magenta.on_default();
const NUMBER: Style = Style::new();

/// Indents a stream of valid JSON that may be split anywhere. Values are not changed.
#[derive(Debug)]
pub(crate) struct PrettyJson {
    has_color: bool,
    /// The open arrays and objects.
    open: Vec<Container>,
    /// The style of the string, number or word that has begun.
    token: Option<Style>,
    /// Whether the token is a string.
    in_string: bool,
    /// Whether the last character of a string was a backslash.
    is_escaped: bool,
}

#[derive(Debug)]
struct Container {
    is_object: bool,
    is_empty: bool,
    /// Whether a name comes next.
    expects_name: bool,
}

impl PrettyJson {
    pub(crate) fn new(has_color: bool) -> Self {
        Self {
            has_color,
            open: Vec::new(),
            token: None,
            in_string: false,
            is_escaped: false,
        }
    }

    /// Returns the next part of the text.
    pub(crate) fn push(&mut self, json: &str) -> String {
        let mut text = String::with_capacity(json.len() * 2);
        for character in json.chars() {
            self.add(character, &mut text);
        }
        text
    }

    fn add(&mut self, character: char, text: &mut String) {
        if self.in_string {
            text.push(character);
            match character {
                _ if self.is_escaped => self.is_escaped = false,
                '\\' => self.is_escaped = true,
                '"' => self.end_token(text),
                _ => {}
            }
            return;
        }
        match character {
            '"' => {
                let is_name = self.open.last().is_some_and(|open| open.expects_name);
                self.begin_item(text);
                self.begin_token(if is_name { NAME } else { STRING }, text);
                self.in_string = true;
                text.push('"');
            }
            '{' | '[' => {
                self.begin_item(text);
                text.push(character);
                let is_object = character == '{';
                self.open.push(Container {
                    is_object,
                    is_empty: true,
                    expects_name: is_object,
                });
            }
            '}' | ']' => {
                self.end_token(text);
                let closed = self.open.pop();
                if closed.is_some_and(|closed| !closed.is_empty) {
                    self.new_line(text);
                }
                text.push(character);
            }
            ',' => {
                self.end_token(text);
                text.push(',');
                self.new_line(text);
                if let Some(open) = self.open.last_mut() {
                    open.expects_name = open.is_object;
                }
            }
            ':' => {
                text.push_str(": ");
                if let Some(open) = self.open.last_mut() {
                    open.expects_name = false;
                }
            }
            _ if character.is_whitespace() => {
                self.end_token(text);
                // Between documents.
                if self.open.is_empty() && character == '\n' {
                    text.push('\n');
                }
            }
            _ => {
                if self.token.is_none() {
                    self.begin_item(text);
                    let is_word = character.is_ascii_alphabetic();
                    self.begin_token(if is_word { WORD } else { NUMBER }, text);
                }
                text.push(character);
            }
        }
    }

    /// Starts a new line before the first item of a container.
    fn begin_item(&mut self, text: &mut String) {
        if let Some(open) = self.open.last_mut().filter(|open| open.is_empty) {
            open.is_empty = false;
            self.new_line(text);
        }
    }

    fn begin_token(&mut self, style: Style, text: &mut String) {
        self.token = Some(style);
        if self.has_color {
            // Writing to a string cannot fail.
            let _ = write!(text, "{style}");
        }
    }

    fn end_token(&mut self, text: &mut String) {
        self.in_string = false;
        if let Some(style) = self.token.take().filter(|_| self.has_color) {
            let _ = write!(text, "{style:#}");
        }
    }

    fn new_line(&self, text: &mut String) {
        text.push('\n');
        text.push_str(&INDENT.repeat(self.open.len()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn pretty(json: &str, piece: usize, has_color: bool) -> String {
        let mut pretty = PrettyJson::new(has_color);
        let characters: Vec<char> = json.chars().collect();
        let pieces = characters.chunks(piece).map(|piece| piece.iter().collect());
        pieces.map(|piece: String| pretty.push(&piece)).collect()
    }

    #[test]
    fn values_are_indented_and_unchanged() {
        let json = "[\n{\"a\":\"x, \\\"{\\\\\",\"b\":[1.50,null,{}],\"c\":[],\"d\":{\"e\":true}},\n-1e3\n]\n";
        let expected = r#"[
  {
    "a": "x, \"{\\",
    "b": [
      1.50,
      null,
      {}
    ],
    "c": [],
    "d": {
      "e": true
    }
  },
  -1e3
]
"#;
        for piece in 1..=json.len() {
            assert_eq!(pretty(json, piece, false), expected);
        }
    }

    #[test]
    fn names_strings_and_words_have_colours() {
        let shown = pretty("{\"a\":\"b\",\"c\":true,\"d\":12}\n", 3, true);
        for part in [
            "\u{1b}[1m\u{1b}[34m\"a\"\u{1b}[0m: \u{1b}[32m\"b\"\u{1b}[0m,",
            "\u{1b}[35mtrue\u{1b}[0m,",
            ": 12\n",
        ] {
            assert!(shown.contains(part), "{part:?}: {shown:?}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map(any::<String>(), inner, 0..5)
                    .prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        /// serde_json indents in the same way.
        #[test]
        fn any_document_looks_like_that_of_serde_json(value in any_json(), piece in 1..9_usize) {
            let expected = serde_json::to_string_pretty(&value).expect("JSON");
            prop_assert_eq!(pretty(&value.to_string(), piece, false), expected);
        }
    }
}
