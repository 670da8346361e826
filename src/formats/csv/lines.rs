//! Checks the lines of CSV byte by byte, so that all readers agree on where a cell and a row end.
//!
//! The csv crate accepts nearly anything, and other programs read the same bytes differently: a quote inside
//! an unquoted cell, a lone carriage return, an empty line. Whatever RFC 4180 does not allow is an error here.

use memchr::{memchr2, memchr3};

/// Checks the bytes of a file as they are read.
#[derive(Debug)]
pub(crate) struct LineChecker {
    delimiter: u8,
    state: LineState,
    /// The current line, from 1.
    line: u64,
    /// The previous byte; a line feed at the start.
    pub(crate) last: u8,
    /// Whether the row has a byte.
    in_row: bool,
    /// Whether rows end with CR LF; `None` before the end of the first.
    crlf: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineState {
    Bare,
    /// After a carriage return outside quotes.
    Return,
    Quoted,
    /// After a quote inside quotes: the end of the cell, or half of an escaped quote.
    Quote,
}

/// The line of an error, and what is wrong.
pub(crate) type BadLine = (u64, &'static str);

impl LineChecker {
    pub(crate) fn new(delimiter: u8) -> Self {
        Self {
            delimiter,
            state: LineState::Bare,
            line: 1,
            last: b'\n',
            in_row: false,
            crlf: None,
        }
    }

    /// Returns whether the file may end here.
    pub(crate) fn is_complete(&self) -> bool {
        self.state != LineState::Quoted
    }

    /// Checks the next bytes, without the byte order mark.
    pub(crate) fn check(&mut self, bytes: &[u8]) -> Result<(), BadLine> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            at += match self.state {
                LineState::Bare => self.bare(rest)?,
                LineState::Quoted => self.quoted(rest),
                LineState::Quote => self.after_quote(rest[0])?,
                LineState::Return if rest[0] == b'\n' => self.end_row(true).map(|()| 1)?,
                LineState::Return => {
                    return Err(self.bad("a carriage return has no line feed after it"));
                }
            };
            self.last = bytes[at - 1];
        }
        Ok(())
    }

    /// Continues outside quotes, up to the next quote or line break; returns the number of bytes.
    fn bare(&mut self, rest: &[u8]) -> Result<usize, BadLine> {
        let Some(found) = memchr3(b'"', b'\r', b'\n', rest) else {
            self.in_row = true;
            return Ok(rest.len());
        };
        let before = match found {
            0 => self.last,
            _ => rest[found - 1],
        };
        let is_empty = found == 0 && !self.in_row;
        match rest[found] {
            b'"' if is_empty || before == self.delimiter => {
                self.in_row = true;
                self.state = LineState::Quoted;
            }
            b'"' => return Err(self.bad("a quote appears inside an unquoted cell")),
            _ if is_empty => return Err(self.bad("the line is empty")),
            b'\r' => self.state = LineState::Return,
            _ => self.end_row(false)?,
        }
        Ok(found + 1)
    }

    fn quoted(&mut self, rest: &[u8]) -> usize {
        let Some(found) = memchr2(b'"', b'\n', rest) else {
            return rest.len();
        };
        match rest[found] {
            b'"' => self.state = LineState::Quote,
            _ => self.line += 1,
        }
        found + 1
    }

    fn after_quote(&mut self, byte: u8) -> Result<usize, BadLine> {
        match byte {
            b'"' => self.state = LineState::Quoted,
            b'\r' => self.state = LineState::Return,
            b'\n' => self.end_row(false)?,
            _ if byte == self.delimiter => self.state = LineState::Bare,
            _ => return Err(self.bad("text follows the closing quote of a cell")),
        }
        Ok(1)
    }

    fn end_row(&mut self, crlf: bool) -> Result<(), BadLine> {
        if *self.crlf.get_or_insert(crlf) != crlf {
            return Err(self.bad("the line endings differ: LF and CR LF are mixed"));
        }
        self.state = LineState::Bare;
        self.in_row = false;
        self.line += 1;
        Ok(())
    }

    fn bad(&self, why: &'static str) -> BadLine {
        (self.line, why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, size: usize) -> Result<LineChecker, BadLine> {
        let mut checker = LineChecker::new(b',');
        for piece in text.as_bytes().chunks(size) {
            checker.check(piece)?;
        }
        Ok(checker)
    }

    #[test]
    fn lines_are_checked_in_pieces_of_any_size() {
        for (text, expected) in [
            ("a,b\nc,d\n", None),
            ("a,b\r\nc,d\r\n", None),
            ("\"a\",\"b\"\n\"\",\n,\n", None),
            ("\"a\"\"b\",\"\"\"\"\n", None),
            ("\"x\ny\r\nz\rw\",b\n", None),
            ("\"x\r\ny\",b\r\n\"\"\r\n", None),
            ("a,b", None),
            ("a,\"b\"", None),
            ("a,b\nc\"d\n", Some((2, "a quote appears inside"))),
            ("a, \"b\"\n", Some((1, "a quote appears inside"))),
            ("a,\"b\"c\n", Some((1, "text follows"))),
            ("a,\"b\" \n", Some((1, "text follows"))),
            ("a,\"b\nc\"\nd,\"e\"f", Some((3, "text follows"))),
            ("a,b\rc,d\n", Some((1, "a carriage return"))),
            ("a,b\r\r\n", Some((1, "a carriage return"))),
            ("a,\"b\"\rc\n", Some((1, "a carriage return"))),
            ("a,b\n\nc,d\n", Some((2, "the line is empty"))),
            ("a,b\r\nc,d\r\n\r\n", Some((3, "the line is empty"))),
            ("\na,b\n", Some((1, "the line is empty"))),
            ("a,b\r\nc,d\n", Some((2, "the line endings differ"))),
            ("a,b\nc,d\r\n", Some((2, "the line endings differ"))),
        ] {
            for size in [1, 2, 3, 100] {
                let found = check(text, size).err();
                match (found, expected) {
                    (Some((line, why)), Some((expected, start))) => {
                        assert_eq!(line, expected, "{text:?}");
                        assert!(why.starts_with(start), "{why} of {text:?}");
                    }
                    _ => assert_eq!(found, expected, "{text:?}"),
                }
            }
        }
    }

    #[test]
    fn a_file_must_not_end_inside_quotes() {
        for (text, is_complete) in [
            ("a,\"b", false),
            ("a,\"b\"", true),
            ("a,\"b\"\"", false),
            ("", true),
        ] {
            let checker = check(text, 2).expect(text);
            assert_eq!(checker.is_complete(), is_complete, "{text}");
        }
    }
}
