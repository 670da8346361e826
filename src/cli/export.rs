//! `export`: which batches, and what is made of them.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::selection::{SelectionArgs, SourceArgs};
use crate::batch::COLUMNS;
use crate::formats::Format;
use crate::text::duration;

const EXPORT_EXAMPLES: &str = "\
Examples:
  trayscan export --sandbox
  trayscan export --since 30d -o batches.csv
  trayscan export --start 2026-05 --end 2026-05 -o may.ndjson.zst
  trayscan export --where crop_type=Tomato --where 'avg_germination_rate<80' -f csv
  trayscan export -o 'lake/year={year}/month={month}/batches.csv.gz'
  trayscan export --since 30d -o batches.xlsx
  trayscan export -o batches.parquet
  trayscan export -o batches.sqlite
  trayscan export -o 's3://lake/batches/year={year}/batches.parquet'
  trayscan export --since 30d -o 'postgres://user@host/db?table=batches'
  trayscan export -f singer --state state.json | target-jsonl
  trayscan export -f ndjson | jq -r .batch_name
  trayscan export --archive batches.db --since 30d -o batches.csv
  trayscan export --archive batches.db -o 'lake/{year}/{month}.parquet' --only-changed";

/// Fetch batches and write them in one format
///
/// Writes to standard output, or with `-o` to a file that appears whole or not at all. Every batch of
/// the range is there exactly once; where that cannot be, nothing is published and the exit code tells
/// why.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,

    /// Fields to write, in this order; or fields to leave out, each with a leading minus
    #[arg(
        long,
        value_name = "A,B,…",
        allow_hyphen_values = true,
        help_heading = "Selection",
        long_help = fields_help()
    )]
    pub(crate) fields: Option<String>,

    /// Sort by a field, descending with `:desc` [default: the order of the service]
    #[arg(long, value_name = "FIELD[:desc]", help_heading = "Selection")]
    pub(crate) sort: Option<String>,

    /// End after so many batches
    #[arg(long, value_name = "N", help_heading = "Selection")]
    pub(crate) limit: Option<u64>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct OutputArgs {
    /// File to write; `.gz` or `.zst` at its end compresses [default: standard output]
    ///
    /// With {year}, {month}, {day} (of batch_creation_date, in UTC) or {crop_type} in its name, one file
    /// per value, in folders that are made as needed: 'lake/year={year}/month={month}/batches.csv.gz'.
    /// s3://bucket/name, gs://bucket/name and az://container/name put it into object storage, with the
    /// credentials that the variables of each cloud give (in builds with the feature `cloud`).
    ///
    /// 'postgres://user@host/db?table=batches' brings a table of PostgreSQL up to date by batch_id, all at
    /// once or not at all (in builds with `--features postgres`). What the address leaves out comes from
    /// PGHOST, PGPORT, PGUSER and PGDATABASE; the password best from ~/.pgpass, PGPASSFILE or PGPASSWORD.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Format [default: by the ending of FILE, else table on a terminal and ndjson in a pipe]
    #[arg(short, long, value_enum)]
    pub(crate) format: Option<Format>,

    /// Do not replace a file that exists
    #[arg(long)]
    pub(crate) no_clobber: bool,

    /// Write a receipt (JSON) of the export: what was asked for, counts, digests
    ///
    /// With {year}, {month}, {day} or {crop_type} in the name of `-o`, FILE may be left out: the receipt is then
    /// `_manifest.json` in the folder before the first of them. Engines that read the folder skip this name.
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    #[allow(
        clippy::option_option,
        reason = "the flag may be absent, alone or named"
    )]
    pub(crate) manifest: Option<Option<PathBuf>>,

    /// Rewrite only the files in which batches changed since the manifest (with --archive)
    ///
    /// For one file per value, as in 'lake/year={year}/month={month}/batches.parquet'. A file is also rewritten
    /// if it is missing or of another size than the manifest says, and removed when its last batch is gone. Writes
    /// nothing if nothing has changed, and everything if there is no manifest or it was made with other fields, format,
    /// filters or names. The manifest is `_manifest.json`, unless `--manifest` names another.
    #[arg(long, conflicts_with_all = ["no_clobber", "limit", "state"])]
    pub(crate) only_changed: bool,

    /// Write an empty `_SUCCESS` file last, in the folder before the first {…} of `-o`
    ///
    /// A job that waits for it starts when all files and the manifest are in their places. It is removed before the first file
    /// is replaced.
    #[arg(long)]
    pub(crate) success_marker: bool,

    /// json, ndjson: decimals as numbers, with the same digits
    #[arg(long)]
    pub(crate) numbers: bool,

    /// singer: continue from the STATE that an earlier run ended with, or from an empty file
    #[arg(long, value_name = "FILE", conflicts_with = "start")]
    pub(crate) state: Option<PathBuf>,

    /// singer: how much before that is sent again, for batches that came late or changed [default: 7d]
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "state")]
    pub(crate) lookback: Option<Duration>,

    /// csv, tsv: what stands between cells [default: a comma, or a tab]
    #[arg(long, value_name = "C", allow_hyphen_values = true)]
    pub(crate) delimiter: Option<String>,

    /// csv, tsv: a decimal comma (and `;` between cells)
    #[arg(long)]
    pub(crate) decimal_comma: bool,

    /// csv, tsv: begin with a byte order mark
    #[arg(long)]
    pub(crate) bom: bool,

    /// csv, tsv: no line of names
    #[arg(long)]
    pub(crate) no_header: bool,

    /// csv, tsv: for a double click in Excel: byte order mark, CRLF, no cell runs as a formula
    #[arg(long)]
    pub(crate) excel: bool,
}

/// Returns the help of `--fields`, with every field and its heading in tables.
fn fields_help() -> String {
    let mut text = String::from(
        "Fields to write, in this order (a,b,c); or fields to leave out (-a,-b).\n\nThe fields, with their headings in tables:\n",
    );
    for column in &COLUMNS {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{:28}  {}", column.name, column.label);
    }
    text
}
