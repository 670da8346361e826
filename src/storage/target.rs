//! Where bytes end up: standard output, or a file or an object that appears whole or not at all.
//!
//! A file is written beside its place under a name that nobody can foresee, flushed to the disk, and
//! renamed; the folder is flushed too. Until then, what was there before stays, byte for byte.

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
    /// As the user named it.
    name: String,
    /// Set if this is a terminal that must not obey what is written.
    escaping: Option<Escaping>,
}

enum TargetKind {
    Stdout(io::Stdout),
    /// A device or a pipe: there is nothing to rename.
    Passthrough(File),
    File(TempFile),
    Object(Box<ObjectTarget>),
}

/// An object on its way.
struct ObjectTarget {
    upload: Upload,
    /// What a format wrote itself, and that is still to be sent.
    local: Option<Scratch>,
}

/// A file beside its place.
struct TempFile {
    /// Nothing once it is sealed.
    file: Option<File>,
    /// Removes the file when dropped.
    temporary: Option<TempPath>,
    /// The file once it is sealed, if a lock on it tells other runs that it is in use.
    lock: Option<File>,
    is_locked: bool,
    path: PathBuf,
    replace: bool,
    /// What SQLite keeps beside a database must not stand beside it.
    is_database: bool,
}

impl OutputTarget {
    /// Opens `place`; finds out now whether it can be written.
    pub(crate) fn open(place: &Location, no_clobber: bool) -> Result<Self, Failure> {
        Self::open_as(place, no_clobber, true, None)
    }

    /// Opens `place`, one of many that are written one after the other: of objects, those that cannot be
    /// written are found out later.
    pub(crate) fn open_among(
        place: &Location,
        no_clobber: bool,
        parts: Option<&mut PartFiles>,
    ) -> Result<Self, Failure> {
        Self::open_as(place, no_clobber, false, parts)
    }

    fn open_as(
        place: &Location,
        no_clobber: bool,
        alone: bool,
        parts: Option<&mut PartFiles>,
    ) -> Result<Self, Failure> {
        let name = place.name();
        let sink = match place {
            Location::Stdout => TargetKind::Stdout(io::stdout()),
            Location::File(path) => TargetKind::file(path, &name, no_clobber, parts)?,
            Location::Object(address) => TargetKind::Object(Box::new(ObjectTarget {
                upload: Upload::begin(address, no_clobber, alone)?,
                local: None,
            })),
            #[cfg(feature = "postgres")]
            Location::Table(_) => {
                let why = format!("{name} is a table, and this can only be written to a file");
                return Err(Failure::new(Kind::Usage, why).hint("name a file"));
            }
        };
        Ok(Self {
            sink,
            name,
            escaping: None,
        })
    }

    /// Makes sure that there is a file to be written by others, where there can be one.
    pub(crate) fn prepare_beside(&mut self) -> io::Result<()> {
        if let TargetKind::Object(object) = &mut self.sink {
            object.local = Some(Scratch::new(Path::new(""))?);
        }
        Ok(())
    }

    /// Returns the file that is written before it is renamed or sent; nothing where bytes go elsewhere.
    pub(crate) fn beside(&self) -> Option<&Path> {
        match &self.sink {
            TargetKind::File(fresh) => fresh.temporary.as_deref(),
            TargetKind::Object(object) => object.local.as_ref().map(Scratch::path),
            TargetKind::Stdout(_) | TargetKind::Passthrough(_) => None,
        }
    }

    /// Says that a database is written, and finds out whether that can take its place; again before it does.
    pub(crate) fn expect_database(&mut self) -> Result<(), Failure> {
        let TargetKind::File(fresh) = &mut self.sink else {
            return Ok(());
        };
        fresh.is_database = true;
        refuse_sidecars(&fresh.path)
    }

    /// Names it in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.sink, TargetKind::Stdout(_))
    }

    /// Shows what a terminal would obey as escapes, if this is one.
    pub(crate) fn escape_on_terminal(&mut self, escapes: Escapes) {
        let is_terminal = match &self.sink {
            TargetKind::Stdout(stdout) => stdout.is_terminal(),
            TargetKind::Passthrough(file) => file.is_terminal(),
            TargetKind::File(_) | TargetKind::Object(_) => false,
        };
        self.escaping = is_terminal.then(|| Escaping::new(escapes));
    }

    /// Gets everything to the disk, and holds on to nothing but a name: there may be many.
    pub(crate) fn seal(&mut self) -> io::Result<()> {
        match &mut self.sink {
            TargetKind::Stdout(_) | TargetKind::Passthrough(_) => Ok(()),
            TargetKind::File(fresh) => fresh.seal().map_err(|error| annotate(&self.name, error)),
            TargetKind::Object(object) => object.seal(),
        }
    }

    /// Waits until everything that was sealed is where it can be put in its place without fail.
    pub(crate) fn arrive(&mut self) -> Result<(), Failure> {
        match &mut self.sink {
            TargetKind::File(fresh) if !fresh.replace && fresh.path.exists() => {
                Err(appeared(&self.name))
            }
            TargetKind::File(fresh) if fresh.is_database => refuse_sidecars(&fresh.path),
            TargetKind::Object(object) => object.upload.arrive(),
            TargetKind::Stdout(_) | TargetKind::Passthrough(_) | TargetKind::File(_) => Ok(()),
        }
    }

    /// Puts everything in its place: once the first file is there, the others follow, whatever signal
    /// comes.
    pub(crate) fn publish(mut targets: Vec<Self>) -> Result<(), Failure> {
        for target in &mut targets {
            if let Some(rest) = target.escaping.take().map(|mut escaping| escaping.finish()) {
                target
                    .write_all(rest.as_bytes())
                    .map_err(Failure::from_output)?;
            }
            target.seal().map_err(Failure::from_output)?;
        }
        // What did not get to its place is removed behind this, when others may look for it again.
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

/// Renames all files; returns their folders.
fn place_files(
    targets: &mut [OutputTarget],
    publishing: &mut Publishing<'_>,
) -> Result<BTreeSet<PathBuf>, Failure> {
    let count = targets.len();
    let mut folders = BTreeSet::new();
    for OutputTarget { sink, name, .. } in targets {
        let TargetKind::File(fresh) = sink else {
            continue;
        };
        if let Err(error) = fresh.place(publishing) {
            let failure = match error.kind() {
                io::ErrorKind::AlreadyExists => appeared(name),
                _ => Failure::from_output(annotate(name, error)),
            };
            return Err(match publishing.placed() {
                0 => failure,
                placed => failure.hint(format!("{placed} of {count} files are new already")),
            });
        }
        folders.insert(folder_of(&fresh.path).to_owned());
    }
    Ok(folders)
}

fn appeared(name: &str) -> Failure {
    Failure::new(
        Kind::Output,
        format!("{name} has appeared meanwhile, and `--no-clobber` keeps it"),
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
                    format!("{name} is an archive of `trayscan sync`, with all that it remembers"),
                )
                .hint("choose another name; `--archive` reads from it"));
            }
            Some(_) if no_clobber => {
                return Err(Failure::new(
                    Kind::Output,
                    format!("{name} exists, and `--no-clobber` keeps it"),
                )
                .hint("choose another name, or leave `--no-clobber` out"));
            }
            existing => {
                let path = follow_links(path).map_err(failure)?;
                let fresh = TempFile::create(path, existing.as_ref(), !no_clobber, parts);
                Self::File(fresh.map_err(failure)?)
            }
        })
    }
}

