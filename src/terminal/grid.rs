//! Aligns rows of cells in columns.

use unicode_width::UnicodeWidthStr as _;

use crate::text::one_line;

const GAP: &str = "  ";

/// Aligns `rows`, the first of which is the header. The columns in `right` are right-aligned.
pub(crate) fn grid(rows: &[Vec<String>], right: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::new();
    let rows: Vec<Vec<_>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| one_line(cell)).collect())
        .collect();
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.width()).max().unwrap_or(0)
        })
        .collect();
    for row in &rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            if column > 0 {
                line.push_str(GAP);
            }
            let padding = " ".repeat(widths[column] - cell.width());
            if right.contains(&column) {
                line.push_str(&padding);
                line.push_str(cell);
            } else {
                line.push_str(cell);
                line.push_str(&padding);
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::terminal::grid;

    #[test]
    fn cells_are_aligned() {
        let rows = [["name", "n"], ["zaad", "12"], ["ü\n", "3"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(grid(&rows, &[1]), "name   n\nzaad  12\nü\\n    3\n");
    }
}
