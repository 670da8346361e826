//! Tray scan batches, complete and exact.
//!
//! A run flows from top to bottom through these modules: [`cli`] holds the words a user may type,
//! [`settings`] decides what holds, [`commands`] wires the parts together. [`fetch`] turns a range into
//! pages, with tokens from [`auth`] and exchanges from [`service`]; [`pipeline`] takes the batches that
//! [`select`] wants, each once ([`seen`]), to one of the [`writers`]. [`batch`] is what flows.
//!
//! [`statistics`] takes them as well, and makes figures of them that [`summary`] and [`report`] show.
//!
//! The other way round, [`readers`] read what was written, and [`compare`] holds it against something else.
//!
//! Beside the flow stand [`probe`] (what the interface leaves open, for `check`), [`sandbox`] (the batch scan service itself, embedded), [`error`] (what can go
//! wrong, as an exit code), [`signals`] (being told to stop) and [`ui`] (everything a person reads).

// The command line: clap types only.
mod cli;

// Flags, variables, config file, defaults: what holds, and where it came from.
mod config;

// One file per subcommand; wires the parts together.
mod commands;

// Dates as people write them, and the range that is asked for.

// A range to pages: versions, cursors, windows.
mod fetch;

// What the interface leaves open, found out by asking.
mod probe;

// Credentials to token.

// The four endpoints, one exchange at a time.
mod client;

// What flows: one batch, as the service sent it.
mod batch;

// The loop from pages to a writer.
mod pipeline;

// The archive that `sync` keeps, and the loop from pages to it.
mod archive;

// Which batches, which fields, in which order.

// Figures over many batches, exact.

// How they look, in the terminal and on a page.

// Which batches have been written already.

// One hash over a set of batches, and the receipt that holds it.

// Object storage, as a place for exports.

// What an end without warning would leave behind.

// Temporary files, and how the next run removes those of a killed one.

// Formats, and where bytes end up.
mod analysis;
mod export;
mod formats;
mod storage;

// A table of PostgreSQL, to write to and to read back.
#[cfg(feature = "postgres")]
mod postgres;

// Exports read back, whoever wrote them.

// What two sets of batches have that the other has not.
mod verify;

// The batch scan service, from its interface document; shares nothing with a client.
mod server;

// What went wrong, as an exit code.
mod error;

// SIGINT, SIGTERM and their kin.

// Standard output, standard error, the log, errors, panics and progress.
mod secret;
mod terminal;
mod text;

pub(crate) use secret::{Secret, conceal};
use std::ffi::OsString;

/// Runs trayscan with `args` (the program's name first) and returns its exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let early = cli::Early::scan(&args);
    terminal::start(early.color, early.error_format);
    terminal::guard(
        move || {
            commands::signals::let_writes_fail();
            match cli::parse(&args, early.color) {
                Ok(cli) => {
                    terminal::set_verbosity(cli.global.verbosity());
                    match commands::run(&cli) {
                        Ok(()) => 0,
                        Err(error) => terminal::report(&error),
                    }
                }
                Err(error) => terminal::report_usage(&error),
            }
        },
        storage::cleanup::sweep_if_free,
    )
}

/// Runs `work` as [`run`] does its own: a panic ends as one line on standard error and code 1.
#[doc(hidden)]
pub fn guarded(work: impl FnOnce() -> u8 + Send + 'static) -> u8 {
    terminal::start(terminal::Color::Auto, terminal::ErrorFormat::Text);
    terminal::guard(work, storage::cleanup::sweep_if_free)
}
