//! The command line: subcommands, flags and their help, as clap types and nothing else.
//!
//! Words are checked here only as far as one word can be judged alone; what they mean together is
//! decided by the commands. Completions and man pages are made from these types.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::PathBuf;
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
  trayscan export --sandbox               a first look, without any set-up
  trayscan export --since 30d -o a.csv    the last 30 days, to a file
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
        env = ErrorFormat::VARIABLE,
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
    Export(Box<ExportArgs>),
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
pub(crate) const PAGES: [&str; 6] = ["export", "check", "serve", "config", "completions", "man"];

const EXPORT_EXAMPLES: &str = "\
Examples:
  trayscan export --sandbox
  trayscan export --since 30d -o batches.csv
  trayscan export --start 2026-05 --end 2026-05 -o may.ndjson.zst
  trayscan export --where crop_type=Tomato --where 'avg_germination_rate<80' -f csv
  trayscan export -f ndjson | jq -r .batch_name";

/// Fetch batches and write them in one format
///
/// Writes to standard output, or with `-o` to a file that appears whole or not at all. Every batch of
/// the range is there exactly once; where that cannot be, nothing is published and the exit code tells
/// why.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) range: RangeArgs,

    /// Keep batches where this holds, such as `crop_type=Tomato`; repeatable, all must hold
    ///
    /// FIELD OP VALUE with one of = != < <= > >= and ~ (contains, ignoring case). Numbers compare as
    /// numbers, dates as instants, the rest as text. `FIELD=` is null, `FIELD!=` is not null; null
    /// matches nothing else. `warnings` and `!warnings` for the boolean.
    #[arg(long = "where", value_name = "EXPR", help_heading = "Selection")]
    pub(crate) conditions: Vec<String>,

    /// Fields to write, in this order; or fields to leave out, each with a leading minus
    #[arg(
        long,
        value_name = "A,B,…",
        allow_hyphen_values = true,
        help_heading = "Selection"
    )]
    pub(crate) fields: Option<String>,

    /// Sort by a field, descending with `:desc` [default: the order of the service]
    #[arg(long, value_name = "FIELD[:desc]", help_heading = "Selection")]
    pub(crate) sort: Option<String>,

    /// End after so many batches
    #[arg(long, value_name = "N", help_heading = "Selection")]
    pub(crate) limit: Option<u64>,

    /// Carry on past batches that break the interface, as far as the format can
    #[arg(long, help_heading = "Selection")]
    pub(crate) lenient: bool,

    /// End with code 9 when nothing matches
    #[arg(long, help_heading = "Selection")]
    pub(crate) fail_on_empty: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) service: ServiceArgs,

    /// When to show progress; `auto`: when standard error is a terminal
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) progress: Progress,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Selection")]
pub(crate) struct RangeArgs {
    /// First date, such as 2026-05-01, 2026-05, today or 7d (for 7 days ago)
    ///
    /// A second (2026-05-01T06:00:00Z, or with an offset), a day, month or year (2026-05-01, 2026-05,
    /// 2026; UTC), `today`, `yesterday`, or that long ago (90m, 12h, 7d, 2w, 3mo, 1y; m is minutes).
    #[arg(
        long,
        value_name = "DATE",
        visible_alias = "since",
        allow_hyphen_values = true
    )]
    pub(crate) start: Option<String>,

    /// Last date, in the same forms; a day, month or year counts whole
    #[arg(
        long,
        value_name = "DATE",
        visible_alias = "until",
        allow_hyphen_values = true
    )]
    pub(crate) end: Option<String>,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct OutputArgs {
    /// File to write; `.gz` or `.zst` at its end compresses [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Format [default: by the ending of FILE, else table on a terminal and ndjson in a pipe]
    #[arg(short, long, value_enum)]
    pub(crate) format: Option<Format>,

    /// Do not replace a file that exists
    #[arg(long)]
    pub(crate) no_clobber: bool,

    /// Write a receipt (JSON) beside the export: what was asked for, counts, digests
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,

    /// json, ndjson: decimals as numbers, with the same digits
    #[arg(long)]
    pub(crate) numbers: bool,

    /// csv, tsv: what stands between cells [default: a comma, or a tab]
    #[arg(long, value_name = "C", allow_hyphen_values = true)]
    pub(crate) delimiter: Option<String>,

    /// csv, tsv: a decimal comma (and `;` between cells)
    #[arg(long)]
    pub(crate) decimal_comma: bool,

    /// csv, tsv: begin with a byte order mark
    #[arg(long)]
    pub(crate) bom: bool,

    /// csv, tsv: no line of names
    #[arg(long)]
    pub(crate) no_header: bool,

    /// csv, tsv: for a double click in Excel: byte order mark, CRLF, no cell runs as a formula
    #[arg(long)]
    pub(crate) excel: bool,
}

