//! `xlsx`: a workbook for people: typed cells, live links, and a sheet that says what it is.
//!
//! Rows go to a file without a name beside the output, which is packed at the end: whatever their number,
//! they take no memory. Text stands in its cells and in no table of its own, for the same reason.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rust_xlsxwriter::{
    Color, DocProperties, ExcelDateTime, Format, FormatAlign, FormatUnderline, Url, Workbook,
    Worksheet, XlsxError,
};

use super::{BatchWriter, Facts, Notes, Output, Style};
use crate::batch::{
    ANALYSIS_LINK, Batch, COLUMNS, EXACT_DIGITS, Kind, Moment, WARNINGS, is_number,
    significant_digits, unquote,
};
use crate::digest::SetDigest;
use crate::error::{self, Failure};
use crate::select::Fields;
use crate::ui;

/// Rows of a sheet, its header among them.
const ROWS: u32 = 1_048_576;
/// Links of a sheet: past them, Excel calls the file damaged.
const LINKS: u32 = 65_530;
/// The longest link.
const LINK_LENGTH: usize = 2_079;
/// What one cell holds, in UTF-16.
const TEXT_LENGTH: usize = 32_767;
/// Stands behind the name of a column of dates: cells know no zone.
const ZONE: &str = " (UTC)";

const DAY: i64 = 86_400_000_000;
/// Days before 1970 from which dates are counted.
const EPOCH: i64 = 25_569;
/// 1900-03-01: before it, Excel counts a day that never was.
const FIRST_DAY: i64 = 61;

pub(super) struct Xlsx {
    book: Workbook,
    path: PathBuf,
    output: Output,
    fields: Fields,
    facts: Arc<Facts>,
    extracted: String,
    looks: [Looks; 2],
    digest: SetDigest,
    sheets: Vec<Sheet>,
    /// Rows and links that a sheet may have.
    limits: (u32, u32),
    escaped_cells: u64,
    left_out: BTreeSet<String>,
}

/// How far a sheet has come.
struct Sheet {
    rows: u32,
    links: u32,
    /// Links that are text for want of room.
    dead: u32,
}

/// How cells look, in one row.
struct Looks {
    text: Format,
    link: Format,
    integer: Format,
    decimal: Format,
    boolean: Format,
    second: Format,
    fraction: Format,
}

impl Looks {
    fn new(base: &Format) -> Self {
        let numbered = |format: &str| base.clone().set_num_format(format);
        Self {
            // As text even after somebody has edited it.
            text: numbered("@"),
            link: numbered("@")
                .set_font_color(Color::RGB(0x05_63_C1))
                .set_underline(FormatUnderline::Single),
            integer: numbered("0"),
            decimal: numbered("0.00"),
            boolean: base.clone().set_align(FormatAlign::Center),
            second: numbered("yyyy-mm-dd hh:mm:ss"),
            fraction: numbered("yyyy-mm-dd hh:mm:ss.000"),
        }
    }
}

impl Xlsx {
    pub(super) fn new(mut output: Output, style: Style) -> Result<Self, Failure> {
        let path = output.hand_out().map_err(Failure::from_output)?;
        let mut book = Workbook::new();
        if let Some(folder) = path.parent() {
            let tempdir = book.set_tempdir(folder);
            tempdir.map_err(|error| Failure::from_output(io_error(error)))?;
        }
        let marked = Format::new().set_background_color(Color::RGB(0xFF_F2_CC));
        let mut new = Self {
            book,
            path,
            output,
            digest: SetDigest::new(&style.fields.columns),
            fields: style.fields,
            facts: style.facts,
            extracted: style.extracted,
            looks: [Looks::new(&Format::new()), Looks::new(&marked)],
            sheets: Vec::new(),
            limits: (ROWS, LINKS),
            escaped_cells: 0,
            left_out: BTreeSet::new(),
        };
        new.begin_sheet().map_err(Failure::from_output)?;
        Ok(new)
    }

    fn begin_sheet(&mut self) -> io::Result<()> {
        let name = match self.sheets.len() {
            0 => "Batches".to_owned(),
            before => format!("Batches {}", before + 1),
        };
        let columns = &self.fields.columns;
        let book = &mut self.book;
        checked(|| {
            let sheet = book.add_worksheet_with_constant_memory()?;
            sheet.set_name(name)?.set_freeze_panes(1, 0)?;
            let bold = Format::new().set_bold();
            for (place, &column) in (0..).zip(columns) {
                let header = header(column);
                sheet.set_column_width(place, width(column, &header))?;
                sheet.write_string_with_format(0, place, header, &bold)?;
            }
            Ok(())
        })?;
        self.sheets.push(Sheet {
            rows: 1,
            links: 0,
            dead: 0,
        });
        Ok(())
    }

