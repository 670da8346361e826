//! Sorts batches in bounded memory: what does not fit is sorted in parts, which are merged from a temporary file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{
    self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _,
};
use std::ops::Range;
use std::sync::Arc;

use crate::batch::Batch;
use crate::batch::filter::Sorting;
use crate::error::{Failure, Kind};

/// Bytes of batches and keys that are sorted in memory.
const MEMORY: usize = 16 << 20;
/// Bytes to read at a time from each part, unless there are many parts.
const READ: usize = 256 << 10;
/// Bytes that all parts together may keep in memory.
const READ_ALL: usize = 16 << 20;

pub(super) struct Sorter {
    sorting: Sorting,
    /// The keys and texts of the batches that are in memory.
    keys: Vec<u8>,
    texts: String,
    entries: Vec<SortEntry>,
    /// The memory for them.
    memory: usize,
    parts: Option<Parts>,
    count: u64,
}

/// A batch in memory.
struct SortEntry {
    /// The start of the key, which decides most comparisons.
    start: u64,
    key: Range<u32>,
    text: Range<u32>,
}

/// Sorted parts in a temporary file, one after another.
struct Parts {
    file: File,
    ends: Vec<u64>,
}

impl Sorter {
    pub(super) fn new(sorting: Sorting) -> Self {
        Self {
            sorting,
            keys: Vec::new(),
            // Without growing, which would move it.
            texts: String::with_capacity(MEMORY),
            entries: Vec::new(),
            memory: MEMORY,
            parts: None,
            count: 0,
        }
    }

    /// Returns the number of batches.
    pub(super) fn len(&self) -> u64 {
        self.count
    }

    pub(super) fn push(&mut self, batch: &Batch) -> Result<(), Failure> {
        let (key, text) = (self.keys.len(), self.texts.len());
        self.sorting.write_key(batch, &mut self.keys);
        self.texts.push_str(batch.text());
        let mut start = [0; 8];
        for (to, from) in start.iter_mut().zip(&self.keys[key..]) {
            *to = *from;
        }
        self.entries.push(SortEntry {
            start: u64::from_be_bytes(start),
            key: offset(key)..offset(self.keys.len()),
            text: offset(text)..offset(self.texts.len()),
        });
        self.count += 1;
        let used = self.keys.len() + self.texts.len() + self.entries.len() * size_of::<SortEntry>();
        if used > self.memory {
            self.spill().map_err(cannot_spill)?;
        }
        Ok(())
    }

    fn sort(&mut self) {
        let keys = &self.keys;
        let key = |entry: &SortEntry| &keys[entry.key.start as usize..entry.key.end as usize];
        self.entries.sort_unstable_by(|left, right| {
            let by_start = left.start.cmp(&right.start);
            by_start.then_with(|| key(left).cmp(key(right)))
        });
    }

    /// Writes what is in memory to the temporary file, sorted.
    fn spill(&mut self) -> io::Result<()> {
        self.sort();
        let parts = match &mut self.parts {
            Some(parts) => parts,
            None => self.parts.insert(Parts {
                file: tempfile::tempfile()?,
                ends: Vec::new(),
            }),
        };
        let mut writer = BufWriter::with_capacity(READ, &parts.file);
        for entry in self.entries.drain(..) {
            let key = &self.keys[entry.key.start as usize..entry.key.end as usize];
            let text = &self.texts[entry.text.start as usize..entry.text.end as usize];
            writer.write_all(&offset(key.len()).to_le_bytes())?;
            writer.write_all(&offset(text.len()).to_le_bytes())?;
            writer.write_all(key)?;
            writer.write_all(text.as_bytes())?;
        }
        writer.flush()?;
        drop(writer);
        let end = parts.file.stream_position()?;
        parts.ends.push(end);
        self.keys.clear();
        self.texts.clear();
        Ok(())
    }

    /// Passes up to `limit` batches to `take` in order; returns how many.
    pub(super) fn finish(
        mut self,
        limit: u64,
        mut take: impl FnMut(&Batch) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        if self.parts.is_some() {
            self.spill().map_err(cannot_spill)?;
            self.keys = Vec::new();
            self.texts = String::new();
            self.entries = Vec::new();
        }
        let taken = self.count.min(limit);
        let Some(parts) = self.parts.take() else {
            self.sort();
            let texts = Arc::new(self.texts);
            let entries = self.entries.iter();
            for entry in entries.take(usize::try_from(limit).unwrap_or(usize::MAX)) {
                let text = entry.text.start as usize..entry.text.end as usize;
                take(&read(&texts, text)?)?;
            }
            return Ok(taken);
        };
        let mut merged = MergedParts::new(&parts).map_err(cannot_spill)?;
        for _ in 0..taken {
            let text = merged.next().map_err(cannot_spill)?;
            let end = text.len();
            take(&read(&Arc::new(text), 0..end)?)?;
        }
        Ok(taken)
    }
}

