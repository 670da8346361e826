//! Paths: links, folders, and names of the same file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Names of standard output. It may be a regular file, which belongs to the shell that opened it, and
/// which is written on from where it stands.
pub(crate) fn is_stdout(path: &Path) -> bool {
    let names = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    path == Path::new("-") || cfg!(unix) && names.iter().any(|name| path == Path::new(name))
}

/// Names of what is open already, by its number.
pub(crate) fn is_open_file(path: &Path) -> bool {
    cfg!(unix)
        && ["/dev/fd", "/proc/self/fd"]
            .iter()
            .any(|folder| path.starts_with(folder))
}

/// Returns the file that a chain of links leads to, whether it exists or not.
pub(crate) fn follow_links(path: &Path) -> io::Result<PathBuf> {
    // As many as Linux follows.
    const LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match fs::read_link(&path) {
            Ok(link) => path = path.parent().unwrap_or(Path::new("")).join(link),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many links lead in circles"))
}

/// Returns the one name of what `path` leads to, whether it exists or not.
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

/// Returns whether both paths lead to one file, by links or by other names. It need not exist.
pub(crate) fn is_same_file(left: &Path, right: &Path) -> bool {
    match (left.canonicalize(), right.canonicalize()) {
        (Ok(left), Ok(right)) => left == right || is_hard_link(&left, &right),
        _ => resolved(left).is_some_and(|left| Some(left) == resolved(right)),
    }
}

#[cfg(unix)]
fn is_hard_link(left: &Path, right: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (left.metadata(), right.metadata()) {
        (Ok(left), Ok(right)) => (left.dev(), left.ino()) == (right.dev(), right.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_hard_link(_: &Path, _: &Path) -> bool {
    false
}
