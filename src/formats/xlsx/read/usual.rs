//! Recognises cells in the notation of an export, without an XML parser: nearly all cells of nearly all workbooks.
//!
//! What is written in another way is left to the slower readers, however correct it is.

use std::borrow::Cow;
use std::io::{self, Read};
use std::ops::Range;

use calamine::{DataRef, ExcelDateTime, ExcelDateTimeType};
use memchr::{memchr, memchr2, memmem};

use super::markup;
use super::number_formats::NumberFormats;
use super::wellformed::is_value;

/// The bytes to read at once, and the most that a cell may have.
const BUFFER: usize = 256 << 10;
const CELL: usize = 64 << 10;
/// The last row and the last column of a sheet.
const ROWS: u32 = 1 << 20;
const COLUMNS: u32 = 1 << 14;

/// A cell such as `<c r="B2" s="3"><v>1.5</v></c>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UsualCell {
    /// Its row and column, from 0.
    pub(super) place: (u32, u32),
    /// The number of its format.
    pub(super) format: Option<u32>,
    pub(super) content: UsualContent,
    /// The position of its value.
    pub(super) value: Range<usize>,
    /// The position of the `>` of its first tag.
    pub(super) tag_end: usize,
    /// The number of bytes.
    pub(super) length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UsualContent {
    Empty,
    /// Digits, with a sign and a decimal point at most.
    Number,
    Boolean,
    /// Text, with the blanks around it only if they are kept.
    Text {
        keeps_blanks: bool,
    },
}

impl UsualCell {
    /// Recognises the cell at the start of `bytes`. `None` if it is written in another way, or not complete.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut scan = CellParser { bytes, at: 0 };
        scan.skip(b"<c r=\"")?;
        let column = scan.letters()?;
        let row = scan.digits()?;
        scan.skip(b"\"")?;
        let place = (row.checked_sub(1)?, column - 1);
        if row > ROWS || column > COLUMNS {
            return None;
        }
        let mut format = None;
        if scan.skip(b" s=\"").is_some() {
            format = Some(scan.digits()?);
            scan.skip(b"\"")?;
        }
        let (content, tag_end) = scan.content()?;
        let start = scan.at;
        let end = match content {
            UsualContent::Empty => start,
            UsualContent::Number => start + number_length(&bytes[start..])?,
            UsualContent::Boolean if matches!(bytes.get(start)?, b'0' | b'1') => start + 1,
            UsualContent::Boolean => return None,
            UsualContent::Text { .. } => start + memchr(b'<', &bytes[start..])?,
        };
        scan.at = end;
        match content {
            UsualContent::Empty => {}
            UsualContent::Number | UsualContent::Boolean => scan.skip(b"</v></c>")?,
            UsualContent::Text { .. } => scan.skip(b"</t></is></c>")?,
        }
        Some(Self {
            place,
            format,
            content,
            value: start..end,
            tag_end,
            length: scan.at,
        })
    }

    /// Returns the text of a cell; `None` if it needs a closer look. `bytes` are those that it was parsed from.
    pub(super) fn text<'a>(&self, bytes: &'a [u8]) -> Option<Cow<'a, str>> {
        let text = std::str::from_utf8(&bytes[self.value.clone()]).ok()?;
        let UsualContent::Text { keeps_blanks } = self.content else {
            return Some(Cow::Borrowed(text));
        };
        let text = match memchr2(b'&', b'\r', text.as_bytes()) {
            None => Cow::Borrowed(text),
            Some(_) if has_plain_references(text) => markup::unescape(text),
            Some(_) => return None,
        };
        // Excel has escapes such as `_x000D_`.
        if memmem::find(text.as_bytes(), b"_x").is_some() {
            return None;
        }
        let blanks = [' ', '\t', '\r', '\n'];
        Some(match text {
            text if keeps_blanks => text,
            Cow::Borrowed(text) => Cow::Borrowed(text.trim_matches(blanks)),
            Cow::Owned(text) => Cow::Owned(text.trim_matches(blanks).to_owned()),
        })
    }

    /// Returns its value as calamine does; `None` if it needs a closer look. `bytes` are those that it was parsed from.
    pub(super) fn value(&self, bytes: &[u8], formats: &NumberFormats) -> Option<DataRef<'static>> {
        let text = self.text(bytes)?;
        Some(match self.content {
            UsualContent::Empty => DataRef::Empty,
            UsualContent::Boolean => DataRef::Bool(text == "1"),
            UsualContent::Text { .. } => DataRef::String(text.into_owned()),
            UsualContent::Number => {
                let number = text.parse().ok()?;
                if formats.is_date(self.format)? {
                    date(number, formats.has_whole_seconds(self.format))
                } else {
                    DataRef::Float(number)
                }
            }
        })
    }
}

