//! The sheet `About`: the source of the batches, and the meaning of the columns.

use rust_xlsxwriter::{Format, FormatAlign, Workbook, Worksheet, XlsxError};

use super::styles::{CellStyles, Style, heading, prepare_printing};
use super::xml::escape;
use crate::batch::digest;
use crate::batch::range::written;
use crate::batch::{COLUMNS, MEANINGS, Meaning};
use crate::formats::xlsx::excel_date::excel_date;
use crate::formats::xlsx::{ABOUT, BOUNDS, PROGRAM};
use crate::formats::{ExportInfo, ExportOutcome};

/// Adds the sheet `About` to the workbook. `links` says why some links are not live.
pub(super) fn write(
    book: &mut Workbook,
    styles: &CellStyles,
    info: &ExportInfo,
    extracted: &str,
    outcome: &ExportOutcome<'_>,
    links: &str,
    columns: &[usize],
) -> Result<(), XlsxError> {
    let sheet = book.add_worksheet_with_constant_memory()?;
    prepare_printing(sheet.set_name(ABOUT)?);
    for (place, width) in (0..).zip([28, 84, 10, 32]) {
        sheet.set_column_width(place, width)?;
    }
    let mut about = About {
        sheet,
        row: 0,
        bold: Format::new().set_bold().set_indent(1),
    };
    about.text("Range", &info.range, styles)?;
    for filter in &info.filters {
        about.text("Filter", filter, styles)?;
    }
    about.text("Service", &info.source, styles)?;
    about.text("Version", outcome.version.unwrap_or_default(), styles)?;
    if let Some(moment) = excel_date(extracted) {
        about.number("Asked (UTC)", moment.days, styles.get(Style::Second))?;
    }
    if let Some(summary) = outcome.summary {
        about.text("Time zone", summary.zone, styles)?;
        // As text: spreadsheets have no dates before 1900.
        for (label, bound) in BOUNDS.iter().zip(summary.bounds) {
            about.text(label, &bound.map(written).unwrap_or_default(), styles)?;
        }
    }
    if let Some(digest) = outcome.digest {
        // No disk can store more than 15 digits of batches.
        #[allow(clippy::cast_precision_loss)]
        let count = digest.count() as f64;
        let format = styles.get(Style::Integer).clone();
        let format = format.set_align(FormatAlign::Left).set_indent(1);
        about.number("Batches", count, &format)?;
        about.text("Set digest", &digest.finish(), styles)?;
        about.number("Digest version", f64::from(digest::VERSION), &format)?;
    }
    about.text("Written by", PROGRAM, styles)?;
    let marks = "Rows with a fill are batches with warnings";
    about.text("Marks", marks, styles)?;
    about.text("Links", links, styles)?;
    about.fields(columns, styles)
}

/// The sheet, written line by line.
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

    fn text(&mut self, label: &str, text: &str, styles: &CellStyles) -> Result<(), XlsxError> {
        if !text.is_empty() {
            let row = self.label(label)?;
            let text = escape(text).unwrap_or_else(|| text.to_owned());
            self.sheet
                .write_string_with_format(row, 1, text, styles.get(Style::Text))?;
        }
        Ok(())
    }

    fn number(&mut self, label: &str, number: f64, format: &Format) -> Result<(), XlsxError> {
        let row = self.label(label)?;
        self.sheet
            .write_number_with_format(row, 1, number, format)?;
        Ok(())
    }

    /// Lists the columns: heading, meaning, unit and field name.
    fn fields(&mut self, columns: &[usize], styles: &CellStyles) -> Result<(), XlsxError> {
        self.row += 1;
        let format = heading();
        for (place, heading) in (0..).zip(["Column", "Meaning", "Unit", "Field"]) {
            self.sheet
                .write_string_with_format(self.row, place, heading, &format)?;
        }
        for &column in columns {
            self.row += 1;
            let Meaning { title, unit, text } = MEANINGS[column];
            let cells = [title, text, unit, COLUMNS[column].name];
            for (place, cell) in (0..).zip(cells) {
                self.sheet.write_string_with_format(
                    self.row,
                    place,
                    cell,
                    styles.get(Style::Text),
                )?;
            }
        }
        Ok(())
    }
}
