//! Opens outputs: standard output, a device, a file or an object.

use std::fs::{self, OpenOptions};
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::Path;

use super::Storage;
use super::cloud::Upload;
use super::local_file::{LocalFile, check_access};
use super::location::Location;
use super::path::{folder_of, is_open_file};
use super::sqlite::is_archive;
use super::temp_file::PartFiles;
use super::transaction::{Escapes, Stream, Transaction, already_exists};
use crate::error::{Failure, Kind};
use crate::text::for_shell;

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
                return Err(Failure::usage(why, "name a file"));
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
        let found = Found::at(path, &name, no_clobber)?;
        let existing = match &found {
            Found::Special(metadata) => {
                let mut options = OpenOptions::new();
                let opened = options.append(metadata.is_file()).write(true).open(path);
                let file = opened.map_err(|error| cannot_write(&name, path, error))?;
                return Ok(Self::Stream(Stream::file(file, name)));
            }
            Found::File(metadata) => Some(metadata),
            Found::Nothing => None,
        };
        let file = LocalFile::create(path, &name, existing, !no_clobber, parts, storage);
        let file = file.map_err(|error| cannot_write(&name, path, error))?;
        Ok(Self::File(Box::new(file)))
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

/// What is at the path of an output.
enum Found {
    Nothing,
    File(fs::Metadata),
    /// A device, a pipe or an open file: it cannot be renamed, and is written directly.
    Special(fs::Metadata),
}

impl Found {
    /// Looks at `path`, and refuses what must not be overwritten.
    fn at(path: &Path, name: &str, no_clobber: bool) -> Result<Self, Failure> {
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(error) => return Err(cannot_write(name, path, error)),
        };
        if metadata.is_dir() {
            let error = io::ErrorKind::IsADirectory.into();
            return Err(cannot_write(name, path, error));
        }
        if !metadata.is_file() || is_open_file(path) {
            return Ok(Self::Special(metadata));
        }
        if is_archive(path) {
            return Err(Failure::new(
                Kind::Output,
                format!("{name} is an archive of `trayscan sync` and must not be overwritten"),
            )
            .hint("choose another name; use `--archive` to read from the archive"));
        }
        if no_clobber {
            return Err(already_exists(name));
        }
        Ok(Self::File(metadata))
    }
}

/// What is at a location before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    Nothing,
    /// A file with this many bytes.
    File(u64),
    /// A device, a pipe, or standard output.
    Stream,
    /// An object or a table: only a request would tell.
    Unknown,
}

impl Storage {
    /// Returns what is at `location`, and fails if it cannot be written, as far as that is known without writing and
    /// without a request.
    pub(crate) fn check(&self, location: &Location, no_clobber: bool) -> Result<Existing, Failure> {
        let path = match location {
            Location::Stdout => return Ok(Existing::Stream),
            Location::Object(address) => {
                self.cloud.check(address)?;
                return Ok(Existing::Unknown);
            }
            Location::Table(_) => return Ok(Existing::Unknown),
            Location::File(path) => path,
        };
        let name = location.name();
        let found = Found::at(path, &name, no_clobber)?;
        let (existing, checked) = match &found {
            Found::Nothing => (Existing::Nothing, LocalFile::check(path, None)),
            Found::File(metadata) => {
                let checked = LocalFile::check(path, Some(metadata));
                (Existing::File(metadata.len()), checked)
            }
            Found::Special(_) => (Existing::Stream, check_access(path)),
        };
        checked.map_err(|error| cannot_write(&name, path, error))?;
        Ok(existing)
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
    let folder = folder_of(path);
    let hint = match error.kind() {
        io::ErrorKind::NotFound if folder.starts_with("~") => {
            "the shell does not expand `~` in quotes: write the path without quotes, or use \"$HOME\"".to_owned()
        }
        io::ErrorKind::NotFound if !folder.exists() => {
            format!("create the folder first: mkdir -p {}", for_shell(&folder.to_string_lossy()))
        }
        io::ErrorKind::IsADirectory => "it is a folder: name a file in it".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => {
            "it is write-protected: choose another location with `-o`".to_owned()
        }
        io::ErrorKind::PermissionDenied if path.metadata().is_ok_and(|found| !found.is_file()) => {
            "you need write permission for it".to_owned()
        }
        io::ErrorKind::PermissionDenied => format!(
            "you need write permission for the folder `{}`, because a temporary file is created there first",
            folder.display()
        ),
        _ => "choose another location with `-o`".to_owned(),
    };
    Failure::new(Kind::Output, format!("cannot write to {name}"))
        .caused_by(error)
        .hint(hint)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::super::sqlite::{ARCHIVE_ID, MAGIC};
    use super::*;

    fn open(path: &Path, no_clobber: bool) -> Result<OutputTarget, Failure> {
        let location = Location::File(path.to_owned());
        OutputTarget::open(&location, no_clobber, true, None, &Storage::default())
    }

    /// Returns the message and the hint about a file that cannot be written.
    fn refusal(path: &Path, no_clobber: bool) -> (String, String) {
        let Err(failure) = open(path, no_clobber) else {
            panic!("{} can be written", path.display());
        };
        assert_eq!(failure.kind, Kind::Output);
        failure.into_texts()
    }

    #[test]
    fn a_hint_says_why_a_file_cannot_be_written() {
        let folder = TempDir::new().expect("a folder");
        let folder = folder.path();
        assert_eq!(
            refusal(folder, false).1,
            "it is a folder: name a file in it"
        );
        let missing = folder.join("missing");
        let hint = format!("create the folder first: mkdir -p {}", missing.display());
        assert_eq!(refusal(&missing.join("a"), false).1, hint);
        let file = folder.join("a");
        fs::write(&file, "old").expect("a file");
        let (message, hint) = refusal(&file, true);
        assert!(message.ends_with(" already exists, and `--no-clobber` keeps it"));
        assert_eq!(hint, "choose another name, or remove `--no-clobber`");
        assert_eq!(
            refusal(&file.join("b"), false).1,
            "choose another location with `-o`"
        );
        let mut permissions = fs::metadata(&file).expect("a file").permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&file, permissions).expect("protected");
        let hint = "it is write-protected: choose another location with `-o`";
        assert_eq!(refusal(&file, false).1, hint);
    }

