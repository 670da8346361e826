//! The cells of the sheet `Summary`, for writing and for checking them.

use std::collections::BTreeMap;
use std::fmt;

use super::excel_date::excel_date;
use crate::formats::{CropName, CropRow, CropSummary, NO_CROP};

/// The headings of the columns, and the width of each in characters; that of the first depends on the names.
pub(super) const COLUMNS: [(&str, f64); SUMMARY_COLUMNS as usize] = [
    (CROP, 0.0),
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
/// Their number.
pub(super) const SUMMARY_COLUMNS: u32 = 15;
pub(super) const CROP: &str = "Crop";
pub(super) const FIRST_SCAN: &str = "First scan";
pub(super) const LAST_SCAN: &str = "Last scan";
pub(super) const VERDICT: &str = "Verdict";

/// A row of the sheet after the header; it may be empty.
pub(super) struct SummaryRow {
    pub(super) kind: RowKind,
    pub(super) cells: Vec<SummaryCell>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RowKind {
    Crop,
    /// The first cell is not the name of a crop.
    Aside,
    Total,
    Note,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum SummaryCell {
    Blank,
    Text(String),
    /// A whole number.
    Count(f64),
    Number(f64),
    /// Such as `2026-05-01`.
    Day(String),
}

impl SummaryCell {
    fn number(number: Option<f64>) -> Self {
        number.map_or(Self::Blank, Self::Number)
    }

    fn day(day: Option<&String>) -> Self {
        day.map_or(Self::Blank, |day| Self::Day(day.clone()))
    }

    /// Returns the number that Excel stores for a day; `None` if it has none.
    pub(super) fn days(day: &str) -> Option<f64> {
        excel_date(&format!("{day}T00:00:00Z")).map(|date| date.days)
    }
}

/// As `verify` reads it.
impl fmt::Display for SummaryCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => Ok(()),
            Self::Text(text) => f.write_str(text),
            Self::Count(number) | Self::Number(number) => number.fmt(f),
            Self::Day(day) if Self::days(day).is_some() => write!(f, "{day}T00:00:00Z"),
            Self::Day(day) => f.write_str(day),
        }
    }
}

/// Returns the rows of the sheet after the header.
pub(super) fn summary_rows(summary: &CropSummary) -> Vec<SummaryRow> {
    let text = |kind, text: &str| SummaryRow {
        kind,
        cells: vec![SummaryCell::Text(text.to_owned())],
    };
    if summary.crops.is_empty() {
        return vec![text(RowKind::Aside, "no batches")];
    }
    let crops = summary.crops.iter().map(|crop| {
        let (name, kind) = label(&crop.name);
        figures(kind, name, crop)
    });
    let empty = SummaryRow {
        kind: RowKind::Note,
        cells: Vec::new(),
    };
    let total = figures(RowKind::Total, "All crops".to_owned(), &summary.total);
    let notes = summary.notes.iter().map(|note| text(RowKind::Note, note));
    crops.chain([total, empty]).chain(notes).collect()
}

/// Returns all cells of the sheet that are not blank, by row and column.
pub(super) fn summary_cells(summary: &CropSummary) -> BTreeMap<(u32, u32), SummaryCell> {
    let heading = |(title, _): (&str, f64)| SummaryCell::Text(title.to_owned());
    let header = COLUMNS.map(heading).to_vec();
    let rows = summary_rows(summary).into_iter().map(|row| row.cells);
    let mut cells = BTreeMap::new();
    for (row, line) in (0..).zip([header].into_iter().chain(rows)) {
        cells.extend((0..).zip(line).map(|(column, cell)| ((row, column), cell)));
    }
    cells.retain(|_, cell| !cell.to_string().is_empty());
    cells
}

fn figures(kind: RowKind, name: String, crop: &CropRow) -> SummaryRow {
    // No disk can store more than 15 digits of batches.
    #[allow(clippy::cast_precision_loss)]
    let [batches, warnings] = [crop.batches, crop.warnings].map(|count| count as f64);
    let cells = vec![
        SummaryCell::Text(name),
        SummaryCell::Count(batches),
        SummaryCell::number(crop.usable_rate),
        SummaryCell::number(crop.usable_rate_low),
        SummaryCell::number(crop.usable_rate_high),
        SummaryCell::number(crop.germination_rate),
        SummaryCell::number(crop.gap),
        SummaryCell::number(crop.coefficient_of_variation),
        SummaryCell::number(crop.seedling_size),
        SummaryCell::Count(warnings),
        SummaryCell::day(crop.first.as_ref()),
        SummaryCell::day(crop.last.as_ref()),
        SummaryCell::number(crop.newest_usable_rate),
        SummaryCell::number(crop.change),
        SummaryCell::Text(crop.verdict.to_owned()),
    ];
    SummaryRow { kind, cells }
}

/// Returns the text of the first column.
fn label(name: &CropName) -> (String, RowKind) {
    match name {
        // The only characters that a line may have and XML cannot store.
        CropName::Named(name) => {
            let name = name.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}");
            (name, RowKind::Crop)
        }
        CropName::Absent => (NO_CROP.to_owned(), RowKind::Aside),
        CropName::Others => ("all other crops".to_owned(), RowKind::Aside),
    }
}
