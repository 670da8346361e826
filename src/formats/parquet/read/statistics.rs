//! The statistics in a file, compared with its values: engines skip whole files because of them.

use std::cmp::Ordering;

use ::parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use ::parquet::schema::types::ColumnDescriptor;

use super::logical_type::big_endian;
use super::thrift::{Node, damaged};
use crate::formats::record::ReadError;

/// How the values of a column are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SortOrder {
    Signed,
    Unsigned,
    Float,
    Bytes,
    /// Decimals, the highest byte first.
    Decimal,
    /// Writers do not agree on an order.
    Undefined,
}

impl SortOrder {
    pub(super) fn of(column: &ColumnDescriptor) -> Self {
        let logical = column.logical_type_ref();
        let converted = column.converted_type();
        let is_decimal =
            matches!(logical, Some(LogicalType::Decimal(_))) || converted == ConvertedType::DECIMAL;
        let is_unsigned = match logical {
            Some(LogicalType::Integer(integer)) => !integer.is_signed,
            _ => matches!(
                converted,
                ConvertedType::UINT_8
                    | ConvertedType::UINT_16
                    | ConvertedType::UINT_32
                    | ConvertedType::UINT_64
            ),
        };
        let is_plain = match logical {
            None => converted != ConvertedType::INTERVAL,
            Some(logical) => matches!(
                logical,
                LogicalType::String
                    | LogicalType::Enum
                    | LogicalType::Json
                    | LogicalType::Bson
                    | LogicalType::Uuid
            ),
        };
        match column.physical_type() {
            Physical::INT32 | Physical::INT64 if is_unsigned => Self::Unsigned,
            Physical::INT32 | Physical::INT64 => Self::Signed,
            Physical::BOOLEAN => Self::Unsigned,
            Physical::FLOAT | Physical::DOUBLE => Self::Float,
            Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY if is_decimal => Self::Decimal,
            Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY if is_plain => Self::Bytes,
            _ => Self::Undefined,
        }
    }

    /// Compares two values in their plain encoding; `None` if one is invalid.
    pub(super) fn compare(self, one: &[u8], other: &[u8]) -> Option<Ordering> {
        match self {
            Self::Signed => Some(signed(one)?.cmp(&signed(other)?)),
            Self::Unsigned => Some(unsigned(one)?.cmp(&unsigned(other)?)),
            Self::Float => float(one)?.partial_cmp(&float(other)?),
            Self::Bytes => Some(one.cmp(other)),
            Self::Decimal => Some(big_endian(one)?.cmp(&big_endian(other)?)),
            Self::Undefined => None,
        }
    }
}

fn signed(bytes: &[u8]) -> Option<i64> {
    match bytes.len() {
        4 => Some(i64::from(i32::from_le_bytes(bytes.try_into().ok()?))),
        _ => Some(i64::from_le_bytes(bytes.try_into().ok()?)),
    }
}

fn unsigned(bytes: &[u8]) -> Option<u64> {
    match bytes.len() {
        1 => Some(u64::from(bytes[0])),
        4 => Some(u64::from(u32::from_le_bytes(bytes.try_into().ok()?))),
        _ => Some(u64::from_le_bytes(bytes.try_into().ok()?)),
    }
}

fn float(bytes: &[u8]) -> Option<f64> {
    let number = match bytes.len() {
        4 => f64::from(f32::from_le_bytes(bytes.try_into().ok()?)),
        _ => f64::from_le_bytes(bytes.try_into().ok()?),
    };
    (!number.is_nan()).then_some(number)
}

/// On which side of the values their two bounds are: the smallest, and the largest one.
const SIDES: [Ordering; 2] = [Ordering::Less, Ordering::Greater];

/// The statistics of some values; each part may be absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Claimed {
    /// The bounds, and whether each is one of the values.
    bounds: [Option<(Vec<u8>, bool)>; 2],
    /// The bounds in deprecated fields.
    old: [Option<Vec<u8>>; 2],
    nulls: Option<i64>,
    pub(super) distinct: Option<i64>,
}

impl Claimed {
    /// Reads a struct `Statistics` of the format.
    pub(super) fn read(node: &Node) -> Self {
        let bound = |value: i16, exact: i16| {
            let is_exact = node.bool(exact).unwrap_or_default();
            Some((node.bytes(value)?.to_vec(), is_exact))
        };
        let old = |id: i16| node.bytes(id).map(<[u8]>::to_vec);
        Self {
            bounds: [bound(6, 8), bound(5, 7)],
            old: [old(2), old(1)],
            nulls: node.int(3),
            distinct: node.int(4),
        }
    }

