//! Reads the sheets of batches in a workbook, row by row, also after another program saved it.

// The value of a cell, and the formats that show it.
pub(in crate::formats) mod cell_value;
mod number_formats;

// The zip archive: its layout, and how large its parts are once unpacked.
mod zip_limits;
mod zip_structure;

// The parts: XML that other programs accept, and references that lead where they say.
mod links;
mod markup;
mod package;
mod structure;
mod usual;
mod values;
mod vocabulary;
mod wellformed;

use std::cell::RefCell;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::rc::Rc;

use calamine::{DataRef, Reader as _, Xlsx, XlsxCellReader, XlsxError};
use zip::ZipArchive;

use super::PROGRAM;
use super::summary::{SUMMARY_COLUMNS, SummaryCell, summary_cells};
use super::{ABOUT, BOUNDS, SUMMARY};
use crate::batch::range::Range;
use crate::batch::{
    BATCH_ID, COLUMNS, Column, FieldType, MEANINGS, PlainRow, Timestamp, Zone, column_bits,
    find_column, find_heading,
};
use crate::formats::record::{
    EmbeddedDigest, FileInfo, ReadError, Record, RecordHandler, RecordPlace, parse_digest_version,
};
use crate::formats::summary::CropSummary;
use crate::terminal;
use crate::text::brief;
use cell_value::{instant, is_text, text, unescape, wrong_type};
use number_formats::{NumberFormats, Shown};
use package::{Package, SheetFacts};
use usual::{UsualCell, UsualCells, UsualContent, UsualStep};

/// The sheet of batches; further ones have a number after this name.
const SHEET: &str = "Batches";
/// The number of rows of the sheet `About` that are read.
const ABOUT_ROWS: u32 = 64;

/// An open workbook.
pub(crate) struct Workbook<R: Read + Seek> {
    package: Package,
    file: Rc<RefCell<R>>,
    book: Xlsx<BufReader<SharedReader<R>>>,
    about: AboutFacts,
}

impl<R: Read + Seek> Workbook<R> {
    pub(crate) fn open(mut bytes: R) -> Result<Self, ReadError> {
        let package = zip_limits::check(&mut bytes)?;
        let file = Rc::new(RefCell::new(bytes));
        let mut book = catch_panic(|| Xlsx::new(SharedReader::new(&file)))?;
        if book.has_1904_epoch() {
            let why = "is a workbook that counts dates from 1904, which is not supported";
            let hint = "export the same batches again, or as csv";
            return Err(ReadError::foreign(why, hint));
        }
        let about = AboutFacts::read(&mut book)?;
        Ok(Self {
            package,
            file,
            book,
            about,
        })
    }

    /// Returns what the sheet `Summary` was computed from, beside the batches. `None` if
    /// another version wrote it, which may have had other figures.
    pub(crate) fn origin(&self) -> Option<SummaryOrigin> {
        let about = &self.about;
        let is_ours = about.writer.as_deref() == Some(PROGRAM);
        let zone = about.zone.as_deref().filter(|_| is_ours)?;
        let [start, past] = about.bounds;
        Some(SummaryOrigin {
            asked: about.asked?,
            zone: Zone::parse(zone).ok()?,
            range: Range {
                start,
                end: past,
                excludes_end: past.is_some(),
            },
        })
    }

    /// Reads the batches.
    pub(crate) fn read(&mut self, each: &mut RecordHandler<'_>) -> Result<FileInfo, ReadError> {
        let mut info = FileInfo::default();
        let mut count = 0;
        let book = &mut self.book;
        for name in sheets(&book.sheet_names())? {
            let mut sheet = SheetReader::new(&self.package, &name, &mut info, count)?;
            let cells = catch_panic(|| book.worksheet_cells_reader(&name))?;
            if sheet.read(&self.file, cells, each)? == ControlFlow::Break(()) {
                return Ok(info);
            }
            count = sheet.finish()?;
        }
        info.embedded_digest = self.about.digest.take();
        each_cell(book, SUMMARY, |_, _, _| Ok(()))?;
        Ok(info)
    }

    /// Returns whether there are figures to check.
    pub(crate) fn has_summary(&self) -> bool {
        self.book.sheet_names().iter().any(|name| name == SUMMARY)
    }

