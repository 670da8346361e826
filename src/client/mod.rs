//! The HTTP client: the four endpoints of the service, tokens, retries and errors.
//!
//! Start with `service.rs` (the endpoints), then `request.rs` (one request and its response). Every
//! failure is a [`ServiceError`], whose class decides about retries and the exit code. Messages contain
//! method and path, but never a query, a token or a secret. Pages, windows and parallel requests belong
//! to `fetch`.

// Where to connect, and as whom.
pub(crate) mod base_url;
mod options;
pub(crate) mod proxy;

// The endpoints, and requests with a permit, a token and retries.
mod limiter;
pub(crate) mod retry;
mod service;
mod session;

// One request and its response.
mod body;
mod request;

// What went wrong: the error, why a connection failed, and what the service said.
pub(crate) mod causes;
mod connection;
mod error;
mod redact;

// Files from the user, read with limits.
pub(crate) mod bounded;
pub(crate) mod certificates;

pub(crate) use base_url::BaseUrl;
pub(crate) use error::{Fault, ServiceError};
pub(crate) use limiter::Permit;
pub(crate) use options::{Api, BothVersions, ClientOptions, Credentials, Version};
pub(crate) use request::Response;
pub(crate) use service::{PageRequest, Service, TokenResponse};
pub(crate) use session::Session;

/// Runs `work` on `runtime`, that of the command, and blocks this thread until it ends: for code that is not async.
#[cfg(any(feature = "cloud", feature = "postgres"))]
pub(crate) fn wait<T>(runtime: &tokio::runtime::Handle, work: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| runtime.block_on(work))
}

/// Runs a test, and ends it if it waits forever.
#[cfg(test)]
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let limit = std::time::Duration::from_secs(30);
    runtime
        .expect("a runtime")
        .block_on(async { tokio::time::timeout(limit, test).await })
        .expect("the test waits forever")
}
