//! The service and its settings, and the commands that are about nothing else: `check` and `config`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::client::Api;
use crate::text::duration;

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

/// Try credentials and service, and tell what was found
///
/// Goes step by step: settings and where they come from, connection, TLS, both versions, the clock.
/// Nothing is changed anywhere. With `--probe`, a few dozen small requests more find out what the
/// interface leaves open: how long tokens live and where they are good, how pages, orders and ranges
/// work, what version 1 does above 1000 batches, how bad requests are refused. Each answer stands with
/// its evidence; the exit code is that of the steps.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) service: ServiceArgs,

    /// Find out what the interface leaves open, with a few dozen requests that only read
    #[arg(long)]
    pub(crate) probe: bool,

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