/// What an export is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Json,
    Ndjson,
    Csv,
    Tsv,
    Table,
}

impl Format {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Table => "table",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Progress {
    #[default]
    Auto,
    Always,
    Never,
}

/// Where batches come from, and how they are asked for.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Service")]
pub(crate) struct ServiceArgs {
    /// Use made-up batches from a service that runs for this command only; needs no set-up
    #[arg(long)]
    pub(crate) sandbox: bool,

    /// Address of the service, such as `https://scan.example.com/api`
    #[arg(
        long,
        value_name = "URL",
        env = "TRAYSCAN_BASE_URL",
        hide_env_values = true
    )]
    pub(crate) base_url: Option<String>,

    /// The client identifier
    #[arg(
        long,
        value_name = "ID",
        env = "TRAYSCAN_CLIENT_ID",
        hide_env_values = true
    )]
    pub(crate) client_id: Option<String>,

    /// The client secret; others may see it here: rather use a file or the variable
    #[arg(
        long,
        value_name = "SECRET",
        env = "TRAYSCAN_CLIENT_SECRET",
        hide_env_values = true
    )]
    pub(crate) client_secret: Option<String>,

    /// File with the client secret; `-` for standard input
    #[arg(
        long,
        value_name = "FILE",
        env = "TRAYSCAN_CLIENT_SECRET_FILE",
        hide_env_values = true
    )]
    pub(crate) client_secret_file: Option<String>,

    /// Version of the interface [default: auto, which is v2, and v1 only where there is no v2]
    #[arg(long, value_enum, env = "TRAYSCAN_API", hide_env_values = true)]
    pub(crate) api: Option<Api>,

    /// Requests at a time, at most [default: 4]
    #[arg(
        long,
        value_name = "N",
        env = "TRAYSCAN_PARALLEL",
        hide_env_values = true
    )]
    pub(crate) parallel: Option<u32>,

    /// Times that a request is tried again [default: 5]
    #[arg(
        long,
        value_name = "N",
        env = "TRAYSCAN_RETRIES",
        hide_env_values = true
    )]
    pub(crate) retries: Option<u32>,

    /// Wait after a 503, give or take a quarter; others begin with a quarter of it [default: 4s]
    #[arg(long, value_name = "DURATION", value_parser = duration, env = "TRAYSCAN_RETRY_WAIT", hide_env_values = true)]
    pub(crate) retry_wait: Option<Duration>,

    /// Longest time without a byte arriving [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = duration, env = "TRAYSCAN_TIMEOUT", hide_env_values = true)]
    pub(crate) timeout: Option<Duration>,

    /// Certificate (PEM) to trust beside the system's
    #[arg(
        long,
        value_name = "FILE",
        env = "TRAYSCAN_CA_CERT",
        hide_env_values = true
    )]
    pub(crate) ca_cert: Option<String>,

    /// Allow plain http to another machine
    #[arg(long, env = "TRAYSCAN_ALLOW_HTTP", hide_env_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) allow_http: Option<bool>,

    /// Profile of the config file [default: its `default_profile`, else `default`]
    #[arg(
        long,
        value_name = "NAME",
        env = "TRAYSCAN_PROFILE",
        hide_env_values = true
    )]
    pub(crate) profile: Option<String>,

    /// Config file [default: see `trayscan config path`]
    #[arg(
        long,
        value_name = "FILE",
        env = "TRAYSCAN_CONFIG",
        hide_env_values = true
    )]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Api {
    #[default]
    Auto,
    V1,
    V2,
}

