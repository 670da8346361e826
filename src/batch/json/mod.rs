//! JSON: splits a response into batches, and finds the values in each batch.
//!
//! `split.rs` reads a response piece by piece. `scan.rs` is the fast path for a batch written exactly as the
//! interface shows it; `index.rs` parses any other.

pub(crate) mod index;
pub(crate) mod scan;
pub(crate) mod split;
pub(crate) use index::Flaw;
pub(crate) use split::Shape;
