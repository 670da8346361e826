//! Cell formats, the header, and column widths.

use rust_xlsxwriter::{Color, Format, FormatAlign, FormatBorder, FormatUnderline, Worksheet};

use super::cell::Cell;
use crate::batch::{FieldType, MEANINGS};

/// A4, as the file format numbers paper sizes.
const A4: u8 = 9;
/// The widest column, in characters.
const WIDEST: usize = 72;
/// The extra width of a bold heading.
const BOLD: usize = 1;

/// The number of formats in a row.
const STYLES: usize = 8;

/// Which format of its row a cell has.
#[derive(Clone, Copy)]
pub(super) enum Style {
    Text,
    /// Text of several lines.
    Lines,
    Link,
    Integer,
    Decimal,
    Boolean,
    Second,
    Fraction,
}

impl Style {
    /// Returns its number in the workbook: first the formats of usual rows, then those of marked rows. The
    /// default format has number 0.
    pub(super) fn number(self, is_marked: bool) -> &'static str {
        const NUMBERS: [[&str; STYLES]; 2] = [
            ["1", "2", "3", "4", "5", "6", "7", "8"],
            ["9", "10", "11", "12", "13", "14", "15", "16"],
        ];
        NUMBERS[usize::from(is_marked)][self as usize]
    }
}

/// The formats of the cells of a row, in the order of [`Style`].
pub(super) struct CellStyles(pub(super) [Format; STYLES]);

impl CellStyles {
    pub(super) fn new(base: &Format) -> Self {
        // Next to a text of several lines, all cells start on the first.
        let base = base.clone().set_align(FormatAlign::Top);
        let numbered = |format: &str| base.clone().set_num_format(format);
        // Separates it from a right-aligned number before it.
        let left = |format: &str| numbered(format).set_align(FormatAlign::Left).set_indent(1);
        Self([
            // Stays text after an edit.
            left("@"),
            left("@").set_text_wrap(),
            left("@")
                .set_font_color(Color::RGB(0x05_63_C1))
                .set_underline(FormatUnderline::Single),
            numbered("0"),
            numbered("0.00"),
            base.clone().set_align(FormatAlign::Center),
            left("yyyy-mm-dd hh:mm:ss"),
            left("yyyy-mm-dd hh:mm:ss.000"),
        ])
    }

    pub(super) fn get(&self, style: Style) -> &Format {
        &self.0[style as usize]
    }

    /// Returns the format of most cells in a column.
    pub(super) fn usual(&self, kind: FieldType) -> &Format {
        self.get(match kind {
            FieldType::Text => Style::Text,
            FieldType::Date => Style::Second,
            FieldType::Integer => Style::Integer,
            FieldType::Decimal => Style::Decimal,
            FieldType::Boolean => Style::Boolean,
        })
    }
}

/// The format of the header: two lines high, so that the filter buttons are below its text, and recognisable
/// without colour.
pub(super) fn heading() -> Format {
    Format::new()
        .set_bold()
        .set_text_wrap()
        .set_align(FormatAlign::Top)
        .set_align(FormatAlign::Left)
        .set_indent(1)
        .set_background_color(Color::RGB(0xE2_EF_DA))
        .set_border_bottom(FormatBorder::Thin)
}

/// The format of a name in the header: people see `words`, programs read the name. The fourth part of a number
/// format is for text.
pub(super) fn header_format(words: &str) -> Format {
    heading().set_num_format(format!(r#";;;"{words}""#))
}

/// The height of the header, in points.
pub(super) const HEADER_HEIGHT: f64 = 32.0;

/// Prints a sheet in landscape, all columns on one page, with its name and page number below.
pub(super) fn prepare_printing(sheet: &mut Worksheet) -> &mut Worksheet {
    sheet
        .set_landscape()
        .set_paper_size(A4)
        .set_print_fit_to_pages(1, 0)
        .set_margins(0.4, 0.4, 0.5, 0.6, 0.3, 0.3)
        .set_footer("&L&A&RPage &P of &N")
}

/// The width of the text in each column so far.
pub(super) struct Widths(Vec<usize>);

impl Widths {
    /// Starts with the widths of the header.
    pub(super) fn new(columns: &[usize]) -> Self {
        let needed = |&column: &usize| two_lines(&MEANINGS[column].heading()) + BOLD;
        Self(columns.iter().map(needed).collect())
    }

    /// Widens the column at `place` for a cell.
    pub(super) fn fit(&mut self, place: usize, cell: &Cell<'_>) {
        let known = &mut self.0[place];
        // No text is wider than its bytes.
        if cell.text().is_none_or(|text| text.len() > *known) && *known < WIDEST {
            *known = cell.width().max(*known);
        }
    }

    /// Returns the width of each column, in digits. Wider text is visible when its cell is selected.
    #[allow(clippy::cast_precision_loss, reason = "none is wider than the widest")]
    pub(super) fn columns(&self) -> impl Iterator<Item = f64> {
        let room = |width: &usize| (*width).min(WIDEST) as f64 + 2.5;
        self.0.iter().map(room)
    }
}

/// Returns the width of `text` on two lines.
fn two_lines(text: &str) -> usize {
    let width = |text: &str| text.chars().count();
    let broken = text.match_indices(' ').map(|(at, _)| {
        let (first, second) = text.split_at(at);
        width(first).max(width(second) - 1)
    });
    broken.min().unwrap_or_else(|| width(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_break_at_the_narrowest_point() {
        for (text, width) in [
            ("Crop", 4),
            ("Usable seedlings (per tray)", 16),
            ("Germination rate (%)", 11),
        ] {
            assert_eq!(two_lines(text), width, "{text}");
        }
    }

    #[test]
    fn columns_fit_their_widest_text_up_to_a_limit() {
        let mut widths = Widths::new(&[0, 3]);
        for (place, text) in [
            (0, "a".repeat(36)),
            (0, "b".repeat(12)),
            (1, "c".repeat(4000)),
        ] {
            widths.fit(place, &Cell::Text(text.into()));
        }
        let columns: Vec<f64> = widths.columns().collect();
        assert!(columns[0] > 36.0 && columns[0] < 40.0, "{columns:?}");
        assert!(columns[1] < 80.0, "{columns:?}");
    }
}
