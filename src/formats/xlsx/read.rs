//! Reads the sheets of batches in a workbook, row by row, also after another program saved it.
//!
//! Each part is unpacked once, and checked while it is read. Other programs refuse what is not well-formed or not
//! consistent, or read something else.

// The value of a cell, and the formats that show it.
pub(in crate::formats) mod cell_value;
mod number_formats;

// The zip archive.
mod zip_structure;

// A part: XML that other programs accept.
mod attributes;
mod markup;
mod part;
mod usual;
mod wellformed;
mod xml;

// All parts: references that lead where they say.
mod links;
mod package;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Display;
use std::io::{Read, Seek};
use std::ops::ControlFlow;

use anyhow::{Context as _, ensure};
use rust_xlsxwriter::utility::row_col_to_cell;
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
use crate::secret::brief;
use cell_value::{CellValue, SharedTexts, text, unescape, wrong_type};
use links::Links;
use markup::cells_at;
use number_formats::{NumberFormats, Shown};
use package::Package;
use part::{Budget, PackagePart, PartReader, Relation, is_sheet};

/// The sheet of batches; further ones have a number after this name.
const SHEET: &str = "Batches";
/// The number of rows of the sheet `About` that are read.
const ABOUT_ROWS: u32 = 64;
/// The label of the time when the batches were requested.
const ASKED: &str = "Asked (UTC)";

/// An open workbook.
pub(crate) struct Workbook<R: Read + Seek> {
    archive: ZipArchive<R>,
    /// The places of all parts in the archive, by their names in lower case.
    places: BTreeMap<String, usize>,
    package: Package,
    budget: Budget,
    formats: NumberFormats,
    texts: SharedTexts,
    digest: Option<EmbeddedDigest>,
    /// What the sheet `Summary` was computed from, beside the batches: when they were requested, in seconds since 1970,
    /// and their range. `None` if another version wrote it, which may have had other figures.
    pub(crate) origin: Option<(i64, Zone, Range)>,
}

impl<R: Read + Seek> Workbook<R> {
    /// Reads everything except for the sheets of batches and those of others.
    pub(crate) fn open(mut bytes: R) -> Result<Self, ReadError> {
        zip_structure::check(&mut bytes).map_err(altered)?;
        let archive = ZipArchive::new(bytes).map_err(|error| {
            let why = format!("the spreadsheet cannot be read: {error}");
            let hint = "the file is damaged or cut short: copy or export it again";
            ReadError::broken(None, why, hint)
        })?;
        let mut book = Self {
            archive,
            places: BTreeMap::new(),
            package: Package::default(),
            budget: Budget::default(),
            formats: NumberFormats::default(),
            texts: SharedTexts::default(),
            digest: None,
            origin: None,
        };
        let names = book.archive.file_names_raw().map(|name| {
            let name = String::from_utf8_lossy(name);
            name.to_lowercase().replace('\\', "/")
        });
        for (place, name) in names.collect::<Vec<_>>().into_iter().enumerate() {
            if book.places.insert(name.clone(), place).is_some() {
                return Err(in_part(&name, "appears twice"));
            }
            if is_sheet(&name) {
                book.package.add(&name, PackagePart::default());
            } else {
                book.read_part(&name)?;
            }
        }
        if book.package.has_book() || book.places.keys().any(|name| is_sheet(name)) {
            book.package.check_book().map_err(altered)?;
        } else if !book.places.contains_key("_rels/.rels") {
            let why = "is a zip archive, not a spreadsheet";
            let hint = "unpack it, and pass the export inside";
            return Err(ReadError::foreign(why, hint));
        }
        if book.package.is_1904() {
            let why = "is a workbook that counts dates from 1904, which is not supported";
            let hint = "export the same batches again, or as csv";
            return Err(ReadError::foreign(why, hint));
        }
        (book.formats, book.texts) = book.package.take_values();
        book.read_about()?;
        Ok(book)
    }

    /// Reads a part from which no cells are needed.
    fn read_part(&mut self, name: &str) -> Result<(), ReadError> {
        let part = self.archive.by_index(self.places[name]).map_err(unpacked)?;
        let size = part.size();
        let read = match name.rsplit_once('.') {
            Some((_, "xml" | "rels")) => {
                PartReader::new(part, name, size, &mut self.budget).and_then(PartReader::finish)
            }
            _ => self.budget.skip(part, name),
        };
        let part = read.map_err(|why| in_part(name, why))?;
        self.package.add(name, part);
        Ok(())
    }

    fn has_sheet(&self, sheet: &str) -> bool {
        let mut sheets = self.package.sheets().iter();
        sheets.any(|known| known.name == sheet)
    }

