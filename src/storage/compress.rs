//! Compresses output on a thread of its own, so that batches are fetched and formatted meanwhile.

use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use flate2::write::GzEncoder;

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
pub(super) struct Compressor {
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
        }
        Ok(std::mem::take(match self {
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
        }))
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
        Ok(Some(Self {
            chunk: Vec::new(),
            worker: Worker::Idle(Box::new(encoder)),
            pending: 0,
        }))
    }

    /// Compresses `bytes`, and writes what is compressed already to `output`.
    pub(super) fn write(&mut self, bytes: &[u8], output: &mut impl Write) -> io::Result<()> {
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
    pub(super) fn flush(&mut self, output: &mut impl Write) -> io::Result<()> {
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
