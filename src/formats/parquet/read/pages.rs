//! What the pages of a file say of themselves, read before any of them is unpacked.
//!
//! A page says how long it will be, and that much is set aside for it: a few kilobytes can ask for
//! gigabytes. So the headers are read first, and by hand, for the parquet crate shows them to nobody.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};

use ::parquet::basic::Compression;
use ::parquet::file::metadata::ColumnChunkMetaData;

use super::guard::Room;
use super::layout::PAGE_HEADER;
use super::node::{Node, Refused};
use super::statistics::Claimed;
use super::thrift;
use crate::terminal;

/// The largest page, unpacked: DuckDB writes pages of up to 100 MB.
const PAGE: u64 = 112 << 20;
/// What a value of a dictionary takes besides its letters.
const EACH_VALUE: u64 = 40;
/// The longest header: it may quote the smallest and the largest value.
const HEADER: u64 = 16 << 20;

/// Types of pages.
const DATA: i64 = 0;
const DICTIONARY: i64 = 2;
const DATA_V2: i64 = 3;

/// A page of data.
#[derive(Debug, PartialEq)]
pub(super) struct DataPage {
    /// Where its header begins, and how long both are.
    pub(super) offset: u64,
    pub(super) size: u64,
    /// Values in it, nulls among them.
    pub(super) values: u64,
    /// What its header says of them.
    pub(super) claimed: Claimed,
}

/// Reads the headers of all pages of a column, which lie before `end`.
pub(super) fn read(
    file: &File,
    column: &ColumnChunkMetaData,
    end: u64,
    room: &mut Room,
) -> Result<Vec<DataPage>, Refused> {
    // Where that makes no sense, it panics.
    let Ok((start, length)) = terminal::caught(|| column.byte_range()) else {
        return Err(Refused::broken("a column is nowhere"));
    };
    if start < 4 || start.checked_add(length).is_none_or(|last| last > end) {
        return Err(Refused::broken("a column lies outside of the data"));
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
        at += walk.page(at, at == start, room)?;
    }
    if at != start + length {
        return Err(Refused::broken(
            "the pages of a column are longer than it says",
        ));
    }
    walk.check(column)?;
    room.take(walk.largest + walk.dictionaries)?;
    Ok(walk.pages)
}

/// A way through the pages of a column.
struct PageWalk<'a> {
    file: BufReader<&'a File>,
    is_gzip: bool,
    /// What the largest page takes, and the dictionary.
    largest: u64,
    dictionaries: u64,
    /// All of it unpacked, headers among it.
    unpacked: u64,
    pages: Vec<DataPage>,
}

impl PageWalk<'_> {
    /// Reads the page at `at`; returns its length.
    fn page(&mut self, at: u64, is_first: bool, room: &mut Room) -> Result<u64, Refused> {
        let mut bytes = (&mut self.file).take(HEADER);
        let header = thrift::read(&PAGE_HEADER, &mut bytes)?;
        let length = HEADER - bytes.limit();
        let size = |id: i16| header.int(id).and_then(|size| u64::try_from(size).ok());
        let (Some(unpacked), Some(packed)) = (size(2), size(3)) else {
            return Err(Refused::broken("a page has no size"));
        };
        if unpacked > PAGE {
            let why = format!("a page of it unpacks to more than {} MiB", PAGE >> 20);
            return Err(Refused::Broken(why));
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
                room.keep(length)?;
                self.data(page, (at, size), 2, page.field(5))?;
                self.largest = self.largest.max(unpacked);
            }
            (Some(DATA_V2), None, None, Some(page)) => {
                room.keep(length)?;
                self.data(page, (at, size), 4, page.field(8))?;
                let last = self.pages.last_mut();
                if let (Some(last), Some(nulls)) = (last, page.int(2)) {
                    last.claimed.expect_nulls(nulls)?;
                }
                self.largest = self.largest.max(unpacked);
            }
            _ => return Err(Refused::broken("a page is of an unknown type")),
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
    ) -> Result<(), Refused> {
        match page.int(encoding) {
            // PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, three of DELTA, RLE_DICTIONARY, BYTE_STREAM_SPLIT.
            Some(0 | 2..=9) => {}
            Some(_) => return Err(Refused::Foreign("uses an unknown encoding".to_owned())),
            None => return Err(Refused::broken("a page has no encoding")),
        }
        self.pages.push(DataPage {
            offset,
            size,
            values: values(page, u64::MAX)?,
            claimed: statistics.map(Claimed::read).unwrap_or_default(),
        });
        Ok(())
    }

    /// Goes on behind a page. What gzip unpacks to is measured: the parquet crate sets no bound to it.
    fn skip(&mut self, packed: u64, unpacked: u64, header: &Node) -> Result<(), Refused> {
        let is_plain = header.field(8).and_then(|page| page.bool(7)) == Some(false);
        if !self.is_gzip || is_plain {
            let packed = i64::try_from(packed).unwrap_or(i64::MAX);
            return Ok(self.file.seek_relative(packed)?);
        }
        let levels: u64 = header.field(8).map_or(0, |page| {
            let lengths =
                [5, 6].map(|id| page.int(id).and_then(|length| u64::try_from(length).ok()));
            lengths.into_iter().flatten().fold(0, u64::saturating_add)
        });
        let mut page = (&mut self.file).take(packed);
        io::copy(&mut (&mut page).take(levels), &mut io::sink())?;
        let gzip = flate2::bufread::MultiGzDecoder::new(&mut page);
        let found = io::copy(&mut gzip.take(unpacked + 1), &mut io::sink());
        let is_as_said = matches!(found, Ok(found) if found <= unpacked);
        // A page without values may have nothing to unpack.
        if !is_as_said && unpacked > levels {
            return Err(Refused::broken(
                "a page does not unpack to the size that it says",
            ));
        }
        io::copy(&mut page, &mut io::sink())?;
        Ok(())
    }

    /// Holds what was found against what the column says of itself.
    fn check(&self, column: &ColumnChunkMetaData) -> Result<(), Refused> {
        let values: u64 = self.pages.iter().map(|page| page.values).sum();
        if u64::try_from(column.num_values()) != Ok(values) {
            return Err(Refused::broken(
                "a column has more or fewer values than it says",
            ));
        }
        if u64::try_from(column.uncompressed_size()) != Ok(self.unpacked) {
            return Err(Refused::broken(
                "a column unpacks to another size than it says",
            ));
        }
        let offset = |offset: i64| u64::try_from(offset).ok();
        let first = self.pages.first().map(|page| page.offset);
        let said = offset(column.data_page_offset());
        let dictionary = column.dictionary_page_offset().filter(|offset| *offset > 0);
        // Where no dictionary is told, old writers mean it by the first page.
        let is_there =
            first.is_none() || said == first || dictionary.is_none() && self.dictionaries > 0;
        if !is_there {
            return Err(Refused::broken(
                "the first page of a column is elsewhere than it says",
            ));
        }
        Ok(())
    }
}

fn values(page: &Node, most: u64) -> Result<u64, Refused> {
    let values = page.int(1).and_then(|values| u64::try_from(values).ok());
    match values {
        Some(values) if values <= most => Ok(values),
        _ => Err(Refused::broken(
            "a dictionary or page says that it holds more than it does",
        )),
    }
}
