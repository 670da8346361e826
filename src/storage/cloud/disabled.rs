//! Stubs for builds without object storage. They are never called: parsing an address fails first.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use super::address::ObjectAddress;
use crate::client::ClientOptions;
use crate::error::{Failure, Kind};
use crate::storage::Storage;
use crate::storage::temp_file::TempFile;
use crate::storage::transaction::Transaction;

#[derive(Clone, Default)]
pub(crate) struct Cloud;

impl Cloud {
    #[allow(
        clippy::unnecessary_wraps,
        reason = "can fail with the feature `cloud`"
    )]
    pub(crate) fn new(_: &ClientOptions) -> Result<Self, Failure> {
        Ok(Self)
    }

    pub(crate) fn sizes(&self, _: &ObjectAddress) -> Result<HashMap<String, u64>, Failure> {
        Err(unsupported())
    }

    pub(crate) fn remove(&self, _: &ObjectAddress) -> Result<(), Failure> {
        Err(unsupported())
    }
}

pub(crate) struct Object(Infallible);

impl Object {
    pub(crate) fn commit(&self) {
        match self.0 {}
    }

    pub(crate) fn is_committed(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn abort(self: Arc<Self>, _: impl FnOnce()) {
        match self.0 {}
    }
}

pub(crate) struct Upload(Infallible);

impl Upload {
    pub(crate) fn begin(_: &ObjectAddress, _: bool, _: bool, _: &Storage) -> Result<Self, Failure> {
        Err(unsupported())
    }

    #[allow(
        clippy::unnecessary_wraps,
        reason = "can fail with the feature `cloud`"
    )]
    pub(in crate::storage) fn publish_all(uploads: Vec<Self>) -> Result<(), Failure> {
        match uploads.into_iter().next() {
            Some(upload) => match upload.0 {},
            None => Ok(()),
        }
    }
}

impl Write for Upload {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

impl Transaction for Upload {
    fn name(&self) -> &str {
        match self.0 {}
    }

    fn write_by_path(&mut self) -> io::Result<Option<&Path>> {
        match self.0 {}
    }

    fn seal(&mut self) -> io::Result<()> {
        match self.0 {}
    }

    fn commit(all: Vec<Self>) -> Result<(), Failure> {
        Self::publish_all(all)
    }
}

pub(crate) fn download(_: &ObjectAddress, _: &Storage) -> Result<TempFile, Failure> {
    Err(unsupported())
}

fn unsupported() -> Failure {
    Failure::new(
        Kind::Internal,
        "this build of trayscan does not support object storage",
    )
}
