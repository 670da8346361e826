//! One object, and the requests that write it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::StreamExt as _;
use object_store::multipart::PartId;
use object_store::path::Path as Key;
use object_store::{
    Attribute, Attributes, GetOptions, GetResult, MultipartId, PutMode, PutMultipartOptions,
    PutOptions, PutPayload,
};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, RwLock, watch};

use super::address::{ObjectAddress, Provider};
use super::error::StoreError;
use super::orphans::ObjectUri;
use super::requests::{Span, Tried, attempt};
use super::store::{Bucket, Cloud, CloudState};
use crate::client::retry::RetryPolicy;
use crate::error::Failure;
use crate::storage::transaction::created_meanwhile;

/// The metadata key that marks an object with the run that wrote it, to recognise it if a response was lost.
/// Azure allows no hyphen here, and some proxies no underscore.
const MARK: &str = "trayscanupload";

/// State of an object that its writer and its requests share.
pub(crate) struct Object {
    pub(super) address: ObjectAddress,
    key: Key,
    pub(super) shared: Arc<CloudState>,
    pub(super) bucket: Bucket,
    mark: String,
    /// The ID of the open multipart upload.
    id: AsyncMutex<Option<MultipartId>>,
    /// The total size of all uploaded parts.
    sent: AtomicU64,
    /// When requests to create an upload got no response.
    unanswered: Mutex<Vec<Span>>,
    /// The store stopped responding.
    silent: AtomicBool,
    uri: ObjectUri,
    /// Every request of the upload holds a read lock, so that aborting waits for them.
    requests: RwLock<()>,
    stopped: watch::Sender<bool>,
    committed: AtomicBool,
    /// Whether it was published could not be determined, because a response was lost.
    pub(super) is_unknown: AtomicBool,
    /// The error of the first part that failed.
    pub(super) failed: Mutex<Option<Failure>>,
}

impl Object {
    pub(super) fn new(address: &ObjectAddress, cloud: &Cloud) -> Result<Self, Failure> {
        Ok(Self {
            address: address.clone(),
            key: address.object_key()?,
            shared: Arc::clone(cloud.state()?),
            bucket: cloud.bucket(address)?,
            mark: format!("{:032x}", fastrand::u128(..)),
            id: AsyncMutex::new(None),
            sent: AtomicU64::new(0),
            unanswered: Mutex::default(),
            silent: AtomicBool::new(false),
            uri: ObjectUri::default(),
            requests: RwLock::new(()),
            stopped: watch::Sender::new(false),
            committed: AtomicBool::new(false),
            is_unknown: AtomicBool::new(false),
            failed: Mutex::new(None),
        })
    }

    /// Sends a request until it succeeds or fails permanently.
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

    /// Creates a multipart upload if none is open. Only an upload with a known ID can be aborted.
    async fn begin(&self) -> Result<MultipartId, StoreError> {
        let mut open = self.id.lock().await;
        if let Some(id) = &*open {
            return Ok(id.clone());
        }
        let tried = self.ask(|| {
            let mut options = PutMultipartOptions::default();
            // Azure does not create uploads, and accepts no attributes here.
            if self.address.provider != Provider::Azure {
                options.attributes = self.attributes();
                self.uri.capture_next(&mut options.extensions);
            }
            self.bucket.store.create_multipart_opts(&self.key, options)
        });
        let tried = tried.await;
        self.unanswered.lock().extend(tried.uncertain);
        if tried.result.as_ref().is_err_and(StoreError::is_transient) {
            self.silent.store(true, Ordering::Relaxed);
        }
        let id = tried.result?;
        *open = Some(id.clone());
        Ok(id)
    }

    /// Checks that the object can be written, by creating an upload.
    pub(super) async fn check(&self) -> Result<(), Failure> {
        let _request = self.requests.read().await;
        let began = self.begin().await;
        began.map_err(|error| error.of_writing(&self.address))?;
        if self.address.provider != Provider::Azure {
            self.abort_upload().await;
            return Ok(());
        }
        // On Azure, nothing was sent yet. Listing changes nothing; a user with write permission may not be
        // allowed to list, but the error then shows that the key is valid.
        let list = || async {
            let mut listed = self.bucket.store.list(Some(&self.key));
            listed.next().await.transpose()
        };
        match self.ask(list).await.result {
            Err(error) if !error.lacks_permission() => Err(error.of_writing(&self.address)),
            _ => Ok(()),
        }
    }

