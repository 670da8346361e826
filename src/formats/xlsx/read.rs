//! `xlsx`: the sheets of batches in a workbook, row by row, whoever saved it last.

// The zip archive: its layout, and how large its parts are once unpacked.
mod zip_limits;
mod zip_structure;

// The parts: XML that other programs accept, and references that lead where they say.
mod links;
mod markup;
mod package;
mod vocabulary;
mod wellformed;

use std::borrow::Cow;
use std::io::{Read, Seek};
use std::ops::ControlFlow;

use calamine::{Cell, DataRef, Reader as _, Xlsx, XlsxError};
use chrono::DateTime;

use crate::batch::{
    BATCH_ID, COLUMNS, Column, FieldType, Timestamp, Values, find_column, find_heading, is_number,
};
use crate::formats::record::{
    Each, EmbeddedDigest, FileInfo, ReadError, Record, RecordPlace, version,
};
use crate::terminal;
use package::{Package, SheetFacts};

/// The sheet that holds batches; others go on with a number behind this name.
const SHEET: &str = "Batches";
/// The sheet that tells of them, and how many of its rows are looked at.
const ABOUT: &str = "About";
const ABOUT_ROWS: u32 = 64;
const DAY: f64 = 86_400_000_000.0;
/// Days before 1970 from which dates are counted.
const EPOCH: i64 = 25_569;

/// Reads the batches of the workbook in `bytes`.
pub(crate) fn read(
    mut bytes: impl Read + Seek,
    each: &mut Each<'_>,
) -> Result<FileInfo, ReadError> {
    let package = zip_limits::check(&mut bytes)?;
    bytes.rewind()?;
    let mut book = contained(|| Xlsx::new(bytes))?;
    if book.has_1904_epoch() {
        return Err(ReadError::Foreign {
            why: "counts its dates from 1904".to_owned(),
            hint: "export the same batches again, or as csv",
        });
    }
    let mut info = FileInfo::default();
    let mut count = 0;
    for name in sheets(&book.sheet_names()) {
        let mut guard = SheetGuard::new(&package, &name)?;
        let mut cells = contained(|| book.worksheet_cells_reader(&name))?;
        let mut header = Header::default();
        let mut row = SheetRow::default();
        let mut at = None;
        loop {
            let cell = contained(|| cells.next_cell())?;
            let place = cell.as_ref().map(Cell::get_position);
            let next = place.map(|(row, _)| row);
            if at.is_some() && at != next {
                if header.is_read {
                    count += 1;
                    if row.hand_on(&header, count, each)? == ControlFlow::Break(()) {
                        return Ok(info);
                    }
                } else {
                    header.is_read = true;
                    header.check(&name, &mut info)?;
                }
            }
            let (Some(cell), Some((_, place))) = (cell, place) else {
                break;
            };
            at = next;
            guard.check(&cell)?;
            if header.is_read {
                row.add(&header, &name, &cell, &mut info)?;
            } else {
                header.add(place, cell.get_value())?;
            }
        }
        if !header.is_read {
            header.check(&name, &mut info)?;
        }
        guard.finish()?;
    }
    info.claim = claim(&mut book)?;
    Ok(info)
}

/// Checks the cells of a sheet one by one: where they stand, and where their links lead.
struct SheetGuard<'a> {
    sheet: &'a str,
    facts: SheetFacts,
    last: Option<(u32, u32)>,
}

impl<'a> SheetGuard<'a> {
    fn new(package: &Package, sheet: &'a str) -> Result<Self, ReadError> {
        Ok(Self {
            sheet,
            facts: package.sheet(sheet).map_err(altered)?,
            last: None,
        })
    }

    fn check(&mut self, cell: &Cell<DataRef<'_>>) -> Result<(), ReadError> {
        let place = cell.get_position();
        if self.last.is_some_and(|last| last >= place) {
            return Err(altered(format!(
                "the sheet `{}` has cells twice or out of order, at {}",
                self.sheet,
                shown(place)
            )));
        }
        self.last = Some(place);
        let text = || text(FieldType::Text, cell.get_value()).unwrap_or_default();
        if !self.facts.links.check(place, text) {
            return Err(altered(format!(
                "the link in {} of the sheet `{}` leads elsewhere than the cell says",
                shown(place),
                self.sheet
            )));
        }
        let is_inside = |[first, last]: &[(u32, u32); 2]| {
            (first.0..=last.0).contains(&place.0) && (first.1..=last.1).contains(&place.1)
        };
        let is_said = self.facts.cells.as_ref().is_none_or(is_inside);
        if !is_said && !text().is_empty() {
            return Err(altered(format!(
                "the sheet `{}` has a cell outside of those that it says it has: {}",
                self.sheet,
                shown(place)
            )));
        }
        Ok(())
    }

