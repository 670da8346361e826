//! Compresses output on a thread of its own, so that batches are fetched and formatted meanwhile.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};

use flate2::{Compress, Crc, FlushCompress};
use parking_lot::Mutex;

use crate::terminal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

/// Bytes to compress at a time.
const CHUNK: usize = 64 * 1024;
/// Maximum number of chunks that wait to be compressed.
const MAX_WAITING: usize = 8;
/// On batches, level 1 is much faster than the default level 3, and its output has about the same size.
const ZSTD_LEVEL: i32 = 1;
/// Deflate, no name, no time, default level, unknown system: the same bytes on every machine.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// Room for compressed bytes. It decides where deflate pauses, and so the bytes of large output.
const GZIP_ROOM: usize = 32 * 1024;

/// The states of finished outputs, for the next ones. A state is large: a new one for each file of a lake, with
/// small objects between them, would fragment the heap.
#[derive(Clone, Default)]
pub(super) struct SpareStates(Arc<Mutex<Vec<Compress>>>);

/// Compresses chunks in order. What it returns must be written in the same order.
pub(crate) struct Compressor {
    /// Not compressed yet.
    chunk: Vec<u8>,
    worker: Worker,
    /// Number of steps whose result was not received yet.
    pending: usize,
    spare: SpareStates,
}

/// Small output is compressed without a thread.
enum Worker {
    Idle(Box<Encoder>),
    Running(SyncSender<CompressStep>, Receiver<io::Result<Vec<u8>>>),
    Ended,
}

enum CompressStep {
    Compress(Vec<u8>),
    Flush,
    Finish,
}

impl CompressStep {
    fn input(&self) -> (&[u8], FlushCompress) {
        match self {
            Self::Compress(bytes) => (bytes, FlushCompress::None),
            Self::Flush => (&[], FlushCompress::Sync),
            Self::Finish => (&[], FlushCompress::Finish),
        }
    }
}

enum Encoder {
    Gzip {
        deflate: Compress,
        /// `None` if the header is not written yet.
        crc: Option<Crc>,
    },
    Zstd(zstd::Encoder<'static, Vec<u8>>),
    /// Without a header and a checksum.
    Deflate(Compress),
}

impl Encoder {
    /// Does one step; returns what is compressed.
    fn run(&mut self, step: &CompressStep) -> io::Result<Vec<u8>> {
        let encoder = match self {
            Self::Gzip { deflate, crc } => return gzip(deflate, crc, step),
            Self::Deflate(state) => return deflate(state, step),
            Self::Zstd(encoder) => encoder,
        };
        match step {
            CompressStep::Compress(bytes) => encoder.write_all(bytes)?,
            CompressStep::Flush => encoder.flush()?,
            CompressStep::Finish => encoder.do_finish()?,
        }
        Ok(std::mem::take(encoder.get_mut()))
    }

    /// Keeps the state for the next output.
    fn recycle(self, spare: &SpareStates) {
        if let Self::Gzip { mut deflate, .. } = self {
            deflate.reset();
            spare.0.lock().push(deflate);
        }
    }
}

/// Does one step, with the header before the first one and the checksum after the last one.
fn gzip(state: &mut Compress, crc: &mut Option<Crc>, step: &CompressStep) -> io::Result<Vec<u8>> {
    let mut output = Vec::new();
    if crc.is_none() {
        output.extend(GZIP_HEADER);
    }
    let crc = crc.get_or_insert_default();
    let (mut bytes, flush) = step.input();
    crc.update(bytes);
    let mut piece = Vec::with_capacity(GZIP_ROOM);
    while !fill(state, &mut piece, &mut bytes, flush)? {
        output.append(&mut piece);
    }
    output.append(&mut piece);
    if matches!(step, CompressStep::Finish) {
        output.extend(crc.sum().to_le_bytes());
        output.extend(crc.amount().to_le_bytes());
    }
    Ok(output)
}

/// Does one step. The encoder of flate2 does not always flush everything.
fn deflate(state: &mut Compress, step: &CompressStep) -> io::Result<Vec<u8>> {
    let (mut bytes, flush) = step.input();
    let mut output = Vec::with_capacity(CHUNK / 4);
    while !fill(state, &mut output, &mut bytes, flush)? {
        output.reserve(CHUNK / 4);
    }
    Ok(output)
}

/// Compresses as much of `bytes` as there is room for in `output`. Returns whether that is everything.
fn fill(
    state: &mut Compress,
    output: &mut Vec<u8>,
    bytes: &mut &[u8],
    flush: FlushCompress,
) -> io::Result<bool> {
    let before = state.total_in();
    state.compress_vec(bytes, output, flush)?;
    let taken = usize::try_from(state.total_in() - before).unwrap_or(usize::MAX);
    *bytes = &bytes[taken..];
    // If there is room left, it has nothing more to write.
    Ok(bytes.is_empty() && output.len() < output.capacity())
}

impl Compressor {
    /// Returns `None` if nothing is to be compressed.
    pub(super) fn new(compression: Compression, spare: &SpareStates) -> io::Result<Option<Self>> {
        let encoder = match compression {
            Compression::None => return Ok(None),
            Compression::Gzip => {
                let known = spare.0.lock().pop();
                let new = || Compress::new(flate2::Compression::default(), false);
                Encoder::Gzip {
                    deflate: known.unwrap_or_else(new),
                    crc: None,
                }
            }
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                // Like the checksum of gzip: without it, a flipped bit could go unnoticed.
                encoder.include_checksum(true)?;
                Encoder::Zstd(encoder)
            }
        };
        Ok(Some(Self::with(encoder, spare.clone())))
    }

