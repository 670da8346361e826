//! Incomplete uploads. Their parts cost money until they are removed, so they are aborted however the run
//! ends, and the run waits for that.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::object::ObjectContext;
use super::requests;

/// How long the end of a run waits for uploads to be aborted, or to finish publishing.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(15);
/// The number of concurrent abort requests.
const CONCURRENT_ABORTS: usize = 16;

#[derive(Default)]
struct PendingUploads {
    objects: HashMap<u64, Arc<ObjectContext>>,
    last: u64,
    /// Publishing has started, whatever the result.
    publishing: bool,
    /// The run was stopped: nothing more is created or published.
    over: bool,
}

static OPEN: Mutex<Option<PendingUploads>> = Mutex::new(None);
static PUBLISHED: AtomicBool = AtomicBool::new(false);
static ABORTS: Semaphore = Semaphore::const_new(CONCURRENT_ABORTS);

fn lock() -> MutexGuard<'static, Option<PendingUploads>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn over() -> io::Error {
    io::Error::other("the run is over")
}

/// Registers an upload before it is created, and returns its number.
pub(super) fn begin(object: &Arc<ObjectContext>) -> io::Result<u64> {
    let mut open = lock();
    let open = open.get_or_insert_default();
    if open.over {
        return Err(over());
    }
    open.last += 1;
    open.objects.insert(open.last, Arc::clone(object));
    Ok(open.last)
}

/// Marks an upload as being published. Fails if the run was stopped.
pub(super) fn publish(object: &ObjectContext) -> io::Result<()> {
    let mut open = lock();
    let open = open.get_or_insert_default();
    if open.over {
        return Err(over());
    }
    open.publishing = true;
    object.commit();
    Ok(())
}

/// Records that an upload is published.
pub(super) fn published(number: u64) {
    PUBLISHED.store(true, Ordering::Relaxed);
    forget(number);
}

fn forget(number: u64) {
    if let Some(open) = lock().as_mut() {
        open.objects.remove(&number);
    }
}

/// Returns whether anything was published in this run.
pub(crate) fn was_published() -> bool {
    PUBLISHED.load(Ordering::Relaxed)
}

/// Returns whether anything may have been published in this run: a request was sent, but its response may be
/// missing.
pub(crate) fn may_be_published() -> bool {
    lock().as_ref().is_some_and(|open| open.publishing)
}

/// Aborts an upload in the background; [`settle`] waits for it.
pub(super) fn abort_upload(number: u64, object: Arc<ObjectContext>) {
    object.stop();
    let work = async move {
        // The semaphore is never closed.
        let _turn = ABORTS.acquire().await;
        object.abort_upload().await;
        forget(number);
    };
    // If no task can be started, no upload was.
    let _ = requests::start(work);
}

/// Aborts all uploads except those being published, and prevents further publishing.
pub(crate) fn sweep() {
    let mut open = lock();
    let Some(open) = open.as_mut() else {
        return;
    };
    open.over = true;
    for (number, object) in &open.objects {
        if !object.is_committed() {
            abort_upload(*number, Arc::clone(object));
        }
    }
}

/// Waits for uploads that are being aborted, and warns about those that remain.
pub(crate) fn settle() {
    let count = || lock().as_ref().map_or(0, |open| open.objects.len());
    if count() == 0 {
        return;
    }
    requests::wait_at_most(SETTLE_TIMEOUT, async move {
        while count() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    if count() > 0 {
        log::warn!(
            "{} left incomplete in object storage could not be removed: check for incomplete multipart uploads there",
            match count() {
                1 => "1 upload".to_owned(),
                many => format!("{many} uploads"),
            }
        );
    }
}
