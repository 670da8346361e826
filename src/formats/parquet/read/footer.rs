//! Reads the footer of a file and the page indexes, and checks that they are true and consistent.
//!
//! The parquet crate ignores much of it that other readers rely on.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};

use ::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use super::audit::Sorted;
use super::layout::{self, Fields};
use super::pages::DataPage;
use super::statistics::{Claimed, SortOrder};
use super::thrift::{Node, damaged, unsupported};
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
            return Err(unsupported("is encrypted or damaged"));
        }
        let start = length.checked_sub(u64::from(size));
        let Some(start) = start.filter(|_| end[4..] == *b"PAR1") else {
            return Ok(None);
        };
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = BufReader::new(file.take(size.into()));
        let root = layout::read(layout::FOOTER, &mut bytes)?;
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
        let chunks = || self.groups().iter().flat_map(|group| group.list(1));
        let is_encrypted = |chunk: &Node| chunk.field(8).is_some() || chunk.field(9).is_some();
        if self.root.field(8).is_some() || chunks().any(is_encrypted) {
            return Err(unsupported("is encrypted or damaged"));
        }
        if chunks().any(|chunk| chunk.field(1).is_some()) {
            return Err(unsupported("keeps its data in other files"));
        }
        if !self.root.list(2).iter().all(has_old_decimal) {
            return Err(damaged("older readers do not see its decimals as such"));
        }
        let mut rows: u64 = 0;
        let is_sound = |(place, group): (usize, &Node)| {
            rows = rows.saturating_add(group.size(3).unwrap_or(u64::MAX));
            let ordinal = group.int(7);
            ordinal.is_none_or(|ordinal| usize::try_from(ordinal) == Ok(place))
                && is_group(group, schema)
        };
        if !self.groups().iter().enumerate().all(is_sound) || self.root.size(3) != Some(rows) {
            return Err(damaged(
                "its footer contradicts itself: a row group or a column is not as described",
            ));
        }
        Ok(())
    }

    /// Reads the indexes of a column, and adds their statistics to those of its pages.
    pub(super) fn check_indexes(
        &self,
        file: &File,
        chunk: &Node,
        column: &ColumnDescriptor,
        pages: &mut [DataPage],
    ) -> Result<(), ReadError> {
        let is_flat = column.max_rep_level() == 0;
        if let Some(index) = self.index(file, chunk, 4, layout::OFFSET_INDEX)?
            && is_flat
            && !is_offset_index(&index, pages)
        {
            return Err(damaged("the offset index does not point to its pages"));
        }
        if let Some(index) = self.index(file, chunk, 6, layout::COLUMN_INDEX)?
            && is_flat
            && add_column_index(&index, SortOrder::of(column), pages).is_none()
        {
            return Err(damaged("the column index does not match its pages"));
        }
        Ok(())
    }

    /// Reads the index whose offset and length are in the fields `id` and `id + 1`.
    fn index(
        &self,
        mut file: &File,
        chunk: &Node,
        id: i16,
        fields: Fields,
    ) -> Result<Option<Node>, ReadError> {
        if chunk.int(id).or(chunk.int(id + 1)).is_none() {
            return Ok(None);
        }
        let wrong = || damaged("a page index has an invalid offset or size");
        let length = chunk.size(id + 1).filter(|length| *length <= INDEX);
        let place = chunk.size(id).zip(length);
        let is_inside = |(offset, length): &(u64, u64)| {
            let end = offset.checked_add(*length);
            end.is_some_and(|end| end <= self.start)
        };
        let (offset, length) = place.filter(is_inside).ok_or_else(wrong)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = BufReader::new(file.take(length));
        let index = layout::read(fields, &mut bytes)?;
        let is_whole = bytes.fill_buf()?.is_empty();
        is_whole.then_some(Some(index)).ok_or_else(wrong)
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
        let sorted = [2, 3].map(|id| key.bool(id).unwrap_or_default());
        let sorted = Sorted::new(sorted[0], sorted[1]);
        sorted_by.extend(leaf.map(|leaf| (leaf, Some(sorted))));
    }
    sorted_by
}

