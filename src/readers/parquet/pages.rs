//! What the pages of a file take once they are unpacked, found out before any of them is.
//!
//! A page says how long it will be, and that much is set aside for it: a few kilobytes can ask for
//! gigabytes. So the headers are read first, and by hand, for the parquet crate shows them to nobody.
//! They are structs of Thrift in its compact form.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};

use ::parquet::file::metadata::RowGroupMetaData;

use crate::ui;

/// What one page may take (DuckDB makes them of up to 100 MB), and what the pages of all columns may that
/// are held at a time.
const PAGE: u64 = 112 << 20;
const HELD: u64 = 512 << 20;
/// What a value of a dictionary takes besides its letters.
const EACH_VALUE: u64 = 40;
/// Headers do not go deeper than this.
const DEPTH: usize = 8;
/// The longest header: it may quote the smallest and the largest value.
const HEADER: u64 = 16 << 20;
/// Encodings whose lengths are unpacked all at once, however many they say there are.
const BOUNDLESS: [i64; 2] = [6, 7];

/// Why a file is not read.
#[derive(Debug)]
pub(super) enum Refused {
    Io(io::Error),
    /// It makes no sense, or is too large.
    Broken(String),
    /// It is of a kind that is not read.
    Foreign(String),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Broken("a page has no end".to_owned()),
            _ => Self::Io(error),
        }
    }
}

/// Looks at the headers of all pages of these columns of a row group.
pub(super) fn check(
    file: &File,
    group: &RowGroupMetaData,
    leaves: impl Iterator<Item = usize>,
) -> Result<(), Refused> {
    let mut held = 0;
    for leaf in leaves {
        let column = group.column(leaf);
        // Where that makes no sense, it panics.
        let Ok((start, length)) = ui::caught(|| column.byte_range()) else {
            return Err(Refused::Broken("a column is nowhere".to_owned()));
        };
        held += check_column(file, start, length)?;
        if held > HELD {
            let why = format!("its pages unpack to more than {} MiB", HELD >> 20);
            return Err(Refused::Broken(why));
        }
    }
    Ok(())
}

/// Returns what the largest page of a column takes, and its dictionary.
fn check_column(file: &File, start: u64, length: u64) -> Result<u64, Refused> {
    let mut file = BufReader::with_capacity(4096, file);
    file.seek(SeekFrom::Start(start))?;
    let (mut largest, mut dictionaries) = (0, 0);
    let mut at = 0;
    while at < length {
        let mut compact = Compact {
            bytes: (&mut file).take(HEADER),
        };
        let header = compact.header()?;
        at += HEADER - compact.bytes.limit();
        let (Ok(packed), Ok(unpacked)) =
            (u64::try_from(header.packed), u64::try_from(header.unpacked))
        else {
            return Err(Refused::Broken("a page has no size".to_owned()));
        };
        if unpacked > PAGE {
            let why = format!("a page of it unpacks to more than {} MiB", PAGE >> 20);
            return Err(Refused::Broken(why));
        }
        if BOUNDLESS.contains(&header.encoding) {
            return Err(Refused::Foreign(
                "has texts told by their differences".to_owned(),
            ));
        }
        if let Some(values) = header.dictionary {
            let values = u64::try_from(values).unwrap_or(u64::MAX);
            if values > unpacked {
                let why = "a dictionary says that it holds more than it does";
                return Err(Refused::Broken(why.to_owned()));
            }
            dictionaries += unpacked + values * EACH_VALUE;
        } else {
            largest = largest.max(unpacked);
        }
        at += packed;
        let packed = i64::try_from(packed).unwrap_or(i64::MAX);
        file.seek_relative(packed)?;
    }
    Ok(largest + dictionaries)
}

/// What a header says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Header {
    unpacked: i64,
    packed: i64,
    encoding: i64,
    /// How many values a dictionary has, where it is one.
    dictionary: Option<i64>,
}

/// Structs of Thrift in its compact form.
struct Compact<R> {
    bytes: R,
}

impl<R: Read> Compact<R> {
    fn header(&mut self) -> Result<Header, Refused> {
        let mut header = Header::default();
        self.fields(0, &mut |path, number| match path {
            [2] => header.unpacked = number,
            [3] => header.packed = number,
            [5, 2] | [8, 4] => header.encoding = number,
            [7, 1] => header.dictionary = Some(number),
            _ => {}
        })?;
        Ok(header)
    }

