//! The batches of the server, as bytes that are ready to send.
//!
//! Batches are stored in order of creation, as JSON objects joined by commas, in segments. A page, or the
//! whole array of version 1, is then a few slices of memory between two brackets. A response needs no
//! serialisation and no copy.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bytes::Bytes;
use chrono::{DateTime, NaiveDate};

/// Batches per segment: large enough for few writes, small enough to build segments in parallel.
const SEGMENT: usize = 4096;

#[derive(Default, PartialEq, Eq)]
pub(crate) struct Catalog {
    segments: Vec<Segment>,
    /// When each batch was created, in microseconds since 1970, ascending.
    created: Vec<i64>,
}

#[derive(PartialEq, Eq)]
struct Segment {
    /// The objects, joined by commas.
    text: Bytes,
    /// Where each object ends.
    ends: Vec<usize>,
}

impl Catalog {
    /// Builds a catalogue of batches created at `created` (microseconds since 1970, ascending), on all
    /// cores. `write` writes the JSON object of each.
    pub(super) fn prepare(created: Vec<i64>, write: impl Fn(usize, &mut Vec<u8>) + Sync) -> Self {
        debug_assert!(created.is_sorted());
        let count = created.len();
        let segment_count = count.div_ceil(SEGMENT);
        let next = AtomicUsize::new(0);
        let write_segments = || {
            let mut written = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= segment_count {
                    return written;
                }
                let first = number * SEGMENT;
                let batches = first..count.min(first + SEGMENT);
                written.push((number, Segment::write(batches, &write)));
            }
        };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let mut segments: Vec<(usize, Segment)> = thread::scope(|scope| {
            // If no more threads can be started, the existing ones do the work.
            let start = |_| {
                thread::Builder::new()
                    .spawn_scoped(scope, write_segments)
                    .ok()
            };
            let workers: Vec<_> = (1..cores.min(segment_count)).map_while(start).collect();
            let mut written = write_segments();
            for worker in workers {
                let more = worker.join();
                written.extend(more.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            written
        });
        segments.sort_unstable_by_key(|&(number, _)| number);
        Self {
            segments: segments.into_iter().map(|(_, segment)| segment).collect(),
            created,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.created.len()
    }

    /// Returns the days of the first and the last batch with a creation date.
    pub(crate) fn span(&self) -> Option<(NaiveDate, NaiveDate)> {
        let day = |micros: &i64| Some(DateTime::from_timestamp_micros(*micros)?.date_naive());
        let first = self.created.iter().find_map(day)?;
        Some((first, self.created.iter().rev().find_map(day)?))
    }

    /// Returns the batches created on or after `start` and on or before `end`, both in seconds since 1970.
    pub(super) fn between(&self, start: Option<i64>, end: Option<i64>) -> Range<usize> {
        let micros = |second: i64| second.saturating_mul(1_000_000);
        let created = &self.created;
        let first = start.map_or(0, |start| {
            created.partition_point(|&created| created < micros(start))
        });
        let end_index = end.map_or(created.len(), |end| {
            created.partition_point(|&created| created <= micros(end))
        });
        // A start after the end selects nothing; it is not an error.
        first..end_index.max(first)
    }

    /// Returns the objects of `batches`, joined by commas, as consecutive slices.
    pub(super) fn slices(&self, batches: Range<usize>) -> Vec<Bytes> {
        let mut slices = Vec::with_capacity(2 * (batches.len() / SEGMENT + 2));
        let mut first = batches.start;
        while first < batches.end {
            if !slices.is_empty() {
                slices.push(Bytes::from_static(b","));
            }
            let number = first / SEGMENT;
            let end_index = batches.end.min((number + 1) * SEGMENT);
            let inside = first - number * SEGMENT..end_index - number * SEGMENT;
            slices.push(self.segments[number].slice(inside));
            first = end_index;
        }
        slices
    }

    /// Returns the objects of `batches`, in that order, joined by commas.
    pub(super) fn gather(&self, batches: &[usize]) -> Bytes {
        let objects: Vec<Bytes> = batches.iter().map(|&batch| self.object(batch)).collect();
        Bytes::from(objects.join(&b','))
    }

    /// Returns the length of [`gather`](Self::gather) in bytes.
    pub(super) fn gathered_len(&self, batches: &[usize]) -> u64 {
        let objects: usize = batches.iter().map(|&batch| self.object(batch).len()).sum();
        (objects + batches.len().saturating_sub(1)) as u64
    }

    fn object(&self, batch: usize) -> Bytes {
        let position = batch % SEGMENT;
        self.segments[batch / SEGMENT].slice(position..position + 1)
    }
}

impl Segment {
    fn write(batches: Range<usize>, write: impl Fn(usize, &mut Vec<u8>)) -> Self {
        let mut text = Vec::new();
        let mut ends = Vec::with_capacity(batches.len());
        for batch in batches {
            if !text.is_empty() {
                text.push(b',');
            }
            write(batch, &mut text);
            ends.push(text.len());
        }
        text.shrink_to_fit();
        Self {
            text: Bytes::from(text),
            ends,
        }
    }

    /// Returns the objects at `positions`, which must not be empty, joined by commas.
    fn slice(&self, positions: Range<usize>) -> Bytes {
        let start = match positions.start {
            0 => 0,
            // Skip the comma after the previous object.
            position => self.ends[position - 1] + 1,
        };
        self.text.slice(start..self.ends[positions.end - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// One batch a second, each written as its own number.
    fn numbers(count: usize) -> Catalog {
        let created = (0_i64..)
            .take(count)
            .map(|number| number * 1_000_000)
            .collect();
        Catalog::prepare(created, |number, text| {
            write!(text, "{number}").expect("memory");
        })
    }

    fn joined(batches: impl Iterator<Item = usize>) -> String {
        batches
            .map(|number| number.to_string())
            .collect::<Vec<_>>()
            .join(",")
    }

    #[test]
    fn slices_join_to_the_same_text_for_any_range() {
        let catalog = numbers(2 * SEGMENT + 5);
        let edges = [
            0,
            1,
            SEGMENT - 1,
            SEGMENT,
            SEGMENT + 1,
            2 * SEGMENT,
            2 * SEGMENT + 5,
        ];
        for first in edges {
            for end in edges.into_iter().filter(|end| *end >= first) {
                let text = catalog.slices(first..end).concat();
                assert_eq!(String::from_utf8_lossy(&text), joined(first..end));
            }
        }
    }

    #[test]
    fn gathering_keeps_the_requested_order() {
        let catalog = numbers(SEGMENT + 3);
        let order = [SEGMENT, 2, SEGMENT + 2, 2];
        assert_eq!(catalog.gather(&order), joined(order.into_iter()));
        assert_eq!(
            catalog.gathered_len(&order),
            catalog.gather(&order).len() as u64
        );
        assert_eq!(catalog.gathered_len(&[]), 0);
    }

    #[test]
    fn both_bounds_are_inclusive() {
        let catalog = numbers(10);
        assert_eq!(catalog.between(Some(2), Some(4)), 2..5);
        assert_eq!(catalog.between(None, Some(0)), 0..1);
        assert_eq!(catalog.between(Some(9), None), 9..10);
        assert_eq!(catalog.between(None, None), 0..10);
        assert!(catalog.between(Some(5), Some(3)).is_empty());
    }

    #[test]
    fn an_empty_catalogue_has_no_slices() {
        let catalog = numbers(0);
        assert_eq!(catalog.span(), None);
        assert!(catalog.slices(catalog.between(None, None)).is_empty());
    }
}
