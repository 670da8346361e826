//! An object on its way back, into a file that goes when nobody needs it any more.

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

/// Fetches the object at `address`.
pub(crate) fn download(address: &ObjectAddress) -> Result<Scratch, Failure> {
    let bucket = store::bucket(address)?;
    let no_room = |error: std::io::Error| {
        Failure::new(Kind::Usage, format!("cannot read `{address}`"))
            .caused_by(error)
            .hint("it is kept in a temporary file while it is read: is there room for it?")
    };
    let scratch = Scratch::new(Path::new(&address.key)).map_err(no_room)?;
    let file = File::create(scratch.path()).map_err(no_room)?;
    let key = Key::parse(&address.key)
        .map_err(|_| Failure::new(Kind::Usage, format!("`{address}` is no name for an object")))?;
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

/// Why an object did not come.
enum Fetch {
    Asked(Box<StoreError>),
    Kept(std::io::Error),
}

/// An object that is being fetched.
struct Fetching {
    bucket: Bucket,
    key: Key,
    file: File,
    /// What has come so far.
    length: u64,
    /// Of the object that it came from.
    tag: Option<String>,
}

impl Fetching {
    /// Fetches all of it. What came before a connection broke is not asked for again.
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
            // Another object is there by now.
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

    /// Asks for what has not come yet.
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
