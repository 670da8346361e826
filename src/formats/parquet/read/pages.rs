//! Reads the page headers of a column, before any page is unpacked.
//!
//! The parquet crate allocates the size that a page header declares, so a few kilobytes can ask for
//! gigabytes. The headers are read here first, because the crate does not expose them.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};

use ::parquet::basic::Compression;
use ::parquet::file::metadata::ColumnChunkMetaData;

use super::guard::MemoryBudget;
use super::layout::PAGE_HEADER;
use super::node::{Node, damaged, unsupported};
use super::statistics::Claimed;
use super::thrift;
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
    /// The statistics in its header.
    pub(super) claimed: Claimed,
}

/// Reads the headers of all pages of a column, which must be before `end`.
pub(super) fn read(
    file: &File,
    column: &ColumnChunkMetaData,
    end: u64,
    budget: &mut MemoryBudget,
) -> Result<Vec<DataPage>, ReadError> {
    // It panics if the offsets are invalid.
    let Ok((start, length)) = terminal::caught(|| column.byte_range()) else {
        return Err(damaged("a column has an invalid offset"));
    };
    if start < 4 || start.checked_add(length).is_none_or(|last| last > end) {
        return Err(damaged("a column is outside the data"));
    }
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
    if at != start + length {
        return Err(damaged(
            "the pages of a column are longer than its metadata says",
        ));
    }
    walk.check(column)?;
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
        let header = thrift::read(&PAGE_HEADER, &mut bytes)?;
        let length = HEADER - bytes.limit();
        let (Some(unpacked), Some(packed)) = (header.size(2), header.size(3)) else {
            return Err(damaged("a page has no size"));
        };
        if unpacked > PAGE {
            let why = format!("a page unpacks to more than {} MiB", PAGE >> 20);
            return Err(damaged(why));
        }
        self.unpacked += length + unpacked;
        let size = length + packed;
        match (
            header.int(1),
            header.field(5),
            header.field(7),
            header.field(8),
        ) {
            (Some(DICTIONARY), None, Some(dictionary), None) if is_first => {
                self.dictionaries = unpacked + values(dictionary, unpacked)? * EACH_VALUE;
            }
            (Some(DATA), Some(page), None, None) => {
                budget.reserve_header(length)?;
                self.data(page, (at, size), 2, page.field(5))?;
                self.largest = self.largest.max(unpacked);
            }
            (Some(DATA_V2), None, None, Some(page)) => {
                budget.reserve_header(length)?;
                self.data(page, (at, size), 4, page.field(8))?;
                let last = self.pages.last_mut();
                if let (Some(last), Some(nulls)) = (last, page.int(2)) {
                    last.claimed.expect_nulls(nulls)?;
                }
                self.largest = self.largest.max(unpacked);
            }
            _ => return Err(damaged("a page is of an unknown type")),
        }
        self.skip(packed, unpacked, &header)?;
        Ok(size)
    }

    fn data(
        &mut self,
        page: &Node,
        (offset, size): (u64, u64),
        encoding: i16,
        statistics: Option<&Node>,
    ) -> Result<(), ReadError> {
        match page.int(encoding) {
            // PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, three of DELTA, RLE_DICTIONARY, BYTE_STREAM_SPLIT.
            Some(0 | 2..=9) => {}
            Some(_) => return Err(unsupported("uses an unknown encoding")),
            None => return Err(damaged("a page has no encoding")),
        }
        self.pages.push(DataPage {
            offset,
            size,
            values: values(page, u64::MAX)?,
            claimed: statistics.map(Claimed::read).unwrap_or_default(),
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

    /// Compares the pages with the metadata of the column.
    fn check(&self, column: &ColumnChunkMetaData) -> Result<(), ReadError> {
        let values: u64 = self.pages.iter().map(|page| page.values).sum();
        if u64::try_from(column.num_values()) != Ok(values) {
            return Err(damaged(
                "a column has more or fewer values than its metadata says",
            ));
        }
        if u64::try_from(column.uncompressed_size()) != Ok(self.unpacked) {
            return Err(damaged("a column does not unpack to its declared size"));
        }
        let first = self.pages.first().map(|page| page.offset);
        let said = u64::try_from(column.data_page_offset()).ok();
        let dictionary = column.dictionary_page_offset().filter(|offset| *offset > 0);
        // Old writers give the offset of the dictionary as that of the first page.
        let is_there =
            first.is_none() || said == first || dictionary.is_none() && self.dictionaries > 0;
        if !is_there {
            return Err(damaged(
                "the first page of a column is not at its declared offset",
            ));
        }
        Ok(())
    }
}

fn values(page: &Node, most: u64) -> Result<u64, ReadError> {
    let values = page.size(1).filter(|values| *values <= most);
    values.ok_or_else(|| damaged("a dictionary or page declares more values than it has"))
}
