//! Checks that the zip archive is laid out so that all readers see the same parts.

use std::io::{Read, Seek, SeekFrom};

use zip::ZipArchive;

/// Checks the layout of the parts: some readers use the headers before the parts, and not the directory at
/// the end. A file that is not a zip archive is left to the reader.
pub(super) fn check(bytes: &mut (impl Read + Seek)) -> Result<(), String> {
    let altered = || {
        "the zip structure of the spreadsheet is ambiguous: readers could see different parts"
            .to_owned()
    };
    let Ok(mut archive) = ZipArchive::new(&mut *bytes) else {
        return Ok(());
    };
    let overlaps = archive.has_overlapping_entries().map_err(|_| altered())?;
    let is_plain = archive.offset() == 0
        && archive.comment().is_empty()
        && !archive.has_duplicate_names()
        && !overlaps;
    if !is_plain {
        return Err(altered());
    }
    let mut entries = Vec::new();
    for place in 0..archive.len() {
        let entry = archive.by_index_raw(place).map_err(|_| altered())?;
        let method = match entry.compression() {
            zip::CompressionMethod::Stored => 0,
            zip::CompressionMethod::Deflated => 8,
            _ => return Err("the spreadsheet uses an unknown compression".to_owned()),
        };
        if entry.encrypted() {
            return Err("the spreadsheet is encrypted".to_owned());
        }
        entries.push(Entry {
            start: entry.header_start(),
            name: entry.name_raw().to_vec(),
            method,
            crc: entry.crc32(),
            packed: entry.compressed_size(),
            unpacked: entry.size(),
        });
    }
    entries.sort_by_key(|entry| entry.start);
    let directory = archive.central_directory_start();
    drop(archive);
    let mut at = 0;
    for entry in &entries {
        if entry.start != at {
            return Err(altered());
        }
        at = entry.check(bytes).ok_or_else(altered)?;
    }
    let ends_there = ends_with_directory(bytes, directory, entries.len()).map_err(|_| altered())?;
    let is_usual = check_directory(bytes, directory, entries.len()).is_some();
    if at == directory && ends_there && is_usual {
        Ok(())
    } else {
        Err(altered())
    }
}

/// Checks that no entry of the directory needs a feature that spreadsheet programs lack.
fn check_directory(bytes: &mut (impl Read + Seek), start: u64, entries: usize) -> Option<()> {
    bytes.seek(SeekFrom::Start(start)).ok()?;
    for _ in 0..entries {
        let mut header = [0; 46];
        bytes.read_exact(&mut header).ok()?;
        let short = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        if !header.starts_with(b"PK\x01\x02") || !is_usual(short(6), short(8)) {
            return None;
        }
        let rest: u16 = [28, 30, 32]
            .into_iter()
            .map(short)
            .fold(0, u16::saturating_add);
        bytes.seek(SeekFrom::Current(i64::from(rest))).ok()?;
    }
    Some(())
}

/// Returns whether every reader can unpack a part with this version and these flags: compression level, sizes
/// after the part, and names in UTF-8 are the only flags allowed.
fn is_usual(version: u16, flags: u16) -> bool {
    version <= 63 && flags & !0x080e == 0
}

/// Returns whether the file ends with the end record of the directory, which must point to the directory.
fn ends_with_directory(
    bytes: &mut (impl Read + Seek),
    directory: u64,
    entries: usize,
) -> std::io::Result<bool> {
    let mut end = [0; 22];
    let place = bytes.seek(SeekFrom::End(-22))?;
    bytes.read_exact(&mut end)?;
    let short = |at: usize| u16::from_le_bytes([end[at], end[at + 1]]);
    let long = |at: usize| u32::from(short(at)) | u32::from(short(at + 2)) << 16;
    // A value that is too large for its field is in another record, before this one.
    let is_count = |count: u16| count == u16::MAX || usize::from(count) == entries;
    let is_size = |size: u32| size == u32::MAX || directory + u64::from(size) == place;
    let is_start = |start: u32| start == u32::MAX || u64::from(start) == directory;
    Ok(end.starts_with(b"PK\x05\x06")
        && end[4..8] == [0; 4]
        && is_count(short(8))
        && is_count(short(10))
        && is_size(long(12))
        && is_start(long(16)))
}

/// A part, as the directory at the end describes it.
struct Entry {
    start: u64,
    name: Vec<u8>,
    method: u16,
    crc: u32,
    packed: u64,
    unpacked: u64,
}

impl Entry {
    /// Checks the header before it, or the descriptor after it; returns where it ends.
    fn check(&self, bytes: &mut (impl Read + Seek)) -> Option<u64> {
        bytes.seek(SeekFrom::Start(self.start)).ok()?;
        let mut header = [0; 30];
        bytes.read_exact(&mut header).ok()?;
        let short = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let long = |at: usize| u32::from(short(at)) | u32::from(short(at + 2)) << 16;
        let (flags, length) = (short(6), short(26));
        let mut name = vec![0; usize::from(length)];
        bytes.read_exact(&mut name).ok()?;
        // Sizes and checksum may be after the part, or in an extra field.
        let is_later = flags & 8 != 0;
        let size = |at: usize, size: u64| long(at) == u32::MAX || u64::from(long(at)) == size;
        let is_same = header.starts_with(b"PK\x03\x04")
            && is_usual(short(4), flags)
            && name == self.name
            && short(8) == self.method
            && (is_later
                || long(14) == self.crc && size(18, self.packed) && size(22, self.unpacked));
        let end = self.start + 30 + u64::from(length) + u64::from(short(28)) + self.packed;
        match is_same {
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
        let crc = self.crc.to_le_bytes();
        let short = |size: u64| u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes();
        let short = [crc, short(self.packed), short(self.unpacked)].concat();
        let long = [
            &crc[..],
            &self.packed.to_le_bytes(),
            &self.unpacked.to_le_bytes(),
        ]
        .concat();
        let mark = &b"PK\x07\x08"[..];
        let forms = [
            [mark, &long].concat(),
            [mark, &short].concat(),
            long.clone(),
            short.clone(),
        ];
        let form = forms.iter().find(|form| found.starts_with(form))?;
        Some(form.len() as u64)
    }
}