    /// Reads the fields of a struct, and of structs in it; hands whole numbers to `take`, with the
    /// numbers of the fields that lead there.
    fn fields(&mut self, depth: usize, take: &mut dyn FnMut(&[i16], i64)) -> Result<(), Refused> {
        self.fields_of(&mut Vec::with_capacity(DEPTH), depth, take)
    }

    fn fields_of(
        &mut self,
        path: &mut Vec<i16>,
        depth: usize,
        take: &mut dyn FnMut(&[i16], i64),
    ) -> Result<(), Refused> {
        if depth > DEPTH {
            return Err(nonsense());
        }
        let mut field: i16 = 0;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Ok(());
            }
            field = match byte >> 4 {
                0 => i16::try_from(self.number()?).map_err(|_| nonsense())?,
                more => field.checked_add(i16::from(more)).ok_or_else(nonsense)?,
            };
            path.push(field);
            self.value(byte & 0x0f, path, depth, take)?;
            path.pop();
        }
    }

    fn value(
        &mut self,
        kind: u8,
        path: &mut Vec<i16>,
        depth: usize,
        take: &mut dyn FnMut(&[i16], i64),
    ) -> Result<(), Refused> {
        match kind {
            // True and false are told by their kind.
            1 | 2 => Ok(()),
            3 => self.byte().map(drop),
            4..=6 => {
                let number = self.number()?;
                take(path, number);
                Ok(())
            }
            7 => self.skip(8),
            8 => {
                let length = self.varint()?;
                self.skip(length)
            }
            9 | 10 => {
                let byte = self.byte()?;
                let count = match byte >> 4 {
                    15 => self.varint()?,
                    few => u64::from(few),
                };
                let (mut path, mut nothing) = (Vec::new(), |_: &[i16], _: i64| {});
                for _ in 0..count {
                    match byte & 0x0f {
                        // In a list, they take a byte.
                        1 | 2 => self.byte().map(drop)?,
                        kind => self.value(kind, &mut path, depth + 1, &mut nothing)?,
                    }
                }
                Ok(())
            }
            12 => self.fields_of(path, depth + 1, take),
            _ => Err(nonsense()),
        }
    }

    fn byte(&mut self) -> Result<u8, Refused> {
        let mut byte = [0];
        self.bytes.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn varint(&mut self) -> Result<u64, Refused> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(nonsense())
    }

    /// Reads a whole number whose sign stands at its end.
    fn number(&mut self) -> Result<i64, Refused> {
        let number = self.varint()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    fn skip(&mut self, length: u64) -> Result<(), Refused> {
        let skipped = io::copy(&mut (&mut self.bytes).take(length), &mut io::sink())?;
        if skipped == length {
            Ok(())
        } else {
            Err(nonsense())
        }
    }
}

fn nonsense() -> Refused {
    Refused::Broken("the header of a page makes no sense".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(bytes: &[u8]) -> Result<Header, Refused> {
        Compact { bytes }.header()
    }

    #[test]
    fn headers_are_read_whatever_else_is_in_them() {
        // A dictionary: kind 2, 1000 bytes unpacked, 20 packed, a checksum, 7 values in plain.
        let bytes = [
            0x15, 4, 0x15, 0xd0, 0x0f, 0x15, 40, 0x15, 2, 0x3c, 0x15, 14, 0x15, 0, 0x12, 0, 0,
        ];
        let expected = Header {
            unpacked: 1000,
            packed: 20,
            encoding: 0,
            dictionary: Some(7),
        };
        assert_eq!(header(&bytes).ok(), Some(expected));
        // A page of data: 3 values told by a dictionary, with statistics: two texts, a list, a float.
        let bytes = [
            0x15, 0, 0x15, 20, 0x15, 22, 0x2c, 0x15, 6, 0x15, 16, 0x2c, 0x18, 1, b'a', 0x18, 2,
            b'b', b'c', 0x19, 0x25, 2, 4, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        let expected = Header {
            unpacked: 10,
            packed: 11,
            encoding: 8,
            dictionary: None,
        };
        assert_eq!(header(&bytes).ok(), Some(expected));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let deep = [0x1c; 100];
        let endless = [0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x0f, 2];
        let long = [0x18, 0xff, 0xff, 0xff, 0xff, 0x0f, b'a'];
        for bytes in [&deep[..], &endless, &long, &[0x15], &[0x1d, 1], &[]] {
            assert!(header(bytes).is_err(), "{bytes:?}");
        }
    }
}
