//! Rows of cells, aligned for people.

use unicode_width::UnicodeWidthStr as _;

use crate::text::one_line;

const GAP: &str = "  ";

/// Aligns `rows`, the first of which names the columns; those in `right` stand to the right.
pub(crate) fn grid(rows: &[Vec<String>], right: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::new();
    let rows: Vec<Vec<_>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| one_line(cell)).collect())
        .collect();
    let widths: Vec<usize> = (0..columns)
        .map(|place| {
            let cells = rows.iter().filter_map(|row| row.get(place));
            cells.map(|cell| cell.width()).max().unwrap_or(0)
        })
        .collect();
    for row in &rows {
        let mut line = String::new();
        for (place, cell) in row.iter().enumerate() {
            if place > 0 {
                line.push_str(GAP);
            }
            let blank = " ".repeat(widths[place] - cell.width());
            if right.contains(&place) {
                line.push_str(&blank);
                line.push_str(cell);
            } else {
                line.push_str(cell);
                line.push_str(&blank);
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
    fn cells_stand_under_one_another() {
        let rows = [["name", "n"], ["zaad", "12"], ["ü\n", "3"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(grid(&rows, &[1]), "name   n\nzaad  12\nü\\n    3\n");
    }
}
