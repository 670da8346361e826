//! `sync`: keep an archive in sync with the service.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};

use super::service::ServiceArgs;
use crate::terminal::When;
use crate::text::duration;

const SYNC_EXAMPLES: &str = "\
Examples:
  trayscan sync batches.db
  trayscan sync batches.db --start 2026-01
  trayscan sync batches.db --full
  trayscan sync batches.db --status
  trayscan sync batches.db --status --max-age 26h
  trayscan sync batches.db --rebind --base-url https://new.example.com/api
  trayscan sync batches.db --changes --since yesterday -f csv
  trayscan export --archive batches.db -o batches.csv";

/// Keep a local archive in sync with the service
///
/// The archive is a SQLite file. The first run fetches everything, or everything since `--start`. Later runs fetch
/// what is new, and the last days again (`--lookback`) to find late and changed batches. New batches are
/// added; changed batches are replaced, and their earlier versions are kept. If a run is killed, nothing is
/// lost, and the next run continues.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = SYNC_EXAMPLES,
    group = ArgGroup::new("listing").args(["status", "changes"])
)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct SyncArgs {
    /// Archive file; created if it does not exist
    #[arg(value_name = "ARCHIVE")]
    pub(crate) archive: PathBuf,

    /// First date of the archive, or of the changes with --changes
    ///
    /// An earlier date than before extends an existing archive. DATE is a time (2026-05-01T06:00:00Z, or with
    /// an offset such as +02:00), a period (its first second counts), or an age (90m, 12h, 7d, 2w, 3mo, 1y; m is
    /// minutes, mo is months).
    ///
    /// A period is a day, month or year (2026-05-01, 2026-05, 2026), an ISO week or a quarter (2026-W18,
    /// 2026-Q2), or a word: `today`, `yesterday`, `this-week`, `last-week`, `this-month`, `last-month`,
    /// `this-quarter`, `last-quarter`, `this-year`, `last-year`. It begins at midnight in the
    /// time zone of --time-zone.
    #[arg(
        long,
        value_name = "DATE",
        visible_alias = "since",
        allow_hyphen_values = true,
        conflicts_with = "status"
    )]
    pub(crate) start: Option<String>,

    /// How far back to fetch again, to find late and changed batches
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "7d", conflicts_with = "listing")]
    pub(crate) lookback: Duration,

    /// Fetch everything again, and find batches that are gone from the service
    ///
    /// Requests the whole range at once, one page after another, so that batches without a date are found, too.
    #[arg(long, conflicts_with = "listing")]
    pub(crate) full: bool,

    /// Wait up to this long if another run uses the archive [default: do not wait]
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "listing")]
    pub(crate) wait: Option<Duration>,

    /// Keep invalid batches as received, with null columns, instead of failing
    ///
    /// Later runs, and exports from the archive, then need `--lenient`, too, as long as the archive has such a batch.
    #[arg(long, conflicts_with = "listing")]
    pub(crate) lenient: bool,

    /// Record the base URL and the client ID of the settings as those of the archive; sends no request
    ///
    /// For the same service at a new address, or the same client with a new ID. The batches stay as they are.
    #[arg(
        long,
        conflicts_with_all = ["listing", "max_age", "format", "start", "lookback", "full", "lenient", "sandbox"]
    )]
    pub(crate) rebind: bool,

    /// Show which days are complete, and the last runs; sends no request
    #[arg(long, help_heading = "Inspect the archive")]
    pub(crate) status: bool,

    /// Exit with code 10 if the archive has gaps, or its complete part is older than this
    ///
    /// The status is printed first. The code is also 10 if there is no archive, or if no run has finished yet.
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "status", conflicts_with = "changes", help_heading = "Inspect the archive")]
    pub(crate) max_age: Option<Duration>,

    /// List batches that were added, changed, vanished or returned; sends no request
    #[arg(long, help_heading = "Inspect the archive")]
    pub(crate) changes: bool,

    /// Format of --status or --changes
    ///
    /// --status supports text (the default), json, and prometheus: metrics for the textfile collector of
    /// node_exporter. --changes supports table, json, ndjson and csv; the default is table on a terminal, and ndjson
    /// otherwise. trayscan-archive(5) lists the keys, the metrics and the columns.
    #[arg(
        short,
        long,
        value_enum,
        requires = "listing",
        help_heading = "Inspect the archive"
    )]
    pub(crate) format: Option<ListFormat>,

    #[command(flatten)]
    pub(crate) service: ServiceArgs,

    /// When to show progress; `auto` shows it on a terminal
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, help_heading = None::<&str>)]
    pub(crate) progress: When,
}

/// What a list is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Text,
    Table,
    Json,
    Ndjson,
    Csv,
    Prometheus,
}