/// Try credentials and service, and tell what was found
///
/// Goes step by step: settings and where they come from, connection, TLS, both versions, the clock.
/// Nothing is changed anywhere.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) service: ServiceArgs,

    /// How the findings are shown
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) format: ReportFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    #[default]
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print where the config file is looked for
    Path(ConfigArgs),

    /// Print the settings that hold and where each comes from; secrets are masked
    Show(ServiceArgs),

    /// Begin a config file, with every key explained
    Init(ConfigArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ConfigArgs {
    /// Config file [default: the platform's place for it]
    #[arg(
        long,
        value_name = "FILE",
        env = "TRAYSCAN_CONFIG",
        hide_env_values = true
    )]
    pub(crate) config: Option<PathBuf>,
}

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
/// serves until it is told to stop by Ctrl-C or SIGTERM: it finishes open requests, for 10 s at most, and
/// ends with code 0. A second signal ends it at once.
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
        allow_negative_numbers = true,
        value_parser = |word: &str| number(word, 0, 20_000_000),
        help_heading = "Data"
    )]
    pub(crate) batches: u32,

    /// Seed of the made-up batches and of the faults
    #[arg(long, value_name = "S", default_value_t = 1, help_heading = "Data")]
    pub(crate) seed: u64,

    /// The client identifier to accept (variables are not read: they are for the real service)
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
        allow_negative_numbers = true,
        value_parser = |word: &str| number(word, 1, u32::MAX),
        help_heading = "Behaviour"
    )]
    pub(crate) page_size: u32,

    /// The most that version 1 answers; more are cut off, or refused with `--fault v1-refuse`
    /// [default: no limit, or 1000 with a fault of version 1]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = |word: &str| number(word, 1, u32::MAX),
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

/// Accepts a whole number within bounds.
fn number(word: &str, least: u32, most: u32) -> Result<u32, String> {
    let valid = word
        .parse()
        .ok()
        .filter(|number| (least..=most).contains(number));
    valid.ok_or_else(|| format!("write a whole number from {least} to {most}, such as 1000"))
}

/// Accepts `IP:PORT`, and `localhost:PORT`, `:PORT` or `PORT` because people type them.
fn listen_address(word: &str) -> Result<SocketAddr, String> {
    let port = ["localhost:", ":"]
        .iter()
        .find_map(|prefix| word.strip_prefix(prefix))
        .unwrap_or(word);
    let numeric = port
        .parse::<u16>()
        .ok()
        .map(|port| format!("127.0.0.1:{port}"));
    numeric
        .as_deref()
        .unwrap_or(word)
        .parse()
        .map_err(|_| "write an IP address and a port, such as 127.0.0.1:8080 or [::1]:0".to_owned())
}

/// The longest duration: more than anybody waits, and little enough for clocks to add up.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

/// Accepts `500ms`, `30s`, `15m`, `2h`, `7d` and sums of them.
pub(crate) fn duration(word: &str) -> Result<Duration, String> {
    let parsed = humantime::parse_duration(word).ok();
    parsed
        .filter(|duration| *duration <= LONGEST)
        .ok_or_else(|| {
            "write a number and a unit, such as 500ms, 30s, 15m, 2h or 7d, up to 100 years"
                .to_owned()
        })
}

/// Returns the whole command line as clap knows it.
pub(crate) fn command() -> clap::Command {
    without_file_completion(Cli::command())
}

/// Keeps shells from offering files where none belongs.
fn without_file_completion(command: clap::Command) -> clap::Command {
    command
        .mut_args(|arg| {
            let name = arg.get_value_names().and_then(|names| names.first());
            let names_file = name.is_some_and(|name| name == "FILE");
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
    let matches = command.try_get_matches_from_mut(args)?;
    let mut cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    cli.from_environment = from_environment(&matches);
    Ok(cli)
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
        assert_eq!(listen_address("8080"), Ok(([127, 0, 0, 1], 8080).into()));
        assert_eq!(listen_address(":0"), Ok(([127, 0, 0, 1], 0).into()));
        assert!(listen_address("99999").is_err());
    }
}
