//! What an end without warning would leave behind: files that are not complete, and folders made for them.
//!
//! An end by a signal cannot wait for those who own them, and takes them away itself.

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
    /// Each behind those it is in.
    folders: Vec<PathBuf>,
    /// The batches are in their place, or on their way there: a signal comes too late.
    is_committed: bool,
}

/// The longest that another thread is waited for after a panic.
const PATIENCE: Duration = Duration::from_secs(2);

/// Nothing once it was swept: then no more is begun or published.
static UNFINISHED: Mutex<CleanupState> = Mutex::new(CleanupState::Unused);

/// How many files were put in their places together. A manifest comes after them, and does not count.
static PUBLISHED: AtomicUsize = AtomicUsize::new(0);

enum CleanupState {
    Unused,
    Some(Unfinished),
    Over,
}

fn state() -> MutexGuard<'static, CleanupState> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does `work` with what is unfinished, while nobody sweeps; fails where the run is over.
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

/// Removes all of it, and lets nothing be published after.
pub(crate) fn sweep() {
    sweep_in(&mut state());
}

/// Removes what is unfinished, unless a thread that has panicked holds on to it: others let go soon.
pub(crate) fn sweep_if_free() {
    let started = Instant::now();
    loop {
        match UNFINISHED.try_lock() {
            Ok(mut state) => return sweep_in(&mut state),
            Err(TryLockError::Poisoned(state)) => return sweep_in(&mut state.into_inner()),
            Err(TryLockError::WouldBlock) if started.elapsed() > PATIENCE => return,
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn sweep_in(state: &mut CleanupState) {
    let CleanupState::Some(unfinished) = std::mem::replace(state, CleanupState::Over) else {
        return;
    };
    // Where something cannot be removed, nobody else could either.
    for path in &unfinished.files {
        let _ = fs::remove_file(path);
    }
    remove(&unfinished.folders);
}

/// Ends the run early: removes what is unfinished, and lets nothing be published after that.
///
/// Returns false, and changes nothing, if the run has published its result already. While it publishes, this
/// waits.
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

/// Notes that the result is in its place, or about to be put there. Files do this as they are published.
pub(crate) fn commit() -> io::Result<()> {
    with(|unfinished| {
        unfinished.is_committed = true;
        Ok(())
    })
}

/// Creates a file as `create` does, and notes it. A run that was told to stop creates none.
pub(crate) fn begin(
    create: impl FnOnce() -> io::Result<NamedTempFile>,
) -> io::Result<NamedTempFile> {
    with(|unfinished| {
        let file = create()?;
        unfinished.files.insert(file.path().to_owned());
        Ok(file)
    })
}

/// Notes that a file is gone.
pub(crate) fn forget(path: &Path) {
    // Where the run is over, it does not matter any more.
    let _ = with(|unfinished| {
        unfinished.files.remove(path);
        Ok(())
    });
}

/// Puts files where they belong, as `work` does it: a run that was told to stop publishes nothing, and one
/// that has begun to publish does all of it before it ends.
pub(crate) fn publish<T>(work: impl FnOnce(&mut Publishing<'_>) -> T) -> io::Result<T> {
    with(|unfinished| {
        let mut publishing = Publishing {
            unfinished,
            placed: 0,
        };
        let worked = work(&mut publishing);
        let placed = publishing.placed;
        unfinished.is_committed |= placed > 0;
        // Only the first time: what follows is no batches.
        let _ = PUBLISHED.compare_exchange(0, placed, Ordering::Relaxed, Ordering::Relaxed);
        Ok(worked)
    })
}

/// Tells how many files of batches are in their places.
pub(crate) fn published() -> usize {
    PUBLISHED.load(Ordering::Relaxed)
}

/// Files on their way to their places, while nobody sweeps.
pub(crate) struct Publishing<'a> {
    unfinished: &'a mut Unfinished,
    placed: usize,
}

impl Publishing<'_> {
    /// Puts the file at `path` where it belongs, as `place` does it.
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

    /// Tells how many are in their places.
    pub(crate) fn placed(&self) -> usize {
        self.placed
    }
}

/// Folders that were made for files to come; those that are empty go when this is dropped.
#[derive(Default)]
pub(crate) struct Folders(Vec<PathBuf>);

impl Folders {
    /// Makes the folder of `path`, and those it is in.
    pub(crate) fn make_for(&mut self, path: &Path) -> io::Result<()> {
        let missing = path.ancestors().skip(1);
        let missing =
            missing.take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let missing: Vec<&Path> = missing.collect();
        for folder in missing.into_iter().rev() {
            with(|unfinished| {
                match fs::create_dir(folder) {
                    // Somebody else was faster, and it is theirs.
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
        // Where the run is over, they were removed already.
        let gone: HashSet<&PathBuf> = self.0.iter().collect();
        let _ = with(|unfinished| {
            unfinished.folders.retain(|folder| !gone.contains(folder));
            Ok(())
        });
    }
}

/// Removes the folders that are empty.
fn remove(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        let _ = fs::remove_dir(folder);
    }
}
