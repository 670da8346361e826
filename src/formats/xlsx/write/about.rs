//! The sheet that tells what the others are, line by line.

use std::io;

use rust_xlsxwriter::{Format, FormatAlign, Worksheet, XlsxError};

use super::escapes::visible;
use super::excel_date::serial;
use super::styles::{CellStyles, heading};
use super::{Xlsx, checked, prepare_printing};
use crate::batch::digest;
use crate::batch::{COLUMNS, MEANINGS, Meaning};

impl Xlsx {
    /// Adds the sheet that tells what the others are.
    pub(super) fn write_about(&mut self) -> io::Result<()> {
        let dead: u32 = self.sheets.iter().map(|sheet| sheet.dead).sum();
        let [looks, _] = &self.looks;
        let (book, facts) = (&mut self.book, &self.facts);
        let (extracted, digest) = (&self.extracted, &self.digest);
        let links = self.limits.1;
        let columns = &self.fields.columns;
        checked(|| {
            let sheet = book.add_worksheet_with_constant_memory()?;
            prepare_printing(sheet.set_name("About")?);
            for (place, width) in (0..).zip([28, 84, 10, 32]) {
                sheet.set_column_width(place, width)?;
            }
            let version = facts.version.get().map_or("", String::as_str);
            let program = concat!("trayscan ", env!("CARGO_PKG_VERSION"));
            let mut about = About {
                sheet,
                row: 0,
                bold: Format::new().set_bold().set_indent(1),
            };
            about.text("Range", &facts.range, looks)?;
            for filter in &facts.filters {
                about.text("Filter", filter, looks)?;
            }
            about.text("Service", &facts.source, looks)?;
            about.text("Version", version, looks)?;
            if let Some(moment) = serial(extracted) {
                about.number("Asked (UTC)", moment.days, &looks.second)?;
            }
            // More than 15 digits of batches fit on no disk.
            #[allow(clippy::cast_precision_loss)]
            let count = digest.count() as f64;
            let look = looks
                .integer
                .clone()
                .set_align(FormatAlign::Left)
                .set_indent(1);
            about.number("Batches", count, &look)?;
            about.text("Set digest", &digest.finish(), looks)?;
            about.number("Digest version", f64::from(digest::VERSION), &look)?;
            about.text("Written by", program, looks)?;
            let marks = "Rows with a fill are batches with warnings";
            about.text("Marks", marks, looks)?;
            if dead > 0 {
                let why = format!(
                    "Excel takes {links} live links in a sheet: the {dead} beyond are text"
                );
                about.text("Links", &why, looks)?;
            }
            about.fields(columns, looks)
        })
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

    fn text(&mut self, label: &str, text: &str, looks: &CellStyles) -> Result<(), XlsxError> {
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

    /// Tells what stands in the columns, and what programs call them.
    fn fields(&mut self, columns: &[usize], looks: &CellStyles) -> Result<(), XlsxError> {
        self.row += 1;
        let look = heading();
        for (place, heading) in (0..).zip(["Column", "Meaning", "Unit", "Field"]) {
            self.sheet
                .write_string_with_format(self.row, place, heading, &look)?;
        }
        for &column in columns {
            self.row += 1;
            let Meaning { title, unit, text } = MEANINGS[column];
            let cells = [title, text, unit, COLUMNS[column].name];
            for (place, cell) in (0..).zip(cells) {
                self.sheet
                    .write_string_with_format(self.row, place, cell, &looks.text)?;
            }
        }
        Ok(())
    }
}
