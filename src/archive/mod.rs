//! The archive: one SQLite file that `sync` keeps up to date with the service, and that users query.
//!
//! Start with [`Archive`] in `database.rs`, which opens the file. `sync.rs` is the loop from fetched pages to
//! commits; `pages.rs` reads the batches back for exports. Batches and the coverage they prove are
//! committed together with a rollback journal: the archive is always a single file, and an interrupted run
//! leaves it consistent. Fetching is left to `fetch`, output to `export`.

// The file: its tables, its lock, and how it is opened.
mod coverage;
mod database;
mod lock;
mod schema;

// Batches written by `sync`, and the record of each run.
mod answers;
mod gap_search;
mod runs;
mod store;
pub(crate) mod sync;

// Reading: batches, changes, and the state of the archive.
mod changes;
mod integrity;
mod pages;
mod position;
mod watch;

pub(crate) use changes::ArchiveChange;
pub(crate) use coverage::{Coverage, Span};
pub(crate) use database::{Archive, ArchiveStart, Owner, read_second};
pub(crate) use pages::ArchivePages;
pub(crate) use position::{Difference, Position};
pub(crate) use runs::{Run, RunOutcome};
pub(crate) use watch::WatchedArchive;
