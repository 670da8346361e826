//! Detects the dialect of a CSV file from its first rows: the delimiter, the columns, and whether it was
//! written with `--excel`.

use std::borrow::Cow;

use csv::{ReaderBuilder, StringRecord};

use super::dialect::FORMULA;
use super::excel_dates::from_excel;
use super::lines::LineChecker;
use crate::batch::{COLUMNS, Column, FieldType, Timestamp, column_bits, find_column, is_number};
use crate::formats::record::{ReadError, RecordPlace};

/// The delimiter of files with one column: no text contains this byte.
const NO_DELIMITER: u8 = 0xff;

/// The number of rows that are examined if there is no header.
const ROWS: usize = 20;

/// The byte order mark, which the csv crate skips at the start of a file.
pub(crate) const MARK: &[u8] = "\u{feff}".as_bytes();

/// How the cells of a file are separated and written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DetectedDialect {
    pub(crate) delimiter: u8,
    pub(crate) header: bool,
    /// The cell of each column.
    pub(crate) cells: [Option<usize>; COLUMNS.len()],
    /// The number of cells in each row.
    pub(crate) width: usize,
    /// Column names that are not fields of a batch.
    pub(crate) unknown: Vec<String>,
    /// Whether text that looks like a formula has an apostrophe before it.
    pub(crate) excel: bool,
}

impl DetectedDialect {
    /// Detects the dialect from the beginning of a file. Without a header, the cells are those of `layout`,
    /// or all fields in order. `None` if the file is empty.
    pub(crate) fn detect(
        head: &[u8],
        default_delimiter: u8,
        layout: Option<&[usize]>,
    ) -> Result<Option<Self>, ReadError> {
        let marked = head.starts_with(MARK);
        let rows = head.strip_prefix(MARK).unwrap_or(head);
        if rows.is_empty() {
            return Ok(None);
        }
        let samples: Vec<(u8, Vec<StringRecord>)> = candidates(default_delimiter)
            .into_iter()
            .map(|delimiter| (delimiter, first_rows(head, delimiter)))
            .collect();
        // Only `--excel` writes both.
        let excel = marked && ends_with_cr(head);
        if let Some((delimiter, names)) = detect_header(&samples) {
            return Self::with_header(delimiter, names, excel).map(Some);
        }
        let all: Vec<usize> = (0..COLUMNS.len()).collect();
        let layout = layout.unwrap_or(&all);
        // With a wrong delimiter, quotes are often in the middle of a cell.
        let has_cells = |sample: &(u8, _)| LineChecker::new(sample.0).check(rows).is_ok();
        let (likely, others): (Vec<_>, Vec<_>) = samples.into_iter().partition(has_cells);
        let delimiter = detect_without_header(&likely, layout);
        let Some(delimiter) = delimiter.or_else(|| detect_without_header(&others, layout)) else {
            return Err(ReadError::Broken {
                place: Some(RecordPlace::Line(1)),
                why: format!(
                    "expected field names, or the {} cells of a batch",
                    layout.len()
                ),
                hint: Some(
                    "if it was written with `--no-header` and `--fields`, pass its manifest with `--manifest`",
                ),
            });
        };
        let mut cells = [None; COLUMNS.len()];
        for (cell, &column) in layout.iter().enumerate() {
            cells[column] = Some(cell);
        }
        Ok(Some(Self {
            delimiter: effective_delimiter(delimiter, layout.len()),
            header: false,
            cells,
            width: layout.len(),
            unknown: Vec::new(),
            excel,
        }))
    }

    fn with_header(delimiter: u8, names: &StringRecord, excel: bool) -> Result<Self, ReadError> {
        let mut cells = [None; COLUMNS.len()];
        let mut unknown = Vec::new();
        for (cell, name) in names.iter().enumerate() {
            let Some(column) = find_column(name) else {
                unknown.push(name.to_owned());
                continue;
            };
            if cells[column].replace(cell).is_some() {
                return Err(ReadError::broken(
                    RecordPlace::Line(1),
                    format!("`{name}` appears twice"),
                ));
            }
        }
        Ok(Self {
            delimiter: effective_delimiter(delimiter, names.len()),
            header: true,
            cells,
            width: names.len(),
            unknown,
            excel,
        })
    }

