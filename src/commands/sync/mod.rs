//! `sync`: updates an archive from the service, and reports on it.
//!
//! Start with `run`. The archive itself, and the loop that fills it, are in `archive` of the crate.

mod run;

// `--rebind`.
mod rebind;

// `--status`.
mod status;

// `--changes`.
mod changes;

pub(super) use run::run;
