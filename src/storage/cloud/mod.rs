//! Object storage: `s3://`, `gs://` and `az://` as destinations for exports, and as sources for `verify`.
//!
//! Start with [`ObjectAddress`], then [`Upload`]. All use of `object_store` is in this folder. That crate is
//! asynchronous and the writers are not, so the caller of a request blocks until the result is there. A build without the feature `cloud` has `disabled.rs` instead.

// Addresses such as `s3://bucket/key`.
mod address;

// Connections to buckets, and the credentials for them.
mod credentials;
mod store;

// Requests: HTTP, retries and errors.
mod error;
mod requests;
mod transport;

// Writing objects, and removing incomplete uploads.
mod object;
mod orphans;
mod upload;

// Reading objects.
mod download;

pub(crate) use address::ObjectAddress;
pub(crate) use download::download;
pub(crate) use object::Object;
pub(crate) use store::Cloud;
pub(crate) use upload::Upload;
