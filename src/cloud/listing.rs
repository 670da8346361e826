//! What is in a folder of a bucket, and taking objects away.

use std::collections::HashMap;

use futures_util::TryStreamExt as _;
use object_store::path::Path as Key;
use object_store::{Error, ObjectStoreExt as _};

use super::address::Address;
use super::trouble::Trouble;
use super::{runtime, store};
use crate::error::{Failure, Kind};

/// Returns the objects in the folder that `inside` is in, and below, by their addresses, with their sizes.
pub(crate) fn sizes(inside: &Address) -> Result<HashMap<String, u64>, Failure> {
    let bucket = store::bucket(inside)?;
    let place = inside.clone();
    let listed = runtime::wait(async move {
        let folder = place.key.rsplit_once('/').map(|(folder, _)| folder);
        let prefix = folder.map(Key::parse).transpose().ok().flatten();
        let listed = bucket.patient.list(prefix.as_ref());
        let address = |key: &Key| Address {
            key: key.to_string(),
            ..place.clone()
        };
        let found = listed
            .map_ok(|object| (address(&object.location).to_string(), object.size))
            .try_collect()
            .await;
        found.map_err(|error| Trouble::new(&error).of_reading(&place))
    });
    listed.map_err(Failure::from_output)?
}

/// Removes the object at `address`, if it is there.
pub(crate) fn remove(address: &Address) -> Result<(), Failure> {
    let bucket = store::bucket(address)?;
    let key = Key::parse(&address.key)
        .map_err(|_| Failure::new(Kind::Usage, format!("`{address}` is no name for an object")))?;
    let place = address.clone();
    let removed = runtime::wait(async move {
        match bucket.patient.delete(&key).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(Trouble::new(&error).of_writing(&place)),
        }
    });
    removed.map_err(Failure::from_output)?
}
