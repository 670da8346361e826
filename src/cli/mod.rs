//! The command line: subcommands, flags and their help, as clap types and nothing else.
//!
//! Start with this file: [`Cli`], [`Command`], and [`parse()`]. Each subcommand has a file for its flags; `selection` and
//! `service` have the flags that several commands share. Each value is checked here on its own; `config` and `commands`
//! decide what the values mean together. Completions and man pages are generated from these types.

mod export;

mod sync;

mod summary;

mod report;

mod verify;

// `check`, `login`, `config`, and the settings of the service.
mod service;

mod serve;

// Which batches, and where from.
mod selection;

// Single values.
mod values;

// Explains mistakes.
mod usage;

pub(crate) use export::{ExportArgs, OutputArgs};
pub(crate) use report::ReportArgs;
pub(crate) use selection::{RangeArgs, SelectionArgs, SourceArgs};
pub(crate) use serve::ServeArgs;
pub(crate) use service::{CheckArgs, ConfigCommand, ConfigSetArgs, LoginArgs, ServiceArgs};
pub(crate) use summary::{FailOn, SummaryArgs, SummaryFormat};
pub(crate) use sync::{ListFormat, SyncArgs};
pub(crate) use verify::VerifyArgs;

use std::ffi::{OsStr, OsString};

use clap::builder::styling::{AnsiColor, Styles};
use clap::builder::{PossibleValuesParser, Resettable};
use clap::{
    Arg, ArgAction, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum,
    ValueHint,
};

use crate::terminal::{Level, MessageFormat, Stop, When};

/// Also read before the command line is parsed. The second is an old name.
const MESSAGE_FORMAT_VARIABLES: [&str; 2] = ["TRAYSCAN_MESSAGE_FORMAT", "TRAYSCAN_ERROR_FORMAT"];

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Examples:
  trayscan export --sandbox               Try it with demo data; no setup needed
  trayscan export --since 30d -o a.csv    Export the last 30 days to a file
  trayscan sync batches.db                Create or update a local archive
  trayscan summary --by crop_type,month   Show statistics per crop and month
  trayscan report --since 12w -o r.html   Write an HTML report with charts
  trayscan verify a.csv --manifest m      Check a file against its manifest
  trayscan login                          Set up the address and the credentials
  trayscan check                          Test the connection and the credentials
  trayscan serve                          Run a demo server with 250 batches
  trayscan serve --batches 1000000        Run a demo server with many batches
  trayscan serve --fault 503:0.1          Run one that is busy for 10 % of requests
  trayscan completions zsh                Print the completions for zsh
  trayscan man serve | man -l -           Read the manual page of a command";

/// Export tray scan batches to CSV, Excel, Parquet, JSON, SQLite or PostgreSQL
///
/// A batch is one tray scan session of a plant nursery, with its germination and seedling statistics.
/// `trayscan export` fetches batches from the batch scan service and writes every batch exactly once, or
/// fails with a clear error. `trayscan serve` runs the service on your own machine, with demo data or from
/// an archive.
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
}

/// The flags of every command.
#[derive(Args, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Show only warnings and errors; -qq: only errors
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "verbose")]
    quiet: u8,

    /// More output; -vv logs every request
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,

    /// When to use colour
    ///
    /// `auto` uses colour on a terminal, unless NO_COLOR is set.
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    color: When,

    /// Format of messages on standard error
    ///
    /// `json` prints each message as one JSON object on a line of its own. The last line is the error, or the result of a
    /// command that has one. See trayscan-config(5).
    #[arg(
        long,
        alias = "error-format",
        global = true,
        value_name = "FORMAT",
        value_enum,
        default_value_t,
        env = MESSAGE_FORMAT_VARIABLES[0],
        hide_env_values = true
    )]
    message_format: MessageFormat,
}

