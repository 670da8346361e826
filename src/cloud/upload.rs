//! An object on its way to its bucket: in parts that nobody sees before all of them are there.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt as _;
use object_store::multipart::PartId;
use object_store::path::Path as Key;
use object_store::{Error, MultipartId, ObjectStoreExt as _, PutMode, PutOptions, PutPayload};
use tokio::sync::{OnceCell, RwLock, Semaphore, watch};
use tokio::task::JoinHandle;

use super::address::{Address, Provider};
use super::store::{self, Bucket};
use super::trouble::Trouble;
use super::{open, parts, runtime};
use crate::error::{Failure, Kind};

/// What is on its way at a time, in parts of the smallest size.
const PARTS_AT_ONCE: usize = 4;
static ROOM: Semaphore = Semaphore::const_new(PARTS_AT_ONCE);

/// What an object needs on both sides: where it is written, and where requests are made.
pub(super) struct Object {
    address: Address,
    key: Key,
    bucket: Bucket,
    /// Of the upload, once it has begun.
    id: OnceCell<MultipartId>,
    /// Held for reading by every request of the upload, so that it is taken back after them.
    requests: RwLock<()>,
    stopped: watch::Sender<bool>,
    committed: AtomicBool,
    /// Why the first part that failed did.
    failed: Mutex<Option<Failure>>,
}

impl Object {
    fn new(address: &Address) -> Result<Self, Failure> {
        let key = Key::parse(&address.key).map_err(|_| {
            Failure::new(Kind::Usage, format!("`{address}` is no name for an object"))
                .hint("choose another name with `-o`")
        })?;
        Ok(Self {
            address: address.clone(),
            key,
            bucket: store::bucket(address)?,
            id: OnceCell::new(),
            requests: RwLock::new(()),
            stopped: watch::Sender::new(false),
            committed: AtomicBool::new(false),
            failed: Mutex::new(None),
        })
    }

    /// Begins the upload, where that has not been done; what was begun is known, and can be taken back.
    async fn begin(&self, bucket: &Arc<dyn store::Store>) -> Result<&MultipartId, Error> {
        self.id
            .get_or_try_init(|| bucket.create_multipart(&self.key))
            .await
    }

    /// Finds out whether the object could be written, by beginning to.
    async fn check(&self) -> Result<(), Failure> {
        self.begin(&self.bucket.hasty)
            .await
            .map_err(|error| self.trouble(&error))?;
        if self.address.provider != Provider::Azure {
            return Ok(());
        }
        // Here nothing was sent yet. To ask for a list changes nothing; who may write need not be
        // allowed to, but has then shown a good key.
        let mut listed = self.bucket.hasty.list(Some(&self.key));
        match listed.next().await {
            Some(Err(error)) => {
                let trouble = Trouble::new(&error);
                if trouble.lacks_permission() {
                    return Ok(());
                }
                Err(trouble.of_writing(&self.address))
            }
            Some(Ok(_)) | None => Ok(()),
        }
    }

    async fn is_there(&self, bucket: &Arc<dyn store::Store>) -> Result<bool, Failure> {
        match bucket.head(&self.key).await {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.trouble(&error)),
        }
    }

    async fn put(&self, number: usize, part: Vec<u8>) -> Option<PartId> {
        let _request = self.requests.read().await;
        if *self.stopped.borrow() {
            return None;
        }
        let put = async {
            let id = self.begin(&self.bucket.patient).await?;
            let part = PutPayload::from(part);
            let mut stopped = self.stopped.subscribe();
            tokio::select! {
                part = self.bucket.patient.put_part(&self.key, id, number, part) => part.map(Some),
                _ = stopped.wait_for(|stopped| *stopped) => Ok(None),
            }
        };
        match put.await {
            Ok(part) => part,
            Err(error) => {
                let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.get_or_insert_with(|| self.trouble(&error));
                None
            }
        }
    }

    /// Makes one object of `parts`, in place of what was there.
    async fn complete(&self, parts: Vec<PartId>, replace: bool) -> Result<(), Failure> {
        if !replace && self.is_there(&self.bucket.patient).await? {
            return Err(self.appeared());
        }
        let store = &self.bucket.patient;
        let id = self.begin(store).await;
        let id = id.map_err(|error| self.trouble(&error))?;
        let completed = store.complete_multipart(&self.key, id, parts).await;
        completed.map(drop).map_err(|error| self.trouble(&error))
    }

    /// Writes all of a small object, where there is none.
    async fn create(&self, whole: Vec<u8>) -> Result<(), Failure> {
        let store = &self.bucket.patient;
        let payload = PutPayload::from(whole);
        let options = PutOptions::from(PutMode::Create);
        let created = store.put_opts(&self.key, payload.clone(), options).await;
        let error = match created {
            Ok(_) => return Ok(()),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                return Err(self.appeared());
            }
            Err(error) => error,
        };
        let trouble = Trouble::new(&error);
        if !matches!(error, Error::NotImplemented { .. }) && !trouble.is_unknown_there() {
            return Err(trouble.of_writing(&self.address));
        }
        // A store that cannot do both at once is asked before.
        if self.is_there(store).await? {
            return Err(self.appeared());
        }
        let put = store.put(&self.key, payload).await;
        put.map(drop).map_err(|error| self.trouble(&error))
    }

    fn trouble(&self, error: &Error) -> Failure {
        Trouble::new(error).of_writing(&self.address)
    }

    fn appeared(&self) -> Failure {
        Failure::new(
            Kind::Output,
            format!(
                "`{}` has appeared meanwhile, and `--no-clobber` keeps it",
                self.address
            ),
        )
    }

    /// Ends requests that are under way, and lets no more begin.
    pub(super) fn stop(&self) {
        self.stopped.send_replace(true);
    }

    /// Notes that it is about to be published.
    pub(super) fn commit(&self) {
        self.committed.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_committed(&self) -> bool {
        self.committed.load(Ordering::Relaxed)
    }

    /// Takes back all parts that were sent.
    pub(super) async fn take_back(&self) {
        let _alone = self.requests.write().await;
        if let Some(id) = self.id.get() {
            let taken = self.bucket.patient.abort_multipart(&self.key, id).await;
            // Where it is gone already, somebody else has done it.
            if let Err(error) = taken
                && !Trouble::new(&error).is_missing()
            {
                log::warn!(
                    "what was sent of `{}` could not be taken back: look for incomplete multipart uploads there",
                    self.address
                );
            }
        }
    }
}

