//! Pages on their way to the parquet crate: those that it would take too much memory for are stopped.

use ::parquet::basic::Encoding;
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::schema::types::ColumnDescriptor;

use super::delta;
use super::node::Refused;

/// The most memory for the unpacked pages of all columns that are open at a time.
const HELD: u64 = 512 << 20;
/// The most memory for the page headers of a row group.
const HEADERS: u64 = 64 << 20;
/// What the texts of one page may take that share their beginnings.
const TEXTS: u64 = 224 << 20;

/// What the pages of a row group may still take.
pub(super) struct Room {
    held: u64,
    headers: u64,
}

impl Room {
    pub(super) fn new() -> Self {
        Self {
            held: HELD,
            headers: HEADERS,
        }
    }

    pub(super) fn take(&mut self, held: u64) -> Result<(), Refused> {
        let rest = self.held.checked_sub(held);
        self.held = rest.ok_or_else(|| {
            let why = format!("its pages unpack to more than {} MiB", HELD >> 20);
            Refused::Broken(why)
        })?;
        Ok(())
    }

    pub(super) fn keep(&mut self, header: u64) -> Result<(), Refused> {
        let rest = self.headers.checked_sub(header);
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
    /// Levels that pages of the first version begin with.
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
            ParquetError::General("a page does not hold what it says, or far too much".to_owned())
        })
    }
}

fn without_levels(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.get(usize::try_from(u32::from_le_bytes(*length)).ok()?..)
}

fn check(bytes: &[u8], encoding: Encoding, most: usize) -> Option<()> {
    // Some writers leave out what no value needs.
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
