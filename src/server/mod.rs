//! The batch scan service, embedded: everything its interface document promises, on this machine.
//!
//! A request passes [`server`] (connections and their limits), [`routes`] (which endpoint, which
//! fault), [`auth`] or [`batches`], and leaves as an [`answer`]. Batches come from a [`Catalog`],
//! bytes made ready before the first request; [`stock`] makes it anew where they change.
//!
//! Nothing here is shared with a client of the service: a server that shares the client's code
//! shares its mistakes. Where the interface leaves a reading open, [`faults`] can play the others.

// What can go wrong on purpose, and when.
pub(crate) mod faults;

// Sockets, limits, draining.
mod connection;
mod server;
mod throttle;

// From a request to an answer.
mod answer;
mod auth;
mod batches;
mod gzip;
mod routes;

// Luck that repeats itself.
mod rng;

// What requests carry.
mod cursor;
mod dates;
mod query;

// What answers carry.
mod catalog;
mod collect;
mod generate;
mod shuffle;
mod store;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

pub(crate) use auth::{ExpectedCredentials, random_secret};
pub(crate) use catalog::Catalog;
pub(crate) use collect::collect;
pub(crate) use generate::generate;
pub(crate) use server::listen;
pub(crate) use store::{DataStore, Source};

use faults::Faults;
use routes::ServerState;

/// How the service behaves.
pub(crate) struct ServerOptions {
    pub(crate) credentials: ExpectedCredentials,
    pub(crate) faults: Faults,
    /// Decides which requests the random faults strike.
    pub(crate) seed: u64,
    pub(crate) page_size: usize,
    pub(crate) token_ttl: Duration,
    pub(crate) v1_limit: Option<usize>,
}

/// Serves `stock` on `listener` until `shutdown` resolves and open requests are finished.
///
/// Returns how many requests were answered.
pub(crate) async fn run(
    listener: TcpListener,
    stock: impl Into<DataStore>,
    options: ServerOptions,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<u64> {
    // A service for this machine alone must not be reachable through a browser that was given a
    // foreign name for it (DNS rebinding).
    let local_only = listener
        .local_addr()
        .is_ok_and(|address| address.ip().is_loopback());
    let sandbox = Arc::new(ServerState::new(stock.into(), options, local_only)?);
    server::serve(listener, Arc::clone(&sandbox), shutdown).await;
    Ok(sandbox.answered())
}

/// The two versions of the interface (section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ApiVersion {
    V1,
    V2,
}
