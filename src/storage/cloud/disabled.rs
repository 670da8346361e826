//! Stands in for `cloud` in a build without that feature. An address cannot be parsed, so nothing else here is
//! ever called.

#![allow(
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    clippy::unused_self,
    reason = "the same interface as with the feature"
)]

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::client::ClientOptions;
use crate::error::Failure;
use crate::storage::Storage;
use crate::storage::local_file::LocalFile;
use crate::storage::temp_file::TempFile;

/// A type without values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ObjectAddress {}

impl ObjectAddress {
    pub(crate) fn is_meant(name: &Path) -> bool {
        let text = name.to_string_lossy();
        let schemes = ["s3://", "gs://", "az://"];
        schemes.iter().any(|scheme| text.starts_with(scheme))
    }

    pub(crate) fn parse(name: &Path) -> Result<Option<Self>, Failure> {
        if !Self::is_meant(name) {
            return Ok(None);
        }
        let text = name.to_string_lossy();
        Err(Failure::usage(
            format!("`{text}`: this build of trayscan does not support object storage"),
            "install one that does with `cargo install --path . --features cloud`, or write a file and copy it there",
        ))
    }
}

impl fmt::Display for ObjectAddress {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

#[derive(Clone, Default)]
pub(crate) struct Cloud;

impl Cloud {
    pub(crate) fn new(_: &ClientOptions) -> Result<Self, Failure> {
        Ok(Self)
    }

    pub(crate) fn check(&self, address: &ObjectAddress) -> Result<(), Failure> {
        match *address {}
    }

    pub(crate) fn sizes(&self, address: &ObjectAddress) -> Result<HashMap<String, u64>, Failure> {
        match *address {}
    }

    pub(crate) fn remove(&self, address: &ObjectAddress) -> Result<(), Failure> {
        match *address {}
    }
}

pub(crate) type Object = ObjectAddress;

impl Object {
    pub(crate) fn commit(&self) {
        match *self {}
    }

    pub(crate) fn is_committed(&self) -> bool {
        match *self {}
    }

    pub(crate) fn abort(self: Arc<Self>, _: impl FnOnce()) {
        match *self {}
    }
}

/// No upload is ever started, so its type does not matter.
pub(crate) type Upload = LocalFile;

impl Upload {
    pub(crate) fn begin(
        address: &ObjectAddress,
        _: bool,
        _: bool,
        _: &Storage,
    ) -> Result<Self, Failure> {
        match *address {}
    }

    pub(in crate::storage) fn publish_all(_: Vec<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

pub(crate) fn download(address: &ObjectAddress, _: &Storage) -> Result<TempFile, Failure> {
    match *address {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn a_build_without_object_storage_says_how_to_get_it() {
        for text in ["s3://b/a.csv", "gs://b/a.csv", "az://b/a.csv"] {
            let failure = ObjectAddress::parse(Path::new(text)).expect_err(text);
            assert_eq!(failure.kind, Kind::Usage);
            let (message, hint) = failure.into_texts();
            assert!(message.contains("this build of trayscan does not support object storage"));
            assert!(hint.contains("--features cloud"), "{hint}");
        }
        for text in ["a.csv", "s3:/b/a.csv", "./s3://b/a.csv", "-", "S3/a.csv"] {
            let parsed = ObjectAddress::parse(Path::new(text));
            assert_eq!(parsed.expect(text), None, "{text}");
        }
    }
}
