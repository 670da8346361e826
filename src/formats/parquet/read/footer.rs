//! Reads the footer of a file, and checks that it is true and consistent.
//!
//! The parquet crate ignores much of it that other readers rely on.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};

use ::parquet::basic::Type as Physical;
use ::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use super::audit::Sorted;
use super::filter::Filter;
use super::guard::MemoryBudget;
use super::index::{check_offset_index, column_index};
use super::layout::{self, StructLayout};
use super::node::{Node, Refused};
use super::pages::DataPage;
use super::statistics::{Claimed, SortOrder};
use super::thrift;

/// The longest footer: it needs many times its size in memory.
const FOOTER: u32 = 16 << 20;
/// The longest index of the pages of one column.
const INDEX: i64 = 16 << 20;

/// A footer.
pub(super) struct Footer {
    root: Node,
    /// Its offset: all data are before it.
    pub(super) start: u64,
}

impl Footer {
    /// Reads the end of a file; `None` if it is too short to have one.
    pub(super) fn read(mut file: &File) -> Result<Option<Self>, Refused> {
        let mut end = [0; 8];
        let Ok(length) = file.seek(SeekFrom::End(-8)) else {
            return Ok(None);
        };
        file.read_exact(&mut end)?;
        let size = u32::from_le_bytes([end[0], end[1], end[2], end[3]]);
        if size > FOOTER {
            let why = format!("its footer is larger than {} MiB", FOOTER >> 20);
            return Err(Refused::Broken(why));
        }
        if end[4..] == *b"PARE" {
            return Err(encrypted());
        }
        let Some(start) = length
            .checked_sub(u64::from(size))
            .filter(|_| end[4..] == *b"PAR1")
        else {
            return Ok(None);
        };
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = BufReader::new(file.take(size.into()));
        let root = thrift::read(&layout::FOOTER, &mut bytes)?;
        if bytes.fill_buf().is_ok_and(|rest| !rest.is_empty()) && root.field(8).is_none() {
            return Err(Refused::broken(
                "its footer is shorter than its declared size",
            ));
        }
        file.rewind()?;
        Ok(Some(Self { root, start }))
    }

    fn group(&self, group: usize) -> Option<&Node> {
        self.root.list(4).get(group)
    }

    fn chunk(&self, group: usize, leaf: usize) -> Option<&Node> {
        self.group(group)?.list(1).get(leaf)
    }

    /// Checks everything that does not need the data.
    pub(super) fn check(&self, schema: &SchemaDescriptor) -> Result<(), Refused> {
        if self.root.field(8).is_some() {
            return Err(encrypted());
        }
        check_decimals(self.root.list(2))?;
        let groups = self.root.list(4);
        let mut rows: i64 = 0;
        for (place, group) in groups.iter().enumerate() {
            let count = group.int(3).filter(|rows| *rows >= 0);
            let sum = count.and_then(|count| rows.checked_add(count));
            rows = sum.ok_or_else(|| Refused::broken("a row group has no number of rows"))?;
            let ordinal = group.int(7);
            if ordinal.is_some_and(|ordinal| usize::try_from(ordinal) != Ok(place)) {
                return Err(Refused::broken("its row groups are out of order"));
            }
            check_group(group, schema)?;
        }
        if self.root.int(3) != Some(rows) {
            return Err(Refused::broken(
                "it has more or fewer rows than its footer says",
            ));
        }
        Ok(())
    }

    /// Returns the number of rows of a group.
    pub(super) fn rows(&self, group: usize) -> u64 {
        let rows = self.group(group).and_then(|group| group.int(3));
        rows.and_then(|rows| u64::try_from(rows).ok())
            .unwrap_or_default()
    }

    /// Returns the statistics of a column.
    pub(super) fn claimed(&self, group: usize, leaf: usize) -> Claimed {
        let chunk = self.chunk(group, leaf).and_then(|chunk| chunk.field(3));
        let statistics = chunk.and_then(|chunk| chunk.field(12));
        statistics.map(Claimed::read).unwrap_or_default()
    }

    /// Reads the Bloom filter of a column; `None` if it has none.
    pub(super) fn filter(
        &self,
        file: &File,
        (group, leaf): (usize, usize),
        budget: &mut MemoryBudget,
    ) -> Result<Option<Filter>, Refused> {
        let chunk = self.chunk(group, leaf).and_then(|chunk| chunk.field(3));
        let filter = chunk.map(|chunk| Filter::read(file, chunk, self.start, budget));
        filter.transpose().map(Option::flatten)
    }

    /// Returns the declared sort order of the rows of a group.
    pub(super) fn sorted_by(&self, group: usize) -> Vec<(usize, Sorted)> {
        let keys = self.group(group).map_or(&[][..], |group| group.list(4));
        let mut sorted_by: Vec<(usize, Sorted)> = Vec::new();
        for key in keys {
            let leaf = key.int(1).and_then(|leaf| usize::try_from(leaf).ok());
            // A repeated column adds nothing.
            let leaf = leaf.filter(|leaf| sorted_by.iter().all(|(known, _)| known != leaf));
            let descending = key.bool(2).unwrap_or_default();
            let nulls_first = key.bool(3).unwrap_or_default();
            sorted_by.extend(leaf.map(|leaf| (leaf, Sorted::new(descending, nulls_first))));
        }
        sorted_by
    }

