//! Fetches the batches of a date range from the service, as pages in a stable order.
//!
//! Start with `pages.rs`: [`Pages::next`] drives everything else. A range is a window. A walk returns the pages
//! of a window one by one, with `next()`: version 2 goes from cursor to cursor (`v2.rs`); version 1 gets a
//! window in one response and splits it if that response may be incomplete (`v1.rs`). If there is enough work,
//! the planner splits the range into windows that tasks walk in parallel, and the queue puts their pages in
//! window order. Adjacent windows share a bound, because a batch created between two whole seconds would
//! otherwise be missed; duplicates are dropped later, by `batch::dedup`. A page above 8 MiB arrives in parts.
//! HTTP, tokens and retries belong to `client`.

mod pages;
mod progress;

// Windows: types and splitting, which to fetch next, and their pages in order.
mod planner;
mod queue;
mod room;
mod window;

// One window: its pages, one after another, in each version.
mod v1;
mod v1_sample;
mod v2;
mod walk;

// One page: sending the request, and decoding the batches.
mod decode;
mod pending;
mod session;

// Duplicates, and services that repeat the same pages forever.
mod repeats;

pub(crate) use decode::DataIssues;
pub(crate) use pages::{FetchOptions, PageOrder, Pages};
pub(crate) use repeats::ReceivedPages;
pub(crate) use window::{FetchedWindow, long_halves};
