//! Small files of the user's own, such as the config file and the client secret: replaced together, or not at all.

use std::fs::{self, File as Folder, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::Storage;
use super::cleanup::{Cleanup, Folders};
use super::local_file::keep_access;
use super::path::{folder_of, follow_links};
use super::temp_file::{PRIVATE, TempFile, sync_folder};
use crate::error::{Failure, Kind};

/// How long another run may take to change the files.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// A file to replace. A new one can be read by the user alone. A link is followed, and remains.
pub(crate) struct PrivateFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// Whether an existing file keeps its mode and its owner.
    pub(crate) keeps_attributes: bool,
}

/// No other run changes the file until this is dropped: the lock, if the system has such locks, and the folders that
/// were created. Those still empty are removed.
pub(crate) type PrivateLock = (Option<Folder>, Folders);

impl Storage {
    /// Fails now if the file at `path` could not be replaced later.
    pub(crate) fn check_private(&self, path: &Path) -> Result<(), Failure> {
        let file = PrivateFile {
            path: path.to_owned(),
            text: String::new(),
            keeps_attributes: true,
        };
        // Dropped after what was prepared in them: empty folders are removed.
        let mut folders = Folders::default();
        let prepared = Replacement::prepare(&file, &mut folders, &self.cleanup);
        prepared
            .map(drop)
            .map_err(|error| cannot_write(path, error))
    }

    /// Waits for other runs that are changing the file at `path`. Missing folders are created for the user alone.
    ///
    /// Read the file after this: a change must be made to the newest one.
    pub(crate) fn lock_private(&self, path: &Path) -> Result<PrivateLock, Failure> {
        let mut folders = Folders::default();
        let locked = follow_links(path).and_then(|path| {
            folders.create_private_for(&path, &self.cleanup)?;
            lock_folder(folder_of(&path))
        });
        match locked {
            Ok(folder) => Ok((folder, folders)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let message = format!("another run is changing `{}`", path.display());
                let failure = Failure::new(Kind::Locked, message);
                Err(failure.hint("try again when it has finished; nothing was changed"))
            }
            Err(error) => Err(cannot_write(path, error)),
        }
    }

    /// Replaces all of `files`, or none. Missing folders are created for the user alone.
    ///
    /// Between two renames, a process that is killed leaves the earlier files replaced and the later ones not.
    pub(crate) fn replace_private(&self, files: &[PrivateFile]) -> Result<(), Failure> {
        if files.is_empty() {
            return Ok(());
        }
        let mut folders = Folders::default();
        let mut replacements = Vec::new();
        for file in files {
            let replacement = Replacement::prepare(file, &mut folders, &self.cleanup);
            replacements.push(replacement.map_err(|error| cannot_write(&file.path, error))?);
        }
        let mut copies = Vec::new();
        // If the last rename fails, there is nothing to take back of it.
        for replacement in &replacements[..files.len() - 1] {
            let copy = replacement.copy(&self.cleanup);
            copies.push(copy.map_err(|error| cannot_write(&replacement.path, error))?);
        }
        let renamed = self.cleanup.publish_files(&replacements, |new| {
            new.temporary.rename(&new.path, /* replace: */ true)
        });
        let (count, renamed) = renamed.map_err(|error| cannot_write(&files[0].path, error))?;
        if let Err(error) = renamed {
            let failure = cannot_write(&files[count].path, error);
            for (replacement, copy) in replacements[..count].iter().zip(&copies) {
                if let Err(error) = replacement.restore(copy.as_ref()) {
                    let path = replacement.path.display();
                    log::warn!("`{path}` was replaced, and cannot be restored: {error}");
                }
            }
            return Err(failure);
        }
        for replacement in &replacements {
            let synced = sync_folder(folder_of(&replacement.path));
            synced.map_err(|error| cannot_write(&replacement.path, error))?;
        }
        Ok(())
    }
}

/// A file that is ready to be renamed.
struct Replacement {
    temporary: TempFile,
    path: PathBuf,
    /// The attributes of the file that it replaces; `None` if it is new.
    existing: Option<fs::Metadata>,
}

impl Replacement {
    fn prepare(file: &PrivateFile, folders: &mut Folders, cleanup: &Cleanup) -> io::Result<Self> {
        let path = follow_links(&file.path)?;
        let existing = match fs::symlink_metadata(&path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if let Some(metadata) = &existing {
            refuse_special(metadata)?;
        }
        folders.create_private_for(&path, cleanup)?;
        let mut temporary = TempFile::create(folder_of(&path), PRIVATE, cleanup)?;
        temporary.file()?.write_all(file.text.as_bytes())?;
        if let Some(metadata) = existing.as_ref().filter(|_| file.keeps_attributes) {
            keep_access(temporary.file()?, &path, metadata)?;
        }
        temporary.seal()?;
        Ok(Self {
            temporary,
            path,
            existing,
        })
    }

    /// Copies the file that is replaced; `None` if there is none.
    fn copy(&self, cleanup: &Cleanup) -> io::Result<Option<TempFile>> {
        let Some(metadata) = &self.existing else {
            return Ok(None);
        };
        let mut copy = TempFile::create(folder_of(&self.path), PRIVATE, cleanup)?;
        copy.file()?.write_all(&fs::read(&self.path)?)?;
        keep_access(copy.file()?, &self.path, metadata)?;
        copy.seal()?;
        Ok(Some(copy))
    }

    /// Takes the replacement back.
    fn restore(&self, copy: Option<&TempFile>) -> io::Result<()> {
        match copy {
            Some(copy) => copy.rename(&self.path, /* replace: */ true).map(drop),
            None => fs::remove_file(&self.path),
        }
    }
}

/// Locks a folder; `None` if the system has no such locks. Fails with `WouldBlock` if it stays locked.
fn lock_folder(path: &Path) -> io::Result<Option<Folder>> {
    let Ok(folder) = Folder::open(path) else {
        return Ok(None);
    };
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match folder.try_lock() {
            Ok(()) => return Ok(Some(folder)),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(_)) => return Ok(None),
        }
    }
}

