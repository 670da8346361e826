//! The content of a cell.

use std::borrow::Cow;

use rust_xlsxwriter::{Format, IntoExcelData, Url, Worksheet, XlsxError};
use unicode_width::UnicodeWidthStr;

use super::escapes::{escape, has_foreign};
use super::excel_date::{ExcelDate, excel_date};
use super::styles::CellStyles;
use crate::batch::{
    ANALYSIS_LINK, Batch, COLUMNS, EXACT_DIGITS, FieldType, is_number, significant_digits,
};
use crate::text;

/// The longest link.
const LINK_LENGTH: usize = 2_079;
/// The longest text of a cell, in UTF-16 units.
const TEXT_LENGTH: usize = 32_767;

/// The content of a cell.
#[derive(Debug, PartialEq)]
pub(super) enum Cell<'a> {
    Empty,
    Text(Cow<'a, str>),
    /// Text with escapes for characters that XML cannot store.
    Escaped {
        text: String,
        /// Whether it has such characters; otherwise, some of it only looked like an escape.
        has_foreign: bool,
    },
    Link {
        /// As received.
        text: Cow<'a, str>,
        /// As programs open it.
        address: String,
    },
    Integer(f64),
    Decimal(f64),
    Boolean(bool),
    Moment(ExcelDate),
}

impl Cell<'_> {
    /// Returns its width in characters.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Text(text) | Self::Link { text, .. } => widest_line(text),
            Self::Escaped { text, .. } => widest_line(text),
            Self::Integer(number) => whole_width(*number),
            Self::Decimal(number) => whole_width(*number) + ".00".len(),
            Self::Boolean(_) => "FALSE".len(),
            Self::Moment(moment) if moment.has_fraction => "2026-05-01 06:00:00.000".len(),
            Self::Moment(_) => "2026-05-01 06:00:00".len(),
        }
    }

    /// Writes the cell of a column of this `kind`. A cell without a format has that of its column: looking up a
    /// format takes longer than all else.
    pub(super) fn write(
        &self,
        sheet: &mut Worksheet,
        (row, place): (u32, u16),
        kind: FieldType,
        styles: &CellStyles,
        is_marked: bool,
    ) -> Result<(), XlsxError> {
        let at = (row, place);
        let is_usual = |format: &Format| !is_marked && std::ptr::eq(format, styles.usual(kind));
        let mut put_number =
            |number: f64, format: &Format| put(sheet, at, number, format, is_usual(format));
        match self {
            // The first cell is always written, so that no row is lost.
            Self::Empty if is_marked || place == 0 => {
                sheet.write_blank(row, place, &styles.text).map(drop)
            }
            Self::Empty => Ok(()),
            Self::Text(text) => {
                let format = if text.contains('\n') {
                    &styles.lines
                } else {
                    &styles.text
                };
                put(sheet, at, text.as_ref(), format, is_usual(format))
            }
            Self::Escaped { text, .. } => put(
                sheet,
                at,
                text.as_str(),
                &styles.text,
                is_usual(&styles.text),
            ),
            Self::Link { text, address } => {
                let url = Url::new(address).set_text(text.as_ref());
                let written = sheet.write_url_with_format(row, place, url, &styles.link);
                written.map(drop)
            }
            Self::Boolean(yes) => put(sheet, at, *yes, &styles.boolean, is_usual(&styles.boolean)),
            Self::Integer(number) => put_number(*number, &styles.integer),
            Self::Decimal(number) => put_number(*number, &styles.decimal),
            Self::Moment(moment) if moment.has_fraction => {
                put_number(moment.days, &styles.fraction)
            }
            Self::Moment(moment) => put_number(moment.days, &styles.second),
        }
    }
}

/// Writes a cell. Without a format of its own, it has that of its column.
fn put(
    sheet: &mut Worksheet,
    (row, place): (u32, u16),
    data: impl IntoExcelData,
    format: &Format,
    is_usual: bool,
) -> Result<(), XlsxError> {
    let written = if is_usual {
        sheet.write(row, place, data)
    } else {
        sheet.write_with_format(row, place, data, format)
    };
    written.map(drop)
}

/// Returns the width of a number without its fraction, rounded to two places.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cell holds no larger number"
)]
fn whole_width(number: f64) -> usize {
    let whole = (number.abs() + 0.005) as u64;
    let digits = whole.checked_ilog10().unwrap_or(0) as usize + 1;
    digits + usize::from(number < 0.0)
}

fn widest_line(text: &str) -> usize {
    text.lines().map(UnicodeWidthStr::width).max().unwrap_or(0)
}

