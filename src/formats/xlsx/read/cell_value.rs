//! The value of a cell: as the service would write it, and whether it has the type of its column.

use std::borrow::Cow;

use anyhow::{Context as _, Result, bail};
use chrono::{DateTime, SecondsFormat};
use memchr::{memchr3, memmem};

use super::number_formats::NumberFormats;
use super::xml::resolve;
use crate::batch::{FieldType, Timestamp, is_number};
use crate::formats::xlsx::excel_date::{DAY, EPOCH, FIRST_DAY, with_fifteen_digits};

/// What a cell says that its value is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CellType {
    /// A number, or a date that is stored as one.
    #[default]
    Number,
    Boolean,
    Text,
    /// The number of a shared text.
    Shared,
    IsoDate,
    Error,
}

/// A cell of a sheet, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SheetCell<'a> {
    /// Its row and column, from 0.
    pub(super) place: (u32, u32),
    /// The number of its format.
    pub(super) format: u32,
    pub(super) kind: CellType,
    pub(super) text: Cow<'a, str>,
}

/// The value of a cell.
#[derive(Debug)]
pub(super) enum CellValue<'a> {
    Empty,
    Text(&'a str),
    /// A number, as it is written.
    Number(&'a str),
    Boolean(bool),
    /// A number of days.
    Date(f64),
    IsoDate(&'a str),
    Error(&'a str),
}

impl SheetCell<'_> {
    pub(super) fn value<'a>(
        &'a self,
        formats: &NumberFormats,
        texts: &'a SharedTexts,
    ) -> Result<CellValue<'a>> {
        let text = &*self.text;
        if text.is_empty() {
            return Ok(CellValue::Empty);
        }
        Ok(match self.kind {
            CellType::Number => match formats.date(self.format) {
                None => CellValue::Number(text),
                Some(has_whole_seconds) => {
                    let days = text.parse().unwrap_or_default();
                    // Other programs write some of them a little differently. Where the format shows no fraction of a
                    // second, that is not a change.
                    let whole = has_whole_seconds.then(|| whole_second(days));
                    CellValue::Date(whole.unwrap_or(days))
                }
            },
            CellType::Boolean => match text.trim() {
                "" => CellValue::Empty,
                "0" => CellValue::Boolean(false),
                "1" => CellValue::Boolean(true),
                text if text.eq_ignore_ascii_case("false") => CellValue::Boolean(false),
                text if text.eq_ignore_ascii_case("true") => CellValue::Boolean(true),
                _ => bail!("has a cell that is neither TRUE nor FALSE"),
            },
            CellType::Text => CellValue::Text(text),
            CellType::Shared => {
                let number = text.trim().parse().ok();
                let shared = number.and_then(|number| texts.get(number));
                CellValue::Text(shared.context("has a cell without its shared text")?)
            }
            CellType::IsoDate => CellValue::IsoDate(text),
            CellType::Error if text.starts_with('#') => CellValue::Error(text),
            CellType::Error => bail!("has an unknown error in a cell"),
        })
    }
}

/// The shared texts of a workbook, one after another.
#[derive(Debug, Default)]
pub(super) struct SharedTexts {
    all: String,
    ends: Vec<usize>,
}

impl SharedTexts {
    pub(super) fn push(&mut self, text: &str) {
        self.all.push_str(text);
        self.ends.push(self.all.len());
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, number: usize) -> Option<&str> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.all[start..end])
    }
}

/// Returns what a text in XML says: with its references resolved, without the blanks around it unless they are kept.
pub(super) fn plain_text(text: &str, keeps_blanks: bool) -> Cow<'_, str> {
    if memchr3(b'&', b'\r', b'_', text.as_bytes()).is_none() {
        return Cow::Borrowed(if keeps_blanks { text } else { trim(text) });
    }
    let mut plain = String::with_capacity(text.len());
    push_plain(&mut plain, &resolve(text), keeps_blanks);
    Cow::Owned(plain)
}

/// Adds a piece of a text with resolved references. Resolves the escapes of Excel: `_x000D_` is a carriage return.
pub(super) fn push_plain(plain: &mut String, piece: &str, keeps_blanks: bool) {
    let mut rest = if keeps_blanks { piece } else { trim(piece) };
    while let Some(at) = memmem::find(rest.as_bytes(), b"_x") {
        let mut units = Vec::new();
        let (before, mut after) = rest.split_at(at);
        while let Some(unit) = escaped_unit(after) {
            units.push(unit);
            after = &after[7..];
        }
        plain.push_str(before);
        plain.extend(char::decode_utf16(units).map(|letter| letter.unwrap_or('\u{fffd}')));
        if after.len() == rest.len() - at {
            plain.push_str("_x");
            after = &after[2..];
        }
        rest = after;
    }
    plain.push_str(rest);
}

