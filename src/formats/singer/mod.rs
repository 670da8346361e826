//! `singer`: a stream of messages for Singer targets. `json` reads the lines, and asks this reader what each message is.

pub(crate) mod read;
pub(crate) mod write;
pub(crate) use write::SingerState;
