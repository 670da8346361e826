//! Memory limits: stops pages for which the parquet crate would allocate too much.

use ::parquet::basic::Encoding;
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::schema::types::ColumnDescriptor;

use super::delta;
use super::node::Refused;

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

    pub(super) fn reserve(&mut self, bytes: u64) -> Result<(), Refused> {
        let rest = self.pages.checked_sub(bytes);
        self.pages = rest.ok_or_else(|| {
            let why = format!("its pages unpack to more than {} MiB", PAGES >> 20);
            Refused::Broken(why)
        })?;
        Ok(())
    }

    pub(super) fn reserve_header(&mut self, bytes: u64) -> Result<(), Refused> {
        let rest = self.headers.checked_sub(bytes);
        self.headers = rest.ok_or_else(|| {
            let why = format!("its page headers take more than {} MiB", HEADERS >> 20);
            Refused::Broken(why)
        })?;
        Ok(())
    }
}

/// Checks pages as they are read.
pub(super) struct PageGuard {
    pages: Box<dyn PageReader>,
    /// The number of level runs at the start of pages of version 1.
    levels: u8,
}

impl PageGuard {
    pub(super) fn new(pages: Box<dyn PageReader>, column: &ColumnDescriptor) -> Self {
        let has_levels = [column.max_rep_level() > 0, column.max_def_level() > 0];
        Self {
            pages,
            levels: has_levels.map(u8::from).iter().sum(),
        }
    }

    fn check(&self, page: &Page) -> Result<()> {
        let most = page.num_values() as usize;
        let is_sound = match page {
            Page::DictionaryPage { .. } => Some(()),
            Page::DataPage { buf, encoding, .. } => {
                let mut bytes = &buf[..];
                for _ in 0..self.levels {
                    bytes = without_levels(bytes).unwrap_or_default();
                }
                check(bytes, *encoding, most)
            }
            Page::DataPageV2 {
                buf,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
                let start = usize::try_from(levels).unwrap_or(usize::MAX);
                check(buf.get(start..).unwrap_or_default(), *encoding, most)
            }
        };
        is_sound.ok_or_else(|| {
            ParquetError::General(
                "a page does not contain what it declares, or far too much".to_owned(),
            )
        })
    }
}

fn without_levels(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.get(usize::try_from(u32::from_le_bytes(*length)).ok()?..)
}

fn check(bytes: &[u8], encoding: Encoding, most: usize) -> Option<()> {
    // Some writers write no data for a page without values.
    if bytes.is_empty() {
        return Some(());
    }
    match encoding {
        Encoding::DELTA_BINARY_PACKED => delta::check_numbers(bytes, most),
        Encoding::DELTA_LENGTH_BYTE_ARRAY => delta::check_lengths(bytes, most),
        Encoding::DELTA_BYTE_ARRAY => delta::check_prefixes(bytes, most, TEXTS),
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
