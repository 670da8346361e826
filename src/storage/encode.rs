//! Compresses and hashes output on a thread of its own, so that batches are fetched and formatted meanwhile.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};

use flate2::{Compress, Crc, FlushCompress};
use parking_lot::Mutex;
use ring::digest::{Context, SHA256};

use crate::batch::digest::hexadecimal;
use crate::terminal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

/// Bytes to encode at a time.
const CHUNK: usize = 64 * 1024;
/// Maximum number of chunks that wait to be encoded.
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

/// Encodes chunks in order.
pub(crate) struct Encoder {
    /// Not encoded yet.
    chunk: Vec<u8>,
    worker: Worker,
    /// Number of steps whose result was not received yet.
    pending: usize,
    /// The checksum of all encoded bytes, after the end.
    sha256: Option<String>,
    spare: SpareStates,
}

/// Small output is encoded without a thread.
enum Worker {
    Idle(Box<Encoding>),
    Running(SyncSender<EncodeStep>, Receiver<io::Result<Encoded>>),
    Ended,
}

enum EncodeStep {
    Encode(Vec<u8>),
    Flush,
    Finish,
}

impl EncodeStep {
    fn input(&self) -> (&[u8], FlushCompress) {
        match self {
            Self::Encode(bytes) => (bytes, FlushCompress::None),
            Self::Flush => (&[], FlushCompress::Sync),
            Self::Finish => (&[], FlushCompress::Finish),
        }
    }
}

/// The result of a step.
struct Encoded {
    bytes: Vec<u8>,
    /// The checksum of all bytes, at the end, if it is wanted.
    sha256: Option<String>,
}

/// An encoding in progress.
struct Encoding {
    codec: Codec,
    /// `None` if no checksum is needed.
    hash: Option<Context>,
}

enum Codec {
    /// Not compressed.
    Stored,
    Gzip {
        deflate: Compress,
        /// `None` if the header is not written yet.
        crc: Option<Crc>,
    },
    Zstd(zstd::Encoder<'static, Vec<u8>>),
    /// Without a header and a checksum.
    Deflate(Compress),
}

impl Encoding {
    fn run(&mut self, step: EncodeStep) -> io::Result<Encoded> {
        let is_last = matches!(step, EncodeStep::Finish);
        let bytes = self.codec.run(step)?;
        if let Some(hash) = &mut self.hash {
            hash.update(&bytes);
        }
        let hash = self.hash.take_if(|_| is_last);
        let sha256 = hash.map(|hash| hexadecimal(hash.finish().as_ref()));
        Ok(Encoded { bytes, sha256 })
    }

