//! Opens what is verified, as often as needed: a file, standard input, an object, a lake or a table.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use tempfile::SpooledTempFile;

use super::archive;
use super::lake::Lake;
use crate::batch::digest::hexadecimal;
use crate::batch::json::split;
use crate::error::{Failure, Kind};
use crate::formats::detect::{self, DetectedFormat, Packing};
use crate::formats::record::{FileInfo, ReadError, Record, RecordHandler, RecordPlace, Schema};
use crate::formats::{csv, json, parquet, sqlite, xlsx};
use crate::postgres::{TableAddress, TableReader};
use crate::storage::cloud::{self, ObjectAddress};
use crate::storage::is_table;
use crate::storage::temp_file::Scratch;
use crate::text;

/// Bytes that are examined to detect the format.
const HEAD: u64 = 256 * 1024;
/// Input from a pipe is kept in memory up to this size, and then in a temporary file.
const SPOOLED: usize = 8 << 20;

/// A source of records.
pub(crate) struct RecordSource {
    /// The name for messages, in quotes if it is a path.
    name: String,
    kind: SourceKind,
    /// Whether a file without a byte is known to be complete.
    may_be_empty: bool,
}

enum SourceKind {
    File(PathBuf),
    /// A temporary copy of an object.
    Fetched(Scratch),
    /// A copy of input that can be read only once.
    Spooled(Box<SpooledTempFile>),
    /// The files of a lake, as one set.
    Lake(Vec<PathBuf>),
    Table(Box<TableReader>),
}

impl SourceKind {
    /// Returns the path of the file; `None` if it is not one.
    fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Fetched(scratch) => Some(scratch.path()),
            Self::Spooled(_) | Self::Lake(_) | Self::Table(_) => None,
        }
    }
}

/// The size and hash of a file, without unpacking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileDigest {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

impl RecordSource {
    fn new(name: String, kind: SourceKind) -> Self {
        Self {
            name,
            kind,
            may_be_empty: false,
        }
    }

    /// Accepts a file without a byte as complete, regardless of its name.
    pub(crate) fn allow_empty(&mut self) {
        self.may_be_empty = true;
    }

