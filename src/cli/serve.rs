//! `serve`: the service itself.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::words::{listen_address, number};
use crate::server::faults;
use crate::text::duration;

const SERVE_EXAMPLES: &str = "\
Examples:
  trayscan serve
  trayscan serve --listen 127.0.0.1:0 --format json
  trayscan serve --batches 100000 --page-size 1000 --seed 7
  trayscan serve --archive batches.db
  trayscan serve --fault 503:0.1 --fault latency:50ms --fault cursor-expiry:3";

/// Run the batch scan service on this machine
///
/// Answers all of the service's interface, version 1 and version 2, from made-up batches that depend
/// on `--seed` and `--batches` alone, or from the batches of an archive, as they are at the moment. Prints its address and its credentials on standard output, then
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

    /// Serve the batches of an archive that `trayscan sync` keeps, and follow it as it changes
    ///
    /// Each batch is answered exactly as it was received; those that vanished are left out. What is
    /// committed to the archive is there for whoever then asks for a first page, and from then on a
    /// `next_token` of before is refused like one that has expired: no walk mixes two states. The archive
    /// is only read.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "batches",
        help_heading = "Data"
    )]
    pub(crate) archive: Option<PathBuf>,

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
