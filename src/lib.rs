//! Tray scan batches, complete and exact.
//!
//! A run flows from top to bottom through these modules: [`cli`] holds the words a user may type,
//! [`commands`] does what they ask for, and [`sandbox`] is the batch scan service itself, embedded.
//! Beside the flow stand [`error`] (what can go wrong, as an exit code), [`signals`] (being told to
//! stop) and [`ui`] (everything a person reads).

// The command line: clap types only.
mod cli;

// One file per subcommand; wires the parts together.
mod commands;

// The batch scan service, from its interface document; shares nothing with a client.
mod sandbox;

// What went wrong, as an exit code.
mod error;

// SIGINT, SIGTERM and their kin.
mod signals;

// Standard output, standard error, the log, errors and panics.
mod ui;

use std::ffi::OsString;

/// Runs trayscan with `args` (the program's name first) and returns its exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let early = cli::Early::scan(&args);
    ui::start(early.color, early.error_format);
    ui::guard(|| match cli::parse(&args, early.color) {
        Ok(cli) => {
            ui::set_verbosity(cli.global.verbosity());
            match commands::run(&cli) {
                Ok(()) => 0,
                Err(error) => ui::report(&error),
            }
        }
        Err(error) => ui::report_usage(&error),
    })
}

/// Runs `work` as [`run`] does its own: a panic ends as one line on standard error and code 1.
#[doc(hidden)]
pub fn guarded(work: impl FnOnce() -> u8) -> u8 {
    ui::start(cli::Color::Auto, cli::ErrorFormat::Text);
    ui::guard(work)
}