    /// Opens the file at `path`, or standard input for `-`.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Self::spool("standard input".to_owned(), io::stdin().lock());
        }
        let text = path.to_string_lossy();
        if is_table(&text) {
            let address = TableAddress::parse(&text)?;
            let name = format!("`{address}`");
            let reader = Box::new(TableReader::new(address));
            return Ok(Self::new(name, SourceKind::Table(reader)));
        }
        let name = format!("`{}`", text::one_line(&text));
        if let Some(address) = ObjectAddress::parse(path)? {
            let kind = SourceKind::Fetched(cloud::download(&address)?);
            return Ok(Self::new(name, kind));
        }
        if let Some(lake) = Lake::find(path)? {
            return Ok(Self::new(name, SourceKind::Lake(lake.files()?)));
        }
        let refuse = |error: io::Error| {
            let hint = match error.kind() {
                io::ErrorKind::NotFound => "check the name of the file",
                _ => "check the permissions of the file",
            };
            Failure::new(Kind::Usage, format!("cannot read {name}"))
                .caused_by(error)
                .hint(hint)
        };
        let file = File::open(path).map_err(refuse)?;
        let metadata = file.metadata().map_err(refuse)?;
        if !metadata.is_file() {
            return Self::spool(name, file);
        }
        let kind = SourceKind::File(path.to_owned());
        Ok(Self::new(name, kind))
    }

    /// Returns the table; `None` if it is not one.
    pub(crate) fn as_table(&mut self) -> Option<&mut TableReader> {
        match &mut self.kind {
            SourceKind::Table(reader) => Some(reader),
            _ => None,
        }
    }

    fn spool(name: String, mut from: impl Read) -> Result<Self, Failure> {
        let mut spooled = SpooledTempFile::new(SPOOLED);
        io::copy(&mut from, &mut spooled).map_err(|error| {
            Failure::new(Kind::Usage, format!("cannot read {name}"))
                .caused_by(error)
                .hint(
                    "it is copied to a temporary file first: check that there is enough disk space",
                )
        })?;
        let kind = SourceKind::Spooled(Box::new(spooled));
        Ok(Self::new(name, kind))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Passes each record to `each`. Cells without a header are those of `layout`.
    pub(crate) fn read(
        &mut self,
        layout: Option<&[usize]>,
        each: &mut RecordHandler<'_>,
    ) -> Result<FileInfo, Failure> {
        if let SourceKind::Lake(files) = &self.kind {
            return read_lake(files, layout, each);
        }
        let name = self.name.clone();
        self.read_detected(layout, each)
            .map_err(|error| error.into_failure(&name))
    }

    /// Returns the files of a lake; `None` if it is not one.
    pub(crate) fn lake(&self) -> Option<&[PathBuf]> {
        match &self.kind {
            SourceKind::Lake(files) => Some(files),
            _ => None,
        }
    }

    fn read_detected(
        &mut self,
        layout: Option<&[usize]>,
        each: &mut RecordHandler<'_>,
    ) -> Result<FileInfo, ReadError> {
        if let SourceKind::Table(reader) = &self.kind {
            return read_table(reader, each);
        }
        let extension = self.kind.path().and_then(detect::extension);
        let may_be_empty = self.may_be_empty || self.kind.path().is_some_and(detect::may_be_empty);
        let (head, rest) = peek(self.bytes()?)?;
        if head.is_empty() && !may_be_empty {
            return Err(ReadError::cut_short("it has no bytes"));
        }
        if detect::is_database(&head) {
            drop(rest);
            if let Some(path) = self.kind.path() {
                sqlite::read::check_length(path, &head)?;
            }
            return match self.kind.path() {
                Some(path) if archive::is_archive(path) => archive::read(path, each),
                Some(path) => sqlite::read(path, each),
                None => Err(ReadError::Foreign {
                    why: "is a database, which cannot be read from a pipe".to_owned(),
                    hint: "pass the name of the file",
                }),
            };
        }
        if detect::is_parquet(&head) {
            drop(rest);
            return parquet::read(self.file()?, each);
        }
        if detect::is_zip(&head) {
            drop(rest);
            return match &mut self.kind {
                SourceKind::File(path) => xlsx::read(BufReader::new(File::open(path)?), each),
                SourceKind::Fetched(scratch) => {
                    xlsx::read(BufReader::new(File::open(scratch.path())?), each)
                }
                SourceKind::Spooled(spooled) => {
                    spooled.rewind()?;
                    xlsx::read(BufReader::new(spooled), each)
                }
                SourceKind::Lake(_) | SourceKind::Table(_) => Err(no_bytes().into()),
            };
        }
        let compression = detect::compression(&head);
        let bytes = head.chain(rest);
        let unpacked: Box<dyn Read + '_> = match compression {
            Packing::None => Box::new(bytes),
            Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(bytes)),
            Packing::Zstd => Box::new(zstd::Decoder::new(bytes)?),
        };
        let (head, rest) = peek(unpacked)?;
        let format = detect::format(extension.as_deref(), &head)?;
        let bytes = head.chain(rest);
        match format {
            DetectedFormat::Array => json::read(bytes, split::Shape::Flat, false, each),
            DetectedFormat::Lines => json::read(bytes, split::Shape::Lines, false, each),
            DetectedFormat::Singer => json::read(bytes, split::Shape::Lines, true, each),
            DetectedFormat::Separated(usual) => csv::read(&head, bytes, usual, layout, each),
        }
    }

    /// Returns the size and hash of the file, without unpacking it; `None` for a table or a lake.
    pub(crate) fn measure(&mut self) -> Result<Option<FileDigest>, Failure> {
        if let SourceKind::Lake(_) | SourceKind::Table(_) = self.kind {
            return Ok(None);
        }
        let name = self.name.clone();
        let measure = |mut bytes: Box<dyn Read + '_>| {
            let (mut hash, mut count) = (Sha256::new(), 0);
            let mut room = vec![0; 128 * 1024];
            loop {
                match bytes.read(&mut room) {
                    Ok(0) => break,
                    Ok(length) => {
                        hash.update(&room[..length]);
                        count += length as u64;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(FileDigest {
                bytes: count,
                sha256: hexadecimal(&hash.finalize()),
            })
        };
        self.bytes()
            .and_then(measure)
            .map(Some)
            .map_err(|error| ReadError::from(error).into_failure(&name))
    }

    /// Opens it as a file, for formats that are not read sequentially.
    fn file(&mut self) -> io::Result<File> {
        match &mut self.kind {
            SourceKind::File(path) => File::open(path),
            SourceKind::Fetched(scratch) => File::open(scratch.path()),
            SourceKind::Spooled(spooled) => {
                spooled.rewind()?;
                let mut file = tempfile::tempfile()?;
                io::copy(spooled, &mut file)?;
                Ok(file)
            }
            SourceKind::Lake(_) | SourceKind::Table(_) => Err(no_bytes()),
        }
    }

    /// Opens it for reading from the start.
    fn bytes(&mut self) -> io::Result<Box<dyn Read + '_>> {
        Ok(match &mut self.kind {
            SourceKind::File(path) => Box::new(File::open(path)?),
            SourceKind::Fetched(scratch) => Box::new(File::open(scratch.path())?),
            SourceKind::Spooled(spooled) => {
                spooled.rewind()?;
                Box::new(spooled)
            }
            SourceKind::Lake(_) | SourceKind::Table(_) => return Err(no_bytes()),
        })
    }
}