    /// Reads the indexes of a column; returns the statistics of each page.
    pub(super) fn indexes(
        &self,
        file: &File,
        (group, leaf): (usize, usize),
        column: &ColumnDescriptor,
        pages: &[DataPage],
    ) -> Result<Vec<Claimed>, Refused> {
        let Some(chunk) = self.chunk(group, leaf) else {
            return Ok(Vec::new());
        };
        let is_flat = column.max_rep_level() == 0;
        if let Some(index) = self.index(file, chunk, 4, &layout::OFFSET_INDEX)?
            && is_flat
        {
            check_offset_index(&index, pages)?;
        }
        match self.index(file, chunk, 6, &layout::COLUMN_INDEX)? {
            Some(index) if is_flat => column_index(&index, SortOrder::of(column), pages),
            _ => Ok(Vec::new()),
        }
    }

    /// Reads the index whose offset and length are in the fields `id` and `id + 1`.
    fn index(
        &self,
        mut file: &File,
        chunk: &Node,
        id: i16,
        layout: &StructLayout,
    ) -> Result<Option<Node>, Refused> {
        let (offset, length) = match (chunk.int(id), chunk.int(id + 1)) {
            (None, None) => return Ok(None),
            (Some(offset), Some(length @ 0..=INDEX)) => (u64::try_from(offset).ok(), length),
            _ => (None, 0),
        };
        let length = length.unsigned_abs();
        let inside = |offset: &u64| {
            offset
                .checked_add(length)
                .is_some_and(|end| end <= self.start)
        };
        let Some(offset) = offset.filter(inside) else {
            return Err(Refused::broken("a page index has an invalid offset"));
        };
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = BufReader::new(file.take(length));
        let index = thrift::read(layout, &mut bytes)?;
        if bytes.fill_buf()?.is_empty() {
            Ok(Some(index))
        } else {
            Err(Refused::broken(
                "a page index is shorter than its declared size",
            ))
        }
    }
}

/// Checks that decimals are described alike for older readers.
fn check_decimals(schema: &[Node]) -> Result<(), Refused> {
    /// The number of the type in the old list.
    const DECIMAL: i64 = 5;
    for column in schema {
        let Some(decimal) = column.field(10).and_then(|logical| logical.field(5)) else {
            continue;
        };
        // Without it, they would read the digits as a whole number.
        let is_same = column.int(6) == Some(DECIMAL)
            && column.int(7).unwrap_or(0) == decimal.int(1).unwrap_or(0);
        if !is_same {
            return Err(Refused::broken(
                "older readers do not see its decimals as such",
            ));
        }
    }
    Ok(())
}

fn check_group(group: &Node, schema: &SchemaDescriptor) -> Result<(), Refused> {
    let chunks = group.list(1);
    if chunks.len() != schema.num_columns() {
        return Err(Refused::broken(
            "the columns of a row group differ from those of the file",
        ));
    }
    let (mut packed, mut unpacked) = (0_i64, 0_i64);
    for (chunk, column) in chunks.iter().zip(schema.columns()) {
        if chunk.field(1).is_some() {
            return Err(Refused::Foreign("keeps its data in other files".to_owned()));
        }
        if chunk.field(8).is_some() || chunk.field(9).is_some() {
            return Err(encrypted());
        }
        let Some(chunk) = chunk.field(3) else {
            return Err(Refused::broken("a column is not described"));
        };
        check_chunk(chunk, group, column)?;
        unpacked = unpacked.saturating_add(chunk.int(6).unwrap_or_default());
        packed = packed.saturating_add(chunk.int(7).unwrap_or_default());
    }
    let is_as_large =
        group.int(2) == Some(unpacked) && group.int(6).is_none_or(|size| size == packed);
    if !is_as_large {
        return Err(Refused::broken(
            "the size of a row group differs from that of its columns",
        ));
    }
    let count = chunks.len();
    for sorting in group.list(4) {
        let place = sorting.int(1).and_then(|place| usize::try_from(place).ok());
        if place.is_none_or(|place| place >= count) {
            return Err(Refused::broken(
                "it is sorted by a column that does not exist",
            ));
        }
    }
    Ok(())
}

fn check_chunk(chunk: &Node, group: &Node, column: &ColumnDescriptor) -> Result<(), Refused> {
    let name = column.path().string();
    let physical = match column.physical_type() {
        Physical::BOOLEAN => 0,
        Physical::INT32 => 1,
        Physical::INT64 => 2,
        Physical::INT96 => 3,
        Physical::FLOAT => 4,
        Physical::DOUBLE => 5,
        Physical::BYTE_ARRAY => 6,
        Physical::FIXED_LEN_BYTE_ARRAY => 7,
    };
    if chunk.int(1) != Some(physical) {
        return Err(Refused::Broken(format!(
            "the type of `{name}` differs from the schema"
        )));
    }
    let path: Vec<&[u8]> = chunk
        .list(3)
        .iter()
        .map(|part| match part {
            Node::Bytes(part) => &part[..],
            _ => &[],
        })
        .collect();
    let expected = column.path().parts().iter().map(String::as_bytes);
    if !expected.eq(path) {
        return Err(Refused::Broken(format!(
            "the name of `{name}` differs from that of its data"
        )));
    }
    if column.max_rep_level() == 0 && chunk.int(5) != group.int(3) {
        return Err(Refused::Broken(format!(
            "`{name}` has more or fewer values than rows"
        )));
    }
    Ok(())
}

fn encrypted() -> Refused {
    Refused::Foreign("is encrypted".to_owned())
}
