//! The values that metadata consists of, and the reasons to reject a file.

use std::io;

/// Why a file is rejected.
#[derive(Debug)]
pub(super) enum Refused {
    Io(io::Error),
    /// The file is invalid, or too large.
    Broken(String),
    /// The file uses a feature that is not supported.
    Foreign(String),
}

impl Refused {
    pub(super) fn broken(why: impl Into<String>) -> Self {
        Self::Broken(why.into())
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::broken("it ends too early"),
            _ => Self::Io(error),
        }
    }
}

/// A Thrift value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Bool(bool),
    /// The width of the type in bits, and the number.
    Int(u8, i64),
    Double([u8; 8]),
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
