//! The settings of the service, and the commands that use nothing else: `check`, `login` and `config`.

use std::path::PathBuf;

use clap::builder::{BoolishValueParser, PossibleValuesParser, TypedValueParser as _, ValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Subcommand};
use toml::{Table, Value};

use super::values::number;
use crate::batch::Zone;
use crate::client::Api;
use crate::config::{FlagValue, Given, Profile, SETTINGS, SettingInfo};
use crate::terminal::MessageFormat;
use crate::text::duration;

/// The service, and how to send requests to it.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Service")]
pub(crate) struct ServiceArgs {
    /// Use demo data from a built-in server; no setup needed
    #[arg(long)]
    pub(crate) sandbox: bool,

    #[command(flatten)]
    pub(crate) given: Given,

    /// Profile in the config file [default: its `default_profile`, else `default`]
    #[arg(
        long,
        value_name = "NAME",
        env = "TRAYSCAN_PROFILE",
        hide_env_values = true
    )]
    pub(crate) profile: Option<String>,

    /// Config file to use [default: see `trayscan config path`]
    #[arg(
        long,
        value_name = "FILE",
        env = "TRAYSCAN_CONFIG",
        hide_env_values = true
    )]
    pub(crate) config: Option<PathBuf>,
}

/// The flags and variables of the settings, made from their table.
impl Args for Given {
    fn augment_args(command: Command) -> Command {
        let flags = SETTINGS.iter().filter(|info| !info.flag.is_empty());
        command.args(flags.map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn arg(info: &SettingInfo) -> Arg {
    let arg = Arg::new(info.key)
        .long(info.flag.trim_start_matches('-'))
        .value_name(info.value_name)
        .env(info.variable)
        .hide_env_values(true)
        .value_parser(value_parser(info.value))
        .help(info.help);
    let arg = match info.long_help {
        "" => arg,
        long_help => arg.long_help(long_help),
    };
    match info.value {
        FlagValue::Number { .. } => arg.allow_negative_numbers(true),
        FlagValue::Boolean => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
        _ => arg,
    }
}

/// Checks a value, and turns it into what the config file would have.
fn value_parser(value: FlagValue) -> ValueParser {
    match value {
        FlagValue::Text => ValueParser::new(|word: &str| Ok::<_, String>(Value::from(word))),
        FlagValue::ApiVersion => {
            let names = Api::ALL.map(Api::name);
            ValueParser::new(PossibleValuesParser::new(names).map(Value::String))
        }
        FlagValue::Number { least, example } => ValueParser::new(move |word: &str| {
            // The settings refuse zero, whatever its source.
            let read = number::<u32>(word, 0, u32::MAX, example)
                .or_else(|_| number(word, least, u32::MAX, example));
            read.map(Value::from)
        }),
        FlagValue::Duration => {
            ValueParser::new(|word: &str| duration(word).map(|_| Value::from(word)))
        }
        FlagValue::TimeZone => ValueParser::new(|word: &str| match word {
            // An empty text counts as not set.
            "" => Ok(Value::from(word)),
            _ => Zone::parse(word).map(|_| Value::from(word)),
        }),
        FlagValue::Boolean => ValueParser::new(BoolishValueParser::new().map(Value::Boolean)),
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (mut flags, mut variables) = (Table::new(), Table::new());
        for info in &SETTINGS {
            let Ok(Some(value)) = matches.try_get_one::<Value>(info.key) else {
                continue;
            };
            let is_variable = matches.value_source(info.key) == Some(ValueSource::EnvVariable);
            // An empty variable counts as not set. An empty flag is a mistake, such as "$URL" without a value.
            if !is_variable && value.as_str() == Some("") {
                let name = format!("{} <{}>", info.flag, info.value_name);
                let mut error = clap::Error::new(ErrorKind::InvalidValue);
                error.insert(ContextKind::InvalidArg, ContextValue::String(name));
                return Err(error);
            }
            let table = if is_variable {
                &mut variables
            } else {
                &mut flags
            };
            table.insert(info.key.to_owned(), value.clone());
        }
        // Each value was checked when it was parsed.
        let read = |table| Profile::read(table).map_err(|_| clap::Error::new(ErrorKind::Io));
        Ok(Self {
            flags: read(flags)?,
            variables: read(variables)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Test the settings, the connection and the credentials
///
/// Tests one step at a time: settings and their sources, connection, TLS, both API versions and the clock.
/// Changes nothing on the service.
///
/// `--probe` then finds out what the API description leaves open, with a few dozen small requests: token
/// lifetime and scope, page size, order, date ranges, the behaviour of v1 above 1000 batches and the answers
/// to invalid requests. Each answer is printed with its evidence. The exit code depends on the steps alone.
#[derive(Args, Clone, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) service: ServiceArgs,

    /// Also find out how the service behaves, with a few dozen read-only requests
    #[arg(long, help_heading = None::<&str>)]
    pub(crate) probe: bool,

    /// Output format
    ///
    /// `json` prints one object. `ok` is the result. `steps` is a list, each with `step`, `ok`, `found` and, if it failed,
    /// perhaps a `hint`. With --probe, there are also `probe`, the list of answers (see trayscan-service(7)), and
    /// `probe_requests`, the number of requests.
    #[arg(short, long, value_enum, default_value_t, help_heading = None::<&str>)]
    pub(crate) format: MessageFormat,
}

/// Set up a profile: ask for base URL, client ID and secret, test them and save them
///
/// Asks for what is missing, or takes it from flags and variables. Runs the steps of `trayscan check`, then
/// saves the profile in the config file, and the secret in a separate file beside it that only you can read.
/// An existing profile is changed. If the connection, TLS or the credentials fail, nothing is saved.
///
/// A secret file that is named with --client-secret-file is used where it is. --api, --ca-cert and --time-zone are
/// saved if they are given, and --allow-http if it is needed. --parallel, --retries, --retry-wait and --timeout apply
/// to this run only; save them with `trayscan config set`.
#[derive(Args, Debug)]
#[command(
    mut_arg("sandbox", |arg| arg.hide(true)),
    mut_arg("profile", |arg| arg.help(
        "Profile to create or change [default: `default_profile` of the config file, else `default`]"
    )),
    after_help = LOGIN_EXAMPLES
)]
pub(crate) struct LoginArgs {
    #[command(flatten)]
    pub(crate) service: ServiceArgs,

    /// Save the profile even if the service cannot be reached or refuses the credentials
    #[arg(long, help_heading = None::<&str>)]
    pub(crate) force: bool,
}

const LOGIN_EXAMPLES: &str = "\
Examples:
  trayscan login                  Set up the default profile
  trayscan login --profile test   Set up another one; use it with --profile test
  trayscan login --base-url https://scan.example.com/api --client-id nursery \\
    --client-secret-file - < secret.txt";

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the path of the config file
    Path(ConfigArgs),

    /// Print the current settings and their sources, with secrets masked
    Show(Box<ServiceArgs>),

    /// Create a config file with an explanation of every key
    Init(ConfigArgs),

    /// Change one key of a profile; creates the config file and the profile if needed
    ///
    /// `trayscan config init` writes a file that explains all keys. The client secret is set with `trayscan login`.
    Set(ConfigSetArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ConfigSetArgs {
    /// Key to change, such as base_url or retries
    pub(crate) key: String,

    /// New value
    #[arg(allow_negative_numbers = true)]
    pub(crate) value: String,

    /// Profile to change [default: `default_profile` of the config file, else `default`]
    #[arg(
        long,
        value_name = "NAME",
        env = "TRAYSCAN_PROFILE",
        hide_env_values = true
    )]
    pub(crate) profile: Option<String>,

    #[command(flatten)]
    pub(crate) file: ConfigArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ConfigArgs {
    /// Path of the config file [default: in the config folder of the platform]
    #[arg(
        long,
        value_name = "FILE",
        env = "TRAYSCAN_CONFIG",
        hide_env_values = true
    )]
    pub(crate) config: Option<PathBuf>,
}
