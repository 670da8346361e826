//! `summary`: what batches are grouped by, and how the figures are shown.

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
  trayscan summary --since 30d -o crops.csv";

/// Show figures per crop, month, week, day or person
///
/// For each group: batches and images, germination rate and usable rate, the gap between them, seedling size,
/// coefficient of variation, batches with warnings, and the usable rate over time. A batch is an average
/// already, so what is shown is the median of batches, each counted alike, with the quartiles around it; the
/// mean beside it weighs each batch with its images. Values that are null are left out and counted.
///
/// All arithmetic is exact; only what is shown is rounded, half up, to two digits. Quartiles are by linear
/// interpolation between the nearest ranks (type 7 in R, QUARTILE.INC in Excel).
#[derive(Args, Clone, Debug)]
#[command(after_help = SUMMARY_EXAMPLES)]
pub(crate) struct SummaryArgs {
    /// What makes a group; several, with commas between them, make one for each combination
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

    /// Format [default: by the ending of FILE, else table]
    #[arg(short, long, value_enum, help_heading = "Output")]
    pub(crate) format: Option<SummaryFormat>,

    /// File to write; `.gz` or `.zst` at its end compresses [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Do not replace a file that exists
    #[arg(long, help_heading = "Output")]
    pub(crate) no_clobber: bool,

    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

/// What a summary is written as.
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
            Self::CropType => "The crop",
            Self::Month => "Month of creation (UTC), such as 2026-05",
            Self::Week => "ISO week of creation (UTC), such as 2026-W07",
            Self::Day => "Day of creation (UTC), such as 2026-05-01",
            Self::Person => "Who scanned; shows e-mail addresses",
        };
        Some(PossibleValue::new(self.name()).help(help))
    }
}
