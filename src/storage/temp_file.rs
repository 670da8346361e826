//! Temporary files that a later run recognises, and removes if the run that made them was killed.
//!
//! A file has one of three names, where `ID` is 12 random letters and digits:
//!
//! - `.trayscan-ID.tmp`: one file. The run that writes it keeps it open and locked. The kernel releases the
//!   lock when the process ends, however it ends, so a file that can be locked is a stray.
//! - `.trayscan-ID-N.part`: one file of many. A run may write tens of thousands, too many to keep open.
//! - `.trayscan-ID.list`: locked like a `.tmp` file. It names the folders with the `.part` files of a run.
//!
//! A run removes the strays in each folder that it writes to. It removes only regular files of the same user
//! whose names match exactly and whose lock it can take. On network file systems a lock may not be visible
//! to other machines, so nothing is locked or removed there. The same goes for systems other than Linux:
//! some of them do not separate these locks from the ones that SQLite uses.
//!
//! `O_TMPFILE` would not replace this: a file without a name cannot be renamed over an existing one. It
//! needs a temporary name first, and a run that is killed at that moment leaves a stray as well.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::iter;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::cleanup::{Cleanup, Unpublished};
use super::path::folder_of;

const PREFIX: &str = ".trayscan-";
const ID_LENGTH: usize = 12;
const TEMP: &str = ".tmp";
const PART: &str = ".part";
const LIST: &str = ".list";

/// How often a new file may be mistaken for a stray before it is locked.
const ATTEMPTS: usize = 16;

/// A temporary file. It is removed when dropped, unless it was renamed.
pub(crate) struct TempFile {
    path: PathBuf,
    /// `None` once a file without a lock is sealed: there may be many.
    file: Option<File>,
    is_locked: bool,
    pub(super) unpublished: Unpublished,
}

/// The mode of a file that only the user may read.
pub(super) const PRIVATE: u32 = 0o600;

impl TempFile {
    /// Creates a locked file in `folder` with this mode, before the umask. Removes the strays there first.
    pub(super) fn create(folder: &Path, mode: u32, cleanup: &Cleanup) -> io::Result<Self> {
        remove_strays(folder);
        Self::locked(folder, TEMP, mode, cleanup)
    }

    /// Creates a file in the system's temporary folder, with the extensions of `name`.
    pub(super) fn create_scratch(name: &Path, cleanup: &Cleanup) -> io::Result<Self> {
        let folder = std::env::temp_dir();
        // A run may need many such files, one after the other.
        if cleanup.is_first_scratch() {
            strays::remove(&folder, Suffix::WithExtensions);
        }
        let suffix = format!("{TEMP}{}", extensions(name));
        Self::locked(&folder, &suffix, PRIVATE, cleanup)
    }