    /// Returns the columns of the file, one bit each.
    pub(crate) fn columns(&self) -> u32 {
        column_bits((0..COLUMNS.len()).filter(|&column| self.cells[column].is_some()))
    }

    /// Rejects a cell for Excel that would be interpreted as a formula. Numbers and dates never are.
    pub(crate) fn check_formulas(
        &self,
        record: &StringRecord,
        place: RecordPlace,
    ) -> Result<(), ReadError> {
        if !self.excel {
            return Ok(());
        }
        for (column, cell) in self.cells.iter().enumerate() {
            let cell = cell.and_then(|cell| record.get(cell)).unwrap_or_default();
            let column = &COLUMNS[column];
            let runs = cell.starts_with(FORMULA)
                && (column.kind == FieldType::Text || !fits(column, cell));
            if runs {
                return Err(ReadError::Broken {
                    place: Some(place),
                    why: format!(
                        "`{}` would be interpreted as a formula: the apostrophe before it is missing",
                        column.name
                    ),
                    hint: Some("the file was modified; export it again with `--excel`"),
                });
            }
        }
        Ok(())
    }

    /// Removes the apostrophe that `--excel` added to a text.
    pub(crate) fn unescape<'a>(&self, text: &'a str) -> &'a str {
        match text.strip_prefix('\'') {
            Some(rest) if self.excel && rest.trim_start_matches('\'').starts_with(FORMULA) => rest,
            _ => text,
        }
    }
}

/// Returns the delimiter to read with: in a file with one column, a comma does not separate cells.
fn effective_delimiter(delimiter: u8, width: usize) -> u8 {
    if width == 1 { NO_DELIMITER } else { delimiter }
}

/// Returns the possible delimiters, the likely ones first: `--delimiter` accepts nearly any character.
fn candidates(default_delimiter: u8) -> Vec<u8> {
    let likely = [default_delimiter, b',', b';', b'\t', b'|'];
    let others = (1..128).filter(|byte| !matches!(byte, b'"' | b'\r' | b'\n'));
    let mut all = Vec::new();
    for byte in likely.into_iter().chain(others) {
        if !all.contains(&byte) {
            all.push(byte);
        }
    }
    all
}

fn first_rows(head: &[u8], delimiter: u8) -> Vec<StringRecord> {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .buffer_capacity(4096)
        .from_reader(head);
    let rows = reader.records().take(ROWS).map_while(Result::ok);
    rows.collect()
}

/// Picks the delimiter with which most cells of the first line are field names; `None` if the line is not
/// a header.
fn detect_header(samples: &[(u8, Vec<StringRecord>)]) -> Option<(u8, &StringRecord)> {
    let known = |names: &StringRecord| {
        names
            .iter()
            .filter(|name| find_column(name).is_some())
            .count()
    };
    let mut best: Option<(usize, u8, &StringRecord)> = None;
    for (delimiter, rows) in samples {
        let Some(names) = rows.first() else { continue };
        let known = known(names);
        if 2 * known > names.len() && best.is_none_or(|(most, ..)| known > most) {
            best = Some((known, *delimiter, names));
        }
    }
    best.map(|(_, delimiter, names)| (delimiter, names))
}

/// Picks the delimiter with which most rows fit `layout`; the likelier of two.
fn detect_without_header(samples: &[(u8, Vec<StringRecord>)], layout: &[usize]) -> Option<u8> {
    let typed_cells: Vec<usize> = (0..layout.len())
        .filter(|&cell| COLUMNS[layout[cell]].kind != FieldType::Text)
        .collect();
    let fit = |row: &StringRecord| {
        let fit = |cell: &&usize| fits(&COLUMNS[layout[**cell]], &row[**cell]);
        typed_cells.iter().filter(fit).count()
    };
    let mut best: Option<(usize, u8)> = None;
    for (delimiter, rows) in samples {
        let rows = rows.iter().filter(|row| row.len() == layout.len());
        let fitting: Vec<usize> = rows.map(fit).collect();
        // With `--lenient`, some cells may be invalid.
        let fits = 2 * fitting.iter().sum::<usize>() >= fitting.len() * typed_cells.len();
        let score = fitting.iter().map(|fit| fit + 1).sum();
        if fits && score > 0 && best.is_none_or(|(most, _)| score > most) {
            best = Some((score, *delimiter));
        }
    }
    best.map(|(_, delimiter)| delimiter)
}

