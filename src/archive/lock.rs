//! The lock that allows one run at a time. The kernel releases it when the process ends, however it ends.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Failure, Kind};
use crate::storage::path::file_id;
use crate::terminal;

/// The delay between attempts to take the lock.
const PAUSE: Duration = Duration::from_millis(100);

/// Held until dropped. SQLite's own locks are of another kind and do not conflict with it.
pub(super) struct Lock {
    pub(super) file: File,
    /// Whether the file was created by this run.
    pub(super) created: bool,
}

impl Lock {
    /// Locks the file at `path`, which is created if missing; waits at most `wait`.
    pub(super) fn take(path: &Path, wait: Duration) -> Result<Self, Failure> {
        let deadline = Instant::now() + wait;
        let mut is_told = false;
        loop {
            let created = !path.exists();
            let file = open(path).map_err(|error| cannot_open(path, error))?;
            match file.try_lock() {
                // A run that just ended may have removed the file.
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
                terminal::note(&format!("waiting for {holder}, which is using the archive"));
            }
            thread::sleep(PAUSE.min(deadline.saturating_duration_since(Instant::now())));
        }
    }
}

/// Returns whether a run is using the archive at `path`; also if that cannot be found out.
pub(super) fn is_held(path: &Path) -> bool {
    // Other readers do not conflict. The lock is released at once.
    let locked = File::open(path).map(|file| file.try_lock_shared());
    !matches!(locked, Ok(Ok(())))
}

fn open(path: &Path) -> io::Result<File> {
    // Opening a pipe would block.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path)
}

fn cannot_open(path: &Path, error: io::Error) -> Failure {
    let message = format!("cannot open the archive `{}`", path.display());
    Failure::new(Kind::Output, message)
        .caused_by(error)
        .hint("name a file in an existing folder that you have write permission for")
}

fn held(path: &Path, file: &File, wait: Duration) -> Failure {
    let (holder, path) = (holder(file), path.display());
    let message = format!("{holder} is using the archive `{path}`");
    let hint = if wait.is_zero() {
        "try again later, or wait for it with `--wait 10m`".to_owned()
    } else {
        let waited = humantime::format_duration(wait);
        format!("waited {waited}; try again later")
    };
    Failure::new(Kind::Locked, message).hint(hint)
}

/// Returns whether `path` still names `file`. Elsewhere than on Unix, an open file cannot be removed.
fn is_at(file: &File, path: &Path) -> bool {
    let named = path.metadata().map(|metadata| file_id(&metadata)).ok();
    let held = file.metadata().map(|metadata| file_id(&metadata));
    cfg!(not(unix)) || held.is_ok_and(|held| Some(held) == named)
}

/// Describes the process that holds the lock, if the kernel shows it.
fn holder(file: &File) -> String {
    match holding_process(file) {
        Some(process) => format!("another run (process {process})"),
        None => "another run".to_owned(),
    }
}

#[cfg(target_os = "linux")]
fn holding_process(file: &File) -> Option<u32> {
    let (device, inode) = file_id(&file.metadata().ok()?);
    let inode = inode.to_string();
    let (major, minor) = (device >> 8 & 0xfff, device & 0xff | device >> 12 & 0xf_ff00);
    let device = format!("{major:02x}:{minor:02x}");
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    // For example `1: FLOCK  ADVISORY  WRITE 4711 fe:00:123456 0 EOF`.
    let holders = locks.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", process, place, ..] = words[..] else {
            return None;
        };
        let (on, number) = place.rsplit_once(':')?;
        (number == inode).then_some((on == device, process.parse().ok()?))
    });
    // Some file systems show another device number there.
    holders
        .max_by_key(|(is_here, _)| *is_here)
        .map(|(_, process)| process)
}

#[cfg(not(target_os = "linux"))]
fn holding_process(_: &File) -> Option<u32> {
    None
}