    /// Reads the cells of a sheet, until `each` breaks.
    fn each_cell(
        &mut self,
        sheet: &str,
        mut each: impl FnMut((u32, u32), &CellValue<'_>, &Shown) -> Result<ControlFlow<()>, ReadError>,
    ) -> Result<ControlFlow<()>, ReadError> {
        let name = self.package.path(sheet).map_err(altered)?;
        self.package.require(&name).map_err(altered)?;
        let part = self.archive.by_index(self.places[&name]);
        let part = part.map_err(unpacked)?;
        let size = part.size();
        let wrong = |why: anyhow::Error| in_part(&name, why);
        let mut reader = PartReader::new(part, &name, size, &mut self.budget).map_err(wrong)?;
        while let Some(cell) = reader.next_cell().map_err(wrong)? {
            let value = cell.value(&self.formats, &self.texts).map_err(wrong)?;
            let shown = self.formats.shown(cell.format);
            if each(cell.place, &value, shown)? == ControlFlow::Break(()) {
                return Ok(ControlFlow::Break(()));
            }
        }
        let part = reader.finish().map_err(wrong)?;
        let is_range = |range: &String| !range.contains('$') && cells_at(range).is_some();
        if !part.dimension.as_ref().is_none_or(is_range) {
            return Err(in_part(&name, "has an invalid range"));
        }
        if part.root != "worksheet" || !part.has_rows {
            let sheet = brief(sheet);
            return Err(altered(format!("the sheet `{sheet}` has no cells")));
        }
        self.package.add(&name, part);
        Ok(ControlFlow::Continue(()))
    }

    /// Reads what the sheet `About` says.
    fn read_about(&mut self) -> Result<(), ReadError> {
        if !self.has_sheet(ABOUT) {
            return Ok(());
        }
        let (mut label, mut facts) = (String::new(), HashMap::new());
        let _ = self.each_cell(ABOUT, |place, value, _| {
            let kind = match label.as_str() {
                ASKED => FieldType::Date,
                _ => FieldType::Text,
            };
            match place {
                (ABOUT_ROWS.., _) => {}
                (_, 0) => label = text(FieldType::Text, value).unwrap_or_default(),
                (_, 1) => drop(facts.insert(label.clone(), text(kind, value).unwrap_or_default())),
                _ => {}
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let fact = |label: &str| facts.get(label).map(String::as_str);
        self.digest = fact("Set digest").map(|set_digest| EmbeddedDigest {
            batches: fact("Batches").and_then(|count| count.parse().ok()),
            digest_version: parse_digest_version(fact("Digest version")),
            set_digest: set_digest.to_owned(),
            unknown_fields_digest: None,
        });
        let second = |label: &str| Some(Timestamp::parse(fact(label)?)?.second);
        let zone = fact("Time zone").filter(|_| fact("Written by") == Some(PROGRAM));
        let zone = zone.and_then(|zone| Zone::parse(zone).ok());
        let [start, end] = BOUNDS.map(second);
        let range = Range {
            start,
            end,
            excludes_end: end.is_some(),
        };
        let origin = second(ASKED).zip(zone);
        self.origin = origin.map(|(asked, zone)| (asked, zone, range));
        Ok(())
    }

    /// Reads the batches.
    pub(crate) fn read(&mut self, each: &mut RecordHandler<'_>) -> Result<FileInfo, ReadError> {
        let mut info = FileInfo::default();
        let mut count = 0;
        let names = self
            .package
            .sheets()
            .iter()
            .map(|sheet| sheet.name.as_str());
        for name in sheets(&names.collect::<Vec<_>>())? {
            let mut sheet = SheetReader::new(&self.package, &name, &mut info, count)?;
            let flow = self.each_cell(&name, |place, value, shown| {
                let flow = sheet.next_row(Some(place.0), each)?;
                if flow == ControlFlow::Continue(()) {
                    sheet.check_format(place, value, shown)?;
                    sheet.add(place, value)?;
                }
                Ok(flow)
            })?;
            if flow == ControlFlow::Break(())
                || sheet.next_row(None, each)? == ControlFlow::Break(())
            {
                return Ok(info);
            }
            count = sheet.finish(&self.package)?;
        }
        info.embedded_digest = self.digest.take();
        Ok(info)
    }

    /// Returns whether there are figures to check.
    pub(crate) fn has_summary(&self) -> bool {
        self.has_sheet(SUMMARY)
    }

    /// Reads the other sheets. Returns the first cell of the sheet `Summary` that does not show these figures, in words.
    pub(crate) fn finish(
        &mut self,
        summary: Option<&CropSummary>,
    ) -> Result<Option<String>, ReadError> {
        let wrong = if self.has_summary() {
            self.wrong_figure(summary)?
        } else {
            None
        };
        for name in self.places.clone().into_keys() {
            let is_unread = |part: &PackagePart| part.root.is_empty();
            if is_sheet(&name) && self.package.part(&name).is_some_and(is_unread) {
                self.read_part(&name)?;
            }
        }
        self.package.check(&self.formats).map_err(altered)?;
        Ok(wrong)
    }

    fn wrong_figure(&mut self, summary: Option<&CropSummary>) -> Result<Option<String>, ReadError> {
        let mut expected = summary.map(summary_cells).unwrap_or_default();
        let last_row = expected.keys().map(|(row, _)| *row).max();
        let mut wrong = None;
        let _ = self.each_cell(SUMMARY, |place, value, shown_as| {
            // People write remarks beside and below the table.
            if place.1 >= SUMMARY_COLUMNS || last_row.is_none_or(|last| place.0 > last) {
                return Ok(ControlFlow::Continue(()));
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
            Ok(ControlFlow::Continue(()))
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

/// Reads a sheet of batches.
struct SheetReader<'a> {
    name: &'a str,
    links: Links,
    header: Header,
    row: PlainRow,
    /// The last cell.
    last: Option<(u32, u32)>,
    /// The first and the last row and column with a cell that is not empty.
    bounds: Option<[(u32, u32); 2]>,
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
        let mut sheets = package.sheets().iter();
        if sheets.any(|sheet| sheet.name == name && sheet.is_hidden) {
            return Err(altered(format!("the sheet `{name}` is hidden")));
        }
        let path = package.path(name).map_err(altered)?;
        let links = package.relations(&path).iter();
        let links = links.filter(|relation| relation.is_external);
        Ok(Self {
            name,
            links: Links::new(links.map(|relation| relation.target.as_str())),
            header: Header::default(),
            row: PlainRow::default(),
            last: None,
            bounds: None,
            count,
            info,
        })
    }

    /// Finishes the current row if the next cell is in another one.
    fn next_row(
        &mut self,
        next: Option<u32>,
        each: &mut RecordHandler<'_>,
    ) -> Result<ControlFlow<()>, ReadError> {
        if self.last.is_none_or(|last| Some(last.0) == next) {
            return Ok(ControlFlow::Continue(()));
        }
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
    fn add(&mut self, place: (u32, u32), value: &CellValue<'_>) -> Result<(), ReadError> {
        let (sheet, cell) = (self.name, || cell_name(place));
        if self.last.is_some_and(|last| last >= place) {
            let cell = cell();
            return Err(altered(format!(
                "the sheet `{sheet}` has repeated or unordered cells, at {cell}"
            )));
        }
        self.last = Some(place);
        if !self.header.is_read {
            self.header.add(place.1, value)?;
        }
        let column = self.header.column(place.1);
        let kind = column.map_or(FieldType::Text, |column| COLUMNS[column].kind);
        let Some(text) = text(kind, value) else {
            return Ok(());
        };
        let [first, last] = self.bounds.get_or_insert([place; 2]);
        *first = (first.0.min(place.0), first.1.min(place.1));
        *last = (last.0.max(place.0), last.1.max(place.1));
        if matches!(value, CellValue::Text(_)) && !self.links.add(place, &text) {
            let why = format!("the sheet `{sheet}` has too many cells with the address of a link");
            return Err(altered(why));
        }
        if !self.header.is_read {
            return Ok(());
        }
        let Some(column) = column else {
            if self.header.others.contains(&place.1) {
                return Ok(());
            }
            let cell = cell();
            return Err(altered(format!(
                "the sheet `{sheet}` has a value in {cell}, which is not in a column of the header"
            )));
        };
        let Column { name, kind, .. } = COLUMNS[column];
        if let Some(found) = wrong_type(kind, value, &text) {
            let why = format!("`{name}` in {} of the sheet `{sheet}` is {found}", cell());
            if !matches!(value, CellValue::Text(_)) || kind == FieldType::Text {
                return Err(altered(why));
            }
            self.info.wrong_type.get_or_insert(why);
        }
        self.row.texts[column] = Some(text);
        Ok(())
    }

    /// Checks that people see the value of a cell, or the heading of its column.
    fn check_format(
        &self,
        place: (u32, u32),
        value: &CellValue<'_>,
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

    /// Checks what the sheet says after its cells; returns the number of rows so far.
    fn finish(mut self, package: &Package) -> Result<u64, ReadError> {
        if !self.header.is_read {
            self.header.check(self.name, self.info)?;
        }
        let path = package.path(self.name).map_err(altered)?;
        if let Some(part) = package.part(&path) {
            self.check_part(part).map_err(altered)?;
            let relations = package.relations(&path);
            self.check_links(relations, part).map_err(altered)?;
        }
        Ok(self.count)
    }

    fn check_part(&self, part: &PackagePart) -> anyhow::Result<()> {
        let sheet = self.name;
        ensure!(
            !part.merged,
            "the sheet `{sheet}` has merged cells, which hide others"
        );
        let range = part.dimension.as_deref().and_then(cells_at);
        if let (Some([first, last]), Some(bounds)) = (range, self.bounds) {
            for (row, column) in bounds {
                ensure!(
                    (first.0..=last.0).contains(&row) && (first.1..=last.1).contains(&column),
                    "the sheet `{sheet}` has a cell outside its declared range: {}",
                    cell_name((row, column))
                );
            }
        }
        Ok(())
    }

    fn check_links(&self, relations: &[Relation], part: &PackagePart) -> anyhow::Result<()> {
        let sheet = self.name;
        let relations: BTreeMap<&str, &str> = relations
            .iter()
            .filter(|relation| relation.is_external)
            .map(|relation| (relation.id.as_str(), relation.target.as_str()))
            .collect();
        let mut cells = HashSet::new();
        for link in &part.links {
            let target = link.relation.as_deref().and_then(|id| relations.get(id));
            let target = target.map(|&target| match &link.location {
                Some(location) => format!("{target}#{location}"),
                None => target.to_owned(),
            });
            let cell = cells_at(&link.cells).filter(|[first, last]| first == last);
            let link = target.zip(cell);
            let (target, [cell, _]) =
                link.with_context(|| format!("the sheet `{sheet}` has a link without a target"))?;
            let is_new = cells.insert(cell);
            ensure!(is_new, "the sheet `{sheet}` has two links in one cell");
            ensure!(
                self.links.leads_to(&target, cell),
                "the link in {} of the sheet `{sheet}` does not lead to the address in the cell",
                cell_name(cell)
            );
        }
        Ok(())
    }
}

/// Returns the name of a cell, such as `P12`.
fn cell_name((row, column): (u32, u32)) -> String {
    row_col_to_cell(row, u16::try_from(column).unwrap_or(u16::MAX - 1))
}

/// Returns whether people see the value of a cell. Formats of numbers show text as it is.
fn is_shown(value: &CellValue<'_>, shown: &Shown) -> bool {
    let text = || text(FieldType::Text, value).unwrap_or_default();
    match (shown, value) {
        (Shown::Value, _) => true,
        (Shown::Words(_) | Shown::Other, _) => text().is_empty(),
        (_, CellValue::Number(_)) => shown.shows_number(&text()),
        _ => true,
    }
}

fn hides_value(sheet: &str, place: (u32, u32)) -> ReadError {
    altered(format!(
        "the format of {} on the sheet `{sheet}` shows something else than its value",
        cell_name(place)
    ))
}

fn altered(why: impl Display) -> ReadError {
    let hint = "the file is not an export, or was modified: export it again";
    ReadError::broken(None, why.to_string(), hint)
}

/// Says what is wrong with the part `name`.
fn in_part(name: &str, why: impl Display) -> ReadError {
    altered(format!("`{}` in the spreadsheet {why}", brief(name)))
}

#[allow(clippy::needless_pass_by_value, reason = "as `map_err` passes it")]
fn unpacked(error: zip::result::ZipError) -> ReadError {
    altered(format!("the spreadsheet cannot be unpacked: {error}"))
}

/// Returns the sheets of batches, by their names; if there are none, the first sheet that is not one of the others.
/// People add sheets after them, but one before them would be read in their place.
fn sheets(names: &[&str]) -> Result<Vec<String>, ReadError> {
    let is_batches = |name: &&str| {
        let rest = name.strip_prefix(SHEET);
        rest.is_some_and(|rest| rest.is_empty() || rest.trim_start().parse::<u32>().is_ok())
    };
    // Figures are not batches, whatever else is on their sheet.
    let others = [SUMMARY, ABOUT];
    let found: Vec<String> = names
        .iter()
        .copied()
        .filter(is_batches)
        .map(str::to_owned)
        .collect();
    if !found.is_empty() {
        let mut before = names.iter().take_while(|name| !is_batches(name));
        return match before.find(|name| !others.contains(name)) {
            None => Ok(found),
            Some(name) => Err(altered(format!(
                "the sheet `{}` is before the sheet `{SHEET}`, and other programs read the first one",
                brief(name)
            ))),
        };
    }
    let is_other = |name: &str| others.iter().any(|other| other.eq_ignore_ascii_case(name));
    match names.iter().find(|name| !is_other(name)) {
        Some(&name) => Ok(vec![name.to_owned()]),
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
    fn add(&mut self, place: u32, value: &CellValue<'_>) -> Result<(), ReadError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_sheets_may_be_before_the_batches() {
        let sheets = |names: &[&str]| sheets(names).ok();
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
}