    #[test]
    fn an_archive_is_not_overwritten() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("a");
        let id = ARCHIVE_ID.to_be_bytes();
        let header = [MAGIC, &[0; 68 - MAGIC.len()], &id].concat();
        fs::write(&path, header).expect("a file");
        for no_clobber in [false, true] {
            let (message, _) = refusal(&path, no_clobber);
            let expected = "is an archive of `trayscan sync` and must not be overwritten";
            assert!(message.ends_with(expected), "{message}");
        }
        // Text may have the same letters there.
        let text = format!("{}tray 5\n", "a".repeat(68));
        fs::write(&path, text).expect("a file");
        assert!(matches!(Found::at(&path, "a", false), Ok(Found::File(_))));
    }

    #[test]
    fn without_permission_the_hint_names_the_folder() {
        for (path, kind, expected) in [
            (
                "a",
                io::ErrorKind::PermissionDenied,
                "you need write permission for the folder `.`",
            ),
            (
                "~/a",
                io::ErrorKind::NotFound,
                "the shell does not expand `~`",
            ),
            (
                "a",
                io::ErrorKind::NotFound,
                "choose another location with `-o`",
            ),
        ] {
            let failure = cannot_write("`a`", Path::new(path), kind.into());
            let (message, hint) = failure.into_texts();
            assert_eq!(message, "cannot write to `a`");
            assert!(hint.starts_with(expected), "{hint}");
        }
    }

    #[test]
    fn a_file_is_replaced_by_the_commit() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("a");
        fs::write(&path, "old").expect("a file");
        let mut target = open(&path, false).expect("a file");
        assert!(matches!(target, OutputTarget::File(_)));
        target.escape_on_terminal(Escapes::Text);
        target.write_all(b"new\x1b").expect("written");
        target.seal().expect("sealed");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "old");
        OutputTarget::commit(vec![target]).expect("published");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "new\u{1b}");
    }

    #[cfg(unix)]
    #[test]
    fn an_open_file_and_a_device_are_written_at_once() {
        use std::os::fd::AsRawFd as _;

        let device = open(Path::new("/dev/null"), true).expect("a device");
        assert!(matches!(device, OutputTarget::Stream(_)));
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("a");
        fs::write(&path, "old, ").expect("a file");
        let file = OpenOptions::new().append(true).open(&path);
        let file = file.expect("a file");
        let name = format!("/dev/fd/{}", file.as_raw_fd());
        let mut target = open(Path::new(&name), true).expect("an open file");
        assert!(matches!(target, OutputTarget::Stream(_)));
        target.write_all(b"new").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "old, new");
        OutputTarget::commit(vec![target, device]).expect("flushed");
    }
}
