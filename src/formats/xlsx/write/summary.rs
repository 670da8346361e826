//! The sheet `Summary`: the figures of each crop, on one printed page.

use rust_xlsxwriter::{
    Color, Format, FormatAlign, FormatBorder, IgnoreError, Workbook, Worksheet, XlsxError,
};
use unicode_width::UnicodeWidthStr;

use super::excel_date::excel_date;
use super::styles::{CellStyles, heading, prepare_printing};
use crate::formats::{CropName, CropRow, CropSummary};

/// The headings of the columns after the first, and the width of each in characters.
const COLUMNS: [(&str, f64); 14] = [
    ("Batches", 9.0),
    ("Usable % (median)", 9.0),
    ("Usable % (lower quartile)", 9.5),
    ("Usable % (upper quartile)", 9.5),
    ("Germination % (median)", 13.0),
    ("Gap (points)", 8.5),
    ("CV % (median)", 9.0),
    ("Size mm² (median)", 10.0),
    ("Batches with warnings", 10.0),
    (FIRST_SCAN, 14.5),
    (LAST_SCAN, 14.5),
    ("Usable % (newest week)", 10.0),
    ("Change (points)", 9.0),
    (VERDICT, 13.0),
];
const CROP: &str = "Crop";
const FIRST_SCAN: &str = "First scan";
const LAST_SCAN: &str = "Last scan";
const VERDICT: &str = "Verdict";
/// The least and the most characters that the first column has room for.
const NAME_WIDTH: [usize; 2] = [14, 40];
/// The height of the header in points: three lines.
const HEADER_HEIGHT: f64 = 48.0;

/// The number of crops that are readable on one page. More go on to further pages.
const ONE_PAGE: usize = 60;

/// Adds the sheet `Summary` to the workbook.
pub(super) fn write(book: &mut Workbook, summary: &CropSummary) -> Result<(), XlsxError> {
    let sheet = book.add_worksheet_with_constant_memory()?;
    sheet.set_name("Summary")?.set_freeze_panes(1, 1)?;
    prepare_printing(sheet).set_repeat_rows(0, 0)?;
    if summary.crops.len() <= ONE_PAGE {
        sheet.set_print_fit_to_pages(1, 1);
    }
    sheet.set_row_height(0, HEADER_HEIGHT)?;
    let columns = [(CROP, name_width(summary))].into_iter().chain(COLUMNS);
    let left = heading();
    let right = heading().set_align(FormatAlign::Right).set_indent(0);
    for (place, (title, width)) in (0..).zip(columns) {
        let is_left = matches!(title, CROP | FIRST_SCAN | LAST_SCAN | VERDICT);
        sheet.set_column_width(place, width)?;
        let format = if is_left { &left } else { &right };
        sheet.write_string_with_format(0, place, title, format)?;
    }
    let mut row = 0;
    let usual = RowStyles::new(&Format::new());
    for crop in &summary.crops {
        row += 1;
        let (name, is_crop) = label(&crop.name);
        let style = if is_crop {
            &usual.cells.text
        } else {
            &usual.aside
        };
        sheet.write_string_with_format(row, 0, name, style)?;
        write_figures(sheet, row, crop, &usual)?;
    }
    if summary.crops.is_empty() {
        row += 1;
        sheet.write_string_with_format(row, 0, "no batches", &usual.aside)?;
    } else {
        // Otherwise, Excel marks each `007` as an error.
        sheet.ignore_error_range(1, 0, row, 0, IgnoreError::NumberStoredAsText)?;
        row += 1;
        let bold = Format::new().set_bold().set_border_top(FormatBorder::Thin);
        let bold = RowStyles::new(&bold);
        sheet.write_string_with_format(row, 0, "All crops", &bold.cells.text)?;
        write_figures(sheet, row, &summary.total, &bold)?;
        row += 1;
        for note in &summary.notes {
            row += 1;
            sheet.write_string_with_format(row, 0, note, &usual.note)?;
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
        Self {
            date: cells.second.clone().set_num_format("yyyy-mm-dd"),
            down: (cells.text.clone())
                .set_bold()
                .set_background_color(Color::RGB(0xF8_CB_AD)),
            aside: cells.text.clone().set_italic(),
            note: cells.text.clone().set_font_color(Color::RGB(0x59_59_59)),
            cells,
        }
    }
}

/// Writes the cells of a row after the first.
fn write_figures(
    sheet: &mut Worksheet,
    row: u32,
    crop: &CropRow,
    styles: &RowStyles,
) -> Result<(), XlsxError> {
    let cells = &styles.cells;
    // No disk can store more than 15 digits of batches.
    #[allow(clippy::cast_precision_loss)]
    let [batches, warnings] = [crop.batches, crop.warnings].map(|count| Some(count as f64));
    let numbers = [
        (1, batches, &cells.integer),
        (2, crop.usable_rate, &cells.decimal),
        (3, crop.usable_rate_low, &cells.decimal),
        (4, crop.usable_rate_high, &cells.decimal),
        (5, crop.germination_rate, &cells.decimal),
        (6, crop.gap, &cells.decimal),
        (7, crop.coefficient_of_variation, &cells.decimal),
        (8, crop.seedling_size, &cells.decimal),
        (9, warnings, &cells.integer),
    ];
    for (place, number, format) in numbers {
        write_number(sheet, (row, place), number, format)?;
    }
    for (place, day) in [(10, &crop.first), (11, &crop.last)] {
        let date = day
            .as_ref()
            .map(|day| excel_date(&format!("{day}T00:00:00Z")));
        match (date, day) {
            (Some(None), Some(day)) => {
                sheet.write_string_with_format(row, place, day, &cells.text)?;
            }
            (date, _) => {
                let days = date.flatten().map(|date| date.days);
                write_number(sheet, (row, place), days, &styles.date)?;
            }
        }
    }
    write_number(sheet, (row, 12), crop.newest_usable_rate, &cells.decimal)?;
    write_number(sheet, (row, 13), crop.change, &cells.decimal)?;
    let format = if crop.verdict == "down" {
        &styles.down
    } else {
        &cells.text
    };
    sheet.write_string_with_format(row, 14, crop.verdict, format)?;
    Ok(())
}

fn write_number(
    sheet: &mut Worksheet,
    (row, place): (u32, u16),
    number: Option<f64>,
    format: &Format,
) -> Result<(), XlsxError> {
    match number {
        Some(number) => sheet.write_number_with_format(row, place, number, format),
        None => sheet.write_blank(row, place, format),
    }
    .map(drop)
}

/// Returns what stands in the first column, and whether it is the name of a crop.
fn label(name: &CropName) -> (String, bool) {
    match name {
        // The only characters that a line may have and XML cannot store.
        CropName::Named(name) => (name.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}"), true),
        CropName::Absent => ("no crop given".to_owned(), false),
        CropName::Others => ("all other crops".to_owned(), false),
    }
}

/// Returns the width of the first column, in digits.
#[allow(clippy::cast_precision_loss, reason = "it has a limit")]
fn name_width(summary: &CropSummary) -> f64 {
    let widths = summary.crops.iter().map(|crop| label(&crop.name).0.width());
    let [least, most] = NAME_WIDTH;
    widths.max().unwrap_or(0).clamp(least, most) as f64 + 2.5
}
