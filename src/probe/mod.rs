//! Finds out what the interface document leaves open (`check --probe`), with small read-only requests.
//!
//! Read `topic.rs` first: each `Topic` is a question and gets one [`TopicAnswer`], with its evidence or the
//! reason why it is unknown. `run.rs` asks them in order. A [`Prober`] sends the requests, one at a time and a
//! few dozen at most; `tokens.rs`, `v2.rs`, `v1.rs`, `ranges.rs` and `passive.rs` draw the conclusions.
//!
//! HTTP, credentials and retries are left to `client`, and the output to `commands`.

mod run;
mod topic;

// Sends requests.
mod prober;
mod request;

// Reads responses.
mod listing;
mod response;
mod sample;

// Draws conclusions.
mod passive;
mod ranges;
mod tokens;
mod v1;
mod v2;

pub(crate) use prober::{MissingVersion, Prober};
pub(crate) use run::{run, unasked};
pub(crate) use topic::TopicAnswer;
