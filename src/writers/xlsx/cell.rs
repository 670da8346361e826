//! What stands in a cell.

use std::borrow::Cow;

use rust_xlsxwriter::{Url, Worksheet, XlsxError};
use unicode_width::UnicodeWidthStr;

use super::escapes::{has_foreign, visible};
use super::looks::Looks;
use super::serial::{Serial, serial};
use crate::batch::{
    ANALYSIS_LINK, Batch, COLUMNS, EXACT_DIGITS, Kind, is_number, significant_digits,
};
use crate::ui;

/// The longest link.
const LINK_LENGTH: usize = 2_079;
/// What one cell holds, in UTF-16.
const TEXT_LENGTH: usize = 32_767;

/// What stands in a cell.
#[derive(Debug, PartialEq)]
pub(super) enum Cell<'a> {
    Empty,
    Text(Cow<'a, str>),
    /// Text with escapes for what XML has no place for.
    Escaped {
        text: String,
        /// Some of it only looked like an escape otherwise.
        has_foreign: bool,
    },
    Link(Cow<'a, str>),
    Integer(f64),
    Decimal(f64),
    Boolean(bool),
    Moment(Serial),
}

impl Cell<'_> {
    /// Returns how many letters are shown of it.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Text(text) | Self::Link(text) => widest_line(text),
            Self::Escaped { text, .. } => widest_line(text),
            Self::Integer(number) => format!("{number}").len(),
            Self::Decimal(number) => format!("{number:.2}").len(),
            Self::Boolean(_) => "FALSE".len(),
            Self::Moment(moment) if moment.has_fraction => "2026-05-01 06:00:00.000".len(),
            Self::Moment(_) => "2026-05-01 06:00:00".len(),
        }
    }

    pub(super) fn write(
        &self,
        sheet: &mut Worksheet,
        (row, place): (u32, u16),
        looks: &Looks,
        is_marked: bool,
    ) -> Result<(), XlsxError> {
        match self {
            // The first one is always there, so that no row is lost.
            Self::Empty if is_marked || place == 0 => sheet.write_blank(row, place, &looks.text)?,
            Self::Empty => sheet,
            Self::Text(text) => {
                let look = if text.contains('\n') {
                    &looks.lines
                } else {
                    &looks.text
                };
                sheet.write_string_with_format(row, place, text.as_ref(), look)?
            }
            Self::Escaped { text, .. } => {
                sheet.write_string_with_format(row, place, text.as_str(), &looks.text)?
            }
            Self::Link(text) => {
                sheet.write_url_with_format(row, place, Url::new(text.as_ref()), &looks.link)?
            }
            Self::Integer(number) => {
                sheet.write_number_with_format(row, place, *number, &looks.integer)?
            }
            Self::Decimal(number) => {
                sheet.write_number_with_format(row, place, *number, &looks.decimal)?
            }
            Self::Boolean(yes) => {
                sheet.write_boolean_with_format(row, place, *yes, &looks.boolean)?
            }
            Self::Moment(moment) => {
                let look = if moment.has_fraction {
                    &looks.fraction
                } else {
                    &looks.second
                };
                sheet.write_number_with_format(row, place, moment.days, look)?
            }
        };
        Ok(())
    }
}

fn widest_line(text: &str) -> usize {
    text.lines().map(UnicodeWidthStr::width).max().unwrap_or(0)
}

/// Returns the cell for `column`, or why there can be none.
pub(super) fn cell(batch: &Batch, column: usize) -> Result<Cell<'_>, String> {
    let Some(plain) = batch.plain(column).filter(|text| !text.is_empty()) else {
        return Ok(Cell::Empty);
    };
    let name = COLUMNS[column].name;
    // What is no value of its column stands there as text.
    if batch.typed(column).is_some() {
        match COLUMNS[column].kind {
            Kind::Integer => return number(name, &plain).map(Cell::Integer),
            Kind::Decimal => return number(name, &plain).map(Cell::Decimal),
            Kind::Boolean => return Ok(Cell::Boolean(plain == "true")),
            Kind::Date => {
                if let Some(moment) = serial(&plain) {
                    return Ok(Cell::Moment(moment));
                }
            }
            Kind::Text => {}
        }
    }
    let length = |text: &str| text.encode_utf16().count();
    if let Some(text) = visible(&plain) {
        let (received, escaped) = (length(&plain), length(&text));
        if escaped > TEXT_LENGTH {
            return Err(format!(
                "`{name}` has {received} characters ({escaped} with the escapes that it needs), and a cell of a spreadsheet holds {TEXT_LENGTH}"
            ));
        }
        let has_foreign = has_foreign(&plain);
        return Ok(Cell::Escaped { text, has_foreign });
    }
    if plain.len() > TEXT_LENGTH && length(&plain) > TEXT_LENGTH {
        return Err(format!(
            "`{name}` has {} characters, and a cell of a spreadsheet holds {TEXT_LENGTH}",
            length(&plain)
        ));
    }
    if column == ANALYSIS_LINK && is_link(&plain) {
        return Ok(Cell::Link(plain));
    }
    Ok(Cell::Text(plain))
}

fn number(name: &str, text: &str) -> Result<f64, String> {
    let digits = significant_digits(text);
    let number = text.parse::<f64>().ok().filter(|number| {
        is_number(text) && digits <= EXACT_DIGITS && (digits == 0 || number.is_normal())
    });
    number.ok_or_else(|| {
        format!(
            "`{name}` is {}, which a spreadsheet cannot keep exactly",
            ui::brief(text)
        )
    })
}

/// Tells whether `text` is an address on the web, and written so that no program has to mend it.
fn is_link(text: &str) -> bool {
    let is_web = text.starts_with("http://") || text.starts_with("https://");
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>[]\\^`{|}".contains(&byte);
    let is_hexadecimal = |part: &str| {
        let digits = part.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    is_web
        && text.len() <= LINK_LENGTH
        && text.bytes().all(is_plain)
        && text.matches('#').count() <= 1
        && text.split('%').skip(1).all(is_hexadecimal)
        && url::Url::parse(text).is_ok()
}
