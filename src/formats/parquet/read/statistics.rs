//! What a file says of its values, held against the values: engines skip whole files by it.

use std::cmp::Ordering;
use std::collections::HashSet;

use ::parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use ::parquet::schema::types::ColumnDescriptor;
use xxhash_rust::xxh3::xxh3_64;

use super::filter::Filter;
use super::logical_type::whole;
use super::pages::{DataPage, Refused};
use super::thrift::Node;

/// How the values of a column are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SortOrder {
    Signed,
    Unsigned,
    Float,
    Bytes,
    /// Decimals, the highest byte first.
    Decimal,
    /// There is none that all writers share.
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

    /// Compares two values in their plain encoding; `None` if one is no such value.
    fn compare(self, one: &[u8], other: &[u8]) -> Option<Ordering> {
        match self {
            Self::Signed => Some(signed(one)?.cmp(&signed(other)?)),
            Self::Unsigned => Some(unsigned(one)?.cmp(&unsigned(other)?)),
            Self::Float => float(one)?.partial_cmp(&float(other)?),
            Self::Bytes => Some(one.cmp(other)),
            Self::Decimal => Some(whole(one)?.cmp(&whole(other)?)),
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

/// What is said of some values; each part may be absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Claimed {
    least: Option<ClaimedBound>,
    greatest: Option<ClaimedBound>,
    /// The same by fields that are out of use.
    old: [Option<Vec<u8>>; 2],
    nulls: Option<i64>,
    distinct: Option<i64>,
}

#[derive(Clone, Debug, PartialEq)]
struct ClaimedBound {
    value: Vec<u8>,
    /// Whether it is one of the values; `None` if that is not said.
    exact: Option<bool>,
}

impl Claimed {
    /// Reads a struct `Statistics` of the format.
    pub(super) fn read(node: &Node) -> Self {
        let bound = |value: i16, exact: i16| {
            let value = node.bytes(value)?.to_vec();
            let exact = node.bool(exact);
            Some(ClaimedBound { value, exact })
        };
        let old = |id: i16| node.bytes(id).map(<[u8]>::to_vec);
        Self {
            least: bound(6, 8),
            greatest: bound(5, 7),
            old: [old(2), old(1)],
            nulls: node.int(3),
            distinct: node.int(4),
        }
    }

    /// Notes how many nulls there should be, by another part of the file.
    pub(super) fn expect_nulls(&mut self, nulls: i64) -> Result<(), Refused> {
        if *self.nulls.get_or_insert(nulls) == nulls {
            Ok(())
        } else {
            Err(Refused::broken(
                "a page counts its nulls twice, differently",
            ))
        }
    }

    /// Notes bounds that may be shorter than the values.
    fn of_index(least: &[u8], greatest: &[u8], nulls: Option<i64>) -> Self {
        let bound = |value: &[u8]| {
            let value = value.to_vec();
            Some(ClaimedBound { value, exact: None })
        };
        Self {
            least: bound(least),
            greatest: bound(greatest),
            nulls,
            ..Self::default()
        }
    }

    /// Holds it against values.
    fn check(&self, order: SortOrder, found: &FoundValues) -> Result<(), String> {
        let count = |number: Option<i64>, found: u64| {
            number.is_none_or(|number| u64::try_from(number) == Ok(found))
        };
        if !count(self.nulls, found.nulls) {
            return Err("counts other nulls than there are".to_owned());
        }
        if order == SortOrder::Undefined || found.is_odd {
            return Ok(());
        }
        let bounds = [
            (&self.least, &found.least, Ordering::Less),
            (&self.greatest, &found.greatest, Ordering::Greater),
        ];
        for (bound, found, side) in bounds {
            if let Some(bound) = bound
                && !bound.holds(order, found.as_deref(), side)
            {
                return Err("has other smallest or largest values than there are".to_owned());
            }
        }
        // Texts had another order then.
        let is_number = !matches!(order, SortOrder::Bytes | SortOrder::Decimal);
        for (bound, found) in self.old.iter().zip([&found.least, &found.greatest]) {
            if let (Some(bound), Some(found), true) = (bound, found, is_number)
                && order.compare(bound, found) != Some(Ordering::Equal)
            {
                return Err("has other smallest or largest values than there are".to_owned());
            }
        }
        Ok(())
    }
}

impl ClaimedBound {
    /// Returns whether it is the bound of values, of which `found` is the one on that side.
    fn holds(&self, order: SortOrder, found: Option<&[u8]>, side: Ordering) -> bool {
        let Some(found) = found else {
            // Some writers put something there where all values are null.
            return true;
        };
        match order.compare(&self.value, found) {
            Some(Ordering::Equal) => true,
            // A long text may be cut, and the last byte of the largest one is then raised.
            Some(found_side) if order == SortOrder::Bytes && self.exact != Some(true) => {
                found_side == side && self.is_cut(found, side)
            }
            _ => false,
        }
    }

    fn is_cut(&self, found: &[u8], side: Ordering) -> bool {
        if side == Ordering::Less {
            return found.starts_with(&self.value);
        }
        let shared = self
            .value
            .iter()
            .zip(found)
            .take_while(|(one, other)| one == other);
        shared.count() + 4 >= self.value.len() && self.value.len() <= found.len()
    }
}

/// What is known of values that went by.
#[derive(Debug, Default)]
struct FoundValues {
    count: u64,
    nulls: u64,
    least: Option<Vec<u8>>,
    greatest: Option<Vec<u8>>,
    /// Some are not comparable.
    is_odd: bool,
}

impl FoundValues {
    fn add(&mut self, order: SortOrder, value: Option<&[u8]>) {
        self.count += 1;
        match value {
            None => self.nulls += 1,
            Some(value) => {
                widen(
                    &mut self.least,
                    order,
                    value,
                    Ordering::Less,
                    &mut self.is_odd,
                );
                widen(
                    &mut self.greatest,
                    order,
                    value,
                    Ordering::Greater,
                    &mut self.is_odd,
                );
            }
        }
    }

    fn merge(&mut self, order: SortOrder, other: &Self) {
        self.count += other.count;
        self.nulls += other.nulls;
        self.is_odd |= other.is_odd;
        for value in [&other.least, &other.greatest].into_iter().flatten() {
            widen(
                &mut self.least,
                order,
                value,
                Ordering::Less,
                &mut self.is_odd,
            );
            widen(
                &mut self.greatest,
                order,
                value,
                Ordering::Greater,
                &mut self.is_odd,
            );
        }
    }
}

fn widen(
    bound: &mut Option<Vec<u8>>,
    order: SortOrder,
    value: &[u8],
    side: Ordering,
    is_odd: &mut bool,
) {
    let Some(known) = bound else {
        // Compared with itself: what is no number is no bound.
        match order.compare(value, value) {
            Some(_) => *bound = Some(value.to_vec()),
            None => *is_odd |= order != SortOrder::Float,
        }
        return;
    };
    match order.compare(value, known) {
        Some(found) if found == side => {
            known.clear();
            known.extend_from_slice(value);
        }
        Some(_) => {}
        None => *is_odd |= order != SortOrder::Float,
    }
}

/// Holds the values of a column of a row group against all that is said of them.
pub(super) struct ColumnAudit {
    name: String,
    /// The level of values that are not null.
    level: i16,
    order: SortOrder,
    claimed: Claimed,
    pages: std::vec::IntoIter<DataPage>,
    /// The bounds of each page, as the column index has them.
    index: std::vec::IntoIter<Claimed>,
    page: Option<(DataPage, Option<Claimed>)>,
    in_page: FoundValues,
    all: FoundValues,
    distinct: Option<HashSet<u64>>,
    filter: Option<Filter>,
    /// Whether rows are said to be sorted by it, and how.
    sorted: Option<Sorted>,
}

/// How rows are said to be sorted by a column, and how they are.
pub(super) struct Sorted {
    descending: bool,
    nulls_first: bool,
    last: LastValue,
    steps: Vec<Ordering>,
}

/// The value before another.
enum LastValue {
    /// There was none.
    None,
    Null,
    Value(Vec<u8>),
}

impl Sorted {
    pub(super) fn new(descending: bool, nulls_first: bool) -> Self {
        Self {
            descending,
            nulls_first,
            last: LastValue::None,
            steps: Vec::new(),
        }
    }

    /// Takes the next value: `Less` if the one before it is before it in the order, too.
    fn add(&mut self, order: SortOrder, value: Option<&[u8]>) {
        let step = match (&self.last, value) {
            (LastValue::Null, None) => Ordering::Equal,
            (LastValue::Null, Some(_)) if !self.nulls_first => Ordering::Greater,
            (LastValue::Value(_), None) if self.nulls_first => Ordering::Greater,
            (LastValue::Value(last), Some(value)) => match order.compare(last, value) {
                Some(step) if self.descending => step.reverse(),
                Some(step) => step,
                // Nothing is known of values that cannot be compared.
                None => Ordering::Less,
            },
            _ => Ordering::Less,
        };
        self.steps.push(step);
        match (&mut self.last, value) {
            (LastValue::Value(last), Some(value)) => {
                last.clear();
                last.extend_from_slice(value);
            }
            (last, Some(value)) => *last = LastValue::Value(value.to_vec()),
            (last, None) => *last = LastValue::Null,
        }
    }
}

/// All that is said of a column of a row group.
pub(super) struct Claims {
    pub(super) column: Claimed,
    pub(super) pages: Vec<DataPage>,
    pub(super) index: Vec<Claimed>,
    pub(super) filter: Option<Filter>,
    pub(super) sorted: Option<Sorted>,
}

impl ColumnAudit {
    pub(super) fn new(column: &ColumnDescriptor, claims: Claims) -> Self {
        Self {
            name: column.path().string(),
            level: column.max_def_level(),
            order: SortOrder::of(column),
            distinct: claims.column.distinct.map(|_| HashSet::new()),
            claimed: claims.column,
            pages: claims.pages.into_iter(),
            index: claims.index.into_iter(),
            page: None,
            in_page: FoundValues::default(),
            all: FoundValues::default(),
            filter: claims.filter,
            sorted: claims.sorted,
        }
    }

    /// Returns the definition level of values that are not null.
    pub(super) fn level(&self) -> i16 {
        self.level
    }

    /// Takes the next value.
    pub(super) fn add(&mut self, value: Option<&[u8]>) -> Result<(), String> {
        while self
            .page
            .as_ref()
            .is_none_or(|(page, _)| page.values == self.in_page.count)
        {
            self.end_page()?;
            let Some(page) = self.pages.next() else {
                return Err(format!("`{}` has more values than its pages", self.name));
            };
            self.page = Some((page, self.index.next()));
        }
        self.in_page.add(self.order, value);
        if let Some(value) = value {
            if let Some(distinct) = &mut self.distinct {
                distinct.insert(xxh3_64(value));
            }
            if let Some(filter) = &mut self.filter {
                filter.add(value);
            }
        }
        if let Some(sorted) = &mut self.sorted {
            sorted.add(self.order, value);
        }
        Ok(())
    }

    /// Returns how each value since the last call compares to the one before; nothing if no order is claimed.
    pub(super) fn take_steps(&mut self) -> Option<Vec<Ordering>> {
        let sorted = self.sorted.as_mut()?;
        Some(std::mem::take(&mut sorted.steps))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn end_page(&mut self) -> Result<(), String> {
        if let Some((page, index)) = self.page.take() {
            let found = std::mem::take(&mut self.in_page);
            for claimed in [Some(page.claimed), index].into_iter().flatten() {
                let checked = claimed.check(self.order, &found);
                checked.map_err(|why| format!("a page of `{}` {why}", self.name))?;
            }
            self.all.merge(self.order, &found);
        }
        Ok(())
    }

    /// Ends the column, which must have `rows` values.
    pub(super) fn finish(mut self, rows: u64) -> Result<(), String> {
        self.end_page()?;
        // Pages without values say nothing.
        let is_whole = self.pages.all(|page| page.values == 0) && self.all.count == rows;
        if !is_whole {
            return Err(format!(
                "`{}` has more or fewer rows than the file says",
                self.name
            ));
        }
        let distinct = self.distinct.as_ref().map(HashSet::len);
        let is_distinct = match (self.claimed.distinct, distinct) {
            (Some(claimed), Some(found)) => usize::try_from(claimed) == Ok(found),
            _ => true,
        };
        if !is_distinct {
            return Err(format!(
                "the statistics of `{}` count other distinct values than there are",
                self.name
            ));
        }
        if let Some(Err(why)) = self.filter.as_ref().map(Filter::check) {
            return Err(format!("the Bloom filter of `{}` {why}", self.name));
        }
        let checked = self.claimed.check(self.order, &self.all);
        checked.map_err(|why| format!("the statistics of `{}`: it {why}", self.name))
    }
}

/// Reads the column index: what it says of each page.
pub(super) fn column_index(
    index: &Node,
    order: SortOrder,
    pages: &[DataPage],
) -> Result<Vec<Claimed>, Refused> {
    let wrong = || Refused::broken("the column index does not fit its pages");
    let (empty, least, greatest) = (index.list(1), index.list(2), index.list(3));
    let nulls = index.list(5);
    let fits = [empty.len(), least.len(), greatest.len()] == [pages.len(); 3]
        && (nulls.is_empty() || nulls.len() == pages.len());
    if !fits {
        return Err(wrong());
    }
    let mut claims = Vec::new();
    let mut bounds: Vec<[&[u8]; 2]> = Vec::new();
    for (place, page) in pages.iter().enumerate() {
        let count = match nulls.get(place) {
            Some(Node::Int(_, count)) => Some(*count),
            Some(_) => return Err(wrong()),
            None => None,
        };
        match (&empty[place], &least[place], &greatest[place]) {
            (Node::Bool(true), _, _) => {
                let all = i64::try_from(page.values).map_err(|_| wrong())?;
                let mut claimed = Claimed {
                    nulls: count,
                    ..Claimed::default()
                };
                claimed.expect_nulls(all).map_err(|_| wrong())?;
                claims.push(claimed);
            }
            (Node::Bool(false), Node::Bytes(least), Node::Bytes(greatest)) => {
                bounds.push([least, greatest]);
                claims.push(Claimed::of_index(least, greatest, count));
            }
            _ => return Err(wrong()),
        }
    }
    let wrong_order = match index.int(4) {
        Some(1) => Some(Ordering::Greater),
        Some(2) => Some(Ordering::Less),
        Some(0) => None,
        _ => return Err(wrong()),
    };
    let is_sorted = |pair: &[[&[u8]; 2]]| {
        (0..2).all(|side| order.compare(pair[0][side], pair[1][side]) != wrong_order)
    };
    if wrong_order.is_some() && order != SortOrder::Undefined && !bounds.windows(2).all(is_sorted) {
        return Err(Refused::broken(
            "the column index says that its pages are sorted, and they are not",
        ));
    }
    Ok(claims)
}

/// Holds the offset index against the pages.
pub(super) fn check_offset_index(index: &Node, pages: &[DataPage]) -> Result<(), Refused> {
    let locations = index.list(1);
    let mut row = 0;
    let fits = |(page, location): (&DataPage, &Node)| {
        let number = |id: i16| {
            location
                .int(id)
                .and_then(|number| u64::try_from(number).ok())
        };
        let expected = [page.offset, page.size, row].map(Some);
        row += page.values;
        [1, 2, 3].map(number) == expected
    };
    if locations.len() == pages.len() && pages.iter().zip(locations).all(fits) {
        Ok(())
    } else {
        Err(Refused::broken(
            "the offset index does not point to its pages",
        ))
    }
}
