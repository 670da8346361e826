//! Uploads: in one request if the object is small, or in parts that become visible together.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use object_store::PutPayload;
use object_store::multipart::PartId;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{JoinHandle, JoinSet};

use super::address::ObjectAddress;
use super::object::{Object, ObjectContent};
use super::store::PARTS_AT_ONCE;
use crate::client::wait;
use crate::error::{Failure, Kind};
use crate::storage::Storage;
use crate::storage::cleanup::{Cleanup, Unpublished};
use crate::storage::temp_file::TempFile;
use crate::storage::transaction::{Transaction, already_exists};

/// Bodies are sent in pieces of this size, to measure progress.
const PIECE: usize = 64 << 10;

/// An object that is being written.
pub(crate) struct Upload {
    object: Arc<Object>,
    name: String,
    /// Aborts the upload when dropped.
    unpublished: Unpublished,
    /// Bytes not sent yet.
    buffer: Vec<u8>,
    /// The reserved memory of a small object that waits to be published.
    permit: Option<OwnedSemaphorePermit>,
    sent: Vec<JoinHandle<Option<PartId>>>,
    uploaded: Vec<PartId>,
    replace: bool,
    /// A file that a format wrote itself, still to be uploaded.
    local: Option<TempFile>,
}

impl Upload {
    /// Starts writing the object at `address`. If it is written `alone`, checks now that it can be; one of
    /// many is checked with its first part.
    pub(crate) fn begin(
        address: &ObjectAddress,
        no_clobber: bool,
        alone: bool,
        storage: &Storage,
    ) -> Result<Self, Failure> {
        let object = Arc::new(Object::new(address, &storage.cloud)?);
        let name = format!("`{address}`");
        let unpublished = storage.cleanup.begin_upload(&object);
        let unpublished = unpublished.map_err(|error| Failure::from_output(&name, error))?;
        let upload = Self {
            object: Arc::clone(&object),
            name: name.clone(),
            unpublished,
            buffer: Vec::new(),
            permit: None,
            sent: Vec::new(),
            uploaded: Vec::new(),
            replace: !no_clobber,
            local: None,
        };
        wait(&object.bucket.runtime, async {
            if alone {
                object.check().await?;
            }
            if no_clobber && object.is_there().await? {
                return Err(already_exists(&name));
            }
            Ok(())
        })?;
        Ok(upload)
    }

    /// Sends the buffered bytes as one part; waits for a free slot.
    fn send(&mut self) -> io::Result<()> {
        if self.object.failed.lock().is_some() {
            return Err(io::Error::other("a part was not uploaded"));
        }
        let part = std::mem::take(&mut self.buffer);
        self.permit = None;
        let units = part.len().div_ceil(SMALLEST_PART).clamp(1, PARTS_AT_ONCE);
        let units = u32::try_from(units).unwrap_or(1);
        let slots = Arc::clone(&self.object.shared.part_slots);
        let runtime = &self.object.bucket.runtime;
        let permit = wait(runtime, slots.acquire_many_owned(units)).map_err(io::Error::other)?;
        let (object, number) = (Arc::clone(&self.object), self.sent.len());
        self.sent.push(runtime.spawn(async move {
            let put = object.put(number, payload(part)).await;
            drop(permit);
            put
        }));
        Ok(())
    }

    /// Waits until all parts are uploaded.
    fn wait_for_parts(&mut self) -> io::Result<()> {
        self.seal()?;
        for part in std::mem::take(&mut self.sent) {
            let part = wait(&self.object.bucket.runtime, part).map_err(io::Error::other)?;
            let stopped = || io::Error::other("the upload was stopped");
            self.uploaded.push(part.ok_or_else(stopped)?);
        }
        Ok(())
    }