/// Reads a batch that was valid, or accepted, when it was received.
fn read(texts: &Arc<String>, text: Range<usize>) -> Result<Batch, Failure> {
    let batch = match Batch::scan(texts, text.start) {
        Some((batch, length)) if length == text.len() => Some(batch),
        _ => Batch::read(&texts[text]).batch,
    };
    batch.ok_or_else(modified)
}

fn modified() -> Failure {
    Failure::new(Kind::Internal, "the temporary file was modified")
}

fn offset(position: usize) -> u32 {
    u32::try_from(position).expect("less than the memory for sorting and one batch")
}

fn cannot_spill(error: io::Error) -> Failure {
    Failure::new(Kind::Output, "cannot sort in a temporary file")
        .caused_by(error)
        .hint("check that the folder for temporary files has enough space, or choose another one with TMPDIR")
}

/// Reads all parts at once, the smallest key first.
struct MergedParts<'a> {
    parts: Vec<BufReader<Part<'a>>>,
    /// The first batch of each part that is not empty: its key, the number of its part, and its text.
    first: BinaryHeap<Reverse<(Vec<u8>, usize, String)>>,
}

/// A part of the file. All parts share the position in it.
struct Part<'a> {
    file: &'a File,
    position: u64,
    end: u64,
}

impl io::Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.seek(SeekFrom::Start(self.position))?;
        let length = self.file.take(self.end - self.position).read(buffer)?;
        self.position += length as u64;
        Ok(length)
    }
}

impl<'a> MergedParts<'a> {
    fn new(Parts { file, ends }: &'a Parts) -> io::Result<Self> {
        let capacity = (READ_ALL / ends.len().max(1)).min(READ);
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let parts = starts.zip(ends).map(|(position, &end)| {
            let part = Part {
                file,
                position,
                end,
            };
            BufReader::with_capacity(capacity, part)
        });
        let mut merged = Self {
            parts: parts.collect(),
            first: BinaryHeap::new(),
        };
        for number in 0..merged.parts.len() {
            merged.add_first(number)?;
        }
        Ok(merged)
    }

    /// Adds the next batch of a part, unless the part is empty.
    fn add_first(&mut self, number: usize) -> io::Result<()> {
        let part = &mut self.parts[number];
        if part.fill_buf()?.is_empty() {
            return Ok(());
        }
        let mut length = || {
            let mut bytes = [0; 4];
            part.read_exact(&mut bytes)?;
            io::Result::Ok(u32::from_le_bytes(bytes) as usize)
        };
        let (mut key, mut text) = (vec![0; length()?], vec![0; length()?]);
        part.read_exact(&mut key)?;
        part.read_exact(&mut text)?;
        let text = String::from_utf8(text).map_err(io::Error::other)?;
        self.first.push(Reverse((key, number, text)));
        Ok(())
    }

    /// Returns the text of the next batch. There must be one.
    fn next(&mut self) -> io::Result<String> {
        let Some(Reverse((_, number, text))) = self.first.pop() else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        self.add_first(number)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorts batches with these names by name, in `memory` bytes; returns their numbers.
    fn sorted(names: &[&str], memory: usize, limit: u64) -> Vec<String> {
        let mut sorter = Sorter {
            memory,
            ..Sorter::new(Sorting::parse("batch_name:desc").expect("a field"))
        };
        for (number, name) in names.iter().enumerate() {
            let text = format!(
                r#"{{"batch_id":"{number}","batch_name":"{name}","batch_creation_date":"2026-05-01T06:00:00Z","number_of_images":1,"warnings":true}}"#
            );
            let batch = Batch::read(&text).batch.expect("a batch");
            sorter.push(&batch).expect("memory");
        }
        assert_eq!(sorter.len(), names.len() as u64);
        let has_parts = names.len() > 1 && memory < MEMORY;
        assert_eq!(sorter.parts.is_some(), has_parts);
        let mut ids = Vec::new();
        let taken = sorter.finish(limit, |batch| {
            ids.push(batch.id().into_owned());
            Ok(())
        });
        assert_eq!(taken.expect("batches"), ids.len() as u64);
        ids
    }

    #[test]
    fn parts_are_merged_in_order() {
        let names = ["b", "é", "", "aa", "b", "a", "\u{1f331}"];
        let expected = ["6", "1", "0", "4", "3", "5", "2"];
        for memory in [MEMORY, 1, 500, 1000] {
            assert_eq!(sorted(&names, memory, u64::MAX), expected, "{memory}");
            assert_eq!(sorted(&names, memory, 3), expected[..3], "{memory}");
        }
        assert!(sorted(&[], 1, 10).is_empty());
    }
}
