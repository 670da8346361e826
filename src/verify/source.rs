//! Opens what is verified, once: a file, standard input, an object, a lake or a table.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};
use tempfile::SpooledTempFile;

use super::lake::{Lake, plain};
use super::workbook;
use crate::archive::Archive;
use crate::batch::ALL_COLUMNS;
use crate::batch::digest::hexadecimal;
use crate::batch::json::split;
use crate::batch::range::Range;
use crate::error::{Failure, Kind};
use crate::export::HiveFolders;
use crate::formats::detect::{self, DetectedFormat};
use crate::formats::record::{FileInfo, ReadError, Record, RecordHandler, RecordPlace, Schema};
use crate::formats::{csv, json, parquet, sqlite};
use crate::postgres::{TableAddress, TableReader};
use crate::storage::cloud::{self, ObjectAddress};
use crate::storage::sqlite::{MAGIC, has_archive_id, is_damage};
use crate::storage::temp_file::TempFile;
use crate::storage::{Compression, Storage, is_table};
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
    /// Whether a file without a byte, or a lake without a file, may be complete: a manifest tells.
    pub(crate) may_be_empty: bool,
    /// Whether files are hashed while they are read, if their format allows that.
    pub(crate) is_hashed: bool,
}

enum SourceKind {
    File(SourceFile),
    /// The files of a lake, as one set.
    Lake(LakeReader),
    Table(Box<TableReader>),
}

/// The files of a lake.
struct LakeReader {
    lake: Lake,
    paths: Vec<PathBuf>,
    /// The digests of the first ones, which were read and hashed.
    digests: Vec<FileDigest>,
    storage: Storage,
}

/// An open file. It is read from the start as often as needed.
struct SourceFile {
    input: Input,
    /// `None` for input from a pipe.
    path: Option<PathBuf>,
    /// Removes a temporary copy of an object when dropped.
    _scratch: Option<TempFile>,
    digest: Option<FileDigest>,
    /// Whether it was warned of a name that says something else.
    has_warned: bool,
}

enum Input {
    File(File),
    /// A copy of input that can be read only once.
    Spooled(Box<SpooledTempFile>),
}

trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

impl Input {
    /// Returns it for reading from the start.
    fn rewound(&mut self) -> io::Result<&mut dyn ReadSeek> {
        let input: &mut dyn ReadSeek = match self {
            Self::File(file) => file,
            Self::Spooled(spooled) => spooled.as_mut(),
        };
        input.rewind()?;
        Ok(input)
    }

    /// Returns it as a file, for formats that are not read sequentially.
    fn file(&mut self) -> io::Result<File> {
        match self {
            Self::File(file) => file.try_clone(),
            Self::Spooled(spooled) => {
                spooled.rewind()?;
                let mut file = tempfile::tempfile()?;
                io::copy(spooled, &mut file)?;
                Ok(file)
            }
        }
    }
}

/// The size and hash of a file, without unpacking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileDigest {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

/// Hashes what is read through it, if requested.
struct HashingReader<R> {
    inner: R,
    hash: Option<Context>,
    bytes: u64,
}

impl<R: Read> HashingReader<R> {
    fn new(inner: R, is_hashed: bool) -> Self {
        Self {
            inner,
            hash: is_hashed.then(|| Context::new(&SHA256)),
            bytes: 0,
        }
    }

    /// Reads the rest, and returns the digest of everything.
    fn finish(mut self) -> io::Result<Option<FileDigest>> {
        if self.hash.is_some() {
            let mut rest = BufReader::with_capacity(128 * 1024, &mut self);
            io::copy(&mut rest, &mut io::sink())?;
        }
        Ok(self.hash.map(|hash| FileDigest {
            bytes: self.bytes,
            sha256: hexadecimal(hash.finish().as_ref()),
        }))
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        if let Some(hash) = &mut self.hash {
            hash.update(&buffer[..length]);
            self.bytes += length as u64;
        }
        Ok(length)
    }
}

impl RecordSource {
    fn new(name: String, kind: SourceKind) -> Self {
        Self {
            name,
            kind,
            may_be_empty: false,
            is_hashed: false,
        }
    }

    /// Opens the file at `path`, or standard input for `-`.
    pub(crate) fn open(path: &Path, storage: &Storage) -> Result<Self, Failure> {
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
        if let Some(lake) = Lake::find(path)?.filter(|_| !is_object(path, storage)) {
            let paths = lake.distinct_files(storage)?;
            let may_be_empty = paths.is_empty() && lake.manifest(storage)?.is_some();
            let kind = SourceKind::Lake(LakeReader {
                paths,
                lake,
                digests: Vec::new(),
                storage: storage.clone(),
            });
            let name = format!("`{}`", text::one_line(&text));
            return Ok(Self {
                may_be_empty,
                ..Self::new(name, kind)
            });
        }
        Self::open_one(path, storage)
    }