    /// Compresses for a zip archive.
    pub(crate) fn deflate(level: flate2::Compression) -> Self {
        let encoder = Encoder::Deflate(Compress::new(level, false));
        Self::with(encoder, SpareStates::default())
    }

    fn with(encoder: Encoder, spare: SpareStates) -> Self {
        Self {
            chunk: Vec::new(),
            worker: Worker::Idle(Box::new(encoder)),
            pending: 0,
            spare,
        }
    }

    /// Compresses `bytes`, and writes what is compressed already to `output`.
    pub(crate) fn write(&mut self, bytes: &[u8], output: &mut impl Write) -> io::Result<()> {
        self.chunk.extend_from_slice(bytes);
        if self.chunk.len() < CHUNK {
            return Ok(());
        }
        self.start()?;
        self.compress(output)?;
        let Worker::Running(_, results) = &self.worker else {
            return Ok(());
        };
        while let Ok(result) = results.try_recv() {
            self.pending -= 1;
            output.write_all(&result?)?;
        }
        Ok(())
    }

    /// Compresses everything, so that a reader can decompress it, and writes it to `output`.
    pub(crate) fn flush(&mut self, output: &mut impl Write) -> io::Result<()> {
        self.compress(output)?;
        self.run(CompressStep::Flush, output)?;
        self.receive_all(output)
    }

    /// Compresses everything, and writes it and the end to `output`.
    pub(super) fn finish(&mut self, output: &mut impl Write) -> io::Result<()> {
        self.compress(output)?;
        self.run(CompressStep::Finish, output)?;
        self.receive_all(output)
    }

    /// Compresses the chunk.
    fn compress(&mut self, output: &mut impl Write) -> io::Result<()> {
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK + CHUNK / 4));
        self.run(CompressStep::Compress(chunk), output)
    }

    fn run(&mut self, step: CompressStep, output: &mut impl Write) -> io::Result<()> {
        match &mut self.worker {
            Worker::Idle(encoder) => output.write_all(&encoder.run(&step)?),
            Worker::Running(steps, _) => {
                self.pending += 1;
                steps.send(step).map_err(|_| ended())
            }
            Worker::Ended => Err(ended()),
        }
    }

    /// Starts the thread, unless it is running.
    fn start(&mut self) -> io::Result<()> {
        if !matches!(self.worker, Worker::Idle(_)) {
            return Ok(());
        }
        let Worker::Idle(mut encoder) = std::mem::replace(&mut self.worker, Worker::Ended) else {
            return Ok(());
        };
        let (steps, receiver) = mpsc::sync_channel::<CompressStep>(MAX_WAITING);
        let (sender, results) = mpsc::channel();
        let spare = self.spare.clone();
        let work = move || {
            for step in receiver {
                // Without a receiver, the output is dropped.
                let _ = sender.send(encoder.run(&step));
            }
            encoder.recycle(&spare);
        };
        terminal::spawn("compress", work)?;
        self.worker = Worker::Running(steps, results);
        Ok(())
    }

    /// Waits for all results.
    fn receive_all(&mut self, output: &mut impl Write) -> io::Result<()> {
        if let Worker::Running(_, results) = &self.worker {
            while self.pending > 0 {
                let result = results.recv().map_err(|_| ended())?;
                self.pending -= 1;
                output.write_all(&result?)?;
            }
        }
        Ok(())
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        if let Worker::Idle(encoder) = std::mem::replace(&mut self.worker, Worker::Ended) {
            encoder.recycle(&self.spare);
        }
    }
}

