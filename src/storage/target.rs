//! Output targets: standard output, or a file or object that appears complete or not at all.
//!
//! A file is written next to its final path under an unpredictable name, flushed to disk, and renamed; the
//! folder is flushed too. Until then, an existing file stays unchanged.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::cleanup::{self, Publishing};
use super::cloud::Upload;
use super::escaping::{Escapes, Escaping};
use super::location::Location;
use super::path::{folder_of, follow_links, is_open_file};
use super::sqlite::{is_archive, refuse_sidecars};
use super::temp_file::{self, PartFiles, Scratch, sync_folder};
use crate::error::{Failure, Kind};

pub(crate) struct OutputTarget {
    sink: TargetKind,
    /// As given by the user.
    name: String,
    /// Set if this is a terminal, so that it does not interpret control characters in the output.
    escaping: Option<Escaping>,
}

enum TargetKind {
    Stdout(io::Stdout),
    /// A device or a pipe: it cannot be renamed.
    Passthrough(File),
    File(TempFile),
    Object(Box<ObjectTarget>),
}

/// An object that is being uploaded.
struct ObjectTarget {
    upload: Upload,
    /// A file that a format wrote itself, still to be uploaded.
    local: Option<Scratch>,
}

/// A temporary file next to its final path.
struct TempFile {
    /// `None` once sealed.
    file: Option<File>,
    /// Removes the file when dropped.
    temporary: Option<TempPath>,
    /// The sealed file, if it is locked to show other runs that it is in use.
    lock: Option<File>,
    is_locked: bool,
    path: PathBuf,
    replace: bool,
    /// SQLite journals must not exist next to a database.
    is_database: bool,
}

impl OutputTarget {
    /// Opens `location`, and fails now if it cannot be written.
    pub(crate) fn open(location: &Location, no_clobber: bool) -> Result<Self, Failure> {
        Self::open_as(location, no_clobber, true, None)
    }

    /// Opens one of many files that are written one after the other. For objects, write errors show up later.
    pub(crate) fn open_among(
        location: &Location,
        no_clobber: bool,
        parts: Option<&mut PartFiles>,
    ) -> Result<Self, Failure> {
        Self::open_as(location, no_clobber, false, parts)
    }

    fn open_as(
        location: &Location,
        no_clobber: bool,
        alone: bool,
        parts: Option<&mut PartFiles>,
    ) -> Result<Self, Failure> {
        let name = location.name();
        let sink = match location {
            Location::Stdout => TargetKind::Stdout(io::stdout()),
            Location::File(path) => TargetKind::file(path, &name, no_clobber, parts)?,
            Location::Object(address) => TargetKind::Object(Box::new(ObjectTarget {
                upload: Upload::begin(address, no_clobber, alone)?,
                local: None,
            })),
            Location::Table(_) => {
                let why = format!("{name} is a table, but this output must be a file");
                return Err(Failure::new(Kind::Usage, why).hint("name a file"));
            }
        };
        Ok(Self {
            sink,
            name,
            escaping: None,
        })
    }

    /// Creates a local file for a format that writes the file itself, if this target is an object.
    pub(crate) fn prepare_local_file(&mut self) -> io::Result<()> {
        if let TargetKind::Object(object) = &mut self.sink {
            object.local = Some(Scratch::new(Path::new(""))?);
        }
        Ok(())
    }

    /// Returns the file that is written before it is renamed or uploaded; `None` for standard output, devices
    /// and pipes.
    pub(crate) fn local_path(&self) -> Option<&Path> {
        match &self.sink {
            TargetKind::File(temp) => temp.temporary.as_deref(),
            TargetKind::Object(object) => object.local.as_ref().map(Scratch::path),
            TargetKind::Stdout(_) | TargetKind::Passthrough(_) => None,
        }
    }

    /// Declares that a database is written, and checks that it can replace an existing one. Checked again
    /// before publishing.
    pub(crate) fn expect_database(&mut self) -> Result<(), Failure> {
        let TargetKind::File(temp) = &mut self.sink else {
            return Ok(());
        };
        temp.is_database = true;
        refuse_sidecars(&temp.path)
    }

