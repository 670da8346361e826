//! The dialect of CSV that the flags choose: delimiter, quotes, decimal comma, and text that Excel would run.

use memchr::{memchr, memchr3};
use wide::u8x16;

use crate::batch::{COLUMNS, FieldType, Pieces};
use crate::error::Failure;

/// Bytes that are compared at a time.
const BLOCK: usize = 16;

/// How cells are separated and written.
pub(crate) struct Dialect {
    pub(super) delimiter: u8,
    pub(super) options: CsvOptions,
}

/// The flags for CSV.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct CsvOptions {
    pub(crate) delimiter: Option<String>,
    pub(crate) decimal_comma: bool,
    pub(crate) bom: bool,
    pub(crate) no_header: bool,
    pub(crate) excel: bool,
}

/// When a value is written as received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyRule {
    Always,
    IfPlain,
    Never,
}

impl Dialect {
    /// Resolves the flags; without `--delimiter`, cells are separated by `default_delimiter`.
    pub(crate) fn new(options: &CsvOptions, default_delimiter: u8) -> Result<Self, Failure> {
        let delimiter = match options.delimiter.as_deref() {
            Some(word) => delimiter(word)?,
            // With a comma as delimiter, every number with a decimal comma would need quotes.
            None if options.decimal_comma && default_delimiter == b',' => b';',
            None => default_delimiter,
        };
        let mut options = options.clone();
        options.bom |= options.excel;
        Ok(Self { delimiter, options })
    }

    /// Returns when the valid values of `column` are written as received.
    pub(super) fn copy_rule(&self, column: usize) -> CopyRule {
        let is_copied = match COLUMNS[column].kind {
            FieldType::Text => return CopyRule::IfPlain,
            FieldType::Decimal => !self.options.decimal_comma,
            FieldType::Date => !self.options.excel,
            FieldType::Integer | FieldType::Boolean => true,
        };
        // No number and no date contains one of these.
        if is_copied && matches!(self.delimiter, b',' | b';' | b'\t' | b'|') {
            CopyRule::Always
        } else {
            CopyRule::Never
        }
    }

    /// Returns whether text between JSON quotes, the first `length` bytes of `source`, is written as received. Without
    /// JSON escapes, it has no quote and no line break.
    #[allow(clippy::inline_always, reason = "it is called for each text")]
    #[inline(always)]
    pub(super) fn is_plain(&self, source: &[u8], length: usize) -> bool {
        let (blocks, rest) = source.as_chunks::<BLOCK>();
        let (delimiter, backslash) = (u8x16::splat(self.delimiter), u8x16::splat(b'\\'));
        let mut missing = length;
        for block in blocks {
            let bytes = u8x16::new(*block);
            // One bit for each byte.
            let special = (bytes.simd_eq(delimiter) | bytes.simd_eq(backslash)).to_bitmask();
            if missing < BLOCK {
                return special & ((1 << missing) - 1) == 0
                    && !Self::is_special_start(source, length);
            }
            if special != 0 {
                return false;
            }
            missing -= BLOCK;
        }
        let mut rest = rest[..missing].iter();
        !rest.any(|byte| *byte == b'\\' || *byte == self.delimiter)
            && !Self::is_special_start(source, length)
    }

    #[inline]
    fn is_special_start(source: &[u8], length: usize) -> bool {
        length > 0 && matches!(source[0], b'=' | b'+' | b'-' | b'@' | b'\'')
    }

    /// Adds a cell and the delimiter after it to `row`, in quotes only if needed.
    pub(super) fn cell(&self, row: &mut Pieces, text: &str) {
        let bytes = text.as_bytes();
        let is_quoted =
            memchr3(b'"', b'\r', b'\n', bytes).is_some() || memchr(self.delimiter, bytes).is_some();
        if is_quoted {
            return self.quoted_cell(row, text);
        }
        row.push_with_end(bytes, self.delimiter);
    }

    /// Adds a cell in quotes and the delimiter after it to `row`.
    pub(super) fn quoted_cell(&self, row: &mut Pieces, text: &str) {
        row.push_any(b"\"");
        for part in text.split_inclusive('"') {
            row.push_any(part.as_bytes());
            if part.ends_with('"') {
                row.push_any(b"\"");
            }
        }
        row.push_any(&[b'"', self.delimiter]);
    }
}