    /// Publishes all of `uploads`, several at a time. After an error, no more are started, and the message
    /// says which objects are new.
    pub(in crate::storage) fn publish_all(mut uploads: Vec<Self>) -> Result<(), Failure> {
        let mut objects = Vec::with_capacity(uploads.len());
        for upload in &mut uploads {
            upload.prepare()?;
            let (parts, whole) = (
                std::mem::take(&mut upload.uploaded),
                std::mem::take(&mut upload.buffer),
            );
            let content = if parts.is_empty() {
                ObjectContent::Whole(payload(whole))
            } else {
                ObjectContent::Parts(parts)
            };
            objects.push((Arc::clone(&upload.object), content, upload.replace));
        }
        let Some(first) = uploads.first() else {
            return Ok(());
        };
        let published = publish_all(objects, &first.unpublished.cleanup);
        let (new, failure) = wait(&first.object.bucket.runtime, published);
        for &index in &new {
            uploads[index].unpublished.published_object();
        }
        let Some(failure) = failure else {
            return Ok(());
        };
        if uploads.len() == 1 {
            return Err(failure);
        }
        let new: Vec<_> = new.iter().map(|&index| &uploads[index]).collect();
        let is_unknown = |upload: &&Self| upload.object.is_unknown.load(Ordering::Relaxed);
        let unknown = uploads.iter().filter(is_unknown);
        let unknown: Vec<_> = unknown.collect();
        let message = format!("{failure}; {}", describe_new(&new, &unknown, uploads.len()));
        Err(failure.with_message(message))
    }
}

impl Transaction for Upload {
    fn name(&self) -> &str {
        &self.name
    }

    fn write_by_path(&mut self) -> io::Result<Option<&Path>> {
        if self.local.is_none() {
            let cleanup = &self.unpublished.cleanup;
            self.local = Some(TempFile::create_scratch(Path::new(""), cleanup)?);
        }
        Ok(self.local.as_ref().map(TempFile::path))
    }

    /// Sends the remaining bytes without waiting. A small object stays in memory until it is published, if
    /// there is room.
    fn seal(&mut self) -> io::Result<()> {
        if let Some(local) = self.local.take() {
            let mut file = BufReader::with_capacity(1 << 20, File::open(local.path())?);
            io::copy(&mut file, self)?;
        }
        if self.buffer.is_empty() || self.permit.is_some() {
            return Ok(());
        }
        if self.sent.is_empty() {
            let units = u32::try_from(self.buffer.len().div_ceil(1 << 10)).unwrap_or(u32::MAX);
            let room = Arc::clone(&self.object.shared.small_objects);
            if let Ok(permit) = room.try_acquire_many_owned(units) {
                self.buffer.shrink_to_fit();
                self.permit = Some(permit);
                return Ok(());
            }
        }
        self.send()
    }

    fn prepare(&mut self) -> Result<(), Failure> {
        let waited = self.wait_for_parts();
        waited.map_err(|error| self.failure(error))
    }

    fn commit(all: Vec<Self>) -> Result<(), Failure> {
        if let Some(first) = all.first() {
            let committed = first.unpublished.cleanup.commit();
            committed.map_err(|error| Failure::from_output(&first.name, error))?;
        }
        Self::publish_all(all)
    }

    /// Returns the error of the part that failed, if one did.
    fn failure(&mut self, error: io::Error) -> Failure {
        let failed = self.object.failed.lock().take();
        failed.unwrap_or_else(|| Failure::from_output(&self.name, error))
    }
}

/// Splits `bytes` into pieces.
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
        let size = part_size(self.sent.len());
        let length = bytes.len().min(size - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..length]);
        if self.buffer.len() == size {
            self.send()?;
        }
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The number of objects published concurrently.
const OBJECTS_AT_ONCE: usize = 8;
/// The number of new objects that a message names.
const NAMED: usize = 5;

/// Describes which of `count` objects are new, and for which that is `unknown`.
fn describe_new(new: &[&Upload], unknown: &[&Upload], count: usize) -> String {
    let known = match new.len() {
        0 if unknown.is_empty() => format!("none of the {count} objects is new"),
        0 => "no other object is new".to_owned(),
        many => format!("{many} of {count} objects are new: {}", named(new)),
    };
    if unknown.is_empty() {
        return known;
    }
    let are = if unknown.len() == 1 { "is" } else { "are" };
    let unknown = format!("it is unknown whether {} {are} new", named(unknown));
    format!("{unknown}; {known}")
}

/// Returns the names of the first `uploads`.
fn named(uploads: &[&Upload]) -> String {
    let names = uploads.iter().take(NAMED).map(|upload| upload.name());
    let names: Vec<&str> = names.collect();
    let more = match uploads.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.join(", "))
}

