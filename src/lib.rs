//! trayscan exports tray scan batches: every batch exactly once, or a clear error.
//!
//! A run of `trayscan export` passes through the modules in this order:
//!
//! ```text
//! cli        parses the command line
//! config     adds environment variables and the config file: the settings
//! commands   starts the runtime, opens source and output, and connects the parts
//! client     sends one HTTP request: tokens, retries, TLS, proxies
//! fetch      turns a date range into pages: API versions, cursors, windows, workers
//! batch      is the data: a batch, its columns, JSON, dates, filters, duplicates, digests
//! pipeline   takes batches from pages to a sink: each once, filtered, sorted, counted
//! formats    turn batches into bytes, and bytes back into batches
//! storage    puts bytes into a file, an object or standard output: complete, or not at all
//! export     decides what `-o` and `-f` mean: one file or many, manifest
//! ```
//!
//! The other commands use the same parts: `verify` compares two sets of batches, `sync` keeps the `archive`,
//! `summary` and `report` show what `analysis` computes, `check --probe` asks what `probe` knows to ask, and `serve`
//! and `--sandbox` run the `server`.
//!
//! A module imports only modules below it in the order of `tests/it/layers.rs`; that test fails otherwise.

// From the command line to the parts.
mod cli;
mod commands;
mod config;

// From the service to batches.
mod batch;
mod client;
mod fetch;
mod pipeline;

// From batches to files and tables.
mod export;
mod formats;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(not(feature = "postgres"))]
#[path = "postgres/disabled.rs"]
mod postgres;
mod storage;

// What else is done with batches.
mod analysis;
mod archive;
mod verify;

// The service itself: what it leaves open, and an embedded one for demos and tests.
mod probe;
mod server;

// Used by all: exit codes, output for people, texts, secrets.
mod error;
mod secret;
mod terminal;
mod text;

// What must hold for every input.
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;

use std::ffi::OsString;

use commands::Context;
use terminal::Terminal;

/// Runs trayscan with `args` (the program's name first) and returns its exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let early = cli::Early::scan(&args);
    let context = Context::new(Terminal::new(early.color, early.message_format));
    guard(context, move |context| {
        commands::signals::let_writes_fail();
        run_with(context, &args, early)
    })
}

/// Runs the command line in this thread, with the streams of the context.
fn run_with(context: &Context, args: &[OsString], early: cli::Early) -> u8 {
    let is_condition = |index: usize, arg: &str| {
        arg.starts_with("--where=") || index > 0 && args[index - 1] == "--where"
    };
    for (index, arg) in args.iter().enumerate() {
        let arg = arg.to_string_lossy();
        if !is_condition(index, &arg) {
            secret::conceal_address(&arg);
        }
    }
    match cli::parse(args, early.color) {
        Ok(cli) => {
            context.terminal.show(Some(cli.global.level()));
            match commands::run(context, &cli) {
                Ok(()) => 0,
                Err(error) => terminal::report(&error),
            }
        }
        Err(error) => terminal::report_usage(error),
    }
}

/// Runs `work` as [`run`] does its own: a panic ends as one line on standard error and code 1.
#[doc(hidden)]
pub fn guarded(work: impl FnOnce() -> u8 + Send + 'static) -> u8 {
    guard(Context::new(Terminal::default()), |_| work())
}

fn guard(context: Context, work: impl FnOnce(&Context) -> u8 + Send + 'static) -> u8 {
    let (terminal, cleanup) = (context.terminal.clone(), context.storage.cleanup.clone());
    terminal::guard(
        &terminal,
        move || work(&context),
        move || cleanup.sweep_if_free(),
    )
}
