//! Object storage: `s3://`, `gs://` and `az://` as destinations for exports, and as sources for `verify`.
//!
//! Start with [`ObjectAddress`], then `upload.rs`. All use of `object_store` is in this folder. That crate is
//! asynchronous and the writers are not, so `requests.rs` makes all requests on the threads of the runtime, and
//! the caller blocks until the result is there. A build without the feature `cloud` parses the addresses and
//! reports that it cannot use them.

// Addresses such as `s3://bucket/key`.
mod address;

// Connections to buckets, and the credentials for them.
#[cfg(feature = "cloud")]
mod credentials;
#[cfg(feature = "cloud")]
mod store;

// Requests: HTTP, retries and errors.
#[cfg(feature = "cloud")]
mod error;
#[cfg(feature = "cloud")]
mod requests;
#[cfg(feature = "cloud")]
mod transport;

// Writing objects, and removing incomplete uploads.
#[cfg(feature = "cloud")]
mod object;
#[cfg(feature = "cloud")]
mod orphans;
#[cfg(feature = "cloud")]
mod upload;

// Reading objects.
#[cfg(feature = "cloud")]
mod download;

// All of the above in a build without the feature.
#[cfg(not(feature = "cloud"))]
mod disabled;

pub(crate) use address::ObjectAddress;
#[cfg(not(feature = "cloud"))]
pub(crate) use disabled::{Cloud, Object, Upload, download};
#[cfg(feature = "cloud")]
pub(crate) use download::download;
#[cfg(feature = "cloud")]
pub(crate) use object::Object;
#[cfg(feature = "cloud")]
pub(crate) use store::Cloud;
#[cfg(feature = "cloud")]
pub(crate) use upload::Upload;