    fn finish(self) -> Result<(), ReadError> {
        if self.facts.links.all_met() {
            return Ok(());
        }
        let sheet = self.sheet;
        Err(altered(format!(
            "the sheet `{sheet}` has a link without a cell"
        )))
    }
}

/// Writes a cell as people do, such as `P12`.
fn shown((row, column): (u32, u32)) -> String {
    let mut letters = Vec::new();
    let mut rest = column + 1;
    while rest > 0 {
        letters.push(char::from(
            b'A' + u8::try_from((rest - 1) % 26).unwrap_or_default(),
        ));
        rest = (rest - 1) / 26;
    }
    let letters: String = letters.iter().rev().collect();
    format!("{letters}{}", u64::from(row) + 1)
}

fn altered(why: String) -> ReadError {
    ReadError::Broken {
        place: None,
        why,
        hint: Some("somebody altered it: export it again"),
    }
}

/// Runs what reads the workbook: over a damaged one, it may panic.
fn contained<T>(work: impl FnOnce() -> Result<T, XlsxError>) -> Result<T, ReadError> {
    match terminal::caught(work) {
        Ok(read) => read.map_err(broken),
        Err(_) => Err(broken(XlsxError::Unexpected("no sense in it"))),
    }
}

/// Reads what the workbook says of its batches.
fn claim(book: &mut Xlsx<impl Read + Seek>) -> Result<Option<EmbeddedDigest>, ReadError> {
    if !book.sheet_names().iter().any(|name| name == ABOUT) {
        return Ok(None);
    }
    let mut cells = contained(|| book.worksheet_cells_reader(ABOUT))?;
    let (mut label, mut batches, mut set_digest, mut digest_version) =
        (String::new(), None, None, None);
    while let Some(cell) = contained(|| cells.next_cell())? {
        let value = text(FieldType::Text, cell.get_value()).unwrap_or_default();
        match (cell.get_position(), label.as_str()) {
            ((ABOUT_ROWS.., _), _) => break,
            ((_, 0), _) => label = value,
            ((_, 1), "Batches") => batches = value.parse().ok(),
            ((_, 1), "Set digest") => set_digest = Some(value),
            ((_, 1), "Digest version") => digest_version = Some(value),
            _ => {}
        }
    }
    Ok(set_digest.map(|set_digest| EmbeddedDigest {
        batches,
        digest_version: version(digest_version.as_deref()),
        set_digest,
        unknown_fields_digest: None,
    }))
}

/// Returns the sheets with batches: by their names, or else the first.
fn sheets(names: &[String]) -> Vec<String> {
    let is_batches = |name: &&String| {
        let rest = name.strip_prefix(SHEET);
        rest.is_some_and(|rest| rest.is_empty() || rest.trim_start().parse::<u32>().is_ok())
    };
    let found: Vec<String> = names.iter().filter(is_batches).cloned().collect();
    if found.is_empty() {
        names.iter().take(1).cloned().collect()
    } else {
        found
    }
}

/// Which column of the sheet holds which field.
#[derive(Default)]
struct Header {
    is_read: bool,
    columns: Vec<(u32, usize)>,
    /// Columns that hold no field.
    others: Vec<u32>,
    unknown: Vec<String>,
}

impl Header {
    fn add(&mut self, place: u32, value: &DataRef<'_>) -> Result<(), ReadError> {
        let Some(name) = text(FieldType::Text, value) else {
            return Ok(());
        };
        // The words that people see too: that is what they copy into a sheet of their own.
        let name = name.trim();
        match find_column(name).or_else(|| find_heading(name)) {
            Some(column) if self.columns.iter().any(|(_, known)| *known == column) => {
                let why = format!("`{name}` appears twice");
                Err(ReadError::broken(RecordPlace::Line(1), why))
            }
            Some(column) => {
                self.columns.push((place, column));
                Ok(())
            }
            None => {
                self.others.push(place);
                self.unknown.push(name.to_owned());
                Ok(())
            }
        }
    }

    fn bits(&self) -> u32 {
        self.columns
            .iter()
            .fold(0, |bits, (_, column)| bits | 1 << column)
    }

    /// Looks whether there is a field at all, and the same ones as in the sheet before.
    fn check(&mut self, sheet: &str, info: &mut FileInfo) -> Result<(), ReadError> {
        let bits = self.bits();
        let why = if bits == 0 {
            format!("the first row of the sheet `{sheet}` names no field of a batch")
        } else if info.columns.is_some_and(|before| before != bits) {
            format!("the sheet `{sheet}` has other fields than the one before it")
        } else {
            info.columns = Some(bits);
            for name in self.unknown.drain(..) {
                if !info.unknown.contains(&name) {
                    info.unknown.push(name);
                }
            }
            return Ok(());
        };
        Err(ReadError::Broken {
            place: None,
            why,
            hint: None,
        })
    }
}