    fn head(&self) -> impl Future<Output = object_store::Result<GetResult>> {
        let options = GetOptions::default().with_head(true);
        self.bucket.store.get_opts(&self.key, options)
    }

    pub(super) async fn is_there(&self) -> Result<bool, Failure> {
        match self.ask(|| self.head()).await.result {
            Ok(_) => Ok(true),
            Err(error) if error.is_missing() => Ok(false),
            Err(error) => Err(error.of_writing(&self.address)),
        }
    }

    /// Determines which object is stored at the address.
    async fn check_stored(&self) -> object_store::Result<ObjectState> {
        let found = match self.head().await {
            Ok(found) => found,
            Err(error) if StoreError::new(&error).is_missing() => return Ok(ObjectState::Nothing),
            Err(error) => return Err(error),
        };
        let mark = Attribute::Metadata(MARK.into());
        match found.attributes.get(&mark) {
            Some(mark) if **mark == *self.mark => {
                log::info!(
                    "`{}` was published, although a response was lost",
                    self.address
                );
                Ok(ObjectState::Ours)
            }
            // On Azure, an object made of parts has no mark.
            None if self.address.provider == Provider::Azure
                && found.meta.size == self.sent.load(Ordering::Relaxed) =>
            {
                Ok(ObjectState::Unclear)
            }
            _ => Ok(ObjectState::Other),
        }
    }

