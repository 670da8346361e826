//! Everything a person reads, and the only code that writes to standard output and standard error.
//!
//! The rest of the program returns errors and logs with the `log` macros. This folder decides how
//! they look and whether they are shown, and removes secrets from them. Read `current.rs` first: it has the streams of a
//! run; then `stderr.rs` and `stdout.rs`, which write to them.
//!
//! Exported data goes to standard output through `storage`. Error classes and exit codes are in
//! `error.rs`.

// The streams of a run, and the secrets that must not reach them.
mod current;
mod secrets;

// Writing to them.
mod progress;
mod prompt;
mod stderr;
mod stdout;

// What is written to them.
mod errors;
mod grid;
mod panics;
mod pretty_json;

// The counters behind the progress line.
mod stats;

pub(crate) use current::{
    Level, MessageFormat, Terminal, When, conceal, conceal_credentials, spawn, with_secrets,
};
pub(crate) use errors::{Stop, report, report_usage};
pub(crate) use grid::{GAP, GridCell, grid, push_row, push_styled, shorten};
pub(crate) use panics::{caught, guard};
pub(crate) use pretty_json::PrettyJson;
pub(crate) use progress::ProgressLine;
pub(crate) use prompt::{ask, ask_hidden, can_ask};
pub(crate) use secrets::without_entities;
pub(crate) use stats::Stats;
#[cfg(test)]
pub(crate) use stderr::install_logger;
pub(crate) use stderr::{conclude, finish, is_quiet, note, prints_json, silence, timed, warnings};
pub(crate) use stdout::{color_on_stdout, print, print_json, stdout, terminal_width};
