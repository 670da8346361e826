//! One file or folder per subcommand. Commands wire the other parts of the crate together and do nothing else.
//!
//! Each subcommand has a `run` function. Commands that read many batches follow `batches`: request, source, pipeline, sink,
//! outcome; start with `summary` for the shortest example. What the flags mean on their own is left to `cli`.

// The subcommands.
mod export;

mod sync;

mod summary;

mod report;

mod verify;

mod check;

mod serve;

mod login;

mod config;

mod completions;

// `man`.
mod generate;

// Shared by several commands: where batches are from, which of them, and what a run says.
mod source;

mod batches;

mod messages;

// What is made once and handed down; the async runtime, and signals that stop it.
mod context;

mod runtime;

pub(crate) mod signals;

// Whole commands, run in process.
#[cfg(test)]
mod tests;

use crate::cli::{Cli, Command};
use crate::terminal;
pub(crate) use context::Context;

/// Runs the subcommand of the command line.
pub(crate) fn run(context: &Context, cli: &Cli) -> anyhow::Result<()> {
    let context = &context.clone().of(cli);
    match &cli.command {
        Command::Export(args) => export::run(context, args),
        Command::Sync(args) => sync::run(context, args),
        Command::Summary(args) => summary::run(context, args),
        Command::Report(args) => report::run(context, args),
        Command::Verify(args) => verify::run(context, args),
        Command::Check(args) => check::run(context, args),
        Command::Login(args) => login::run(context, args),
        Command::Config(command) => config::run(context, command),
        Command::Serve(args) => serve::run(context, args),
        Command::Completions { shell } => Ok(terminal::print(&completions::text(*shell))?),
        Command::Man { page } => Ok(terminal::print(&generate::man_page(page.as_deref())?)?),
    }
}
