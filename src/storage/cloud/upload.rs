//! Uploads: in one request if the object is small, or in parts that become visible together.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use object_store::PutPayload;
use object_store::multipart::PartId;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::{JoinHandle, JoinSet};

use super::address::ObjectAddress;
use super::object::{ObjectContent, ObjectContext};
use super::{pending, requests};
use crate::error::{Failure, Kind};

/// The number of concurrent parts, at the smallest size.
const PARTS_AT_ONCE: usize = 4;
static PART_SLOTS: Semaphore = Semaphore::const_new(PARTS_AT_ONCE);
/// The memory for small objects until they are published, in KiB. Beyond that, objects are uploaded as parts.
static SMALL_OBJECTS: Semaphore = Semaphore::const_new(64 << 10);
/// Bodies are sent in pieces of this size, to measure progress.
const PIECE: usize = 64 << 10;

/// An object that is being written.
pub(crate) struct Upload {
    object: Arc<ObjectContext>,
    number: u64,
    /// Bytes not sent yet.
    buffer: Vec<u8>,
    /// The reserved memory of a small object that waits to be published.
    permit: Option<SemaphorePermit<'static>>,
    sent: Vec<JoinHandle<Option<PartId>>>,
    uploaded: Vec<PartId>,
    replace: bool,
    published: bool,
}

impl Upload {
    /// Starts writing the object at `address`. If it is written `alone`, checks now that it can be; one of
    /// many is checked with its first part.
    pub(crate) fn begin(
        address: &ObjectAddress,
        no_clobber: bool,
        alone: bool,
    ) -> Result<Self, Failure> {
        let object = Arc::new(ObjectContext::new(address)?);
        let number = pending::begin(&object).map_err(Failure::from_output)?;
        let upload = Self {
            object: Arc::clone(&object),
            number,
            buffer: Vec::new(),
            permit: None,
            sent: Vec::new(),
            uploaded: Vec::new(),
            replace: !no_clobber,
            published: false,
        };
        let address = address.to_string();
        block_on(async move {
            if alone {
                object.check().await?;
            }
            if no_clobber && object.is_there().await? {
                return Err(Failure::new(
                    Kind::Output,
                    format!("`{address}` already exists, and `--no-clobber` keeps it"),
                )
                .hint("choose another name, or remove `--no-clobber`"));
            }
            Ok(())
        })?;
        Ok(upload)
    }

    /// Sends the buffered bytes as one part; waits for a free slot.
    fn send(&mut self) -> io::Result<()> {
        self.check_failure()?;
        let part = std::mem::take(&mut self.buffer);
        self.permit = None;
        let units = part.len().div_ceil(SMALLEST_PART).clamp(1, PARTS_AT_ONCE);
        let units = u32::try_from(units).unwrap_or(1);
        let permit = requests::wait(PART_SLOTS.acquire_many(units))?;
        let permit = permit.map_err(io::Error::other)?;
        let (object, number) = (Arc::clone(&self.object), self.sent.len());
        self.sent.push(requests::start(async move {
            let put = object.put(number, payload(part)).await;
            drop(permit);
            put
        })?);
        Ok(())
    }

    /// Returns the error of a part that failed, as soon as it is known.
    fn check_failure(&self) -> io::Result<()> {
        match self.object.take_failure() {
            Some(failure) => Err(io::Error::other(failure)),
            None => Ok(()),
        }
    }

    /// Sends the contents of a local file.
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

    /// Sends the remaining bytes without waiting. A small object stays in memory until it is published, if
    /// there is room.
    pub(crate) fn seal(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() || self.permit.is_some() {
            return Ok(());
        }
        if self.sent.is_empty() {
            let units = u32::try_from(self.buffer.len().div_ceil(1 << 10)).unwrap_or(u32::MAX);
            if let Ok(permit) = SMALL_OBJECTS.try_acquire_many(units) {
                self.buffer.shrink_to_fit();
                self.permit = Some(permit);
                return Ok(());
            }
        }
        self.send()
    }