/// An object that is being written.
pub(crate) struct Upload {
    object: Arc<Object>,
    number: u64,
    /// What is not sent yet.
    held: Vec<u8>,
    sent: Vec<JoinHandle<Option<PartId>>>,
    arrived: Vec<PartId>,
    replace: bool,
    /// Somebody waits for this one object alone: a small one may be held until it is published.
    alone: bool,
    published: bool,
}

impl Upload {
    /// Begins to write the object at `address`. Where it is written `alone`, finds out now whether it can
    /// be; one of many begins with its first part.
    pub(crate) fn begin(address: &Address, no_clobber: bool, alone: bool) -> Result<Self, Failure> {
        let object = Arc::new(Object::new(address)?);
        let number = open::begin(&object).map_err(Failure::from_output)?;
        let upload = Self {
            object: Arc::clone(&object),
            number,
            held: Vec::new(),
            sent: Vec::new(),
            arrived: Vec::new(),
            replace: !no_clobber,
            alone,
            published: false,
        };
        let address = address.to_string();
        waited(async move {
            if alone {
                object.check().await?;
            }
            if no_clobber && object.is_there(&object.bucket.hasty).await? {
                return Err(Failure::new(
                    Kind::Output,
                    format!("`{address}` exists, and `--no-clobber` keeps it"),
                )
                .hint("choose another name, or leave `--no-clobber` out"));
            }
            Ok(())
        })?;
        Ok(upload)
    }

    /// Sends what is held as one part; waits until there is room for it.
    fn send(&mut self) -> io::Result<()> {
        self.complain()?;
        let part = std::mem::take(&mut self.held);
        let units = part.len().div_ceil(parts::SMALLEST).clamp(1, PARTS_AT_ONCE);
        let units = u32::try_from(units).unwrap_or(1);
        let room = runtime::wait(ROOM.acquire_many(units))?;
        let room = room.map_err(io::Error::other)?;
        let (object, number) = (Arc::clone(&self.object), self.sent.len());
        self.sent.push(runtime::start(async move {
            let put = object.put(number, part).await;
            drop(room);
            put
        })?);
        Ok(())
    }

    /// Tells of a part that failed, as soon as that is known.
    fn complain(&self) -> io::Result<()> {
        let failed = &self.object.failed;
        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
        match failed.take() {
            Some(failure) => Err(io::Error::other(failure)),
            None => Ok(()),
        }
    }

    /// Sends all of a file that was written elsewhere.
    pub(crate) fn send_file(&mut self, path: &Path) -> io::Result<()> {
        let mut file = File::open(path)?;
        let mut piece = vec![0; 1 << 20];
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(()),
                length => self.write_all(&piece[..length])?,
            }
        }
    }

    /// Sends the rest, and does not wait for it.
    pub(crate) fn seal(&mut self) -> io::Result<()> {
        // Only a whole object can be written on the condition that there is none.
        let conditional = !self.replace && self.alone && self.sent.is_empty();
        if self.held.is_empty() || conditional {
            Ok(())
        } else {
            self.send()
        }
    }

    /// Waits until everything has arrived.
    pub(crate) fn arrive(&mut self) -> Result<(), Failure> {
        self.seal().map_err(Failure::from_output)?;
        for part in std::mem::take(&mut self.sent) {
            let part = runtime::wait(part).and_then(|ended| ended.map_err(io::Error::other));
            let Some(part) = part.map_err(Failure::from_output)? else {
                self.complain().map_err(Failure::from_output)?;
                return Err(Failure::new(Kind::Output, "the upload was stopped"));
            };
            self.arrived.push(part);
        }
        Ok(())
    }

    /// Makes everything that has arrived one object, in its place.
    pub(crate) fn publish(mut self) -> Result<(), Failure> {
        self.arrive()?;
        open::publish(&self.object).map_err(Failure::from_output)?;
        let object = Arc::clone(&self.object);
        let (parts, whole) = (
            std::mem::take(&mut self.arrived),
            std::mem::take(&mut self.held),
        );
        let replace = self.replace;
        if replace || !self.alone || !parts.is_empty() {
            waited(async move { object.complete(parts, replace).await })?;
        } else {
            waited(async move {
                object.create(whole).await?;
                object.take_back().await;
                Ok(())
            })?;
        }
        self.published = true;
        open::published(self.number);
        Ok(())
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = parts::size(self.sent.len());
        let length = bytes.len().min(size - self.held.len());
        self.held.extend_from_slice(&bytes[..length]);
        if self.held.len() == size {
            self.send()?;
        }
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if !self.published {
            open::take_back(self.number, Arc::clone(&self.object));
        }
    }
}

/// Finds out whether objects could be written beside `address`, and leaves nothing there.
pub(crate) fn check(address: &Address) -> Result<(), Failure> {
    Upload::begin(address, false, true).map(drop)
}

fn waited<F>(work: F) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    runtime::wait(work).map_err(Failure::from_output)?
}
