//! End-to-end tests: the real binary, real sockets, requests written by hand.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may stop and may speak"
)]

// Starts the service, speaks raw HTTP to it, and looks for secrets in what it printed.
mod harness;

// The service against the text of its interface, clause by clause.
mod interface;

// Paging: one consistent set, whatever the page size and the bounds.
mod paging;

// Every fault that `--fault` knows.
mod faults;

// The made-up batches: believable, awkward, reproducible.
mod data;

// `export` against every reading of the interface, in every format.
mod export;

// The order of an export without `--sort`.
mod order;

// What `--parallel` promises, however many fetch.
#[cfg(unix)]
mod parallel;

// Dates: both spellings of UTC, microseconds, leap seconds.
mod timestamps;

// Hostile and sluggish clients.
mod limits;

// Starting, announcing, stopping.
mod lifecycle;

// Mistakes on the command line, broken outputs, panics.
mod errors;

// Man pages, completions and README agree with the program.
mod generated;

// Files: whole or not at all, whatever happens on the way.
#[cfg(unix)]
mod files;

// One file per value.
#[cfg(unix)]
mod templates;

// Formats that engines load.
#[cfg(unix)]
mod loads;

// What targets of Singer make of an export.
#[cfg(unix)]
mod targets;

// Parquet: types, exactness, what engines see.
#[cfg(unix)]
mod parquet;

// Spark, DuckDB, Delta Lake and pyarrow over lakes, and the examples for them.
#[cfg(unix)]
mod engines;

// Settings: precedence, secrets, the config file, `check`.
#[cfg(unix)]
mod settings;

// Secrets and config from what never ends or holds too much.
#[cfg(unix)]
mod secrets;
// Files that no output may replace.
#[cfg(unix)]
mod own_files;

// `check --probe`: every answer, and what it must never do.
mod odd;
mod probe;

// What a terminal shows: tables and progress.
#[cfg(unix)]
mod terminal;

// A scripted server that speaks raw bytes, for what a framework would repair.
mod scripted;

// The client on the wire: cuts, bombs, redirects, retries, secrets.
mod wire;

// A service whose batches change between runs.
#[cfg(unix)]
mod nursery;

// Archives, as others read them.
#[cfg(unix)]
mod archives;

// `sync`: what lands in an archive, what it tells, what is refused.
#[cfg(unix)]
mod sync;

// `sync` over time: growth, edits, deletions, gaps, clocks.
#[cfg(unix)]
mod upkeep;

// Ends without warning: kills, signals, full disks.
#[cfg(target_os = "linux")]
mod kills;

// Temporary files of killed runs, and signals after the rename.
#[cfg(target_os = "linux")]
mod strays;

// Calls that fail for want of something: no hang.
#[cfg(target_os = "linux")]
mod exhausted;

// Weeks of syncing against a model of the service.
#[cfg(target_os = "linux")]
mod month;

// The set digest, computed apart from the program.
mod digest;

// The receipt of an export, and the set digest in it.
mod manifest;

// An archive that is served, while others write it.
#[cfg(unix)]
mod archive;
// Workbooks, as others read them.
mod xlsx;

// `report`: the page, taken apart and computed again.
#[cfg(unix)]
mod report;

// The page in a real browser, where there is one.
#[cfg(unix)]
mod browser;

// `verify`: files held against manifests, other files and the service.
mod verify;

// `verify`: all fields, their types, unknown fields, bytes; and whole lakes.
mod fields;
mod lakes;

// `export --only-changed`: lakes that follow an archive.
mod incremental;

// `verify`: damaged and altered containers of the right batches.
mod containers;
// Thousands of damaged exports, and what `verify` makes of them.
#[cfg(unix)]
mod mutants;

// `summary`: every figure recomputed from an export.
#[cfg(unix)]
mod summary;

// Certificates.
mod tls;

// Object storage, with real servers of it.
#[cfg(all(unix, feature = "cloud"))]
mod cloud;
// A real PostgreSQL, and tables in it.
#[cfg(all(unix, feature = "postgres"))]
mod database;
#[cfg(all(unix, feature = "postgres"))]
mod postgres;
