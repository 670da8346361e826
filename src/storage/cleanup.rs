//! Unfinished files, and folders created for them, to be removed if the run is interrupted.
//!
//! After a signal, the owners of the files cannot be waited for, so the files are removed from here.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

#[derive(Default)]
struct Unfinished {
    files: HashSet<PathBuf>,
    /// Parents first.
    folders: Vec<PathBuf>,
    /// The batches are published or about to be: a signal is too late to stop it.
    is_committed: bool,
}

/// How long to wait for another thread after a panic.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// `Over` once swept: no more files are created or published then.
static UNFINISHED: Mutex<CleanupState> = Mutex::new(CleanupState::Unused);

/// The number of files published together. A manifest is published after them, and does not count.
static PUBLISHED: AtomicUsize = AtomicUsize::new(0);

enum CleanupState {
    Unused,
    Some(Unfinished),
    Over,
}

fn state() -> MutexGuard<'static, CleanupState> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` on the unfinished files, holding the lock; fails if the run is over.
fn with<T>(work: impl FnOnce(&mut Unfinished) -> io::Result<T>) -> io::Result<T> {
    let mut state = state();
    if let CleanupState::Unused = *state {
        *state = CleanupState::Some(Unfinished::default());
    }
    match &mut *state {
        CleanupState::Some(unfinished) => work(unfinished),
        CleanupState::Unused | CleanupState::Over => Err(io::Error::other("the run is over")),
    }
}

/// Removes all unfinished files, and prevents further publishing.
pub(crate) fn sweep() {
    sweep_in(&mut state());
}

/// Removes the unfinished files, unless the thread that panicked holds the lock: other threads release it
/// soon.
pub(crate) fn sweep_if_free() {
    let started = Instant::now();
    loop {
        match UNFINISHED.try_lock() {
            Ok(mut state) => return sweep_in(&mut state),
            Err(TryLockError::Poisoned(state)) => return sweep_in(&mut state.into_inner()),
            Err(TryLockError::WouldBlock) if started.elapsed() > LOCK_TIMEOUT => return,
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn sweep_in(state: &mut CleanupState) {
    let CleanupState::Some(unfinished) = std::mem::replace(state, CleanupState::Over) else {
        return;
    };
    // A failure cannot be handled here.
    for path in &unfinished.files {
        let _ = fs::remove_file(path);
    }
    remove(&unfinished.folders);
}

/// Stops the run early: removes unfinished files, and prevents further publishing.
///
/// Returns false and changes nothing if the run has already published its result. Waits while the run is
/// publishing.
pub(crate) fn stop() -> bool {
    let mut state = state();
    if let CleanupState::Some(Unfinished {
        is_committed: true, ..
    }) = *state
    {
        return false;
    }
    sweep_in(&mut state);
    true
}

/// Records that the result is published or about to be. For files, `publish` does this.
pub(crate) fn commit() -> io::Result<()> {
    with(|unfinished| {
        unfinished.is_committed = true;
        Ok(())
    })
}

/// Creates a file with `new`, and registers it. Fails if the run was stopped.
pub(crate) fn create(new: impl FnOnce() -> io::Result<NamedTempFile>) -> io::Result<NamedTempFile> {
    with(|unfinished| {
        let file = new()?;
        unfinished.files.insert(file.path().to_owned());
        Ok(file)
    })
}

/// Unregisters a file.
pub(crate) fn forget(path: &Path) {
    // Does not matter once the run is over.
    let _ = with(|unfinished| {
        unfinished.files.remove(path);
        Ok(())
    });
}

/// Publishes files with `work`. A run that was stopped publishes nothing; one that has started publishes all
/// files before it ends.
pub(crate) fn publish<T>(work: impl FnOnce(&mut Publishing<'_>) -> T) -> io::Result<T> {
    with(|unfinished| {
        let mut publishing = Publishing {
            unfinished,
            placed: 0,
        };
        let worked = work(&mut publishing);
        let placed = publishing.placed;
        unfinished.is_committed |= placed > 0;
        // Only the first time: later files are not batches.
        let _ = PUBLISHED.compare_exchange(0, placed, Ordering::Relaxed, Ordering::Relaxed);
        Ok(worked)
    })
}

/// Returns the number of published files with batches.
pub(crate) fn published() -> usize {
    PUBLISHED.load(Ordering::Relaxed)
}

/// Files that are being published, with the lock held.
pub(crate) struct Publishing<'a> {
    unfinished: &'a mut Unfinished,
    placed: usize,
}

impl Publishing<'_> {
    /// Publishes the file at `path` with `place`.
    pub(crate) fn place(
        &mut self,
        path: &Path,
        place: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        self.unfinished.files.remove(path);
        place()?;
        self.placed += 1;
        Ok(())
    }

    /// Returns the number of files published so far.
    pub(crate) fn placed(&self) -> usize {
        self.placed
    }
}

/// Folders created for new files. Those still empty are removed on drop.
#[derive(Default)]
pub(crate) struct Folders(Vec<PathBuf>);

impl Folders {
    /// Creates the folder of `path`, and its parents.
    pub(crate) fn create_for(&mut self, path: &Path) -> io::Result<()> {
        let missing = path.ancestors().skip(1);
        let missing =
            missing.take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let missing: Vec<&Path> = missing.collect();
        for folder in missing.into_iter().rev() {
            with(|unfinished| {
                match fs::create_dir(folder) {
                    // Another program created it first, and owns it.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
                    made => made?,
                }
                unfinished.folders.push(folder.to_owned());
                Ok(())
            })?;
            self.0.push(folder.to_owned());
        }
        Ok(())
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        remove(&self.0);
        // Once the run is over, they are already removed.
        let removed: HashSet<&PathBuf> = self.0.iter().collect();
        let _ = with(|unfinished| {
            unfinished
                .folders
                .retain(|folder| !removed.contains(folder));
            Ok(())
        });
    }
}

/// Removes the empty folders.
fn remove(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        let _ = fs::remove_dir(folder);
    }
}
