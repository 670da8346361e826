//! What is in a folder of a bucket, and taking objects away.

use std::collections::HashMap;

use futures_util::TryStreamExt as _;
use object_store::ObjectStoreExt as _;
use object_store::path::Path as Key;
use tokio::sync::watch;

use super::address::ObjectAddress;
use super::attempts::attempt;
use super::{runtime, store};
use crate::error::{Failure, Kind};

/// Returns the objects in the folder that `inside` is in, and below, by their addresses, with their sizes.
pub(crate) fn sizes(inside: &ObjectAddress) -> Result<HashMap<String, u64>, Failure> {
    let bucket = store::bucket(inside)?;
    let place = inside.clone();
    let folder = place.key.rsplit_once('/').map(|(folder, _)| folder);
    let prefix = folder.map(key_of(&place)).transpose()?;
    let listed = runtime::wait(async move {
        let list = async || {
            let objects = bucket.store.list(prefix.as_ref());
            objects
                .map_ok(|object| {
                    let address = ObjectAddress {
                        key: object.location.to_string(),
                        ..place.clone()
                    };
                    (address.to_string(), object.size)
                })
                .try_collect()
                .await
        };
        let tried = attempt(bucket.policy, &place, &watch::Sender::new(false), list).await;
        tried.result.map_err(|trouble| trouble.of_reading(&place))
    });
    listed.map_err(Failure::from_output)?
}

/// Removes the object at `address`, if it is there.
pub(crate) fn remove(address: &ObjectAddress) -> Result<(), Failure> {
    let bucket = store::bucket(address)?;
    let place = address.clone();
    let key = key_of(address)(&address.key)?;
    let removed = runtime::wait(async move {
        let delete = || bucket.store.delete(&key);
        let tried = attempt(bucket.policy, &place, &watch::Sender::new(false), delete).await;
        match tried.result {
            Err(trouble) if !trouble.is_missing() => Err(trouble.of_writing(&place)),
            _ => Ok(()),
        }
    });
    removed.map_err(Failure::from_output)?
}

fn key_of(address: &ObjectAddress) -> impl Fn(&str) -> Result<Key, Failure> {
    move |text| {
        Key::parse(text)
            .map_err(|_| Failure::new(Kind::Usage, format!("`{address}` is no name for an object")))
    }
}
