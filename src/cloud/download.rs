//! An object on its way back, into a file that goes when nobody needs it any more.

use std::io::Write as _;
use std::path::Path;

use futures_util::StreamExt as _;
use object_store::ObjectStoreExt as _;
use object_store::path::Path as Key;

use super::address::Address;
use super::trouble::Trouble;
use super::{runtime, store};
use crate::error::{Failure, Kind};
use crate::temporary::Scratch;

/// Fetches the object at `address`.
pub(crate) fn download(address: &Address) -> Result<Scratch, Failure> {
    let bucket = store::bucket(address)?;
    let no_room = |error: std::io::Error| {
        Failure::new(Kind::Usage, format!("cannot read `{address}`"))
            .caused_by(error)
            .hint("it is kept in a temporary file while it is read: is there room for it?")
    };
    let scratch = Scratch::new(Path::new(&address.key)).map_err(no_room)?;
    let mut file = std::fs::File::create(scratch.path()).map_err(no_room)?;
    let key = Key::parse(&address.key)
        .map_err(|_| Failure::new(Kind::Usage, format!("`{address}` is no name for an object")))?;
    let place = address.clone();
    let fetched = runtime::wait(async move {
        let trouble = |error| Fetch::Asked(Trouble::new(&error).of_reading(&place));
        let got = bucket.hasty.get(&key).await.map_err(trouble)?;
        let mut pieces = got.into_stream();
        while let Some(piece) = pieces.next().await {
            file.write_all(&piece.map_err(trouble)?)
                .map_err(Fetch::Kept)?;
        }
        Ok(())
    });
    match fetched.map_err(Fetch::Kept).flatten() {
        Ok(()) => Ok(scratch),
        Err(Fetch::Asked(failure)) => Err(failure),
        Err(Fetch::Kept(error)) => Err(error.downcast().unwrap_or_else(no_room)),
    }
}

/// Why an object did not come.
enum Fetch {
    Asked(Failure),
    Kept(std::io::Error),
}
