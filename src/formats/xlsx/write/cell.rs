//! The content of a cell.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr;

use super::web_address::WebAddresses;
use super::xml::{escape, has_foreign};
use crate::batch::{ANALYSIS_LINK, Batch, COLUMNS, Column, FieldType, exact_float};
use crate::formats::xlsx::excel_date::{ExcelDate, excel_date};
use crate::secret;

/// The longest text of a cell, in UTF-16 units.
const TEXT_LENGTH: usize = 32_767;

/// The content of a cell.
#[derive(Debug, PartialEq)]
pub(super) enum Cell<'a> {
    Empty,
    Text(Cow<'a, str>),
    /// Text with escapes for characters that XML cannot store.
    Escaped {
        text: Cow<'a, str>,
        /// Whether it has such characters; otherwise, some of it only looked like an escape.
        has_foreign: bool,
    },
    Link {
        /// As received.
        text: Cow<'a, str>,
        /// As programs open it; `None` if that is the same.
        address: Option<String>,
    },
    Integer(Number<'a>),
    Decimal(Number<'a>),
    Boolean(bool),
    Moment(ExcelDate),
}

/// A number that a spreadsheet keeps exactly.
#[derive(Debug, PartialEq)]
pub(super) struct Number<'a> {
    value: f64,
    /// As received.
    text: Cow<'a, str>,
}

impl Number<'_> {
    /// Returns the number with no more digits than it needs.
    pub(super) fn digits(&self) -> Cow<'_, str> {
        let is_usual = match self.text.as_bytes() {
            [b'0'] | [b'0', b'.', ..] => true,
            bytes => bytes
                .first()
                .is_some_and(|byte| (b'1'..=b'9').contains(byte)),
        };
        if !is_usual {
            return Cow::Owned(self.value.to_string());
        }
        Cow::Borrowed(match self.text.split_once('.') {
            Some(_) => self.text.trim_end_matches('0').trim_end_matches('.'),
            None => &self.text,
        })
    }
}

impl Cell<'_> {
    /// Returns the text of the cell, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Link { text, .. } | Self::Escaped { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Returns its width in characters.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Text(text) | Self::Link { text, .. } | Self::Escaped { text, .. } => {
                text.lines().map(UnicodeWidthStr::width).max().unwrap_or(0)
            }
            Self::Integer(number) => whole_width(number.value),
            Self::Decimal(number) => whole_width(number.value) + ".00".len(),
            Self::Boolean(_) => "FALSE".len(),
            Self::Moment(moment) if moment.has_fraction => "2026-05-01 06:00:00.000".len(),
            Self::Moment(_) => "2026-05-01 06:00:00".len(),
        }
    }
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

/// Returns the cell for `column`, or why it cannot be stored.
pub(super) fn cell<'a>(
    batch: &'a Batch,
    column: usize,
    addresses: &mut WebAddresses,
) -> Result<Cell<'a>, String> {
    let Column { name, kind, .. } = COLUMNS[column];
    let not_empty = |text: &Cow<'_, str>| !text.is_empty();
    // An invalid value is written as text.
    if kind != FieldType::Text
        && let Some(text) = batch.typed(column).filter(not_empty)
    {
        match kind {
            FieldType::Integer => return number(name, text).map(Cell::Integer),
            FieldType::Decimal => return number(name, text).map(Cell::Decimal),
            FieldType::Boolean => return Ok(Cell::Boolean(text == "true")),
            FieldType::Date => {
                if let Some(moment) = excel_date(&text) {
                    return Ok(Cell::Moment(moment));
                }
            }
            FieldType::Text => {}
        }
    }
    let Some(plain) = batch.plain(column).filter(not_empty) else {
        return Ok(Cell::Empty);
    };
    let length = |text: &str| text.encode_utf16().count();
    if let Some(text) = escape(&plain) {
        let (received, escaped) = (length(&plain), length(&text));
        if escaped > TEXT_LENGTH {
            return Err(format!(
                "`{name}` has {received} characters ({escaped} with the necessary escapes), but a spreadsheet cell holds at most {TEXT_LENGTH}"
            ));
        }
        let has_foreign = has_foreign(&plain);
        let text = Cow::Owned(text);
        return Ok(Cell::Escaped { text, has_foreign });
    }
    if plain.len() > TEXT_LENGTH && length(&plain) > TEXT_LENGTH {
        return Err(format!(
            "`{name}` has {} characters, but a spreadsheet cell holds at most {TEXT_LENGTH}",
            length(&plain)
        ));
    }
    if column == ANALYSIS_LINK
        && let Some(address) = addresses.find(&plain)
    {
        let address = Some(address).filter(|address| *address != plain);
        let address = address.map(Cow::into_owned);
        return Ok(Cell::Link {
            text: plain,
            address,
        });
    }
    Ok(Cell::Text(plain))
}

fn number<'a>(name: &str, text: Cow<'a, str>) -> Result<Number<'a>, String> {
    match exact_float(&text) {
        Some(value) => Ok(Number { value, text }),
        None => Err(format!(
            "`{name}` is {}, which a spreadsheet cannot keep exactly",
            secret::brief(&text)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_has_the_digits_of_its_value(text in r"-?0{0,2}[0-9]{1,9}(\.[0-9]{1,9})?") {
            if let Ok(number) = number("a", text.into()) {
                prop_assert_eq!(number.digits(), number.value.to_string());
            }
        }

        #[test]
        fn no_text_is_wider_than_its_bytes(text in ".*") {
            prop_assert!(Cell::Text(text.as_str().into()).width() <= text.len());
        }
    }
}