    fn locked(folder: &Path, suffix: &str, mode: u32, cleanup: &Cleanup) -> io::Result<Self> {
        let has_locks = strays::has_locks(folder);
        for _ in 0..ATTEMPTS {
            let id: String = iter::repeat_with(fastrand::alphanumeric)
                .take(ID_LENGTH)
                .collect();
            let path = folder.join(format!("{PREFIX}{id}{suffix}"));
            let new = match Self::new(path, mode, cleanup) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                new => new?,
            };
            let is_ours = match &new.file {
                Some(file) if has_locks => strays::lock(file)?,
                _ => true,
            };
            if is_ours {
                return Ok(Self {
                    is_locked: true,
                    ..new
                });
            }
        }
        Err(io::Error::other("every new temporary file was removed"))
    }

    /// Creates a file that must not exist yet, not even as a link.
    fn new(path: PathBuf, mode: u32, cleanup: &Cleanup) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        set_mode(&mut options, mode);
        let create = || Ok((options.open(&path)?, path.clone()));
        let (file, unpublished) = cleanup.create_file(create)?;
        Ok(Self {
            path,
            file: Some(file),
            is_locked: false,
            unpublished,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the open file, unless it is sealed.
    pub(super) fn file(&mut self) -> io::Result<&mut File> {
        let sealed = || io::Error::other("the file is sealed");
        self.file.as_mut().ok_or_else(sealed)
    }

    /// Flushes everything to disk, and closes the file unless that would release its lock.
    pub(super) fn seal(&mut self) -> io::Result<()> {
        if let Some(file) = &self.file {
            file.sync_all()?;
        }
        if !self.is_locked {
            self.file = None;
        }
        Ok(())
    }

    /// Renames it to `path`.
    pub(super) fn rename(&self, path: &Path, replace: bool) -> io::Result<&Unpublished> {
        if replace {
            fs::rename(&self.path, path)?;
        } else {
            let renamed = TempPath::try_from_path(&self.path)?.persist_noclobber(path);
            renamed.map_err(|error| error.error)?;
        }
        Ok(&self.unpublished)
    }

    /// Replaces the file at `path` with `text`. It does not count as a result: a signal can still stop the run.
    pub(crate) fn replace(path: &Path, text: &[u8], cleanup: &Cleanup) -> io::Result<()> {
        let folder = folder_of(path);
        let mut new = Self::create(folder, PRIVATE, cleanup)?;
        new.file()?.write_all(text)?;
        new.seal()?;
        new.rename(path, true)?;
        new.unpublished.keep();
        sync_folder(folder)
    }
}

/// Removes strays in `folder`.
pub(crate) fn remove_strays(folder: &Path) {
    strays::remove(folder, Suffix::Exact);
}

/// Returns the last two extensions of `name` if they are short and alphanumeric: they show the format.
fn extensions(name: &Path) -> String {
    let name = name.file_name().unwrap_or_default().to_string_lossy();
    let is_plain = |extension: &&str| {
        (1..=8).contains(&extension.len()) && extension.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    let extensions: Vec<&str> = name.split('.').skip(1).collect();
    let first = extensions.len().saturating_sub(2);
    let plain = extensions[first..].iter().copied().filter(is_plain);
    plain.flat_map(|extension| [".", extension]).collect()
}

/// The temporary files of a run that writes many files and publishes all of them together.
pub(crate) struct PartFiles {
    id: String,
    created: usize,
    /// Removed when dropped, which must be after all parts are published or removed.
    list: TempFile,
}

impl PartFiles {
    /// Prepares to create files in `folders`. The list of them is written to `base` first.
    pub(crate) fn new<'a>(
        base: &Path,
        folders: impl IntoIterator<Item = &'a PathBuf>,
        cleanup: &Cleanup,
    ) -> io::Result<Self> {
        remove_strays(base);
        let mut list = TempFile::locked(base, LIST, PRIVATE, cleanup)?;
        let name = list.path.file_name().unwrap_or_default().to_string_lossy();
        let id = name[PREFIX.len()..PREFIX.len() + ID_LENGTH].to_owned();
        let mut text = Vec::new();
        for folder in folders {
            remove_strays(folder);
            let folder = std::path::absolute(folder)?;
            text.extend_from_slice(folder.as_os_str().as_encoded_bytes());
            text.push(0);
        }
        // On disk before the first part is, in case the power fails.
        list.file()?.write_all(&text)?;
        list.seal()?;
        sync_folder(base)?;
        Ok(Self {
            id,
            created: 0,
            list,
        })
    }

    /// Creates the next file, in `folder`, with this mode before the umask.
    pub(super) fn create(&mut self, folder: &Path, mode: u32) -> io::Result<TempFile> {
        self.created += 1;
        let name = format!("{PREFIX}{}-{}{PART}", self.id, self.created);
        TempFile::new(folder.join(name), mode, &self.list.unpublished.cleanup)
    }
}

#[cfg(unix)]
fn set_mode(options: &mut OpenOptions, mode: u32) {
    std::os::unix::fs::OpenOptionsExt::mode(options, mode);
}

#[cfg(not(unix))]
fn set_mode(_: &mut OpenOptions, _: u32) {}

/// Flushes the entries of `folder` to disk.
#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some folders are writable but not readable, and some file systems do not support this.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput
            ) =>
        {
            Ok(())
        }
        result => result,
    }
}

#[cfg(not(unix))]
pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// What may follow `.tmp` in the name of a stray.
#[derive(Clone, Copy)]
enum Suffix {
    Exact,
    /// As [`TempFile::create_scratch`] adds them.
    WithExtensions,
}

/// The kind of a temporary file, parsed from its name.
#[cfg(any(test, target_os = "linux"))]
#[derive(Debug, PartialEq, Eq)]
enum StrayName<'a> {
    Temp,
    /// With the ID.
    Part(&'a str),
    List(&'a str),
}

#[cfg(any(test, target_os = "linux"))]
impl<'a> StrayName<'a> {
    fn parse(name: &'a str, suffix: Suffix) -> Option<Self> {
        let (id, rest) = name.strip_prefix(PREFIX)?.split_at_checked(ID_LENGTH)?;
        if !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return None;
        }
        if let Some(added) = rest.strip_prefix(TEMP) {
            let is_known = match suffix {
                Suffix::Exact => added.is_empty(),
                Suffix::WithExtensions => added == extensions(Path::new(&format!("name{added}"))),
            };
            return is_known.then_some(Self::Temp);
        }
        if rest == LIST {
            return Some(Self::List(id));
        }
        let number = rest.strip_prefix('-')?.strip_suffix(PART)?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then_some(Self::Part(id))
    }
}

