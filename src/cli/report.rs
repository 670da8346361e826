//! `report`: one HTML page with charts.

use std::path::PathBuf;

use clap::Args;

use super::selection::{SelectionArgs, SourceArgs};
use crate::analysis::statistics::Step;

const REPORT_EXAMPLES: &str = "\
Examples:
  trayscan report --sandbox -o report.html --open
  trayscan report --since 12w -o report.html
  trayscan report --start 2026 --step month --archive batches.db -o 2026.html
  trayscan report --since 12w --where crop_type=Tomato --title 'Tomato, house 3' -o tomato.html";

/// Write an HTML report with charts, for the browser or for print
///
/// The report is one file without scripts; it needs no network. It says first which crops are down: each is
/// judged on the newest week (or day, or month), compared with its own previous four. Then it lists the batches
/// that need attention, by crop, and shows charts and data that looks wrong. Set your own targets in the
/// config file: `[targets."Tomato"]` with `usable_rate_min = 90`.
#[derive(Args, Clone, Debug)]
#[command(after_help = REPORT_EXAMPLES)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,

    /// File to write, such as report.html [default: standard output, unless it is a terminal]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Fail with code 8 if the file exists, instead of replacing it
    #[arg(long, help_heading = "Output")]
    pub(crate) no_clobber: bool,

    /// Length of the periods to compare
    #[arg(
        long,
        value_enum,
        default_value_t = Step::Week,
        help_heading = "Output"
    )]
    pub(crate) step: Step,

    /// Open the page in the browser
    #[arg(long, help_heading = "Output")]
    pub(crate) open: bool,

    /// Title of the page, such as the name of the nursery
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "Tray scans",
        help_heading = "Output"
    )]
    pub(crate) title: String,

    /// Show the e-mail address of the person who scanned each batch that needs attention
    #[arg(long, help_heading = "Output")]
    pub(crate) emails: bool,

    #[command(flatten)]
    pub(crate) source: SourceArgs,
}