    /// Adds the sheet that tells what the others are.
    fn write_about(&mut self) -> io::Result<()> {
        let dead: u32 = self.sheets.iter().map(|sheet| sheet.dead).sum();
        let [looks, _] = &self.looks;
        let (book, facts) = (&mut self.book, &self.facts);
        let (extracted, digest) = (&self.extracted, &self.digest);
        let links = self.limits.1;
        checked(|| {
            let sheet = book.add_worksheet_with_constant_memory()?;
            sheet.set_name("About")?.set_column_width(0, 16)?;
            sheet.set_column_width(1, 70)?;
            let version = facts.version.get().map_or("", String::as_str);
            let program = concat!("trayscan ", env!("CARGO_PKG_VERSION"));
            let mut about = About {
                sheet,
                row: 0,
                bold: Format::new().set_bold(),
            };
            about.text("Range", &facts.range, looks)?;
            about.text("Service", &facts.source, looks)?;
            about.text("Version", version, looks)?;
            if let Some(moment) = serial(extracted) {
                let look = looks.second.clone().set_align(FormatAlign::Left);
                about.number("Asked (UTC)", moment.days, &look)?;
            }
            // More than 15 digits of batches fit on no disk.
            #[allow(clippy::cast_precision_loss)]
            let count = digest.count() as f64;
            let look = looks.integer.clone().set_align(FormatAlign::Left);
            about.number("Batches", count, &look)?;
            about.text("Set digest", &digest.finish(), looks)?;
            about.text("Written by", program, looks)?;
            let marks = "rows with a fill are batches with warnings";
            about.text("Marks", marks, looks)?;
            if dead > 0 {
                let why = format!(
                    "Excel takes {links} live links in a sheet: the {dead} beyond are text"
                );
                about.text("Links", &why, looks)?;
            }
            Ok(())
        })
    }

    fn refused(batch: &Batch, why: &str) -> io::Error {
        let id = batch.id();
        let message = format!("batch `{}`: {why}", ui::brief(&id));
        let hint =
            "leave the field out with `--fields`, or write json or csv, which keep everything";
        io::Error::other(Failure::new(error::Kind::Protocol, message).hint(hint))
    }
}

