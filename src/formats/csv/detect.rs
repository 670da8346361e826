//! What there is to find out about CSV before it can be read: what stands between cells, which columns
//! there are, and whether it was made for Excel.

use std::borrow::Cow;

use csv::{ReaderBuilder, StringRecord};

use super::dialect::FORMULA;
use crate::batch::{COLUMNS, Column, FieldType, Timestamp, find_column, is_number};
use crate::formats::record::{ReadError, RecordPlace};

/// Stands between the cells of files that have one column: no text holds it.
const NOTHING: u8 = 0xff;

/// So many rows are looked at where there are no names.
const ROWS: usize = 20;

/// The byte order mark, which the csv crate skips at the start of a file.
pub(crate) const MARK: &[u8] = "\u{feff}".as_bytes();

/// How the cells of a file are parted and written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DetectedDialect {
    pub(crate) delimiter: u8,
    pub(crate) header: bool,
    /// Which cell holds each column.
    pub(crate) cells: [Option<usize>; COLUMNS.len()],
    /// How many there are in each row.
    pub(crate) width: usize,
    /// Names in the first line that are no fields.
    pub(crate) unknown: Vec<String>,
    /// Text that would run as a formula stands behind an apostrophe.
    pub(crate) excel: bool,
}

impl DetectedDialect {
    /// Finds it out from the beginning of a file. Cells without names are those of `layout`, or all
    /// fields in order. Nothing where the file holds nothing.
    pub(crate) fn detect(
        head: &[u8],
        usual: u8,
        layout: Option<&[usize]>,
    ) -> Result<Option<Self>, ReadError> {
        let marked = head.starts_with(MARK);
        if head.strip_prefix(MARK).unwrap_or(head).is_empty() {
            return Ok(None);
        }
        let firsts: Vec<(u8, Vec<StringRecord>)> = candidates(usual)
            .into_iter()
            .map(|delimiter| (delimiter, first_rows(head, delimiter)))
            .collect();
        // Only --excel writes both.
        let excel = marked && ends_with_cr(head);
        if let Some((delimiter, names)) = header(&firsts) {
            return Self::with_header(delimiter, names, excel).map(Some);
        }
        let all: Vec<usize> = (0..COLUMNS.len()).collect();
        let layout = layout.unwrap_or(&all);
        let Some(delimiter) = unnamed(&firsts, layout) else {
            return Err(ReadError::Broken {
                place: Some(RecordPlace::Line(1)),
                why: format!(
                    "it neither names the fields of batches nor has the {} cells of one",
                    layout.len()
                ),
                hint: Some(
                    "if this was written with `--no-header` and `--fields`, its manifest knows them: `--manifest`",
                ),
            });
        };
        let mut cells = [None; COLUMNS.len()];
        for (cell, &column) in layout.iter().enumerate() {
            cells[column] = Some(cell);
        }
        Ok(Some(Self {
            delimiter: parting(delimiter, layout.len()),
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
                    format!("`{name}` is there twice"),
                ));
            }
        }
        Ok(Self {
            delimiter: parting(delimiter, names.len()),
            header: true,
            cells,
            width: names.len(),
            unknown,
            excel,
        })
    }

    /// Returns the columns that there are, one bit each.
    pub(crate) fn columns(&self) -> u32 {
        (0..COLUMNS.len())
            .filter(|&column| self.cells[column].is_some())
            .fold(0, |columns, column| columns | 1 << column)
    }

    /// Refuses a cell made for Excel that would run as a formula. Numbers and dates never do.
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
                        "`{}` would run as a formula: the apostrophe before it is missing",
                        column.name
                    ),
                    hint: Some("somebody has changed the file; export it again with `--excel`"),
                });
            }
        }
        Ok(())
    }

    /// Takes away what `--excel` put before a text.
    pub(crate) fn undo<'a>(&self, text: &'a str) -> &'a str {
        match text.strip_prefix('\'') {
            Some(rest) if self.excel && rest.trim_start_matches('\'').starts_with(FORMULA) => rest,
            _ => text,
        }
    }
}

/// Where there is one cell to a row, nothing stands between cells, and commas say nothing.
fn parting(delimiter: u8, width: usize) -> u8 {
    if width == 1 { NOTHING } else { delimiter }
}

/// What may stand between cells, the likely ones first: `--delimiter` takes nearly anything.
fn candidates(usual: u8) -> Vec<u8> {
    let likely = [usual, b',', b';', b'\t', b'|'];
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

/// Picks the reading of the first line in which most cells are names of fields; nothing where it is no
/// line of names.
fn header(firsts: &[(u8, Vec<StringRecord>)]) -> Option<(u8, &StringRecord)> {
    let known = |names: &StringRecord| {
        names
            .iter()
            .filter(|name| find_column(name).is_some())
            .count()
    };
    let mut best: Option<(usize, u8, &StringRecord)> = None;
    for (delimiter, rows) in firsts {
        let Some(names) = rows.first() else { continue };
        let known = known(names);
        if 2 * known > names.len() && best.is_none_or(|(most, ..)| known > most) {
            best = Some((known, *delimiter, names));
        }
    }
    best.map(|(_, delimiter, names)| (delimiter, names))
}

/// Picks what parts most rows into cells that fit `layout`; of two, the likelier.
fn unnamed(firsts: &[(u8, Vec<StringRecord>)], layout: &[usize]) -> Option<u8> {
    let judged: Vec<usize> = (0..layout.len())
        .filter(|&cell| COLUMNS[layout[cell]].kind != FieldType::Text)
        .collect();
    let fit = |row: &StringRecord| {
        let fit = |cell: &&usize| fits(&COLUMNS[layout[**cell]], &row[**cell]);
        judged.iter().filter(fit).count()
    };
    let mut best: Option<(usize, u8)> = None;
    for (delimiter, rows) in firsts {
        let rows = rows.iter().filter(|row| row.len() == layout.len());
        let fitting: Vec<usize> = rows.map(fit).collect();
        // Some may not, in what `--lenient` carried on.
        let fits = 2 * fitting.iter().sum::<usize>() >= fitting.len() * judged.len();
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
        FieldType::Date => Timestamp::parse(text).is_some(),
        FieldType::Integer | FieldType::Decimal => is_number(text) || with_point(text).is_some(),
        FieldType::Boolean => matches!(text, "true" | "false"),
    }
}

/// Returns a number that is written with a decimal comma as it is with a point.
pub(crate) fn with_point(text: &str) -> Option<Cow<'static, str>> {
    let (whole, fraction) = text.split_once(',')?;
    let text = format!("{whole}.{fraction}");
    is_number(&text).then_some(Cow::Owned(text))
}

/// Tells whether the first row ends with CR LF; line breaks in quotes are none.
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
    fn names_tell_what_parts_them() {
        for (head, delimiter, width) in [
            ("batch_id,comment\n", b',', 2),
            ("batch_id;comment\r\n", b';', 2),
            ("\"batch_id\"_comment\n", b'_', 2),
            ("batch_idxcomment", b'x', 2),
            ("warnings\ntrue\n", NOTHING, 1),
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
    fn rows_without_names_tell_by_what_fits() {
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
    fn excel_is_known_by_mark_and_line_end() {
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
            assert_eq!(dialect.undo(cell), text);
        }
    }
}
