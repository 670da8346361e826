//! `sync`: an archive that is kept true to the service.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};

use super::service::ServiceArgs;
use crate::terminal::ProgressMode;
use crate::text::duration;

const SYNC_EXAMPLES: &str = "\
Examples:
  trayscan sync batches.db
  trayscan sync batches.db --start 2026-01
  trayscan sync batches.db --full
  trayscan sync batches.db --status
  trayscan sync batches.db --changes --since yesterday -f csv
  trayscan export --archive batches.db -o batches.csv";

/// Bring a local archive up to date, again and again
///
/// The archive is one SQLite file. The first run fetches everything, or from `--start`; later runs fetch
/// what came since, with the days of `--lookback` again, for batches that came late or changed. New
/// batches are added, changed ones replaced, and what they were before is kept. A run that is killed loses
/// nothing, and the next one carries on.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = SYNC_EXAMPLES,
    group = ArgGroup::new("listing").args(["status", "changes"])
)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct SyncArgs {
    /// The archive; made where there is none
    #[arg(value_name = "ARCHIVE")]
    pub(crate) archive: PathBuf,

    /// Where a new archive begins, or an old one is to reach back to; with `--changes`, from when on
    ///
    /// A second (2026-05-01T06:00:00Z, or with an offset), a day, month or year (2026-05-01, 2026-05,
    /// 2026; UTC), `today`, `yesterday`, or that long ago (90m, 12h, 7d, 2w, 3mo, 1y; m is minutes).
    #[arg(
        long,
        value_name = "DATE",
        visible_alias = "since",
        allow_hyphen_values = true,
        conflicts_with = "status"
    )]
    pub(crate) start: Option<String>,

    /// How much of what is complete is looked at again, for batches that came late or changed
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "7d", conflicts_with = "listing")]
    pub(crate) lookback: Duration,

    /// Fetch all again, and find out which batches vanished from the service
    #[arg(long, conflicts_with = "listing")]
    pub(crate) full: bool,

    /// How long to wait for another run that holds the archive [default: not at all]
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "listing")]
    pub(crate) wait: Option<Duration>,

    /// Carry on past batches that break the interface: as received, their columns null
    #[arg(long, conflicts_with = "listing")]
    pub(crate) lenient: bool,

    /// Show what is complete, day by day, and the last runs; asks no service
    #[arg(long, help_heading = "Instead")]
    pub(crate) status: bool,

    /// List what was added, what changed and what vanished; asks no service
    #[arg(long, help_heading = "Instead")]
    pub(crate) changes: bool,

    /// Format of the list [default: table on a terminal, else ndjson; of `--status`: table]
    #[arg(
        short,
        long,
        value_enum,
        requires = "listing",
        help_heading = "Instead"
    )]
    pub(crate) format: Option<ListFormat>,

    #[command(flatten)]
    pub(crate) service: ServiceArgs,

    /// When to show progress; `auto`: when standard error is a terminal
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) progress: ProgressMode,
}

/// What a list is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Table,
    Json,
    Ndjson,
    Csv,
}