    pub(super) async fn put(&self, number: usize, part: PutPayload) -> Option<PartId> {
        let _request = self.requests.read().await;
        if *self.stopped.borrow() {
            return None;
        }
        let length = part.content_length() as u64;
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
            Ok(part) => {
                self.sent.fetch_add(length, Ordering::Relaxed);
                part
            }
            Err(error) => {
                self.failed
                    .lock()
                    .get_or_insert_with(|| error.of_writing(&self.address));
                None
            }
        }
    }

    /// Publishes the object.
    pub(super) async fn publish(
        &self,
        content: ObjectContent,
        replace: bool,
    ) -> Result<(), Failure> {
        match content {
            ObjectContent::Parts(parts) => self.complete(parts, replace).await?,
            ObjectContent::Whole(whole) if replace => {
                let tried = self.ask(|| self.put_whole(&whole, PutMode::Overwrite));
                self.confirm(tried.await, true).await?;
            }
            ObjectContent::Whole(whole) => self.create(whole).await?,
        }
        self.abort_orphans().await;
        Ok(())
    }

    /// Completes a multipart upload from `parts`, and replaces an existing object.
    async fn complete(&self, parts: Vec<PartId>, replace: bool) -> Result<(), Failure> {
        let id = self.begin().await;
        let id = id.map_err(|error| error.of_writing(&self.address))?;
        let store = &self.bucket.store;
        let complete = || store.complete_multipart(&self.key, &id, parts.clone());
        if replace {
            self.confirm(self.ask(complete).await, true).await?;
        } else {
            self.ask_if_absent(complete).await?;
        }
        self.id.lock().await.take();
        Ok(())
    }

    /// Uploads a small object in one request, unless one exists.
    async fn create(&self, whole: PutPayload) -> Result<(), Failure> {
        let tried = self.ask(|| self.put_whole(&whole, PutMode::Create)).await;
        match &tried.result {
            // If the store does not support conditional requests, check first.
            Err(error) if error.is_unknown_there() => {
                self.ask_if_absent(|| self.put_whole(&whole, PutMode::Overwrite))
                    .await
            }
            _ => self.confirm(tried, false).await,
        }
    }

    /// Sends a request that would replace an existing object. Checks before each attempt that none exists.
    async fn ask_if_absent<T, F>(&self, request: impl Fn() -> F) -> Result<(), Failure>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        let answer_was_lost = AtomicBool::new(false);
        let tried = self.ask(|| async {
            match self.check_stored().await? {
                ObjectState::Ours => return Ok(true),
                // A retry is safe: if another program wrote the object, Azure has removed our parts, and the
                // request fails.
                ObjectState::Unclear if answer_was_lost.load(Ordering::Relaxed) => {}
                ObjectState::Unclear | ObjectState::Other => return Ok(false),
                ObjectState::Nothing => {}
            }
            let answered = request().await;
            if let Err(error) = &answered
                && StoreError::new(error).is_uncertain()
            {
                answer_was_lost.store(true, Ordering::Relaxed);
            }
            answered.map(|_| true)
        });
        let tried = tried.await;
        match tried.result {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.appeared()),
            Err(_) => self.confirm(tried, false).await,
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

    /// Determines whether the object was published. Checks the store if the request failed.
    async fn confirm<T>(&self, tried: Tried<T>, replace: bool) -> Result<(), Failure> {
        let Err(error) = tried.result else {
            return Ok(());
        };
        // If the store has stopped responding, do not wait for it again.
        let mut policy = self.bucket.policy;
        if error.is_transient() {
            policy.retries = 0;
        }
        let checked = attempt(policy, &self.address, &self.stopped, || self.check_stored()).await;
        let answer_was_lost = !tried.uncertain.is_empty();
        let has_appeared = match checked.result {
            Ok(ObjectState::Ours) => return Ok(()),
            Ok(ObjectState::Other) => true,
            Ok(ObjectState::Unclear) => !answer_was_lost,
            Ok(ObjectState::Nothing) => false,
            Err(_) => error.is_there() && !answer_was_lost,
        };
        if has_appeared && !replace && !error.is_transient() {
            return Err(self.appeared());
        }
        let failure = error.of_writing(&self.address);
        Err(if answer_was_lost {
            self.is_unknown.store(true, Ordering::Relaxed);
            failure.hint(format!(
                "a response was lost, so `{}` may have been replaced: check it, or run the same command again later",
                self.address
            ))
        } else {
            failure
        })
    }

    fn appeared(&self) -> Failure {
        created_meanwhile(&format!("`{}`", self.address))
    }

    /// Marks the object as about to be published.
    pub(crate) fn commit(&self) {
        self.committed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_committed(&self) -> bool {
        self.committed.load(Ordering::Relaxed)
    }

    /// Stops running requests, prevents new ones, and removes all uploaded parts in the background. Then calls
    /// `done`.
    pub(crate) fn abort(self: Arc<Self>, done: impl FnOnce() + Send + 'static) {
        self.stopped.send_replace(true);
        let runtime = self.bucket.runtime.clone();
        runtime.spawn(async move {
            // The semaphore is never closed.
            let _turn = self.shared.aborts.acquire().await;
            let _alone = self.requests.write().await;
            self.abort_upload().await;
            self.abort_orphans().await;
            done();
        });
    }

    /// Aborts uploads that were created without a response.
    async fn abort_orphans(&self) {
        let spans = std::mem::take(&mut *self.unanswered.lock());
        let Some(uploads) = self.bucket.uploads.as_ref().filter(|_| !spans.is_empty()) else {
            return;
        };
        let never = watch::Sender::new(false);
        let mut policy = self.bucket.policy;
        // If the store has stopped responding, do not wait for it again.
        if self.silent.load(Ordering::Relaxed) {
            policy.retries = 0;
        }
        let find = || uploads.find(&self.uri, &self.address.key, &spans);
        let found = attempt(policy, &self.address, &never, find).await.result;
        let ours = found.unwrap_or_default();
        let mut is_clear = ours.is_some();
        for id in ours.unwrap_or_default() {
            is_clear &= self.abort_one(policy, &id).await;
        }
        if !is_clear {
            log::warn!(
                "the store did not confirm whether it created an upload of `{}`, so an empty one may be left: check for incomplete multipart uploads there",
                self.address
            );
        }
    }

    /// Aborts an upload, even if the run is over. Returns whether it no longer exists.
    async fn abort_one(&self, policy: RetryPolicy, id: &MultipartId) -> bool {
        let never = watch::Sender::new(false);
        let abort = || self.bucket.store.abort_multipart(&self.key, id);
        let tried = attempt(policy, &self.address, &never, abort).await;
        tried.result.err().is_none_or(|error| error.is_missing())
    }

    async fn abort_upload(&self) {
        let Some(id) = self.id.lock().await.take() else {
            return;
        };
        if !self.abort_one(self.bucket.policy, &id).await {
            log::warn!(
                "the incomplete upload of `{}` could not be removed: check for incomplete multipart uploads there",
                self.address
            );
        }
    }
}

/// Which object is stored at the address.
enum ObjectState {
    Nothing,
    /// The one that this run wrote.
    Ours,
    Other,
    /// It has no mark, and the same size as the one that this run wrote.
    Unclear,
}

/// The content of an object.
pub(super) enum ObjectContent {
    Parts(Vec<PartId>),
    Whole(PutPayload),
}
