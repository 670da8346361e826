//! One file per subcommand. Commands wire the parts together and do nothing else.

mod changes;
mod check;
mod config;
mod export;
mod generate;
mod lake;
mod outcome;
mod own_files;
mod receipt;
mod report;
mod serve;
mod source;
mod status;
mod stoppable;
mod storage;
mod summary;
mod sync;
mod verify;

use crate::cli::{Cli, Command};
use crate::ui;

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
        Command::Completions { shell } => Ok(ui::print(&generate::completions(*shell))?),
        Command::Man { command } => Ok(ui::print(&generate::man_page(command.as_deref())?)?),
    }
}
