//! Compresses output on a thread of its own, so that batches are fetched and formatted meanwhile.

use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use flate2::write::GzEncoder;
use flate2::{Compress, FlushCompress};

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

/// Compresses chunks in order. What it returns must be written in the same order.
pub(crate) struct Compressor {
    /// Not compressed yet.
    chunk: Vec<u8>,
    worker: Worker,
    /// Number of steps whose result was not received yet.
    pending: usize,
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

enum Encoder {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::Encoder<'static, Vec<u8>>),
    /// Without a header and a checksum.
    Deflate(Compress),
}

impl Encoder {
    /// Does one step; returns what is compressed.
    fn run(&mut self, step: &CompressStep) -> io::Result<Vec<u8>> {
        match (&mut *self, step) {
            (Self::Gzip(encoder), CompressStep::Compress(bytes)) => encoder.write_all(bytes)?,
            (Self::Gzip(encoder), CompressStep::Flush) => encoder.flush()?,
            (Self::Gzip(encoder), CompressStep::Finish) => encoder.try_finish()?,
            (Self::Zstd(encoder), CompressStep::Compress(bytes)) => encoder.write_all(bytes)?,
            (Self::Zstd(encoder), CompressStep::Flush) => encoder.flush()?,
            (Self::Zstd(encoder), CompressStep::Finish) => encoder.do_finish()?,
            (Self::Deflate(state), step) => return deflate(state, step),
        }
        Ok(std::mem::take(match self {
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
            Self::Deflate(_) => return Ok(Vec::new()),
        }))
    }
}

/// Does one step. The encoder of flate2 does not always flush everything.
fn deflate(state: &mut Compress, step: &CompressStep) -> io::Result<Vec<u8>> {
    let (mut bytes, flush) = match step {
        CompressStep::Compress(bytes) => (&bytes[..], FlushCompress::None),
        CompressStep::Flush => (&[][..], FlushCompress::Sync),
        CompressStep::Finish => (&[][..], FlushCompress::Finish),
    };
    let mut output = Vec::new();
    loop {
        output.reserve(CHUNK / 4);
        let before = state.total_in();
        state.compress_vec(bytes, &mut output, flush)?;
        let taken = usize::try_from(state.total_in() - before).unwrap_or(usize::MAX);
        bytes = &bytes[taken..];
        // If there is room left, it has nothing more to write.
        if bytes.is_empty() && output.len() < output.capacity() {
            return Ok(output);
        }
    }
}

impl Compressor {
    /// Returns `None` if nothing is to be compressed.
    pub(super) fn new(compression: Compression) -> io::Result<Option<Self>> {
        let encoder = match compression {
            Compression::None => return Ok(None),
            Compression::Gzip => {
                Encoder::Gzip(GzEncoder::new(Vec::new(), flate2::Compression::default()))
            }
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                // Like the checksum of gzip: without it, a flipped bit could go unnoticed.
                encoder.include_checksum(true)?;
                Encoder::Zstd(encoder)
            }
        };
        Ok(Some(Self::with(encoder)))
    }

    /// Compresses for a zip archive.
    pub(crate) fn deflate(level: flate2::Compression) -> Self {
        Self::with(Encoder::Deflate(Compress::new(level, false)))
    }

    fn with(encoder: Encoder) -> Self {
        Self {
            chunk: Vec::new(),
            worker: Worker::Idle(Box::new(encoder)),
            pending: 0,
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
        let work = move || {
            for step in receiver {
                // Without a receiver, the output is dropped.
                let _ = sender.send(encoder.run(&step));
            }
        };
        thread::Builder::new()
            .name("compress".to_owned())
            .spawn(work)?;
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
                let mut compressor = Compressor::new(compression).expect("one").expect("one");
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
    fn what_was_flushed_can_be_read() {
        for compression in [Compression::Gzip, Compression::Zstd] {
            let mut compressor = Compressor::new(compression).expect("one").expect("one");
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
        let mut compressor = Compressor::new(Compression::Gzip)
            .expect("one")
            .expect("one");
        let written = compressor.write(&vec![b'x'; 2 * CHUNK], &mut Full);
        let error = written.and_then(|()| compressor.finish(&mut Full));
        let error = error.expect_err("no space");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
