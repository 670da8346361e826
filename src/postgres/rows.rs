//! Encodes batches as rows in the server's binary format, exactly or not at all, and buffers them in a temporary file.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, Read as _, Seek as _, Write as _};

use serde_json::value::RawValue;
use tempfile::SpooledTempFile;

use super::escapes;
use super::table::{Layout, TableField};
use crate::batch::values::Members;
use crate::batch::{BATCH_ID, Batch, COLUMNS, FieldType, Timestamp};
use crate::error::{Failure, Kind};
use crate::secret;

/// The start of data for `copy … (format binary)`: the signature, no flags, and no extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The end of the data, in place of the number of cells of a row.
const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();

const NULL: [u8; 4] = (-1_i32).to_be_bytes();

/// Seconds from 1970 to 2000, the epoch of PostgreSQL.
const EPOCH: i64 = 946_684_800;

/// The maximum number of digits of a `numeric` before and after the decimal point.
const WHOLE_LIMIT: usize = 131_072;
const FRACTION_LIMIT: usize = 16_383;

/// The size of a chunk, in bytes.
const CHUNK: usize = 2 << 20;
/// Bytes kept in memory before a file is created.
const IN_MEMORY: usize = 4 << 20;

/// Encoded rows in chunks, each the input of one `copy … (format binary)`.
pub(super) struct RowSpool {
    layout: Layout,
    /// The chunk that is being filled.
    chunk: Vec<u8>,
    /// The other chunks, each after its length.
    file: SpooledTempFile,
    chunks: u64,
    /// Chunks that were not read back yet.
    left: u64,
    /// The total number of rows.
    pub(super) rows: u64,
    /// The number of texts with escapes.
    pub(super) escaped: u64,
}

impl RowSpool {
    pub(super) fn new(layout: Layout) -> Self {
        Self {
            layout,
            chunk: Vec::new(),
            file: SpooledTempFile::new(IN_MEMORY),
            chunks: 0,
            left: 0,
            rows: 0,
            escaped: 0,
        }
    }

    pub(super) fn add(&mut self, batch: &Batch) -> Result<(), Failure> {
        let bytes = &mut self.chunk;
        if bytes.is_empty() {
            bytes.extend_from_slice(HEADER);
        }
        // There are few columns.
        let cells = u16::try_from(self.layout.fields.len()).unwrap_or_default();
        bytes.extend_from_slice(&cells.to_be_bytes());
        for field in &self.layout.fields {
            let before = bytes.len();
            let is_escaped = add_cell(field, batch, bytes);
            self.escaped += u64::from(is_escaped.map_err(|why| inexact(field, batch, why))?);
            if field.not_null && bytes[before..] == NULL {
                return Err(inexact(field, batch, "the column does not allow null"));
            }
        }
        self.rows += 1;
        if self.chunk.len() >= CHUNK {
            self.end_chunk().map_err(cannot_buffer)?;
        }
        Ok(())
    }

    fn end_chunk(&mut self) -> io::Result<()> {
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.extend_from_slice(&TRAILER);
        self.file.write_all(&(chunk.len() as u64).to_be_bytes())?;
        self.file.write_all(&chunk)?;
        self.chunks += 1;
        Ok(())
    }

    /// Starts to read from the first chunk.
    pub(super) fn rewind(&mut self) -> Result<(), Failure> {
        if !self.chunk.is_empty() {
            self.end_chunk().map_err(cannot_buffer)?;
        }
        self.left = self.chunks;
        self.file.rewind().map_err(cannot_read_back)
    }

    /// Returns the bytes of the next chunk; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.take().map(Some).map_err(cannot_read_back)
    }

    fn take(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 8];
        self.file.read_exact(&mut length)?;
        let length = usize::try_from(u64::from_be_bytes(length)).map_err(io::Error::other)?;
        let mut chunk = vec![0; length];
        self.file.read_exact(&mut chunk)?;
        Ok(chunk)
    }
}

/// The error for a value that its column cannot store exactly.
fn inexact(field: &TableField, batch: &Batch, why: &str) -> Failure {
    let value = match field.column {
        Some(column) => batch.plain(column).unwrap_or_default().into_owned(),
        None => batch.extra().unwrap_or_default(),
    };
    let value = match &*value {
        "" => "null".to_owned(),
        value => secret::brief(value),
    };
    let (id, name) = (secret::brief(&batch.id()), field.name());
    let message = format!("batch `{id}`: `{name}` is {value}: {why}");
    Failure::new(Kind::Protocol, message)
        .hint("exclude the field with `--fields`, or write json or csv, which keep all values")
}

