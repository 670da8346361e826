//! One file per subcommand. Commands wire the parts together and do nothing else.

mod changes;
mod check;
mod config;
mod export;
mod generate;
mod lake;
mod manifest;
mod messages;
mod own_files;
mod report;
mod runtime;
mod serve;
pub(crate) mod signals;
mod source;
mod status;
mod storage;
mod summary;
mod sync;
mod verify;

use crate::cli::{Cli, Command};
use crate::terminal;

/// Does what the command line asks for.
pub(crate) fn run(cli: &Cli) -> anyhow::Result<()> {
    match &cli.command {
        Command::Export(args) => export::run(cli, args),
        Command::Sync(args) => sync::run(cli, args),
        Command::Summary(args) => summary::run(cli, args),
        Command::Report(args) => report::run(cli, args),
        Command::Verify(args) => verify::run(cli, args),
        Command::Check(args) => check::run(cli, args),
        Command::Config(command) => config::run(cli, command),
        Command::Serve(args) => serve::run(args),
        Command::Completions { shell } => Ok(terminal::print(&generate::completions(*shell))?),
        Command::Man { command } => Ok(terminal::print(&generate::man_page(command.as_deref())?)?),
    }
}
