//! The command line: subcommands, flags and their help, as clap types and nothing else.
//!
//! Words are checked here only as far as one word can be judged alone; what they mean together is
//! decided by the commands. Completions and man pages are made from these types.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{ArgAction, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap::{ValueEnum, builder::PossibleValuesParser};
use clap_complete::Shell;

use crate::sandbox::faults;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Examples:
  trayscan serve                          the service, with 250 made-up batches
  trayscan serve --batches 1000000        a large one
  trayscan serve --fault 503:0.1          one that is often busy
  trayscan completions zsh                completions for your shell
  trayscan man serve | man -l -           the manual page of one command";

/// Tray scan batches of plant nurseries: the whole batch scan service on your own machine
///
/// A batch is one tray scan session with its germination and seedling statistics. `trayscan serve`
/// runs the service that hands them out, with made-up batches and credentials of its own, so that
/// clients can be written, shown and tested without an account.
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
        env = ErrorFormat::VARIABLE
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

/// How much is told on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    Quiet,
    Normal,
    Verbose,
    EveryRequest,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ErrorFormat {
    #[default]
    Text,
    Json,
}

impl ErrorFormat {
    const VARIABLE: &str = "TRAYSCAN_ERROR_FORMAT";
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(ServeArgs),

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
pub(crate) const PAGES: [&str; 3] = ["serve", "completions", "man"];

const SERVE_EXAMPLES: &str = "\
Examples:
  trayscan serve
  trayscan serve --listen 127.0.0.1:0 --format json
  trayscan serve --batches 100000 --page-size 1000 --seed 7
  trayscan serve --fault 503:0.1 --fault latency:50ms --fault cursor-expiry:3";

/// Run the batch scan service on this machine
///
/// Answers all of the service's interface, version 1 and version 2, from made-up batches that depend
/// on `--seed` and `--batches` alone. Prints its address and its credentials on standard output, then
/// serves until it is told to stop (Ctrl-C or SIGTERM; open requests are finished, the code is 0).
#[derive(Args, Debug)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Address and port to listen on; port 0 picks a free one
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8080",
        value_parser = listen_address
    )]
    pub(crate) listen: SocketAddr,

    /// How the address and the credentials are printed: lines for people, or one JSON line
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) format: ServeFormat,

    /// How many batches to make up
    #[arg(
        long,
        value_name = "N",
        default_value_t = 250,
        value_parser = clap::value_parser!(u32).range(..=100_000_000),
        help_heading = "Data"
    )]
    pub(crate) batches: u32,

    /// What the made-up batches and the faults grow from
    #[arg(long, value_name = "S", default_value_t = 1, help_heading = "Data")]
    pub(crate) seed: u64,

    /// The client identifier to accept
    #[arg(
        long,
        value_name = "ID",
        default_value = "sandbox",
        help_heading = "Access"
    )]
    pub(crate) client_id: String,

    /// The client secret to accept [default: a new random one]
    #[arg(long, value_name = "SECRET", help_heading = "Access")]
    pub(crate) client_secret: Option<String>,

    /// How long a token lives
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "15m",
        value_parser = duration,
        help_heading = "Access"
    )]
    pub(crate) token_ttl: Duration,

    /// Batches in a page of version 2
    #[arg(
        long,
        value_name = "N",
        default_value_t = 500,
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "Behaviour"
    )]
    pub(crate) page_size: u32,

    /// The most that version 1 answers; more are cut off, or refused with `--fault v1-refuse`
    /// [default: no limit, or 1000 with a fault of version 1]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "Behaviour"
    )]
    pub(crate) v1_limit: Option<u32>,

    /// Misbehave on purpose; repeatable (`--help` lists the faults)
    #[arg(
        long = "fault",
        value_name = "NAME[:VALUE]",
        help_heading = "Behaviour",
        long_help = faults::help()
    )]
    pub(crate) faults: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServeFormat {
    #[default]
    Text,
    Json,
}

