//! The set digest: one hash over the batches of an export, whatever their order and format.
//!
//! Canonical form of a batch, version 1: for each written column, in the order of the interface, its
//! name, a zero byte, then a zero byte for null, or a one byte, the length of the value (eight bytes,
//! big endian) and the value. Text stands as it is, and empty text counts as null, for CSV cannot tell
//! them apart; a number stands without zeros that say nothing (`087.50` is `87.5`, `-0.00` is `0`), a
//! date likewise (`…00.500Z` is `…00.5Z`). The SHA-256 digests of all batches are added up as numbers
//! of 256 bits, so that order does not matter and a batch that is there twice does; the set digest is
//! the SHA-256 of a title, the names of the columns, the count and the sum.

use std::borrow::Cow;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::batch::{Batch, COLUMNS, Column, Kind, Typed, Values, is_number};

const TITLE: &[u8] = b"trayscan set digest 1\0";

/// A digest in the making.
pub(crate) struct SetDigest {
    form: Form,
    count: u64,
    sum: [u8; 32],
}

impl SetDigest {
    pub(crate) fn new(columns: &[usize]) -> Self {
        Self {
            form: Form::new(columns),
            count: 0,
            sum: [0; 32],
        }
    }

    /// Adds a batch; returns the digest of it alone.
    pub(crate) fn add(&mut self, batch: &dyn Values) -> [u8; 32] {
        let digest = self.form.digest(batch);
        add_numbers(&mut self.sum, &digest);
        self.count += 1;
        digest
    }

    /// Adds what a file holds of a batch, whose columns are typed or not; returns the digest of it alone.
    pub(crate) fn add_held(&mut self, batch: &Batch, typed: bool) -> [u8; 32] {
        if typed && !batch.is_usual() {
            self.add(&Typed(batch))
        } else {
            self.add(batch)
        }
    }

    /// Returns how many batches were added.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the digest of all that was added, in hexadecimal.
    pub(crate) fn finish(&self) -> String {
        let mut hash = Sha256::new_with_prefix(TITLE);
        for &column in &self.form.columns {
            hash.update(COLUMNS[column].name);
            hash.update([0]);
        }
        hash.update(self.count.to_be_bytes());
        hash.update(self.sum);
        hexadecimal(&hash.finalize())
    }
}

/// The canonical form of a batch.
struct Form {
    /// Columns that are written, in the order of the interface.
    columns: Vec<usize>,
    /// Room for the form of one batch.
    bytes: Vec<u8>,
}

impl Form {
    fn new(columns: &[usize]) -> Self {
        let mut columns = columns.to_vec();
        columns.sort_unstable();
        Self {
            columns,
            bytes: Vec::new(),
        }
    }