/// Returns a date as calamine does. Other programs write some of them a little differently: where the format shows
/// no fraction of a second, that is not a change.
pub(super) fn date(days: f64, is_whole: bool) -> DataRef<'static> {
    let days = if is_whole { whole_second(days) } else { days };
    DataRef::DateTime(ExcelDateTime::new(days, ExcelDateTimeType::DateTime, false))
}

/// Returns the whole second that `days` is nearest to, unless it is too far.
pub(super) fn whole_second(days: f64) -> f64 {
    const SECONDS: f64 = 86_400.0;
    /// Ten microseconds: the fifteenth digit is about as large.
    const TOLERANCE: f64 = 1e-5 / SECONDS;
    let whole = (days * SECONDS).round() / SECONDS;
    if (days - whole).abs() <= TOLERANCE {
        whole
    } else {
        days
    }
}

/// Recognises the end of a row and the start of the next at the start of `bytes`: `</row><row r="3">`. Returns the
/// number of the next row, and the length.
pub(super) fn next_row(bytes: &[u8]) -> Option<(u32, usize)> {
    let mut scan = CellParser { bytes, at: 0 };
    scan.skip(b"</row><row r=\"")?;
    let row = scan.digits().filter(|row| (1..=ROWS).contains(row))?;
    scan.skip(b"\">")?;
    Some((row, scan.at))
}

/// Returns whether every reference to a character is one that all readers know, and no line break needs a change.
fn has_plain_references(text: &str) -> bool {
    is_value(text.as_bytes()) && !text.contains('\r')
}

/// Returns the length of a number at the start of `bytes`, such as `-12.5`; `None` if it is another one.
fn number_length(bytes: &[u8]) -> Option<usize> {
    let digits = |at: usize| {
        let rest = bytes.get(at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (count > 0).then_some(at + count)
    };
    let end = digits(usize::from(bytes.first() == Some(&b'-')))?;
    match bytes.get(end) {
        Some(b'.') => digits(end + 1),
        _ => Some(end),
    }
}

/// A position in the bytes of a cell.
struct CellParser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl CellParser<'_> {
    /// Skips these bytes; `None` if others are next.
    fn skip<const N: usize>(&mut self, expected: &[u8; N]) -> Option<()> {
        let next: &[u8; N] = self.bytes.get(self.at..)?.first_chunk()?;
        (next == expected).then(|| self.at += N)
    }

    /// Parses up to three letters as the number of a column, from 1.
    fn letters(&mut self) -> Option<u32> {
        let mut column = 0;
        for _ in 0..3 {
            match self.bytes.get(self.at)? {
                letter @ b'A'..=b'Z' => column = column * 26 + u32::from(letter - b'A') + 1,
                _ => break,
            }
            self.at += 1;
        }
        (column > 0).then_some(column)
    }

    /// Parses up to seven digits.
    fn digits(&mut self) -> Option<u32> {
        let (start, mut number) = (self.at, 0);
        while let Some(digit @ b'0'..=b'9') = self.bytes.get(self.at)
            && self.at - start < 7
        {
            number = number * 10 + u32::from(digit - b'0');
            self.at += 1;
        }
        (self.at > start).then_some(number)
    }

    /// Skips what is between the attributes of a cell and its value. Returns what the value is, and where the first
    /// tag ends.
    fn content(&mut self) -> Option<(UsualContent, usize)> {
        let start = self.at;
        if self.skip(b"><v>").is_some() {
            return Some((UsualContent::Number, start));
        }
        if self.skip(b" t=\"inlineStr\"><is><t").is_some() {
            let keeps_blanks = self.skip(b" xml:space=\"preserve\"").is_some();
            self.skip(b">")?;
            return Some((UsualContent::Text { keeps_blanks }, start + 14));
        }
        if self.skip(b" t=\"b\"><v>").is_some() {
            return Some((UsualContent::Boolean, start + 6));
        }
        self.skip(b"/>")?;
        Some((UsualContent::Empty, start + 1))
    }
}