/// Refuses to replace what is not a file, or was protected on purpose.
fn refuse_special(metadata: &fs::Metadata) -> io::Result<()> {
    let refuse = |kind, why: &str| Err(io::Error::new(kind, why));
    if metadata.is_dir() {
        refuse(io::ErrorKind::IsADirectory, "it is a folder")
    } else if !metadata.is_file() {
        refuse(io::ErrorKind::InvalidInput, "it is not a regular file")
    } else if metadata.permissions().readonly() {
        let kind = io::ErrorKind::ReadOnlyFilesystem;
        refuse(kind, "the file is write-protected")
    } else {
        Ok(())
    }
}

fn cannot_write(path: &Path, error: io::Error) -> Failure {
    let message = format!("cannot write to `{}`", path.display());
    let failure = Failure::new(Kind::Output, message).caused_by(error);
    failure.hint("check the permissions and the free space, or choose another path with `--config`")
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use tempfile::TempDir;

    use super::*;

    fn replace(files: &[(&Path, &str, bool)]) -> Result<(), Failure> {
        let file = |(path, text, keeps_attributes): &(&Path, &str, bool)| PrivateFile {
            path: path.to_path_buf(),
            text: (*text).to_owned(),
            keeps_attributes: *keeps_attributes,
        };
        let files: Vec<PrivateFile> = files.iter().map(file).collect();
        Storage::default().replace_private(&files)
    }

    fn mode(path: &Path) -> u32 {
        let metadata = fs::metadata(path).expect("an entry");
        metadata.permissions().mode() & 0o777
    }

    #[test]
    fn new_files_and_folders_are_private() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("a/b/file");
        replace(&[(&path, "text", true)]).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "text");
        for (path, expected) in [("a", 0o700), ("a/b", 0o700), ("a/b/file", 0o600)] {
            assert_eq!(mode(&folder.path().join(path)), expected, "{path}");
        }
    }

    #[test]
    fn a_check_leaves_nothing() {
        let folder = TempDir::new().expect("a folder");
        let storage = Storage::default();
        let path = folder.path().join("a/b/file");
        storage.check_private(&path).expect("it can be written");
        assert!(!folder.path().join("a").exists());
        fs::write(folder.path().join("a"), "").expect("a file in the way");
        let failure = storage.check_private(&path).expect_err("no folder");
        assert_eq!(failure.kind, Kind::Output);
    }

    #[test]
    fn an_existing_file_keeps_its_mode_only_if_asked_to() {
        let folder = TempDir::new().expect("a folder");
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        fs::write(&file, "old").expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("a mode");
        symlink("file", &link).expect("a link");
        replace(&[(&link, "new", true)]).expect("written");
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).expect("a file"), "new");
        assert_eq!(mode(&file), 0o640);
        replace(&[(&link, "newer", false)]).expect("written");
        assert!(link.is_symlink());
        assert_eq!(mode(&file), 0o600);
        assert_eq!(fs::read_to_string(&file).expect("a file"), "newer");
    }

    #[test]
    fn one_run_at_a_time_holds_the_lock() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("a/file");
        let storage = Storage::default();
        let lock = storage.lock_private(&path).expect("the lock");
        let open = Folder::open(folder.path().join("a")).expect("a new folder");
        assert!(open.try_lock().is_err());
        drop(lock);
        assert!(!folder.path().join("a").exists(), "nothing was written");
        assert!(open.try_lock().is_ok());
    }

    #[test]
    fn all_files_are_replaced_or_none() {
        let folder = TempDir::new().expect("a folder");
        let [old, new, other] = ["old", "new", "other"].map(|name| folder.path().join(name));
        fs::write(&old, "old").expect("a file");
        fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).expect("a mode");
        fs::create_dir(&other).expect("a folder in the way");
        let files = [(&*old, "changed", false), (&*other, "text", true)];
        let failure = replace(&files).expect_err("a folder");
        assert_eq!(failure.kind, Kind::Output);
        assert_eq!(fs::read_to_string(&old).expect("a file"), "old");

        // The second rename fails: the first is taken back.
        let storage = Storage::default();
        for path in [&old, &new] {
            let mut folders = Folders::default();
            let file = PrivateFile {
                path: path.clone(),
                text: "changed".to_owned(),
                keeps_attributes: false,
            };
            let replacement = Replacement::prepare(&file, &mut folders, &storage.cleanup);
            let replacement = replacement.expect("ready");
            let copy = replacement.copy(&storage.cleanup).expect("a copy");
            let renamed = replacement.temporary.rename(path, true);
            assert!(renamed.is_ok());
            assert_eq!(fs::read_to_string(path).expect("a file"), "changed");
            replacement.restore(copy.as_ref()).expect("restored");
        }
        assert_eq!(fs::read_to_string(&old).expect("a file"), "old");
        assert_eq!(mode(&old), 0o640);
        assert!(!new.exists());
    }
}
