//! Reads structs in the compact protocol of Thrift: the parquet crate exposes neither page headers nor the whole footer.

use std::io::{self, Read};

use super::layout::StructLayout;
use super::node::{Node, damaged};
use crate::formats::record::ReadError;

/// The deepest nesting.
const DEPTH: usize = 16;
/// The most values in one struct: each needs far more memory than its bytes in the file.
const NODES: usize = 4 << 20;

/// Reads the struct with this layout at the start of `bytes`.
pub(super) fn read(layout: &StructLayout, bytes: impl Read) -> Result<Node, ReadError> {
    let node = read_any(bytes)?;
    layout.check(&node)?;
    Ok(node)
}

/// Reads the struct at the start of `bytes`.
fn read_any(bytes: impl Read) -> Result<Node, ReadError> {
    let nodes = NODES;
    match (Compact { bytes, nodes }).fields(0) {
        Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(damaged("it ends too early"))
        }
        read => read,
    }
}

struct Compact<R> {
    bytes: R,
    /// How many more values are allowed.
    nodes: usize,
}

impl<R: Read> Compact<R> {
    fn fields(&mut self, depth: usize) -> Result<Node, ReadError> {
        if depth > DEPTH {
            return Err(nonsense());
        }
        let mut fields: Vec<(i16, Node)> = Vec::new();
        let mut field: i16 = 0;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Ok(Node::Struct(fields));
            }
            field = match byte >> 4 {
                0 => i16::try_from(self.number()?).map_err(|_| nonsense())?,
                more => field.checked_add(i16::from(more)).ok_or_else(nonsense)?,
            };
            // Readers disagree on duplicate fields, and on field numbers below 1.
            if field < 1 || fields.iter().any(|(known, _)| *known == field) {
                return Err(nonsense());
            }
            let node = match byte & 0x0f {
                // For booleans, the type is the value.
                1 => Node::Bool(true),
                2 => Node::Bool(false),
                kind => self.value(kind, depth)?,
            };
            fields.push((field, node));
        }
    }

    fn value(&mut self, kind: u8, depth: usize) -> Result<Node, ReadError> {
        self.nodes = self.nodes.checked_sub(1).ok_or_else(nonsense)?;
        Ok(match kind {
            3 => Node::Int(8, i64::from(self.byte()?.cast_signed())),
            4 => Node::Int(16, self.number()?),
            5 => Node::Int(32, self.number()?),
            6 => Node::Int(64, self.number()?),
            7 => {
                let mut bytes = [0; 8];
                self.bytes.read_exact(&mut bytes)?;
                Node::Double(bytes)
            }
            8 => {
                let length = self.varint()?;
                let mut bytes = Vec::new();
                let read = (&mut self.bytes).take(length).read_to_end(&mut bytes)?;
                if read as u64 != length {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
                Node::Bytes(bytes)
            }
            9 => self.elements(depth)?,
            12 => self.fields(depth + 1)?,
            _ => return Err(nonsense()),
        })
    }

    fn elements(&mut self, depth: usize) -> Result<Node, ReadError> {
        let byte = self.byte()?;
        let count = match byte >> 4 {
            15 => self.varint()?,
            few => u64::from(few),
        };
        let mut nodes = Vec::new();
        for _ in 0..count {
            nodes.push(match byte & 0x0f {
                // In a list, a boolean takes a byte.
                1 | 2 => {
                    self.nodes = self.nodes.checked_sub(1).ok_or_else(nonsense)?;
                    Node::Bool(self.byte()? == 1)
                }
                kind => self.value(kind, depth + 1)?,
            });
        }
        Ok(Node::List(nodes))
    }

    fn byte(&mut self) -> Result<u8, ReadError> {
        let mut byte = [0];
        self.bytes.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn varint(&mut self) -> Result<u64, ReadError> {
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

    /// Reads a zigzag-encoded integer.
    fn number(&mut self) -> Result<i64, ReadError> {
        let number = self.varint()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

fn nonsense() -> ReadError {
    damaged("its structure is invalid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_type_are_read() {
        // A data page: 3 values of a dictionary, with statistics: two texts, a list, a float.
        let bytes = [
            0x15, 0, 0x15, 20, 0x15, 22, 0x2c, 0x15, 6, 0x15, 16, 0x2c, 0x18, 1, b'a', 0x18, 2,
            b'b', b'c', 0x19, 0x25, 2, 4, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x12, 0, 0, 0,
        ];
        let header = read_any(&bytes[..]).expect("a header");
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
        let endless = [0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x0f, 2];
        let long = [0x18, 0xff, 0xff, 0xff, 0xff, 0x0f, b'a'];
        let twice = [0x15, 2, 0x05, 2, 2, 0];
        let set = [0x1a, 0x15, 2, 0];
        let zero = [0x01, 0, 0];
        for bytes in [
            &deep[..],
            &endless,
            &long,
            &twice,
            &set,
            &zero,
            &[0x15],
            &[0x1d, 1],
            &[],
        ] {
            assert!(read_any(bytes).is_err(), "{bytes:?}");
        }
    }
}
