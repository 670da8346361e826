//! The settings of the service, and the commands that use nothing else: `check` and `config`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::parse::number;
use crate::client::Api;
use crate::text::duration;

/// The service, and how to send requests to it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Service")]
pub(crate) struct ServiceArgs {
    /// Use demo data from a built-in server; no setup needed
    #[arg(long)]
    pub(crate) sandbox: bool,

    /// URL of the service, such as https://scan.example.com/api
    #[arg(
        long,
        value_name = "URL",
        env = "TRAYSCAN_BASE_URL",
        hide_env_values = true
    )]
    pub(crate) base_url: Option<String>,

    /// Client ID
    #[arg(
        long,
        value_name = "ID",
        env = "TRAYSCAN_CLIENT_ID",
        hide_env_values = true
    )]
    pub(crate) client_id: Option<String>,

    /// Client secret; prefer --client-secret-file or the variable
    ///
    /// Other users of this machine can see the arguments of a running command.
    #[arg(
        long,
        value_name = "SECRET",
        env = "TRAYSCAN_CLIENT_SECRET",
        hide_env_values = true
    )]
    pub(crate) client_secret: Option<String>,

    /// File that contains the client secret; `-` reads standard input
    #[arg(
        long,
        value_name = "FILE",
        env = "TRAYSCAN_CLIENT_SECRET_FILE",
        hide_env_values = true
    )]
    pub(crate) client_secret_file: Option<String>,

    /// API version [default: auto]
    ///
    /// `auto` uses v2, or v1 if the service has no v2.
    #[arg(
        long,
        value_name = "VERSION",
        value_enum,
        env = "TRAYSCAN_API",
        hide_env_values = true
    )]
    pub(crate) api: Option<Api>,

    /// Maximum number of parallel requests [default: 4]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        // The settings refuse zero, whatever its source.
        value_parser = |word: &str| number::<u32>(word, 0, u32::MAX, 4).or_else(|_| number(word, 1, u32::MAX, 4)),
        env = "TRAYSCAN_PARALLEL",
        hide_env_values = true
    )]
    pub(crate) parallel: Option<u32>,

    /// Number of retries per request [default: 5]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = |word: &str| number::<u32>(word, 0, u32::MAX, 5),
        env = "TRAYSCAN_RETRIES",
        hide_env_values = true
    )]
    pub(crate) retries: Option<u32>,

    /// Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]
    #[arg(long, value_name = "DURATION", value_parser = duration, env = "TRAYSCAN_RETRY_WAIT", hide_env_values = true)]
    pub(crate) retry_wait: Option<Duration>,

    /// Time out if no data arrives for this long [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = duration, env = "TRAYSCAN_TIMEOUT", hide_env_values = true)]
    pub(crate) timeout: Option<Duration>,

    /// Extra CA certificate to trust (PEM)
    #[arg(
        long,
        value_name = "FILE",
        env = "TRAYSCAN_CA_CERT",
        hide_env_values = true
    )]
    pub(crate) ca_cert: Option<String>,

    /// Allow unencrypted http to other machines
    #[arg(long, value_name = "BOOL", env = "TRAYSCAN_ALLOW_HTTP", hide_env_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) allow_http: Option<bool>,

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

/// Test the settings, the connection and the credentials
///
/// Tests one step at a time: settings and their sources, connection, TLS, both API versions and the clock.
/// Changes nothing on the service.
///
/// `--probe` then finds out what the API description leaves open, with a few dozen small requests: token
/// lifetime and scope, page size, order, date ranges, the behaviour of v1 above 1000 batches and the answers
/// to invalid requests. Each answer is printed with its evidence. The exit code depends on the steps alone.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) service: ServiceArgs,

    /// Also find out how the service behaves, with a few dozen read-only requests
    #[arg(long, help_heading = None::<&str>)]
    pub(crate) probe: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t, help_heading = None::<&str>)]
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
    /// Print the path of the config file
    Path(ConfigArgs),

    /// Print the current settings and their sources, with secrets masked
    Show(ServiceArgs),

    /// Create a config file with an explanation of every key
    Init(ConfigArgs),
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