    /// Returns the first cell of the sheet `Summary` that does not show these figures, in words.
    pub(crate) fn wrong_figure(
        &mut self,
        summary: &CropSummary,
    ) -> Result<Option<String>, ReadError> {
        let mut expected = summary_cells(summary);
        let last_row = expected.keys().map(|(row, _)| *row).max();
        let mut wrong = None;
        each_cell(&mut self.book, SUMMARY, |place, value, shown_as| {
            // People write remarks beside and below the table.
            if place.1 >= SUMMARY_COLUMNS || Some(place.0) > last_row {
                return Ok(());
            }
            if !is_shown(value, shown_as) {
                return Err(hides_value(SUMMARY, place));
            }
            let cell = expected.remove(&place);
            let kind = match cell {
                Some(SummaryCell::Day(_)) => FieldType::Date,
                _ => FieldType::Text,
            };
            let shown = text(kind, value).unwrap_or_default();
            let right = cell.map(|cell| cell.to_string()).unwrap_or_default();
            if shown != unescape(&right) {
                wrong.get_or_insert_with(|| difference(place, &shown, &right));
            }
            Ok(())
        })?;
        let lost = expected.pop_first();
        let lost = lost.map(|(place, cell)| difference(place, "", &cell.to_string()));
        Ok(wrong.or(lost))
    }
}

/// Says what a cell of the sheet `Summary` shows, and what is right.
fn difference(place: (u32, u32), shown: &str, right: &str) -> String {
    let [shown, right] = [shown, right].map(|text| match text {
        "" => "nothing".to_owned(),
        text => format!("`{}`", brief(text)),
    });
    let cell = cell_name(place);
    format!("the sheet `{SUMMARY}` shows {shown} in {cell}, but the batches give {right}")
}

/// A reader of a file that others read as well, with a position of its own.
struct SharedReader<R> {
    file: Rc<RefCell<R>>,
    position: u64,
}

impl<R: Read + Seek> SharedReader<R> {
    fn new(file: &Rc<RefCell<R>>) -> BufReader<Self> {
        let file = Rc::clone(file);
        BufReader::new(Self { file, position: 0 })
    }
}

impl<R: Read + Seek> Read for SharedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = self.file.borrow_mut();
        file.seek(SeekFrom::Start(self.position))?;
        let length = file.read(buffer)?;
        self.position += length as u64;
        Ok(length)
    }
}

impl<R: Read + Seek> Seek for SharedReader<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let mut file = self.file.borrow_mut();
        file.seek(SeekFrom::Start(self.position))?;
        self.position = file.seek(to)?;
        Ok(self.position)
    }
}

/// Reads a sheet of batches.
struct SheetReader<'a> {
    name: &'a str,
    facts: SheetFacts,
    header: Header,
    row: PlainRow,
    /// The row of the last cell.
    at: Option<u32>,
    /// The last cell that was checked.
    last: Option<(u32, u32)>,
    /// The number of rows of batches, including those of the sheets before.
    count: u64,
    info: &'a mut FileInfo,
}

impl<'a> SheetReader<'a> {
    fn new(
        package: &Package,
        name: &'a str,
        info: &'a mut FileInfo,
        count: u64,
    ) -> Result<Self, ReadError> {
        Ok(Self {
            name,
            facts: package.sheet(name).map_err(altered)?,
            header: Header::default(),
            row: PlainRow::default(),
            at: None,
            last: None,
            count,
            info,
        })
    }

    /// Reads all cells. `cells` are only used from the first that is not in the notation of an export.
    fn read<R: Read + Seek>(
        &mut self,
        file: &Rc<RefCell<R>>,
        mut cells: XlsxCellReader<'_, BufReader<SharedReader<R>>>,
        each: &mut RecordHandler<'_>,
    ) -> Result<ControlFlow<()>, ReadError> {
        let formats = NumberFormats::new(cells.styles());
        let mut passed = 0;
        if let Some(flow) = self.read_usual(file, &formats, &mut passed, each)? {
            return Ok(flow);
        }
        for _ in 0..passed {
            catch_panic(|| cells.next_cell())?;
        }
        while let Some((cell, format)) = catch_panic(|| cells.next_cell_with_style_id())? {
            let place = cell.get_position();
            if self.next_row(Some(place.0), each)? == ControlFlow::Break(()) {
                return Ok(ControlFlow::Break(()));
            }
            let format = u32::try_from(format).ok();
            self.check_format(place, cell.get_value(), formats.shown(format))?;
            match cell.get_value() {
                DataRef::DateTime(days) if formats.has_whole_seconds(format) => {
                    self.add(place, &usual::date(days.as_f64(), true))?;
                }
                value => self.add(place, value)?,
            }
        }
        self.next_row(None, each)
    }

