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
use super::transaction::{Transaction, created_meanwhile};
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
        existing.map_or(Ok(()), refuse_protected)?;
        let path = follow_links(path)?;
        let (folder, mode) = (folder_of(&path), mode(existing));
        let mut temporary = match parts {
            Some(parts) => parts.create(folder, mode)?,
            None => TempFile::create(folder, mode, &storage.cleanup)?,
        };
        if let Some(metadata) = existing {
            keep_access(temporary.file()?, &path, metadata)?;
        }
        Ok(Self {
            temporary,
            path,
            name: name.to_owned(),
            replace,
            is_database: false,
        })
    }

    /// Fails if [`LocalFile::create`] would fail, without creating anything.
    pub(super) fn check(path: &Path, existing: Option<&fs::Metadata>) -> io::Result<()> {
        existing.map_or(Ok(()), refuse_protected)?;
        let path = follow_links(path)?;
        check_folder(folder_of(&path))
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
            return Err(created_meanwhile(&self.name));
        }
        if self.is_database {
            refuse_sidecars(&self.path)?;
        }
        Ok(())
    }

    /// Renames all files. Once the first is renamed, the others follow, even if a signal arrives.
    fn commit(mut all: Vec<Self>) -> Result<(), Failure> {
        let Some(first) = all.first() else {
            return Ok(());
        };
        let cleanup = first.temporary.unpublished.cleanup.clone();
        // Files that were not renamed are removed after this, outside the lock.
        let renamed =
            cleanup.publish_files(&all, |file| file.temporary.rename(&file.path, file.replace));
        let (count, renamed) = renamed.map_err(|error| all[0].failure(error))?;
        if let Err(error) = renamed {
            let file = &mut all[count];
            let failure = match error.kind() {
                io::ErrorKind::AlreadyExists => created_meanwhile(&file.name),
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
        folders.try_for_each(sync_folder).map_err(|error| {
            let name = &all[0].name;
            let message = format!("{name} was written, but its folder cannot be flushed to disk");
            Failure::new(Kind::Output, message)
                .caused_by(error)
                .hint("after a power cut, the old file may be back; check the disk")
        })
    }
}

/// Refuses a write-protected file. Renaming would bypass the protection, but it was set on purpose.
fn refuse_protected(metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.permissions().readonly() {
        return Err(io::Error::new(
            io::ErrorKind::ReadOnlyFilesystem,
            "the file is write-protected",
        ));
    }
    Ok(())
}

/// Fails if no file can be created in `folder`.
pub(crate) fn check_folder(folder: &Path) -> io::Result<()> {
    if !fs::metadata(folder)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    check_access(folder)
}

/// Fails if the user may not write to the file or the folder at `path`.
#[cfg(unix)]
pub(super) fn check_access(path: &Path) -> io::Result<()> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    Ok(accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)?)
}

