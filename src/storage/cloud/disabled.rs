//! Stubs for builds without object storage. They are never called: parsing an address fails first.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, Write};

use super::address::ObjectAddress;
use crate::client::ClientOptions;
use crate::error::{Failure, Kind};
use crate::storage::temp_file::Scratch;

pub(crate) struct Upload(Infallible);

impl Upload {
    pub(crate) fn begin(_: &ObjectAddress, _: bool, _: bool) -> Result<Self, Failure> {
        Err(unsupported())
    }

    pub(crate) fn send_file(&mut self, _: &std::path::Path) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn seal(&mut self) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn wait(&mut self) -> Result<(), Failure> {
        match self.0 {}
    }

    #[allow(
        clippy::unnecessary_wraps,
        reason = "can fail with the feature `cloud`"
    )]
    pub(crate) fn publish_all(uploads: Vec<Self>) -> Result<(), Failure> {
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

fn unsupported() -> Failure {
    Failure::new(
        Kind::Internal,
        "this build of trayscan does not support object storage",
    )
}

pub(crate) fn check(_: &ObjectAddress) -> Result<(), Failure> {
    Err(unsupported())
}

pub(crate) fn sizes(_: &ObjectAddress) -> Result<HashMap<String, u64>, Failure> {
    Err(unsupported())
}

pub(crate) fn remove(_: &ObjectAddress) -> Result<(), Failure> {
    Err(unsupported())
}

pub(crate) fn download(_: &ObjectAddress) -> Result<Scratch, Failure> {
    Err(unsupported())
}

#[allow(
    clippy::unnecessary_wraps,
    reason = "can fail with the feature `cloud`"
)]
pub(crate) fn reach_as(_: &ClientOptions) -> Result<(), Failure> {
    Ok(())
}

pub(crate) fn settle() {}

pub(crate) fn sweep() {}

pub(crate) fn was_published() -> bool {
    false
}

pub(crate) fn may_be_published() -> bool {
    false
}