/// Returns the cell for `column`, or why it cannot be stored.
pub(super) fn cell(batch: &Batch, column: usize) -> Result<Cell<'_>, String> {
    let Some(plain) = batch.plain(column).filter(|text| !text.is_empty()) else {
        return Ok(Cell::Empty);
    };
    let name = COLUMNS[column].name;
    // An invalid value is written as text.
    if batch.typed(column).is_some() {
        match COLUMNS[column].kind {
            FieldType::Integer => return number(name, &plain).map(Cell::Integer),
            FieldType::Decimal => return number(name, &plain).map(Cell::Decimal),
            FieldType::Boolean => return Ok(Cell::Boolean(plain == "true")),
            FieldType::Date => {
                if let Some(moment) = excel_date(&plain) {
                    return Ok(Cell::Moment(moment));
                }
            }
            FieldType::Text => {}
        }
    }
    let length = |text: &str| text.encode_utf16().count();
    if let Some(text) = escape(&plain) {
        let (received, escaped) = (length(&plain), length(&text));
        if escaped > TEXT_LENGTH {
            return Err(format!(
                "`{name}` has {received} characters ({escaped} with the necessary escapes), but a spreadsheet cell holds at most {TEXT_LENGTH}"
            ));
        }
        let has_foreign = has_foreign(&plain);
        return Ok(Cell::Escaped { text, has_foreign });
    }
    if plain.len() > TEXT_LENGTH && length(&plain) > TEXT_LENGTH {
        return Err(format!(
            "`{name}` has {} characters, but a spreadsheet cell holds at most {TEXT_LENGTH}",
            length(&plain)
        ));
    }
    let address = Some(&plain).filter(|_| column == ANALYSIS_LINK);
    Ok(match address.and_then(|text| web_address(text)) {
        Some(address) => Cell::Link {
            text: plain,
            address,
        },
        None => Cell::Text(plain),
    })
}

fn number(name: &str, text: &str) -> Result<f64, String> {
    let digits = significant_digits(text);
    let number = text.parse::<f64>().ok().filter(|number| {
        is_number(text) && digits <= EXACT_DIGITS && (digits == 0 || number.is_normal())
    });
    number.ok_or_else(|| {
        format!(
            "`{name}` is {}, which a spreadsheet cannot keep exactly",
            text::brief(text)
        )
    })
}

/// Returns the web address in `text`, encoded so that no program has to change it; `None` if it is not an
/// address, or if people could see another address than the link has.
fn web_address(text: &str) -> Option<String> {
    let has_scheme = |scheme: &str| {
        let start = text.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    let is_plain = |letter: char| match letter {
        ' ' => true,
        letter if letter.is_ascii() => {
            letter.is_ascii_graphic() && !"\"<>[]\\^`{|}".contains(letter)
        }
        // Invisible characters, and those that reverse the text after them.
        letter => !letter.is_control() && !letter.is_whitespace() && !text::is_invisible(letter),
    };
    let is_hexadecimal = |part: &str| {
        let digits = part.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let is_good = (has_scheme("http://") || has_scheme("https://"))
        && text.trim() == text
        && text.chars().all(is_plain)
        && text.matches('#').count() <= 1
        && text.split('%').skip(1).all(is_hexadecimal);
    let parsed = url::Url::parse(text).ok().filter(|_| is_good)?;
    let is_usual = text.bytes().all(|byte| byte.is_ascii_graphic())
        && (text.starts_with("http://") || text.starts_with("https://"));
    let address = if is_usual {
        text.to_owned()
    } else {
        parsed.into()
    };
    as_written(address).filter(|address| address.len() <= LINK_LENGTH)
}

/// Returns `address` so that rust_xlsxwriter writes it unchanged; `None` if that is impossible. The crate
/// recognises an encoded address only by certain escapes, and otherwise encodes every `%` again.
fn as_written(address: String) -> Option<String> {
    const KNOWN: [&str; 11] = [
        "%20", "%22", "%25", "%3C", "%3E", "%5B", "%5D", "%5E", "%60", "%7B", "%7D",
    ];
    let (place, fragment) = address.split_at(address.find('#').unwrap_or(address.len()));
    let capitals = place.to_ascii_uppercase();
    if !place.contains('%') || KNOWN.iter().any(|escape| capitals.contains(escape)) {
        return Some(address);
    }
    // Characters beyond ASCII need no escape.
    let mut letters = Vec::with_capacity(place.len());
    let mut pieces = place.split('%');
    letters.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    for piece in pieces {
        let (code, rest) = piece.split_at_checked(2)?;
        letters.push(
            u8::from_str_radix(code, 16)
                .ok()
                .filter(|code| *code >= 0x80)?,
        );
        letters.extend_from_slice(rest.as_bytes());
    }
    let letters = String::from_utf8(letters).ok()?;
    (!letters.contains(text::is_invisible)).then(|| letters + fragment)
}