    /// Opens the file or the object at `path`.
    fn open_one(path: &Path, storage: &Storage) -> Result<Self, Failure> {
        let name = format!("`{}`", text::one_line(&path.to_string_lossy()));
        if let Some(address) = ObjectAddress::parse(path)? {
            let scratch = cloud::download(&address, storage)?;
            let path = scratch.path().to_owned();
            return Self::open_file(name, &path, Some(scratch));
        }
        Self::open_file(name, path, None)
    }

    /// Opens the local file at `path`; `scratch` removes it when dropped.
    fn open_file(name: String, path: &Path, scratch: Option<TempFile>) -> Result<Self, Failure> {
        let refuse = |error: io::Error| {
            let hint = match error.kind() {
                io::ErrorKind::NotFound => "check the name of the file",
                _ => "check the permissions of the file",
            };
            Failure::usage(format!("cannot read {name}"), hint).caused_by(error)
        };
        let file = File::open(path).map_err(refuse)?;
        let metadata = file.metadata().map_err(refuse)?;
        if !metadata.is_file() {
            return Self::spool(name, file);
        }
        let file = SourceFile {
            input: Input::File(file),
            path: Some(path.to_owned()),
            _scratch: scratch,
            digest: None,
            has_warned: false,
        };
        Ok(Self::new(name, SourceKind::File(file)))
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
            let hint = "it is copied to a temporary file first: check that it can be read, and that there is enough disk space";
            Failure::usage(format!("cannot read {name}"), hint).caused_by(error)
        })?;
        let file = SourceFile {
            input: Input::Spooled(Box::new(spooled)),
            path: None,
            _scratch: None,
            digest: None,
            has_warned: false,
        };
        Ok(Self::new(name, SourceKind::File(file)))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the files of a lake; `None` if it is not one.
    pub(crate) fn lake(&self) -> Option<&[PathBuf]> {
        match &self.kind {
            SourceKind::Lake(files) => Some(&files.paths),
            _ => None,
        }
    }

    /// Leaves out `manifest` if it is among the files of a lake.
    pub(crate) fn leave_out(&mut self, manifest: &Path) {
        if let SourceKind::Lake(files) = &mut self.kind {
            let manifest = manifest.canonicalize().ok();
            let is_manifest =
                |file: &PathBuf| manifest.is_some() && file.canonicalize().ok() == manifest;
            files.paths.retain(|file| !is_manifest(file));
        }
    }

    /// Passes each record to `each`. Cells without a header are those of `layout`.
    pub(crate) fn read(
        &mut self,
        layout: Option<&[usize]>,
        each: &mut RecordHandler<'_>,
    ) -> Result<FileInfo, Failure> {
        let (is_hashed, may_be_empty) = (self.is_hashed, self.may_be_empty);
        let read = match &mut self.kind {
            SourceKind::File(file) => file.read(is_hashed, may_be_empty, layout, each),
            SourceKind::Lake(files) => return files.read(is_hashed, may_be_empty, layout, each),
            SourceKind::Table(reader) => read_table(reader, each),
        };
        read.map_err(|error| error.into_failure(&self.name))
    }

    /// Returns the size and hash of the file, without unpacking it; `None` for a table or a lake.
    pub(crate) fn measure(&mut self) -> Result<Option<FileDigest>, Failure> {
        let SourceKind::File(file) = &mut self.kind else {
            return Ok(None);
        };
        let measured = file.measure().map(|()| file.digest.clone());
        measured.map_err(|error| ReadError::from(error).into_failure(&self.name))
    }

    /// Returns the sizes and hashes of the files of a lake, in their order; empty if it is not a lake.
    pub(crate) fn measure_lake(&mut self) -> Result<Vec<FileDigest>, Failure> {
        let SourceKind::Lake(files) = &mut self.kind else {
            return Ok(Vec::new());
        };
        for file in &files.paths[files.digests.len()..] {
            let measured = Self::open_one(file, &files.storage)?.measure()?;
            files.digests.extend(measured);
        }
        Ok(files.digests.clone())
    }
}

impl SourceFile {
    fn measure(&mut self) -> io::Result<()> {
        if self.digest.is_none() {
            self.digest = HashingReader::new(self.input.rewound()?, true).finish()?;
        }
        Ok(())
    }