    /// Reads the cells as long as they are in the notation of an export, and counts them in `passed`; `None` if one is
    /// in another.
    fn read_usual<R: Read + Seek>(
        &mut self,
        file: &Rc<RefCell<R>>,
        formats: &NumberFormats,
        passed: &mut u64,
        each: &mut RecordHandler<'_>,
    ) -> Result<Option<ControlFlow<()>>, ReadError> {
        let Some(part) = self.facts.part.take() else {
            return Ok(None);
        };
        let Ok(mut archive) = ZipArchive::new(SharedReader::new(file)) else {
            return Ok(None);
        };
        let part = zip_limits::find_part(&mut archive, &part);
        let Some(mut usual) = part.map(UsualCells::new).transpose()?.flatten() else {
            return Ok(None);
        };
        loop {
            let cell = match usual.next()? {
                UsualStep::Cell(cell) => cell,
                UsualStep::End => return self.next_row(None, each).map(Some),
                UsualStep::Other => return Ok(None),
            };
            if self.next_row(Some(cell.place.0), each)? == ControlFlow::Break(()) {
                return Ok(Some(ControlFlow::Break(())));
            }
            let bytes = usual.bytes();
            let shown = formats.shown(cell.format);
            let is_shown = match cell.content {
                UsualContent::Number => {
                    let number = cell.text(bytes);
                    number.is_some_and(|number| shown.shows_number(&number))
                }
                _ => *shown == Shown::Value,
            };
            if !is_shown || !self.add_usual(&cell, bytes, formats)? {
                let Some(value) = cell.value(bytes, formats) else {
                    return Ok(None);
                };
                self.check_format(cell.place, &value, shown)?;
                self.add(cell.place, &value)?;
            }
            usual.skip(&cell);
            *passed += 1;
        }
    }

    /// Finishes the current row if the next cell is in another one.
    fn next_row(
        &mut self,
        next: Option<u32>,
        each: &mut RecordHandler<'_>,
    ) -> Result<ControlFlow<()>, ReadError> {
        if self.at.is_none() || self.at == next {
            self.at = next;
            return Ok(ControlFlow::Continue(()));
        }
        self.at = next;
        if !self.header.is_read {
            self.header.is_read = true;
            self.header.check(self.name, self.info)?;
            return Ok(ControlFlow::Continue(()));
        }
        self.count += 1;
        let columns = self.header.bits();
        // A row that was emptied is not a batch.
        if columns & 1 << BATCH_ID != 0 && self.row.texts.iter().all(Option::is_none) {
            return Ok(ControlFlow::Continue(()));
        }
        let record = Record::of_row(&self.row, columns, RecordPlace::Batch(self.count));
        let flow = each(&record).map_err(ReadError::Aborted);
        self.row = PlainRow::default();
        flow
    }

    /// Adds a cell to the header or to the current row.
    fn add(&mut self, place: (u32, u32), value: &DataRef<'_>) -> Result<(), ReadError> {
        let as_text = || text(FieldType::Text, value);
        self.check_cell(place, || as_text().unwrap_or_default())?;
        let (sheet, cell) = (self.name, || cell_name(place));
        if !self.header.is_read {
            return self.header.add(place.1, value);
        }
        let Some(column) = self.header.column(place.1) else {
            if self.header.others.contains(&place.1) || as_text().is_none() {
                return Ok(());
            }
            let cell = cell();
            return Err(altered(format!(
                "the sheet `{sheet}` has a value in {cell}, which is not in a column of the header"
            )));
        };
        let Column { name, kind, .. } = COLUMNS[column];
        let text = text(kind, value);
        let found = text
            .as_deref()
            .and_then(|text| wrong_type(kind, value, text));
        if let Some(found) = found {
            let why = format!("`{name}` in {} of the sheet `{sheet}` is {found}", cell());
            if !is_text(value) || kind == FieldType::Text {
                return Err(altered(why));
            }
            self.info.wrong_type.get_or_insert(why);
        }
        self.row.texts[column] = text;
        Ok(())
    }

