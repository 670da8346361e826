//! Output with compression and checksums. Errors of every write, flush and finish are reported.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};

use super::Storage;
use super::cloud::Upload;
use super::encode::{Compression, Encoder, SpareStates};
use super::location::Location;
use super::target::OutputTarget;
use super::temp_file::{PartFiles, TempFile};
use super::transaction::{Escapes, Transaction as _};
use crate::batch::digest::hexadecimal;
use crate::error::{Failure, Kind};

const BUFFER: usize = 128 * 1024;

/// An output that is being written. Its own methods return failures that name it; `Write` is for encoders,
/// whose errors [`EncodedOutput::failure`] converts.
pub(crate) struct EncodedOutput {
    buffer: BufWriter<CountingWriter>,
    /// `None` if the output is neither compressed nor hashed.
    encoder: Option<Encoder>,
    is_compressed: bool,
    /// Whether a reader may be waiting for the output.
    pub(crate) live: bool,
    /// A format writes the file itself, and not sequentially.
    is_written_by_path: bool,
}

/// Size and checksum of a published output.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published {
    pub(crate) bytes: u64,
    /// `None` unless it was requested.
    pub(crate) sha256: Option<String>,
}

/// Counts the bytes written to the target.
struct CountingWriter {
    target: OutputTarget,
    bytes: u64,
}

impl Write for CountingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.target.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.flush()
    }
}

impl Storage {
    /// Opens `location`, and fails now if it cannot be written.
    pub(crate) fn create(
        &self,
        location: &Location,
        compression: Compression,
        no_clobber: bool,
    ) -> Result<EncodedOutput, Failure> {
        let target = OutputTarget::open(location, no_clobber, true, None, self)?;
        EncodedOutput::new(target, compression, location.is_stdout(), &self.spare)
    }

    /// Opens one of many outputs that are written one after the other. For objects, errors show up later.
    pub(crate) fn create_part(
        &self,
        location: &Location,
        compression: Compression,
        no_clobber: bool,
        parts: Option<&mut PartFiles>,
    ) -> Result<EncodedOutput, Failure> {
        let target = OutputTarget::open(location, no_clobber, false, parts, self)?;
        EncodedOutput::new(target, compression, false, &self.spare)
    }

    /// Replaces a small file or object with `text`. It does not count as a result: a signal can still stop
    /// the run.
    pub(crate) fn replace(&self, location: &Location, text: &[u8]) -> Result<(), Failure> {
        match location {
            Location::Object(address) => {
                let mut upload = Upload::begin(address, false, false, self)?;
                let written = upload.write_all(text);
                written.map_err(|error| upload.failure(error))?;
                Upload::publish_all(vec![upload])
            }
            Location::File(path) => {
                let replaced = TempFile::replace(path, text, &self.cleanup);
                replaced.map_err(|error| {
                    let message = format!("cannot write to {}", location.name());
                    Failure::new(Kind::Output, message).caused_by(error).hint(
                        "check that there is enough space, and that you have write permission for its folder",
                    )
                })
            }
            _ => Ok(()),
        }
    }
}

impl EncodedOutput {
    fn new(
        target: OutputTarget,
        compression: Compression,
        live: bool,
        spare: &SpareStates,
    ) -> Result<Self, Failure> {
        let is_compressed = compression != Compression::None;
        let encoder = is_compressed.then(|| Encoder::new(compression, spare));
        let encoder = encoder.transpose();
        let encoder = encoder.map_err(|error| Failure::from_output(target.name(), error))?;
        let counting = CountingWriter { target, bytes: 0 };
        Ok(Self {
            buffer: BufWriter::with_capacity(BUFFER, counting),
            encoder,
            is_compressed,
            live,
            is_written_by_path: false,
        })
    }

