//! Stops pages for which the parquet crate would allocate too much, or that contain less or more than they declare.

use ::parquet::basic::Encoding;
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::schema::types::ColumnDescriptor;

use super::thrift::damaged;
use super::{delta, runs};
use crate::formats::record::ReadError;

/// The most memory for the unpacked pages of all columns that are open at a time.
const PAGES: u64 = 512 << 20;
/// The most memory for the page headers of a row group.
const HEADERS: u64 = 64 << 20;
/// The most memory for the texts of one page with shared prefixes.
const TEXTS: u64 = 224 << 20;

/// The memory that the pages of a row group may still use.
pub(super) struct MemoryBudget {
    /// Bytes for unpacked pages, and for page headers.
    pages: u64,
    headers: u64,
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self {
            pages: PAGES,
            headers: HEADERS,
        }
    }
}

impl MemoryBudget {
    pub(super) fn reserve(&mut self, bytes: u64) -> Result<(), ReadError> {
        take(&mut self.pages, bytes)
    }

    pub(super) fn reserve_header(&mut self, bytes: u64) -> Result<(), ReadError> {
        take(&mut self.headers, bytes)
    }
}

fn take(budget: &mut u64, bytes: u64) -> Result<(), ReadError> {
    let rest = budget.checked_sub(bytes);
    *budget = rest.ok_or_else(|| damaged("its pages need too much memory"))?;
    Ok(())
}

/// Checks pages as they are read.
pub(super) struct PageGuard {
    pages: Box<dyn PageReader>,
    /// The highest repetition level, and the highest definition level.
    levels: [usize; 2],
}

impl PageGuard {
    pub(super) fn new(pages: Box<dyn PageReader>, column: &ColumnDescriptor) -> Self {
        let levels = [column.max_rep_level(), column.max_def_level()];
        Self {
            pages,
            levels: levels.map(|level| usize::try_from(level).unwrap_or_default()),
        }
    }

    fn check(&self, page: &Page) -> Option<()> {
        let (mut bytes, count) = (&page.buffer()[..], page.num_values() as usize);
        // The lengths of the levels, and the number of nulls, in version 2; their encodings in version 1.
        let (mut lengths, mut nulls, mut encodings) = (None, None, [Encoding::RLE; 2]);
        match page {
            Page::DictionaryPage { .. } => return Some(()),
            Page::DataPage {
                rep_level_encoding,
                def_level_encoding,
                ..
            } => encodings = [*rep_level_encoding, *def_level_encoding],
            Page::DataPageV2 {
                num_nulls,
                rep_levels_byte_len,
                def_levels_byte_len,
                ..
            } => {
                lengths = Some([*rep_levels_byte_len, *def_levels_byte_len]);
                nulls = Some(*num_nulls as usize);
            }
        }
        let mut present = count;
        for (place, highest) in self.levels.into_iter().enumerate() {
            let (levels, rest) = match lengths {
                Some(lengths) => bytes.split_at_checked(lengths[place] as usize)?,
                None if highest == 0 => continue,
                // The only other encoding is very old, and has no runs. Pages without values may have no levels either.
                None if encodings[place] != Encoding::RLE || count == 0 && bytes.is_empty() => {
                    return Some(());
                }
                None => runs::split_length(bytes)?,
            };
            bytes = rest;
            if highest > 0 {
                present = runs::check_levels(levels, highest, count)?;
            } else if !levels.is_empty() {
                return None;
            }
        }
        if nulls.is_some_and(|nulls| present + nulls != count) {
            return None;
        }
        check(bytes, page.encoding(), present)
    }
}

/// Checks the part of a page with its values, `count` of them.
fn check(bytes: &[u8], encoding: Encoding, count: usize) -> Option<()> {
    // Some writers write no data for a page without values.
    if bytes.is_empty() && count == 0 {
        return Some(());
    }
    match encoding {
        Encoding::DELTA_BINARY_PACKED => delta::check_numbers(bytes, count),
        Encoding::DELTA_LENGTH_BYTE_ARRAY => delta::check_lengths(bytes, count),
        Encoding::DELTA_BYTE_ARRAY => delta::check_prefixes(bytes, count, TEXTS),
        Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => runs::check_indexes(bytes, count),
        Encoding::RLE => runs::check_booleans(bytes, count),
        _ => Some(()),
    }
}

impl PageReader for PageGuard {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        match page.as_ref().map(|page| self.check(page)) {
            Some(None) => Err(ParquetError::General(
                "a page does not contain what it declares, or far too much".to_owned(),
            )),
            _ => Ok(page),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

impl Iterator for PageGuard {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