impl BatchWriter for Xlsx {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        if self
            .sheets
            .last()
            .is_none_or(|sheet| sheet.rows == self.limits.0)
        {
            self.begin_sheet()?;
        }
        let cells = self
            .fields
            .columns
            .iter()
            .map(|&column| cell(batch, column));
        let mut cells = cells
            .collect::<Result<Vec<_>, _>>()
            .map_err(|why| Self::refused(batch, &why))?;
        let index = self.sheets.len() - 1;
        let sheet = &mut self.sheets[index];
        for cell in &mut cells {
            if let Cell::Link(text) = cell {
                if sheet.links == self.limits.1 {
                    sheet.dead += 1;
                    *cell = Cell::Text(std::mem::take(text));
                } else {
                    sheet.links += 1;
                }
            } else if let Cell::Escaped(text) = cell {
                self.escaped_cells += 1;
                *cell = Cell::Text(Cow::Owned(std::mem::take(text)));
            }
        }
        let is_marked = batch.typed(WARNINGS).as_deref() == Some("true");
        let looks = &self.looks[usize::from(is_marked)];
        let row = sheet.rows;
        let book = &mut self.book;
        checked(|| {
            let page = book.worksheet_from_index(index)?;
            for (place, cell) in (0..).zip(&cells) {
                cell.write(page, (row, place), looks, is_marked)?;
            }
            Ok(())
        })?;
        sheet.rows += 1;
        self.digest.add(batch);
        if !self.fields.named {
            for (name, _) in batch.unknown() {
                let name = unquote(name);
                if !self.left_out.contains(name.as_ref()) {
                    self.left_out.insert(name.into_owned());
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<(Output, Notes)> {
        let width = u16::try_from(self.fields.columns.len()).unwrap_or(u16::MAX);
        self.write_about()?;
        let (book, sheets, path) = (&mut self.book, &self.sheets, &self.path);
        checked(|| {
            for (index, sheet) in sheets.iter().enumerate() {
                let page = book.worksheet_from_index(index)?;
                page.autofilter(0, 0, sheet.rows - 1, width.saturating_sub(1))?;
            }
            book.worksheet_from_index(0)?.set_active(true);
            if let Some(made) = Moment::parse(&self.extracted) {
                let made = ExcelDateTime::from_timestamp(made.second)?;
                book.set_properties(&DocProperties::new().set_creation_datetime(&made));
            }
            // Not created anew: it has its owner and mode already.
            book.save_to_writer(File::options().write(true).truncate(true).open(path)?)
        })?;
        let notes = Notes {
            escaped_cells: self.escaped_cells,
            left_out: self.left_out.into_iter().collect(),
            ..Notes::default()
        };
        Ok((self.output, notes))
    }
}

/// Lines of the sheet that tells what the others are.
struct About<'a> {
    sheet: &'a mut Worksheet,
    row: u32,
    bold: Format,
}

impl About<'_> {
    fn label(&mut self, label: &str) -> Result<u32, XlsxError> {
        let row = self.row;
        self.sheet
            .write_string_with_format(row, 0, label, &self.bold)?;
        self.row += 1;
        Ok(row)
    }

    fn text(&mut self, label: &str, text: &str, looks: &Looks) -> Result<(), XlsxError> {
        if !text.is_empty() {
            let row = self.label(label)?;
            let text = visible(text).unwrap_or_else(|| text.to_owned());
            self.sheet
                .write_string_with_format(row, 1, text, &looks.text)?;
        }
        Ok(())
    }

    fn number(&mut self, label: &str, number: f64, look: &Format) -> Result<(), XlsxError> {
        let row = self.label(label)?;
        self.sheet.write_number_with_format(row, 1, number, look)?;
        Ok(())
    }
}

/// What stands in a cell.
#[derive(Debug, PartialEq)]
enum Cell<'a> {
    Empty,
    Text(Cow<'a, str>),
    /// Text with escapes for what XML has no place for.
    Escaped(String),
    Link(Cow<'a, str>),
    Integer(f64),
    Decimal(f64),
    Boolean(bool),
    Moment(Serial),
}

impl Cell<'_> {
    fn write(
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
                sheet.write_string_with_format(row, place, text.as_ref(), &looks.text)?
            }
            Self::Escaped(text) => {
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

/// Returns the cell for `column`, or why there can be none.
fn cell(batch: &Batch, column: usize) -> Result<Cell<'_>, String> {
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
    let cell = match visible(&plain) {
        Some(escaped) => Cell::Escaped(escaped),
        None if column == ANALYSIS_LINK && is_link(&plain) => Cell::Link(plain),
        None => Cell::Text(plain),
    };
    let length = match &cell {
        Cell::Escaped(text) => text.encode_utf16().count(),
        Cell::Text(text) if text.len() > TEXT_LENGTH => text.encode_utf16().count(),
        _ => 0,
    };
    if length > TEXT_LENGTH {
        return Err(format!(
            "`{name}` has {length} characters, and a cell of a spreadsheet holds {TEXT_LENGTH}"
        ));
    }
    Ok(cell)
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

/// An instant as spreadsheets count: in days.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Serial {
    days: f64,
    has_fraction: bool,
}

/// Returns an instant in days, where that keeps it exactly: from 1900-03-01 on, to the microsecond.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "what is lost is looked for"
)]
fn serial(text: &str) -> Option<Serial> {
    let second = Moment::parse(text)?.second;
    let fraction = text.trim_end_matches('Z').split_once('.');
    let fraction = fraction.map_or("", |(_, digits)| digits.trim_end_matches('0'));
    if fraction.len() > 6 || second.div_euclid(86_400) + EPOCH < FIRST_DAY {
        return None;
    }
    let micros: i64 = format!("{fraction:0<6}").parse().ok()?;
    let total = (second + EPOCH * 86_400) * 1_000_000 + micros;
    let days = total as f64 / DAY as f64;
    let whole = days.floor();
    let again = whole as i64 * DAY + ((days - whole) * DAY as f64).round() as i64;
    (again == total).then_some(Serial {
        days,
        has_fraction: micros != 0,
    })
}

