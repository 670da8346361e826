//! Paths: links, folders, and different names for the same file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns whether `path` is a name of standard output. If standard output is a regular file, it belongs to
/// the shell that opened it, and is appended to.
pub(crate) fn is_stdout(path: &Path) -> bool {
    let names = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    path == Path::new("-") || cfg!(unix) && names.iter().any(|name| path == Path::new(name))
}

/// Returns whether `path` is a name of standard error.
pub(crate) fn is_stderr(path: &Path) -> bool {
    let names = ["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"];
    cfg!(unix) && names.iter().any(|name| path == Path::new(name))
}

/// Returns whether `path` names an open file descriptor.
pub(crate) fn is_open_file(path: &Path) -> bool {
    cfg!(unix)
        && ["/dev/fd", "/proc/self/fd"]
            .iter()
            .any(|folder| path.starts_with(folder))
}

/// Follows symbolic links. The file at the end of the chain need not exist.
pub(crate) fn follow_links(path: &Path) -> io::Result<PathBuf> {
    // The limit of Linux.
    const LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match fs::read_link(&path) {
            Ok(link) => path = path.parent().unwrap_or(Path::new("")).join(link),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Returns the canonical path of the file that `path` leads to, which need not exist.
pub(crate) fn resolved(path: &Path) -> Option<PathBuf> {
    let path = follow_links(path).ok()?;
    let folder = folder_of(&path);
    let folder = folder
        .canonicalize()
        .or_else(|_| std::path::absolute(folder));
    Some(folder.ok()?.join(path.file_name()?))
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Returns `folder`, or its nearest parent that exists. Fails if the folders below that one cannot be created: a file or a
/// broken link has the name of the first, or a name is too long.
pub(crate) fn existing_folder(folder: &Path) -> io::Result<PathBuf> {
    let found = folder.ancestors().find(|folder| folder.is_dir());
    let missing = folder.strip_prefix(found.unwrap_or(Path::new("")));
    let found = found.unwrap_or(Path::new("."));
    let missing = missing.unwrap_or(folder).components();
    let mut missing = missing.map(|name| found.join(name)).peekable();
    if let Some(first) = missing.peek()
        && first.symlink_metadata().is_ok()
    {
        first.metadata()?;
        return Err(io::ErrorKind::NotADirectory.into());
    }
    for name in missing {
        match name.symlink_metadata() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(found.to_owned())
}

/// Returns whether both paths lead to the same file, through links or different names. It need not exist.
pub(crate) fn is_same_file(left: &Path, right: &Path) -> bool {
    match (left.canonicalize(), right.canonicalize()) {
        (Ok(left), Ok(right)) => {
            let id = |path: &Path| path.metadata().ok().map(|metadata| file_id(&metadata));
            left == right || cfg!(unix) && id(&left).is_some_and(|left| Some(left) == id(&right))
        }
        _ => resolved(left).is_some_and(|left| Some(left) == resolved(right)),
    }
}

/// Returns the device and the number of a file, which identify it whatever its name.
#[cfg(unix)]
pub(crate) fn file_id(metadata: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

/// The same for all: an open file cannot be replaced on these systems.
#[cfg(not(unix))]
pub(crate) fn file_id(_: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}
