//! `serve`: the service itself.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::{listen_address, number};
use crate::server::faults;
use crate::terminal::MessageFormat;
use crate::text::duration;

const SERVE_EXAMPLES: &str = "\
Examples:
  trayscan serve
  trayscan serve --listen 127.0.0.1:0 --format json
  trayscan serve --batches 100000 --page-size 1000 --seed 7
  trayscan serve --archive batches.db
  trayscan serve --fault 503:0.1 --fault latency:50ms --fault cursor-expiry:3";

/// Run the batch scan service locally, with demo data or from an archive
///
/// Serves the whole API, versions 1 and 2. Demo data depends only on `--seed` and `--batches`. Prints its
/// URL and credentials on standard output, then runs until Ctrl-C, SIGTERM or SIGHUP. It then finishes open requests
/// for up to 10 s and exits with code 0. A second signal stops it immediately.
#[derive(Args, Clone, Debug)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Address and port to listen on; port 0 picks a free port
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8080",
        value_parser = listen_address
    )]
    pub(crate) listen: SocketAddr,

    /// Format of the printed URL and credentials; `json` prints one line
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) format: MessageFormat,

    /// Serve the batches of an archive of `trayscan sync`, and follow its changes
    ///
    /// Serves each batch exactly as received, without vanished ones. When the archive changes, the next
    /// request for a first page sees the new state, and older values of `next_token` are refused as expired,
    /// so that no walk from page to page mixes two states. The archive is only read.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "batches",
        help_heading = "Data"
    )]
    pub(crate) archive: Option<PathBuf>,

    /// Number of batches to generate
    #[arg(
        long,
        value_name = "N",
        default_value_t = 250,
        allow_negative_numbers = true,
        value_parser = |word: &str| number::<u32>(word, 0, 20_000_000, 1000),
        help_heading = "Data"
    )]
    pub(crate) batches: u32,

    /// Seed of the generated batches and of the faults
    #[arg(
        long,
        value_name = "S",
        default_value_t = 1,
        allow_negative_numbers = true,
        value_parser = |word: &str| number::<u64>(word, 0, u64::MAX, 7),
        help_heading = "Data"
    )]
    pub(crate) seed: u64,

    /// Client ID to accept; TRAYSCAN_CLIENT_ID is ignored here
    #[arg(
        long,
        value_name = "ID",
        default_value = "sandbox",
        help_heading = "Access"
    )]
    pub(crate) client_id: String,

    /// Client secret to accept; TRAYSCAN_CLIENT_SECRET is ignored here [default: random]
    #[arg(long, value_name = "SECRET", help_heading = "Access")]
    pub(crate) client_secret: Option<String>,

    /// Lifetime of a token
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "15m",
        value_parser = duration,
        help_heading = "Access"
    )]
    pub(crate) token_ttl: Duration,

    /// Batches per page in version 2
    #[arg(
        long,
        value_name = "N",
        default_value_t = 500,
        allow_negative_numbers = true,
        value_parser = |word: &str| number::<u32>(word, 1, u32::MAX, 500),
        help_heading = "Behaviour"
    )]
    pub(crate) page_size: u32,

    /// Maximum number of batches in version 1 [default: none, or 1000 with a v1 fault]
    ///
    /// Version 1 cuts off larger answers, or refuses them with `--fault v1-refuse`.
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = |word: &str| number::<u32>(word, 1, u32::MAX, 1000),
        help_heading = "Behaviour"
    )]
    pub(crate) v1_limit: Option<u32>,

    /// Simulate a fault; can be repeated (see --help for the list)
    #[arg(
        long = "fault",
        value_name = "NAME[:VALUE]",
        help_heading = "Behaviour",
        long_help = faults::help()
    )]
    pub(crate) faults: Vec<String>,
}
