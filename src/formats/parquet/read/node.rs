//! The values that metadata consists of, and the errors for a file that is rejected.

use std::fmt::Display;

use crate::formats::record::ReadError;

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