/// Finding and removing strays.
#[cfg(target_os = "linux")]
mod strays {
    use std::collections::HashSet;
    use std::ffi::OsStr;
    use std::fs::{self, File, TryLockError};
    use std::io::{self, Read as _};
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

    use rustix::fs::{Mode, OFlags};

    use crate::storage::path::file_id;
    use crate::storage::temp_file::{LIST, PREFIX, StrayName, Suffix};

    /// Magic numbers of file systems that other machines may write to, and of FUSE, where that is unknown.
    const NETWORK: [u32; 12] = [
        0x6969,      // NFS
        0xff53_4d42, // CIFS
        0xfe53_4d42, // SMB2
        0x517b,      // SMB
        0x0102_1997, // 9P
        0x6573_5546, // FUSE
        0x00c3_6400, // Ceph
        0x0bd0_0bd0, // Lustre
        0x0116_1970, // GFS2
        0x7461_636f, // OCFS2
        0x5346_414f, // AFS
        0x786f_4256, // VirtualBox shared folders
    ];

    /// Returns whether a lock on a file in `folder` is visible to everyone who can see the file.
    pub(super) fn has_locks(folder: &Path) -> bool {
        // The type of the number differs between architectures; the numbers have 32 bits.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        rustix::fs::statfs(folder).is_ok_and(|found| !NETWORK.contains(&(found.f_type as u32)))
    }

    /// Locks a file that was just created. Returns false if another run has taken it for a stray.
    pub(super) fn lock(file: &File) -> io::Result<bool> {
        match file.try_lock() {
            Ok(()) => Ok(file.metadata()?.nlink() > 0),
            Err(TryLockError::WouldBlock) => Ok(false),
            // There are no locks here, so nothing is removed here either.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                Ok(true)
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Removes strays in `folder`. Failures are only logged.
    pub(super) fn remove(folder: &Path, suffix: Suffix) {
        if !has_locks(folder) {
            return;
        }
        if let Err(error) = try_remove(folder, suffix) {
            let folder = folder.display();
            log::info!("cannot look for temporary files of killed runs in `{folder}`: {error}");
        }
    }

    fn try_remove(folder: &Path, suffix: Suffix) -> io::Result<()> {
        let mut lists = HashSet::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            match StrayName::parse(name, suffix) {
                Some(StrayName::Temp) => {
                    let path = folder.join(name);
                    if let Some(_lock) = lock_stray(&path) {
                        remove_file(&path);
                    }
                }
                Some(StrayName::List(id)) => remove_listed(folder, id, folder),
                Some(StrayName::Part(id)) if lists.insert(id.to_owned()) => {
                    let folder = folder.canonicalize()?;
                    let list = format!("{PREFIX}{id}{LIST}");
                    let mut above = folder.ancestors();
                    if let Some(base) = above.find(|base| base.join(&list).exists()) {
                        remove_listed(base, id, &folder);
                    }
                }
                Some(StrayName::Part(_)) | None => {}
            }
        }
        Ok(())
    }

    /// Removes the parts listed in list `id` in `base`, and the list itself. Removes folders that are then
    /// empty, unless they are `needed`.
    fn remove_listed(base: &Path, id: &str, needed: &Path) {
        if !has_locks(base) {
            return;
        }
        let path = base.join(format!("{PREFIX}{id}{LIST}"));
        let Some(mut list) = lock_stray(&path) else {
            return;
        };
        let mut folders = Vec::new();
        let removed = list.read_to_end(&mut folders).and_then(|_| {
            let folders = folders.split(|byte| *byte == 0);
            let mut folders = folders.filter(|folder| !folder.is_empty());
            folders.try_for_each(|folder| {
                let folder = Path::new(OsStr::from_bytes(folder));
                remove_parts(folder, id)?;
                remove_empty(folder, base, needed);
                Ok(())
            })
        });
        match removed {
            Ok(()) => remove_file(&path),
            Err(error) => log::info!("cannot remove what `{}` lists: {error}", path.display()),
        }
    }

    /// Removes `folder` and its parents below `base`, up to the first that is not empty or is `needed`.
    fn remove_empty(folder: &Path, base: &Path, needed: &Path) {
        let (Ok(base), Ok(needed)) = (base.canonicalize(), needed.canonicalize()) else {
            return;
        };
        let Ok(folder) = folder.canonicalize() else {
            return;
        };
        let is_ours = |above: &&Path| {
            *above != base && above.starts_with(&base) && !needed.starts_with(above)
        };
        let mut above = folder.ancestors().take_while(is_ours);
        // Fails if the folder is not empty.
        let _ = above.try_for_each(fs::remove_dir);
    }

    fn remove_parts(folder: &Path, id: &str) -> io::Result<()> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let name = entry?.file_name();
            let name = name.to_str().filter(|name| {
                // Only parts of this run.
                matches!(StrayName::parse(name, Suffix::Exact), Some(StrayName::Part(other)) if other == id)
            });
            let path = name.map(|name| folder.join(name));
            if let Some(path) = path.filter(|path| open_own(path).is_some()) {
                remove_file(&path);
            }
        }
        Ok(())
    }

    /// Opens a regular file of this user.
    fn open_own(path: &Path) -> Option<File> {
        // Opening a pipe must not block, and a link must not be followed.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
        let metadata = file.metadata().ok()?;
        let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
        (metadata.is_file() && is_own).then_some(file)
    }

    /// Locks a file whose run has ended, if the file is still at `path`.
    fn lock_stray(path: &Path) -> Option<File> {
        let file = open_own(path)?;
        file.try_lock().ok()?;
        let (held, named) = (file.metadata().ok()?, path.symlink_metadata().ok()?);
        (file_id(&held) == file_id(&named)).then_some(file)
    }

    fn remove_file(path: &Path) {
        match fs::remove_file(path) {
            Ok(()) => log::info!(
                "removed `{}`, which a killed run had left behind",
                path.display()
            ),
            Err(error) => log::info!("cannot remove `{}`: {error}", path.display()),
        }
    }
}

