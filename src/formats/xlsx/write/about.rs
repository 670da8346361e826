//! The sheet `About`: the source of the batches, and the meaning of the columns.

use rust_xlsxwriter::{Format, FormatAlign, Workbook, Worksheet, XlsxError};

use super::escapes::escape;
use super::styles::{CellStyles, Style, heading, prepare_printing};
use crate::batch::digest::{self, SetDigest};
use crate::batch::range::written;
use crate::batch::{COLUMNS, MEANINGS, Meaning};
use crate::formats::xlsx::excel_date::excel_date;
use crate::formats::xlsx::{ABOUT, BOUNDS, PROGRAM};
use crate::formats::{CropSummary, ExportInfo};

/// What the sheet says about the export.
pub(super) struct AboutInfo<'a> {
    pub(super) export: &'a ExportInfo,
    /// The version of the interface; empty if unknown.
    pub(super) version: &'a str,
    pub(super) extracted: &'a str,
    /// The figures, if there are any.
    pub(super) summary: Option<&'a CropSummary>,
    pub(super) digest: Option<&'a SetDigest>,
    pub(super) columns: &'a [usize],
    /// The most links of one sheet, and the number of links that were written as plain text for that reason.
    pub(super) link_limit: u32,
    pub(super) plain_links: u32,
}

/// Adds the sheet `About` to the workbook.
pub(super) fn write(
    book: &mut Workbook,
    info: &AboutInfo<'_>,
    styles: &CellStyles,
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
    about.text("Range", &info.export.range, styles)?;
    for filter in &info.export.filters {
        about.text("Filter", filter, styles)?;
    }
    about.text("Service", &info.export.source, styles)?;
    about.text("Version", info.version, styles)?;
    if let Some(moment) = excel_date(info.extracted) {
        about.number("Asked (UTC)", moment.days, styles.get(Style::Second))?;
    }
    if let Some(summary) = info.summary {
        about.text("Time zone", summary.zone, styles)?;
        // As text: spreadsheets have no dates before 1900.
        for (label, bound) in BOUNDS.iter().zip(summary.bounds) {
            about.text(label, &bound.map(written).unwrap_or_default(), styles)?;
        }
    }
    if let Some(digest) = info.digest {
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
    if info.plain_links > 0 {
        let why = format!(
            "Excel takes {} live links in a sheet: the {} beyond are text",
            info.link_limit, info.plain_links
        );
        about.text("Links", &why, styles)?;
    }
    about.fields(info.columns, styles)
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
