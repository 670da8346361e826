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

// A sheet of batches.
mod sheet;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::io::{Read, Seek};
use std::ops::ControlFlow;

use zip::ZipArchive;

use super::PROGRAM;
use super::summary::{SUMMARY_COLUMNS, SummaryCell, summary_cells};
use super::{ABOUT, BOUNDS, SUMMARY};
use crate::batch::range::Range;
use crate::batch::{FieldType, Timestamp, Zone};
use crate::formats::record::{
    EmbeddedDigest, FileInfo, ReadError, RecordHandler, parse_digest_version,
};
use crate::formats::summary::CropSummary;
use crate::secret::brief;
use cell_value::{CellValue, SharedTexts, text, unescape};
use markup::cells_at;
use number_formats::{NumberFormats, Shown};
use package::Package;
use part::{Budget, PackagePart, PartReader, is_sheet};
use sheet::{SheetReader, altered, cell_name, hides_value, is_shown};

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