    /// Keeps the state for the next output.
    fn recycle(self, spare: &SpareStates) {
        if let Codec::Gzip { mut deflate, .. } = self.codec {
            deflate.reset();
            spare.0.lock().push(deflate);
        }
    }
}

impl Codec {
    /// Does one step; returns what is encoded.
    fn run(&mut self, step: EncodeStep) -> io::Result<Vec<u8>> {
        let zstd = match (self, step) {
            (Self::Stored, EncodeStep::Encode(bytes)) => return Ok(bytes),
            (Self::Stored, _) => return Ok(Vec::new()),
            (Self::Gzip { deflate, crc }, step) => return gzip(deflate, crc, &step),
            (Self::Deflate(state), step) => return deflate(state, &step),
            (Self::Zstd(zstd), EncodeStep::Encode(bytes)) => {
                zstd.write_all(&bytes)?;
                zstd
            }
            (Self::Zstd(zstd), EncodeStep::Flush) => {
                zstd.flush()?;
                zstd
            }
            (Self::Zstd(zstd), EncodeStep::Finish) => {
                zstd.do_finish()?;
                zstd
            }
        };
        Ok(std::mem::take(zstd.get_mut()))
    }
}

/// Does one step, with the header before the first one and the checksum after the last one.
fn gzip(state: &mut Compress, crc: &mut Option<Crc>, step: &EncodeStep) -> io::Result<Vec<u8>> {
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
    if matches!(step, EncodeStep::Finish) {
        output.extend(crc.sum().to_le_bytes());
        output.extend(crc.amount().to_le_bytes());
    }
    Ok(output)
}

/// Does one step. The encoder of flate2 does not always flush everything.
fn deflate(state: &mut Compress, step: &EncodeStep) -> io::Result<Vec<u8>> {
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

impl Encoder {
    pub(super) fn new(compression: Compression, spare: &SpareStates) -> io::Result<Self> {
        let codec = match compression {
            Compression::None => return Ok(Self::stored()),
            Compression::Gzip => {
                let known = spare.0.lock().pop();
                let new = || Compress::new(flate2::Compression::default(), false);
                Codec::Gzip {
                    deflate: known.unwrap_or_else(new),
                    crc: None,
                }
            }
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                // Like the checksum of gzip: without it, a flipped bit could go unnoticed.
                encoder.include_checksum(true)?;
                Codec::Zstd(encoder)
            }
        };
        Ok(Self::with(codec, spare.clone()))
    }

    /// Leaves bytes as they are.
    pub(super) fn stored() -> Self {
        Self::with(Codec::Stored, SpareStates::default())
    }

    /// Compresses for a zip archive.
    pub(crate) fn deflate(level: flate2::Compression) -> Self {
        let codec = Codec::Deflate(Compress::new(level, false));
        Self::with(codec, SpareStates::default())
    }

    fn with(codec: Codec, spare: SpareStates) -> Self {
        Self {
            chunk: Vec::new(),
            worker: Worker::Idle(Box::new(Encoding { codec, hash: None })),
            pending: 0,
            sha256: None,
            spare,
        }
    }

    /// Hashes what is encoded from now on. Must be called before the first write.
    pub(super) fn hashed(mut self) -> Self {
        if let Worker::Idle(encoding) = &mut self.worker {
            encoding.hash = Some(Context::new(&SHA256));
        }
        self
    }

    /// Encodes `bytes`, and writes what is encoded already to `output`.
    pub(crate) fn write(&mut self, bytes: &[u8], output: &mut impl Write) -> io::Result<()> {
        self.chunk.extend_from_slice(bytes);
        if self.chunk.len() < CHUNK {
            return Ok(());
        }
        self.start()?;
        self.encode(output)?;
        let Worker::Running(_, results) = &self.worker else {
            return Ok(());
        };
        while let Ok(result) = results.try_recv() {
            self.pending -= 1;
            output.write_all(&result?.bytes)?;
        }
        Ok(())
    }

    /// Encodes everything, so that a reader can decode it, and writes it to `output`.
    pub(crate) fn flush(&mut self, output: &mut impl Write) -> io::Result<()> {
        self.encode(output)?;
        self.run(EncodeStep::Flush, output)?;
        self.receive_all(output)
    }

    /// Encodes everything, and writes it and the end to `output`. Returns the checksum, if it is wanted.
    pub(super) fn finish(&mut self, output: &mut impl Write) -> io::Result<Option<String>> {
        self.encode(output)?;
        self.run(EncodeStep::Finish, output)?;
        self.receive_all(output)?;
        Ok(self.sha256.take())
    }

    /// Encodes the chunk.
    fn encode(&mut self, output: &mut impl Write) -> io::Result<()> {
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK + CHUNK / 4));
        self.run(EncodeStep::Encode(chunk), output)
    }

    fn run(&mut self, step: EncodeStep, output: &mut impl Write) -> io::Result<()> {
        match &mut self.worker {
            Worker::Idle(encoding) => {
                let encoded = encoding.run(step)?;
                self.sha256 = encoded.sha256;
                output.write_all(&encoded.bytes)
            }
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
        let Worker::Idle(mut encoding) = std::mem::replace(&mut self.worker, Worker::Ended) else {
            return Ok(());
        };
        let (steps, receiver) = mpsc::sync_channel::<EncodeStep>(MAX_WAITING);
        let (sender, results) = mpsc::channel();
        let spare = self.spare.clone();
        let work = move || {
            for step in receiver {
                // Without a receiver, the output is dropped.
                let _ = sender.send(encoding.run(step));
            }
            encoding.recycle(&spare);
        };
        terminal::spawn("encode", work)?;
        self.worker = Worker::Running(steps, results);
        Ok(())
    }

    /// Waits for all results.
    fn receive_all(&mut self, output: &mut impl Write) -> io::Result<()> {
        if let Worker::Running(_, results) = &self.worker {
            while self.pending > 0 {
                let encoded = results.recv().map_err(|_| ended())??;
                self.pending -= 1;
                self.sha256 = encoded.sha256;
                output.write_all(&encoded.bytes)?;
            }
        }
        Ok(())
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        if let Worker::Idle(encoding) = std::mem::replace(&mut self.worker, Worker::Ended) {
            encoding.recycle(&self.spare);
        }
    }
}