fn delimiter(word: &str) -> Result<u8, Failure> {
    match word.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n' | b'\0') => Ok(*byte),
        bytes => {
            let why = match bytes {
                [byte] if byte.is_ascii() => "cannot separate cells",
                _ => "is not one ASCII character",
            };
            Err(Failure::usage(
                format!("`--delimiter {}` {why}", word.escape_debug()),
                "write one ASCII character that is neither a quote nor a line break, such as ';' or '\\t'",
            ))
        }
    }
}

/// The first characters of cells that spreadsheets interpret as formulas. LibreOffice ignores `\0` before one of the others.
pub(crate) const FORMULA: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\0'];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use std::sync::Arc;

    use ::csv::{QuoteStyle, Terminator, WriterBuilder};
    use proptest::prelude::*;

    /// Returns a batch with `text` in each text field.
    fn batch(text: &str, number: &str) -> Batch {
        let fields = COLUMNS.iter().map(|column| {
            let value = match column.kind {
                FieldType::Text => format!("\"{text}\""),
                FieldType::Date => "\"2026-05-01T06:00:00.5Z\"".to_owned(),
                FieldType::Integer => "12".to_owned(),
                FieldType::Decimal => format!("\"{number}\""),
                FieldType::Boolean => "true".to_owned(),
            };
            format!("\"{}\":{value}", column.name)
        });
        let object = format!("{{{}}}", fields.collect::<Vec<_>>().join(","));
        let scanned = Batch::scan(&Arc::new(object), 0);
        scanned.expect("a usual batch").0
    }

    proptest! {
        #[test]
        fn cells_written_as_received_need_no_quotes(
            text in r#"([a-c,;| .=+@'-]|\\["\\/nrt]){1,6}"#,
            number in "-?[0-9]{1,3}\\.[0-9]{2}",
            delimiter in prop::sample::select(&b",;\t|.-5aT "[..]),
            decimal_comma: bool,
        ) {
            let options = CsvOptions { decimal_comma, excel: true, ..CsvOptions::default() };
            let dialect = Dialect { delimiter, options };
            let batch = batch(&text, &number);
            for (place, column) in COLUMNS.iter().enumerate() {
                let verbatim = batch.inside(place).expect("a value");
                let is_copied = match dialect.copy_rule(place) {
                    CopyRule::Always => true,
                    CopyRule::IfPlain => {
                        let start = verbatim.as_ptr() as usize - batch.text().as_ptr() as usize;
                        let source = &batch.text().as_bytes()[start..];
                        let is_plain = dialect.is_plain(source, verbatim.len());
                        prop_assert_eq!(is_plain, dialect.is_plain(verbatim.as_bytes(), verbatim.len()));
                        is_plain
                    }
                    CopyRule::Never => false,
                };
                if !is_copied { continue }
                let plain = batch.plain(place).expect("a value");
                prop_assert_eq!(verbatim, plain.as_ref());
                let mut row = Pieces::default();
                dialect.cell(&mut row, &plain);
                prop_assert_eq!(row.as_bytes().split_last(), Some((&delimiter, verbatim.as_bytes())));
                prop_assert!(column.kind != FieldType::Decimal || !decimal_comma);
                prop_assert!(column.kind != FieldType::Text || !plain.trim_start_matches('\'').starts_with(FORMULA));
            }
        }

        #[test]
        fn cells_equal_those_of_the_csv_crate(
            cells in prop::collection::vec("[a-c,;\t\"\r\né ]{0,6}", 1..6),
            delimiter in prop::sample::select(&b",;\t a"[..]),
        ) {
            let dialect = Dialect { delimiter, options: CsvOptions::default() };
            let mut row = Pieces::default();
            for cell in &cells {
                dialect.cell(&mut row, cell);
            }
            row.truncate(row.len() - 1);
            let row = row.as_bytes().to_vec();
            let mut writer = WriterBuilder::new()
                .delimiter(delimiter)
                .quote_style(QuoteStyle::Necessary)
                .terminator(Terminator::Any(b'\n'))
                .from_writer(Vec::new());
            writer.write_record(&cells).expect("memory");
            let mut expected = writer.into_inner().expect("memory");
            expected.pop();
            // An empty cell alone in its row is written by `Csv::end_row`.
            if cells != [""] {
                prop_assert_eq!(String::from_utf8(row), String::from_utf8(expected));
            }
        }
    }
}
