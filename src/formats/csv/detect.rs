//! Detects the dialect of a CSV file from its first rows: the delimiter, the columns, and whether it was
//! written with `--excel`.

use std::borrow::Cow;

use csv::{ReaderBuilder, StringRecord};
use memchr::memmem;

use super::dialect::FORMULA;
use super::excel_dates::{from_excel, to_excel};
use super::lines::LineChecker;
use crate::batch::{
    COLUMNS, CREATION_DATE, Column, FieldType, MEANINGS, Timestamp, column_bits, find_column,
    find_heading, is_number,
};
use crate::formats::record::{ReadError, RecordPlace};
use crate::secret::brief;

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
        if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
            let hint = "save it as UTF-8, in Excel as `CSV UTF-8`";
            return Err(ReadError::broken(None, "it is UTF-16, not UTF-8", hint));
        }
        let candidates = candidates(default_delimiter);
        // `--excel` writes both, and so do spreadsheets and Python.
        let excel = marked && ends_with_cr(head);
        if let Some((delimiter, names)) = detect_header(head, &candidates) {
            let new = Self::with_header(delimiter, &names, excel)?;
            return Ok(Some(new.checked_for_excel(head)));
        }
        let all: Vec<usize> = (0..COLUMNS.len()).collect();
        let layout = layout.unwrap_or(&all);
        // With a wrong delimiter, quotes are often in the middle of a cell.
        let has_cells = |delimiter: u8| LineChecker::new(delimiter).check(rows).is_ok();
        let all = || candidates.iter().copied();
        let likely = all().filter(|&delimiter| has_cells(delimiter));
        let others = all().filter(|&delimiter| !has_cells(delimiter));
        let delimiter = detect_without_header(head, likely, layout);
        let delimiter = delimiter.or_else(|| detect_without_header(head, others, layout));
        let Some(delimiter) = delimiter else {
            let count = layout.len();
            return Err(ReadError::broken(
                RecordPlace::Line(1),
                format!("expected field names, or the {count} cells of a batch"),
                "if it was written with `--no-header` and `--fields`, only its manifest says what the cells are: verify it with `--manifest`, or export it again with a header",
            ));
        };
        let mut new = Self::new(delimiter, layout.len(), excel);
        for (cell, &column) in layout.iter().enumerate() {
            new.cells[column] = Some(cell);
        }
        Ok(Some(new.checked_for_excel(head)))
    }

    /// Checks that the first rows have no date that `--excel` would write in another form.
    fn checked_for_excel(mut self, head: &[u8]) -> Self {
        let is_plain = |row: StringRecord| {
            let cell = row.get(self.cells[CREATION_DATE]?)?;
            to_excel(cell, false)
        };
        self.excel = self.excel
            && first_rows(head, self.delimiter)
                .find_map(is_plain)
                .is_none();
        self
    }

    /// A dialect without a header, and without columns yet.
    fn new(delimiter: u8, width: usize, excel: bool) -> Self {
        Self {
            // In a file with one column, a comma does not separate cells.
            delimiter: if width == 1 { NO_DELIMITER } else { delimiter },
            header: false,
            cells: [None; COLUMNS.len()],
            width,
            unknown: Vec::new(),
            excel,
        }
    }

    fn with_header(delimiter: u8, names: &StringRecord, excel: bool) -> Result<Self, ReadError> {
        let mut new = Self::new(delimiter, names.len(), excel);
        new.header = true;
        for (cell, name) in names.iter().enumerate() {
            let Some(column) = find_field(name) else {
                new.unknown.push(name.to_owned());
                continue;
            };
            let field = COLUMNS[column].name;
            if name != field {
                let name = brief(name);
                return Err(ReadError::broken(
                    RecordPlace::Line(1),
                    format!("the header has `{name}` instead of `{field}`"),
                    "other programs go by the names: export it again, as csv",
                ));
            }
            if new.cells[column].replace(cell).is_some() {
                let why = format!("`{name}` appears twice");
                return Err(ReadError::broken(RecordPlace::Line(1), why, None));
            }
        }
        Ok(new)
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
        for (cell, column) in self.cells.iter().zip(&COLUMNS) {
            let cell = cell.and_then(|cell| record.get(cell)).unwrap_or_default();
            let runs = cell.starts_with(FORMULA)
                && (column.kind == FieldType::Text || !fits(column, cell));
            if runs {
                let name = column.name;
                return Err(ReadError::broken(
                    place,
                    format!(
                        "`{name}` would be interpreted as a formula: the apostrophe before it is missing"
                    ),
                    "the file was modified; export it again with `--excel`",
                ));
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

/// Returns the first rows of `text`, up to one that is not valid.
fn first_rows(text: &[u8], delimiter: u8) -> impl Iterator<Item = StringRecord> {
    let reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .buffer_capacity(4096)
        .from_reader(text);
    let rows = reader.into_records().take(ROWS);
    rows.map_while(Result::ok)
}

/// Picks the delimiter with which most cells of the first line are field names; `None` if the line is not
/// a header.
fn detect_header(text: &[u8], candidates: &[u8]) -> Option<(u8, StringRecord)> {
    let rows = text.strip_prefix(MARK).unwrap_or(text);
    let is_row = |line: &&[u8]| !line.is_empty() && !line.contains(&b'"');
    // Then it is the first row with every delimiter.
    let line = lines(rows).next().filter(is_row);
    let names = COLUMNS.iter().map(|column| column.name);
    let titles = MEANINGS.iter().map(|meaning| meaning.title);
    let mut names = names.chain(titles).map(str::to_ascii_lowercase);
    let lower = line.map(<[u8]>::to_ascii_lowercase);
    if lower.is_some_and(|line| !names.any(|name| memmem::find(&line, name.as_bytes()).is_some())) {
        return None;
    }
    let line = line.unwrap_or(text);
    let mut best: Option<(usize, u8, StringRecord)> = None;
    for &delimiter in candidates {
        let most = best.as_ref().map_or(0, |(most, ..)| *most);
        // To build a reader is slow: only for a line that may have more names.
        if count(delimiter, line) < most {
            continue;
        }
        let Some(names) = first_rows(text, delimiter).next() else {
            continue;
        };
        let known = names.iter().filter(|name| find_field(name).is_some());
        let known = known.count();
        if 2 * known > names.len() && known > most {
            best = Some((known, delimiter, names));
        }
    }
    best.map(|(_, delimiter, names)| (delimiter, names))
}

/// Returns the column that a cell of a header means: a spreadsheet saves the headings of a workbook, and people change
/// the case of names.
fn find_field(name: &str) -> Option<usize> {
    let name = name.trim();
    let lower = || find_column(&name.to_ascii_lowercase());
    find_column(name)
        .or_else(|| find_heading(name))
        .or_else(lower)
}

/// Splits `text` at every line break, inside quotes too.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b'\r' | b'\n'))
}

fn count(byte: u8, text: &[u8]) -> usize {
    memchr::memchr_iter(byte, text).count()
}

/// Picks the delimiter with which most rows fit `layout`; the likelier of two.
fn detect_without_header(
    text: &[u8],
    candidates: impl Iterator<Item = u8>,
    layout: &[usize],
) -> Option<u8> {
    let typed_cells: Vec<usize> = (0..layout.len())
        .filter(|&cell| COLUMNS[layout[cell]].kind != FieldType::Text)
        .collect();
    let fit = |row: &StringRecord| {
        let fit = |cell: &&usize| fits(&COLUMNS[layout[**cell]], &row[**cell]);
        typed_cells.iter().filter(fit).count()
    };
    // A row begins in a line of its own.
    let most_rows = lines(text).filter(|line| !line.is_empty());
    let highest_score = most_rows.take(ROWS).count() * (typed_cells.len() + 1);
    let mut best: Option<(usize, u8)> = None;
    for delimiter in candidates {
        // To build a reader is slow: only for rows that may have all cells.
        if count(delimiter, text) + 1 < layout.len() {
            continue;
        }
        let rows = first_rows(text, delimiter).filter(|row| row.len() == layout.len());
        let fitting: Vec<usize> = rows.map(|row| fit(&row)).collect();
        // With `--lenient`, some cells may be invalid.
        let fits = 2 * fitting.iter().sum::<usize>() >= fitting.len() * typed_cells.len();
        let score = fitting.iter().map(|fit| fit + 1).sum();
        if fits && score > 0 && best.is_none_or(|(most, _)| score > most) {
            best = Some((score, delimiter));
        }
        if score >= highest_score {
            break;
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

    /// Picks the delimiter like [`detect_header`], but reads the line with every delimiter.
    fn header_with_most_names(text: &[u8]) -> Option<(u8, StringRecord)> {
        let rows = candidates(b',').into_iter().filter_map(|delimiter| {
            let row = first_rows(text, delimiter).next()?;
            let names = row.iter().filter(|name| find_column(name).is_some());
            let known = names.count();
            (2 * known > row.len()).then_some((known, delimiter, row))
        });
        // The last of the greatest is the first candidate.
        let best = rows.collect::<Vec<_>>().into_iter().rev();
        let best = best.max_by_key(|(known, ..)| *known);
        best.map(|(_, delimiter, row)| (delimiter, row))
    }

    #[test]
    fn candidates_that_are_left_out_would_not_be_picked() {
        const NAMES: [&str; 8] = [
            "batch_id",
            "comment",
            "warnings",
            "crop_type",
            "batch",
            "id",
            "x",
            "",
        ];
        const BETWEEN: [&str; 12] = [
            ",", ",", ",", ";", "_", "t", "\"", "\",\"", "\"\"", "\n", "\r\n", "\u{feff}",
        ];
        let mut random = fastrand::Rng::with_seed(1);
        let mut found = 0;
        for _ in 0..200 {
            let mut text = String::new();
            for _ in 0..random.usize(1..6) {
                text += NAMES[random.usize(0..NAMES.len())];
                text += BETWEEN[random.usize(0..BETWEEN.len())];
            }
            let expected = header_with_most_names(text.as_bytes());
            found += usize::from(expected.is_some());
            let detected = detect_header(text.as_bytes(), &candidates(b','));
            assert_eq!(detected, expected, "{text:?}");
        }
        assert!(found > 20, "{found}");
    }

    #[test]
    fn rows_that_fit_with_two_delimiters_have_the_likelier_one() {
        let pick = |text: &str, layout: &[usize]| {
            detect_without_header(text.as_bytes(), candidates(b',').into_iter(), layout)
        };
        // Numbers with a decimal comma: one row fits with a comma, both with a semicolon.
        assert_eq!(pick("1,5;2,5\n3;4\n", &[8, 9]), Some(b';'));
        assert_eq!(pick("a,b;c\n", &[1, 16]), Some(b','));
        assert_eq!(pick("a b;c\n\nd e;f", &[1, 16]), Some(b';'));
        assert_eq!(pick("a b c\n", &[1, 16]), Some(b'a'));
    }

    #[test]
    fn another_encoding_is_named() {
        for head in [b"\xff\xfeb\0a\0", b"\xfe\xff\0b\0a"] {
            let error = DetectedDialect::detect(head, b',', None).expect_err("UTF-16");
            assert!(format!("{error:?}").contains("it is UTF-16"), "{error:?}");
        }
    }

    #[test]
    fn headings_and_names_in_other_case_are_no_batch() {
        for (header, name) in [
            (
                "Batch_ID,BATCH_CREATION_DATE,avg_usable_seedling_rate",
                "`Batch_ID` instead of `batch_id`",
            ),
            (
                "batch_id ,batch_creation_date",
                "`batch_id ` instead of `batch_id`",
            ),
            (
                "Batch id,Created (UTC),Usable rate (%)",
                "`Batch id` instead of `batch_id`",
            ),
        ] {
            let text = format!("{header}\n1,2026-05-01T06:00:00Z,90.00\n");
            let error = DetectedDialect::detect(text.as_bytes(), b',', None).expect_err(header);
            assert!(format!("{error:?}").contains(name), "{error:?}");
        }
    }

    #[test]
    fn excel_is_detected_by_mark_and_line_ending() {
        assert!(detect("\u{feff}batch_id,comment\r\n").excel);
        assert!(!detect("batch_id,comment\r\n").excel);
        assert!(!detect("\u{feff}batch_id,comment\n").excel);
        let dated = |date: &str| {
            detect(&format!(
                "\u{feff}batch_id,batch_creation_date\r\n1,\r\n2,{date}\r\n"
            ))
        };
        assert!(dated("2026-05-01 06:00:00").excel);
        assert!(
            !dated("2026-05-01T06:00:00Z").excel,
            "written by another program"
        );
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