    /// Detects the format and reads the records.
    fn read(
        &mut self,
        is_hashed: bool,
        may_be_empty: bool,
        layout: Option<&[usize]>,
        each: &mut RecordHandler<'_>,
    ) -> Result<FileInfo, ReadError> {
        let path = self.path.as_deref();
        let extension = path.and_then(detect::extension);
        let may_be_empty = may_be_empty || path.is_some_and(detect::may_be_empty);
        let is_hashed = is_hashed && self.digest.is_none();
        let mut bytes = HashingReader::new(self.input.rewound()?, is_hashed);
        let head = peek(&mut bytes)?;
        if head.is_empty() && !may_be_empty {
            return Err(ReadError::cut_short("it has no bytes"));
        }
        detect::check_name(extension.as_deref(), &head)?;
        if head.starts_with(MAGIC) {
            let Some(path) = path else {
                let why = "is a database, which cannot be read from a pipe";
                return Err(ReadError::foreign(why, "pass the name of the file"));
            };
            sqlite::read::check_length(path, &head)?;
            return if has_archive_id(&head) {
                read_archive(path, each)
            } else {
                sqlite::read(path, each)
            };
        }
        if head.starts_with(detect::PARQUET) {
            return parquet::read(self.input.file()?, each);
        }
        if head.starts_with(detect::ZIP) {
            return workbook::read(BufReader::new(self.input.rewound()?), each);
        }
        // A file may be read several times.
        let warned = path.filter(|_| !self.has_warned);
        if let Some(path) = warned {
            detect::warn_of_compression(path, &head);
        }
        let (format, info) = read_text(&head, &mut bytes, extension.as_deref(), layout, each)?;
        if let Some(path) = warned
            && extension.as_deref() == Some("json")
            && format == DetectedFormat::Lines
        {
            detect::warn_of_lines(path);
        }
        self.has_warned = true;
        self.digest = bytes.finish()?.or(self.digest.take());
        Ok(info)
    }
}

/// Reads a text format, which may be compressed. `head` is the beginning.
fn read_text(
    head: &[u8],
    rest: &mut dyn Read,
    extension: Option<&str>,
    layout: Option<&[usize]>,
    each: &mut RecordHandler<'_>,
) -> Result<(DetectedFormat, FileInfo), ReadError> {
    let bytes = head.chain(rest);
    let mut unpacked: Box<dyn Read + '_> = match detect::compression(head) {
        Compression::None => Box::new(bytes),
        Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(bytes)),
        Compression::Zstd => Box::new(zstd::Decoder::new(bytes)?),
    };
    let head = peek(&mut unpacked)?;
    let format = detect::format(extension, &head)?;
    let bytes = head.chain(unpacked);
    let info = match format {
        DetectedFormat::Array => json::read(bytes, split::Shape::Flat, false, each),
        DetectedFormat::Lines => json::read(bytes, split::Shape::Lines, false, each),
        DetectedFormat::Singer => json::read(bytes, split::Shape::Lines, true, each),
        DetectedFormat::Separated(usual) => csv::read(&head, bytes, usual, layout, each),
    }?;
    Ok((format, info))
}

impl LakeReader {
    /// Reads one file after another, and hashes them if requested. The combined facts are those that are true for each.
    fn read(
        &mut self,
        is_hashed: bool,
        may_be_empty: bool,
        layout: Option<&[usize]>,
        each: &mut RecordHandler<'_>,
    ) -> Result<FileInfo, Failure> {
        if self.paths.is_empty() && !may_be_empty {
            return Err(self.lake.no_files());
        }
        self.digests.clear();
        let mut all: Option<FileInfo> = None;
        for (number, file) in self.paths.iter().enumerate() {
            let mut source = RecordSource::open_one(file, &self.storage)?;
            source.is_hashed = is_hashed;
            let name = source.name().to_owned();
            let (mut has_enough, mut misplaced) = (false, None);
            let folder = plain(&self.lake.folder);
            let folders = HiveFolders::of(file.strip_prefix(folder).unwrap_or(file));
            let mut info = source.read(layout, &mut |record| {
                misplaced = misplaced.take().or_else(|| misplacement(&folders, record));
                let record = &Record {
                    file: number,
                    ..*record
                };
                let flow = each(record).map_err(|failure| {
                    let message = format!("{name}: {failure}");
                    failure.with_message(message)
                })?;
                has_enough = flow == ControlFlow::Break(());
                Ok(flow)
            })?;
            let contradiction = info.contradiction.take().or(misplaced);
            info.contradiction = contradiction.map(|wrong| format!("{name}: {wrong}"));
            all = Some(match all {
                None => info,
                Some(all) => all.merge(info),
            });
            if has_enough {
                break;
            }
            if is_hashed {
                self.digests.extend(source.measure()?);
            }
        }
        let all = all.unwrap_or_default();
        // The digest in a file covers only that file.
        Ok(FileInfo {
            embedded_digest: None,
            ..all
        })
    }
}