    /// Waits until all parts are uploaded.
    pub(crate) fn wait(&mut self) -> Result<(), Failure> {
        self.seal().map_err(Failure::from_output)?;
        for part in std::mem::take(&mut self.sent) {
            let part = requests::wait(part).and_then(|ended| ended.map_err(io::Error::other));
            let Some(part) = part.map_err(Failure::from_output)? else {
                self.check_failure().map_err(Failure::from_output)?;
                return Err(Failure::new(Kind::Output, "the upload was stopped"));
            };
            self.uploaded.push(part);
        }
        Ok(())
    }

    /// Publishes all of `uploads`, several at a time. After an error, no more are started, and the message
    /// says which objects are new.
    pub(crate) fn publish_all(mut uploads: Vec<Self>) -> Result<(), Failure> {
        let mut contents = Vec::with_capacity(uploads.len());
        for upload in &mut uploads {
            upload.wait()?;
            let (parts, whole) = (
                std::mem::take(&mut upload.uploaded),
                std::mem::take(&mut upload.buffer),
            );
            contents.push(if parts.is_empty() {
                ObjectContent::Whole(payload(whole))
            } else {
                ObjectContent::Parts(parts)
            });
        }
        let objects = uploads.iter().zip(contents);
        let objects: Vec<_> = objects
            .map(|(upload, content)| (Arc::clone(&upload.object), content, upload.replace))
            .collect();
        let published = requests::wait(publish_all(objects)).map_err(Failure::from_output)?;
        for &index in &published.new {
            uploads[index].published = true;
            pending::published(uploads[index].number);
        }
        let Some(failure) = published.failure else {
            return Ok(());
        };
        if uploads.len() == 1 {
            return Err(failure);
        }
        let select = |is_selected: fn(&Self) -> bool| -> Vec<&ObjectAddress> {
            let selected = uploads.iter().filter(|upload| is_selected(upload));
            selected.map(|upload| &upload.object.address).collect()
        };
        let new = select(|upload| upload.published);
        let unknown = select(|upload| upload.object.is_unknown());
        let message = format!("{failure}; {}", describe_new(&new, &unknown, uploads.len()));
        Err(failure.with_message(message))
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

impl Drop for Upload {
    fn drop(&mut self) {
        if !self.published {
            pending::abort_upload(self.number, Arc::clone(&self.object));
        }
    }
}

/// Checks that objects can be written next to `address`, without leaving anything there.
pub(crate) fn check(address: &ObjectAddress) -> Result<(), Failure> {
    Upload::begin(address, false, true).map(drop)
}

fn block_on<F>(work: F) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    requests::wait(work).map_err(Failure::from_output)?
}

/// The number of objects published concurrently.
const OBJECTS_AT_ONCE: usize = 8;
/// The number of new objects that a message names.
const NAMED: usize = 5;

/// Describes which of `count` objects are new, and for which that is `unknown`.
fn describe_new(new: &[&ObjectAddress], unknown: &[&ObjectAddress], count: usize) -> String {
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

/// Returns the names of the first `addresses`.
fn named(addresses: &[&ObjectAddress]) -> String {
    let names: Vec<String> = addresses
        .iter()
        .take(NAMED)
        .map(|address| format!("`{address}`"))
        .collect();
    let more = match addresses.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.join(", "))
}

/// The result of publishing.
#[derive(Default)]
struct PublishedObjects {
    /// The indexes of the new objects.
    new: Vec<usize>,
    failure: Option<Failure>,
}

/// Publishes `objects`, each with its content and whether it may replace an existing one. After an error, no
/// more are started.
async fn publish_all(objects: Vec<(Arc<ObjectContext>, ObjectContent, bool)>) -> PublishedObjects {
    let mut published = PublishedObjects::default();
    let mut waiting = objects.into_iter().enumerate();
    let mut running = JoinSet::new();
    loop {
        while published.failure.is_none() && running.len() < OBJECTS_AT_ONCE {
            let Some((index, (object, content, replace))) = waiting.next() else {
                break;
            };
            match pending::publish(&object) {
                Ok(()) => {
                    running.spawn(async move { (index, object.publish(content, replace).await) });
                }
                Err(error) => published.failure = Some(Failure::from_output(error)),
            }
        }
        match running.join_next().await {
            None => break,
            Some(Ok((index, Ok(())))) => published.new.push(index),
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
    use super::*;

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
