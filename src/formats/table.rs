//! `table`: for people at a terminal. Picks the columns that fit, aligns numbers, marks warnings.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style as Ansi};
use unicode_width::UnicodeWidthStr as _;

use super::{BatchWriter, ExportOutcome, WriterOptions, WriterReport};
use crate::batch::{Batch, COLUMNS, CREATION_DATE, FieldType, WARNINGS};
use crate::error::Failure;
use crate::storage::EncodedOutput;
use crate::text;

/// Columns, the most interesting ones first.
const BY_INTEREST: [usize; COLUMNS.len()] =
    [2, 3, 8, 11, 17, 1, 4, 12, 13, 5, 16, 6, 9, 7, 10, 14, 0, 15];
/// The widest text in a terminal.
const TEXT_WIDTH: usize = 40;
const GAP: &str = "  ";

const HEADER: Ansi = Ansi::new().bold();
const MARK: Ansi = AnsiColor::Yellow.on_default().bold();

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
        let widths = options
            .fields
            .columns
            .iter()
            .map(|&column| COLUMNS[column].label.width())
            .collect();
        Self {
            output,
            options,
            text: String::new(),
            ends: Vec::new(),
            widths,
        }
    }

    /// Returns the positions of the columns that fit.
    fn shown(&self) -> Vec<usize> {
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
            let needed = self.widths[position] + GAP.len();
            if needed > room && !shown.is_empty() {
                continue;
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

    fn line(
        &self,
        line: &mut String,
        shown: &[usize],
        cell: impl Fn(usize) -> (Cow<'static, str>, Ansi),
    ) {
        line.clear();
        for (number, &position) in shown.iter().enumerate() {
            let (text, style) = cell(position);
            let blank = " ".repeat(self.widths[position].saturating_sub(text.width()));
            let column = self.options.fields.columns[position];
            let is_last = number + 1 == shown.len();
            let styled = if self.options.color && !text.is_empty() {
                Cow::Owned(format!("{style}{text}{style:#}"))
            } else {
                text
            };
            if number > 0 {
                line.push_str(GAP);
            }
            if COLUMNS[column].kind.is_numeric() {
                line.push_str(&blank);
                line.push_str(&styled);
            } else {
                line.push_str(&styled);
                if !is_last {
                    line.push_str(&blank);
                }
            }
        }
        line.truncate(line.trim_end_matches(' ').len());
        line.push('\n');
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
            if text == "true" {
                "!".to_owned()
            } else {
                String::new()
            }
        }
        FieldType::Text => shorten(&text::one_line(&text), narrow),
        _ => text::one_line(&text).into_owned(),
    }
}

fn shorten(text: &str, narrow: bool) -> String {
    if !narrow || text.width() <= TEXT_WIDTH {
        return text.to_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        short.push(letter);
        if short.width() >= TEXT_WIDTH {
            short.pop();
            break;
        }
    }
    short + "…"
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

    fn finish(
        mut self: Box<Self>,
        _: &ExportOutcome<'_>,
    ) -> Result<(EncodedOutput, WriterReport), Failure> {
        let shown = self.shown();
        let columns = &self.options.fields.columns;
        let mut line = String::new();
        let label = |position: usize| (Cow::Borrowed(COLUMNS[columns[position]].label), HEADER);
        self.line(&mut line, &shown, label);
        let mut page = line.clone();
        let rule = |position: usize| (Cow::Owned("─".repeat(self.widths[position])), Ansi::new());
        self.line(&mut line, &shown, rule);
        page.push_str(&line);
        let hidden_columns = columns.len() - shown.len();
        self.output.write_all(page.as_bytes())?;
        for row in 0..self.ends.len() / self.widths.len() {
            let cell = |position: usize| {
                let style = if self.options.fields.columns[position] == WARNINGS {
                    MARK
                } else {
                    Ansi::new()
                };
                (Cow::Owned(self.cell(row, position).to_owned()), style)
            };
            self.line(&mut line, &shown, cell);
            self.output.write_all(line.as_bytes())?;
        }
        Ok((
            self.output,
            WriterReport {
                hidden_columns,
                ..WriterReport::default()
            },
        ))
    }
}