/// Says that a batch is in a folder such as `crop_type=Leek` that is not its own: engines read the name as its value.
fn misplacement(folders: &HiveFolders<'_>, record: &Record<'_>) -> Option<String> {
    let folder = folders.contradiction(record.values, record.columns)?;
    let place = record.place;
    Some(format!(
        "{place} does not belong in the folder `{folder}`, which programs read as its value; if the template has this folder, choose another name"
    ))
}

/// Returns whether there is an object with exactly this name.
fn is_object(path: &Path, storage: &Storage) -> bool {
    let Ok(Some(address)) = ObjectAddress::parse(path) else {
        return false;
    };
    let sizes = storage.cloud.sizes(&address);
    sizes.is_ok_and(|sizes| sizes.contains_key(&address.to_string()))
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
            schema: Schema::Shared,
            ..Record::of_row(&row, rows.columns, RecordPlace::Batch(count))
        };
        if each(&record).map_err(ReadError::Aborted)? == ControlFlow::Break(()) {
            break;
        }
    }
    Ok(info)
}

/// Reads the archive of `sync` at `path`: batches as the service sent them, without those that vanished from it.
fn read_archive(path: &Path, each: &mut RecordHandler<'_>) -> Result<FileInfo, ReadError> {
    let archive = Archive::read_source(path).map_err(or_damaged)?;
    let info = || FileInfo {
        columns: Some(ALL_COLUMNS),
        keeps_unknown_fields: true,
        ..FileInfo::default()
    };
    let mut pages = archive.pages(Range::default(), true).map_err(or_damaged)?;
    let mut count = 0;
    while let Some(page) = pages.next().map_err(or_damaged)? {
        for batch in &page.batches {
            count += 1;
            // A field that was not sent is null.
            let record = Record {
                known_valid: batch.is_valid(),
                ..Record::of_row(batch, ALL_COLUMNS, RecordPlace::Batch(count))
            };
            if each(&record).map_err(ReadError::Aborted)? == ControlFlow::Break(()) {
                return Ok(info());
            }
        }
    }
    archive.check().map_err(or_damaged)?;
    Ok(info())
}

/// Damage, and a wrong schema, count as differences.
fn or_damaged(mut failure: Failure) -> ReadError {
    if is_damage(&failure) {
        failure.kind = Kind::Protocol;
    } else if failure.kind == Kind::Internal {
        failure.kind = Kind::Protocol;
        failure = failure.hint(
            "the archive was modified; `trayscan sync` to a new file fetches all batches again",
        );
    }
    ReadError::Aborted(failure)
}

/// Reads the beginning.
fn peek(bytes: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    bytes.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{BATCH_ID, COLUMNS};
    use crate::verify::{Scope, index};

    const CSV: &str = "batch_id,crop_type\na,x\nb,y\n";

    /// Opens a file, which is then removed: it cannot be opened again.
    fn removed(name: &str, text: &str) -> RecordSource {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        RecordSource::open(&path, &Storage::default()).expect("a file")
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_opened_once_and_hashed_while_it_is_read() {
        let json = r#"[{"batch_id":"a"},{"batch_id":"b"}]"#;
        for (name, text) in [("a.csv", CSV), ("a.json", json)] {
            let mut measured = removed(name, text);
            let digest = measured.measure().expect("measured").expect("a file");
            assert_eq!(digest.bytes, text.len() as u64);
            let mut source = removed(name, text);
            source.is_hashed = true;
            for stops in [true, false] {
                let mut count = 0;
                let info = source.read(None, &mut |_| {
                    count += 1;
                    Ok(if stops {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    })
                });
                info.expect("records");
                assert_eq!(count, if stops { 1 } else { 2 });
                let SourceKind::File(file) = &source.kind else {
                    panic!("{name} is a file");
                };
                assert_eq!(file.digest.as_ref(), Some(&digest), "{name}");
            }
        }
    }

    #[test]
    fn the_columns_of_the_first_row_are_those_of_the_file() {
        let scope = Scope {
            columns: ALL_COLUMNS,
            unknown_fields: true,
            version: crate::batch::digest::VERSION,
        };
        let columns_of = |text: &str, adapts| {
            let scan = index(&mut removed("a.csv", text), None, scope, adapts);
            scan.expect("a file").0.scope.columns
        };
        let crop = COLUMNS.iter().position(|column| column.name == "crop_type");
        let both = 1 << BATCH_ID | 1 << crop.expect("a column");
        assert_eq!(columns_of(CSV, true), both);
        assert_eq!(columns_of(CSV, false), ALL_COLUMNS);
        // Each batch must have an identifier, or the file is read again.
        assert_eq!(columns_of("crop_type\nx\n", true), both);
    }
}
