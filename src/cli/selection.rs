//! Which batches, and where they come from: what every command takes that looks at many.

use std::path::PathBuf;

use clap::Args;

use crate::terminal::ProgressMode;

use super::service::ServiceArgs;

/// Which batches.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SelectionArgs {
    #[command(flatten)]
    pub(crate) range: RangeArgs,

    /// Keep batches where this holds, such as `crop_type=Tomato`; repeatable, all must hold
    ///
    /// FIELD OP VALUE with one of = != < <= > >= and ~ (contains, ignoring case). Numbers compare as
    /// numbers, dates as instants, the rest as text. `FIELD=` is null, `FIELD!=` is not null; null
    /// matches nothing else. `warnings` and `!warnings` for the boolean.
    #[arg(long = "where", value_name = "EXPR")]
    pub(crate) conditions: Vec<String>,

    /// Carry on past batches that break the interface, as far as the format can
    #[arg(long)]
    pub(crate) lenient: bool,

    /// End with code 9 when nothing matches
    #[arg(long)]
    pub(crate) fail_on_empty: bool,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Selection")]
pub(crate) struct RangeArgs {
    /// First date, such as 2026-05-01, 2026-05, today or 7d (for 7 days ago)
    ///
    /// A second (2026-05-01T06:00:00Z, or with an offset), a day, month or year (2026-05-01, 2026-05,
    /// 2026; UTC), `today`, `yesterday`, or that long ago (90m, 12h, 7d, 2w, 3mo, 1y; m is minutes).
    #[arg(
        long,
        value_name = "DATE",
        visible_alias = "since",
        allow_hyphen_values = true
    )]
    pub(crate) start: Option<String>,

    /// Last date, in the same forms; a day, month or year counts whole
    #[arg(
        long,
        value_name = "DATE",
        visible_alias = "until",
        allow_hyphen_values = true
    )]
    pub(crate) end: Option<String>,
}

/// Where batches come from.
#[derive(Args, Clone, Debug)]
pub(crate) struct SourceArgs {
    /// Take batches from an archive that `trayscan sync` keeps; asks no service
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "sandbox",
        help_heading = "Service"
    )]
    pub(crate) archive: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) service: ServiceArgs,

    /// When to show progress; `auto`: when standard error is a terminal
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) progress: ProgressMode,
}