    /// Returns the name to use in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.sink, TargetKind::Stdout(_))
    }

    /// Escapes control characters if this is a terminal.
    pub(crate) fn escape_on_terminal(&mut self, escapes: Escapes) {
        let is_terminal = match &self.sink {
            TargetKind::Stdout(stdout) => stdout.is_terminal(),
            TargetKind::Passthrough(file) => file.is_terminal(),
            TargetKind::File(_) | TargetKind::Object(_) => false,
        };
        self.escaping = is_terminal.then(|| Escaping::new(escapes));
    }

    /// Flushes everything to disk and closes the file: there may be many targets.
    pub(crate) fn seal(&mut self) -> io::Result<()> {
        match &mut self.sink {
            TargetKind::Stdout(_) | TargetKind::Passthrough(_) => Ok(()),
            TargetKind::File(temp) => temp.seal().map_err(|error| annotate(&self.name, error)),
            TargetKind::Object(object) => object.seal(),
        }
    }

    /// Waits until everything that was sealed is ready to be published without further errors.
    pub(crate) fn prepare_publish(&mut self) -> Result<(), Failure> {
        match &mut self.sink {
            TargetKind::File(temp) if !temp.replace && temp.path.exists() => {
                Err(created_meanwhile(&self.name))
            }
            TargetKind::File(temp) if temp.is_database => refuse_sidecars(&temp.path),
            TargetKind::Object(object) => object.upload.wait(),
            TargetKind::Stdout(_) | TargetKind::Passthrough(_) | TargetKind::File(_) => Ok(()),
        }
    }

    /// Publishes all targets. Once the first file is renamed, the others follow, even if a signal arrives.
    pub(crate) fn publish(mut targets: Vec<Self>) -> Result<(), Failure> {
        for target in &mut targets {
            if let Some(rest) = target.escaping.take().map(|mut escaping| escaping.finish()) {
                target
                    .write_all(rest.as_bytes())
                    .map_err(Failure::from_output)?;
            }
            target.seal().map_err(Failure::from_output)?;
        }
        // Files that were not renamed are removed after this, outside the lock.
        let placed = cleanup::publish(|publishing| place_files(&mut targets, publishing));
        let folders = placed.map_err(Failure::from_output)??;
        for folder in folders {
            sync_folder(&folder).map_err(Failure::from_output)?;
        }
        if targets
            .iter()
            .any(|target| matches!(target.sink, TargetKind::Object(_)))
        {
            cleanup::commit().map_err(Failure::from_output)?;
        }
        let mut uploads = Vec::new();
        for target in targets {
            let flushed = match target.sink {
                TargetKind::Stdout(mut stdout) => stdout.flush(),
                TargetKind::Passthrough(mut file) => file.flush(),
                TargetKind::File(_) => Ok(()),
                TargetKind::Object(object) => {
                    uploads.push(object.upload);
                    Ok(())
                }
            };
            flushed.map_err(|error| Failure::from_output(annotate(&target.name, error)))?;
        }
        Upload::publish_all(uploads)
    }
}

/// Renames all files, and returns their folders.
fn place_files(
    targets: &mut [OutputTarget],
    publishing: &mut Publishing<'_>,
) -> Result<BTreeSet<PathBuf>, Failure> {
    let count = targets.len();
    let mut folders = BTreeSet::new();
    for OutputTarget { sink, name, .. } in targets {
        let TargetKind::File(temp) = sink else {
            continue;
        };
        if let Err(error) = temp.publish(publishing) {
            let failure = match error.kind() {
                io::ErrorKind::AlreadyExists => created_meanwhile(name),
                _ => Failure::from_output(annotate(name, error)),
            };
            return Err(match publishing.placed() {
                0 => failure,
                placed => failure.hint(format!("{placed} of {count} files were already replaced")),
            });
        }
        folders.insert(folder_of(&temp.path).to_owned());
    }
    Ok(folders)
}

fn created_meanwhile(name: &str) -> Failure {
    Failure::new(
        Kind::Output,
        format!("{name} was created in the meantime, and `--no-clobber` keeps it"),
    )
}

impl ObjectTarget {
    fn seal(&mut self) -> io::Result<()> {
        if let Some(local) = self.local.take() {
            self.upload.send_file(local.path())?;
        }
        self.upload.seal()
    }
}

impl TargetKind {
    fn file(
        path: &Path,
        name: &str,
        no_clobber: bool,
        parts: Option<&mut PartFiles>,
    ) -> Result<Self, Failure> {
        let failure = |error: io::Error| cannot_write(name, path, error);
        let existing = match fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failure(error)),
        };
        Ok(match existing {
            Some(metadata) if metadata.is_dir() => {
                return Err(failure(io::ErrorKind::IsADirectory.into()));
            }
            Some(metadata) if !metadata.is_file() || is_open_file(path) => {
                let mut options = OpenOptions::new();
                options.append(metadata.is_file()).write(true);
                Self::Passthrough(options.open(path).map_err(failure)?)
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
                let path = follow_links(path).map_err(failure)?;
                let temp = TempFile::create(path, existing.as_ref(), !no_clobber, parts);
                Self::File(temp.map_err(failure)?)
            }
        })
    }
}

/// Adds the name of the target to an error. A broken pipe then means that the reader closed it; on a socket,
/// the same error is a lost connection.
pub(crate) fn annotate(name: &str, error: io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        OutputError {
            name: name.to_owned(),
            error,
        },
    )
}

#[derive(Debug)]
struct OutputError {
    name: String,
    error: io::Error,
}

impl std::fmt::Display for OutputError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.error)
    }
}

impl std::error::Error for OutputError {}

impl Failure {
    /// Converts a write error to a message for the user.
    pub(crate) fn from_output(error: io::Error) -> Self {
        // Some writers return a `Failure` of their own.
        let error = match error.downcast::<Self>() {
            Ok(refused) => return refused,
            Err(error) => error,
        };
        let inner = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<OutputError>());
        let name = inner.map_or("the output", |inner| inner.name.as_str());
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(
                Kind::ClosedPipe,
                format!("the reader of {name} closed it early"),
            );
        }
        let message = format!("cannot write to {name}");
        let hint = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "the disk is full: free some space, or write elsewhere"
            }
            io::ErrorKind::FileTooLarge => {
                "the file size limit is reached: raise it with `ulimit -f`"
            }
            _ => "write elsewhere with `-o`",
        };
        Self::new(Kind::Output, message).hint(hint).caused_by(error)
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