    /// Checks the position of a cell with this text, and the target of its link.
    fn check_cell(
        &mut self,
        place: (u32, u32),
        text: impl Fn() -> String,
    ) -> Result<(), ReadError> {
        let (sheet, cell) = (self.name, || cell_name(place));
        if self.last.is_some_and(|last| last >= place) {
            let cell = cell();
            return Err(altered(format!(
                "the sheet `{sheet}` has repeated or unordered cells, at {cell}"
            )));
        }
        self.last = Some(place);
        if !self.facts.links.check(place, &text) {
            let cell = cell();
            return Err(altered(format!(
                "the link in {cell} of the sheet `{sheet}` does not lead to the address in the cell"
            )));
        }
        let is_inside = |[first, last]: &[(u32, u32); 2]| {
            (first.0..=last.0).contains(&place.0) && (first.1..=last.1).contains(&place.1)
        };
        let is_said = self.facts.cells.as_ref().is_none_or(is_inside);
        if !is_said && !text().is_empty() {
            let cell = cell();
            return Err(altered(format!(
                "the sheet `{sheet}` has a cell outside its declared range: {cell}"
            )));
        }
        Ok(())
    }

    /// Checks that people see the value of a cell, or the heading of its column.
    fn check_format(
        &self,
        place: (u32, u32),
        value: &DataRef<'_>,
        shown: &Shown,
    ) -> Result<(), ReadError> {
        let text = || text(FieldType::Text, value).unwrap_or_default();
        let is_heading = |words: &str| {
            let column = find_column(&text()).filter(|_| !self.header.is_read);
            column.is_some_and(|column| MEANINGS[column].heading() == words)
        };
        match shown {
            Shown::Words(words) if is_heading(words) => Ok(()),
            shown if is_shown(value, shown) => Ok(()),
            _ => Err(hides_value(self.name, place)),
        }
    }

    /// Adds a value that has the type of its column, as nearly all have. Returns false if it needs a closer look.
    fn add_usual(
        &mut self,
        cell: &UsualCell,
        bytes: &[u8],
        formats: &NumberFormats,
    ) -> Result<bool, ReadError> {
        let column = self.header.column(cell.place.1);
        let Some(column) = column.filter(|_| self.header.is_read) else {
            return Ok(false);
        };
        let kind = COLUMNS[column].kind;
        let Some(text) = cell.text(bytes) else {
            return Ok(false);
        };
        let days = || text.parse::<f64>().unwrap_or_default();
        let is_date = formats.is_date(cell.format);
        let value = match (cell.content, kind) {
            (UsualContent::Text { .. }, FieldType::Text) => unescape(&text).into_owned(),
            (UsualContent::Boolean, FieldType::Boolean) => (text == "1").to_string(),
            (UsualContent::Number, FieldType::Integer | FieldType::Decimal)
                if is_date == Some(false) && is_shortest(&text) =>
            {
                text.clone().into_owned()
            }
            (UsualContent::Number, FieldType::Date) if is_date == Some(true) => {
                if formats.has_whole_seconds(cell.format) {
                    instant(usual::whole_second(days()))
                } else {
                    instant(days())
                }
            }
            _ => return Ok(false),
        };
        self.check_cell(cell.place, || match kind {
            FieldType::Date => days().to_string(),
            _ => value.clone(),
        })?;
        self.row.texts[column] = Some(value).filter(|value| !value.is_empty());
        Ok(true)
    }

    /// Checks what the sheet must have at its end; returns the number of rows so far.
    fn finish(mut self) -> Result<u64, ReadError> {
        if !self.header.is_read {
            self.header.check(self.name, self.info)?;
        }
        if !self.facts.links.all_checked() {
            let sheet = self.name;
            return Err(altered(format!(
                "the sheet `{sheet}` has a link without a cell"
            )));
        }
        Ok(self.count)
    }
}

/// Returns whether a number of digits and a decimal point is written as short as possible, so that it stays the same
/// as a float of 64 bits: that keeps fifteen digits.
fn is_shortest(number: &str) -> bool {
    let unsigned = number.strip_prefix('-').unwrap_or(number);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "1"));
    unsigned.len() <= 16
        && (whole == "0" || !whole.starts_with('0'))
        && !fraction.ends_with('0')
        && whole.len() <= 15
}

/// Reads the cells of a sheet without batches, if it is there.
fn each_cell(
    book: &mut Xlsx<impl Read + Seek>,
    sheet: &str,
    mut each: impl FnMut((u32, u32), &DataRef<'_>, &Shown) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    if book.sheet_names().iter().any(|name| name == sheet) {
        let mut cells = catch_panic(|| book.worksheet_cells_reader(sheet))?;
        let formats = NumberFormats::new(cells.styles());
        while let Some((cell, format)) = catch_panic(|| cells.next_cell_with_style_id())? {
            let (place, value) = (cell.get_position(), cell.get_value());
            each(place, value, formats.shown(u32::try_from(format).ok()))?;
        }
    }
    Ok(())
}

