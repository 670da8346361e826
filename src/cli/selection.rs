//! Which batches to read, and from where: the flags of all commands that read many batches.

use std::path::PathBuf;

use clap::Args;

use crate::terminal::When;

use super::service::ServiceArgs;

/// Which batches.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SelectionArgs {
    #[command(flatten)]
    pub(crate) range: RangeArgs,

    /// Keep only batches that match, such as 'crop_type=Tomato'; repeat to add conditions
    ///
    /// EXPR is FIELD OP VALUE, where OP is one of = != < <= > >= and ~ (contains, ignoring case). A batch
    /// must match all conditions. Numbers compare as numbers, dates as points in time, everything else as text,
    /// where upper and lower case differ.
    ///
    /// `FIELD=A,B,C` matches any of several values, and `FIELD!=A,B,C` none of them. In both, `\,` is a comma
    /// in a value, `\\` a backslash, and `\=` an equals sign at its start. Spaces in a value count, but OP may have spaces on both sides.
    ///
    /// Dates have the forms of --start. A period is meant as a whole: `=2026-10-22` is that day, `>2026-10-22`
    /// is after its end, and `<=2026-10` is up to the end of that month.
    ///
    /// `FIELD=` matches null and `FIELD!=` matches all but null; no other condition matches null. Empty text is
    /// not null. Use `warnings` or `!warnings` for the boolean field.
    #[arg(long = "where", value_name = "EXPR")]
    pub(crate) conditions: Vec<String>,

    /// Keep invalid batches where the format allows it, instead of failing
    #[arg(long)]
    pub(crate) lenient: bool,

    /// Exit with code 9 if no batch matches
    #[arg(long)]
    pub(crate) fail_on_empty: bool,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Selection")]
pub(crate) struct RangeArgs {
    /// First date, such as 2026-05-01, 2026-05, today or 7d (7 days ago)
    ///
    /// DATE is a time (2026-05-01T06:00:00Z, or with an offset such as +02:00), a period, or an age (90m, 12h,
    /// 7d, 2w, 3mo, 1y; m is minutes, mo is months).
    ///
    /// A period is a day, month or year (2026-05-01, 2026-05, 2026), an ISO week or a quarter (2026-W18,
    /// 2026-Q2), or a word: `today`, `yesterday`, `this-week`, `last-week`, `this-month`, `last-month`,
    /// `this-quarter`, `last-quarter`, `this-year`, `last-year`. It begins at midnight in the
    /// time zone of --time-zone.
    #[arg(
        long,
        value_name = "DATE",
        visible_alias = "since",
        allow_hyphen_values = true
    )]
    pub(crate) start: Option<String>,

    /// Last date, in the same forms; includes the whole period
    ///
    /// A time is an instant. Whether 2026-05-01T06:00:00Z includes a batch created half a second later
    /// depends on the service.
    #[arg(
        long,
        value_name = "DATE",
        visible_alias = "until",
        allow_hyphen_values = true
    )]
    pub(crate) end: Option<String>,

    /// One period, such as yesterday, last-month, 2026-W18 or 2026-Q2
    ///
    /// The same as `--start PERIOD --end PERIOD`. PERIOD is one of the periods that --start accepts.
    #[arg(
        long,
        value_name = "PERIOD",
        allow_hyphen_values = true,
        conflicts_with_all = ["start", "end"]
    )]
    pub(crate) period: Option<String>,
}

/// Where to read batches from.
#[derive(Args, Clone, Debug)]
pub(crate) struct SourceArgs {
    /// Read batches from an archive of `trayscan sync` instead of the service
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "sandbox",
        help_heading = "Service"
    )]
    pub(crate) archive: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) service: ServiceArgs,

    /// When to show progress; `auto` shows it on a terminal
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, help_heading = None::<&str>)]
    pub(crate) progress: When,
}