/// Publishes `objects`, each with its content and whether it may replace an existing one. Returns the indexes
/// of the new objects. After an error, no more are started.
async fn publish_all(
    objects: Vec<(Arc<Object>, ObjectContent, bool)>,
    cleanup: &Cleanup,
) -> (Vec<usize>, Option<Failure>) {
    let (mut new, mut failure) = (Vec::new(), None);
    let mut waiting = objects.into_iter().enumerate();
    let mut running = JoinSet::new();
    loop {
        while failure.is_none() && running.len() < OBJECTS_AT_ONCE {
            let Some((index, (object, content, replace))) = waiting.next() else {
                break;
            };
            match cleanup.start_publishing(&object) {
                Ok(()) => {
                    running.spawn(async move { (index, object.publish(content, replace).await) });
                }
                Err(error) => {
                    let name = format!("`{}`", object.address);
                    failure = Some(Failure::from_output(&name, error));
                }
            }
        }
        match running.join_next().await {
            None => break,
            Some(Ok((index, Ok(())))) => new.push(index),
            Some(Ok((_, Err(failed)))) => drop(failure.get_or_insert(failed)),
            Some(Err(error)) => {
                let why = "an object was not published";
                failure.get_or_insert(Failure::new(Kind::Internal, why).caused_by(error));
            }
        }
    }
    new.sort_unstable();
    (new, failure)
}

/// The smallest part that most stores accept, except for the last one.
const SMALLEST_PART: usize = 8 << 20;
/// The first parts have the same size, as some stores require for all: 40 GB.
const EQUAL_PARTS: usize = 5000;
/// After that, the size doubles after this many parts.
const DOUBLING_STEP: usize = 500;
/// The largest part that stores accept.
const LARGEST_PART: usize = 4 << 30;

