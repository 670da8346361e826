//! An object on its way to its bucket: in one request where it is small, or in parts that nobody sees before
//! all of them are there.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::StreamExt as _;
use object_store::multipart::PartId;
use object_store::path::Path as Key;
use object_store::{
    Attribute, Attributes, GetOptions, MultipartId, PutMode, PutMultipartOptions, PutOptions,
    PutPayload,
};
use tokio::sync::{Mutex as AsyncMutex, RwLock, Semaphore, SemaphorePermit, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::address::{Address, Provider};
use super::attempts::{Span, Tried, attempt};
use super::orphans::{Found, ObjectUri};
use super::store::{self, Bucket};
use super::trouble::Trouble;
use super::{open, parts, runtime};
use crate::error::{Failure, Kind};

/// What is on its way at a time, in parts of the smallest size.
const PARTS_AT_ONCE: usize = 4;
static ROOM: Semaphore = Semaphore::const_new(PARTS_AT_ONCE);
/// What small objects may hold in memory until they are published, in KiB. Beyond that they go as parts.
static HELD: Semaphore = Semaphore::const_new(64 << 10);
/// Objects that are published at a time.
const OBJECTS_AT_ONCE: usize = 8;
/// How many new objects a message names.
const NAMED: usize = 5;
/// A body is sent in pieces of this size, so that it can be seen how far it got.
const PIECE: usize = 64 << 10;
/// Marks an object with the run that wrote it, to know it again when an answer was lost. Azure takes no
/// hyphen here, and some proxies no underscore.
const MARK: &str = "trayscanupload";

/// What an object needs on both sides: where it is written, and where requests are made.
pub(super) struct Object {
    address: Address,
    key: Key,
    bucket: Bucket,
    mark: String,
    /// Of the upload in parts that is open.
    id: AsyncMutex<Option<MultipartId>>,
    /// When requests to begin an upload went unanswered.
    unanswered: Mutex<Vec<Span>>,
    uri: ObjectUri,
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
            mark: format!("{:032x}", fastrand::u128(..)),
            id: AsyncMutex::new(None),
            unanswered: Mutex::default(),
            uri: ObjectUri::default(),
            requests: RwLock::new(()),
            stopped: watch::Sender::new(false),
            committed: AtomicBool::new(false),
            failed: Mutex::new(None),
        })
    }

    /// Makes a request until it succeeds or fails for good.
    async fn ask<T, F>(&self, request: impl FnMut() -> F) -> Tried<T>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        attempt(self.bucket.policy, &self.address, &self.stopped, request).await
    }

    fn attributes(&self) -> Attributes {
        let mark = Attribute::Metadata(MARK.into());
        Attributes::from_iter([(mark, self.mark.clone())])
    }

    /// Begins an upload in parts, where none is open; one that is known can be taken back.
    async fn begin(&self) -> Result<MultipartId, Trouble> {
        let mut open = self.id.lock().await;
        if let Some(id) = &*open {
            return Ok(id.clone());
        }
        let tried = self.ask(|| {
            let mut options = PutMultipartOptions::default();
            // Azure begins nothing, and has no place for them here.
            if self.address.provider != Provider::Azure {
                options.attributes = self.attributes();
                self.uri.ask_in(&mut options.extensions);
            }
            self.bucket.store.create_multipart_opts(&self.key, options)
        });
        let tried = tried.await;
        lock(&self.unanswered).extend(tried.uncertain);
        let id = tried.result?;
        *open = Some(id.clone());
        Ok(id)
    }

    /// Finds out whether the object could be written, by beginning to.
    async fn check(&self) -> Result<(), Failure> {
        let _request = self.requests.read().await;
        let began = self.begin().await;
        began.map_err(|trouble| trouble.of_writing(&self.address))?;
        if self.address.provider != Provider::Azure {
            self.abort().await;
            return Ok(());
        }
        // Here nothing was sent yet. To ask for a list changes nothing; who may write need not be
        // allowed to, but has then shown a good key.
        let list = || async {
            let mut listed = self.bucket.store.list(Some(&self.key));
            listed.next().await.transpose()
        };
        match self.ask(list).await.result {
            Err(trouble) if !trouble.lacks_permission() => Err(trouble.of_writing(&self.address)),
            _ => Ok(()),
        }
    }

    async fn is_there(&self) -> Result<bool, Failure> {
        let head = || {
            let options = GetOptions::default().with_head(true);
            self.bucket.store.get_opts(&self.key, options)
        };
        match self.ask(head).await.result {
            Ok(_) => Ok(true),
            Err(trouble) if trouble.is_missing() => Ok(false),
            Err(trouble) => Err(trouble.of_writing(&self.address)),
        }
    }

    /// Tells whether what is there was written here, after a request that failed with `trouble`.
    async fn is_ours(&self, trouble: &Trouble) -> bool {
        let head = || {
            let options = GetOptions::default().with_head(true);
            self.bucket.store.get_opts(&self.key, options)
        };
        // A store that has not answered for so long is not waited for once more.
        let mut policy = self.bucket.policy;
        if trouble.is_transient() {
            policy.retries = 0;
        }
        let tried = attempt(policy, &self.address, &self.stopped, head).await;
        let mark = Attribute::Metadata(MARK.into());
        let is_ours = tried
            .result
            .is_ok_and(|found| found.attributes.get(&mark).map(AsRef::as_ref) == Some(&*self.mark));
        if is_ours {
            log::info!(
                "`{}` is in its place, although an answer was lost",
                self.address
            );
        }
        is_ours
    }

    async fn put(&self, number: usize, part: PutPayload) -> Option<PartId> {
        let _request = self.requests.read().await;
        if *self.stopped.borrow() {
            return None;
        }
        let put = async {
            let id = self.begin().await?;
            let store = &self.bucket.store;
            let put = self.ask(|| store.put_part(&self.key, &id, number, part.clone()));
            let mut stopped = self.stopped.subscribe();
            tokio::select! {
                tried = put => tried.result.map(Some),
                _ = stopped.wait_for(|stopped| *stopped) => Ok(None),
            }
        };
        match put.await {
            Ok(part) => part,
            Err(trouble) => {
                lock(&self.failed).get_or_insert_with(|| trouble.of_writing(&self.address));
                None
            }
        }
    }

    /// Puts the object in its place.
    async fn publish(&self, content: Content, replace: bool) -> Result<(), Failure> {
        match content {
            Content::Parts(parts) => self.complete(parts, replace).await?,
            Content::Whole(whole) if replace => self.replace(whole).await?,
            Content::Whole(whole) => self.create(whole).await?,
        }
        self.abort_orphans().await;
        Ok(())
    }

    /// Makes one object of `parts`, in place of what was there.
    async fn complete(&self, parts: Vec<PartId>, replace: bool) -> Result<(), Failure> {
        if !replace && self.is_there().await? {
            return Err(self.appeared());
        }
        let id = self.begin().await;
        let id = id.map_err(|trouble| trouble.of_writing(&self.address))?;
        let store = &self.bucket.store;
        let complete = || store.complete_multipart(&self.key, &id, parts.clone());
        let tried = self.ask(complete).await;
        self.confirm(tried).await?;
        self.id.lock().await.take();
        Ok(())
    }

    /// Writes all of a small object, in place of what was there.
    async fn replace(&self, whole: PutPayload) -> Result<(), Failure> {
        let tried = self.ask(|| self.put_whole(&whole, PutMode::Overwrite));
        self.confirm(tried.await).await
    }

    /// Writes all of a small object, where there is none.
    async fn create(&self, whole: PutPayload) -> Result<(), Failure> {
        let tried = self.ask(|| self.put_whole(&whole, PutMode::Create)).await;
        match &tried.result {
            Err(trouble) if trouble.is_there() => {
                // It may be from an earlier try.
                if self.is_ours(trouble).await {
                    return Ok(());
                }
                Err(self.appeared())
            }
            // A store that cannot do both at once is asked before.
            Err(trouble) if trouble.is_unknown_there() => {
                if self.is_there().await? {
                    return Err(self.appeared());
                }
                self.replace(whole).await
            }
            _ => self.confirm(tried).await,
        }
    }

    fn put_whole(
        &self,
        whole: &PutPayload,
        mode: PutMode,
    ) -> impl Future<Output = object_store::Result<object_store::PutResult>> {
        let options = PutOptions {
            mode,
            attributes: self.attributes(),
            ..PutOptions::default()
        };
        let store = &self.bucket.store;
        store.put_opts(&self.key, whole.clone(), options)
    }

    /// Decides whether the object is in its place: where it seems not, looks.
    async fn confirm<T>(&self, tried: Tried<T>) -> Result<(), Failure> {
        let Err(trouble) = tried.result else {
            return Ok(());
        };
        if self.is_ours(&trouble).await {
            return Ok(());
        }
        let failure = trouble.of_writing(&self.address);
        Err(if tried.uncertain.is_empty() {
            failure
        } else {
            failure.hint(format!(
                "an answer was lost, so `{}` may be new all the same: look at it, or run the same command again later",
                self.address
            ))
        })
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
        self.abort().await;
        self.abort_orphans().await;
    }

    /// Aborts uploads that were begun here, and whose answers got lost.
    async fn abort_orphans(&self) {
        let spans = std::mem::take(&mut *lock(&self.unanswered));
        let Some(uploads) = self.bucket.uploads.as_ref().filter(|_| !spans.is_empty()) else {
            return;
        };
        let never = watch::Sender::new(false);
        let (policy, store) = (self.bucket.policy, &self.bucket.store);
        let find = || uploads.find(&self.uri, &self.address.key, &spans);
        let found = attempt(policy, &self.address, &never, find).await.result;
        let ours = match found {
            Ok(Found::Ours(ours)) => Some(ours),
            Ok(Found::Unclear) | Err(_) => None,
        };
        let mut is_clear = ours.is_some();
        for id in ours.unwrap_or_default() {
            let abort = || store.abort_multipart(&self.key, &id);
            let tried = attempt(policy, &self.address, &never, abort).await;
            is_clear &= tried
                .result
                .map_or_else(|trouble| trouble.is_missing(), |()| true);
        }
        if !is_clear {
            log::warn!(
                "the store did not say whether it began an upload of `{}`, so one without parts may be left: look for incomplete multipart uploads there",
                self.address
            );
        }
    }

    async fn abort(&self) {
        let Some(id) = self.id.lock().await.take() else {
            return;
        };
        // The run may be over; what was begun is taken back all the same.
        let never = watch::Sender::new(false);
        let abort = || self.bucket.store.abort_multipart(&self.key, &id);
        let tried = attempt(self.bucket.policy, &self.address, &never, abort).await;
        // Where it is gone already, somebody else has done it.
        if let Err(trouble) = tried.result
            && !trouble.is_missing()
        {
            log::warn!(
                "what was sent of `{}` could not be taken back: look for incomplete multipart uploads there",
                self.address
            );
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an object is made of.
enum Content {
    Parts(Vec<PartId>),
    Whole(PutPayload),
}

/// An object that is being written.
pub(crate) struct Upload {
    object: Arc<Object>,
    number: u64,
    /// What is not sent yet.
    held: Vec<u8>,
    /// Room in memory for a small object that waits to be published.
    room: Option<SemaphorePermit<'static>>,
    sent: Vec<JoinHandle<Option<PartId>>>,
    arrived: Vec<PartId>,
    replace: bool,
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
            room: None,
            sent: Vec::new(),
            arrived: Vec::new(),
            replace: !no_clobber,
            published: false,
        };
        let address = address.to_string();
        waited(async move {
            if alone {
                object.check().await?;
            }
            if no_clobber && object.is_there().await? {
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
        self.room = None;
        let units = part.len().div_ceil(parts::SMALLEST).clamp(1, PARTS_AT_ONCE);
        let units = u32::try_from(units).unwrap_or(1);
        let room = runtime::wait(ROOM.acquire_many(units))?;
        let room = room.map_err(io::Error::other)?;
        let (object, number) = (Arc::clone(&self.object), self.sent.len());
        self.sent.push(runtime::start(async move {
            let put = object.put(number, payload(part)).await;
            drop(room);
            put
        })?);
        Ok(())
    }

    /// Tells of a part that failed, as soon as that is known.
    fn complain(&self) -> io::Result<()> {
        match lock(&self.object.failed).take() {
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

    /// Sends the rest, and does not wait for it. A small object waits to be published, where there is room.
    pub(crate) fn seal(&mut self) -> io::Result<()> {
        if self.held.is_empty() || self.room.is_some() {
            return Ok(());
        }
        if self.sent.is_empty() {
            let units = u32::try_from(self.held.len().div_ceil(1 << 10)).unwrap_or(u32::MAX);
            if let Ok(room) = HELD.try_acquire_many(units) {
                self.held.shrink_to_fit();
                self.room = Some(room);
                return Ok(());
            }
        }
        self.send()
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

    /// Puts all of `uploads` in their places, several at a time. Where one fails, no more are begun, and the
    /// failure says which are new.
    pub(crate) fn publish_all(mut uploads: Vec<Self>) -> Result<(), Failure> {
        let mut contents = Vec::with_capacity(uploads.len());
        for upload in &mut uploads {
            upload.arrive()?;
            let (parts, whole) = (
                std::mem::take(&mut upload.arrived),
                std::mem::take(&mut upload.held),
            );
            contents.push(if parts.is_empty() {
                Content::Whole(payload(whole))
            } else {
                Content::Parts(parts)
            });
        }
        let objects = uploads.iter().zip(contents);
        let objects: Vec<_> = objects
            .map(|(upload, content)| (Arc::clone(&upload.object), content, upload.replace))
            .collect();
        let published = runtime::wait(publish_all(objects)).map_err(Failure::from_output)?;
        for &place in &published.new {
            uploads[place].published = true;
            open::published(uploads[place].number);
        }
        let Some(failure) = published.failure else {
            return Ok(());
        };
        if uploads.len() == 1 {
            return Err(failure);
        }
        let new: Vec<&Address> = uploads
            .iter()
            .filter(|upload| upload.published)
            .map(|upload| &upload.object.address)
            .collect();
        let told = format!("{failure}; {}", told_new(&new, uploads.len()));
        Err(failure.saying(told))
    }
}

/// Says which of `count` objects are new.
fn told_new(new: &[&Address], count: usize) -> String {
    if new.is_empty() {
        return format!("none of the {count} objects is new");
    }
    let names: Vec<String> = new
        .iter()
        .take(NAMED)
        .map(|new| format!("`{new}`"))
        .collect();
    let more = match new.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{} of {count} objects are new: {}{more}",
        new.len(),
        names.join(", ")
    )
}

/// What became of objects that were to be published.
#[derive(Default)]
struct Published {
    /// The places of those that are new.
    new: Vec<usize>,
    failure: Option<Failure>,
}

async fn publish_all(objects: Vec<(Arc<Object>, Content, bool)>) -> Published {
    let mut published = Published::default();
    let mut waiting = objects.into_iter().enumerate();
    let mut running = JoinSet::new();
    loop {
        while published.failure.is_none() && running.len() < OBJECTS_AT_ONCE {
            let Some((place, (object, content, replace))) = waiting.next() else {
                break;
            };
            match open::publish(&object) {
                Ok(()) => {
                    running.spawn(async move { (place, object.publish(content, replace).await) });
                }
                Err(error) => published.failure = Some(Failure::from_output(error)),
            }
        }
        match running.join_next().await {
            None => break,
            Some(Ok((place, Ok(())))) => published.new.push(place),
            Some(Ok((_, Err(failure)))) => {
                published.failure.get_or_insert(failure);
            }
            Some(Err(error)) => {
                let failure = Failure::from_output(io::Error::other(error));
                published.failure.get_or_insert(failure);
            }
        }
    }
    published.new.sort_unstable();
    published
}

/// Cuts `bytes` into pieces.
fn payload(bytes: Vec<u8>) -> PutPayload {
    let mut rest = Bytes::from(bytes);
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        pieces.push(rest.split_to(rest.len().min(PIECE)));
    }
    PutPayload::from_iter(pieces)
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
