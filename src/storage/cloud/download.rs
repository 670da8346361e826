//! Downloads an object to a temporary file.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::Path;

use futures_util::StreamExt as _;
use object_store::path::Path as Key;
use object_store::{GetOptions, GetRange};

use super::address::ObjectAddress;
use super::error::StoreError;
use super::requests::{self, tell};
use super::store;
use super::store::Bucket;
use crate::error::{Failure, Kind};
use crate::storage::temp_file::Scratch;

/// Downloads the object at `address`.
pub(crate) fn download(address: &ObjectAddress) -> Result<Scratch, Failure> {
    let bucket = store::bucket(address)?;
    let no_room = |error: std::io::Error| {
        Failure::new(Kind::Usage, format!("cannot read `{address}`"))
            .caused_by(error)
            .hint("the object is downloaded to a temporary file: check that there is enough space for it")
    };
    let scratch = Scratch::new(Path::new(&address.key)).map_err(no_room)?;
    let file = File::create(scratch.path()).map_err(no_room)?;
    let key = Key::parse(&address.key).map_err(|_| {
        Failure::new(
            Kind::Usage,
            format!("`{address}` is not a valid object name"),
        )
    })?;
    let mut fetching = Fetching {
        bucket,
        key,
        file,
        length: 0,
        tag: None,
    };
    let place = address.clone();
    let fetched = requests::wait(async move { fetching.fetch(&place).await });
    match fetched.map_err(Fetch::Kept).flatten() {
        Ok(()) => Ok(scratch),
        Err(Fetch::Asked(trouble)) => Err(trouble.of_reading(address)),
        Err(Fetch::Kept(error)) => Err(error.downcast().unwrap_or_else(no_room)),
    }
}

/// Why a download failed.
enum Fetch {
    Asked(Box<StoreError>),
    Kept(std::io::Error),
}

/// A download in progress.
struct Fetching {
    bucket: Bucket,
    key: Key,
    file: File,
    /// The number of bytes received so far.
    length: u64,
    /// The entity tag of the object that the bytes are from.
    tag: Option<String>,
}

impl Fetching {
    /// Downloads the whole object. After a lost connection, continues from the last byte received.
    async fn fetch(&mut self, address: &ObjectAddress) -> Result<(), Fetch> {
        let policy = self.bucket.policy;
        let mut retry = 0;
        loop {
            let before = self.length;
            let mut trouble = match self.fetch_on().await {
                Err(Fetch::Asked(trouble)) => trouble,
                ended => return ended,
            };
            if self.length > before {
                retry = 0;
            }
            retry += 1;
            trouble.tries = retry;
            // The object was replaced in the meantime.
            let has_changed = before > 0 && trouble.is_there();
            if has_changed || self.tag.is_none() {
                self.begin_anew().map_err(Fetch::Kept)?;
            }
            if !trouble.is_transient() && !has_changed || retry > policy.retries {
                return Err(Fetch::Asked(trouble));
            }
            let asked = trouble.retry_after;
            let wait = policy.pause(trouble.wait_status(), asked, retry, fastrand::f64());
            tell(&trouble, address, wait, retry, policy.retries);
            tokio::time::sleep(wait).await;
        }
    }

    fn begin_anew(&mut self) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        (self.length, self.tag) = (0, None);
        Ok(())
    }

    /// Requests the bytes not received yet.
    async fn fetch_on(&mut self) -> Result<(), Fetch> {
        let asked = |error| Fetch::Asked(Box::new(StoreError::new(&error)));
        let mut options = GetOptions::default();
        if self.length > 0 {
            options.range = Some(GetRange::Offset(self.length));
            options.if_match.clone_from(&self.tag);
        }
        let got = self.bucket.store.get_opts(&self.key, options).await;
        let got = got.map_err(asked)?;
        self.tag.clone_from(&got.meta.e_tag);
        let mut pieces = got.into_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(asked)?;
            self.file.write_all(&piece).map_err(Fetch::Kept)?;
            self.length += piece.len() as u64;
        }
        Ok(())
    }
}
