//! `summary`: how to group batches, and how to show the statistics.

use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::selection::{SelectionArgs, SourceArgs};
use crate::analysis::statistics::By;

const SUMMARY_EXAMPLES: &str = "\
Examples:
  trayscan summary --sandbox
  trayscan summary --since 12w --by week
  trayscan summary --start 2026 --by crop_type,month
  trayscan summary --where crop_type=Tomato --by scanned_by_email
  trayscan summary --archive batches.db --by month -f json | jq .total
  trayscan summary --since 30d -o crops.csv
  trayscan summary --since 12w --fail-on down,target; [ $? = 10 ] && echo 'look at the crops'
  trayscan summary --since 12w -f json | jq '.groups[] | select(.verdict==\"down\")'";

/// Show statistics per crop, month, week, day or person
///
/// Shows for each group: batches and images, germination rate and usable rate, the gap between them,
/// seedling size, coefficient of variation, batches with warnings, and the usable rate over time.
///
/// Each crop is judged on the newest week: it is down or up if its median usable rate differs from that of its own
/// previous four weeks by at least 2 points and 3 standard errors. Fewer than 3 batches are not judged.
///
/// Each batch is already an average, so the summary shows the median of the batches with its quartiles, and
/// the mean weighted by images. Null values are left out and counted.
///
/// Calculations are exact; only the output is rounded, half up, to two decimals. Quartiles use linear
/// interpolation (type 7 in R, QUARTILE.INC in Excel).
#[derive(Args, Clone, Debug)]
#[command(after_help = SUMMARY_EXAMPLES)]
pub(crate) struct SummaryArgs {
    /// Group by these fields; several make one group per combination
    #[arg(
        long,
        value_name = "A,B,…",
        value_enum,
        value_delimiter = ',',
        default_value = "crop_type",
        help_heading = "Output"
    )]
    pub(crate) by: Vec<By>,

    #[command(flatten)]
    pub(crate) selection: SelectionArgs,

    /// Output format [default: from the extension of FILE, else table]
    #[arg(short, long, value_enum, help_heading = "Output")]
    pub(crate) format: Option<SummaryFormat>,

    /// File to write; `.gz` or `.zst` compresses it [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Fail with code 8 if the file exists, instead of replacing it
    #[arg(long, help_heading = "Output")]
    pub(crate) no_clobber: bool,

    /// Exit with code 10 if a crop is down, misses a target, or has a batch that needs attention
    ///
    /// Only the newest week counts. The summary is complete all the same.
    #[arg(
        long,
        value_name = "A,B,…",
        value_enum,
        value_delimiter = ',',
        help_heading = "Output"
    )]
    pub(crate) fail_on: Vec<FailOn>,

    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

/// What `summary` raises an alarm for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// A crop is down compared with its own previous four weeks
    Down,
    /// The newest week of a crop misses one of your targets
    Target,
    /// A batch of the newest week needs attention, as in the report
    Attention,
}

/// The format of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SummaryFormat {
    Table,
    Json,
    Csv,
}

impl ValueEnum for By {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::CropType => "Crop",
            Self::Month => "Month of creation, such as 2026-05",
            Self::Week => "ISO week of creation, such as 2026-W07",
            Self::Day => "Day of creation, such as 2026-05-01",
            Self::Person => "Person who scanned; shows e-mail addresses",
        };
        Some(PossibleValue::new(self.name()).help(help))
    }
}