fn cannot_buffer(error: io::Error) -> Failure {
    let folder = std::env::temp_dir();
    let folder = folder.display();
    let message = format!("cannot buffer batches for PostgreSQL in {folder}");
    Failure::new(Kind::Output, message)
        .caused_by(error)
        .hint("free some space there, or set TMPDIR to another folder")
}

fn cannot_read_back(error: io::Error) -> Failure {
    let message = "cannot read back the batches buffered for PostgreSQL";
    Failure::new(Kind::Output, message).caused_by(error)
}

/// Adds one cell; returns whether it needed escapes.
fn add_cell(field: &TableField, batch: &Batch, bytes: &mut Vec<u8>) -> Result<bool, &'static str> {
    let Some(column) = field.column else {
        return add_extra(batch, bytes);
    };
    let value = match column {
        BATCH_ID => Some(batch.id()),
        column => batch.typed(column),
    };
    let Some(text) = value else {
        bytes.extend_from_slice(&NULL);
        return Ok(false);
    };
    match COLUMNS[column].kind {
        FieldType::Text => return Ok(add_text(&text, bytes)),
        FieldType::Boolean => add(&[u8::from(text == "true")], bytes),
        FieldType::Integer => {
            let number: i64 = text.parse().map_err(|_| "it is out of range for bigint")?;
            add(&number.to_be_bytes(), bytes);
        }
        FieldType::Decimal => {
            if let Some((all, behind)) = field.digits
                && !fits(&text, all, behind)
            {
                return Err("the column has fewer digits, and the value is not rounded");
            }
            add_sized(bytes, |bytes| add_numeric(&text, bytes))
                .ok_or("it has too many digits for numeric")?;
        }
        FieldType::Date => {
            let moment = Timestamp::parse(&text).and_then(|moment| moment.microseconds());
            let since = moment.and_then(|moment| moment.checked_sub(EPOCH * 1_000_000));
            let since = since.ok_or("timestamptz has a precision of one microsecond")?;
            add(&since.to_be_bytes(), bytes);
        }
    }
    Ok(false)
}

fn add_extra(batch: &Batch, bytes: &mut Vec<u8>) -> Result<bool, &'static str> {
    let Some(json) = batch.extra() else {
        bytes.extend_from_slice(&NULL);
        return Ok(false);
    };
    if !has_unique_names(&json) {
        return Err("jsonb keeps only one of several members with the same name");
    }
    let escaped = escapes::visible_in_json(&json)?;
    let is_escaped = escaped.is_some();
    let json = escaped.unwrap_or(json);
    add_sized(bytes, |bytes| {
        // The version of the jsonb format.
        bytes.push(1);
        bytes.extend_from_slice(json.as_bytes());
        Some(())
    });
    Ok(is_escaped)
}

/// Returns whether no object in this JSON has two members with the same name.
fn has_unique_names(json: &str) -> bool {
    match json.trim_start().as_bytes().first() {
        Some(b'{') => serde_json::from_str(json).map_or(true, |Members(members)| {
            let names: HashSet<&str> = members.iter().map(|(name, _)| &**name).collect();
            let mut values = members.iter().map(|(_, value)| value.get());
            names.len() == members.len() && values.all(has_unique_names)
        }),
        Some(b'[') => serde_json::from_str::<Vec<&RawValue>>(json).map_or(true, |values| {
            values.iter().all(|value| has_unique_names(value.get()))
        }),
        _ => true,
    }
}

fn add_text(text: &str, bytes: &mut Vec<u8>) -> bool {
    let escaped = escapes::visible(text);
    let is_escaped = escaped.is_some();
    let text = escaped.map_or(Cow::Borrowed(text), Cow::Owned);
    add(text.as_bytes(), bytes);
    is_escaped
}

fn add(value: &[u8], bytes: &mut Vec<u8>) {
    add_sized(bytes, |bytes| {
        bytes.extend_from_slice(value);
        Some(())
    });
}

