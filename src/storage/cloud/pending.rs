//! Uploads that are not complete. Their parts cost money until they are taken back, so that is done
//! whatever ends them, and a run does not end before.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::object::ObjectContext;
use super::requests;

/// How long the end of a run waits for uploads to be taken back, or to be published where that has begun.
const PATIENCE: Duration = Duration::from_secs(15);
/// Requests at a time.
const AT_ONCE: usize = 16;

#[derive(Default)]
struct PendingUploads {
    objects: HashMap<u64, Arc<ObjectContext>>,
    last: u64,
    /// Requests that publish were begun, whatever became of them.
    publishing: bool,
    /// The run was told to stop: nothing more is begun or published.
    over: bool,
}

static OPEN: Mutex<Option<PendingUploads>> = Mutex::new(None);
static PUBLISHED: AtomicBool = AtomicBool::new(false);
static TAKING_BACK: Semaphore = Semaphore::const_new(AT_ONCE);

fn lock() -> MutexGuard<'static, Option<PendingUploads>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn over() -> io::Error {
    io::Error::other("the run is over")
}

/// Notes an upload that is about to begin, and returns its number.
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

/// Notes that an upload is being published from now on; a run that was told to stop publishes nothing.
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

/// Notes that an upload is published.
pub(super) fn published(number: u64) {
    PUBLISHED.store(true, Ordering::Relaxed);
    forget(number);
}

fn forget(number: u64) {
    if let Some(open) = lock().as_mut() {
        open.objects.remove(&number);
    }
}

/// Tells whether anything was published in this run.
pub(crate) fn was_published() -> bool {
    PUBLISHED.load(Ordering::Relaxed)
}

/// Tells whether anything may have been published in this run: a request was begun, and may not have been answered.
pub(crate) fn may_be_published() -> bool {
    lock().as_ref().is_some_and(|open| open.publishing)
}

/// Takes an upload back, and does not wait for it: [`settle`] does.
pub(super) fn take_back(number: u64, object: Arc<ObjectContext>) {
    object.stop();
    let work = async move {
        // It is never closed.
        let _turn = TAKING_BACK.acquire().await;
        object.take_back().await;
        forget(number);
    };
    // Where nothing can be started, nothing was.
    let _ = requests::start(work);
}

/// Takes all uploads back but those that are being published, and lets nothing be published after.
pub(crate) fn sweep() {
    let mut open = lock();
    let Some(open) = open.as_mut() else {
        return;
    };
    open.over = true;
    for (number, object) in &open.objects {
        if !object.is_committed() {
            take_back(*number, Arc::clone(object));
        }
    }
}

/// Waits for what [`sweep`] and failures have begun, and says what is left.
pub(crate) fn settle() {
    let count = || lock().as_ref().map_or(0, |open| open.objects.len());
    if count() == 0 {
        return;
    }
    requests::wait_at_most(PATIENCE, async move {
        while count() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    if count() > 0 {
        log::warn!(
            "{} unfinished in object storage could not be taken back: look for incomplete multipart uploads there",
            match count() {
                1 => "1 upload".to_owned(),
                many => format!("{many} uploads"),
            }
        );
    }
}
