//! Reads structs in the compact protocol of Thrift: the parquet crate exposes neither page headers nor the whole footer.
//! Also the errors for a file that is rejected.

use std::fmt::Display;
use std::io::{self, ErrorKind, Read};

use crate::formats::record::ReadError;

/// The deepest nesting.
const DEPTH: usize = 16;
/// The most values in all: each needs far more memory than its bytes in the file.
const NODES: usize = 4 << 20;
/// The most fields of one struct: they are searched one by one.
const FIELDS: usize = 64;

/// A Thrift value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Bool(bool),
    /// The width of the type in bits, and the number.
    Int(u8, i64),
    Double,
    Bytes(Vec<u8>),
    List(Vec<Node>),
    /// Fields by their numbers.
    Struct(Vec<(i16, Node)>),
}

impl Node {
    pub(super) fn field(&self, id: i16) -> Option<&Self> {
        match self {
            Self::Struct(fields) => fields
                .iter()
                .find(|(field, _)| *field == id)
                .map(|(_, node)| node),
            _ => None,
        }
    }

    /// Returns a number that is not negative.
    pub(super) fn size(&self, id: i16) -> Option<u64> {
        self.int(id).and_then(|size| size.try_into().ok())
    }

    pub(super) fn int(&self, id: i16) -> Option<i64> {
        match self.field(id)? {
            Self::Int(_, number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn bool(&self, id: i16) -> Option<bool> {
        match self.field(id)? {
            Self::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    pub(super) fn bytes(&self, id: i16) -> Option<&[u8]> {
        match self.field(id)? {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the elements of a list; empty if it is absent.
    pub(super) fn list(&self, id: i16) -> &[Self] {
        match self.field(id) {
            Some(Self::List(nodes)) => nodes,
            _ => &[],
        }
    }
}

/// Returns the error for a file that is invalid, or too large.
pub(super) fn damaged(why: impl Display) -> ReadError {
    broken(format!("it is damaged or cut short: {why}"))
}

/// Returns the error for a file that uses a feature that is not supported.
pub(super) fn unsupported(why: &str) -> ReadError {
    ReadError::foreign(
        format!("is a Parquet file that {why}, which is not supported"),
        "write it again with the defaults of pyarrow, DuckDB or Spark",
    )
}

pub(super) fn broken(why: String) -> ReadError {
    ReadError::broken(None, why, "copy or export it again")
}

/// Reads the struct at the start of `bytes`.
pub(super) fn read(bytes: impl Read) -> io::Result<Node> {
    let nodes = NODES;
    (Compact { bytes, nodes }).fields(0)
}

/// Reads a number in pieces of seven bits.
pub(super) fn varint(mut bytes: impl Read) -> io::Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        bytes.read_exact(&mut byte)?;
        number |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(ErrorKind::InvalidData.into())
}

/// Reads a number whose lowest bit is its sign.
pub(super) fn signed(bytes: impl Read) -> io::Result<i64> {
    let number = varint(bytes)?;
    Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}

struct Compact<R> {
    bytes: R,
    /// How many more values are allowed.
    nodes: usize,
}

impl<R: Read> Compact<R> {
    fn fields(&mut self, depth: usize) -> io::Result<Node> {
        let mut fields: Vec<(i16, Node)> = Vec::new();
        let mut field: i16 = 0;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Ok(Node::Struct(fields));
            }
            let next = match byte >> 4 {
                0 => i16::try_from(signed(&mut self.bytes)?).ok(),
                more => field.checked_add(i16::from(more)),
            };
            // Readers disagree on duplicate fields, and on field numbers below 1.
            let is_new = |next: &i16| *next > 0 && fields.iter().all(|(known, _)| known != next);
            field = next.filter(is_new).ok_or(ErrorKind::InvalidData)?;
            if fields.len() == FIELDS {
                return Err(ErrorKind::InvalidData.into());
            }
            let node = match byte & 0x0f {
                // For booleans, the type is the value.
                kind @ (1 | 2) => {
                    self.take_node(depth)?;
                    Node::Bool(kind == 1)
                }
                kind => self.value(kind, depth)?,
            };
            fields.push((field, node));
        }
    }

    fn take_node(&mut self, depth: usize) -> io::Result<()> {
        let nodes = self.nodes.checked_sub(1).filter(|_| depth <= DEPTH);
        self.nodes = nodes.ok_or(ErrorKind::InvalidData)?;
        Ok(())
    }

    fn value(&mut self, kind: u8, depth: usize) -> io::Result<Node> {
        self.take_node(depth)?;
        Ok(match kind {
            // In a list, a boolean takes a byte.
            1 | 2 => Node::Bool(self.byte()? == 1),
            3 => Node::Int(8, i64::from(self.byte()?.cast_signed())),
            4 => Node::Int(16, signed(&mut self.bytes)?),
            5 => Node::Int(32, signed(&mut self.bytes)?),
            6 => Node::Int(64, signed(&mut self.bytes)?),
            7 => {
                self.bytes.read_exact(&mut [0; 8])?;
                Node::Double
            }
            8 => {
                let length = varint(&mut self.bytes)?;
                let mut bytes = Vec::new();
                let read = (&mut self.bytes).take(length).read_to_end(&mut bytes)?;
                if read as u64 != length {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                Node::Bytes(bytes)
            }
            9 => {
                let byte = self.byte()?;
                let count = match byte >> 4 {
                    15 => varint(&mut self.bytes)?,
                    few => u64::from(few),
                };
                let nodes = (0..count).map(|_| self.value(byte & 0x0f, depth + 1));
                Node::List(nodes.collect::<io::Result<_>>()?)
            }
            12 => self.fields(depth + 1)?,
            _ => return Err(ErrorKind::InvalidData.into()),
        })
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.bytes.read_exact(&mut byte)?;
        Ok(byte[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_have_few_fields() {
        // Each field is a boolean, whose number is one higher than the one before.
        let fields = |count: usize| [vec![0x11; count], vec![0]].concat();
        assert!(read(&fields(FIELDS)[..]).is_ok());
        assert!(read(&fields(FIELDS + 1)[..]).is_err());
    }

    #[test]
    fn values_of_every_type_are_read() {
        // A data page: 3 values of a dictionary, with statistics: two texts, a list, a float.
        let bytes = [
            0x15, 0, 0x15, 20, 0x15, 22, 0x2c, 0x15, 6, 0x15, 16, 0x2c, 0x18, 1, b'a', 0x18, 2,
            b'b', b'c', 0x19, 0x25, 2, 4, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x12, 0, 0, 0,
        ];
        let header = read(&bytes[..]).expect("a header");
        assert_eq!((header.int(2), header.int(3)), (Some(10), Some(11)));
        let page = header.field(5).expect("a page");
        assert_eq!((page.int(1), page.int(2)), (Some(3), Some(8)));
        let statistics = page.field(4).expect("statistics");
        assert_eq!(statistics.bytes(1), Some(&b"a"[..]));
        assert_eq!(statistics.bytes(2), Some(&b"bc"[..]));
        assert_eq!(statistics.list(3), [Node::Int(32, 1), Node::Int(32, 2)]);
        assert_eq!(
            (statistics.bool(5), statistics.bool(6)),
            (Some(true), Some(false))
        );
        assert_eq!(statistics.int(1), None);
    }

    #[test]
    fn invalid_structs_are_refused() {
        let deep = [0x1c; 100];
        let deep_list = vec![0x19; 1 << 20];
        let endless = [0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x0f, 2];
        let long = [0x18, 0xff, 0xff, 0xff, 0xff, 0x0f, b'a'];
        let twice = [0x15, 2, 0x05, 2, 2, 0];
        let set = [0x1a, 0x15, 2, 0];
        let zero = [0x01, 0, 0];
        for bytes in [
            &deep[..],
            &deep_list,
            &endless,
            &long,
            &twice,
            &set,
            &zero,
            &[0x15],
            &[0x1d, 1],
            &[],
        ] {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
    }
}
