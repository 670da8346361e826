//! What stands in a cell.

use std::borrow::Cow;

use rust_xlsxwriter::{Url, Worksheet, XlsxError};
use unicode_width::UnicodeWidthStr;

use super::escapes::{has_foreign, visible};
use super::excel_date::{ExcelDate, serial};
use super::styles::CellStyles;
use crate::batch::{
    ANALYSIS_LINK, Batch, COLUMNS, EXACT_DIGITS, FieldType, is_number, significant_digits,
};
use crate::text;

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
    Link {
        /// As received.
        text: Cow<'a, str>,
        /// As programs take it.
        address: String,
    },
    Integer(f64),
    Decimal(f64),
    Boolean(bool),
    Moment(ExcelDate),
}

impl Cell<'_> {
    /// Returns how many letters are shown of it.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Text(text) | Self::Link { text, .. } => widest_line(text),
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
        styles: &CellStyles,
        is_marked: bool,
    ) -> Result<(), XlsxError> {
        match self {
            // The first one is always there, so that no row is lost.
            Self::Empty if is_marked || place == 0 => {
                sheet.write_blank(row, place, &styles.text)?
            }
            Self::Empty => sheet,
            Self::Text(text) => {
                let format = if text.contains('\n') {
                    &styles.lines
                } else {
                    &styles.text
                };
                sheet.write_string_with_format(row, place, text.as_ref(), format)?
            }
            Self::Escaped { text, .. } => {
                sheet.write_string_with_format(row, place, text.as_str(), &styles.text)?
            }
            Self::Link { text, address } => {
                let url = Url::new(address).set_text(text.as_ref());
                sheet.write_url_with_format(row, place, url, &styles.link)?
            }
            Self::Integer(number) => {
                sheet.write_number_with_format(row, place, *number, &styles.integer)?
            }
            Self::Decimal(number) => {
                sheet.write_number_with_format(row, place, *number, &styles.decimal)?
            }
            Self::Boolean(yes) => {
                sheet.write_boolean_with_format(row, place, *yes, &styles.boolean)?
            }
            Self::Moment(moment) => {
                let format = if moment.has_fraction {
                    &styles.fraction
                } else {
                    &styles.second
                };
                sheet.write_number_with_format(row, place, moment.days, format)?
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
            FieldType::Integer => return number(name, &plain).map(Cell::Integer),
            FieldType::Decimal => return number(name, &plain).map(Cell::Decimal),
            FieldType::Boolean => return Ok(Cell::Boolean(plain == "true")),
            FieldType::Date => {
                if let Some(moment) = serial(&plain) {
                    return Ok(Cell::Moment(moment));
                }
            }
            FieldType::Text => {}
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
    let address = Some(&plain).filter(|_| column == ANALYSIS_LINK);
    Ok(match address.and_then(|text| address_on_the_web(text)) {
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

/// Returns the address that `text` is on the web, so that no program has to mend it; nothing where it is
/// none, or where what people see could lead elsewhere.
fn address_on_the_web(text: &str) -> Option<String> {
    let begins_with = |scheme: &str| {
        let begin = text.get(..scheme.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    };
    let is_plain = |letter: char| match letter {
        ' ' => true,
        letter if letter.is_ascii() => {
            letter.is_ascii_graphic() && !"\"<>[]\\^`{|}".contains(letter)
        }
        // What nobody sees, or what turns the rest around.
        letter => !letter.is_control() && !letter.is_whitespace() && !text::is_invisible(letter),
    };
    let is_hexadecimal = |part: &str| {
        let digits = part.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let is_good = (begins_with("http://") || begins_with("https://"))
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

/// Returns `address` so that it stands in the workbook as it is; nothing where there is no such way.
/// rust_xlsxwriter takes an address for encoded only where it has one of some escapes, and encodes every
/// `%` once more where not.
fn as_written(address: String) -> Option<String> {
    const KNOWN: [&str; 11] = [
        "%20", "%22", "%25", "%3C", "%3E", "%5B", "%5D", "%5E", "%60", "%7B", "%7D",
    ];
    let (place, fragment) = address.split_at(address.find('#').unwrap_or(address.len()));
    let capitals = place.to_ascii_uppercase();
    if !place.contains('%') || KNOWN.iter().any(|escape| capitals.contains(escape)) {
        return Some(address);
    }
    // Letters beyond ASCII may stand there as they are.
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
