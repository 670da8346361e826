//! Checks that the zip archive is laid out so that all readers see the same parts.

use std::io::{Read, Seek, SeekFrom};

use anyhow::{Context as _, Result, ensure};
use zip::{CompressionMethod, ZipArchive};

const AMBIGUOUS: &str =
    "the zip structure of the spreadsheet is ambiguous: readers could see different parts";

/// Checks the layout of the parts: some readers use the headers before the parts, and not the directory at
/// the end. A file that is not a zip archive is left to the reader.
pub(super) fn check(bytes: &mut (impl Read + Seek)) -> Result<()> {
    let Ok(mut archive) = ZipArchive::new(&mut *bytes) else {
        return Ok(());
    };
    let is_plain = archive.offset() == 0
        && archive.comment().is_empty()
        && !archive.has_duplicate_names()
        && !archive.has_overlapping_entries().context(AMBIGUOUS)?;
    ensure!(is_plain, AMBIGUOUS);
    let mut entries = Vec::new();
    for place in 0..archive.len() {
        let entry = archive.by_index_raw(place).context(AMBIGUOUS)?;
        let method = match entry.compression() {
            CompressionMethod::Stored => Some(0),
            CompressionMethod::Deflated => Some(8),
            _ => None,
        };
        ensure!(!entry.encrypted(), "the spreadsheet is encrypted");
        entries.push(Entry {
            start: entry.header_start(),
            in_directory: entry.central_header_start(),
            name: entry.name_raw().to_vec(),
            method: method.context("the spreadsheet uses an unknown compression")?,
            crc: entry.crc32(),
            packed: entry.compressed_size(),
            unpacked: entry.size(),
        });
    }
    entries.sort_by_key(|entry| entry.start);
    let directory = archive.central_directory_start();
    drop(archive);
    is_usual(bytes, &entries, directory).context(AMBIGUOUS)
}

/// Checks that the parts and the directory follow each other without gaps, and that the file ends with the end record of
/// the directory.
fn is_usual(bytes: &mut (impl Read + Seek), entries: &[Entry], directory: u64) -> Option<()> {
    let mut at = 0;
    for entry in entries {
        at = entry.check(bytes).filter(|_| entry.start == at)?;
    }
    let place = bytes.seek(SeekFrom::End(-22)).ok()?;
    let end: [u8; 22] = read_at(bytes, place)?;
    // A value that is too large for its field is in another record, before this one.
    let is_count = |count: u16| count == u16::MAX || usize::from(count) == entries.len();
    let is_at = |field: u32, expected: u64| field == u32::MAX || u64::from(field) == expected;
    let is_sound = at == directory
        && end.starts_with(b"PK\x05\x06\0\0\0\0")
        && is_count(short(&end, 8))
        && is_count(short(&end, 10))
        && is_at(long(&end, 12), place.wrapping_sub(directory))
        && is_at(long(&end, 16), directory);
    is_sound.then_some(())
}

/// A part, as the directory at the end describes it.
struct Entry {
    start: u64,
    in_directory: u64,
    name: Vec<u8>,
    method: u16,
    crc: u32,
    packed: u64,
    unpacked: u64,
}

impl Entry {
    /// Checks its entry in the directory, and the header before it or the descriptor after it; returns where it ends.
    fn check(&self, bytes: &mut (impl Read + Seek)) -> Option<u64> {
        let entry: [u8; 46] = read_at(bytes, self.in_directory)?;
        let header: [u8; 30] = read_at(bytes, self.start)?;
        let (flags, length) = (short(&header, 6), short(&header, 26));
        let mut name = vec![0; usize::from(length)];
        bytes.read_exact(&mut name).ok()?;
        // Sizes and checksum may be after the part, or in an extra field.
        let is_later = flags & 8 != 0;
        let is_size = |at: usize, size: u64| {
            long(&header, at) == u32::MAX || u64::from(long(&header, at)) == size
        };
        let is_sound = entry.starts_with(b"PK\x01\x02")
            && is_readable(short(&entry, 6), short(&entry, 8))
            && header.starts_with(b"PK\x03\x04")
            && is_readable(short(&header, 4), flags)
            && name == self.name
            && short(&header, 8) == self.method
            && (is_later
                || long(&header, 14) == self.crc
                    && is_size(18, self.packed)
                    && is_size(22, self.unpacked));
        let end = self.start + 30 + u64::from(length) + u64::from(short(&header, 28)) + self.packed;
        match is_sound {
            true if is_later => Some(end + self.check_descriptor(bytes, end)?),
            true => Some(end),
            false => None,
        }
    }

    /// Checks the descriptor after a part whose size was not known in advance; returns its length.
    fn check_descriptor(&self, bytes: &mut (impl Read + Seek), at: u64) -> Option<u64> {
        bytes.seek(SeekFrom::Start(at)).ok()?;
        let mut found = Vec::new();
        bytes.take(24).read_to_end(&mut found).ok()?;
        let sizes = [self.packed, self.unpacked];
        let short = sizes.map(|size| u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes());
        let forms = [sizes.map(u64::to_le_bytes).concat(), short.concat()];
        // With and without a mark.
        [&b"PK\x07\x08"[..], b""].iter().find_map(|mark| {
            let forms = forms.iter();
            let mut forms = forms.map(|sizes| [mark, &self.crc.to_le_bytes()[..], sizes].concat());
            let form = forms.find(|form| found.starts_with(form))?;
            Some(form.len() as u64)
        })
    }
}

/// Returns whether every reader can unpack a part with this version and these flags: compression level, sizes
/// after the part, and names in UTF-8 are the only flags allowed.
fn is_readable(version: u16, flags: u16) -> bool {
    version <= 63 && flags & !0x080e == 0
}

fn read_at<const N: usize>(bytes: &mut (impl Read + Seek), at: u64) -> Option<[u8; N]> {
    bytes.seek(SeekFrom::Start(at)).ok()?;
    let mut found = [0; N];
    bytes.read_exact(&mut found).ok()?;
    Some(found)
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from(short(bytes, at)) | u32::from(short(bytes, at + 2)) << 16
}