/// Reads the cells of a sheet, up to the first that is written in another way.
pub(super) struct UsualCells<R> {
    part: R,
    buffer: Vec<u8>,
    /// The rest of the buffer.
    start: usize,
    is_at_end: bool,
}

/// What [`UsualCells`] found.
pub(super) enum UsualStep {
    Cell(UsualCell),
    /// The end of the cells.
    End,
    /// Something else.
    Other,
}

impl<R: Read> UsualCells<R> {
    /// Starts before the first row; `None` if the sheet is written in another way.
    pub(super) fn new(part: R) -> io::Result<Option<Self>> {
        const START: &[u8] = b"<sheetData>";
        let mut cells = Self {
            part,
            buffer: Vec::new(),
            start: 0,
            is_at_end: false,
        };
        cells.fill()?;
        // The first mention must be the tag itself, and not be in a comment.
        let found = memmem::find(&cells.buffer, b"sheetData").and_then(|name| name.checked_sub(1));
        let Some(start) = found.filter(|start| cells.buffer[*start..].starts_with(START)) else {
            return Ok(None);
        };
        if memmem::find(&cells.buffer[..start], b"<!").is_some() {
            return Ok(None);
        }
        cells.start = start + START.len();
        Ok(Some(cells))
    }

    /// Returns the rest of what was read; a cell has its positions in it.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Returns what is next. A cell stays where it is until [`Self::skip`].
    pub(super) fn next(&mut self) -> io::Result<UsualStep> {
        loop {
            if let Some(cell) = UsualCell::parse(self.bytes()) {
                return Ok(UsualStep::Cell(cell));
            }
            if let Some(length) = row_tag(self.bytes()) {
                self.start += length;
            } else if self.bytes().starts_with(b"</sheetData>") {
                return Ok(UsualStep::End);
            } else if self.is_at_end || self.bytes().len() >= CELL {
                return Ok(UsualStep::Other);
            } else {
                self.fill()?;
            }
        }
    }

    pub(super) fn skip(&mut self, cell: &UsualCell) {
        self.start += cell.length;
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let room = BUFFER - self.buffer.len();
        let read = self.part.by_ref().take(room as u64);
        self.is_at_end = { read }.read_to_end(&mut self.buffer)? < room;
        Ok(())
    }
}