impl Global {
    /// Returns the least important messages to show.
    pub(crate) fn level(&self) -> Level {
        match (self.quiet, self.verbose) {
            (0, 0) => Level::Note,
            (0, 1) => Level::Info,
            (0, _) => Level::Debug,
            (1, _) => Level::Warning,
            (_, _) => Level::Error,
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
    Check(Box<CheckArgs>),
    Serve(ServeArgs),
    Login(Box<LoginArgs>),

    /// Show or change settings, or create a config file
    #[command(subcommand, arg_required_else_help = true)]
    Config(ConfigCommand),

    /// Print a shell completion script
    ///
    /// To load it in bash: `source <(trayscan completions bash)`. In zsh, after compinit: `source <(trayscan completions zsh)`. In fish: `trayscan completions fish | source`.
    Completions {
        /// Shell to print the script for
        #[arg(value_enum)]
        shell: Completions,
    },

    /// Print a manual page in roff format
    ///
    /// To read it: `trayscan man serve | man -l -`.
    Man {
        /// Command or topic to print the page of [default: trayscan itself]
        #[arg(value_name = "PAGE", value_parser = PossibleValuesParser::new(PAGES.into_iter().chain(TOPICS.map(|(topic, _)| topic))))]
        page: Option<String>,
    },
}

/// A shell, or values that its script asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Completions {
    Bash,
    Elvish,
    Fish,
    #[value(name = "powershell")]
    PowerShell,
    Zsh,
    #[value(hide = true)]
    Profiles,
    #[value(hide = true)]
    TimeZones,
}

impl Command {
    /// Returns the settings of the service, if the command has any.
    pub(crate) fn service(&self) -> Option<&ServiceArgs> {
        match self {
            Self::Export(args) => Some(&args.source.service),
            Self::Sync(args) => Some(&args.service),
            Self::Summary(args) => Some(&args.source.service),
            Self::Report(args) => Some(&args.source.service),
            Self::Verify(args) => Some(&args.source),
            Self::Check(args) => Some(&args.service),
            Self::Login(args) => Some(&args.service),
            Self::Config(ConfigCommand::Show(args)) => Some(args),
            Self::Config(_) | Self::Serve(_) | Self::Completions { .. } | Self::Man { .. } => None,
        }
    }
}

/// The other manual pages, by topic. `config-file` is `trayscan-config(5)`.
pub(crate) const TOPICS: [(&str, &str); 7] = [
    ("archive", include_str!("../../man/trayscan-archive.5")),
    ("config-file", include_str!("../../man/trayscan-config.5")),
    ("figures", include_str!("../../man/trayscan-figures.7")),
    ("formats", include_str!("../../man/trayscan-formats.7")),
    ("manifest", include_str!("../../man/trayscan-manifest.5")),
    ("service", include_str!("../../man/trayscan-service.7")),
    ("storage", include_str!("../../man/trayscan-storage.7")),
];

/// The subcommands that have a manual page of their own: all of them.
pub(crate) const PAGES: [&str; 11] = [
    "export",
    "sync",
    "summary",
    "report",
    "verify",
    "check",
    "serve",
    "login",
    "config",
    "completions",
    "man",
];

/// Returns the whole command line as clap knows it.
pub(crate) fn command() -> clap::Command {
    with_args(Cli::command(), without_file_completion)
}

/// Changes all flags and arguments, also those of subcommands.
fn with_args(command: clap::Command, change: fn(Arg) -> Arg) -> clap::Command {
    let command = command.mut_args(change);
    command.mut_subcommands(|subcommand| with_args(subcommand, change))
}

/// Stops shells from offering files for arguments that are not files.
fn without_file_completion(arg: Arg) -> Arg {
    if !arg.get_action().takes_values() {
        return arg;
    }
    let name = arg.get_value_names().and_then(|names| names.first());
    let hint = match name.map(clap::builder::Str::as_str) {
        Some("FILE" | "ARCHIVE") => ValueHint::FilePath,
        Some("FOLDER") => ValueHint::DirPath,
        _ => ValueHint::Other,
    };
    arg.value_hint(hint)
}

/// Parses `args`; help is coloured as `color` says.
pub(crate) fn parse(args: &[OsString], color: When) -> Result<Cli, Stop> {
    let choice = match color {
        When::Auto => clap::ColorChoice::Auto,
        When::Always => clap::ColorChoice::Always,
        When::Never => clap::ColorChoice::Never,
    };
    let program = command().mut_arg("message_format", |arg| match message_format_variable() {
        Some(variable) => arg.env(variable),
        None => arg,
    });
    let mut command = with_args(program.clone().color(choice), without_empty_variable);
    let args = asked_by_word(args);
    let explain = |error| usage::explain(&error, &args, program.clone());
    let matches = command.try_get_matches_from_mut(&args).map_err(explain)?;
    Cli::from_arg_matches(&matches).map_err(explain)
}

/// Reads `trayscan help export` as `trayscan export --help` and `trayscan version` as `trayscan --version`, as other
/// programs do.
fn asked_by_word(args: &[OsString]) -> Vec<OsString> {
    match args {
        [program, version, rest @ ..] if version == "version" => {
            let version = [program.clone(), "--version".into()];
            version.into_iter().chain(rest.iter().cloned()).collect()
        }
        [program, help, words @ ..] if help == "help" => {
            let program = std::iter::once(program).chain(words).cloned();
            program.chain([OsString::from("--help")]).collect()
        }
        _ => args.to_vec(),
    }
}

/// Returns the variable with the format of messages, if one is set.
fn message_format_variable() -> Option<&'static str> {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    MESSAGE_FORMAT_VARIABLES.into_iter().find(is_set)
}

