//! Escapes text for the page: HTML, and characters that are invisible.

use std::fmt::{self, Display, Write};

use askama::filters::{Escaper, Html};

use crate::text;

/// Escapes HTML, and shows control characters and bidirectional overrides as visible escapes.
#[derive(Clone, Copy, Debug)]
pub(super) struct VisibleHtml;

impl Escaper for VisibleHtml {
    fn write_escaped_str<W: Write>(&self, page: W, text: &str) -> fmt::Result {
        Html.write_escaped_str(page, &text::escape(text))
    }

    fn write_escaped_char<W: Write>(&self, page: W, character: char) -> fmt::Result {
        self.write_escaped_str(page, character.encode_utf8(&mut [0; 4]))
    }
}

/// Escapes text for SVG elements and attributes.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        VisibleHtml.write_escaped_str(f, self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_escaped() {
        let mut page = String::new();
        let text = "<a>\u{1b}[2J\u{0}\u{202e}&\r\n\u{9b}";
        VisibleHtml
            .write_escaped_str(&mut page, text)
            .expect("text");
        VisibleHtml
            .write_escaped_char(&mut page, '\u{7}')
            .expect("text");
        let shown = "&#60;a&#62;\\u{1b}[2J\\u{0}\\u{202e}&#38;\\u{d}\n\\u{9b}\\u{7}";
        assert_eq!(page, shown);
    }
}