    /// Returns the path of the file that will be published, for a format that writes it itself. Nothing else
    /// may be written then.
    pub(crate) fn write_by_path(&mut self) -> Result<PathBuf, Failure> {
        self.is_written_by_path = true;
        let target = &mut self.counting().target;
        let path = target.write_by_path().map(|path| path.map(Path::to_owned));
        let path = path.and_then(|path| {
            path.ok_or_else(|| io::Error::other("it is not a file, and this format needs one"))
        });
        path.map_err(|error| target.failure(error))
    }

    /// Declares that the file is a database.
    pub(crate) fn expect_database(&mut self) -> Result<(), Failure> {
        self.counting().target.expect_database()
    }

    /// Converts an error of writing this output to a message for the user.
    pub(crate) fn failure(&mut self, error: io::Error) -> Failure {
        self.counting().target.failure(error)
    }

    fn counting(&mut self) -> &mut CountingWriter {
        self.buffer.get_mut()
    }

    /// Hashes the output. Must be called before the first write.
    pub(crate) fn hashed(mut self) -> Self {
        let encoder = self.encoder.take().unwrap_or_else(Encoder::stored);
        self.encoder = Some(encoder.hashed());
        self
    }

    /// Escapes control characters if the target is a terminal.
    pub(crate) fn escape_on_terminal(&mut self, escapes: Escapes) {
        if !self.is_compressed {
            self.counting().target.escape_on_terminal(escapes);
        }
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Write::write_all(self, bytes).map_err(|error| self.failure(error))
    }

    /// For `write!`.
    pub(crate) fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result<(), Failure> {
        Write::write_fmt(self, text).map_err(|error| self.failure(error))
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Write::flush(self).map_err(|error| self.failure(error))
    }

    /// Finishes the output and publishes the target.
    pub(crate) fn publish(self) -> Result<Published, Failure> {
        let published = FinishedOutput::publish(vec![self.seal()?])?;
        Ok(published.into_iter().next().unwrap_or_default())
    }

    /// Finishes the output and flushes it to disk.
    pub(crate) fn seal(mut self) -> Result<FinishedOutput, Failure> {
        let sha256 = match self.finish() {
            Ok(sha256) => sha256,
            Err(error) => return Err(self.failure(error)),
        };
        // Nothing is left in the buffer.
        let (CountingWriter { target, bytes }, _) = self.buffer.into_parts();
        Ok(FinishedOutput {
            target,
            published: Published { bytes, sha256 },
        })
    }

    /// Writes all that is left; returns the checksum, if it is wanted.
    fn finish(&mut self) -> io::Result<Option<String>> {
        let sha256 = match &mut self.encoder {
            Some(encoder) => encoder.finish(&mut self.buffer)?,
            None => None,
        };
        self.buffer.flush()?;
        let sha256 = if self.is_written_by_path {
            self.measure_file(sha256.is_some())?
        } else {
            sha256
        };
        self.counting().target.seal()?;
        Ok(sha256)
    }

    /// Counts and, if wanted, hashes the bytes of a file that a format wrote itself.
    fn measure_file(&mut self, is_hashed: bool) -> io::Result<Option<String>> {
        let CountingWriter { target, bytes } = self.counting();
        let Some(path) = target.write_by_path()? else {
            return Ok(None);
        };
        *bytes = path.metadata()?.len();
        is_hashed.then(|| hash_file(path)).transpose()
    }
}

fn hash_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Context::new(&SHA256);
    let mut chunk = vec![0; BUFFER];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hexadecimal(hash.finish().as_ref())),
            length => hash.update(&chunk[..length]),
        }
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
            target.prepare()?;
        }
        OutputTarget::commit(targets)?;
        Ok(published)
    }
}

impl Write for EncodedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encoder {
            None => self.buffer.write(bytes),
            Some(encoder) => {
                encoder.write(bytes, &mut self.buffer)?;
                Ok(bytes.len())
            }
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.encoder {
            None => self.buffer.write_all(bytes),
            Some(encoder) => encoder.write(bytes, &mut self.buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(encoder) = &mut self.encoder {
            encoder.flush(&mut self.buffer)?;
        }
        self.buffer.flush()
    }
}
