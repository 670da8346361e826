//! `table`: for people at a terminal. Picks the columns that fit, aligns numbers, marks warnings.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr as _;

use super::{BatchWriter, ExportOutcome, Finished, WriterOptions, WriterReport};
use crate::batch::{BATCH_NAME, Batch, COLUMNS, CREATION_DATE, FieldType, WARNINGS};
use crate::error::Failure;
use crate::storage::EncodedOutput;
use crate::terminal::{GAP, GridCell, push_row, shorten};
use crate::text;

/// Columns, the most interesting ones first.
const BY_INTEREST: [usize; COLUMNS.len()] =
    [2, 3, 8, 11, 17, 1, 4, 12, 13, 5, 16, 6, 9, 7, 10, 14, 0, 15];
/// The widest text in a terminal.
const TEXT_WIDTH: usize = 40;
/// The least width of names that are shortened.
const NAME_WIDTH: usize = 16;

const HEADER: Style = Style::new().bold();
const MARK: Style = AnsiColor::Yellow.on_default().bold();

pub(super) struct Table {
    output: EncodedOutput,
    options: WriterOptions,
    /// The text of all cells, and where each ends.
    text: String,
    ends: Vec<usize>,
    widths: Vec<usize>,
}

impl Table {
    pub(super) fn new(output: EncodedOutput, options: WriterOptions) -> Self {
        let columns = options.fields.columns.iter();
        Self {
            output,
            widths: columns
                .map(|&column| COLUMNS[column].label.width())
                .collect(),
            options,
            text: String::new(),
            ends: Vec::new(),
        }
    }

    /// Returns the positions of the columns that fit. Names are shortened if they fit only then.
    fn shown(&mut self) -> Vec<usize> {
        let columns = &self.options.fields.columns;
        let all: Vec<usize> = (0..columns.len()).collect();
        // Columns that the user chose are always shown.
        let Some(width) = self.options.width.filter(|_| !self.options.fields.named) else {
            return all;
        };
        let mut room = width + GAP.len();
        let mut shown: Vec<usize> = Vec::new();
        let positions = BY_INTEREST
            .iter()
            .filter_map(|column| columns.iter().position(|other| other == column));
        for position in positions {
            let mut needed = self.widths[position] + GAP.len();
            if needed > room && !shown.is_empty() {
                if columns[position] != BATCH_NAME || room < NAME_WIDTH + GAP.len() {
                    continue;
                }
                needed = room;
                self.widths[position] = room - GAP.len();
            }
            room = room.saturating_sub(needed);
            shown.push(position);
        }
        shown.sort_unstable();
        shown
    }

    fn cell(&self, row: usize, position: usize) -> &str {
        let index = row * self.widths.len() + position;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }

    /// Appends a line with what `cell` returns for each of the columns `shown`.
    fn push_line<'a>(
        &self,
        text: &mut String,
        shown: &[usize],
        cell: impl Fn(usize) -> (Cow<'a, str>, Style),
    ) {
        let cells = shown.iter().map(|&position| {
            let (text, style) = cell(position);
            let column = self.options.fields.columns[position];
            GridCell {
                text,
                style: if self.options.color {
                    style
                } else {
                    Style::new()
                },
                width: self.widths[position],
                is_right_aligned: COLUMNS[column].kind.is_numeric(),
            }
        });
        push_row(text, cells);
    }
}

/// Formats a value for people.
fn shown_value(batch: &Batch, column: usize, narrow: bool) -> String {
    let Some(text) = batch.plain(column) else {
        return String::new();
    };
    match COLUMNS[column].kind {
        FieldType::Date if column == CREATION_DATE && batch.created().is_some() => {
            format!("{} {}", &text[..10], &text[11..19])
        }
        FieldType::Boolean if column == WARNINGS => {
            match &*text {
                "true" => "!".to_owned(),
                "false" => String::new(),
                // With `--lenient`.
                invalid => text::one_line(invalid).into_owned(),
            }
        }
        FieldType::Text if narrow => shorten(&text::one_line(&text), TEXT_WIDTH).into_owned(),
        _ => text::one_line(&text).into_owned(),
    }
}

impl BatchWriter for Table {
    fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        let narrow = self.options.width.is_some() && !self.options.fields.named;
        for position in 0..self.widths.len() {
            let cell = shown_value(batch, self.options.fields.columns[position], narrow);
            self.widths[position] = self.widths[position].max(cell.width());
            self.text.push_str(&cell);
            self.ends.push(self.text.len());
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, _: &ExportOutcome<'_>) -> Finished {
        let shown = self.shown();
        let columns = &self.options.fields.columns;
        let mut text = String::new();
        let label = |position: usize| (COLUMNS[columns[position]].label.into(), HEADER);
        self.push_line(&mut text, &shown, label);
        let rule = |position| ("─".repeat(self.widths[position]).into(), Style::new());
        self.push_line(&mut text, &shown, rule);
        let hidden_columns = columns.len() - shown.len();
        self.output.write_all(text.as_bytes())?;
        for row in 0..self.ends.len() / self.widths.len() {
            let cell = |position: usize| {
                let is_mark = self.options.fields.columns[position] == WARNINGS;
                let style = if is_mark { MARK } else { Style::new() };
                let cell = shorten(self.cell(row, position), self.widths[position]);
                (cell, style)
            };
            text.clear();
            self.push_line(&mut text, &shown, cell);
            self.output.write_all(text.as_bytes())?;
        }
        let report = WriterReport {
            hidden_columns,
            ..WriterReport::default()
        };
        Ok((self.output, report))
    }
}
