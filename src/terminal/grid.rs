//! Aligns rows of cells in columns.

use std::borrow::Cow;
use std::fmt::Write as _;

use anstyle::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::text::one_line;

/// What separates two columns.
pub(crate) const GAP: &str = "  ";

/// A cell of a row.
pub(crate) struct GridCell<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) style: Style,
    /// The width of its column.
    pub(crate) width: usize,
    pub(crate) is_right_aligned: bool,
}

/// Appends a line with these cells to `text`.
pub(crate) fn push_row<'a>(text: &mut String, cells: impl IntoIterator<Item = GridCell<'a>>) {
    for (index, cell) in cells.into_iter().enumerate() {
        let gap = if index > 0 { GAP } else { "" };
        let padding = " ".repeat(cell.width.saturating_sub(cell.text.width()));
        let (before, after) = if cell.is_right_aligned {
            (padding.as_str(), "")
        } else {
            ("", padding.as_str())
        };
        text.push_str(gap);
        text.push_str(before);
        push_styled(text, &cell.text, cell.style);
        text.push_str(after);
    }
    text.truncate(text.trim_end_matches(' ').len());
    text.push('\n');
}

/// Appends `part`; a plain style adds nothing to it.
pub(crate) fn push_styled(text: &mut String, part: &str, style: Style) {
    if !part.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{style}{part}{style:#}");
    }
}

/// Shortens `text` to `width`, with an ellipsis at its end if it is wider.
pub(crate) fn shorten(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let mut room = width.saturating_sub(1);
    let fits = |letter: &char| {
        let needed = letter.width().unwrap_or(0);
        let fits = needed <= room;
        room = room.saturating_sub(needed);
        fits
    };
    Cow::Owned(text.chars().take_while(fits).chain(['…']).collect())
}

/// Aligns `rows` in columns. The columns in `right` are right-aligned.
pub(crate) fn grid(rows: &[Vec<String>], right: &[usize]) -> String {
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = one_line(cell).width().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| GridCell {
            text: one_line(cell),
            style: Style::new(),
            width: *width,
            is_right_aligned: right.contains(&column),
        });
        push_row(&mut text, cells);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_aligned() {
        let rows = [["name", "n"], ["zaad", "12"], ["ü\n", "3"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(grid(&rows, &[1]), "name   n\nzaad  12\nü\\n    3\n");
    }

    #[test]
    fn names_are_shortened_by_their_width_on_the_screen() {
        assert_eq!(shorten("Tomato", 6), "Tomato");
        assert_eq!(shorten("Tomato", 5), "Toma…");
        assert_eq!(shorten("番茄番茄", 8), "番茄番茄");
        assert_eq!(shorten("番茄番茄", 7), "番茄番…");
        assert_eq!(shorten("番茄番茄", 6), "番茄…");
        assert_eq!(shorten("Tomato", 1), "…");
    }
}