/// Adds what `write` writes, preceded by its length.
fn add_sized(bytes: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> Option<()> {
    let at = bytes.len();
    bytes.extend_from_slice(&NULL);
    write(bytes)?;
    // A page is far smaller than this.
    let length = i32::try_from(bytes.len() - at - NULL.len()).unwrap_or(i32::MAX);
    bytes[at..at + NULL.len()].copy_from_slice(&length.to_be_bytes());
    Some(())
}

/// Splits a number into its sign, its significant digits before the point, and all digits after it.
fn digits(text: &str) -> (bool, &str, &str) {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_negative = unsigned.len() < text.len();
    (is_negative, whole.trim_start_matches('0'), fraction)
}

/// Returns whether a column of `all` digits, `behind` of them after the point, can store the number exactly.
fn fits(text: &str, all: usize, behind: usize) -> bool {
    let (_, whole, fraction) = digits(text);
    whole.len() <= all - behind && fraction.trim_end_matches('0').len() <= behind
}

/// Encodes a number of any length: groups of four digits, the number of groups before the point, and the
/// number of digits shown after it. `None` if it exceeds the limits of PostgreSQL.
fn add_numeric(text: &str, bytes: &mut Vec<u8>) -> Option<()> {
    let (is_negative, whole, mut fraction) = digits(text);
    if fraction.len() > FRACTION_LIMIT {
        fraction = fraction.trim_end_matches('0');
    }
    if whole.len() > WHOLE_LIMIT || fraction.len() > FRACTION_LIMIT {
        return None;
    }
    let header = bytes.len();
    bytes.extend_from_slice(&[0; 8]);
    let first = bytes.len();
    let leading_zeros = add_groups(whole, fraction, bytes);
    let groups = u16::try_from((bytes.len() - first) / 2).ok()?;
    let before = match groups {
        0 => 0,
        _ => i64::try_from(whole.len().div_ceil(4)).ok()? - 1 - leading_zeros,
    };
    let words = [
        groups.to_be_bytes(),
        i16::try_from(before).ok()?.to_be_bytes(),
        (u16::from(is_negative && groups > 0) << 14).to_be_bytes(),
        u16::try_from(fraction.len()).ok()?.to_be_bytes(),
    ];
    bytes[header..first].copy_from_slice(words.as_flattened());
    Some(())
}

/// Adds the digits of a number in groups of four, without zeros at either end; returns the number of groups
/// left out at the start.
fn add_groups(whole: &str, fraction: &str, bytes: &mut Vec<u8>) -> i64 {
    let first = bytes.len();
    let mut leading_zeros = 0;
    let mut add_group = |group: u16| {
        if group == 0 && bytes.len() == first {
            leading_zeros += 1;
        } else {
            bytes.extend_from_slice(&group.to_be_bytes());
        }
    };
    // As if zeros before the number filled up the first group.
    let mut digits = (4 - whole.len() % 4) % 4;
    let mut group = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        group = group * 10 + u16::from(digit - b'0');
        digits += 1;
        if digits.is_multiple_of(4) {
            add_group(std::mem::take(&mut group));
        }
    }
    while !digits.is_multiple_of(4) {
        group *= 10;
        digits += 1;
    }
    add_group(group);
    while bytes.len() > first && bytes.ends_with(&[0, 0]) {
        bytes.truncate(bytes.len() - 2);
    }
    leading_zeros
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::filter::Fields;

    /// Groups, groups before the point less one, sign, digits after the point.
    type Parts = (Vec<u16>, i16, u16, u16);

    fn numeric(text: &str) -> Option<Parts> {
        let mut bytes = Vec::new();
        add_numeric(text, &mut bytes)?;
        let words: Vec<u16> = bytes
            .chunks(2)
            .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
            .collect();
        assert_eq!(usize::from(words[0]), words.len() - 4);
        Some((
            words[4..].to_vec(),
            words[1].cast_signed(),
            words[2],
            words[3],
        ))
    }

    #[test]
    fn names_must_be_unique_at_any_depth() {
        for json in [
            r#"{"a":1,"b":[{"a":2},{"a":3}]}"#,
            "[1]",
            r#""{a}""#,
            r#"{"a":1e999}"#,
        ] {
            assert!(has_unique_names(json), "{json}");
        }
        for json in [
            r#"{"a":1,"a":1}"#,
            r#"[0,{"x":{"k":1,"\u006b":2}}]"#,
            r#"{"a":[[{"k":1, "k":2}]]}"#,
        ] {
            assert!(!has_unique_names(json), "{json}");
        }
    }

    // As PostgreSQL itself sends them: select numeric_send('…').
    #[test]
    fn numbers_are_groups_of_four_digits() {
        for (text, groups, before, sign, shown) in [
            ("87.50", &[87, 5000][..], 0, 0, 2),
            ("-12345678.9", &[1234, 5678, 9000], 1, 0x4000, 1),
            ("0", &[], 0, 0, 0),
            ("-0.00", &[], 0, 0, 2),
            ("0.00012", &[1, 2000], -1, 0, 5),
            ("0.0000000100", &[1], -2, 0, 10),
            ("10000", &[1], 1, 0, 0),
            ("007", &[7], 0, 0, 0),
            ("123456789.0", &[1, 2345, 6789], 2, 0, 1),
        ] {
            let expected = (groups.to_vec(), before, sign, shown);
            assert_eq!(numeric(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn numbers_beyond_the_limits_are_refused() {
        assert!(numeric(&"9".repeat(WHOLE_LIMIT)).is_some());
        assert!(numeric(&"9".repeat(WHOLE_LIMIT + 1)).is_none());
        assert!(numeric(&format!("0.{}", "9".repeat(FRACTION_LIMIT))).is_some());
        assert!(numeric(&format!("0.{}", "9".repeat(FRACTION_LIMIT + 1))).is_none());
        assert!(numeric(&format!("0.5{}", "0".repeat(FRACTION_LIMIT + 1))).is_some());
    }

    #[test]
    fn a_column_with_few_digits_accepts_what_fits() {
        for (text, expected) in [
            ("9999999999.99", true),
            ("-87.5", true),
            ("1.500", true),
            ("1.505", false),
            ("10000000000", false),
            ("0000000000001", true),
        ] {
            assert_eq!(fits(text, 12, 2), expected, "{text}");
        }
    }

    #[test]
    fn dates_are_microseconds_since_2000() {
        let cells = |date: &str| {
            let fields = Fields::parse("batch_creation_date").expect("fields");
            let mut rows = RowSpool::new(Layout::new(&fields, false));
            let batch = Batch::read(&format!(
                r#"{{"batch_id":"a","batch_name":"n","batch_creation_date":"{date}","number_of_images":1,"warnings":true}}"#
            ));
            assert_eq!(batch.flaws, [], "{date}");
            rows.add(&batch.batch.expect("a batch"))
                .map(|()| rows.chunk)
        };
        let new_year = cells("2017-01-01T00:00:00Z").expect("exact");
        let micros = 536_544_000_000_000_i64.to_be_bytes();
        assert!(new_year.ends_with(&micros));
        for same in ["2017-01-01T00:00:00.000+00:00", "2016-12-31T23:59:60Z"] {
            assert_eq!(cells(same).expect("exact"), new_year, "{same}");
        }
        assert!(cells("2017-01-01T00:00:00.123456+00:00").is_ok());
        assert!(cells("2017-01-01T00:00:00.1234567+00:00").is_err());
    }

    #[test]
    fn a_row_consists_of_its_cells() {
        let fields = Fields::parse("batch_id,crop_type,number_of_images,warnings").expect("fields");
        let mut rows = RowSpool::new(Layout::new(&fields, false));
        let batch = Batch::read(
            r#"{"batch_id":"a\u0000","batch_name":"n","batch_creation_date":"2026-05-01T06:00:00Z","number_of_images":258,"warnings":true}"#,
        );
        rows.add(&batch.batch.expect("a batch")).expect("exact");
        assert_eq!((rows.rows, rows.escaped), (1, 1));
        let expected = [
            HEADER,
            b"\0\x04",
            b"\0\0\0\x06a\\u{0}",
            b"\xff\xff\xff\xff",
            b"\0\0\0\x08\0\0\0\0\0\0\x01\x02",
            b"\0\0\0\x01\x01",
            b"\xff\xff",
        ]
        .concat();
        assert_eq!(rows.chunk, expected[..expected.len() - TRAILER.len()]);
        rows.rewind().expect("buffered");
        assert_eq!(rows.next().expect("a chunk"), Some(expected));
    }

    #[test]
    fn chunks_can_be_read_repeatedly() {
        let mut spool = RowSpool::new(Layout::new(&Fields::all(), false));
        for chunk in 1..4 {
            spool.chunk = vec![chunk; IN_MEMORY / 2];
            spool.end_chunk().expect("kept");
        }
        for _ in 0..2 {
            spool.rewind().expect("read");
            for number in 1..4 {
                let chunk = spool.next().expect("read").expect("a chunk");
                assert_eq!((chunk[0], chunk.len()), (number, IN_MEMORY / 2 + 2));
            }
            assert_eq!(spool.next().expect("read"), None);
        }
    }
}
