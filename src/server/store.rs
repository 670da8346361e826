//! What is served at this moment: batches that stay as they are, or follow those of somebody else.
//!
//! A change makes a new edition. Whoever begins to ask gets the latest one, and whoever goes on asking is
//! told to begin again: no walk through the pages mixes two states.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::catalog::Catalog;
use crate::error::{Failure, Kind};

/// How long a request waits for the latest edition before it is answered from the one that is there.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns all batches where they have changed since it was last called; nothing where they have not.
pub(crate) type Source = Box<dyn FnMut() -> Result<Option<Catalog>, Failure> + Send>;

/// Batches in one state.
#[derive(Clone)]
pub(super) struct Snapshot {
    pub(super) catalog: Arc<Catalog>,
    pub(super) number: u64,
}

/// The batches that are served.
pub(crate) struct DataStore {
    current: Arc<Mutex<Snapshot>>,
    followed: Option<Arc<tokio::sync::Mutex<WatchedData>>>,
}

/// Batches that may change, and what is known of that.
struct WatchedData {
    source: Source,
    /// When the last look at them began.
    looked: Option<Instant>,
    /// Why they could not be looked at, as was said already.
    trouble: Option<String>,
}

impl From<Catalog> for DataStore {
    fn from(catalog: Catalog) -> Self {
        let edition = Snapshot {
            catalog: Arc::new(catalog),
            number: 0,
        };
        Self {
            current: Arc::new(Mutex::new(edition)),
            followed: None,
        }
    }
}

impl DataStore {
    /// Serves `catalog`, and whatever `source` has after it.
    pub(crate) fn following(catalog: Catalog, source: Source) -> Self {
        let followed = WatchedData {
            source,
            looked: None,
            trouble: None,
        };
        Self {
            followed: Some(Arc::new(tokio::sync::Mutex::new(followed))),
            ..Self::from(catalog)
        }
    }

    /// Returns the edition that was made last.
    pub(super) fn current(&self) -> Snapshot {
        lock(&self.current).clone()
    }

    /// Returns an edition with everything that has changed before this was called.
    pub(super) async fn latest(&self) -> Snapshot {
        if let Some(followed) = &self.followed {
            // What is still being made then is there for those who come later.
            let _ = tokio::time::timeout(PATIENCE, self.look(Arc::clone(followed))).await;
        }
        self.current()
    }

    async fn look(&self, followed: Arc<tokio::sync::Mutex<WatchedData>>) {
        let asked = Instant::now();
        let mut followed = followed.lock_owned().await;
        // Somebody may have looked while this waited for its turn.
        if followed.looked.is_some_and(|looked| looked >= asked) {
            return;
        }
        let current = Arc::clone(&self.current);
        // It ends what it has begun, whether or not anybody still waits for it.
        let looking = tokio::task::spawn_blocking(move || followed.look(&current));
        if let Err(error) = looking.await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

impl WatchedData {
    fn look(&mut self, current: &Mutex<Snapshot>) {
        self.looked = Some(Instant::now());
        match (self.source)() {
            Ok(catalog) => {
                self.trouble = None;
                if let Some(catalog) = catalog {
                    replace(current, catalog);
                }
            }
            Err(failure) => self.tell(failure),
        }
    }

    /// Says why the batches stay as they were, once.
    fn tell(&mut self, failure: Failure) {
        let is_moment = failure.kind == Kind::Locked;
        let trouble = format!("{:#}", anyhow::Error::new(failure));
        if self.trouble.as_ref() == Some(&trouble) {
            return;
        }
        let level = if is_moment {
            log::Level::Info
        } else {
            log::Level::Warn
        };
        log::log!(level, "serving batches as they were read last: {trouble}");
        self.trouble = Some(trouble);
    }
}

/// Makes `catalog` the current edition, unless it is the same as before: then cursors stay good.
fn replace(current: &Mutex<Snapshot>, catalog: Catalog) {
    let before = lock(current).clone();
    if *before.catalog == catalog {
        return;
    }
    log::info!("the batches have changed: {} now", catalog.len());
    *lock(current) = Snapshot {
        catalog: Arc::new(catalog),
        number: before.number + 1,
    };
}

fn lock(current: &Mutex<Snapshot>) -> std::sync::MutexGuard<'_, Snapshot> {
    current.lock().unwrap_or_else(PoisonError::into_inner)
}
