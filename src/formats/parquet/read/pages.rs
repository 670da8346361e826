//! Reads the page headers of a column, before any page is unpacked.
//!
//! The parquet crate allocates the size that a page header declares, so a few kilobytes can ask for
//! gigabytes. The headers are read here first, because the crate does not expose them.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};

use ::parquet::basic::Compression;
use ::parquet::file::metadata::ColumnChunkMetaData;

use super::guard::MemoryBudget;
use super::layout::{self, PAGE_HEADER};
use super::statistics::Claimed;
use super::thrift::{Node, damaged, unsupported};
use crate::formats::record::ReadError;
use crate::terminal;

/// The largest page, unpacked: DuckDB writes pages of up to 100 MB.
const PAGE: u64 = 112 << 20;
/// The memory of a dictionary value besides its bytes.
const EACH_VALUE: u64 = 40;
/// The longest header: it may contain the smallest and the largest value.
const HEADER: u64 = 16 << 20;

/// Types of pages.
const DATA: i64 = 0;
const DICTIONARY: i64 = 2;
const DATA_V2: i64 = 3;

/// A data page.
#[derive(Debug, PartialEq)]
pub(super) struct DataPage {
    /// The offset of its header, and the size of both.
    pub(super) offset: u64,
    pub(super) size: u64,
    /// The number of values, nulls included.
    pub(super) values: u64,
    /// The statistics in its header, and those in the column index.
    pub(super) claims: Vec<Claimed>,
}

/// Reads the headers of all pages of a column, which must be before `end`.
pub(super) fn read(
    file: &File,
    column: &ColumnChunkMetaData,
    end: u64,
    budget: &mut MemoryBudget,
) -> Result<Vec<DataPage>, ReadError> {
    // It panics if the offsets are invalid.
    let range = terminal::caught(|| column.byte_range()).ok();
    let is_inside = |(start, length): &(u64, u64)| {
        *start >= 4 && start.checked_add(*length).is_some_and(|last| last <= end)
    };
    let (start, length) = range
        .filter(is_inside)
        .ok_or_else(|| damaged("a column has an invalid offset or size"))?;
    let mut walk = PageWalk {
        file: BufReader::with_capacity(4096, file),
        is_gzip: matches!(column.compression(), Compression::GZIP(_)),
        largest: 0,
        dictionaries: 0,
        unpacked: 0,
        pages: Vec::new(),
    };
    walk.file.seek(SeekFrom::Start(start))?;
    let mut at = start;
    while at < start + length {
        at += walk.page(at, at == start, budget)?;
    }
    if at != start + length || !walk.fits(column) {
        return Err(damaged("the pages of a column are not as its metadata say"));
    }
    budget.reserve(walk.largest + walk.dictionaries)?;
    Ok(walk.pages)
}

/// Goes through the pages of a column.
struct PageWalk<'a> {
    file: BufReader<&'a File>,
    is_gzip: bool,
    /// The memory of the largest page, and of the dictionary.
    largest: u64,
    dictionaries: u64,
    /// The unpacked size of the column, headers included.
    unpacked: u64,
    pages: Vec<DataPage>,
}