/// Parses an escape such as `_x000D_` at the start of `text`.
fn escaped_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("_x")?.get(..5)?.strip_suffix('_')?;
    let is_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_digits)
}

/// Removes the blanks around a text; others than these are kept.
fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\r', '\n'])
}

/// Returns the whole second that `days` is nearest to, unless it is too far.
fn whole_second(days: f64) -> f64 {
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

/// Describes a value that has another type than an export writes. An export writes invalid values as text, so
/// text is wrong only if it is a valid value.
pub(super) fn wrong_type(
    kind: FieldType,
    value: &CellValue<'_>,
    text: &str,
) -> Option<&'static str> {
    let is_text = matches!(value, CellValue::Text(_));
    let has_digits = matches!(value, CellValue::Number(_));
    let is_date = matches!(value, CellValue::Date(_) | CellValue::IsoDate(_));
    match kind {
        FieldType::Text => (!is_text).then_some("a number, a date or a formula, not text"),
        FieldType::Integer | FieldType::Decimal if has_digits => None,
        FieldType::Integer | FieldType::Decimal if is_text => {
            is_number(text.trim()).then_some("text, not a number")
        }
        FieldType::Integer | FieldType::Decimal => Some("not a number"),
        FieldType::Boolean if matches!(value, CellValue::Boolean(_)) => None,
        FieldType::Boolean if is_text => {
            let is_boolean = ["true", "false"]
                .iter()
                .any(|word| word.eq_ignore_ascii_case(text));
            is_boolean.then_some("text, not TRUE or FALSE")
        }
        FieldType::Boolean => Some("not TRUE or FALSE"),
        FieldType::Date if is_date => None,
        FieldType::Date if is_text => is_countable(text).then_some("text, not a date"),
        FieldType::Date => Some("not formatted as a date"),
    }
}

/// Returns whether spreadsheets can store an instant in days: from 1900-03-01 on, to the millisecond.
fn is_countable(text: &str) -> bool {
    const FIRST: i64 = (FIRST_DAY - EPOCH) * 86_400;
    let digits = text.rsplit_once('.').map_or("", |(_, digits)| digits);
    let digits = digits.trim_end_matches('Z').trim_end_matches('0');
    Timestamp::parse(text).is_some_and(|moment| moment.second >= FIRST) && digits.len() <= 3
}

/// Returns the value of a cell as the service would write it.
pub(super) fn text(kind: FieldType, value: &CellValue<'_>) -> Option<String> {
    let text = match value {
        CellValue::Empty => return None,
        CellValue::Text(text) => unescape(text).into_owned(),
        CellValue::Boolean(yes) => yes.to_string(),
        CellValue::Number(number) if kind == FieldType::Date => instant(number.parse().ok()?),
        CellValue::Number(number) if is_shortest(number) => (*number).to_owned(),
        CellValue::Number(number) => number.parse::<f64>().ok()?.to_string(),
        CellValue::Date(days) if kind == FieldType::Date => instant(*days),
        CellValue::Date(days) => days.to_string(),
        CellValue::IsoDate(text) | CellValue::Error(text) => (*text).to_owned(),
    };
    Some(text).filter(|text| !text.is_empty())
}

/// Returns whether a number of digits and a decimal point is written as short as possible, so that it stays the same
/// as a float of 64 bits: that keeps fifteen digits.
fn is_shortest(number: &str) -> bool {
    let unsigned = number.strip_prefix('-').unwrap_or(number);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "1"));
    let is_digits =
        |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    unsigned.len() <= 16
        && is_digits(whole)
        && is_digits(fraction)
        && (whole == "0" || !whole.starts_with('0'))
        && !fraction.ends_with('0')
        && whole.len() <= 15
}

