//! Downloads an object to a temporary file.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::Path;

use futures_util::StreamExt as _;
use object_store::path::Path as Key;
use object_store::{GetOptions, GetRange};

use super::address::ObjectAddress;
use super::error::StoreError;
use super::store::Bucket;
use crate::client::retry::{Retry, RetryHint};
use crate::client::wait;
use crate::error::Failure;
use crate::storage::Storage;
use crate::storage::temp_file::TempFile;

/// Downloads the object at `address`.
pub(crate) fn download(address: &ObjectAddress, storage: &Storage) -> Result<TempFile, Failure> {
    let bucket = storage.cloud.bucket(address)?;
    let no_room = |error: std::io::Error| {
        let hint =
            "the object is downloaded to a temporary file: check that there is enough space for it";
        Failure::usage(format!("cannot read `{address}`"), hint).caused_by(error)
    };
    let scratch = TempFile::create_scratch(Path::new(&address.key), &storage.cleanup);
    let scratch = scratch.map_err(no_room)?;
    let file = File::create(scratch.path()).map_err(no_room)?;
    let mut download = Download {
        bucket,
        key: address.object_key()?,
        file,
        length: 0,
        tag: None,
    };
    let runtime = download.bucket.runtime.clone();
    match wait(&runtime, download.fetch(address)) {
        Ok(()) => Ok(scratch),
        Err(DownloadError::Request(error)) => Err(error.of_reading(address)),
        Err(DownloadError::File(error)) => Err(no_room(error)),
    }
}

/// Why a download failed.
enum DownloadError {
    Request(Box<StoreError>),
    File(std::io::Error),
}

/// A download in progress.
struct Download {
    bucket: Bucket,
    key: Key,
    file: File,
    /// The number of bytes received so far.
    length: u64,
    /// The entity tag of the object that the bytes are from.
    tag: Option<String>,
}

impl Download {
    /// Downloads the whole object. After a lost connection, continues from the last byte received.
    async fn fetch(&mut self, address: &ObjectAddress) -> Result<(), DownloadError> {
        let mut retry = Retry::new(self.bucket.policy, None);
        // The most bytes received in any attempt: a restart receives the first ones again.
        let mut furthest = 0;
        loop {
            let before = self.length;
            let mut error = match self.fetch_rest().await {
                Err(DownloadError::Request(error)) => error,
                ended => return ended,
            };
            if self.length > furthest {
                (furthest, retry.failed) = (self.length, 0);
            }
            // The object was replaced in the meantime.
            let has_changed = before > 0 && error.is_there();
            if has_changed || self.tag.is_none() {
                self.restart().map_err(DownloadError::File)?;
            }
            let hint = error.retry_hint();
            let hint = hint.or_else(|| has_changed.then(RetryHint::default));
            if !retry.again(hint, &error.describe(address)).await {
                error.tries = retry.failed;
                return Err(DownloadError::Request(error));
            }
        }
    }

    fn restart(&mut self) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        (self.length, self.tag) = (0, None);
        Ok(())
    }

    /// Requests the bytes not received yet.
    async fn fetch_rest(&mut self) -> Result<(), DownloadError> {
        let request_error = |error| DownloadError::Request(Box::new(StoreError::new(&error)));
        let mut options = GetOptions::default();
        if self.length > 0 {
            options.range = Some(GetRange::Offset(self.length));
            options.if_match.clone_from(&self.tag);
        }
        let response = self.bucket.store.get_opts(&self.key, options).await;
        let response = response.map_err(request_error)?;
        self.tag.clone_from(&response.meta.e_tag);
        let mut chunks = response.into_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(request_error)?;
            self.file.write_all(&chunk).map_err(DownloadError::File)?;
            self.length += chunk.len() as u64;
        }
        Ok(())
    }
}