/// On other systems, nothing is locked or removed.
#[cfg(not(target_os = "linux"))]
mod strays {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(super) fn has_locks(_: &Path) -> bool {
        false
    }

    #[allow(clippy::unnecessary_wraps, reason = "can fail on Linux")]
    pub(super) fn lock(_: &File) -> io::Result<bool> {
        Ok(true)
    }

    pub(super) fn remove(_: &Path, _: super::Suffix) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_names_are_recognised() {
        assert_eq!(
            StrayName::parse(".trayscan-0123456789aB.tmp", Suffix::Exact),
            Some(StrayName::Temp)
        );
        let part = StrayName::parse(".trayscan-0123456789aB-17.part", Suffix::Exact);
        assert_eq!(part, Some(StrayName::Part("0123456789aB")));
        let list = StrayName::parse(".trayscan-0123456789aB.list", Suffix::Exact);
        assert_eq!(list, Some(StrayName::List("0123456789aB")));
        for foreign in [
            ".trayscan-",
            ".trayscan-0123456789a.tmp",
            ".trayscan-0123456789abc.tmp",
            ".trayscan-0123456789a_.tmp",
            ".trayscan-0123456789é.tmp",
            ".trayscan-0123456789ab.tmp~",
            ".trayscan-0123456789ab.tmp.csv",
            ".trayscan-0123456789ab.TMP",
            ".trayscan-0123456789ab-.part",
            ".trayscan-0123456789ab-1a.part",
            ".trayscan-0123456789ab-1.part.bak",
            "x.trayscan-0123456789ab.tmp",
            ".trayscan-ABC123",
        ] {
            assert_eq!(StrayName::parse(foreign, Suffix::Exact), None, "{foreign}");
        }
        let scratch = ".trayscan-0123456789ab.tmp.csv.gz";
        assert_eq!(
            StrayName::parse(scratch, Suffix::WithExtensions),
            Some(StrayName::Temp)
        );
        for foreign in [
            ".trayscan-0123456789ab.tmp.a.b.c",
            ".trayscan-0123456789ab.tmp.",
            ".trayscan-0123456789ab.tmp.a~",
            ".trayscan-0123456789ab.tmpx",
        ] {
            assert_eq!(
                StrayName::parse(foreign, Suffix::WithExtensions),
                None,
                "{foreign}"
            );
        }
    }

    #[test]
    fn extensions_are_short_and_plain() {
        for (name, expected) in [
            ("lake/a.b.csv.gz", ".csv.gz"),
            ("a.csv", ".csv"),
            ("a", ""),
            ("a.b c.json", ".json"),
            ("a.verylongextension", ""),
            ("", ""),
        ] {
            assert_eq!(extensions(Path::new(name)), expected, "{name}");
        }
    }
}