#[cfg(not(unix))]
pub(super) fn check_access(_: &Path) -> io::Result<()> {
    Ok(())
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

/// Gives a file the owner, the group, the mode and the access control list of the one at `old` that it will replace.
#[cfg(unix)]
pub(super) fn keep_access(file: &File, old: &Path, metadata: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
    let new = file.metadata()?;
    let (user, group) = (Some(metadata.uid()), Some(metadata.gid()));
    // Only privileged users may change the owner; otherwise the current user becomes the owner. They may set their
    // own groups.
    if (new.uid(), new.gid()) != (metadata.uid(), metadata.gid())
        && fchown(file, user, group).is_err()
    {
        let _ = fchown(file, None, group);
    }
    file.set_permissions(metadata.permissions())?;
    if file.metadata()?.gid() == metadata.gid() && keep_acl(file, old) {
        return Ok(());
    }
    // These rights were for others.
    let without_group = metadata.permissions().mode() & !0o070;
    file.set_permissions(fs::Permissions::from_mode(without_group))
}

#[cfg(not(unix))]
pub(super) fn keep_access(file: &File, _: &Path, metadata: &fs::Metadata) -> io::Result<()> {
    file.set_permissions(metadata.permissions())
}

/// Copies the access control list; returns whether it worked. With a list, the mode has its mask in the place of the
/// rights of the group.
#[cfg(target_os = "linux")]
fn keep_acl(file: &File, old: &Path) -> bool {
    use rustix::fs::{XattrFlags, fremovexattr, fsetxattr, getxattr};

    const ACL: &str = "system.posix_acl_access";
    /// The largest value of an attribute.
    const SIZE: usize = 64 << 10;
    let mut list = vec![0; SIZE];
    let Ok(length) = getxattr(old, ACL, &mut list[..]) else {
        // The folder may have given it one.
        let _ = fremovexattr(file, ACL);
        return true;
    };
    fsetxattr(file, ACL, &list[..length], XattrFlags::empty()).is_ok()
}

#[cfg(all(unix, not(target_os = "linux")))]
fn keep_acl(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A folder, and files that are being written to it.
    struct Fixture {
        folder: TempDir,
        storage: Storage,
    }

    impl Fixture {
        fn new() -> Self {
            Self {
                folder: TempDir::new().expect("a folder"),
                storage: Storage::default(),
            }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        /// Starts to write a file.
        fn create(&self, name: &str, replace: bool) -> LocalFile {
            let path = self.path(name);
            let existing = fs::metadata(&path).ok();
            let (existing, name) = (existing.as_ref(), format!("`{name}`"));
            let file = LocalFile::create(&path, &name, existing, replace, None, &self.storage);
            file.expect("a file")
        }

        /// Writes a file that is ready to be published.
        fn sealed(&self, name: &str, replace: bool) -> LocalFile {
            let mut file = self.create(name, replace);
            file.write_all(b"new").expect("written");
            file.seal().expect("sealed");
            file
        }

        /// The names and the contents of all files.
        fn files(&self) -> Vec<String> {
            let entries = fs::read_dir(self.folder.path()).expect("a folder");
            let mut files: Vec<String> = entries
                .map(|entry| {
                    let path = entry.expect("an entry").path();
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    let content = fs::read_to_string(&path).unwrap_or_default();
                    format!("{name}: {content}")
                })
                .collect();
            files.sort();
            files
        }
    }

    #[test]
    fn a_file_appears_under_its_name_when_it_is_published() {
        let fixture = Fixture::new();
        fs::write(fixture.path("a"), "old").expect("a file");
        let mut file = fixture.create("a", true);
        assert_eq!(file.name(), "`a`");
        file.write_all(b"new").expect("written");
        file.flush().expect("flushed");
        let path = file.write_by_path().expect("no error").map(Path::to_owned);
        let path = path.expect("a path");
        assert_eq!(path.parent(), Some(fixture.folder.path()));
        assert_eq!(fs::read_to_string(&path).expect("a file"), "new");
        assert_ne!(path, fixture.path("a"));
        file.seal().expect("sealed");
        file.prepare().expect("it may be replaced");
        assert_eq!(fs::read_to_string(fixture.path("a")).expect("a"), "old");
        LocalFile::commit(vec![file]).expect("published");
        assert_eq!(fixture.files(), ["a: new"]);
        assert_eq!(fixture.storage.cleanup.published_files(), 1);
    }

    #[test]
    fn a_file_that_is_not_published_leaves_nothing() {
        let fixture = Fixture::new();
        drop(fixture.sealed("a", true));
        assert_eq!(fixture.files(), [""; 0]);
        LocalFile::commit(Vec::new()).expect("nothing to publish");
    }

    #[test]
    fn one_of_many_is_closed_by_its_seal() {
        let fixture = Fixture::new();
        let (folder, storage) = (fixture.folder.path(), &fixture.storage);
        let folders = [folder.to_owned()];
        let mut parts = PartFiles::new(folder, &folders, &storage.cleanup).expect("a list");
        let path = fixture.path("a");
        let part = LocalFile::create(&path, "`a`", None, true, Some(&mut parts), storage);
        let mut part = part.expect("a file");
        part.write_all(b"new").expect("written");
        part.flush().expect("flushed");
        part.seal().expect("sealed");
        assert!(part.write(b"more").is_err() && part.flush().is_err());
        LocalFile::commit(vec![part]).expect("published");
        drop(parts);
        assert_eq!(fixture.files(), ["a: new"]);
    }

    #[test]
    fn a_file_created_in_the_meantime_is_kept() {
        let fixture = Fixture::new();
        let mut file = fixture.sealed("a", false);
        file.prepare().expect("there is none");
        fs::write(fixture.path("a"), "other").expect("a file");
        let expected = "`a` was created in the meantime, and `--no-clobber` keeps it";
        let failure = file.prepare().expect_err("there is one");
        assert_eq!(failure.to_string(), expected);
        let failure = LocalFile::commit(vec![file]).expect_err("there is one");
        assert_eq!(failure.into_texts(), (expected.to_owned(), String::new()));
        assert_eq!(fixture.files(), ["a: other"]);
    }

    #[test]
    fn the_hint_says_how_many_files_were_replaced_before_an_error() {
        let fixture = Fixture::new();
        let files = ["a", "b", "c"].map(|name| fixture.sealed(name, true));
        fs::create_dir(fixture.path("b")).expect("a folder in the way");
        let failure = LocalFile::commit(files.into()).expect_err("a folder");
        let (message, hint) = failure.into_texts();
        assert_eq!(message, "cannot write to `b`");
        assert_eq!(hint, "1 of 3 files were already replaced");
        assert_eq!(fixture.files(), ["a: new", "b: "]);
    }

    #[test]
    fn a_database_does_not_get_the_journal_of_another() {
        let fixture = Fixture::new();
        let mut database = fixture.sealed("a", true);
        database.expect_database().expect("no journal");
        database.prepare().expect("no journal");
        fs::write(fixture.path("a-wal"), "changes").expect("a journal");
        assert!(database.prepare().is_err());
        assert!(database.expect_database().is_err());
        let mut text = fixture.sealed("a", true);
        text.prepare().expect("it is not a database");
    }

    #[test]
    fn a_write_protected_file_is_not_replaced() {
        let fixture = Fixture::new();
        let path = fixture.path("a");
        fs::write(&path, "old").expect("a file");
        let mut permissions = fs::metadata(&path).expect("a file").permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).expect("protected");
        let existing = fs::metadata(&path).expect("a file");
        let created =
            LocalFile::create(&path, "`a`", Some(&existing), true, None, &fixture.storage);
        let error = created.err().expect("protected");
        assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem);
        assert_eq!(fixture.files(), ["a: old"]);
    }

    #[cfg(unix)]
    #[test]
    fn the_owner_and_the_mode_of_a_file_are_kept() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

        let fixture = Fixture::new();
        let path = fixture.path("a");
        fs::write(&path, "old").expect("a file");
        // More than the usual umask allows.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o662)).expect("a mode");
        // Only root can change the owner.
        let _ = std::os::unix::fs::chown(&path, Some(4321), Some(8765));
        let before = fs::metadata(&path).expect("a file");
        assert_eq!((mode(Some(&before)), mode(None)), (0o662, 0o666));
        LocalFile::commit(vec![fixture.sealed("a", true)]).expect("published");
        let after = fs::metadata(&path).expect("a file");
        assert_ne!(before.ino(), after.ino(), "another file");
        assert_eq!(before.mode(), after.mode());
        assert_eq!((before.uid(), before.gid()), (after.uid(), after.gid()));
    }
    #[cfg(target_os = "linux")]
    #[test]
    fn the_access_control_list_of_a_file_is_kept() {
        use rustix::fs::{XattrFlags, getxattr, setxattr};

        const ACL: &str = "system.posix_acl_access";
        let fixture = Fixture::new();
        let path = fixture.path("a");
        fs::write(&path, "old").expect("a file");
        // The user 1234 may read it, and the group may not: tag, rights and id of each entry.
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, rights, id) in [
            (0x01_u16, 6_u16, u32::MAX),
            (0x02, 4, 1234),
            (0x04, 0, u32::MAX),
            (0x10, 4, u32::MAX),
            (0x20, 0, u32::MAX),
        ] {
            list.extend(tag.to_le_bytes());
            list.extend(rights.to_le_bytes());
            list.extend(id.to_le_bytes());
        }
        if setxattr(&path, ACL, &list, XattrFlags::empty()).is_err() {
            // This file system has none.
            return;
        }
        LocalFile::commit(vec![fixture.sealed("a", true)]).expect("published");
        assert_eq!(fixture.files(), ["a: new"]);
        let mut kept = [0; 100];
        let length = getxattr(&path, ACL, &mut kept[..]).expect("a list");
        assert_eq!(kept[..length], list);
    }
}
