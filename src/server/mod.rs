//! The batch scan service, built in: `serve` and `--sandbox` run it on this machine.
//!
//! Read [`serve`] first: it accepts connections and limits them. [`routes`] finds the endpoint of a
//! request and the faults that apply; [`auth`] or [`batches`] builds the [`response`]. The data is a
//! [`Catalog`] of bytes that are ready to send. [`store`] replaces it if the source changes.
//!
//! The server shares no types with the client: if both used the same code, they would share its bugs.
//! Where the interface document leaves something open, [`faults`] can simulate each reading. Flags and
//! messages are left to `commands`.

// The faults that `--fault` can simulate.
pub(crate) mod faults;

// Connections.
mod connection;
mod serve;
mod throttle;

// From a request to its response.
mod auth;
mod batches;
mod response;
mod routes;

// The parts of a request.
mod cursor;
mod query;

// The data.
mod catalog;
mod collect;
mod generate;
mod store;

// Repeatable randomness.
mod rng;

pub(crate) use auth::{ExpectedCredentials, random_secret};
pub(crate) use catalog::Catalog;
pub(crate) use collect::collect;
pub(crate) use generate::generate;
pub(crate) use routes::ServerOptions;
pub(crate) use serve::{DRAIN_TIMEOUT, listen, run};
pub(crate) use store::{DataStore, Source};