/// Returns the name of a cell, such as `P12`.
fn cell_name((row, column): (u32, u32)) -> String {
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

/// Returns whether people see the value of a cell. Formats of numbers show text as it is.
fn is_shown(value: &DataRef<'_>, shown: &Shown) -> bool {
    let text = || text(FieldType::Text, value).unwrap_or_default();
    match (shown, value) {
        (Shown::Value, _) => true,
        (Shown::Words(_) | Shown::Other, _) => text().is_empty(),
        (_, DataRef::Int(_) | DataRef::Float(_)) => shown.shows_number(&text()),
        _ => true,
    }
}

fn hides_value(sheet: &str, place: (u32, u32)) -> ReadError {
    altered(format!(
        "the format of {} on the sheet `{sheet}` shows something else than its value",
        cell_name(place)
    ))
}

fn altered(why: String) -> ReadError {
    ReadError::broken(None, why, "the file was modified: export it again")
}

/// Runs code of calamine, which may panic if the workbook is damaged.
fn catch_panic<T>(work: impl FnOnce() -> Result<T, XlsxError>) -> Result<T, ReadError> {
    match terminal::caught(work) {
        Ok(read) => read.map_err(broken),
        Err(_) => Err(broken(XlsxError::Unexpected("invalid structure"))),
    }
}

/// What the sheet `Summary` was computed from, beside the batches.
pub(crate) struct SummaryOrigin {
    /// When the batches were requested, in seconds since 1970.
    pub(crate) asked: i64,
    pub(crate) zone: Zone,
    pub(crate) range: Range,
}

/// What the sheet `About` says.
#[derive(Default)]
struct AboutFacts {
    digest: Option<EmbeddedDigest>,
    /// When the batches were requested, in seconds since 1970.
    asked: Option<i64>,
    zone: Option<String>,
    /// The bounds of the figures, in seconds since 1970.
    bounds: [Option<i64>; 2],
    writer: Option<String>,
}

impl AboutFacts {
    fn read(book: &mut Xlsx<impl Read + Seek>) -> Result<Self, ReadError> {
        let mut about = Self::default();
        let (mut label, mut batches, mut set_digest, mut digest_version) =
            (String::new(), None, None, None);
        each_cell(book, ABOUT, |place, value, _| {
            let as_text = || text(FieldType::Text, value).unwrap_or_default();
            match (place, label.as_str()) {
                ((ABOUT_ROWS.., _), _) => {}
                ((_, 0), _) => label = as_text(),
                ((_, 1), "Batches") => batches = as_text().parse().ok(),
                ((_, 1), "Set digest") => set_digest = Some(as_text()),
                ((_, 1), "Digest version") => digest_version = Some(as_text()),
                ((_, 1), "Asked (UTC)") => {
                    let asked = text(FieldType::Date, value);
                    let asked = asked.and_then(|asked| Timestamp::parse(&asked));
                    about.asked = asked.map(|asked| asked.second);
                }
                ((_, 1), "Time zone") => about.zone = Some(as_text()),
                ((_, 1), name) if BOUNDS.contains(&name) => {
                    let bound = Timestamp::parse(&as_text()).map(|bound| bound.second);
                    about.bounds[usize::from(name == BOUNDS[1])] = bound;
                }
                ((_, 1), "Written by") => about.writer = Some(as_text()),
                _ => {}
            }
            Ok(())
        })?;
        about.digest = set_digest.map(|set_digest| EmbeddedDigest {
            batches,
            digest_version: parse_digest_version(digest_version.as_deref()),
            set_digest,
            unknown_fields_digest: None,
        });
        Ok(about)
    }
}

/// Returns the sheets of batches, by their names; if there are none, the first sheet that is not one of the others.
/// People add sheets after them, but one before them would be read in their place.
fn sheets(names: &[String]) -> Result<Vec<String>, ReadError> {
    let is_batches = |name: &&String| {
        let rest = name.strip_prefix(SHEET);
        rest.is_some_and(|rest| rest.is_empty() || rest.trim_start().parse::<u32>().is_ok())
    };
    // Figures are not batches, whatever else is on their sheet.
    let others = [SUMMARY, ABOUT];
    let found: Vec<String> = names.iter().filter(is_batches).cloned().collect();
    if !found.is_empty() {
        let mut before = names.iter().take_while(|name| !is_batches(name));
        return match before.find(|name| !others.contains(&name.as_str())) {
            None => Ok(found),
            Some(name) => Err(altered(format!(
                "the sheet `{}` is before the sheet `{SHEET}`, and other programs read the first one",
                brief(name)
            ))),
        };
    }
    let is_other = |name: &str| others.iter().any(|other| other.eq_ignore_ascii_case(name));
    match names.iter().find(|name| !is_other(name)) {
        Some(name) => Ok(vec![name.clone()]),
        None => Err(altered(format!("the spreadsheet has no sheet `{SHEET}`"))),
    }
}

/// The field of each column of the sheet.
#[derive(Default)]
struct Header {
    is_read: bool,
    columns: Vec<(u32, usize)>,
    /// Columns that are not fields.
    others: Vec<u32>,
    unknown: Vec<String>,
}

impl Header {
    fn add(&mut self, place: u32, value: &DataRef<'_>) -> Result<(), ReadError> {
        let Some(name) = text(FieldType::Text, value) else {
            return Ok(());
        };
        // The visible headings, too: people copy them into sheets of their own.
        let name = name.trim();
        match find_column(name).or_else(|| find_heading(name)) {
            Some(column) if self.columns.iter().any(|(_, known)| *known == column) => {
                let why = format!("`{name}` appears twice");
                Err(ReadError::broken(RecordPlace::Line(1), why, None))
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

    /// Returns the field of the column at `place`.
    fn column(&self, place: u32) -> Option<usize> {
        let mut columns = self.columns.iter();
        let found = columns.find(|(known, _)| *known == place);
        found.map(|(_, column)| *column)
    }

    fn bits(&self) -> u32 {
        column_bits(self.columns.iter().map(|(_, column)| *column))
    }

    /// Checks that there is a field, and that the fields are those of the previous sheet.
    fn check(&mut self, sheet: &str, info: &mut FileInfo) -> Result<(), ReadError> {
        let bits = self.bits();
        let why = if bits == 0 {
            format!("the first row of the sheet `{sheet}` has no field names")
        } else if info.columns.is_some_and(|before| before != bits) {
            format!("the fields of the sheet `{sheet}` differ from those of the previous one")
        } else {
            info.columns = Some(bits);
            for name in self.unknown.drain(..) {
                if !info.unknown.contains(&name) {
                    info.unknown.push(name);
                }
            }
            return Ok(());
        };
        Err(ReadError::broken(None, why, None))
    }
}

fn broken(error: XlsxError) -> ReadError {
    match error {
        XlsxError::Io(error) => ReadError::Io(error),
        XlsxError::FileNotFound(_) => ReadError::foreign(
            "is a zip archive, not a spreadsheet",
            "unpack it, and pass the export inside",
        ),
        other => ReadError::broken(
            None,
            format!("the spreadsheet cannot be read: {other}"),
            "the file is damaged or cut short: copy or export it again",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert_eq!(is_shortest(text), expected, "{text}");
            let float: f64 = text.parse().expect(text);
            assert!(!expected || float.to_string() == text, "{text}");
        }
    }

    #[test]
    fn only_our_own_sheets_may_be_before_the_batches() {
        let sheets = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            sheets(&names).ok()
        };
        for names in [
            &["Summary", "Batches", "About"][..],
            &["Batches", "Summary", "Data"],
            &["About", "Summary", "Batches", "Pivot"],
        ] {
            let expected = Some(vec!["Batches".to_owned()]);
            assert_eq!(sheets(names), expected, "{names:?}");
        }
        let both = Some(vec!["Batches".to_owned(), "Batches 2".to_owned()]);
        assert_eq!(sheets(&["Batches", "Batches 2", "Data"]), both);
        assert_eq!(sheets(&["Data", "Batches"]), None);
        assert_eq!(sheets(&["Summary", "batches", "Batches"]), None);
        assert_eq!(sheets(&["Data", "Summary"]), Some(vec!["Data".to_owned()]));
    }

    #[test]
    fn cells_have_names_of_letters_and_digits() {
        for (cell, name) in [
            ((0, 0), "A1"),
            ((11, 15), "P12"),
            ((0, 26), "AA1"),
            ((4, 701), "ZZ5"),
        ] {
            assert_eq!(cell_name(cell), name);
        }
    }
}
