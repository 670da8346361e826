//! Everything a person reads, and the only code that writes to standard output and standard error.
//!
//! The rest of the program returns errors and logs with the `log` macros. This folder decides how
//! they look and whether they are shown. Read `start.rs` first: it sets up the streams; then
//! `stderr.rs` and `stdout.rs`, which write to them.
//!
//! Exported data goes to standard output through `storage`. Error classes and exit codes are in
//! `error.rs`, and secrets are concealed by `secret.rs`.

mod start;
mod when;

// The streams.
mod progress;
mod stderr;
mod stdout;

// What is written to them.
mod errors;
mod grid;
mod logger;
mod panics;

// The counters behind the progress line.
mod stats;

pub(crate) use errors::{ErrorFormat, Stop, UsageError, report, report_usage};
pub(crate) use grid::grid;
pub(crate) use panics::{caught, guard};
pub(crate) use progress::ProgressLine;
pub(crate) use start::{Verbosity, set_verbosity, start};
pub(crate) use stats::Stats;
pub(crate) use stderr::{conclude, note, silence};
pub(crate) use stdout::{color_on_stdout, print, print_json, terminal_width};
pub(crate) use when::When;
