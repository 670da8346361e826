//! Output with compression and checksums. Errors of every write, flush and finish are reported.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use super::escaping::Escapes;
use super::target::OutputTarget;
use crate::batch::digest::hexadecimal;
use crate::error::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

const BUFFER: usize = 128 * 1024;

pub(crate) struct EncodedOutput {
    encoder: Encoder,
    live: bool,
    /// A format writes the file itself, and not sequentially.
    is_written_by_path: bool,
}

/// Size and checksum of a published file or object; both are empty for a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

/// Counts and hashes the bytes written to the target.
struct HashingWriter {
    target: OutputTarget,
    bytes: u64,
    /// `None` if no checksum is needed.
    hash: Option<Sha256>,
}

impl HashingWriter {
    /// Counts and hashes a file that a format wrote itself.
    fn hash_file(&mut self) -> io::Result<()> {
        let Some(path) = self.target.local_path() else {
            return Ok(());
        };
        self.bytes = path.metadata()?.len();
        if let Some(hash) = &mut self.hash {
            let mut file = File::open(path)?;
            let mut chunk = vec![0; BUFFER];
            loop {
                let length = file.read(&mut chunk)?;
                if length == 0 {
                    break;
                }
                hash.update(&chunk[..length]);
            }
        }
        Ok(())
    }
}

impl Write for HashingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.target.write(bytes)?;
        self.bytes += written as u64;
        if let Some(hash) = &mut self.hash {
            hash.update(&bytes[..written]);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.flush()
    }
}

enum Encoder {
    Plain(BufWriter<HashingWriter>),
    Gzip(GzEncoder<BufWriter<HashingWriter>>),
    Zstd(zstd::Encoder<'static, BufWriter<HashingWriter>>),
}

impl EncodedOutput {
    pub(crate) fn new(target: OutputTarget, compression: Compression) -> io::Result<Self> {
        let live = target.is_stdout();
        let hashing = HashingWriter {
            target,
            bytes: 0,
            hash: None,
        };
        let buffer = BufWriter::with_capacity(BUFFER, hashing);
        let encoder = match compression {
            Compression::None => Encoder::Plain(buffer),
            Compression::Gzip => {
                Encoder::Gzip(GzEncoder::new(buffer, flate2::Compression::default()))
            }
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(buffer, 0)?;
                // Like the checksum of gzip: without it, a flipped bit could go unnoticed.
                encoder.include_checksum(true)?;
                Encoder::Zstd(encoder)
            }
        };
        Ok(Self {
            encoder,
            live,
            is_written_by_path: false,
        })
    }

    /// Returns the path of the file that will be published, for a format that writes it itself. Nothing else
    /// may be written then.
    pub(crate) fn hand_out(&mut self) -> io::Result<PathBuf> {
        self.is_written_by_path = true;
        self.hashing().target.prepare_local_file()?;
        let target = &self.hashing().target;
        let local_path = target.local_path().map(Path::to_owned);
        local_path.ok_or_else(|| {
            io::Error::other(format!(
                "{} is not a file, and this format needs one",
                target.name()
            ))
        })
    }

    /// Declares that the file returned by `hand_out` becomes a database.
    pub(crate) fn expect_database(&mut self) -> Result<(), Failure> {
        self.hashing().target.expect_database()
    }

    /// Adds the name of the target to an error, for a format that writes the file itself.
    pub(crate) fn blame(&self, error: io::Error) -> io::Error {
        let hashing = match &self.encoder {
            Encoder::Plain(buffer) => buffer.get_ref(),
            Encoder::Gzip(encoder) => encoder.get_ref().get_ref(),
            Encoder::Zstd(encoder) => encoder.get_ref().get_ref(),
        };
        hashing.target.annotated(error)
    }

    fn hashing(&mut self) -> &mut HashingWriter {
        match &mut self.encoder {
            Encoder::Plain(buffer) => buffer.get_mut(),
            Encoder::Gzip(encoder) => encoder.get_mut().get_mut(),
            Encoder::Zstd(encoder) => encoder.get_mut().get_mut(),
        }
    }

    /// Hashes the output. Must be called before the first write.
    pub(crate) fn hashed(mut self) -> Self {
        self.hashing().hash = Some(Sha256::new());
        self
    }

    /// Escapes control characters if the target is a terminal.
    pub(crate) fn escape_on_terminal(&mut self, escapes: Escapes) {
        if let Encoder::Plain(buffer) = &mut self.encoder {
            buffer.get_mut().target.escape_on_terminal(escapes);
        }
    }

    /// Returns whether a reader may be waiting for the output.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// Finishes the output and publishes the target.
    pub(crate) fn publish(self) -> Result<Published, Failure> {
        let published = FinishedOutput::publish(vec![self.seal()?])?;
        Ok(published.into_iter().next().unwrap_or_default())
    }

    /// Finishes the output and flushes it to disk.
    pub(crate) fn seal(self) -> Result<FinishedOutput, Failure> {
        let mut finished = self.end()?;
        finished.target.seal().map_err(Failure::from_output)?;
        Ok(finished)
    }

    fn end(self) -> Result<FinishedOutput, Failure> {
        let buffer = match self.encoder {
            Encoder::Plain(buffer) => Ok(buffer),
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Zstd(encoder) => encoder.finish(),
        };
        let hashing =
            buffer.and_then(|buffer| buffer.into_inner().map_err(io::IntoInnerError::into_error));
        let mut hashing = hashing.map_err(Failure::from_output)?;
        if self.is_written_by_path {
            hashing.hash_file().map_err(Failure::from_output)?;
        }
        let HashingWriter {
            target,
            bytes,
            hash,
        } = hashing;
        let sha256 = hash.map_or_else(String::new, |hash| hexadecimal(&hash.finalize()));
        Ok(FinishedOutput {
            target,
            published: Published { bytes, sha256 },
        })
    }
}

/// Complete output that is ready to be published.
pub(crate) struct FinishedOutput {
    target: OutputTarget,
    published: Published,
}

impl FinishedOutput {
    /// Publishes all of them, or none.
    pub(crate) fn publish(all: Vec<Self>) -> Result<Vec<Published>, Failure> {
        let (mut targets, mut published) = (Vec::new(), Vec::new());
        for finished in all {
            targets.push(finished.target);
            published.push(finished.published);
        }
        // After this, only publishing is left to do.
        for target in &mut targets {
            target.prepare_publish()?;
        }
        OutputTarget::publish(targets)?;
        Ok(published)
    }
}

impl Write for EncodedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encoder {
            Encoder::Plain(writer) => writer.write(bytes),
            Encoder::Gzip(writer) => writer.write(bytes),
            Encoder::Zstd(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            Encoder::Plain(writer) => writer.flush(),
            Encoder::Gzip(writer) => writer.flush(),
            Encoder::Zstd(writer) => writer.flush(),
        }
    }
}