impl TempFile {
    fn create(
        path: PathBuf,
        existing: Option<&fs::Metadata>,
        replace: bool,
        parts: Option<&mut PartFiles>,
    ) -> io::Result<Self> {
        if let Some(metadata) = existing
            && metadata.permissions().readonly()
        {
            // Renaming would bypass the protection, but it was set on purpose.
            return Err(io::Error::new(
                io::ErrorKind::ReadOnlyFilesystem,
                "the file is write-protected",
            ));
        }
        let (folder, permissions) = (folder_of(&path), permissions(existing));
        let is_locked = parts.is_none();
        let file = match parts {
            Some(parts) => parts.create(folder, permissions),
            None => temp_file::create(folder, permissions),
        };
        let (file, temporary) = file.map_err(without_path)?.into_parts();
        let temp = Self {
            file: Some(file),
            temporary: Some(temporary),
            path,
            lock: None,
            is_locked,
            replace,
            is_database: false,
        };
        if let (Some(metadata), Some(file)) = (existing, &temp.file) {
            keep_owner_and_mode(file, metadata)?;
        }
        Ok(temp)
    }

    /// Flushes everything to disk, and closes the file unless that would release its lock.
    fn seal(&mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        file.sync_all()?;
        self.lock = Some(file).filter(|_| self.is_locked);
        Ok(())
    }

    fn publish(&mut self, publishing: &mut Publishing<'_>) -> io::Result<()> {
        let Some(temporary) = self.temporary.take() else {
            return Ok(());
        };
        let name = temporary.to_path_buf();
        publishing.place(&name, || {
            let placed = if self.replace {
                temporary.persist(&self.path)
            } else {
                temporary.persist_noclobber(&self.path)
            };
            placed.map_err(|error| error.error)
        })
    }

    /// Returns the file, unless it is sealed.
    fn file(&mut self) -> io::Result<&mut File> {
        let sealed = || io::Error::other("the file is sealed");
        self.file.as_mut().ok_or_else(sealed)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            cleanup::forget(temporary);
        }
    }
}

/// Returns the permissions of a new file, before the umask.
#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "returns `None` on other systems")]
fn permissions(existing: Option<&fs::Metadata>) -> Option<fs::Permissions> {
    use std::os::unix::fs::PermissionsExt as _;
    // The umask applies, as with any new file.
    let mode = existing.map_or(0o666, |metadata| metadata.permissions().mode() & 0o7777);
    Some(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn permissions(_: Option<&fs::Metadata>) -> Option<fs::Permissions> {
    None
}

/// Removes the name of the temporary file from an error: it means nothing to the user.
fn without_path(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((reason, _)) => io::Error::new(error.kind(), reason),
        None => error,
    }
}

#[cfg(unix)]
fn keep_owner_and_mode(file: &File, metadata: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (metadata.uid(), metadata.gid()) {
        // Only privileged users may change the owner; otherwise the current user becomes the owner.
        let _ = std::os::unix::fs::fchown(file, Some(metadata.uid()), Some(metadata.gid()));
    }
    file.set_permissions(metadata.permissions())
}

#[cfg(not(unix))]
fn keep_owner_and_mode(file: &File, metadata: &fs::Metadata) -> io::Result<()> {
    file.set_permissions(metadata.permissions())
}

impl Write for OutputTarget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(mut escaping) = self.escaping.take() {
            let shown = escaping.push(bytes);
            let written = self.write_all(shown.as_bytes());
            self.escaping = Some(escaping);
            return written.map(|()| bytes.len());
        }
        let written = match &mut self.sink {
            TargetKind::Stdout(stdout) => stdout.write(bytes),
            TargetKind::Passthrough(file) => file.write(bytes),
            TargetKind::File(temp) => temp.file().and_then(|file| file.write(bytes)),
            // Its errors contain the name already.
            TargetKind::Object(object) => return object.upload.write(bytes),
        };
        written.map_err(|error| self.annotated(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = match &mut self.sink {
            TargetKind::Stdout(stdout) => stdout.flush(),
            TargetKind::Passthrough(file) => file.flush(),
            TargetKind::File(temp) => temp.file().and_then(Write::flush),
            TargetKind::Object(object) => return object.upload.flush(),
        };
        flushed.map_err(|error| self.annotated(error))
    }
}

impl OutputTarget {
    pub(crate) fn annotated(&self, error: io::Error) -> io::Error {
        // The caller retries an interrupted write. A `Failure` has a complete message already.
        let refusal = error.get_ref();
        let refusal = refusal.and_then(|inner| inner.downcast_ref::<Failure>());
        if error.kind() == io::ErrorKind::Interrupted || refusal.is_some() {
            error
        } else {
            annotate(&self.name, error)
        }
    }
}