/// The values of one row.
#[derive(Default)]
struct SheetRow {
    cells: [Option<String>; COLUMNS.len()],
}

impl SheetRow {
    fn add(
        &mut self,
        header: &Header,
        sheet: &str,
        cell: &Cell<DataRef<'_>>,
        info: &mut FileInfo,
    ) -> Result<(), ReadError> {
        let (row, place) = cell.get_position();
        let value = cell.get_value();
        let known = header.columns.iter().find(|(at, _)| *at == place);
        let Some(&(_, column)) = known else {
            if header.others.contains(&place) || text(FieldType::Text, value).is_none() {
                return Ok(());
            }
            let cell = shown((row, place));
            return Err(altered(format!(
                "the sheet `{sheet}` has a value in {cell}, where it has no column"
            )));
        };
        let Column { name, kind, .. } = COLUMNS[column];
        let text = text(kind, value);
        if let Some(found) = text
            .as_deref()
            .and_then(|text| wrong_type(kind, value, text))
        {
            let cell = shown((row, place));
            let why = format!("`{name}` in {cell} of the sheet `{sheet}` is {found}");
            if !is_text(value) || kind == FieldType::Text {
                return Err(altered(why));
            }
            info.mistyped.get_or_insert(why);
        }
        self.cells[column] = text;
        Ok(())
    }

    fn hand_on(
        &mut self,
        header: &Header,
        count: u64,
        each: &mut Each<'_>,
    ) -> Result<ControlFlow<()>, ReadError> {
        let columns = header.bits();
        // Rows that people emptied are none.
        if columns & 1 << BATCH_ID != 0 && self.cells.iter().all(Option::is_none) {
            return Ok(ControlFlow::Continue(()));
        }
        let record = Record {
            values: &*self,
            columns,
            sound: false,
            place: RecordPlace::Batch(count),
        };
        let wanted = each(&record).map_err(ReadError::Aborted);
        self.cells = Default::default();
        wanted
    }
}

impl Values for SheetRow {
    fn plain(&self, column: usize) -> Option<Cow<'_, str>> {
        self.cells[column].as_deref().map(Cow::Borrowed)
    }
}

/// Says what a value is that stands in its column as another type than an export writes. What is no value of
/// its column stands there as text.
fn wrong_type(kind: FieldType, value: &DataRef<'_>, text: &str) -> Option<&'static str> {
    let is_text = is_text(value);
    let is_number = matches!(value, DataRef::Int(_) | DataRef::Float(_));
    let is_date = matches!(value, DataRef::DateTime(_) | DataRef::DateTimeIso(_));
    match kind {
        FieldType::Text => (!is_text).then_some("a number, a date or a formula, and not text"),
        FieldType::Integer | FieldType::Decimal if is_number => None,
        FieldType::Integer | FieldType::Decimal if is_text => {
            number(text).then_some("text, and not a number")
        }
        FieldType::Integer | FieldType::Decimal => Some("not a number"),
        FieldType::Boolean if matches!(value, DataRef::Bool(_)) => None,
        FieldType::Boolean if is_text => {
            let is_boolean = ["true", "false"]
                .iter()
                .any(|word| word.eq_ignore_ascii_case(text));
            is_boolean.then_some("text, and not TRUE or FALSE")
        }
        FieldType::Boolean => Some("not TRUE or FALSE"),
        FieldType::Date if is_date => None,
        FieldType::Date if is_text => is_countable(text).then_some("text, and not a date"),
        FieldType::Date => Some("not shown as a date"),
    }
}

fn is_text(value: &DataRef<'_>) -> bool {
    matches!(value, DataRef::String(_) | DataRef::SharedString(_))
}

fn number(text: &str) -> bool {
    is_number(text.trim())
}

/// Returns whether spreadsheets can count an instant in days: from 1900-03-01 on, to the millisecond.
fn is_countable(text: &str) -> bool {
    const FIRST: i64 = (61 - EPOCH) * 86_400;
    let digits = text.rsplit_once('.').map_or("", |(_, digits)| digits);
    let digits = digits.trim_end_matches('Z').trim_end_matches('0');
    Timestamp::parse(text).is_some_and(|moment| moment.second >= FIRST) && digits.len() <= 3
}

/// Returns what a cell says, as the service would write it.
fn text(kind: FieldType, value: &DataRef<'_>) -> Option<String> {
    let text = match value {
        DataRef::Empty => return None,
        DataRef::String(text) => undo_escapes(text).into_owned(),
        DataRef::SharedString(text) => undo_escapes(text).into_owned(),
        DataRef::Bool(yes) => yes.to_string(),
        DataRef::Int(number) => number.to_string(),
        DataRef::Float(days) if kind == FieldType::Date => instant(*days),
        DataRef::Float(number) => number.to_string(),
        DataRef::DateTime(days) if kind == FieldType::Date => instant(days.as_f64()),
        DataRef::DateTime(days) => days.as_f64().to_string(),
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => text.clone(),
        DataRef::Error(error) => error.to_string(),
    };
    Some(text).filter(|text| !text.is_empty())
}

/// Returns the instant that is so many days away: the one with the fewest digits, and none finer than a
/// microsecond.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "what is out of range is no date, and stays a number"
)]
fn instant(days: f64) -> String {
    let whole = days.floor();
    let micros = ((days - whole) * DAY).round() as i64;
    let seconds = (whole as i64).checked_sub(EPOCH);
    let micros = seconds
        .and_then(|days| days.checked_mul(86_400_000_000))
        .and_then(|start| start.checked_add(micros));
    let offset = EPOCH * 86_400_000_000;
    let is_as_far = |micros: &i64| (micros + offset) as f64 / DAY == days;
    // Far from now, two microseconds may be equally many days away.
    let shortest = |micros: i64| {
        let units = [1_000_000, 100_000, 10_000, 1_000, 100, 10];
        let rounded = units.map(|unit| (micros + unit / 2).div_euclid(unit) * unit);
        rounded.into_iter().find(is_as_far).unwrap_or(micros)
    };
    let is_dated = |micros: &i64| DateTime::from_timestamp_micros(*micros).is_some();
    let micros = micros.filter(is_dated).map(shortest);
    let moment = micros.and_then(DateTime::from_timestamp_micros);
    moment.map_or_else(
        || days.to_string(),
        |moment| moment.format("%Y-%m-%dT%H:%M:%S%.fZ").to_string(),
    )
}

