//! The sheet `Summary`: the figures of each crop, on one printed page.

use rust_xlsxwriter::{
    Color, Format, FormatAlign, FormatBorder, IgnoreError, Workbook, Worksheet, XlsxError,
};
use unicode_width::UnicodeWidthStr;

use super::styles::{CellStyles, Style, heading, prepare_printing};
use crate::formats::CropSummary;
use crate::formats::xlsx::SUMMARY;
use crate::formats::xlsx::summary::{
    COLUMNS, CROP, FIRST_SCAN, LAST_SCAN, RowKind, SummaryCell, SummaryRow, VERDICT, summary_rows,
};

/// The least and the most characters that the first column has room for.
const NAME_WIDTH: [usize; 2] = [14, 40];
/// The height of the header in points: three lines.
const HEADER_HEIGHT: f64 = 48.0;

/// The number of crops that are readable on one page. More go on to further pages.
const ONE_PAGE: usize = 60;

/// Adds the sheet `Summary` to the workbook.
pub(super) fn write(book: &mut Workbook, summary: &CropSummary) -> Result<(), XlsxError> {
    let sheet = book.add_worksheet_with_constant_memory()?;
    sheet.set_name(SUMMARY)?.set_freeze_panes(1, 1)?;
    prepare_printing(sheet).set_repeat_rows(0, 0)?;
    if summary.crops.len() <= ONE_PAGE {
        sheet.set_print_fit_to_pages(1, 1);
    }
    let rows = summary_rows(summary);
    sheet.set_row_height(0, HEADER_HEIGHT)?;
    let left = heading();
    let right = heading().set_align(FormatAlign::Right).set_indent(0);
    for (place, (title, width)) in (0..).zip(COLUMNS) {
        let is_left = matches!(title, CROP | FIRST_SCAN | LAST_SCAN | VERDICT);
        let width = if title == CROP {
            name_width(&rows)
        } else {
            width
        };
        sheet.set_column_width(place, width)?;
        let format = if is_left { &left } else { &right };
        sheet.write_string_with_format(0, place, title, format)?;
    }
    let bold = Format::new().set_bold().set_border_top(FormatBorder::Thin);
    let [usual, bold] = [Format::new(), bold].map(|base| RowStyles::new(&base));
    for (row, SummaryRow { kind, cells }) in (1..).zip(&rows) {
        if *kind == RowKind::Total {
            // Otherwise, Excel marks each `007` as an error.
            sheet.ignore_error_range(1, 0, row - 1, 0, IgnoreError::NumberStoredAsText)?;
        }
        let styles = if *kind == RowKind::Total {
            &bold
        } else {
            &usual
        };
        for (place, cell) in (0..).zip(cells) {
            let format = styles.format(*kind, place, cell);
            write_cell(sheet, (row, place), cell, format)?;
        }
    }
    Ok(())
}

/// The formats of a row.
struct RowStyles {
    cells: CellStyles,
    date: Format,
    /// A verdict that needs attention.
    down: Format,
    /// A name that is not that of a crop.
    aside: Format,
    note: Format,
}

impl RowStyles {
    fn new(base: &Format) -> Self {
        let cells = CellStyles::new(base);
        let text = || cells.get(Style::Text).clone();
        let date = cells.get(Style::Second).clone();
        Self {
            date: date.set_num_format("yyyy-mm-dd"),
            down: text()
                .set_bold()
                .set_background_color(Color::RGB(0xF8_CB_AD)),
            aside: text().set_italic(),
            note: text().set_font_color(Color::RGB(0x59_59_59)),
            cells,
        }
    }

    fn format(&self, kind: RowKind, place: u16, cell: &SummaryCell) -> &Format {
        match cell {
            SummaryCell::Text(_) if kind == RowKind::Note => &self.note,
            SummaryCell::Text(_) if kind == RowKind::Aside && place == 0 => &self.aside,
            SummaryCell::Text(text) if place > 0 && text == "down" => &self.down,
            SummaryCell::Day(day) if SummaryCell::days(day).is_some() => &self.date,
            SummaryCell::Text(_) | SummaryCell::Day(_) => self.cells.get(Style::Text),
            SummaryCell::Count(_) => self.cells.get(Style::Integer),
            SummaryCell::Number(_) | SummaryCell::Blank => self.cells.get(Style::Decimal),
        }
    }
}

fn write_cell(
    sheet: &mut Worksheet,
    (row, place): (u32, u16),
    cell: &SummaryCell,
    format: &Format,
) -> Result<(), XlsxError> {
    match cell {
        SummaryCell::Blank => sheet.write_blank(row, place, format),
        SummaryCell::Text(text) => sheet.write_string_with_format(row, place, text, format),
        SummaryCell::Count(number) | SummaryCell::Number(number) => {
            sheet.write_number_with_format(row, place, *number, format)
        }
        SummaryCell::Day(day) => match SummaryCell::days(day) {
            Some(days) => sheet.write_number_with_format(row, place, days, format),
            None => sheet.write_string_with_format(row, place, day, format),
        },
    }
    .map(drop)
}

/// Returns the width of the first column, in digits.
#[allow(clippy::cast_precision_loss, reason = "it has a limit")]
fn name_width(rows: &[SummaryRow]) -> f64 {
    let names = rows.iter().filter(|row| row.kind != RowKind::Note);
    let widths = names.filter_map(|row| match row.cells.first() {
        Some(SummaryCell::Text(name)) => Some(name.width()),
        _ => None,
    });
    let [least, most] = NAME_WIDTH;
    widths.max().unwrap_or(0).clamp(least, most) as f64 + 2.5
}
