//! Object storage: `s3://`, `gs://` and `az://` as places for exports, and to verify them from.
//!
//! The one home of `object_store`. It is asynchronous and the writers are not, so all requests are made
//! on a runtime of their own, and whoever needs an answer waits for it. A build without the feature
//! `cloud` knows the addresses and says that it cannot write to them.

// What the names mean.
mod address;

// Which bucket, with whose credentials.
#[cfg(feature = "cloud")]
mod credentials;
#[cfg(feature = "cloud")]
mod store;

// Where requests are made, by what, how often, and what became of them in words.
#[cfg(feature = "cloud")]
mod attempts;
#[cfg(feature = "cloud")]
mod error;
#[cfg(feature = "cloud")]
mod runtime;
#[cfg(feature = "cloud")]
mod transport;

// An object on its way there, those that are not complete yet, and one on its way back.
#[cfg(feature = "cloud")]
mod download;
#[cfg(feature = "cloud")]
mod listing;
#[cfg(feature = "cloud")]
mod object;
#[cfg(feature = "cloud")]
mod orphans;
#[cfg(feature = "cloud")]
mod parts;
#[cfg(feature = "cloud")]
mod pending;
#[cfg(feature = "cloud")]
mod publish;
#[cfg(feature = "cloud")]
mod upload;

// A build without.
#[cfg(not(feature = "cloud"))]
mod disabled;

pub(crate) use address::ObjectAddress;
#[cfg(not(feature = "cloud"))]
pub(crate) use disabled::{
    Upload, check, download, may_be_published, reach_as, remove, settle, sizes, sweep,
    was_published,
};
#[cfg(feature = "cloud")]
pub(crate) use download::download;
#[cfg(feature = "cloud")]
pub(crate) use listing::{remove, sizes};
#[cfg(feature = "cloud")]
pub(crate) use pending::{may_be_published, settle, sweep, was_published};
#[cfg(feature = "cloud")]
pub(crate) use store::reach_as;
#[cfg(feature = "cloud")]
pub(crate) use upload::{Upload, check};