/// Undoes the escapes for characters that no XML can carry, such as `\u{1}`, and for what looks like one.
pub(crate) fn undo_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u{") {
        return Cow::Borrowed(text);
    }
    let mut undone = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\u{") {
        undone.push_str(&rest[..at]);
        rest = &rest[at..];
        let digits = rest[3..].split_once('}').map_or("", |(digits, _)| digits);
        let letter = u32::from_str_radix(digits, 16)
            .ok()
            .and_then(char::from_u32);
        let letter = letter.filter(|letter| {
            // Tabs and ends of lines are carried as they are.
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

fn broken(error: XlsxError) -> ReadError {
    match error {
        XlsxError::Io(error) => ReadError::Io(error),
        XlsxError::FileNotFound(_) => ReadError::Foreign {
            why: "is a zip archive, and no spreadsheet".to_owned(),
            hint: "unpack it, and name the export in it",
        },
        other => ReadError::Broken {
            place: None,
            why: format!("the spreadsheet cannot be read: {other}"),
            hint: Some("it is damaged or cut short: copy or export it again"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_types_of_their_columns() {
        let text = |text: &str| DataRef::String(text.to_owned());
        for (kind, value, is_right) in [
            (FieldType::Text, text("7"), true),
            (FieldType::Text, DataRef::Float(7.0), false),
            (FieldType::Text, DataRef::Bool(true), false),
            (FieldType::Decimal, DataRef::Float(87.5), true),
            (FieldType::Decimal, text("87.5"), false),
            (FieldType::Decimal, text("many"), true),
            (FieldType::Integer, DataRef::Bool(true), false),
            (FieldType::Boolean, DataRef::Bool(true), true),
            (FieldType::Boolean, text("TRUE"), false),
            (FieldType::Boolean, text("maybe"), true),
            (FieldType::Boolean, DataRef::Float(1.0), false),
            (FieldType::Date, text("2026-05-01T06:00:00Z"), false),
            // Days cannot count these.
            (FieldType::Date, text("1850-05-01T06:00:00Z"), true),
            (FieldType::Date, text("9999-12-31T23:59:59.123456Z"), true),
            (FieldType::Date, DataRef::Float(46_143.25), false),
        ] {
            let written = super::text(kind, &value).unwrap_or_default();
            let found = wrong_type(kind, &value, &written);
            assert_eq!(found.is_none(), is_right, "{value:?} as {kind:?}");
        }
    }

    #[test]
    fn cells_are_named_as_people_name_them() {
        for (cell, name) in [
            ((0, 0), "A1"),
            ((11, 15), "P12"),
            ((0, 26), "AA1"),
            ((4, 701), "ZZ5"),
        ] {
            assert_eq!(shown(cell), name);
        }
    }
}
