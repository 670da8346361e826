//! The sheet that tells what the others are, line by line.

use std::io;

use rust_xlsxwriter::{Format, FormatAlign, Worksheet, XlsxError};

use super::escapes::visible;
use super::looks::Looks;
use super::serial::serial;
use super::{Xlsx, checked};

impl Xlsx {
    /// Adds the sheet that tells what the others are.
    pub(super) fn write_about(&mut self) -> io::Result<()> {
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
