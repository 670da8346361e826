//! Output with compression and checksums. Errors of every write, flush and finish are reported.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use super::Storage;
use super::cloud::Upload;
use super::escaping::Escapes;
use super::location::Location;
use super::target::OutputTarget;
use super::temp_file::{PartFiles, TempFile};
use super::transaction::Transaction as _;
use crate::batch::digest::hexadecimal;
use crate::error::{Failure, Kind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

const BUFFER: usize = 128 * 1024;

/// An output that is being written. Its own methods return failures that name it; `Write` is for encoders,
/// whose errors [`EncodedOutput::failure`] converts.
pub(crate) struct EncodedOutput {
    encoder: Encoder,
    live: bool,
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
        let Some(path) = self.target.write_by_path()? else {
            return Ok(());
        };
        self.bytes = path.metadata()?.len();
        if let Some(hash) = &mut self.hash {
            let mut file = File::open(path)?;
            let mut chunk = vec![0; BUFFER];
            loop {
                match file.read(&mut chunk)? {
                    0 => break,
                    length => hash.update(&chunk[..length]),
                }
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

impl Storage {
    /// Opens `location`, and fails now if it cannot be written.
    pub(crate) fn create(
        &self,
        location: &Location,
        compression: Compression,
        no_clobber: bool,
    ) -> Result<EncodedOutput, Failure> {
        let target = OutputTarget::open(location, no_clobber, true, None, self)?;
        EncodedOutput::new(target, compression, location.is_stdout())
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
        EncodedOutput::new(target, compression, false)
    }
}

impl Storage {
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
    fn new(target: OutputTarget, compression: Compression, live: bool) -> Result<Self, Failure> {
        let name = target.name().to_owned();
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
                let encoder = zstd::Encoder::new(buffer, 0).and_then(|mut encoder| {
                    // Like the checksum of gzip: without it, a flipped bit could go unnoticed.
                    encoder.include_checksum(true)?;
                    Ok(encoder)
                });
                Encoder::Zstd(encoder.map_err(|error| Failure::from_output(&name, error))?)
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
    pub(crate) fn write_by_path(&mut self) -> Result<PathBuf, Failure> {
        self.is_written_by_path = true;
        let target = &mut self.hashing().target;
        let path = target.write_by_path().map(|path| path.map(Path::to_owned));
        let path = path.and_then(|path| {
            path.ok_or_else(|| io::Error::other("it is not a file, and this format needs one"))
        });
        path.map_err(|error| target.failure(error))
    }

    /// Declares that the file is a database.
    pub(crate) fn expect_database(&mut self) -> Result<(), Failure> {
        self.hashing().target.expect_database()
    }

    /// Converts an error of writing this output to a message for the user.
    pub(crate) fn failure(&mut self, error: io::Error) -> Failure {
        self.hashing().target.failure(error)
    }

    fn buffer(&mut self) -> &mut BufWriter<HashingWriter> {
        match &mut self.encoder {
            Encoder::Plain(buffer) => buffer,
            Encoder::Gzip(encoder) => encoder.get_mut(),
            Encoder::Zstd(encoder) => encoder.get_mut(),
        }
    }

    fn hashing(&mut self) -> &mut HashingWriter {
        self.buffer().get_mut()
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
        if let Err(error) = self.finish() {
            return Err(self.failure(error));
        }
        let name = self.hashing().target.name().to_owned();
        let buffer = match self.encoder {
            Encoder::Plain(buffer) => Ok(buffer),
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Zstd(encoder) => encoder.finish(),
        };
        let buffer = buffer.map_err(|error| Failure::from_output(&name, error))?;
        // Nothing is left in the buffer.
        let (
            HashingWriter {
                target,
                bytes,
                hash,
            },
            _,
        ) = buffer.into_parts();
        let sha256 = hash.map(|hash| hexadecimal(&hash.finalize()));
        Ok(FinishedOutput {
            target,
            published: Published { bytes, sha256 },
        })
    }

    fn finish(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            Encoder::Plain(_) => {}
            Encoder::Gzip(encoder) => encoder.try_finish()?,
            Encoder::Zstd(encoder) => encoder.do_finish()?,
        }
        self.buffer().flush()?;
        if self.is_written_by_path {
            self.hashing().hash_file()?;
        }
        self.hashing().target.seal()
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

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    fn location(folder: &TempDir, name: &str) -> Location {
        Location::File(folder.path().join(name))
    }

    fn sha256(bytes: &[u8]) -> String {
        hexadecimal(&Sha256::digest(bytes))
    }

    #[test]
    fn the_size_and_the_checksum_are_those_of_the_published_file() {
        let text = "a line of text\n".repeat(30_000);
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let folder = TempDir::new().expect("a folder");
            let path = folder.path().join("a");
            let output = Storage::default().create(&location(&folder, "a"), compression, false);
            let mut output = output.expect("an output").hashed();
            assert!(!output.is_live(), "nobody reads a file that is not there");
            let (first, rest) = text.split_at(100_000);
            output.write_all(first.as_bytes()).expect("written");
            output.flush().expect("flushed");
            write!(output, "{rest}").expect("written");
            assert!(!path.exists());
            let published = output.publish().expect("published");
            let file = fs::read(&path).expect("a file");
            assert_eq!(published.bytes, file.len() as u64);
            assert_eq!(published.sha256, Some(sha256(&file)));
            let mut content = String::new();
            let read = match compression {
                Compression::None => (&file[..]).read_to_string(&mut content),
                Compression::Gzip => {
                    flate2::read::GzDecoder::new(&file[..]).read_to_string(&mut content)
                }
                Compression::Zstd => zstd::Decoder::new(&file[..])
                    .and_then(|mut decoder| decoder.read_to_string(&mut content)),
            };
            read.expect("a complete file");
            assert!(content == text, "{compression:?}");
        }
    }

    #[test]
    fn what_is_flushed_reaches_the_file() {
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let folder = TempDir::new().expect("a folder");
            let output = Storage::default().create(&location(&folder, "a"), compression, false);
            let mut output = output.expect("an output");
            output.write_all(b"text").expect("written");
            assert_eq!(output.hashing().bytes, 0, "{compression:?}: buffered");
            output.flush().expect("flushed");
            assert!(output.hashing().bytes > 3, "{compression:?}");
        }
    }

    #[test]
    fn a_file_that_a_format_writes_itself_is_hashed_as_well() {
        let folder = TempDir::new().expect("a folder");
        let text = vec![b'x'; BUFFER + 7];
        for is_hashed in [true, false] {
            let output =
                Storage::default().create(&location(&folder, "a"), Compression::None, false);
            let mut output = output.expect("an output");
            if is_hashed {
                output = output.hashed();
            }
            output.expect_database().expect("no journal");
            fs::write(output.write_by_path().expect("a path"), &text).expect("written");
            let published = output.publish().expect("published");
            assert_eq!(published.bytes, text.len() as u64);
            assert_eq!(published.sha256, is_hashed.then(|| sha256(&text)));
            assert!(fs::read(folder.path().join("a")).expect("a file") == text);
        }
        fs::write(folder.path().join("a-wal"), "changes").expect("a journal");
        let output = Storage::default().create(&location(&folder, "a"), Compression::None, false);
        assert!(output.expect("an output").expect_database().is_err());
    }

    #[test]
    fn outputs_are_published_together_or_not_at_all() {
        let folder = TempDir::new().expect("a folder");
        let storage = Storage::default();
        let outputs = |names: [&str; 2]| {
            let mut parts =
                PartFiles::new(folder.path(), &[], &storage.cleanup).expect("a list of parts");
            let outputs = names.map(|name| {
                let (location, parts) = (location(&folder, name), Some(&mut parts));
                let output = storage.create_part(&location, Compression::None, true, parts);
                let mut output = output.expect("an output");
                output.write_all(name.as_bytes()).expect("written");
                output.seal().expect("sealed")
            });
            (outputs.into(), parts)
        };
        let (all, parts) = outputs(["a", "b"]);
        fs::write(folder.path().join("b"), "other").expect("a file");
        let failure = FinishedOutput::publish(all).expect_err("one exists");
        assert!(failure.to_string().contains("created in the meantime"));
        drop(parts);
        assert!(!folder.path().join("a").exists());
        assert_eq!(storage.cleanup.published_files(), 0);
        let (all, _parts) = outputs(["c", "d"]);
        let published = FinishedOutput::publish(all).expect("published");
        let sizes: Vec<u64> = published.iter().map(|published| published.bytes).collect();
        assert_eq!(sizes, [1, 1]);
        for (name, content) in [("b", "other"), ("c", "c"), ("d", "d")] {
            let found = fs::read_to_string(folder.path().join(name)).expect(name);
            assert_eq!(found, content);
        }
    }

    #[test]
    fn a_replaced_file_is_not_the_result_of_the_run() {
        let folder = TempDir::new().expect("a folder");
        let storage = Storage::default();
        for text in ["one", "two"] {
            let replaced = storage.replace(&location(&folder, "a"), text.as_bytes());
            replaced.expect("replaced");
            let found = fs::read_to_string(folder.path().join("a")).expect("a file");
            assert_eq!(found, text);
        }
        let missing = location(&folder, "missing/a");
        let failure = storage.replace(&missing, b"one").expect_err("no folder");
        assert_eq!(failure.kind, Kind::Output);
        assert!(storage.cleanup.stop(), "a signal can still stop it");
    }

    #[test]
    fn a_stream_is_live_and_cannot_be_written_by_path() {
        let output = Storage::default().create(&Location::Stdout, Compression::None, false);
        let mut output = output.expect("standard output");
        assert!(output.is_live());
        let failure = output.write_by_path().expect_err("a stream");
        assert_eq!(failure.to_string(), "cannot write to standard output");
    }
}
