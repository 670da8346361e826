//! Bytes in chunks of one size.
//!
//! A buffer that grows by doubling leaves holes in memory that little else fits into. Chunks fit anywhere: when
//! a column is written, the next row group uses its chunks.

use std::sync::mpsc::Receiver;

use bytes::Bytes;

pub(super) const CHUNK: usize = 16 << 10;

/// Chunks for the next row group until the first column of the one before is written.
const SPARE: usize = 128;

/// Provides chunks. While a row group is written, this waits for its chunks instead of allocating.
#[derive(Default)]
pub(super) struct ChunkPool {
    free: Vec<Bytes>,
    /// Receives the chunks of the row group before, column by column.
    written: Option<Receiver<Vec<Bytes>>>,
}

impl ChunkPool {
    /// Starts the next row group, which uses the chunks of this one as soon as they are written.
    pub(super) fn next_group(&mut self, written: Receiver<Vec<Bytes>>) {
        self.free.resize_with(SPARE, || vec![0; CHUNK].into());
        self.written = Some(written);
    }

    fn take(&mut self) -> Vec<u8> {
        loop {
            if let Some(chunk) = self.free.pop() {
                return chunk.into();
            }
            match self.written.as_ref().map(Receiver::recv) {
                Some(Ok(chunks)) => self.free = chunks,
                _ => return vec![0; CHUNK],
            }
        }
    }
}

/// Pieces of bytes, each in one chunk: in the next one if it does not fit into the rest of the last. A piece of more
/// than [`CHUNK`] bytes has one of its own size.
#[derive(Default)]
pub(super) struct ChunkedBytes {
    chunks: Vec<Vec<u8>>,
    /// The unused bytes of the last chunk.
    left: usize,
}

impl ChunkedBytes {
    #[inline]
    pub(super) fn push(&mut self, piece: &[u8], pool: &mut ChunkPool) {
        if self.left < piece.len() || self.chunks.is_empty() {
            self.next_chunk(piece.len(), pool);
        }
        if let Some(last) = self.chunks.last_mut() {
            let start = last.len() - self.left;
            last[start..][..piece.len()].copy_from_slice(piece);
            self.left -= piece.len();
        }
    }

    #[cold]
    fn next_chunk(&mut self, size: usize, pool: &mut ChunkPool) {
        let chunk = match size {
            ..=CHUNK => pool.take(),
            _ => vec![0; size],
        };
        self.left = chunk.len();
        self.chunks.push(chunk);
    }

    pub(super) fn chunks(&self) -> &[Vec<u8>] {
        &self.chunks
    }

    pub(super) fn into_chunks(self) -> Vec<Bytes> {
        self.chunks.into_iter().map(Bytes::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn bytes(chunks: usize, pool: &mut ChunkPool) -> ChunkedBytes {
        let mut bytes = ChunkedBytes::default();
        for _ in 0..chunks {
            bytes.push(&[b'x'; CHUNK], pool);
        }
        bytes
    }

    #[test]
    fn a_piece_is_in_one_chunk() {
        let (mut bytes, mut pool) = (ChunkedBytes::default(), ChunkPool::default());
        for size in [0, CHUNK - 1, 1, 0, 1, CHUNK + 1, 1] {
            bytes.push(&vec![b'x'; size], &mut pool);
        }
        let sizes: Vec<usize> = bytes.chunks().iter().map(Vec::len).collect();
        assert_eq!(sizes, [CHUNK, CHUNK, CHUNK + 1, CHUNK]);
    }

    #[test]
    fn the_next_group_waits_for_chunks_of_the_one_before() {
        let mut pool = ChunkPool::default();
        let (first, second) = (bytes(100, &mut pool), bytes(50, &mut pool));
        let pointers =
            |bytes: &ChunkedBytes| -> Vec<_> { bytes.chunks.iter().map(Vec::as_ptr).collect() };
        let old = [pointers(&first), pointers(&second)].concat();
        let (sender, written) = mpsc::channel();
        pool.next_group(written);
        let spare = bytes(SPARE, &mut pool);
        let writing = std::thread::spawn(move || {
            for column in [first, ChunkedBytes::default(), second] {
                sender.send(column.into_chunks()).expect("a receiver");
            }
        });
        let reused = bytes(150, &mut pool);
        writing.join().expect("written");
        assert!(pointers(&spare).iter().all(|chunk| !old.contains(chunk)));
        assert!(pointers(&reused).iter().all(|chunk| old.contains(chunk)));
        // All is written, so there is nothing to wait for.
        bytes(1, &mut pool);
        assert!(pool.free.is_empty());
    }
}
