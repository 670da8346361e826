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
mod settings;

// One file per subcommand; wires the parts together.
mod commands;

// Dates as people write them, and the range that is asked for.
mod dates;

// A range to pages: versions, cursors, windows.
mod fetch;

// What the interface leaves open, found out by asking.
mod probe;

// Credentials to token.
mod auth;

// The four endpoints, one exchange at a time.
mod service;

// What flows: one batch, as the service sent it.
mod batch;

// The loop from pages to a writer.
mod pipeline;

// The archive that `sync` keeps, and the loop from pages to it.
mod archive;
mod sync;

// Which batches, which fields, in which order.
mod select;

// Figures over many batches, exact.
mod statistics;

// How they look, in the terminal and on a page.
mod report;
mod summary;

// Which batches have been written already.
mod seen;

// One hash over a set of batches, and the receipt that holds it.
mod digest;
mod manifest;

// Object storage, as a place for exports.
mod cloud;

// What an end without warning would leave behind.
mod unfinished;

// Temporary files, and how the next run removes those of a killed one.
mod temporary;

// Formats, and where bytes end up.
mod writers;

// A table of PostgreSQL, to write to and to read back.
#[cfg(feature = "postgres")]
mod postgres;

// Exports read back, whoever wrote them.
mod readers;

// What two sets of batches have that the other has not.
mod compare;

// The batch scan service, from its interface document; shares nothing with a client.
mod sandbox;

// What went wrong, as an exit code.
mod error;

// SIGINT, SIGTERM and their kin.
mod signals;

// Standard output, standard error, the log, errors, panics and progress.
mod ui;

use std::ffi::OsString;

/// Runs trayscan with `args` (the program's name first) and returns its exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let early = cli::Early::scan(&args);
    ui::start(early.color, early.error_format);
    ui::guard(
        move || {
            signals::let_writes_fail();
            match cli::parse(&args, early.color) {
                Ok(cli) => {
                    ui::set_verbosity(cli.global.verbosity());
                    match commands::run(&cli) {
                        Ok(()) => 0,
                        Err(error) => ui::report(&error),
                    }
                }
                Err(error) => ui::report_usage(&error),
            }
        },
        unfinished::sweep_if_free,
    )
}

/// Runs `work` as [`run`] does its own: a panic ends as one line on standard error and code 1.
#[doc(hidden)]
pub fn guarded(work: impl FnOnce() -> u8 + Send + 'static) -> u8 {
    ui::start(ui::Color::Auto, ui::ErrorFormat::Text);
    ui::guard(work, unfinished::sweep_if_free)
}
mod secret;
mod text;
pub(crate) use secret::{Secret, conceal};
pub(crate) use text::{escape, one_line};
