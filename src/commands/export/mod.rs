//! `export`: fetches batches and writes them to a file, a pipe, many files, object storage or a table.
//!
//! Start with `run`: it checks the request, opens the outputs, fetches, publishes, and writes the manifest last. The
//! formats and the outputs themselves are in `formats` and `export` of the crate.

// What the command line asks for.
mod request;

mod run;

// `--dry-run`.
mod dry_run;

// `--only-changed`.
mod lake;

mod manifest;

// What a run says at its end.
mod outcome;

pub(super) use run::run;
