//! The batches that are served now: fixed, or updated from a source.
//!
//! Each change creates a new snapshot. A first page is served from the latest one. A cursor of an older
//! snapshot is refused, so that no walk through the pages mixes two states.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::catalog::Catalog;
use crate::error::{Failure, Kind};

/// How long a request waits for the latest snapshot before it is served from the current one.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns all batches if they have changed since the last call. `None` if not.
pub(crate) type Source = Box<dyn FnMut() -> Result<Option<Catalog>, Failure> + Send>;

/// The batches in one state.
#[derive(Clone)]
pub(super) struct Snapshot {
    pub(super) catalog: Arc<Catalog>,
    pub(super) number: u64,
}

/// The batches that are served.
pub(crate) struct DataStore {
    current: Arc<Mutex<Snapshot>>,
    watched: Option<Arc<tokio::sync::Mutex<WatchedData>>>,
}

/// A source of batches, and the state of watching it.
struct WatchedData {
    source: Source,
    /// When the last check started.
    last_check: Option<Instant>,
    /// The last error, which was already logged.
    last_error: Option<String>,
}

impl From<Catalog> for DataStore {
    fn from(catalog: Catalog) -> Self {
        let snapshot = Snapshot {
            catalog: Arc::new(catalog),
            number: 0,
        };
        Self {
            current: Arc::new(Mutex::new(snapshot)),
            watched: None,
        }
    }
}

impl DataStore {
    /// Serves `catalog`, then each update from `source`.
    pub(crate) fn watching(catalog: Catalog, source: Source) -> Self {
        let watched = WatchedData {
            source,
            last_check: None,
            last_error: None,
        };
        Self {
            watched: Some(Arc::new(tokio::sync::Mutex::new(watched))),
            ..Self::from(catalog)
        }
    }

    pub(super) fn current(&self) -> Snapshot {
        self.current.lock().clone()
    }

    /// Checks the source, then returns a snapshot with all changes made before this call.
    pub(super) async fn latest(&self) -> Snapshot {
        if let Some(watched) = &self.watched {
            // After a timeout, the update goes on and is available to later requests.
            let _ = tokio::time::timeout(REFRESH_TIMEOUT, self.refresh(Arc::clone(watched))).await;
        }
        self.current()
    }

    async fn refresh(&self, watched: Arc<tokio::sync::Mutex<WatchedData>>) {
        let requested = Instant::now();
        let mut watched = watched.lock_owned().await;
        // Another request may have checked the source while this one waited for the lock.
        if watched.last_check >= Some(requested) {
            return;
        }
        let current = Arc::clone(&self.current);
        // The check runs to its end even if the request times out.
        let refresh = tokio::task::spawn_blocking(move || watched.refresh(&current));
        if let Err(error) = refresh.await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

impl WatchedData {
    fn refresh(&mut self, current: &Mutex<Snapshot>) {
        self.last_check = Some(Instant::now());
        match (self.source)() {
            Ok(catalog) => {
                self.last_error = None;
                if let Some(catalog) = catalog {
                    replace(current, catalog);
                }
            }
            Err(failure) => self.log_once(failure),
        }
    }

    /// Logs why the batches were not updated, once for each error.
    fn log_once(&mut self, failure: Failure) {
        let is_temporary = failure.kind == Kind::Locked;
        let last_error = format!("{:#}", anyhow::Error::new(failure));
        if self.last_error.as_ref() == Some(&last_error) {
            return;
        }
        let level = if is_temporary {
            log::Level::Info
        } else {
            log::Level::Warn
        };
        log::log!(level, "still serving the previous batches: {last_error}");
        self.last_error = Some(last_error);
    }
}

/// Makes `catalog` the current snapshot. If nothing changed, keeps the old one, so that cursors remain
/// valid.
fn replace(current: &Mutex<Snapshot>, catalog: Catalog) {
    let before = current.lock().clone();
    if *before.catalog == catalog {
        return;
    }
    log::info!("the batches have changed; now serving {}", catalog.len());
    *current.lock() = Snapshot {
        catalog: Arc::new(catalog),
        number: before.number + 1,
    };
}
