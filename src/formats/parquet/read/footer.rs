//! Reads the footer of a file, and checks that it is true and consistent.
//!
//! The parquet crate ignores much of it that other readers rely on.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};

use ::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use super::audit::Sorted;
use super::index::{check_offset_index, column_index};
use super::layout::{self, StructLayout};
use super::node::{Node, damaged, unsupported};
use super::pages::DataPage;
use super::statistics::{Claimed, SortOrder};
use super::thrift;
use crate::formats::record::ReadError;

/// The longest footer: it needs many times its size in memory.
const FOOTER: u32 = 16 << 20;
/// The longest index of the pages of one column.
const INDEX: u64 = 16 << 20;

/// A footer.
pub(super) struct Footer {
    root: Node,
    /// Its offset: all data are before it.
    pub(super) start: u64,
}

impl Footer {
    /// Reads the end of a file; `None` if it is too short to have one.
    pub(super) fn read(mut file: &File) -> Result<Option<Self>, ReadError> {
        let mut end = [0; 8];
        let Ok(length) = file.seek(SeekFrom::End(-8)) else {
            return Ok(None);
        };
        file.read_exact(&mut end)?;
        let size = u32::from_le_bytes([end[0], end[1], end[2], end[3]]);
        if size > FOOTER {
            let why = format!("its footer is larger than {} MiB", FOOTER >> 20);
            return Err(damaged(why));
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
            return Err(damaged("its footer is shorter than its declared size"));
        }
        file.rewind()?;
        Ok(Some(Self { root, start }))
    }

    /// Returns the row groups.
    pub(super) fn groups(&self) -> &[Node] {
        self.root.list(4)
    }

    /// Checks everything that does not need the data.
    pub(super) fn check(&self, schema: &SchemaDescriptor) -> Result<(), ReadError> {
        if self.root.field(8).is_some() {
            return Err(encrypted());
        }
        check_decimals(self.root.list(2))?;
        let mut rows: i64 = 0;
        for (place, group) in self.groups().iter().enumerate() {
            let count = group.int(3).filter(|rows| *rows >= 0);
            let sum = count.and_then(|count| rows.checked_add(count));
            rows = sum.ok_or_else(|| damaged("a row group has no number of rows"))?;
            let ordinal = group.int(7);
            if ordinal.is_some_and(|ordinal| usize::try_from(ordinal) != Ok(place)) {
                return Err(damaged("its row groups are out of order"));
            }
            check_group(group, schema)?;
        }
        if self.root.int(3) != Some(rows) {
            return Err(damaged("it has more or fewer rows than its footer says"));
        }
        Ok(())
    }

    /// Reads the indexes of a column; returns the statistics of each page.
    pub(super) fn indexes(
        &self,
        file: &File,
        chunk: &Node,
        column: &ColumnDescriptor,
        pages: &[DataPage],
    ) -> Result<Vec<Claimed>, ReadError> {
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
    ) -> Result<Option<Node>, ReadError> {
        if chunk.int(id).or(chunk.int(id + 1)).is_none() {
            return Ok(None);
        }
        let length = chunk.size(id + 1).filter(|length| *length <= INDEX);
        let place = chunk.size(id).zip(length);
        let is_inside = |(offset, length): &(u64, u64)| {
            let end = offset.checked_add(*length);
            end.is_some_and(|end| end <= self.start)
        };
        let Some((offset, length)) = place.filter(is_inside) else {
            return Err(damaged("a page index has an invalid offset"));
        };
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = BufReader::new(file.take(length));
        let index = thrift::read(layout, &mut bytes)?;
        if bytes.fill_buf()?.is_empty() {
            Ok(Some(index))
        } else {
            Err(damaged("a page index is shorter than its declared size"))
        }
    }
}

/// Returns the number of rows of a group.
pub(super) fn rows(group: &Node) -> u64 {
    group.size(3).unwrap_or_default()
}

/// Returns the columns of a group, each with its metadata, which [`Footer::check`] has found.
pub(super) fn chunks(group: &Node) -> impl Iterator<Item = (&Node, &Node)> {
    let chunks = group.list(1).iter();
    chunks.filter_map(|chunk| Some((chunk, chunk.field(3)?)))
}

/// Returns the declared sort order of the rows of a group.
pub(super) fn sorted_by(group: &Node) -> Vec<(usize, Option<Sorted>)> {
    let mut sorted_by: Vec<(usize, Option<Sorted>)> = Vec::new();
    for key in group.list(4) {
        let leaf = key.int(1).and_then(|leaf| usize::try_from(leaf).ok());
        // A repeated column adds nothing.
        let leaf = leaf.filter(|leaf| sorted_by.iter().all(|(known, _)| known != leaf));
        let descending = key.bool(2).unwrap_or_default();
        let nulls_first = key.bool(3).unwrap_or_default();
        sorted_by.extend(leaf.map(|leaf| (leaf, Some(Sorted::new(descending, nulls_first)))));
    }
    sorted_by
}

/// Checks that decimals are described alike for older readers.
fn check_decimals(schema: &[Node]) -> Result<(), ReadError> {
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
            return Err(damaged("older readers do not see its decimals as such"));
        }
    }
    Ok(())
}

fn check_group(group: &Node, schema: &SchemaDescriptor) -> Result<(), ReadError> {
    let chunks = group.list(1);
    if chunks.len() != schema.num_columns() {
        return Err(damaged(
            "the columns of a row group differ from those of the file",
        ));
    }
    let (mut packed, mut unpacked) = (0_i64, 0_i64);
    for (chunk, column) in chunks.iter().zip(schema.columns()) {
        if chunk.field(1).is_some() {
            return Err(unsupported("keeps its data in other files"));
        }
        if chunk.field(8).is_some() || chunk.field(9).is_some() {
            return Err(encrypted());
        }
        let Some(chunk) = chunk.field(3) else {
            return Err(damaged("a column is not described"));
        };
        check_chunk(chunk, group, column)?;
        unpacked = unpacked.saturating_add(chunk.int(6).unwrap_or_default());
        packed = packed.saturating_add(chunk.int(7).unwrap_or_default());
    }
    let is_as_large =
        group.int(2) == Some(unpacked) && group.int(6).is_none_or(|size| size == packed);
    if !is_as_large {
        return Err(damaged(
            "the size of a row group differs from that of its columns",
        ));
    }
    let count = chunks.len();
    for sorting in group.list(4) {
        let place = sorting.int(1).and_then(|place| usize::try_from(place).ok());
        if place.is_none_or(|place| place >= count) {
            return Err(damaged("it is sorted by a column that does not exist"));
        }
    }
    Ok(())
}

fn check_chunk(chunk: &Node, group: &Node, column: &ColumnDescriptor) -> Result<(), ReadError> {
    let name = column.path().string();
    // The crate numbers the types as the format does.
    if chunk.int(1) != Some(column.physical_type() as i64) {
        return Err(damaged(format!(
            "the type of `{name}` differs from the schema"
        )));
    }
    let path = chunk.list(3).iter().map(|part| match part {
        Node::Bytes(part) => &part[..],
        _ => &[],
    });
    let expected = column.path().parts().iter().map(String::as_bytes);
    if !expected.eq(path) {
        return Err(damaged(format!(
            "the name of `{name}` differs from that of its data"
        )));
    }
    if column.max_rep_level() == 0 && chunk.int(5) != group.int(3) {
        return Err(damaged(format!(
            "`{name}` has more or fewer values than rows"
        )));
    }
    Ok(())
}

fn encrypted() -> ReadError {
    unsupported("is encrypted")
}