impl PageWalk<'_> {
    /// Reads the page at `at`; returns its length.
    fn page(
        &mut self,
        at: u64,
        is_first: bool,
        budget: &mut MemoryBudget,
    ) -> Result<u64, ReadError> {
        let mut bytes = (&mut self.file).take(HEADER);
        let header = layout::read(PAGE_HEADER, &mut bytes)?;
        let length = HEADER - bytes.limit();
        let unpacked = header.size(2).filter(|size| *size <= PAGE);
        let (unpacked, packed) = unpacked.zip(header.size(3)).ok_or_else(|| {
            damaged(format!(
                "a page unpacks to more than {} MiB, or has no size",
                PAGE >> 20
            ))
        })?;
        self.unpacked += length + unpacked;
        let size = length + packed;
        let structs = [5, 7, 8].map(|id| header.field(id));
        match (header.int(1), structs) {
            (Some(DICTIONARY), [None, Some(dictionary), None]) if is_first => {
                self.dictionaries = unpacked + values(dictionary, unpacked)? * EACH_VALUE;
            }
            (Some(DATA), [Some(page), None, None]) => {
                budget.reserve_header(length)?;
                let claimed = page.field(5).map(Claimed::read).unwrap_or_default();
                self.data(page, 2, (at, size), claimed)?;
                self.largest = self.largest.max(unpacked);
            }
            (Some(DATA_V2), [None, None, Some(page)]) => {
                budget.reserve_header(length)?;
                let mut claimed = page.field(8).map(Claimed::read).unwrap_or_default();
                if let Some(nulls) = page.int(2) {
                    claimed.expect_nulls(nulls)?;
                }
                self.data(page, 4, (at, size), claimed)?;
                self.largest = self.largest.max(unpacked);
            }
            _ => return Err(damaged("a page is of an unknown type")),
        }
        self.skip(packed, unpacked, &header)?;
        Ok(size)
    }

    /// Adds a data page, whose encoding is in the field `encoding`.
    fn data(
        &mut self,
        page: &Node,
        encoding: i16,
        (offset, size): (u64, u64),
        claimed: Claimed,
    ) -> Result<(), ReadError> {
        // PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, three of DELTA, RLE_DICTIONARY, BYTE_STREAM_SPLIT.
        if !matches!(page.int(encoding), Some(0 | 2..=9)) {
            return Err(unsupported("uses an unknown encoding"));
        }
        self.pages.push(DataPage {
            offset,
            size,
            values: values(page, u64::MAX)?,
            claims: vec![claimed],
        });
        Ok(())
    }

    /// Skips a page. Gzip is unpacked to measure its size, because the parquet crate does not limit it.
    fn skip(&mut self, packed: u64, unpacked: u64, header: &Node) -> Result<(), ReadError> {
        let is_plain = header.field(8).and_then(|page| page.bool(7)) == Some(false);
        if !self.is_gzip || is_plain {
            let packed = i64::try_from(packed).unwrap_or(i64::MAX);
            return Ok(self.file.seek_relative(packed)?);
        }
        let levels: u64 = header.field(8).map_or(0, |page| {
            let lengths = [5, 6].into_iter().filter_map(|id| page.size(id));
            lengths.fold(0, u64::saturating_add)
        });
        let mut page = (&mut self.file).take(packed);
        io::copy(&mut (&mut page).take(levels), &mut io::sink())?;
        let gzip = flate2::bufread::MultiGzDecoder::new(&mut page);
        let found = io::copy(&mut gzip.take(unpacked + 1), &mut io::sink());
        let is_as_said = matches!(found, Ok(found) if found <= unpacked);
        // A page without values may be empty.
        if !is_as_said && unpacked > levels {
            return Err(damaged("a page does not unpack to its declared size"));
        }
        io::copy(&mut page, &mut io::sink())?;
        Ok(())
    }

    /// Returns whether the metadata of the column describe its pages.
    fn fits(&self, column: &ColumnChunkMetaData) -> bool {
        let values: u64 = self.pages.iter().map(|page| page.values).sum();
        let first = self.pages.first().map(|page| page.offset);
        let said = u64::try_from(column.data_page_offset()).ok();
        let dictionary = column.dictionary_page_offset().filter(|offset| *offset > 0);
        // Old writers give the offset of the dictionary as that of the first page.
        let is_there =
            first.is_none() || said == first || dictionary.is_none() && self.dictionaries > 0;
        u64::try_from(column.num_values()) == Ok(values)
            && u64::try_from(column.uncompressed_size()) == Ok(self.unpacked)
            && is_there
    }
}

fn values(page: &Node, most: u64) -> Result<u64, ReadError> {
    let values = page.size(1).filter(|values| *values <= most);
    values.ok_or_else(|| damaged("a dictionary or page declares more values than it has"))
}