/// Returns the length of the tag of a row at the start of `bytes`, such as `<row r="3" ht="32">`.
fn row_tag(bytes: &[u8]) -> Option<usize> {
    const END: &[u8] = b"</row>";
    if bytes.starts_with(END) {
        return Some(END.len());
    }
    let mut scan = CellParser { bytes, at: 0 };
    scan.skip(b"<row r=\"")?;
    scan.digits().filter(|row| (1..=ROWS).contains(row))?;
    scan.skip(b"\"")?;
    let end = scan.at + memchr2(b'>', b'<', &bytes[scan.at..])?;
    (bytes[end] == b'>').then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_without_a_fraction_is_a_whole_second() {
        // As an export writes it, the float after it, and with fifteen digits.
        let days: f64 = 3_986_776_801.0 / 86_400.0;
        for same in [
            days,
            f64::from_bits(days.to_bits() + 1),
            46_143.250_011_574_1,
        ] {
            assert_eq!(whole_second(same).to_bits(), days.to_bits(), "{same}");
        }
        for other in [46_143.250_012, 46_143.250_011_574_3] {
            assert_eq!(whole_second(other).to_bits(), other.to_bits(), "{other}");
        }
    }

    #[test]
    fn cells_are_recognised_in_the_notation_of_an_export_only() {
        let text = |keeps_blanks| UsualContent::Text { keeps_blanks };
        for (cell, place, format, content, value) in [
            (
                r#"<c r="A1"><v>-12.50</v></c>"#,
                (0, 0),
                None,
                UsualContent::Number,
                "-12.50",
            ),
            (
                r#"<c r="R20" s="3" t="b"><v>1</v></c>"#,
                (19, 17),
                Some(3),
                UsualContent::Boolean,
                "1",
            ),
            (
                r#"<c r="AA3" s="7"/>"#,
                (2, 26),
                Some(7),
                UsualContent::Empty,
                "",
            ),
            (
                r#"<c r="B2" t="inlineStr"><is><t> ä </t></is></c>"#,
                (1, 1),
                None,
                text(false),
                "ä",
            ),
            (
                r#"<c r="B2" s="0" t="inlineStr"><is><t xml:space="preserve"> &amp;&#10;</t></is></c>"#,
                (1, 1),
                Some(0),
                text(true),
                " &\n",
            ),
        ] {
            let bytes = format!("{cell}<c r=\"B3\"");
            let found = UsualCell::parse(bytes.as_bytes()).expect(cell);
            assert_eq!(
                (found.place, found.format, found.content),
                (place, format, content)
            );
            assert_eq!(
                found.text(bytes.as_bytes()).as_deref(),
                Some(value),
                "{cell}"
            );
            assert_eq!(found.length, cell.len());
            assert_eq!(Some(found.tag_end), cell.find('>'));
            for end in 0..cell.len() {
                assert_eq!(
                    UsualCell::parse(&cell.as_bytes()[..end]),
                    None,
                    "{}",
                    &cell[..end]
                );
            }
        }
        for cell in [
            "<c r='A1'><v>1</v></c>",
            r#"<c  r="A1"><v>1</v></c>"#,
            r#"<c r="A0"><v>1</v></c>"#,
            r#"<c r="a1"><v>1</v></c>"#,
            r#"<c r="1"><v>1</v></c>"#,
            r#"<c r="A1048577"><v>1</v></c>"#,
            r#"<c r="XFE1"><v>1</v></c>"#,
            r#"<c r="A1" s=""><v>1</v></c>"#,
            r#"<c r="A1"><v>1e5</v></c>"#,
            r#"<c r="A1"><v>.5</v></c>"#,
            r#"<c r="A1"><v>5.</v></c>"#,
            r#"<c r="A1"><v></v></c>"#,
            r#"<c r="A1" t="b"><v>2</v></c>"#,
            r#"<c r="A1" t="s"><v>2</v></c>"#,
            r#"<c r="A1"><f>1</f></c>"#,
            r#"<c r="A1" t="inlineStr"><is><t>a</t><t>b</t></is></c>"#,
        ] {
            assert_eq!(UsualCell::parse(cell.as_bytes()), None, "{cell}");
        }
    }

    #[test]
    fn text_that_readers_change_is_left_to_them() {
        for text in ["a\rb", "_x000D_", "&#+65;", "&#x;", "&nbsp;", "&amp"] {
            let cell = format!("<c r=\"A1\" t=\"inlineStr\"><is><t>{text}</t></is></c>");
            let found = UsualCell::parse(cell.as_bytes()).expect(text);
            assert_eq!(found.text(cell.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn cells_are_read_across_the_ends_of_the_buffer() {
        let long = "x".repeat(40_000);
        let rows = (2..30).map(|row| {
            format!(
                "<row r=\"{row}\"><c r=\"A{row}\" t=\"inlineStr\"><is><t>{long}</t></is></c></row>"
            )
        });
        let rows: String = rows.collect();
        for (end, is_end) in [
            ("</sheetData></worksheet>", true),
            ("<!-- --></sheetData>", false),
        ] {
            let sheet = format!("<worksheet><sheetData>{rows}{end}");
            let mut cells = UsualCells::new(sheet.as_bytes())
                .expect("memory")
                .expect("cells");
            let mut row = 1;
            let last = loop {
                match cells.next().expect("memory") {
                    UsualStep::Cell(cell) => {
                        assert_eq!(cell.place, (row, 0));
                        assert_eq!(cell.text(cells.bytes()).as_deref(), Some(long.as_str()));
                        cells.skip(&cell);
                        row += 1;
                    }
                    UsualStep::End => break true,
                    UsualStep::Other => break false,
                }
            };
            assert_eq!((row, last), (29, is_end));
        }
        for sheet in [
            "<worksheet><!-- <sheetData> --><sheetData>",
            "<worksheet><x:sheetData>",
            "<worksheet><sheetData/>",
            "",
        ] {
            assert!(
                UsualCells::new(sheet.as_bytes()).expect("memory").is_none(),
                "{sheet}"
            );
        }
    }
}