fn ended() -> io::Error {
    io::Error::other("the thread that encodes the output has ended")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::Digest as _;
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
    fn chunks_are_encoded_and_hashed_in_order() {
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            for size in [0, 1, CHUNK - 1, CHUNK, 40 * CHUNK + 7] {
                let letter = |place: usize| u8::try_from(place / 100 % 251).expect("a letter");
                let text: Vec<u8> = (0..size).map(letter).collect();
                let encoder = Encoder::new(compression, &SpareStates::default());
                let mut encoder = encoder.expect("one").hashed();
                let mut output = Vec::new();
                for piece in text.chunks(1000) {
                    encoder.write(piece, &mut output).expect("memory");
                }
                let sha256 = encoder.finish(&mut output).expect("memory");
                let expected = hexadecimal(&sha2::Sha256::digest(&output));
                assert_eq!(sha256, Some(expected), "{compression:?} {size}");
                let is_idle = matches!(encoder.worker, Worker::Idle(_));
                assert_eq!(is_idle, size < CHUNK, "small output needs no thread");
                assert_eq!(decompressed(compression, &output), (text, true), "{size}");
                let is_small = output.len() < 100 + size / 4;
                assert_eq!(is_small, compression != Compression::None || size < 100);
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
            let mut encoder = Encoder::new(Compression::Gzip, &spare).expect("one");
            for piece in text.chunks(CHUNK) {
                encoder.write(piece, &mut output).expect("memory");
                new.write_all(piece).expect("memory");
            }
            for _ in 0..if size <= 5000 { 2 } else { 0 } {
                encoder.flush(&mut output).expect("memory");
                new.flush().expect("memory");
            }
            encoder.finish(&mut output).expect("memory");
            let new = new.finish().expect("memory");
            assert!(output == new, "{size} bytes of {letters} kinds");
        }
    }

    #[test]
    fn what_was_flushed_can_be_read() {
        for compression in [Compression::Gzip, Compression::Zstd] {
            let mut encoder = Encoder::new(compression, &SpareStates::default()).expect("one");
            let (mut output, mut text) = (Vec::new(), Vec::new());
            for size in [10, 3 * CHUNK, 10] {
                text.extend(vec![b'x'; size]);
                encoder
                    .write(&vec![b'x'; size], &mut output)
                    .expect("memory");
                encoder.flush(&mut output).expect("memory");
                assert_eq!(decompressed(compression, &output), (text.clone(), false));
            }
        }
    }

    #[test]
    fn deflated_pieces_can_be_concatenated() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut output, mut text) = (Vec::new(), Vec::new());
        for size in (0..4 * CHUNK).step_by(2503) {
            let mut encoder = Encoder::deflate(flate2::Compression::fast());
            let piece: Vec<u8> = (0..size).map(|_| random.u8(b'a'..b'g')).collect();
            encoder.write(&piece, &mut output).expect("memory");
            encoder.flush(&mut output).expect("memory");
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
        let mut encoder = Encoder::new(Compression::Gzip, &SpareStates::default()).expect("one");
        let written = encoder.write(&vec![b'x'; 2 * CHUNK], &mut Full);
        let error = written.and_then(|()| encoder.finish(&mut Full));
        let error = error.expect_err("no space");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