/// Marks an error with where it happened, and a closed pipe as the reader's leaving: on a socket the
/// same error is a broken connection.
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
    /// Turns an error of writing into what the user is told.
    pub(crate) fn from_output(error: io::Error) -> Self {
        // Some refuse what they are given, and say so themselves.
        let error = match error.downcast::<Self>() {
            Ok(refused) => return refused,
            Err(error) => error,
        };
        let inner = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<OutputError>());
        let name = inner.map_or("the output", |inner| inner.name.as_str());
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Kind::ClosedPipe, format!("the reader of {name} has left"));
        }
        let message = format!("cannot write to {name}");
        let hint = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "the disk is full: free some space, or write elsewhere"
            }
            io::ErrorKind::FileTooLarge => {
                "a limit on the size of files is reached: raise it with `ulimit -f`"
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
                format!("make the folder first: mkdir -p '{}'", folder.display())
            }
            _ => "choose another place with `-o`".to_owned(),
        },
        io::ErrorKind::IsADirectory => "it is a folder: name a file in it".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => {
            "it is write-protected: choose another place with `-o`".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "the file is written beside its place first, so its folder must be writable too"
                .to_owned()
        }
        _ => "choose another place with `-o`".to_owned(),
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
            // Renaming would get around it; but somebody meant it.
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
        let fresh = Self {
            file: Some(file),
            temporary: Some(temporary),
            path,
            lock: None,
            is_locked,
            replace,
            is_database: false,
        };
        if let (Some(metadata), Some(file)) = (existing, &fresh.file) {
            keep_owner_and_mode(file, metadata)?;
        }
        Ok(fresh)
    }

    /// Gets everything to the disk, and closes the file unless that would release its lock.
    fn seal(&mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        file.sync_all()?;
        self.lock = Some(file).filter(|_| self.is_locked);
        Ok(())
    }

    fn place(&mut self, publishing: &mut Publishing<'_>) -> io::Result<()> {
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

    /// The file, as long as it is not sealed.
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

/// Returns what a new file is created with, before the umask.
#[cfg(unix)]
#[allow(
    clippy::unnecessary_wraps,
    reason = "elsewhere, there is no such thing"
)]
fn permissions(existing: Option<&fs::Metadata>) -> Option<fs::Permissions> {
    use std::os::unix::fs::PermissionsExt as _;
    // The umask takes its share, as with any new file.
    let mode = existing.map_or(0o666, |metadata| metadata.permissions().mode() & 0o7777);
    Some(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn permissions(_: Option<&fs::Metadata>) -> Option<fs::Permissions> {
    None
}

/// Takes the name of the temporary file out of an error: nobody knows it.
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
        // Only some may give files away; for the others the file becomes their own.
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
            TargetKind::File(fresh) => fresh.file().and_then(|file| file.write(bytes)),
            // It names itself in its errors.
            TargetKind::Object(object) => return object.upload.write(bytes),
        };
        written.map_err(|error| self.annotated(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = match &mut self.sink {
            TargetKind::Stdout(stdout) => stdout.flush(),
            TargetKind::Passthrough(file) => file.flush(),
            TargetKind::File(fresh) => fresh.file().and_then(Write::flush),
            TargetKind::Object(object) => return object.upload.flush(),
        };
        flushed.map_err(|error| self.annotated(error))
    }
}

impl OutputTarget {
    pub(crate) fn annotated(&self, error: io::Error) -> io::Error {
        // A write that was interrupted is tried again by whoever called; a refusal says it all.
        let refusal = error.get_ref();
        let refusal = refusal.and_then(|inner| inner.downcast_ref::<Failure>());
        if error.kind() == io::ErrorKind::Interrupted || refusal.is_some() {
            error
        } else {
            annotate(&self.name, error)
        }
    }
}
