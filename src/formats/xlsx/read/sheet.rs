//! Reads one sheet of batches.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::ops::ControlFlow;

use anyhow::{Context as _, ensure};
use rust_xlsxwriter::utility::row_col_to_cell;

use super::cell_value::{CellValue, text, wrong_type};
use super::links::Links;
use super::markup::cells_at;
use super::number_formats::Shown;
use super::package::Package;
use super::part::{PackagePart, Relation};
use crate::batch::{
    BATCH_ID, COLUMNS, Column, FieldType, MEANINGS, PlainRow, column_bits, find_column,
    find_heading,
};
use crate::formats::record::{FileInfo, ReadError, Record, RecordHandler, RecordPlace};

/// Reads a sheet of batches.
pub(super) struct SheetReader<'a> {
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
    pub(super) fn new(
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
    pub(super) fn next_row(
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
    pub(super) fn add(
        &mut self,
        place: (u32, u32),
        value: &CellValue<'_>,
    ) -> Result<(), ReadError> {
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
    pub(super) fn check_format(
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
    pub(super) fn finish(mut self, package: &Package) -> Result<u64, ReadError> {
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
pub(super) fn cell_name((row, column): (u32, u32)) -> String {
    row_col_to_cell(row, u16::try_from(column).unwrap_or(u16::MAX - 1))
}

/// Returns whether people see the value of a cell. Formats of numbers show text as it is.
pub(super) fn is_shown(value: &CellValue<'_>, shown: &Shown) -> bool {
    let text = || text(FieldType::Text, value).unwrap_or_default();
    match (shown, value) {
        (Shown::Value, _) | (Shown::Boolean, CellValue::Boolean(_)) => true,
        (Shown::Boolean | Shown::Words(_) | Shown::Other, _) => text().is_empty(),
        (_, CellValue::Number(_)) => shown.shows_number(&text()),
        _ => true,
    }
}

pub(super) fn hides_value(sheet: &str, place: (u32, u32)) -> ReadError {
    altered(format!(
        "the format of {} on the sheet `{sheet}` shows something else than its value",
        cell_name(place)
    ))
}

pub(super) fn altered(why: impl Display) -> ReadError {
    let hint = "the file is not an export, or was modified: export it again";
    ReadError::broken(None, why.to_string(), hint)
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
