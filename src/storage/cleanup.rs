//! Everything that a run has created and not yet published: files, folders and uploads.
//!
//! Each has an [`Unpublished`] that removes it when dropped. After a signal or a panic, the owners cannot be
//! waited for, so [`Cleanup`] removes everything itself.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::cloud::Object;

/// How long to wait for another thread after a panic.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the end of a run waits for uploads to be aborted, or to finish publishing.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(15);

/// The registry of what is not published yet.
#[derive(Clone, Default)]
pub(crate) struct Cleanup(Arc<Mutex<CleanupState>>);

#[derive(Default)]
struct CleanupState {
    /// By number, in the order of creation: a folder comes before what is in it.
    items: BTreeMap<u64, Item>,
    last: u64,
    /// The run was stopped: nothing more is created or published.
    is_over: bool,
    /// The batches are published or about to be: a signal is too late to stop it.
    is_committed: bool,
    /// A file in the system's temporary folder was created.
    has_scratch: bool,
    /// The number of files published together. A manifest is published after them, and does not count.
    files: usize,
    objects: PublishedObjects,
}

#[derive(Clone)]
enum Item {
    File(PathBuf),
    Folder(PathBuf),
    Upload(Arc<Object>),
}

/// Whether objects were published in this run.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum PublishedObjects {
    #[default]
    None,
    /// A request was sent, but its response may be missing.
    Unknown,
    Some,
}

impl CleanupState {
    fn check(&mut self) -> io::Result<&mut Self> {
        if self.is_over {
            Err(io::Error::other("the run is over"))
        } else {
            Ok(self)
        }
    }

    fn add(&mut self, item: Item) -> u64 {
        self.last += 1;
        self.items.insert(self.last, item);
        self.last
    }
}

impl Cleanup {
    /// Registers what `create` creates, holding the lock. Fails if the run is over.
    fn register<T>(
        &self,
        create: impl FnOnce() -> io::Result<(T, Item)>,
    ) -> io::Result<(T, Unpublished)> {
        let mut state = self.0.lock();
        let (created, item) = state.check().and_then(|_| create())?;
        let number = state.add(item);
        let unpublished = Unpublished {
            cleanup: self.clone(),
            number,
        };
        Ok((created, unpublished))
    }

    /// Creates a file with `create`, which returns it with its path.
    pub(super) fn create_file<T>(
        &self,
        create: impl FnOnce() -> io::Result<(T, PathBuf)>,
    ) -> io::Result<(T, Unpublished)> {
        self.register(|| create().map(|(file, path)| (file, Item::File(path))))
    }

    /// Returns whether this is the first file of the run in the system's temporary folder.
    pub(super) fn is_first_scratch(&self) -> bool {
        !std::mem::replace(&mut self.0.lock().has_scratch, true)
    }

    /// Registers an upload before it is created.
    pub(super) fn begin_upload(&self, object: &Arc<Object>) -> io::Result<Unpublished> {
        let (object, item) = (Arc::clone(object), Item::Upload);
        self.register(|| Ok(((), item(object))))
            .map(|((), new)| new)
    }

    /// Publishes each of `files` with `rename`, until one fails: returns their number and the error. A run that
    /// was stopped publishes nothing; one that has started publishes all files before it ends.
    pub(super) fn publish_files<T>(
        &self,
        files: &[T],
        rename: impl Fn(&T) -> io::Result<&Unpublished>,
    ) -> io::Result<(usize, io::Result<()>)> {
        let mut state = self.0.lock();
        state.check()?;
        let mut count = 0;
        let renamed = files.iter().try_for_each(|file| {
            let published = rename(file)?;
            state.items.remove(&published.number);
            count += 1;
            Ok(())
        });
        state.is_committed |= count > 0;
        // Only the first time: later files are not batches.
        if state.files == 0 {
            state.files = count;
        }
        Ok((count, renamed))
    }

    /// Marks an upload as being published. Fails if the run was stopped.
    pub(super) fn start_publishing(&self, object: &Object) -> io::Result<()> {
        let mut state = self.0.lock();
        state.check()?;
        if state.objects == PublishedObjects::None {
            state.objects = PublishedObjects::Unknown;
        }
        object.commit();
        Ok(())
    }

    /// Records that the result is published or about to be. Publishing files does this.
    pub(crate) fn commit(&self) -> io::Result<()> {
        self.0.lock().check()?.is_committed = true;
        Ok(())
    }

    /// Returns the number of published files with batches.
    pub(crate) fn published_files(&self) -> usize {
        self.0.lock().files
    }

    pub(crate) fn published_objects(&self) -> PublishedObjects {
        self.0.lock().objects
    }

    /// Stops the run early: nothing more is created or published. Returns false and changes nothing if the
    /// run has already published its result. Waits while the run is publishing.
    pub(crate) fn stop(&self) -> bool {
        let mut state = self.0.lock();
        state.is_over |= !state.is_committed;
        state.is_over
    }

    /// Removes everything that is not published, and prevents further publishing.
    pub(crate) fn sweep(&self) {
        self.sweep_in(&mut self.0.lock());
    }

    /// Does the same after a panic, unless the thread that panicked holds the lock: other threads release it
    /// soon.
    pub(crate) fn sweep_if_free(&self) {
        if let Some(mut state) = self.0.try_lock_for(LOCK_TIMEOUT) {
            self.sweep_in(&mut state);
        }
    }