fn fits(column: &Column, text: &str) -> bool {
    match column.kind {
        _ if text.is_empty() => column.nullable,
        FieldType::Text => true,
        FieldType::Date => Timestamp::parse(text).is_some() || from_excel(text).is_some(),
        FieldType::Integer | FieldType::Decimal => is_number(text) || with_point(text).is_some(),
        FieldType::Boolean => matches!(text, "true" | "false"),
    }
}

/// Returns a number with a decimal comma as one with a decimal point.
pub(crate) fn with_point(text: &str) -> Option<Cow<'static, str>> {
    let (whole, fraction) = text.split_once(',')?;
    let text = format!("{whole}.{fraction}");
    is_number(&text).then_some(Cow::Owned(text))
}

/// Returns whether the first row ends with CR LF; line breaks inside quotes do not count.
fn ends_with_cr(head: &[u8]) -> bool {
    let mut quoted = false;
    let mut previous = 0;
    for &byte in head {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => return previous == b'\r',
            _ => {}
        }
        previous = byte;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(head: &str) -> DetectedDialect {
        DetectedDialect::detect(head.as_bytes(), b',', None)
            .expect(head)
            .expect(head)
    }

    #[test]
    fn a_header_shows_the_delimiter() {
        for (head, delimiter, width) in [
            ("batch_id,comment\n", b',', 2),
            ("batch_id;comment\r\n", b';', 2),
            ("\"batch_id\"_comment\n", b'_', 2),
            ("batch_idxcomment", b'x', 2),
            ("warnings\ntrue\n", NO_DELIMITER, 1),
            ("batch_id,comment,mine\n", b',', 3),
        ] {
            let dialect = detect(head);
            assert_eq!(
                (dialect.delimiter, dialect.width),
                (delimiter, width),
                "{head}"
            );
            assert!(dialect.header);
        }
        assert_eq!(detect("batch_id,comment,mine\n").unknown, ["mine"]);
        assert!(DetectedDialect::detect(b"comment,comment\n", b',', None).is_err());
    }

    #[test]
    fn rows_without_a_header_show_the_delimiter_by_their_types() {
        let layout = [2, 5, 8, 16];
        let detect = |row: &str| {
            let dialect = DetectedDialect::detect(row.as_bytes(), b',', Some(&layout)).ok()??;
            assert!(!dialect.header);
            Some(dialect.delimiter)
        };
        assert_eq!(detect("2026-05-01T06:00:00Z,12,87.50,a\n"), Some(b','));
        assert_eq!(detect("2026-05-01T06:00:00Z;12;87,50;a,b\n"), Some(b';'));
        assert_eq!(detect("one two three four\n"), None);
        assert_eq!(detect("2026-05-01T06:00:00Z,12,87.50\n"), None);
    }

    #[test]
    fn excel_is_detected_by_mark_and_line_ending() {
        assert!(detect("\u{feff}batch_id,comment\r\n").excel);
        assert!(!detect("batch_id,comment\r\n").excel);
        assert!(!detect("\u{feff}batch_id,comment\n").excel);
        let dialect = DetectedDialect {
            excel: true,
            ..detect("batch_id,comment\n")
        };
        for (cell, text) in [
            ("'=1", "=1"),
            ("''=1", "'=1"),
            ("'x", "'x"),
            ("'", "'"),
            ("=1", "=1"),
            ("'\tx", "\tx"),
        ] {
            assert_eq!(dialect.unescape(cell), text);
        }
    }
}
