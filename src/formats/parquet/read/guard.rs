//! Stops pages for which the parquet crate would allocate too much, or that contain less or more than they declare.

use ::parquet::basic::Encoding;
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::schema::types::ColumnDescriptor;

use super::node::damaged;
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

impl MemoryBudget {
    pub(super) fn new() -> Self {
        Self {
            pages: PAGES,
            headers: HEADERS,
        }
    }

    pub(super) fn reserve(&mut self, bytes: u64) -> Result<(), ReadError> {
        let rest = self.pages.checked_sub(bytes);
        let limit = PAGES >> 20;
        self.pages =
            rest.ok_or_else(|| damaged(format!("its pages unpack to more than {limit} MiB")))?;
        Ok(())
    }

    pub(super) fn reserve_header(&mut self, bytes: u64) -> Result<(), ReadError> {
        let rest = self.headers.checked_sub(bytes);
        let limit = HEADERS >> 20;
        self.headers =
            rest.ok_or_else(|| damaged(format!("its page headers take more than {limit} MiB")))?;
        Ok(())
    }
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

    fn check(&self, page: &Page) -> Result<()> {
        let most = page.num_values() as usize;
        let is_sound = match page {
            Page::DictionaryPage { .. } => Some(()),
            Page::DataPage {
                buf,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                ..
            } => {
                let encodings = [*rep_level_encoding, *def_level_encoding];
                let values = self.split_levels(buf, encodings, most);
                values.and_then(|(bytes, count)| check(bytes, *encoding, count))
            }
            Page::DataPageV2 {
                buf,
                encoding,
                num_nulls,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let lengths = [*rep_levels_byte_len, *def_levels_byte_len];
                let values = self.split_levels_v2(buf, lengths, most);
                let values = values.filter(|(_, count)| count + *num_nulls as usize == most);
                values.and_then(|(bytes, count)| check(bytes, *encoding, count))
            }
        };
        is_sound.ok_or_else(|| {
            ParquetError::General(
                "a page does not contain what it declares, or far too much".to_owned(),
            )
        })
    }

    /// Returns what is after the levels of a page of version 1, and the number of values that are not null.
    fn split_levels<'a>(
        &self,
        mut bytes: &'a [u8],
        encodings: [Encoding; 2],
        count: usize,
    ) -> Option<(&'a [u8], usize)> {
        let mut present = count;
        for (highest, encoding) in self.levels.into_iter().zip(encodings) {
            if highest == 0 {
                continue;
            }
            // Pages without values may have no levels either.
            if count == 0 && bytes.is_empty() {
                return Some((bytes, 0));
            }
            // The only other encoding is very old, and has no runs.
            if encoding != Encoding::RLE {
                return Some((&[], 0));
            }
            let (levels, rest) = runs::split_length(bytes)?;
            present = runs::check_levels(levels, highest, count)?;
            bytes = rest;
        }
        Some((bytes, present))
    }

    /// Like [`Self::split_levels`], for version 2.
    fn split_levels_v2<'a>(
        &self,
        mut bytes: &'a [u8],
        lengths: [u32; 2],
        count: usize,
    ) -> Option<(&'a [u8], usize)> {
        let mut present = count;
        for (highest, length) in self.levels.into_iter().zip(lengths) {
            let (levels, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
            bytes = rest;
            if highest > 0 {
                present = runs::check_levels(levels, highest, count)?;
            } else if !levels.is_empty() {
                return None;
            }
        }
        Some((bytes, present))
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
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
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
