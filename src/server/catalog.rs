//! The batches of the service, as bytes that are ready to be sent.
//!
//! Batches lie in order of their creation, as JSON objects joined by commas, in segments. A page, or
//! all of version 1's array, is then a few slices of memory between two brackets: nothing is
//! serialised, or even copied, to answer a request.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bytes::Bytes;
use chrono::{DateTime, NaiveDate};

/// Batches in a segment: large enough to be sent in few writes, small enough to be made in parallel.
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
    /// Makes a catalogue of batches created at `created` (microseconds since 1970, ascending), each
    /// written as a JSON object by `write`, on all cores.
    pub(super) fn prepare(created: Vec<i64>, write: impl Fn(usize, &mut Vec<u8>) + Sync) -> Self {
        debug_assert!(created.is_sorted());
        let count = created.len();
        let wanted = count.div_ceil(SEGMENT);
        let next = AtomicUsize::new(0);
        let make_some = || {
            let mut made = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= wanted {
                    return made;
                }
                let first = number * SEGMENT;
                let batches = first..count.min(first + SEGMENT);
                made.push((number, Segment::write(batches, &write)));
            }
        };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let mut segments: Vec<(usize, Segment)> = thread::scope(|scope| {
            // Where no more threads are to be had, those that are there do the work.
            let workers: Vec<_> = (1..cores.min(wanted))
                .map_while(|_| thread::Builder::new().spawn_scoped(scope, make_some).ok())
                .collect();
            let mut made = make_some();
            for worker in workers {
                let more = worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                made.extend(more);
            }
            made
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

    /// Returns the days of the first and the last batch that have one.
    pub(crate) fn span(&self) -> Option<(NaiveDate, NaiveDate)> {
        let day = |micros: &i64| Some(DateTime::from_timestamp_micros(*micros)?.date_naive());
        let first = self.created.iter().find_map(day)?;
        Some((first, self.created.iter().rev().find_map(day)?))
    }

    /// Returns which batches were created on or after `start` and on or before `end`, both in
    /// seconds since 1970.
    pub(super) fn between(&self, start: Option<i64>, end: Option<i64>) -> Range<usize> {
        let micros = |second: i64| second.saturating_mul(1_000_000);
        let first = start.map_or(0, |start| {
            self.created
                .partition_point(|&created| created < micros(start))
        });
        let past = end.map_or(self.created.len(), |end| {
            self.created
                .partition_point(|&created| created <= micros(end))
        });
        // A start after the end holds nothing, and is no error.
        first..past.max(first)
    }

    /// Returns the objects of `batches`, joined by commas, as slices to be sent one after another.
    pub(super) fn slices(&self, batches: Range<usize>) -> Vec<Bytes> {
        let mut slices = Vec::with_capacity(2 * (batches.len() / SEGMENT + 2));
        let mut first = batches.start;
        while first < batches.end {
            if !slices.is_empty() {
                slices.push(Bytes::from_static(b","));
            }
            let number = first / SEGMENT;
            let past = batches.end.min((number + 1) * SEGMENT);
            let inside = first - number * SEGMENT..past - number * SEGMENT;
            slices.push(self.segments[number].slice(inside));
            first = past;
        }
        slices
    }

    /// Returns the objects of `batches`, in that order, joined by commas.
    pub(super) fn gather(&self, batches: &[usize]) -> Bytes {
        let objects: Vec<Bytes> = batches.iter().map(|&batch| self.object(batch)).collect();
        Bytes::from(objects.join(&b','))
    }

    /// Returns how long that is.
    pub(super) fn gathered_len(&self, batches: &[usize]) -> u64 {
        let objects: usize = batches.iter().map(|&batch| self.object(batch).len()).sum();
        (objects + batches.len().saturating_sub(1)) as u64
    }

    fn object(&self, batch: usize) -> Bytes {
        let place = batch % SEGMENT;
        self.segments[batch / SEGMENT].slice(place..place + 1)
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

    /// Returns the objects at `places`, which is not empty, joined by commas.
    fn slice(&self, places: Range<usize>) -> Bytes {
        let start = match places.start {
            0 => 0,
            // One past the comma behind the object before.
            place => self.ends[place - 1] + 1,
        };
        self.text.slice(start..self.ends[places.end - 1])
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
    fn slices_join_to_the_same_text_wherever_they_are_cut() {
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
            for past in edges.into_iter().filter(|past| *past >= first) {
                let text = catalog.slices(first..past).concat();
                assert_eq!(String::from_utf8_lossy(&text), joined(first..past));
            }
        }
    }

    #[test]
    fn gathering_follows_the_order_asked_for() {
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
    fn an_empty_catalogue_answers_nothing() {
        let catalog = numbers(0);
        assert_eq!(catalog.span(), None);
        assert!(catalog.slices(catalog.between(None, None)).is_empty());
    }
}