/// Returns the size of part number `part`. S3 accepts 10,000 parts; with these sizes, they exceed the 5 TB
/// limit of an object.
fn part_size(part: usize) -> usize {
    let doublings = match part.checked_sub(EQUAL_PARTS) {
        Some(beyond) => beyond / DOUBLING_STEP + 1,
        None => 0,
    };
    let doublings = u32::try_from(doublings).unwrap_or(u32::MAX);
    SMALLEST_PART
        .checked_shl(doublings.min(20))
        .unwrap_or(LARGEST_PART)
        .min(LARGEST_PART)
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use object_store::{ObjectStoreExt as _, path::Path as Key};
    use tokio::runtime::{Builder, Runtime};

    use super::super::store::Cloud;
    use super::*;
    use crate::storage::cleanup::PublishedObjects;

    /// A bucket in memory.
    struct Fixture {
        store: Arc<InMemory>,
        storage: Storage,
        runtime: Runtime,
    }

    impl Fixture {
        fn new() -> Self {
            let runtime = Builder::new_multi_thread()
                .worker_threads(1)
                .enable_time()
                .build()
                .expect("a runtime");
            let store = Arc::new(InMemory::new());
            let cloud = Cloud::with_bucket("b", store.clone(), runtime.handle().clone());
            Self {
                store,
                storage: Storage {
                    cloud,
                    ..Storage::default()
                },
                runtime,
            }
        }

        fn try_begin(&self, name: &str, no_clobber: bool) -> Result<Upload, Failure> {
            let address = ObjectAddress::parse(Path::new(&format!("s3://b/{name}")));
            let address = address.expect("an address").expect("an object");
            Upload::begin(&address, no_clobber, true, &self.storage)
        }

        fn begin(&self, name: &str) -> Upload {
            self.try_begin(name, false).expect("an upload")
        }

        /// Returns the content of an object; `None` if there is none.
        fn content(&self, name: &str) -> Option<Vec<u8>> {
            let key = Key::from(name);
            let content = async { self.store.get(&key).await.ok()?.bytes().await.ok() };
            self.runtime.block_on(content).map(Vec::from)
        }

        fn put(&self, name: &str, content: &'static str) {
            let (key, content) = (Key::from(name), PutPayload::from_static(content.as_bytes()));
            let put = self.store.put(&key, content);
            self.runtime.block_on(put).expect("an object");
        }
    }

    #[test]
    fn a_small_object_is_kept_in_memory_until_it_is_published() {
        let fixture = Fixture::new();
        let mut upload = fixture.begin("a");
        assert_eq!(upload.name(), "`s3://b/a`");
        upload.write_all(b"a small").expect("written");
        upload.write_all(b" object").expect("written");
        upload.flush().expect("nothing to do");
        upload.seal().expect("sealed");
        upload.seal().expect("sealed once");
        upload.prepare().expect("nothing to wait for");
        assert!(upload.permit.is_some() && upload.uploaded.is_empty());
        assert_eq!(fixture.content("a"), None);
        assert!(fixture.storage.cleanup.published_objects() == PublishedObjects::None);
        Upload::commit(vec![upload]).expect("published");
        assert_eq!(
            fixture.content("a").as_deref(),
            Some(&b"a small object"[..])
        );
        assert!(fixture.storage.cleanup.published_objects() == PublishedObjects::Some);
        assert!(!fixture.storage.cleanup.stop(), "too late");
        Upload::commit(Vec::new()).expect("nothing to publish");
    }

    #[test]
    fn a_large_object_is_sent_in_parts() {
        let fixture = Fixture::new();
        let content: Vec<u8> = (0..=250).cycle().take(2 * SMALLEST_PART + 100).collect();
        let mut upload = fixture.begin("a");
        for piece in content.chunks(3_000_000) {
            upload.write_all(piece).expect("written");
        }
        assert_eq!((upload.sent.len(), upload.buffer.len()), (2, 100));
        upload.seal().expect("sealed");
        assert!(upload.permit.is_none(), "it is not small");
        assert_eq!((upload.sent.len(), upload.buffer.len()), (3, 0));
        upload.prepare().expect("uploaded");
        assert_eq!((upload.sent.len(), upload.uploaded.len()), (0, 3));
        assert_eq!(fixture.content("a"), None, "the parts are not visible");
        Upload::commit(vec![upload]).expect("published");
        assert!(fixture.content("a") == Some(content));
    }

    #[test]
    fn small_objects_are_sent_as_parts_if_there_is_no_room() {
        let fixture = Fixture::new();
        let mut upload = fixture.begin("a");
        upload.write_all(&[7; 2000]).expect("written");
        let room = Arc::clone(&upload.object.shared.small_objects);
        let free = u32::try_from(room.available_permits()).expect("a number");
        let taken = room.try_acquire_many(free - 1).expect("all but one KiB");
        upload.seal().expect("sealed");
        assert_eq!((upload.sent.len(), upload.buffer.len()), (1, 0));
        drop(taken);
        let mut other = fixture.begin("b");
        other.write_all(&[8; 2000]).expect("written");
        other.seal().expect("sealed");
        assert_eq!(room.available_permits(), free as usize - 2, "two KiB");
        Upload::commit(vec![upload, other]).expect("published");
        assert_eq!(fixture.content("a"), Some(vec![7; 2000]));
        assert_eq!(fixture.content("b"), Some(vec![8; 2000]));
        assert_eq!(room.available_permits(), free as usize);
    }

    #[test]
    fn an_object_that_is_not_published_does_not_appear() {
        let fixture = Fixture::new();
        let mut upload = fixture.begin("a");
        let part = vec![0; SMALLEST_PART];
        upload.write_all(&part).expect("written");
        upload.write_all(b"more").expect("written");
        upload.prepare().expect("uploaded");
        drop(upload);
        let mut stopped = fixture.begin("b");
        stopped.write_all(b"b").expect("written");
        stopped.prepare().expect("ready");
        assert!(fixture.storage.cleanup.stop());
        let failure = Upload::commit(vec![stopped]).expect_err("stopped");
        assert_eq!(failure.to_string(), "cannot write to `s3://b/b`");
        fixture.storage.cleanup.settle();
        assert_eq!((fixture.content("a"), fixture.content("b")), (None, None));
        assert!(fixture.storage.cleanup.published_objects() == PublishedObjects::None);
    }

    #[test]
    fn a_part_that_was_not_sent_is_an_error() {
        let fixture = Fixture::new();
        let mut upload = fixture.begin("a");
        let (done, aborted) = std::sync::mpsc::channel();
        Arc::clone(&upload.object).abort(move || done.send(()).expect("a receiver"));
        aborted.recv().expect("it was aborted");
        let part = vec![0; SMALLEST_PART];
        upload.write_all(&part).expect("written");
        let failure = upload.prepare().expect_err("stopped");
        assert_eq!(failure.to_string(), "cannot write to `s3://b/a`");
    }

    #[test]
    fn a_file_that_a_format_writes_itself_is_uploaded() {
        let fixture = Fixture::new();
        let mut upload = fixture.begin("a");
        let path = upload.write_by_path().expect("a file").map(Path::to_owned);
        let path = path.expect("a path");
        let again = upload.write_by_path().expect("a file").map(Path::to_owned);
        assert_eq!(again.as_ref(), Some(&path), "the same file");
        let content: Vec<u8> = (0..=250).cycle().take(3 << 20).collect();
        std::fs::write(&path, &content).expect("written");
        upload.seal().expect("sealed");
        assert!(!path.exists(), "it is not needed any more");
        Upload::commit(vec![upload]).expect("published");
        assert!(fixture.content("a") == Some(content));
    }

    #[test]
    fn an_existing_object_is_kept_or_replaced() {
        let fixture = Fixture::new();
        let mut new = fixture.try_begin("a", true).expect("there is none");
        new.write_all(b"new").expect("written");
        fixture.put("a", "old");
        let Err(failure) = fixture.try_begin("a", true) else {
            panic!("there is one");
        };
        let expected = "`s3://b/a` already exists, and `--no-clobber` keeps it";
        assert_eq!(failure.to_string(), expected);
        let failure = Upload::commit(vec![new]).expect_err("there is one");
        let expected = "`s3://b/a` was created in the meantime, and `--no-clobber` keeps it";
        assert_eq!(failure.to_string(), expected);
        assert_eq!(fixture.content("a").as_deref(), Some(&b"old"[..]));
        let mut new = fixture.begin("a");
        new.write_all(b"new").expect("written");
        Upload::commit(vec![new]).expect("published");
        assert_eq!(fixture.content("a").as_deref(), Some(&b"new"[..]));
    }

    #[test]
    fn an_error_says_which_of_many_objects_are_new() {
        let fixture = Fixture::new();
        let uploads: Vec<Upload> = (0..20)
            .map(|number| {
                let name = format!("{number:02}");
                let mut upload = fixture.try_begin(&name, true).expect("there is none");
                upload.write_all(b"new").expect("written");
                upload
            })
            .collect();
        fixture.put("00", "old");
        let failure = Upload::commit(uploads).expect_err("one is there");
        let message = failure.to_string();
        let why = "`s3://b/00` was created in the meantime, and `--no-clobber` keeps it; ";
        let new = message.strip_prefix(why).expect("why, first");
        let (count, names) = new.split_once(" of 20 objects are new: ").expect(new);
        let count: usize = count.parse().expect("a number");
        assert!((7..19).contains(&count), "no more are started: {message}");
        let listed = "`s3://b/01`, `s3://b/02`, `s3://b/03`, `s3://b/04`, `s3://b/05`";
        assert_eq!(names, format!("{listed} and {} more", count - 5));
        let there = (1..20).filter(|number| fixture.content(&format!("{number:02}")).is_some());
        assert_eq!(there.count(), count);
    }

    #[test]
    fn objects_are_described_by_whether_they_are_new() {
        let fixture = Fixture::new();
        let uploads = ["a", "b", "c"].map(|name| fixture.begin(name));
        let [a, b, c] = &uploads;
        for (new, unknown, expected) in [
            (&[][..], &[][..], "none of the 9 objects is new"),
            (&[a], &[], "1 of 9 objects are new: `s3://b/a`"),
            (
                &[],
                &[b],
                "it is unknown whether `s3://b/b` is new; no other object is new",
            ),
            (
                &[a],
                &[b, c],
                "it is unknown whether `s3://b/b`, `s3://b/c` are new; 1 of 9 objects are new: `s3://b/a`",
            ),
        ] {
            assert_eq!(describe_new(new, unknown, 9), expected);
        }
    }

    #[test]
    fn a_body_is_sent_in_pieces() {
        for (size, pieces) in [
            (0, &[][..]),
            (PIECE, &[PIECE]),
            (2 * PIECE + 1, &[PIECE, PIECE, 1]),
        ] {
            let lengths: Vec<usize> = payload(vec![1; size]).iter().map(Bytes::len).collect();
            assert_eq!(lengths, pieces);
        }
    }

    #[test]
    fn ten_thousand_parts_exceed_the_object_size_limit() {
        let all: u64 = (0..10_000).map(|part| part_size(part) as u64).sum();
        assert!(all > 5 << 40, "{all}");
        assert!((0..10_000).all(|part| part_size(part) <= part_size(part + 1)));
        assert_eq!(
            (part_size(0), part_size(4999), part_size(5000)),
            (SMALLEST_PART, SMALLEST_PART, 2 * SMALLEST_PART)
        );
        assert_eq!(part_size(usize::MAX), LARGEST_PART);
    }
}