    fn digest(&mut self, batch: &dyn Values) -> [u8; 32] {
        // Hashed at once: in small pieces, the hash would spend much of its time on filling blocks.
        self.bytes.clear();
        for &column in &self.columns {
            let Column { name, kind, .. } = &COLUMNS[column];
            self.bytes.extend_from_slice(name.as_bytes());
            let value = batch.plain(column).map(|text| canonical(*kind, text));
            match value.filter(|text| !text.is_empty()) {
                None => self.bytes.extend_from_slice(&[0, 0]),
                Some(text) => {
                    self.bytes.extend_from_slice(&[0, 1]);
                    let length = text.len() as u64;
                    self.bytes.extend_from_slice(&length.to_be_bytes());
                    self.bytes.extend_from_slice(text.as_bytes());
                }
            }
        }
        Sha256::digest(&self.bytes).into()
    }
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Adds big-endian numbers, past their end from the start again.
fn add_numbers(sum: &mut [u8; 32], number: &[u8; 32]) {
    let mut carry = 0;
    for (digit, more) in sum.iter_mut().zip(number).rev() {
        let added = u16::from(*digit) + u16::from(*more) + carry;
        [_, *digit] = added.to_be_bytes();
        carry = added >> 8;
    }
}

/// Returns a value in its one form.
pub(crate) fn canonical(kind: Kind, text: Cow<'_, str>) -> Cow<'_, str> {
    match kind {
        Kind::Integer | Kind::Decimal => canonical_number(text),
        Kind::Date if text.contains('.') => match text.strip_suffix('Z') {
            Some(rest) => Cow::Owned(format!(
                "{}Z",
                rest.trim_end_matches('0').trim_end_matches('.')
            )),
            None => text,
        },
        Kind::Date | Kind::Text | Kind::Boolean => text,
    }
}

/// Writes a number without zeros that say nothing; what is none stays as it is.
fn canonical_number(text: Cow<'_, str>) -> Cow<'_, str> {
    if !is_number(&text) {
        return text;
    }
    let (sign, unsigned) = text
        .strip_prefix('-')
        .map_or(("", text.as_ref()), |rest| ("-", rest));
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let significant = whole.trim_start_matches('0');
    let digits = fraction.trim_end_matches('0');
    // Most numbers are in their form already, but for the end of their fraction.
    if significant.len() == whole.len() || whole == "0" && !digits.is_empty() {
        let point = usize::from(!digits.is_empty());
        let end = sign.len() + whole.len() + point + digits.len();
        return match text {
            Cow::Borrowed(text) => Cow::Borrowed(&text[..end]),
            Cow::Owned(mut text) => {
                text.truncate(end);
                Cow::Owned(text)
            }
        };
    }
    let point = if digits.is_empty() { "" } else { "." };
    let zero = if significant.is_empty() { "0" } else { "" };
    let sign = if significant.is_empty() && digits.is_empty() {
        ""
    } else {
        sign
    };
    Cow::Owned(format!("{sign}{zero}{significant}{point}{digits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_dates_have_one_form() {
        for (kind, text, form) in [
            (Kind::Decimal, "087.50", "87.5"),
            (Kind::Decimal, "-0.00", "0"),
            (Kind::Decimal, "-0.50", "-0.5"),
            (Kind::Decimal, "0.50", "0.5"),
            (Kind::Decimal, "12.00", "12"),
            (Kind::Decimal, "-12.05", "-12.05"),
            (Kind::Decimal, "0.0", "0"),
            (Kind::Decimal, "87,50", "87,50"),
            (Kind::Integer, "12", "12"),
            (Kind::Integer, "100", "100"),
            (
                Kind::Date,
                "2026-05-01T06:00:00.500Z",
                "2026-05-01T06:00:00.5Z",
            ),
            (
                Kind::Date,
                "2026-05-01T06:00:00.000Z",
                "2026-05-01T06:00:00Z",
            ),
            (Kind::Date, "2026-05-01T06:00:00Z", "2026-05-01T06:00:00Z"),
            (Kind::Text, "0.50", "0.50"),
        ] {
            assert_eq!(canonical(kind, text.into()), form);
        }
    }

    #[test]
    fn sums_carry_and_wrap() {
        let mut sum = [0xff; 32];
        let mut one = [0; 32];
        one[31] = 1;
        add_numbers(&mut sum, &one);
        assert_eq!(sum, [0; 32]);
        add_numbers(&mut sum, &[0x80; 32]);
        add_numbers(&mut sum, &[0x80; 32]);
        let mut expected = [1; 32];
        expected[31] = 0;
        assert_eq!(sum, expected);
    }

    #[test]
    fn order_does_not_matter_and_duplicates_do() {
        let batch = |id: &str| {
            let text = format!(
                r#"{{"batch_id":"{id}","batch_name":"n","batch_creation_date":"2026-05-01T06:00:00Z","number_of_images":1,"warnings":true}}"#
            );
            Batch::read(&text).batch.expect("a batch")
        };
        let digest = |ids: &[&str]| {
            let mut digest = SetDigest::new(&(0..COLUMNS.len()).collect::<Vec<_>>());
            for id in ids {
                digest.add(&batch(id));
            }
            digest.finish()
        };
        assert_eq!(digest(&["a", "b", "c"]), digest(&["c", "a", "b"]));
        assert_ne!(digest(&["a", "b"]), digest(&["a", "b", "b"]));
        assert_ne!(digest(&["a", "a"]), digest(&["b", "b"]));
        assert_ne!(digest(&["a"]), digest(&["b"]));
        assert_eq!(digest(&[]).len(), 64);
    }
}
