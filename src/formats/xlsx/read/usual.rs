//! Recognises cells in the usual notation, without an XML parser: nearly all cells of nearly all workbooks.
//!
//! What is written in another way is left to the XML reader, however correct it is.

use std::ops::Range;

use memchr::memchr;

use super::cell_value::{CellType, SheetCell};
use super::wellformed::is_text;

/// The last row and the last column of a sheet.
const ROWS: u32 = 1 << 20;
const COLUMNS: u32 = 1 << 14;

/// What is between the attributes of a cell and its value, by the type of the value; none for an empty cell.
const CONTENTS: [(Option<CellType>, &[u8]); 7] = [
    (Some(CellType::Number), b"><v>"),
    (Some(CellType::Text), b" t=\"inlineStr\"><is><t>"),
    (
        Some(CellType::Text),
        b" t=\"inlineStr\"><is><t xml:space=\"preserve\">",
    ),
    (Some(CellType::Shared), b" t=\"s\"><v>"),
    (Some(CellType::Number), b" t=\"n\"><v>"),
    (Some(CellType::Boolean), b" t=\"b\"><v>"),
    (None, b"/>"),
];

/// A cell such as `<c r="B2" s="3"><v>1.5</v></c>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UsualCell {
    /// The cell without its text.
    pub(super) cell: SheetCell<'static>,
    /// Where its text is, and whether the blanks around it are part of it.
    pub(super) text: Range<usize>,
    pub(super) keeps_blanks: bool,
    /// The number of bytes.
    pub(super) length: usize,
}

impl UsualCell {
    /// Recognises the cell at the start of `bytes`. `None` if it is written in another way, or not complete.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (column, rest) = column(bytes.strip_prefix(b"<c r=\"")?)?;
        let (row, rest) = number(rest)?;
        let mut rest = rest.strip_prefix(b"\"")?;
        let place = (row.checked_sub(1)?, column - 1);
        if row > ROWS || column > COLUMNS {
            return None;
        }
        let mut format = 0;
        if let Some(digits) = rest.strip_prefix(b" s=\"") {
            (format, rest) = number(digits)?;
            rest = rest.strip_prefix(b"\"")?;
        }
        let (kind, start) = CONTENTS.iter().find(|(_, start)| rest.starts_with(start))?;
        rest = &rest[start.len()..];
        let keeps_blanks = start.ends_with(b"preserve\">");
        let (length, end) = match kind {
            None => (0, &b""[..]),
            Some(CellType::Text) => (memchr(b'<', rest)?, &b"</t></is></c>"[..]),
            Some(kind) => (value_length(rest, *kind)?, &b"</v></c>"[..]),
        };
        let start = bytes.len() - rest.len();
        let is_usual = rest[length..].starts_with(end) && is_text(&rest[..length]);
        is_usual.then(|| Self {
            cell: SheetCell {
                place,
                format,
                kind: kind.unwrap_or_default(),
                ..SheetCell::default()
            },
            text: start..start + length,
            keeps_blanks,
            length: start + length + end.len(),
        })
    }
}

/// Recognises the end of a row and the start of the next at the start of `bytes`: `</row><row r="3">`. Returns the
/// number of the next row, and the length.
pub(super) fn next_row(bytes: &[u8]) -> Option<(u32, usize)> {
    let (row, rest) = number(bytes.strip_prefix(b"</row><row r=\"")?)?;
    let rest = rest.strip_prefix(b"\">")?;
    (1..=ROWS)
        .contains(&row)
        .then(|| (row, bytes.len() - rest.len()))
}

/// Returns the length of a boolean, of a whole number, or of a number such as `-12.5`; `None` if it is written in another
/// way.
fn value_length(bytes: &[u8], kind: CellType) -> Option<usize> {
    let digits = |at: usize| {
        let rest = bytes.get(at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (count > 0).then_some(at + count)
    };
    match kind {
        CellType::Boolean => matches!(bytes, [b'0' | b'1', ..]).then_some(1),
        CellType::Number => {
            let end = digits(usize::from(bytes.first() == Some(&b'-')))?;
            match bytes.get(end) {
                Some(b'.') => digits(end + 1),
                _ => Some(end),
            }
        }
        _ => digits(0),
    }
}

/// Parses up to three letters as the number of a column, from 1; returns it with the rest.
fn column(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let letters = bytes.iter().take(3);
    let length = letters.take_while(|byte| byte.is_ascii_uppercase()).count();
    let (letters, rest) = bytes.split_at(length);
    let place = |column: u32, letter: &u8| column * 26 + u32::from(letter - b'A') + 1;
    (length > 0).then(|| (letters.iter().fold(0, place), rest))
}

/// Parses up to seven digits; returns their number with the rest.
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let digits = bytes.iter().take(7);
    let length = digits.take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = bytes.split_at(length);
    let number = |number: u32, digit: &u8| number * 10 + u32::from(digit - b'0');
    (length > 0).then(|| (digits.iter().fold(0, number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_recognised_in_the_usual_notation_only() {
        let (number, text) = (CellType::Number, CellType::Text);
        for (cell, place, format, kind, value) in [
            ("<c r=\"A1\"><v>-12.50</v></c>", (0, 0), 0, number, "-12.50"),
            ("<c r=\"B3\" t=\"n\"><v>7</v></c>", (2, 1), 0, number, "7"),
            (
                "<c r=\"R20\" s=\"3\" t=\"b\"><v>1</v></c>",
                (19, 17),
                3,
                CellType::Boolean,
                "1",
            ),
            (
                "<c r=\"R20\" t=\"s\"><v>105</v></c>",
                (19, 17),
                0,
                CellType::Shared,
                "105",
            ),
            ("<c r=\"AA3\" s=\"7\"/>", (2, 26), 7, number, ""),
            (
                "<c r=\"B2\" t=\"inlineStr\"><is><t> ä </t></is></c>",
                (1, 1),
                0,
                text,
                " ä ",
            ),
            (
                "<c r=\"B2\" s=\"0\" t=\"inlineStr\"><is><t xml:space=\"preserve\"> &amp;&#10;</t></is></c>",
                (1, 1),
                0,
                text,
                " &amp;&#10;",
            ),
        ] {
            let bytes = format!("{cell}<c r=\"B3\"");
            let found = UsualCell::parse(bytes.as_bytes()).expect(cell);
            assert_eq!((found.cell.place, found.cell.format), (place, format));
            assert_eq!(
                (found.cell.kind, &bytes[found.text]),
                (kind, value),
                "{cell}"
            );
            assert_eq!(found.keeps_blanks, cell.contains("preserve"));
            assert_eq!(found.length, cell.len());
            for end in 0..cell.len() {
                let cut = &cell.as_bytes()[..end];
                assert_eq!(UsualCell::parse(cut), None, "{}", &cell[..end.min(20)]);
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
            r#"<c r="A1" t="s"><v>-2</v></c>"#,
            r#"<c r="A1" t="s"><v>2.0</v></c>"#,
            r#"<c r="A1" t="e"><v>2</v></c>"#,
            r#"<c r="A1"><f>1</f></c>"#,
            r#"<c r="A1" t="inlineStr"><is><t>a</t><t>b</t></is></c>"#,
            r#"<c r="A1" t="inlineStr"><is><t>&nbsp;</t></is></c>"#,
        ] {
            assert_eq!(UsualCell::parse(cell.as_bytes()), None, "{cell}");
        }
    }
}
