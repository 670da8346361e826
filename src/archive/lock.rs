//! One run at a time: a lock that the kernel holds, so that it ends with its process, however that ends.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Failure, Kind};
use crate::terminal;

/// How often a lock that another run holds is tried again.
const PAUSE: Duration = Duration::from_millis(100);

/// Held as long as it lives. SQLite's own locks are of another kind and do not notice it.
pub(super) struct Lock {
    pub(super) file: File,
    /// There was no file before.
    pub(super) created: bool,
}

impl Lock {
    /// Takes the lock on the file at `path`, which is made where there is none, and waits for it so long.
    pub(super) fn take(path: &Path, wait: Duration) -> Result<Self, Failure> {
        let deadline = Instant::now() + wait;
        let mut is_told = false;
        loop {
            let created = !path.exists();
            let file = open(path).map_err(|error| cannot_open(path, error))?;
            match file.try_lock() {
                // One that ended just now may have taken the file with it.
                Ok(()) if is_at(&file, path) => return Ok(Self { file, created }),
                Ok(()) => continue,
                Err(TryLockError::Error(error)) => return Err(cannot_open(path, error)),
                Err(TryLockError::WouldBlock) => {}
            }
            if Instant::now() >= deadline {
                return Err(held(path, &file, wait));
            }
            if !std::mem::replace(&mut is_told, true) {
                let holder = holder(&file);
                terminal::note(&format!("waiting for {holder}, which holds the archive"));
            }
            thread::sleep(PAUSE.min(deadline.saturating_duration_since(Instant::now())));
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    // Opening a pipe would wait for its other end.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path)
}

fn cannot_open(path: &Path, error: io::Error) -> Failure {
    Failure::new(
        Kind::Output,
        format!("cannot open the archive `{}`", path.display()),
    )
    .caused_by(error)
    .hint("name a file in a folder that exists and that you may write to")
}

fn held(path: &Path, file: &File, wait: Duration) -> Failure {
    let holder = holder(file);
    let failure = Failure::new(
        Kind::Locked,
        format!("{holder} holds the archive `{}`", path.display()),
    );
    if wait.is_zero() {
        failure.hint("try again later, or wait for it with `--wait 10m`")
    } else {
        let waited = humantime::format_duration(wait);
        failure.hint(format!("waited {waited}; try again later"))
    }
}

/// Tells whether `file` is still what `path` names.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), path.metadata()) {
        (Ok(held), Ok(named)) => (held.dev(), held.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// An open file cannot be removed there.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

/// Says who holds the lock, as far as the kernel tells.
fn holder(file: &File) -> String {
    match holding_process(file) {
        Some(process) => format!("another run (process {process})"),
        None => "another run".to_owned(),
    }
}

#[cfg(target_os = "linux")]
fn holding_process(file: &File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = file.metadata().ok()?;
    let inode = metadata.ino().to_string();
    let device = metadata.dev();
    let (major, minor) = (device >> 8 & 0xfff, device & 0xff | device >> 12 & 0xf_ff00);
    let device = format!("{major:02x}:{minor:02x}");
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    // Such as `1: FLOCK  ADVISORY  WRITE 4711 fe:00:123456 0 EOF`.
    let holders = locks.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", process, place, ..] = words[..] else {
            return None;
        };
        let (on, number) = place.rsplit_once(':')?;
        (number == inode).then_some((on == device, process.parse().ok()?))
    });
    // Some file systems call their device something else there.
    holders
        .max_by_key(|(is_here, _)| *is_here)
        .map(|(_, process)| process)
}

#[cfg(not(target_os = "linux"))]
fn holding_process(_: &File) -> Option<u32> {
    None
}