/// Returns the instant with the fewest digits that gives this number of days, to the microsecond.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "a number out of range is not a date, and stays a number"
)]
fn instant(days: f64) -> String {
    let whole = days.floor();
    let micros = ((days - whole) * DAY as f64).round() as i64;
    let seconds = (whole as i64).checked_sub(EPOCH);
    let micros = seconds
        .and_then(|days| days.checked_mul(DAY))
        .and_then(|start| start.checked_add(micros));
    let offset = EPOCH * DAY;
    let number = |micros: &i64| (micros + offset) as f64 / DAY as f64;
    let is_as_far = |micros: &i64| number(micros) == days;
    // openpyxl writes sixteen digits of a number that may need seventeen. That is still exact to the microsecond.
    let is_cut = |micros: &i64| {
        let digits = format!("{:.15e}", number(micros));
        days < 99_999.0 && digits.parse() == Ok(days)
    };
    // Far from now, two microseconds may give the same number of days.
    let shortest = |micros: i64| {
        let units = [1_000_000, 100_000, 10_000, 1_000, 100, 10];
        let rounded = units.map(|unit| (micros + unit / 2).div_euclid(unit) * unit);
        let (milliseconds, finer) = rounded.split_at(4);
        let exact = |of: &[i64]| of.iter().copied().find(is_as_far);
        exact(milliseconds)
            // LibreOffice writes fifteen digits.
            .or_else(|| Some(with_fifteen_digits(days, micros + offset)? - offset))
            .or_else(|| exact(finer))
            .or_else(|| exact(&[micros]))
            .or_else(|| rounded.into_iter().find(is_cut))
            .unwrap_or(micros)
    };
    let is_dated = |micros: &i64| DateTime::from_timestamp_micros(*micros).is_some();
    let micros = micros.filter(is_dated).map(shortest);
    let moment = micros.and_then(DateTime::from_timestamp_micros);
    let Some(moment) = moment else {
        return days.to_string();
    };
    moment.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// Undoes the escapes for characters that XML cannot store, such as `\u{1}`, and for text that looks like one.
pub(in crate::formats) fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u{") {
        return Cow::Borrowed(text);
    }
    let mut undone = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\u{") {
        undone.push_str(&rest[..at]);
        rest = &rest[at..];
        let mut digits = rest.bytes().skip(3).take(7);
        let digits = digits.position(|byte| byte == b'}');
        let digits = digits.map_or("", |length| &rest[3..3 + length]);
        let letter = u32::from_str_radix(digits, 16)
            .ok()
            .and_then(char::from_u32);
        let letter = letter.filter(|letter| {
            // Tabs and line breaks are not escaped.
            let is_escaped = matches!(
                letter,
                '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\\' | '\u{fffe}' | '\u{ffff}'
            );
            is_escaped && rest.starts_with(&letter.escape_unicode().to_string())
        });
        let length = if let Some(letter) = letter {
            undone.push(letter);
            digits.len() + 4
        } else {
            undone.push('\\');
            1
        };
        rest = &rest[length..];
    }
    undone.push_str(rest);
    Cow::Owned(undone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::xlsx::excel_date::excel_date;
    use chrono::TimeDelta;

    #[test]
    fn a_short_number_stays_the_same_as_a_float() {
        for (text, expected) in [
            ("0", true),
            ("-0", true),
            ("87.5", true),
            ("-0.000000000001", true),
            ("999999999999999", true),
            ("99999999999999.9", true),
            ("87.50", false),
            ("007", false),
            ("1.0", false),
            ("0.1234567890123456", false),
            ("9999999999999999", false),
            ("1e5", false),
            (".5", false),
        ] {
            assert_eq!(is_shortest(text), expected, "{text}");
            let float: f64 = text.parse().expect(text);
            assert!(!expected || float.to_string() == text, "{text}");
        }
    }

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
    fn a_date_to_the_millisecond_survives_libreoffice() {
        let start = DateTime::from_timestamp_micros(1_764_242_840_646_000).expect("a date");
        for step in 0..20_000 {
            let date = start + TimeDelta::milliseconds(step * 7_919_333);
            let text = date.to_rfc3339_opts(SecondsFormat::AutoSi, true);
            let days = excel_date(&text).expect("near").days;
            let rounded = format!("{days:.14e}").parse().expect("a number");
            assert_eq!((instant(days), instant(rounded)), (text.clone(), text));
        }
        // Of microseconds, what is stored as a number is read as it was.
        for step in 0..20_000 {
            let date = start + TimeDelta::microseconds(step * 86_400_000_003);
            let text = date.to_rfc3339_opts(SecondsFormat::AutoSi, true);
            if let Some(stored) = excel_date(&text) {
                assert_eq!(instant(stored.days), text);
            }
        }
    }

    #[test]
    fn texts_are_what_xml_and_excel_say() {
        for (text, plain) in [
            (" ä\u{a0} ", "ä\u{a0}"),
            ("a\r\nb\rc", "a\nb\nc"),
            ("a&#13;b &amp; &lt;", "a\rb & <"),
            ("&#32;a", "a"),
            ("a_x000D_b", "a\rb"),
            ("_x005F_x000D_", "_x000D_"),
            ("_xD83D__xDCF7__x", "📷_x"),
            ("_xD83D_a_xDCF7_", "\u{fffd}a\u{fffd}"),
            ("_x000_x0041_", "_x000A"),
            ("_x+041_ _x00é_", "_x+041_ _x00é_"),
            ("&#95;x0041_", "A"),
        ] {
            assert_eq!(plain_text(text, false), plain, "{text}");
        }
        assert_eq!(plain_text(" a\t", true), " a\t");
        assert_eq!(plain_text(" _x0041_&#32;", true), " A ");
    }

    #[test]
    fn escapes_without_an_end_take_no_quadratic_time() {
        let text = r"\u{".repeat(300_000);
        assert_eq!(unescape(&text), text);
        assert_eq!(
            unescape(r"\u{1}\u{5c}u{2}é\u{ffff}}"),
            "\u{1}\\u{2}é\u{ffff}}"
        );
        assert_eq!(unescape(r"\u{é}"), r"\u{é}");
    }

    #[test]
    #[allow(clippy::cast_precision_loss, reason = "as in the workbook")]
    fn a_date_with_sixteen_digits_is_the_same() {
        for micros in [
            1_792_454_399_992_000_i64,
            1_777_615_200_250_000,
            1_700_000_000_001_001,
            1_700_000_000_999_999,
        ] {
            let days = (micros + EPOCH * DAY) as f64 / DAY as f64;
            let digits: f64 = format!("{days:.15e}").parse().expect("a number");
            assert_eq!(instant(digits), instant(days), "{days}");
        }
        assert_eq!(instant(46_314.999_999_907_41), "2026-10-19T23:59:59.992Z");
    }

    #[test]
    fn every_microsecond_is_told_from_its_neighbours() {
        // 2024-02-15T06:07:08.999999Z, and random ones from 1970 to 2078.
        let mut rng = fastrand::Rng::with_seed(1);
        let micros = std::iter::repeat_with(|| rng.i64(0..3_400_000_000_000_000)).take(3000);
        let mut as_text = 0;
        for micros in [1_707_977_228_999_999].into_iter().chain(micros) {
            let moment = DateTime::from_timestamp_micros(micros).expect("a date");
            let text = moment.to_rfc3339_opts(SecondsFormat::AutoSi, true);
            match excel_date(&text) {
                Some(stored) => assert_eq!(instant(stored.days), text),
                // It could be a date to the millisecond with fifteen digits.
                None => as_text += 1,
            }
        }
        assert!(as_text <= 3, "{as_text}");
    }

    #[test]
    fn values_must_have_the_types_of_their_columns() {
        let text = CellValue::Text;
        for (kind, value, is_right) in [
            (FieldType::Text, text("7"), true),
            (FieldType::Text, CellValue::Number("7"), false),
            (FieldType::Text, CellValue::Boolean(true), false),
            (FieldType::Decimal, CellValue::Number("87.5"), true),
            (FieldType::Decimal, text("87.5"), false),
            (FieldType::Decimal, text("many"), true),
            (FieldType::Integer, CellValue::Boolean(true), false),
            (FieldType::Boolean, CellValue::Boolean(true), true),
            (FieldType::Boolean, text("TRUE"), false),
            (FieldType::Boolean, text("maybe"), true),
            (FieldType::Boolean, CellValue::Number("1"), false),
            (FieldType::Date, text("2026-05-01T06:00:00Z"), false),
            // These cannot be stored in days.
            (FieldType::Date, text("1850-05-01T06:00:00Z"), true),
            (FieldType::Date, text("9999-12-31T23:59:59.123456Z"), true),
            (FieldType::Date, CellValue::Number("46143.25"), false),
        ] {
            let written = super::text(kind, &value).unwrap_or_default();
            let found = wrong_type(kind, &value, &written);
            assert_eq!(found.is_none(), is_right, "{value:?} as {kind:?}");
        }
    }
}
