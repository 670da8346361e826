//! `xlsx`: the sheets of batches in a workbook, row by row, whoever saved it last.

// How large it is, unpacked.
mod measure;

use std::borrow::Cow;
use std::io::{Read, Seek};
use std::ops::ControlFlow;

use calamine::{Cell, DataRef, Reader as _, Xlsx, XlsxError};
use chrono::DateTime;

use super::{Claim, Each, Place, Record, Remarks, Unreadable, version};
use crate::batch::{BATCH_ID, COLUMNS, Kind, Values, find_column, find_heading};
use crate::ui;

/// The sheet that holds batches; others go on with a number behind this name.
const SHEET: &str = "Batches";
/// The sheet that tells of them, and how many of its rows are looked at.
const ABOUT: &str = "About";
const ABOUT_ROWS: u32 = 64;
const DAY: f64 = 86_400_000_000.0;
/// Days before 1970 from which dates are counted.
const EPOCH: i64 = 25_569;

/// Reads the batches of the workbook in `bytes`.
pub(super) fn read(
    mut bytes: impl Read + Seek,
    each: &mut Each<'_>,
) -> Result<Remarks, Unreadable> {
    measure::check(&mut bytes)?;
    bytes.rewind()?;
    let mut book = contained(|| Xlsx::new(bytes))?;
    if book.has_1904_epoch() {
        return Err(Unreadable::Foreign {
            why: "counts its dates from 1904".to_owned(),
            hint: "export the same batches again, or as csv",
        });
    }
    let mut remarks = Remarks::default();
    let mut count = 0;
    for name in sheets(&book.sheet_names()) {
        let mut cells = contained(|| book.worksheet_cells_reader(&name))?;
        let mut header = Header::default();
        let mut row = Row::default();
        let mut at = None;
        loop {
            let cell = contained(|| cells.next_cell())?;
            let place = cell.as_ref().map(Cell::get_position);
            let next = place.map(|(row, _)| row);
            if at.is_some() && at != next {
                if header.is_read {
                    count += 1;
                    if row.hand_on(&header, count, each)? == ControlFlow::Break(()) {
                        return Ok(remarks);
                    }
                } else {
                    header.is_read = true;
                    header.check(&name, &mut remarks)?;
                }
            }
            let (Some(cell), Some((_, place))) = (cell, place) else {
                break;
            };
            at = next;
            if header.is_read {
                row.add(&header, place, cell.get_value());
            } else {
                header.add(place, cell.get_value())?;
            }
        }
        if !header.is_read {
            header.check(&name, &mut remarks)?;
        }
    }
    remarks.claim = claim(&mut book)?;
    Ok(remarks)
}

/// Runs what reads the workbook: over a damaged one, it may panic.
fn contained<T>(work: impl FnOnce() -> Result<T, XlsxError>) -> Result<T, Unreadable> {
    match ui::caught(work) {
        Ok(read) => read.map_err(broken),
        Err(_) => Err(broken(XlsxError::Unexpected("no sense in it"))),
    }
}

