//! A local file: written next to its final path, flushed to disk, and renamed.
//!
//! The temporary file has an unpredictable name. Until it is renamed, an existing file stays unchanged; the
//! folder is flushed to disk, too.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Storage;
use super::path::{folder_of, follow_links};
use super::sqlite::refuse_sidecars;
use super::temp_file::{PartFiles, TempFile, sync_folder};
use super::transaction::Transaction;
use crate::error::{Failure, Kind};

pub(crate) struct LocalFile {
    temporary: TempFile,
    path: PathBuf,
    name: String,
    replace: bool,
    /// SQLite journals must not exist next to a database.
    is_database: bool,
}

impl LocalFile {
    /// Starts to write the file at `path`, which may be `existing`; as one of `parts` if there are many.
    pub(super) fn create(
        path: &Path,
        name: &str,
        existing: Option<&fs::Metadata>,
        replace: bool,
        parts: Option<&mut PartFiles>,
        storage: &Storage,
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
        let path = follow_links(path)?;
        let (folder, mode) = (folder_of(&path), mode(existing));
        let mut temporary = match parts {
            Some(parts) => parts.create(folder, mode)?,
            None => TempFile::create(folder, mode, &storage.cleanup)?,
        };
        if let Some(metadata) = existing {
            keep_owner_and_mode(temporary.file()?, metadata)?;
        }
        Ok(Self {
            temporary,
            path,
            name: name.to_owned(),
            replace,
            is_database: false,
        })
    }

    fn created_meanwhile(&self) -> Failure {
        Failure::new(
            Kind::Output,
            format!(
                "{} was created in the meantime, and `--no-clobber` keeps it",
                self.name
            ),
        )
    }
}

impl Write for LocalFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temporary.file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.file()?.flush()
    }
}

impl Transaction for LocalFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn write_by_path(&mut self) -> io::Result<Option<&Path>> {
        Ok(Some(self.temporary.path()))
    }

    /// Checked again before publishing.
    fn expect_database(&mut self) -> Result<(), Failure> {
        self.is_database = true;
        refuse_sidecars(&self.path)
    }

    /// Closes the file, too, if it is one of many.
    fn seal(&mut self) -> io::Result<()> {
        self.temporary.seal()
    }

    fn prepare(&mut self) -> Result<(), Failure> {
        if !self.replace && self.path.exists() {
            return Err(self.created_meanwhile());
        }
        if self.is_database {
            refuse_sidecars(&self.path)?;
        }
        Ok(())
    }

    /// Renames all files. Once the first is renamed, the others follow, even if a signal arrives.
    fn commit(mut all: Vec<Self>) -> Result<(), Failure> {
        let Some(first) = all.first_mut() else {
            return Ok(());
        };
        let cleanup = first.temporary.cleanup().clone();
        // Files that were not renamed are removed after this, outside the lock.
        let renamed =
            cleanup.publish_files(&all, |file| file.temporary.rename(&file.path, file.replace));
        let (count, renamed) = renamed.map_err(|error| all[0].failure(error))?;
        if let Err(error) = renamed {
            let file = &mut all[count];
            let failure = match error.kind() {
                io::ErrorKind::AlreadyExists => file.created_meanwhile(),
                _ => file.failure(error),
            };
            return Err(match count {
                0 => failure,
                count => {
                    let all = all.len();
                    failure.hint(format!("{count} of {all} files were already replaced"))
                }
            });
        }
        let folders: BTreeSet<&Path> = all.iter().map(|file| folder_of(&file.path)).collect();
        let mut folders = folders.into_iter();
        folders
            .try_for_each(sync_folder)
            .map_err(|error| Failure::from_output(&all[0].name, error))
    }
}

/// Returns the mode of a new file, before the umask.
#[cfg(unix)]
fn mode(existing: Option<&fs::Metadata>) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    existing.map_or(0o666, |metadata| metadata.permissions().mode() & 0o7777)
}

#[cfg(not(unix))]
fn mode(_: Option<&fs::Metadata>) -> u32 {
    super::temp_file::PRIVATE
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