fn no_bytes() -> io::Error {
    io::Error::other("it is not a file")
}

/// Reads one file after another. The combined facts are those that are true for each.
fn read_lake(
    files: &[PathBuf],
    layout: Option<&[usize]>,
    each: &mut RecordHandler<'_>,
) -> Result<FileInfo, Failure> {
    let mut all: Option<FileInfo> = None;
    for file in files {
        let mut source = RecordSource::open(file)?;
        let name = source.name().to_owned();
        let mut has_enough = false;
        let info = source.read(layout, &mut |record| {
            let flow = each(record).map_err(|failure| {
                let message = format!("{name}: {failure}");
                failure.with_message(message)
            })?;
            has_enough = flow == ControlFlow::Break(());
            Ok(flow)
        })?;
        all = Some(match all {
            None => info,
            Some(all) => all.merge(info),
        });
        if has_enough {
            break;
        }
    }
    let all = all.unwrap_or_default();
    // The digest in a file covers only that file.
    Ok(FileInfo {
        embedded_digest: None,
        ..all
    })
}

/// Reads a table of PostgreSQL.
fn read_table(reader: &TableReader, each: &mut RecordHandler<'_>) -> Result<FileInfo, ReadError> {
    let mut rows = reader.open().map_err(ReadError::Aborted)?;
    let info = FileInfo {
        columns: Some(rows.columns),
        unknown: std::mem::take(&mut rows.unknown),
        keeps_unknown_fields: rows.has_extra,
        schema: Schema::Shared,
        ..FileInfo::default()
    };
    let mut count = 0;
    while let Some(row) = rows.next().map_err(ReadError::Aborted)? {
        count += 1;
        let record = Record {
            values: &row,
            columns: rows.columns,
            known_valid: false,
            place: RecordPlace::Batch(count),
        };
        if each(&record).map_err(ReadError::Aborted)? == ControlFlow::Break(()) {
            break;
        }
    }
    Ok(info)
}

/// Reads the beginning; returns it with the rest of the input.
fn peek<'a>(mut bytes: Box<dyn Read + 'a>) -> io::Result<(Vec<u8>, Box<dyn Read + 'a>)> {
    let mut head = Vec::new();
    (&mut bytes).take(HEAD).read_to_end(&mut head)?;
    Ok((head, bytes))
}