    /// Adds the number of nulls according to another part of the file.
    pub(super) fn expect_nulls(&mut self, nulls: i64) -> Result<(), ReadError> {
        if *self.nulls.get_or_insert(nulls) == nulls {
            Ok(())
        } else {
            Err(damaged("a page has two different numbers of nulls"))
        }
    }

    /// Returns the statistics of a page in a column index, whose bounds may be shorter than the values. Without
    /// values, there are no bounds.
    pub(super) fn of_index(bounds: Option<[&[u8]; 2]>, nulls: Option<i64>) -> Self {
        let bounds = bounds.map(|bounds| bounds.map(|value| Some((value.to_vec(), false))));
        Self {
            bounds: bounds.unwrap_or_default(),
            nulls,
            ..Self::default()
        }
    }

    /// Compares the statistics with values; the error follows "has the".
    pub(super) fn check(&self, order: SortOrder, found: &FoundValues) -> Result<(), String> {
        let count = |number: Option<i64>, found: u64| {
            number.is_none_or(|number| u64::try_from(number) == Ok(found))
        };
        if !count(self.nulls, found.nulls) {
            return Err("wrong number of nulls".to_owned());
        }
        if order == SortOrder::Undefined || found.is_incomparable {
            return Ok(());
        }
        for (place, side) in SIDES.into_iter().enumerate() {
            // Some writers write a bound even if all values are null.
            let Some(found) = &found.bounds[place] else {
                continue;
            };
            // Some engines use deprecated bounds, also of texts, although writers did not agree on their order.
            let is_old_valid = |bound: &Vec<u8>| {
                order.compare(bound, found) == Some(Ordering::Equal)
                    || order == SortOrder::Bytes && found.starts_with(bound)
            };
            let is_valid = |(bound, is_exact): &(Vec<u8>, bool)| match order.compare(bound, found) {
                Some(Ordering::Equal) => true,
                Some(found_side) if order == SortOrder::Bytes && !is_exact => {
                    found_side == side && is_cut(bound, found, side)
                }
                _ => false,
            };
            if !self.bounds[place].as_ref().is_none_or(is_valid)
                || !self.old[place].as_ref().is_none_or(is_old_valid)
            {
                return Err("wrong smallest or largest value".to_owned());
            }
        }
        Ok(())
    }
}

/// Returns whether `bound` is `found`, truncated: in an upper bound, the last byte is then incremented.
fn is_cut(bound: &[u8], found: &[u8], side: Ordering) -> bool {
    if side == Ordering::Less {
        return found.starts_with(bound);
    }
    let pairs = bound.iter().zip(found);
    let shared = pairs.take_while(|(one, other)| one == other);
    shared.count() + 4 >= bound.len() && bound.len() <= found.len()
}

/// The actual statistics of values.
#[derive(Debug, Default)]
pub(super) struct FoundValues {
    pub(super) count: u64,
    nulls: u64,
    /// The smallest value, and the largest one.
    bounds: [Option<Vec<u8>>; 2],
    /// Whether some values cannot be compared.
    is_incomparable: bool,
}

impl FoundValues {
    pub(super) fn add(&mut self, order: SortOrder, value: Option<&[u8]>) {
        self.count += 1;
        match value {
            None => self.nulls += 1,
            Some(value) => self.widen(order, value),
        }
    }

    pub(super) fn merge(&mut self, order: SortOrder, other: &Self) {
        self.count += other.count;
        self.nulls += other.nulls;
        self.is_incomparable |= other.is_incomparable;
        for value in other.bounds.iter().flatten() {
            self.widen(order, value);
        }
    }

    /// Extends the bounds to include `value`.
    fn widen(&mut self, order: SortOrder, value: &[u8]) {
        for (bound, side) in self.bounds.iter_mut().zip(SIDES) {
            // At first compared with itself: NaN is not a bound.
            let found = match bound {
                Some(known) => order.compare(value, known),
                None => order.compare(value, value).map(|_| side),
            };
            if found.is_none() {
                self.is_incomparable |= order != SortOrder::Float;
            } else if found == Some(side) {
                let known = bound.get_or_insert_default();
                known.clear();
                known.extend_from_slice(value);
            }
        }
    }
}