/// Returns whether a decimal is described alike for older readers: otherwise, they would read its digits as a whole
/// number.
fn has_old_decimal(column: &Node) -> bool {
    /// The number of the type in the old list.
    const DECIMAL: i64 = 5;
    let decimal = column.field(10).and_then(|logical| logical.field(5));
    decimal.is_none_or(|decimal| {
        column.int(6) == Some(DECIMAL) && column.int(7).unwrap_or(0) == decimal.int(1).unwrap_or(0)
    })
}

/// Returns whether a group has the columns of the schema, and its own sizes are theirs.
fn is_group(group: &Node, schema: &SchemaDescriptor) -> bool {
    let chunks = group.list(1);
    let metadata: Vec<&Node> = self::chunks(group).map(|(_, chunk)| chunk).collect();
    let sum = |id: i16| {
        let sizes = metadata
            .iter()
            .map(|chunk| chunk.int(id).unwrap_or_default());
        sizes.fold(0, i64::saturating_add)
    };
    let is_column = |key: &Node| {
        let place = key.int(1).and_then(|place| usize::try_from(place).ok());
        place.is_some_and(|place| place < chunks.len())
    };
    let mut columns = metadata.iter().zip(schema.columns());
    [chunks.len(), metadata.len()] == [schema.num_columns(); 2]
        && columns.all(|(chunk, column)| is_chunk(chunk, group, column))
        && group.int(2) == Some(sum(6))
        && group.int(6).is_none_or(|size| size == sum(7))
        && group.list(4).iter().all(is_column)
}

/// Returns whether the metadata of a column have its type, its name, and a value for each row.
fn is_chunk(chunk: &Node, group: &Node, column: &ColumnDescriptor) -> bool {
    let path = chunk.list(3).iter().map(|part| match part {
        Node::Bytes(part) => &part[..],
        _ => &[],
    });
    // The crate numbers the types as the format does.
    chunk.int(1) == Some(column.physical_type() as i64)
        && path.eq(column.path().parts().iter().map(String::as_bytes))
        && (column.max_rep_level() > 0 || chunk.int(5) == group.int(3))
}

/// Adds the statistics of a column index to those of its pages. `None` if it is not one of these pages, or if it says that
/// they are sorted, but they are not.
fn add_column_index(index: &Node, order: SortOrder, pages: &mut [DataPage]) -> Option<()> {
    let (empty, least, greatest) = (index.list(1), index.list(2), index.list(3));
    let nulls = index.list(5);
    let fits = [empty.len(), least.len(), greatest.len()] == [pages.len(); 3]
        && (nulls.is_empty() || nulls.len() == pages.len());
    fits.then_some(())?;
    let mut bounds: Vec<[&[u8]; 2]> = Vec::new();
    for (place, page) in pages.iter_mut().enumerate() {
        let count = match nulls.get(place) {
            Some(Node::Int(_, count)) => Some(*count),
            Some(_) => return None,
            None => None,
        };
        page.claims
            .push(match (&empty[place], &least[place], &greatest[place]) {
                (Node::Bool(true), _, _) => {
                    let mut claimed = Claimed::of_index(None, count);
                    claimed
                        .expect_nulls(i64::try_from(page.values).ok()?)
                        .ok()?;
                    claimed
                }
                (Node::Bool(false), Node::Bytes(least), Node::Bytes(greatest)) => {
                    bounds.push([least, greatest]);
                    Claimed::of_index(Some([least, greatest]), count)
                }
                _ => return None,
            });
    }
    let wrong_order = match index.int(4)? {
        0 => return Some(()),
        1 => Ordering::Greater,
        2 => Ordering::Less,
        _ => return None,
    };
    let is_sorted = |pair: &[[&[u8]; 2]]| {
        (0..2).all(|side| order.compare(pair[0][side], pair[1][side]) != Some(wrong_order))
    };
    bounds.windows(2).all(is_sorted).then_some(())
}

/// Returns whether an offset index is that of these pages.
fn is_offset_index(index: &Node, pages: &[DataPage]) -> bool {
    let locations = index.list(1);
    let mut row = 0;
    let fits = |(page, location): (&DataPage, &Node)| {
        let expected = [page.offset, page.size, row].map(Some);
        row += page.values;
        [1, 2, 3].map(|id| location.size(id)) == expected
    };
    locations.len() == pages.len() && pages.iter().zip(locations).all(fits)
}
