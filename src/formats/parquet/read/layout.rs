//! The structs of the format: their fields and types. Other readers refuse a file in which a field has the wrong
//! type, or ignore the field; the parquet crate does not check.

use std::io::Read;
use std::ops::RangeInclusive;

use super::thrift::{self, Node, damaged};
use crate::formats::record::ReadError;

/// The type of a field.
#[derive(Clone, Copy)]
pub(super) enum Type {
    Bool,
    Byte,
    I16,
    I32,
    I64,
    /// One of these numbers.
    Enum(&'static [RangeInclusive<i64>]),
    Bytes,
    List(&'static Type),
    Struct(Fields),
}

/// The fields of a struct: their numbers, type, and whether they are required. Unknown fields are ignored.
pub(super) type Fields = &'static [(RangeInclusive<i16>, Type, bool)];

use Type::{Bool, Byte, Bytes, Enum, I16, I32, I64, List, Struct};

const REQUIRED: bool = true;
const OPTIONAL: bool = false;

const EMPTY: Fields = &[];

// Other readers refuse a file with any other number.
const PHYSICAL_TYPE: Type = Enum(&[0..=7]);
const REPETITION: Type = Enum(&[0..=2]);
const CONVERTED_TYPE: Type = Enum(&[0..=21]);
const ENCODING: Type = Enum(&[0..=0, 2..=9]);
const CODEC: Type = Enum(&[0..=7]);
const PAGE_TYPE: Type = Enum(&[0..=3]);
const BOUNDARY_ORDER: Type = Enum(&[0..=2]);

pub(super) const FOOTER: Fields = &[
    (1..=1, I32, REQUIRED),
    (2..=2, List(&Struct(SCHEMA_ELEMENT)), REQUIRED),
    (3..=3, I64, REQUIRED),
    (4..=4, List(&Struct(ROW_GROUP)), REQUIRED),
    (5..=5, List(&Struct(KEY_VALUE)), OPTIONAL),
    (6..=6, Bytes, OPTIONAL),
    (7..=7, List(&Struct(COLUMN_ORDER)), OPTIONAL),
];

const SCHEMA_ELEMENT: Fields = &[
    (1..=1, PHYSICAL_TYPE, OPTIONAL),
    (2..=2, I32, OPTIONAL),
    (3..=3, REPETITION, OPTIONAL),
    (4..=4, Bytes, REQUIRED),
    (5..=5, I32, OPTIONAL),
    (6..=6, CONVERTED_TYPE, OPTIONAL),
    (7..=9, I32, OPTIONAL),
    (10..=10, Struct(LOGICAL_TYPE), OPTIONAL),
];

const LOGICAL_TYPE: Fields = &[
    (1..=4, Struct(EMPTY), OPTIONAL),
    (5..=5, Struct(DECIMAL), OPTIONAL),
    (6..=6, Struct(EMPTY), OPTIONAL),
    (7..=8, Struct(TIME), OPTIONAL),
    (10..=10, Struct(INTEGER), OPTIONAL),
    (11..=15, Struct(EMPTY), OPTIONAL),
];

const DECIMAL: Fields = &[(1..=2, I32, REQUIRED)];
const TIME: Fields = &[
    (1..=1, Bool, REQUIRED),
    (2..=2, Struct(TIME_UNIT), REQUIRED),
];
const TIME_UNIT: Fields = &[(1..=3, Struct(EMPTY), OPTIONAL)];
const INTEGER: Fields = &[(1..=1, Byte, REQUIRED), (2..=2, Bool, REQUIRED)];

const ROW_GROUP: Fields = &[
    (1..=1, List(&Struct(COLUMN_CHUNK)), REQUIRED),
    (2..=3, I64, REQUIRED),
    (4..=4, List(&Struct(SORTING_COLUMN)), OPTIONAL),
    (5..=6, I64, OPTIONAL),
    (7..=7, I16, OPTIONAL),
];

const SORTING_COLUMN: Fields = &[(1..=1, I32, REQUIRED), (2..=3, Bool, REQUIRED)];

const COLUMN_CHUNK: Fields = &[
    (1..=1, Bytes, OPTIONAL),
    (2..=2, I64, REQUIRED),
    (3..=3, Struct(COLUMN), OPTIONAL),
    (4..=4, I64, OPTIONAL),
    (5..=5, I32, OPTIONAL),
    (6..=6, I64, OPTIONAL),
    (7..=7, I32, OPTIONAL),
];

const COLUMN: Fields = &[
    (1..=1, PHYSICAL_TYPE, REQUIRED),
    (2..=2, List(&ENCODING), REQUIRED),
    (3..=3, List(&Bytes), REQUIRED),
    (4..=4, CODEC, REQUIRED),
    (5..=7, I64, REQUIRED),
    (8..=8, List(&Struct(KEY_VALUE)), OPTIONAL),
    (9..=9, I64, REQUIRED),
    (10..=11, I64, OPTIONAL),
    (12..=12, Struct(STATISTICS), OPTIONAL),
    (13..=13, List(&Struct(PAGE_ENCODING)), OPTIONAL),
    (14..=14, I64, OPTIONAL),
    (15..=15, I32, OPTIONAL),
    (16..=16, Struct(SIZES), OPTIONAL),
];

const STATISTICS: Fields = &[
    (1..=2, Bytes, OPTIONAL),
    (3..=4, I64, OPTIONAL),
    (5..=6, Bytes, OPTIONAL),
    (7..=8, Bool, OPTIONAL),
];

const PAGE_ENCODING: Fields = &[
    (1..=1, PAGE_TYPE, REQUIRED),
    (2..=2, ENCODING, REQUIRED),
    (3..=3, I32, REQUIRED),
];
const SIZES: Fields = &[(1..=1, I64, OPTIONAL), (2..=3, List(&I64), OPTIONAL)];
const KEY_VALUE: Fields = &[(1..=1, Bytes, REQUIRED), (2..=2, Bytes, OPTIONAL)];
const COLUMN_ORDER: Fields = &[(1..=1, Struct(EMPTY), OPTIONAL)];

pub(super) const PAGE_HEADER: Fields = &[
    (1..=1, PAGE_TYPE, REQUIRED),
    (2..=3, I32, REQUIRED),
    (4..=4, I32, OPTIONAL),
    (5..=5, Struct(DATA_PAGE), OPTIONAL),
    (7..=7, Struct(DICTIONARY_PAGE), OPTIONAL),
    (8..=8, Struct(DATA_PAGE_V2), OPTIONAL),
];

const DATA_PAGE: Fields = &[
    (1..=1, I32, REQUIRED),
    (2..=4, ENCODING, REQUIRED),
    (5..=5, Struct(STATISTICS), OPTIONAL),
];

const DICTIONARY_PAGE: Fields = &[
    (1..=1, I32, REQUIRED),
    (2..=2, ENCODING, REQUIRED),
    (3..=3, Bool, OPTIONAL),
];

const DATA_PAGE_V2: Fields = &[
    (1..=3, I32, REQUIRED),
    (4..=4, ENCODING, REQUIRED),
    (5..=6, I32, REQUIRED),
    (7..=7, Bool, OPTIONAL),
    (8..=8, Struct(STATISTICS), OPTIONAL),
];

pub(super) const OFFSET_INDEX: Fields = &[
    (1..=1, List(&Struct(PAGE_LOCATION)), REQUIRED),
    (2..=2, List(&I64), OPTIONAL),
];

const PAGE_LOCATION: Fields = &[
    (1..=1, I64, REQUIRED),
    (2..=2, I32, REQUIRED),
    (3..=3, I64, REQUIRED),
];

pub(super) const COLUMN_INDEX: Fields = &[
    (1..=1, List(&Bool), REQUIRED),
    (2..=3, List(&Bytes), REQUIRED),
    (4..=4, BOUNDARY_ORDER, REQUIRED),
    (5..=7, List(&I64), OPTIONAL),
];

pub(super) const BLOOM_FILTER: Fields = &[(1..=1, I32, REQUIRED), (2..=4, Struct(EMPTY), REQUIRED)];

/// Reads the struct with these fields at the start of `bytes`.
pub(super) fn read(fields: Fields, bytes: impl Read) -> Result<Node, ReadError> {
    let node = thrift::read(bytes).map_err(|error| match error.raw_os_error() {
        Some(_) => error.into(),
        None => damaged("its structure is invalid, or ends too early"),
    })?;
    let wrong =
        || damaged("a field of its metadata has the wrong type or an unknown value, or is missing");
    Struct(fields).fits(&node).then_some(node).ok_or_else(wrong)
}

impl Type {
    fn fits(&self, node: &Node) -> bool {
        match (self, node) {
            (Bool, Node::Bool(_))
            | (Bytes, Node::Bytes(_))
            | (Byte, Node::Int(8, _))
            | (I16, Node::Int(16, _))
            | (I32, Node::Int(32, _))
            | (I64, Node::Int(64, _)) => true,
            (Enum(numbers), Node::Int(32, number)) => {
                numbers.iter().any(|numbers| numbers.contains(number))
            }
            (List(kind), Node::List(nodes)) => nodes.iter().all(|node| kind.fits(node)),
            (Struct(fields), Node::Struct(_)) => fields.iter().all(|(ids, kind, required)| {
                let field = |id| node.field(id).map_or(!required, |node| kind.fits(node));
                ids.clone().all(field)
            }),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_their_types() {
        let pair = |one: Node, other: Node| Node::Struct(vec![(1, one), (2, other)]);
        let number = |bits: u8| Node::Int(bits, 2);
        let encoding = |page: i64, encoding: i64| {
            let numbers = [page, encoding, 1].map(|number| Node::Int(32, number));
            Node::Struct((1..).zip(numbers).collect())
        };
        let list = Node::Struct(vec![(1, Node::List(vec![pair(number(64), number(32))]))]);
        for (fields, node, expected) in [
            (DECIMAL, pair(number(32), number(32)), true),
            (DECIMAL, pair(number(32), number(64)), false),
            (DECIMAL, Node::Struct(vec![(1, number(32))]), false),
            (DECIMAL, number(32), false),
            (EMPTY, pair(number(32), number(8)), true),
            (OFFSET_INDEX, list, false),
            (PAGE_ENCODING, encoding(3, 9), true),
            (PAGE_ENCODING, encoding(4, 9), false),
            (PAGE_ENCODING, encoding(3, 10), false),
            (PAGE_ENCODING, encoding(3, 1), false),
            (PAGE_ENCODING, encoding(-1, 9), false),
        ] {
            assert_eq!(Struct(fields).fits(&node), expected, "{node:?}");
        }
    }
}
