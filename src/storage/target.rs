//! Opens outputs: standard output, a device, a file or an object.

use std::fs::{self, OpenOptions};
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::Path;

use super::Storage;
use super::cloud::Upload;
use super::escaping::Escapes;
use super::local_file::LocalFile;
use super::location::Location;
use super::path::is_open_file;
use super::sqlite::is_archive;
use super::temp_file::PartFiles;
use super::transaction::{Stream, Transaction};
use crate::error::{Failure, Kind};

/// An output of any kind, as a [`Transaction`].
pub(super) enum OutputTarget {
    Stream(Stream),
    File(Box<LocalFile>),
    Object(Box<Upload>),
}

impl OutputTarget {
    /// Opens `location`, and fails now if it cannot be written. If it is not `alone` but one of many outputs,
    /// an error of an object shows up later, and a local file is one of `parts`.
    pub(super) fn open(
        location: &Location,
        no_clobber: bool,
        alone: bool,
        parts: Option<&mut PartFiles>,
        storage: &Storage,
    ) -> Result<Self, Failure> {
        let name = location.name();
        Ok(match location {
            Location::Stdout => Self::Stream(Stream::stdout(name)),
            Location::File(path) => Self::open_file(path, name, no_clobber, parts, storage)?,
            Location::Object(address) => {
                let upload = Upload::begin(address, no_clobber, alone, storage)?;
                Self::Object(Box::new(upload))
            }
            Location::Table(_) => {
                let why = format!("{name} is a table, but this output must be a file");
                return Err(Failure::new(Kind::Usage, why).hint("name a file"));
            }
        })
    }

    fn open_file(
        path: &Path,
        name: String,
        no_clobber: bool,
        parts: Option<&mut PartFiles>,
        storage: &Storage,
    ) -> Result<Self, Failure> {
        let existing = match fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(cannot_write(&name, path, error)),
        };
        Ok(match existing {
            Some(metadata) if metadata.is_dir() => {
                let error = io::ErrorKind::IsADirectory.into();
                return Err(cannot_write(&name, path, error));
            }
            // It cannot be renamed.
            Some(metadata) if !metadata.is_file() || is_open_file(path) => {
                let mut options = OpenOptions::new();
                let opened = options.append(metadata.is_file()).write(true).open(path);
                let file = opened.map_err(|error| cannot_write(&name, path, error))?;
                Self::Stream(Stream::file(file, name))
            }
            Some(metadata) if metadata.is_file() && is_archive(path) => {
                return Err(Failure::new(
                    Kind::Output,
                    format!("{name} is an archive of `trayscan sync` and must not be overwritten"),
                )
                .hint("choose another name; use `--archive` to read from the archive"));
            }
            Some(_) if no_clobber => {
                return Err(Failure::new(
                    Kind::Output,
                    format!("{name} already exists, and `--no-clobber` keeps it"),
                )
                .hint("choose another name, or remove `--no-clobber`"));
            }
            existing => {
                let file =
                    LocalFile::create(path, &name, existing.as_ref(), !no_clobber, parts, storage);
                let file = file.map_err(|error| cannot_write(&name, path, error))?;
                Self::File(Box::new(file))
            }
        })
    }

    /// Escapes control characters if this is a terminal.
    pub(super) fn escape_on_terminal(&mut self, escapes: Escapes) {
        if let Self::Stream(stream) = self {
            stream.escape_on_terminal(escapes);
        }
    }

    /// Publishes all of them.
    pub(super) fn commit(all: Vec<Self>) -> Result<(), Failure> {
        let (mut streams, mut files, mut uploads) = (Vec::new(), Vec::new(), Vec::new());
        for target in all {
            match target {
                Self::Stream(stream) => streams.push(stream),
                Self::File(file) => files.push(*file),
                Self::Object(upload) => uploads.push(*upload),
            }
        }
        LocalFile::commit(files)?;
        Stream::commit(streams)?;
        Upload::commit(uploads)
    }
}

impl Deref for OutputTarget {
    type Target = dyn Transaction;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Stream(stream) => stream,
            Self::File(file) => &**file,
            Self::Object(upload) => &**upload,
        }
    }
}

impl DerefMut for OutputTarget {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Stream(stream) => stream,
            Self::File(file) => &mut **file,
            Self::Object(upload) => &mut **upload,
        }
    }
}

fn cannot_write(name: &str, path: &Path, error: io::Error) -> Failure {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let hint = match error.kind() {
        io::ErrorKind::NotFound => match folder {
            Some(folder) if !folder.exists() => {
                format!("create the folder first: mkdir -p '{}'", folder.display())
            }
            _ => "choose another location with `-o`".to_owned(),
        },
        io::ErrorKind::IsADirectory => "it is a folder: name a file in it".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => {
            "it is write-protected: choose another location with `-o`".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "a temporary file is created in the same folder first, so the folder must be writable too"
                .to_owned()
        }
        _ => "choose another location with `-o`".to_owned(),
    };
    Failure::new(Kind::Output, format!("cannot write to {name}"))
        .caused_by(error)
        .hint(hint)
}