/// Reads what the workbook says of its batches.
fn claim(book: &mut Xlsx<impl Read + Seek>) -> Result<Option<Claim>, Unreadable> {
    if !book.sheet_names().iter().any(|name| name == ABOUT) {
        return Ok(None);
    }
    let mut cells = contained(|| book.worksheet_cells_reader(ABOUT))?;
    let (mut label, mut batches, mut set_digest, mut digest_version) =
        (String::new(), None, None, None);
    while let Some(cell) = contained(|| cells.next_cell())? {
        let value = text(Kind::Text, cell.get_value()).unwrap_or_default();
        match (cell.get_position(), label.as_str()) {
            ((ABOUT_ROWS.., _), _) => break,
            ((_, 0), _) => label = value,
            ((_, 1), "Batches") => batches = value.parse().ok(),
            ((_, 1), "Set digest") => set_digest = Some(value),
            ((_, 1), "Digest version") => digest_version = Some(value),
            _ => {}
        }
    }
    Ok(set_digest.map(|set_digest| Claim {
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
    unknown: Vec<String>,
}

impl Header {
    fn add(&mut self, place: u32, value: &DataRef<'_>) -> Result<(), Unreadable> {
        let Some(name) = text(Kind::Text, value) else {
            return Ok(());
        };
        // The words that people see too: that is what they copy into a sheet of their own.
        let name = name.trim();
        match find_column(name).or_else(|| find_heading(name)) {
            Some(column) if self.columns.iter().any(|(_, known)| *known == column) => {
                let why = format!("`{name}` is there twice");
                Err(Unreadable::broken(Place::Line(1), why))
            }
            Some(column) => {
                self.columns.push((place, column));
                Ok(())
            }
            None => {
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
    fn check(&mut self, sheet: &str, remarks: &mut Remarks) -> Result<(), Unreadable> {
        let bits = self.bits();
        let why = if bits == 0 {
            format!("the first row of the sheet `{sheet}` names no field of a batch")
        } else if remarks.columns.is_some_and(|before| before != bits) {
            format!("the sheet `{sheet}` has other fields than the one before it")
        } else {
            remarks.columns = Some(bits);
            for name in self.unknown.drain(..) {
                if !remarks.unknown.contains(&name) {
                    remarks.unknown.push(name);
                }
            }
            return Ok(());
        };
        Err(Unreadable::Broken {
            place: None,
            why,
            hint: None,
        })
    }
}

/// The values of one row.
#[derive(Default)]
struct Row {
    cells: [Option<String>; COLUMNS.len()],
}

impl Row {
    fn add(&mut self, header: &Header, place: u32, value: &DataRef<'_>) {
        let known = header.columns.iter().find(|(at, _)| *at == place);
        if let Some(&(_, column)) = known {
            self.cells[column] = text(COLUMNS[column].kind, value);
        }
    }

    fn hand_on(
        &mut self,
        header: &Header,
        count: u64,
        each: &mut Each<'_>,
    ) -> Result<ControlFlow<()>, Unreadable> {
        let columns = header.bits();
        // Rows that people emptied are none.
        if columns & 1 << BATCH_ID != 0 && self.cells.iter().all(Option::is_none) {
            return Ok(ControlFlow::Continue(()));
        }
        let record = Record {
            values: &*self,
            columns,
            sound: false,
            place: Place::Batch(count),
        };
        let wanted = each(&record).map_err(Unreadable::Told);
        self.cells = Default::default();
        wanted
    }
}

impl Values for Row {
    fn plain(&self, column: usize) -> Option<Cow<'_, str>> {
        self.cells[column].as_deref().map(Cow::Borrowed)
    }
}

/// Returns what a cell says, as the service would write it.
fn text(kind: Kind, value: &DataRef<'_>) -> Option<String> {
    let text = match value {
        DataRef::Empty => return None,
        DataRef::String(text) => undo_escapes(text).into_owned(),
        DataRef::SharedString(text) => undo_escapes(text).into_owned(),
        DataRef::Bool(yes) => yes.to_string(),
        DataRef::Int(number) => number.to_string(),
        DataRef::Float(days) if kind == Kind::Date => instant(*days),
        DataRef::Float(number) => number.to_string(),
        DataRef::DateTime(days) if kind == Kind::Date => instant(days.as_f64()),
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

fn broken(error: XlsxError) -> Unreadable {
    match error {
        XlsxError::Io(error) => Unreadable::Io(error),
        XlsxError::FileNotFound(_) => Unreadable::Foreign {
            why: "is a zip archive, and no spreadsheet".to_owned(),
            hint: "unpack it, and name the export in it",
        },
        other => Unreadable::Broken {
            place: None,
            why: format!("the spreadsheet cannot be read: {other}"),
            hint: Some("it is damaged or cut short: copy or export it again"),
        },
    }
}