/// Treats an empty variable as not set.
fn without_empty_variable(arg: Arg) -> Arg {
    let value = arg.get_env().and_then(std::env::var_os);
    if value.is_some_and(|value| value.is_empty()) {
        arg.env(Resettable::Reset)
    } else {
        arg
    }
}

/// The flags that decide how a mistake on the command line is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Early {
    pub(crate) color: When,
    pub(crate) message_format: MessageFormat,
}

impl Early {
    /// Finds them in `args` and the environment without parsing. Ignores invalid values: clap reports
    /// them later.
    pub(crate) fn scan(args: &[OsString]) -> Self {
        let variable = message_format_variable();
        let variable = variable.and_then(std::env::var_os);
        Self {
            color: find(args, &["--color"]).unwrap_or_default(),
            message_format: find(args, &["--message-format", "--error-format"])
                .or_else(|| value(variable.as_deref()?))
                .unwrap_or_default(),
        }
    }
}

/// Returns the last valid value of the flag with these names, written `--flag value` or `--flag=value`.
fn find<T: ValueEnum>(args: &[OsString], names: &[&str]) -> Option<T> {
    let words = args.iter().take_while(|word| *word != "--").enumerate();
    words
        .filter_map(|(index, word)| {
            let word = word.to_str()?;
            if names.contains(&word) {
                return value(args.get(index + 1)?);
            }
            let (name, attached) = word.split_once('=')?;
            value(OsStr::new(names.contains(&name).then_some(attached)?))
        })
        .last()
}

fn value<T: ValueEnum>(word: &OsStr) -> Option<T> {
    T::from_str(word.to_str()?, false).ok()
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

    fn scan(words: &[&str]) -> Early {
        let args: Vec<OsString> = words.iter().map(OsString::from).collect();
        Early::scan(&args)
    }

    #[test]
    fn early_flags_are_found_in_both_spellings() {
        assert_eq!(
            scan(&["t", "--message-format", "json"]).message_format,
            MessageFormat::Json
        );
        assert_eq!(
            scan(&["t", "x", "--error-format=json"]).message_format,
            MessageFormat::Json
        );
        assert_eq!(scan(&["t", "--color=never"]).color, When::Never);
    }

    #[test]
    fn what_is_no_flag_or_no_value_is_passed_over() {
        assert_eq!(scan(&["t", "--color"]), Early::default());
        assert_eq!(scan(&["t", "--message-format=xml"]), Early::default());
        assert_eq!(
            scan(&["t", "--", "--message-format=json"]),
            Early::default()
        );
    }
}