/// Accepts `IP:PORT`, and `localhost:PORT` because people type it.
fn listen_address(word: &str) -> Result<SocketAddr, String> {
    let numeric = word
        .strip_prefix("localhost:")
        .map(|port| format!("127.0.0.1:{port}"));
    numeric
        .as_deref()
        .unwrap_or(word)
        .parse()
        .map_err(|_| "write an IP address and a port, such as 127.0.0.1:8080 or [::1]:0".to_owned())
}

/// Accepts `500ms`, `30s`, `15m`, `2h`, `7d` and sums of them.
pub(crate) fn duration(word: &str) -> Result<Duration, String> {
    humantime::parse_duration(word)
        .map_err(|_| "write a number and a unit, such as 500ms, 30s, 15m, 2h or 7d".to_owned())
}

/// Returns the whole command line as clap knows it.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Parses `args`, with help and mistakes in the `color` that was asked for.
pub(crate) fn parse(args: &[OsString], color: Color) -> Result<Cli, clap::Error> {
    let choice = match color {
        Color::Auto => clap::ColorChoice::Auto,
        Color::Always => clap::ColorChoice::Always,
        Color::Never => clap::ColorChoice::Never,
    };
    let mut command = command().color(choice);
    let matches = command.try_get_matches_from_mut(args)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The flags that decide how a mistake on the command line itself is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Early {
    pub(crate) color: Color,
    pub(crate) error_format: ErrorFormat,
}

impl Early {
    /// Finds them in `args` (and the environment) by sight. A word that is no valid value counts as
    /// absent: clap will say so.
    pub(crate) fn scan(args: &[OsString]) -> Self {
        let variable = std::env::var_os(ErrorFormat::VARIABLE);
        Self {
            color: find(args, "--color").unwrap_or_default(),
            error_format: find(args, "--error-format")
                .or_else(|| value(variable.as_deref()?))
                .unwrap_or_default(),
        }
    }
}

/// Returns the last valid value of `flag`, written `--flag value` or `--flag=value`.
fn find<T: ValueEnum>(args: &[OsString], flag: &str) -> Option<T> {
    let attached = format!("{flag}=");
    let words = args.iter().take_while(|word| *word != "--").enumerate();
    words
        .filter_map(|(index, word)| {
            if word == flag {
                return value(args.get(index + 1)?);
            }
            value(OsStr::new(word.to_str()?.strip_prefix(&attached)?))
        })
        .last()
}

fn value<T: ValueEnum>(word: &OsStr) -> Option<T> {
    T::from_str(word.to_str()?, false).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(words: &[&str]) -> Early {
        let args: Vec<OsString> = words.iter().map(OsString::from).collect();
        Early::scan(&args)
    }

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

    #[test]
    fn early_flags_are_found_in_both_spellings() {
        assert_eq!(
            scan(&["t", "--error-format", "json"]).error_format,
            ErrorFormat::Json
        );
        assert_eq!(
            scan(&["t", "x", "--error-format=json"]).error_format,
            ErrorFormat::Json
        );
        assert_eq!(scan(&["t", "--color=never"]).color, Color::Never);
    }

    #[test]
    fn what_is_no_flag_or_no_value_is_passed_over() {
        assert_eq!(scan(&["t", "--color"]), Early::default());
        assert_eq!(scan(&["t", "--error-format=xml"]), Early::default());
        assert_eq!(scan(&["t", "--", "--error-format=json"]), Early::default());
    }

    #[test]
    fn addresses_may_name_localhost_but_no_other_host() {
        assert_eq!(
            listen_address("localhost:80"),
            Ok(([127, 0, 0, 1], 80).into())
        );
        assert!(listen_address("[::1]:0").is_ok());
        assert!(listen_address("example.com:80").is_err());
        assert!(listen_address("127.0.0.1").is_err());
    }
}
