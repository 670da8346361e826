//! The command line: subcommands, flags and their help, as clap types and nothing else.
//!
//! Words are checked here only as far as one word can be judged alone; what they mean together is
//! decided by the commands. Completions and man pages are made from these types.

// `export`.
mod export;

// `sync`.
mod sync;

// `summary`.
mod summary;

// Which batches, and where from.
mod selection;

// `check`, `config`, and the settings of the service.
mod service;

// `serve`.
mod serve;

// `verify`.
mod verify;

// `report`.
mod report;

// Single words.
mod words;

// Words for the choices of other modules.
mod values;

// What is needed before parsing.
mod early;

use std::ffi::OsString;

use clap::builder::PossibleValuesParser;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{ArgAction, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;

use crate::terminal::{Color, ErrorFormat, Verbosity};
pub(crate) use early::Early;
pub(crate) use export::{ExportArgs, OutputArgs};
pub(crate) use report::ReportArgs;
pub(crate) use selection::{SelectionArgs, SourceArgs};
pub(crate) use serve::{ServeArgs, ServeFormat};
pub(crate) use service::{CheckArgs, ConfigCommand, ReportFormat, ServiceArgs};
pub(crate) use summary::{SummaryArgs, SummaryFormat};
pub(crate) use sync::{ListFormat, SyncArgs};
pub(crate) use verify::VerifyArgs;

/// Also read before the command line is parsed.
const ERROR_FORMAT_VARIABLE: &str = "TRAYSCAN_ERROR_FORMAT";

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Examples:
  trayscan export --sandbox               a first look, without any set-up
  trayscan export --since 30d -o a.csv    the last 30 days, to a file
  trayscan sync batches.db                an archive that is kept up to date
  trayscan summary --by crop_type,month   figures per crop and month
  trayscan report --since 12w -o r.html   a page with charts
  trayscan verify a.csv --manifest m      prove that a file is what was exported
  trayscan check                          try credentials and service
  trayscan serve                          the service, with 250 made-up batches
  trayscan serve --batches 1000000        a large one
  trayscan serve --fault 503:0.1          one that is often busy
  trayscan completions zsh                completions for your shell
  trayscan man serve | man -l -           the manual page of one command";

/// Export tray scan batches of plant nurseries, complete and exact
///
/// A batch is one tray scan session with its germination and seedling statistics. `trayscan export`
/// fetches batches from the batch scan service and writes them to a file or a pipe: all of them, each
/// once, exactly as the service has them, or a clear failure. `trayscan serve` is the service itself,
/// with made-up batches, for a first look and for tests.
#[derive(Debug, Parser)]
#[command(
    name = "trayscan",
    version,
    styles = STYLES,
    after_help = EXAMPLES,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) global: Global,

    /// The settings that came from variables, by the names of their fields.
    #[arg(skip)]
    pub(crate) from_environment: Vec<String>,
}

/// What every command takes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Show errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,

    /// Tell more; twice: every request
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,

    /// When to use colour [`NO_COLOR` turns `auto` off]
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    color: Color,

    /// How an error is shown: lines for people, or one JSON object as the last line
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        value_enum,
        default_value_t,
        env = ERROR_FORMAT_VARIABLE,
        hide_env_values = true
    )]
    error_format: ErrorFormat,
}

impl Global {
    pub(crate) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, 1) => Verbosity::Verbose,
            (false, _) => Verbosity::EveryRequest,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Export(Box<ExportArgs>),
    Sync(Box<SyncArgs>),
    Summary(Box<SummaryArgs>),
    Report(Box<ReportArgs>),
    Verify(Box<VerifyArgs>),
    Check(CheckArgs),
    Serve(ServeArgs),

    /// Show where settings come from, or begin a config file
    #[command(subcommand, arg_required_else_help = true)]
    Config(ConfigCommand),

    /// Print a completion script for a shell
    ///
    /// For example, in bash: `source <(trayscan completions bash)`.
    Completions {
        /// The shell to complete in
        shell: Shell,
    },

    /// Print a manual page (roff)
    ///
    /// For example: `trayscan man serve | man -l -`.
    Man {
        /// The command that the page is about [default: the whole program]
        #[arg(value_name = "COMMAND", value_parser = PossibleValuesParser::new(PAGES))]
        command: Option<String>,
    },
}

/// The subcommands that have a manual page of their own: all of them.
pub(crate) const PAGES: [&str; 10] = [
    "export",
    "sync",
    "summary",
    "report",
    "verify",
    "check",
    "serve",
    "config",
    "completions",
    "man",
];

/// Returns the whole command line as clap knows it.
pub(crate) fn command() -> clap::Command {
    without_file_completion(Cli::command())
}

/// Keeps shells from offering files where none belongs.
fn without_file_completion(command: clap::Command) -> clap::Command {
    command
        .mut_args(|arg| {
            let name = arg.get_value_names().and_then(|names| names.first());
            let names_file = name.is_some_and(|name| name == "FILE" || name == "ARCHIVE");
            let hint = if names_file {
                clap::ValueHint::FilePath
            } else {
                clap::ValueHint::Other
            };
            if arg.get_action().takes_values() {
                arg.value_hint(hint)
            } else {
                arg
            }
        })
        .mut_subcommands(without_file_completion)
}

/// Parses `args`, with help and mistakes in the `color` that was asked for.
pub(crate) fn parse(args: &[OsString], color: Color) -> Result<Cli, clap::Error> {
    let choice = match color {
        Color::Auto => clap::ColorChoice::Auto,
        Color::Always => clap::ColorChoice::Always,
        Color::Never => clap::ColorChoice::Never,
    };
    let mut command = without_empty_variables(command().color(choice));
    let matches = command.try_get_matches_from_mut(help_asked_by_word(args))?;
    let mut cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    cli.from_environment = from_environment(&matches);
    Ok(cli)
}

/// Reads `trayscan help export` as `trayscan export --help`, as other programs do.
fn help_asked_by_word(args: &[OsString]) -> Vec<OsString> {
    match args {
        [program, help, words @ ..] if help == "help" => {
            let program = std::iter::once(program).chain(words).cloned();
            program.chain([OsString::from("--help")]).collect()
        }
        _ => args.to_vec(),
    }
}

/// Lets a variable that is set to nothing count as one that is not set.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    command
        .mut_args(|arg| {
            let value = arg.get_env().and_then(std::env::var_os);
            if value.is_some_and(|value| value.is_empty()) {
                arg.env(clap::builder::Resettable::Reset)
            } else {
                arg
            }
        })
        .mut_subcommands(without_empty_variables)
}

/// Names what was read from variables, in the subcommand that was chosen.
fn from_environment(matches: &clap::ArgMatches) -> Vec<String> {
    let mut chosen = matches;
    while let Some((_, inner)) = chosen.subcommand() {
        chosen = inner;
    }
    let is_variable = |id: &&clap::Id| {
        chosen.value_source(id.as_str()) == Some(clap::parser::ValueSource::EnvVariable)
    };
    chosen
        .ids()
        .filter(is_variable)
        .map(ToString::to_string)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_types_make_a_sound_command() {
        command().debug_assert();
    }

    #[test]
    fn every_subcommand_has_a_manual_page() {
        let command = command();
        let names: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        assert_eq!(names, PAGES);
    }
}
