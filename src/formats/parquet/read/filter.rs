//! Checks Bloom filters. Engines skip a row group if its filter lacks the value that they look for, so an incomplete
//! filter hides rows.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};

use ::parquet::bloom_filter::Sbbf;

use super::guard::MemoryBudget;
use super::layout::{self, BLOOM_FILTER};
use super::thrift::{Node, damaged, unsupported};
use crate::formats::record::ReadError;

/// The longest header; a usual one has 15 bytes.
const HEADER: u64 = 1024;
/// The size of the blocks of a filter, in bytes.
const BLOCK: u64 = 32;

/// The Bloom filter of a column of a row group.
pub(super) struct Filter {
    /// The filter in the file.
    bits: Vec<u8>,
    /// The filter of the values.
    expected: Sbbf,
    /// Whether it may have more values than the rows: some writers add all values of a dictionary.
    may_have_more: bool,
}

impl Filter {
    /// Reads the filter of the column that `chunk` describes; `None` if it has none. It must be before `end`.
    pub(super) fn read(
        mut file: &File,
        chunk: &Node,
        end: u64,
        budget: &mut MemoryBudget,
    ) -> Result<Option<Self>, ReadError> {
        let nowhere = || damaged("a Bloom filter has an invalid offset or size");
        let Some(offset) = chunk.int(14) else {
            return Ok(None);
        };
        let offset = u64::try_from(offset).ok().filter(|offset| *offset >= 4);
        let offset = offset.ok_or_else(nowhere)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut file = BufReader::new(file);
        let mut bytes = (&mut file).take(HEADER);
        let header = layout::read(BLOOM_FILTER, &mut bytes)?;
        let start = HEADER - bytes.limit();
        if ![2, 3, 4].iter().all(|id| is_known(&header, *id)) {
            return Err(unsupported("has a Bloom filter of an unknown type"));
        }
        let size = header
            .size(1)
            .filter(|size| *size > 0 && size.is_multiple_of(BLOCK));
        let size = size.ok_or_else(nowhere)?;
        let length = chunk.int(15).map(u64::try_from);
        let is_inside = offset
            .checked_add(start + size)
            .is_some_and(|last| last <= end);
        if !is_inside || length.is_some_and(|length| length != Ok(start + size)) {
            return Err(nowhere());
        }
        budget.reserve(2 * size)?;
        let mut bits = Vec::new();
        file.take(size).read_to_end(&mut bits)?;
        let expected = Sbbf::new(&vec![0; bits.len()]);
        Ok(Some(Self {
            bits,
            expected,
            may_have_more: chunk.int(11).is_some(),
        }))
    }

    /// Adds a value of the column.
    pub(super) fn add(&mut self, value: &[u8]) {
        self.expected.insert(value);
    }

    /// Compares the filter with the values.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let mut expected = Vec::new();
        let written = self.expected.write_bitset(&mut expected);
        let pairs = || self.bits.iter().zip(&expected);
        let is_as_long = written.is_ok() && self.bits.len() == expected.len();
        if !is_as_long || pairs().any(|(found, expected)| expected & !found != 0) {
            return Err("lacks a value");
        }
        if !self.may_have_more && pairs().any(|(found, expected)| found & !expected != 0) {
            return Err("has values that are in no row");
        }
        Ok(())
    }
}

/// Returns whether the union in field `id` has its first kind: split blocks, xxHash, uncompressed.
fn is_known(header: &Node, id: i16) -> bool {
    match header.field(id) {
        Some(Node::Struct(fields)) => matches!(fields[..], [(1, _)]),
        _ => false,
    }
}
