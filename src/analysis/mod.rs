//! TODO

pub(crate) mod report;
pub(crate) mod statistics;
pub(crate) mod summary;
pub(crate) mod targets;
pub(crate) use targets::{KEYS as TARGET_KEYS, Target, Targets};
