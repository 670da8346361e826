//! Batches in JSON: found on a page, and their values found in a batch.

pub(crate) mod index;
pub(crate) mod scan;
pub(crate) mod split;
pub(crate) use index::Flaw;
pub(crate) use split::Shape;
