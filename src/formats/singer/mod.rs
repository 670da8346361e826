//! `singer`: a stream of records and states, for Singer targets.

pub(crate) mod read;
pub(crate) mod write;
pub(crate) use write::SingerState;