/// Returns `text` with visible escapes for what XML cannot carry, such as `\u{1}`; nothing where it can
/// carry all of it. A text that looks like such an escape is escaped too, so that each can be undone.
fn visible(text: &str) -> Option<String> {
    let is_foreign = |letter: char| matches!(letter, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    let is_escape = |rest: &str| {
        let digits = rest
            .strip_prefix("\\u{")
            .and_then(|rest| rest.split_once('}'));
        let code = digits.and_then(|(digits, _)| u32::from_str_radix(digits, 16).ok());
        let letter = code.and_then(char::from_u32);
        letter.is_some_and(|letter| letter == '\\' || is_foreign(letter))
    };
    if !text.contains(is_foreign)
        && !text
            .match_indices("\\u{")
            .any(|(at, _)| is_escape(&text[at..]))
    {
        return None;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for (at, letter) in text.char_indices() {
        if is_foreign(letter) || letter == '\\' && is_escape(&text[at..]) {
            escaped.extend(letter.escape_unicode());
        } else {
            escaped.push(letter);
        }
    }
    Some(escaped)
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

fn header(column: usize) -> String {
    let zone = if COLUMNS[column].kind == Kind::Date {
        ZONE
    } else {
        ""
    };
    format!("{}{zone}", COLUMNS[column].name)
}

/// Returns how wide a column is, in digits: its name and the button of the filter fit, and usual values.
#[allow(clippy::cast_precision_loss, reason = "names are short")]
fn width(column: usize, header: &str) -> f64 {
    let usual = match (COLUMNS[column].name, COLUMNS[column].kind) {
        ("batch_id", _) => 38.0,
        ("batch_name" | "scanned_by_email", _) => 34.0,
        ("analysis_link", _) => 72.0,
        ("comment", _) => 60.0,
        (_, Kind::Date) => 24.0,
        (_, Kind::Text) => 20.0,
        _ => 10.0,
    };
    (header.len() as f64 + 4.0).max(usual)
}

/// Does `work` on the workbook. Where a file cannot be written, rust_xlsxwriter panics: that is no bug
/// here, but a full disk.
fn checked<T>(work: impl FnOnce() -> Result<T, XlsxError>) -> io::Result<T> {
    match ui::caught(work) {
        Ok(done) => done.map_err(io_error),
        Err(what) => {
            let is_full = what.contains("StorageFull") || what.contains("QuotaExceeded");
            let kind = if is_full {
                io::ErrorKind::StorageFull
            } else {
                io::ErrorKind::Other
            };
            Err(io::Error::new(kind, what))
        }
    }
}

fn io_error(error: XlsxError) -> io::Error {
    match error {
        XlsxError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::undo_escapes;
    use crate::writers::{Compression, Place, Target};
    use calamine::Reader as _;
    use proptest::prelude::*;

    fn batch(number: u32) -> Batch {
        let text = format!(
            r#"{{"batch_id":"{number}","batch_name":"n","batch_creation_date":"2026-05-01T06:00:00Z","number_of_images":1,"analysis_link":"https://example.org/{number}","warnings":false}}"#
        );
        Batch::read(&text).batch.expect("a batch")
    }

    #[test]
    fn what_is_too_much_for_a_sheet_goes_on() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("a.xlsx");
        let target = Target::open(&Place::File(path.clone()), false).expect("a target");
        let output = Output::new(target, Compression::None).expect("an output");
        let style = Style {
            fields: Fields::all(),
            width: None,
            color: false,
            extracted: "2026-05-02T00:00:00Z".to_owned(),
            bookmark: None,
            facts: Arc::default(),
        };
        let mut writer = Box::new(Xlsx::new(output, style).expect("a writer"));
        writer.limits = (4, 2);
        for number in 0..7 {
            writer.write(&batch(number)).expect("written");
        }
        let (output, _) = writer.finish().expect("finished");
        output.publish().expect("published");

        let mut book: calamine::Xlsx<_> = calamine::open_workbook(&path).expect("a workbook");
        assert_eq!(
            book.sheet_names(),
            ["Batches", "Batches 2", "Batches 3", "About"]
        );
        for (sheet, rows, links) in [("Batches", 4, 2), ("Batches 2", 4, 2), ("Batches 3", 2, 1)] {
            let range = book.worksheet_range(sheet).expect("a sheet");
            assert_eq!(range.height(), rows, "{sheet}");
            assert_eq!(range[(0, 0)].to_string(), "batch_id");
            let live = book.hyperlinks_by_sheet_name(sheet).expect("links");
            assert_eq!(live.len(), links, "{sheet}");
        }
        let about = book.worksheet_range("About").expect("a sheet");
        let last = about.rows().next_back().expect("a row");
        assert!(last[1].to_string().contains("the 2 beyond"), "{last:?}");

        let mut ids = Vec::new();
        let mut source = crate::readers::Source::open(&path).expect("a file");
        let read = source.read(None, &mut |record| {
            ids.push(record.values.plain(0).unwrap_or_default().into_owned());
            Ok(std::ops::ControlFlow::Continue(()))
        });
        read.expect("batches");
        assert_eq!(ids, ["0", "1", "2", "3", "4", "5", "6"]);
    }

    proptest! {
        #[test]
        fn escapes_can_be_undone(text in r"(\\|u\{|[0-9a-f]{1,4}|\}|\\u\{(1|5c|0001|fffe|41)\}|[\x00-\x1f\u{fffe}é])*") {
            let escaped = visible(&text).unwrap_or_else(|| text.clone());
            prop_assert_eq!(undo_escapes(&escaped), text);
        }

        #[test]
        fn moments_of_this_century_keep_their_microseconds(second in 946_684_800_i64..3_400_000_000, micros in 0_i64..1_000_000) {
            let moment = chrono::DateTime::from_timestamp_micros(second * 1_000_000 + micros).expect("a moment");
            let text = moment.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
            prop_assert!(serial(&text).is_some(), "{}", text);
        }
    }
}
