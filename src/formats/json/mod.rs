//! `json` and `ndjson`. The reader also reads `singer`, whose messages are JSON lines.

pub(crate) mod object;
pub(crate) mod read;
pub(crate) mod write;

pub(crate) use read::read;