    fn sweep_in(&self, state: &mut CleanupState) {
        state.is_over = true;
        // Files before their folders. A failure cannot be handled here.
        for (number, item) in state.items.iter().rev() {
            if !matches!(item, Item::Upload(object) if object.is_committed()) {
                self.remove(*number, item);
            }
        }
        state
            .items
            .retain(|_, item| matches!(item, Item::Upload(_)));
    }

    /// Removes an item. An upload is aborted in the background, and stays registered until then.
    fn remove(&self, number: u64, item: &Item) {
        match item {
            Item::File(path) => drop(fs::remove_file(path)),
            Item::Folder(path) => drop(fs::remove_dir(path)),
            Item::Upload(object) => {
                let cleanup = self.clone();
                Arc::clone(object).abort(move || cleanup.forget(number));
            }
        }
    }

    fn forget(&self, number: u64) {
        self.0.lock().items.remove(&number);
    }

    /// Waits for uploads that are being aborted, and warns about those that remain.
    pub(crate) fn settle(&self) {
        let count = || {
            let state = self.0.lock();
            let uploads = state.items.values();
            uploads
                .filter(|item| matches!(item, Item::Upload(_)))
                .count()
        };
        let started = Instant::now();
        while count() > 0 && started.elapsed() < SETTLE_TIMEOUT {
            thread::sleep(Duration::from_millis(5));
        }
        let uploads = match count() {
            0 => return,
            1 => "1 upload".to_owned(),
            many => format!("{many} uploads"),
        };
        log::warn!(
            "{uploads} left incomplete in object storage could not be removed: check for incomplete multipart uploads there"
        );
    }
}

/// A file, folder or upload that is not published. Dropped, it is removed; a folder only if it is empty.
pub(crate) struct Unpublished {
    pub(super) cleanup: Cleanup,
    number: u64,
}

impl Unpublished {
    /// Keeps it: it is published under another name, which is not the result of the run.
    pub(crate) fn keep(self) {
        self.cleanup.forget(self.number);
    }

    /// Records that the upload is published.
    pub(super) fn published_object(&self) {
        let mut state = self.cleanup.0.lock();
        state.objects = PublishedObjects::Some;
        state.items.remove(&self.number);
    }
}

impl Drop for Unpublished {
    fn drop(&mut self) {
        let state = self.cleanup.0.lock();
        let Some(item) = state.items.get(&self.number).cloned() else {
            return;
        };
        // Removing a file may take long. It stays registered until then, because a signal may end the program.
        drop(state);
        self.cleanup.remove(self.number, &item);
        if !matches!(item, Item::Upload(_)) {
            self.cleanup.forget(self.number);
        }
    }
}

/// Folders created for new files. Those still empty are removed on drop.
#[derive(Default)]
pub(crate) struct Folders(Vec<Unpublished>);

impl Folders {
    /// Creates the folder of `path`, and its parents.
    pub(crate) fn create_for(&mut self, path: &Path, cleanup: &Cleanup) -> io::Result<()> {
        self.create(path, &DirBuilder::new(), cleanup)
    }

    /// Does the same, for the user alone.
    pub(super) fn create_private_for(&mut self, path: &Path, cleanup: &Cleanup) -> io::Result<()> {
        #[cfg_attr(not(unix), allow(unused_mut))]
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        self.create(path, &builder, cleanup)
    }

    fn create(&mut self, path: &Path, builder: &DirBuilder, cleanup: &Cleanup) -> io::Result<()> {
        let missing = path.ancestors().skip(1);
        let missing =
            missing.take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let missing: Vec<&Path> = missing.collect();
        for folder in missing.into_iter().rev() {
            let item = || Item::Folder(folder.to_owned());
            let created = cleanup.register(|| builder.create(folder).map(|()| ((), item())));
            match created {
                // Another program created it first, and owns it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => self.0.push(created?.1),
            }
        }
        Ok(())
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        // Inner folders first.
        while self.0.pop().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(cleanup: &Cleanup, path: &Path) -> io::Result<Unpublished> {
        let created = cleanup.create_file(|| Ok((fs::write(path, "")?, path.to_owned())));
        created.map(|((), new)| new)
    }

    #[test]
    fn what_is_not_published_is_removed() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let cleanup = Cleanup::default();
        let [dropped, kept, published] =
            ["dropped", "kept", "published"].map(|name| folder.path().join("a/b").join(name));
        let mut folders = Folders::default();
        folders.create_for(&dropped, &cleanup).expect("folders");
        drop(create(&cleanup, &dropped).expect("a file"));
        create(&cleanup, &kept).expect("a file").keep();
        let files = [create(&cleanup, &published).expect("a file")];
        let renamed = cleanup.publish_files(&files, |file| Ok(file));
        assert_eq!(renamed.map(|(count, _)| count).expect("published"), 1);
        drop((files, folders));
        assert!(!dropped.exists());
        assert!(kept.exists() && published.exists());
        // Too late to stop it.
        assert!(!cleanup.stop());
    }

    #[test]
    fn a_stopped_run_leaves_nothing_and_creates_nothing() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let cleanup = Cleanup::default();
        let path = folder.path().join("a/b/c");
        let mut folders = Folders::default();
        folders.create_for(&path, &cleanup).expect("folders");
        let file = create(&cleanup, &path).expect("a file");
        assert!(cleanup.stop());
        let renamed = cleanup.publish_files(&[&file], |file| Ok(*file));
        assert!(renamed.is_err());
        assert!(create(&cleanup, &folder.path().join("d")).is_err());
        cleanup.sweep();
        assert!(!folder.path().join("a").exists());
        assert!(!folder.path().join("d").exists());
        drop((file, folders));
        assert_eq!(cleanup.published_files(), 0);
    }
}
