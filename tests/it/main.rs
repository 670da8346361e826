//! End-to-end tests: the real binary over real sockets, with handwritten requests.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests may panic and print"
)]
#![cfg_attr(
    not(target_os = "linux"),
    allow(
        dead_code,
        unused_imports,
        reason = "many tests are for Unix or Linux only"
    )
)]

// Starts the server, sends raw HTTP to it, and looks for secrets in its output.
mod harness;

// The server compared with the interface document, clause by clause.
mod interface;

// Paging: one consistent set for any page size and range.
mod paging;

// Every fault of `--fault`.
mod faults;

// The demo data: plausible, awkward, reproducible.
mod data;

// `export` under every reading of the interface, in every format.
mod export;

// The order of an export without `--sort`.
mod order;

// `--parallel`: the same output for any number of workers.
#[cfg(unix)]
mod parallel;

// Periods and time zones.
#[cfg(unix)]
mod periods;

// Dates: both spellings of UTC, microseconds, leap seconds.
mod timestamps;

// Hostile and slow clients.
mod limits;

// Starting and stopping the server.
mod lifecycle;

// Wrong command lines, broken outputs, panics.
mod errors;

// What `.ci/dist` builds, and the units of systemd.
#[cfg(unix)]
mod packages;

// The first steps in the README.
#[cfg(unix)]
mod stories;

// `-q`, `-v` and `--message-format`.
#[cfg(unix)]
mod messages;

// Man pages, completions and README match the program.
mod generated;

// The completion scripts in bash, zsh and fish.
#[cfg(unix)]
mod completions;

// Files appear complete or not at all.
#[cfg(unix)]
mod files;

// Partitions: one file per value.
#[cfg(unix)]
mod templates;

// Formats that databases and engines load.
#[cfg(unix)]
mod loads;

// Singer targets read an export.
#[cfg(unix)]
mod targets;

// Parquet: types, exactness, and what engines read.
#[cfg(unix)]
mod parquet;

// Spark, DuckDB, Delta Lake and pyarrow read lakes, and the examples for them.
#[cfg(unix)]
mod engines;

// Settings: precedence, secrets, the config file, `check`.
#[cfg(unix)]
mod settings;

// Secrets and config files that never end or are too large.
#[cfg(unix)]
mod secrets;
// Files that an output must not replace.
#[cfg(unix)]
mod own_files;

// `check --probe`: every answer, and what it must never send.
mod probe;

// The terminal: tables and progress.
#[cfg(unix)]
mod terminal;

// A fake service that answers as a test says, and a batch builder.
mod fake;

// The client and the network: lost connections, decompression bombs, redirects, retries, secrets.
mod wire;

// Archives read by other programs.
#[cfg(unix)]
mod archives;

// `sync`: what it stores, reports and refuses.
#[cfg(unix)]
mod sync;

// `sync` over time: new, changed and deleted batches, gaps, clocks.
#[cfg(unix)]
mod upkeep;

// Kills, signals and full disks.
#[cfg(unix)]
mod kills;

// Temporary files of killed runs, and signals after the rename.
#[cfg(target_os = "linux")]
mod strays;

// System calls that fail for lack of resources: no hang.
#[cfg(target_os = "linux")]
mod exhausted;

// Months of `sync` compared with a model of the service.
#[cfg(target_os = "linux")]
mod month;

// The set digest, computed independently of the program.
mod digest;

// The manifest of an export, and the set digest in it.
mod manifest;

// `serve --archive` while another run writes to the archive.
#[cfg(unix)]
mod archive;
// Workbooks read by other programs.
mod xlsx;

// The rules for crops and batches, for the tests of `summary` and `report`.
#[cfg(unix)]
mod judge;

// `report`: every figure of the page recomputed.
#[cfg(unix)]
mod report;

// The report in a real browser, if one is installed.
#[cfg(unix)]
mod browser;

// `verify`: files compared with manifests, other files and the service.
mod verify;

// `verify`: all fields, their types, unknown fields, bytes; and whole lakes.
mod fields;
mod lakes;

// The imports between the folders and files of `src`.
mod layers;

// `export --only-changed`: lakes updated from an archive.
#[cfg(unix)]
mod incremental;

// `verify`: damaged and altered files with the right batches.
mod containers;
// Thousands of damaged exports: `verify` must notice.
#[cfg(unix)]
mod mutants;

// `summary`: every figure recomputed from an export.
#[cfg(unix)]
mod summary;

// Certificates.
mod tls;

// Object storage, with real servers.
#[cfg(all(unix, feature = "cloud"))]
mod cloud;
// A real PostgreSQL server.
#[cfg(all(unix, feature = "postgres"))]
mod database;
#[cfg(all(unix, feature = "postgres"))]
mod postgres;