fn ended() -> io::Error {
    io::Error::other("the thread that compresses has ended")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    /// Returns what can be decompressed, and whether that is all.
    fn decompressed(compression: Compression, bytes: &[u8]) -> (Vec<u8>, bool) {
        let mut text = Vec::new();
        let read = match compression {
            Compression::None => return (bytes.to_owned(), true),
            Compression::Gzip => flate2::read::GzDecoder::new(bytes).read_to_end(&mut text),
            Compression::Zstd => {
                zstd::Decoder::new(bytes).and_then(|mut decoder| decoder.read_to_end(&mut text))
            }
        };
        (text, read.is_ok())
    }

    #[test]
    fn chunks_are_compressed_in_order() {
        for compression in [Compression::Gzip, Compression::Zstd] {
            for size in [0, 1, CHUNK - 1, CHUNK, 40 * CHUNK + 7] {
                let letter = |place: usize| u8::try_from(place / 100 % 251).expect("a letter");
                let text: Vec<u8> = (0..size).map(letter).collect();
                let mut compressor = Compressor::new(compression, &SpareStates::default())
                    .expect("one")
                    .expect("one");
                let mut output = Vec::new();
                for piece in text.chunks(1000) {
                    compressor.write(piece, &mut output).expect("memory");
                }
                compressor.finish(&mut output).expect("memory");
                let is_idle = matches!(compressor.worker, Worker::Idle(_));
                assert_eq!(is_idle, size < CHUNK, "small output needs no thread");
                assert_eq!(decompressed(compression, &output), (text, true), "{size}");
                assert!(output.len() < 100 + size / 4, "{}", output.len());
            }
        }
    }

    #[test]
    fn a_used_state_compresses_like_a_new_one() {
        let mut random = fastrand::Rng::with_seed(1);
        let spare = SpareStates::default();
        let sizes = [0, 1, 5000, CHUNK - 1, 3 * CHUNK, 20 * CHUNK + 7];
        for (size, letters) in sizes.into_iter().flat_map(|size| [(size, 6), (size, 255)]) {
            let text: Vec<u8> = (0..size).map(|_| random.u8(0..letters)).collect();
            let level = flate2::Compression::default();
            let mut new = flate2::write::GzEncoder::new(Vec::new(), level);
            let mut output = Vec::new();
            let mut compressor = Compressor::new(Compression::Gzip, &spare)
                .expect("one")
                .expect("one");
            for piece in text.chunks(CHUNK) {
                compressor.write(piece, &mut output).expect("memory");
                new.write_all(piece).expect("memory");
            }
            for _ in 0..if size <= 5000 { 2 } else { 0 } {
                compressor.flush(&mut output).expect("memory");
                new.flush().expect("memory");
            }
            compressor.finish(&mut output).expect("memory");
            let new = new.finish().expect("memory");
            assert!(output == new, "{size} bytes of {letters} kinds");
        }
    }

    #[test]
    fn what_was_flushed_can_be_read() {
        for compression in [Compression::Gzip, Compression::Zstd] {
            let mut compressor = Compressor::new(compression, &SpareStates::default())
                .expect("one")
                .expect("one");
            let (mut output, mut text) = (Vec::new(), Vec::new());
            for size in [10, 3 * CHUNK, 10] {
                text.extend(vec![b'x'; size]);
                compressor
                    .write(&vec![b'x'; size], &mut output)
                    .expect("memory");
                compressor.flush(&mut output).expect("memory");
                assert_eq!(decompressed(compression, &output), (text.clone(), false));
            }
        }
    }

    #[test]
    fn deflated_pieces_can_be_concatenated() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut output, mut text) = (Vec::new(), Vec::new());
        for size in (0..4 * CHUNK).step_by(997) {
            let mut compressor = Compressor::deflate(flate2::Compression::fast());
            let piece: Vec<u8> = (0..size).map(|_| random.u8(b'a'..b'g')).collect();
            compressor.write(&piece, &mut output).expect("memory");
            compressor.flush(&mut output).expect("memory");
            text.extend(piece);
        }
        // An empty last block.
        output.extend([3, 0]);
        let mut read = Vec::new();
        let decoded = flate2::read::DeflateDecoder::new(&output[..]).read_to_end(&mut read);
        assert_eq!(decoded.expect("a last block"), text.len());
        assert!(read == text);
    }

    #[test]
    fn an_error_of_the_output_is_returned() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut compressor = Compressor::new(Compression::Gzip, &SpareStates::default())
            .expect("one")
            .expect("one");
        let written = compressor.write(&vec![b'x'; 2 * CHUNK], &mut Full);
        let error = written.and_then(|()| compressor.finish(&mut Full));
        let error = error.expect_err("no space");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
