//! `export`: which batches, and how to write them.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::selection::{SelectionArgs, SourceArgs};
use super::values::number;
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
  trayscan export -f singer --state state.json | target-jsonl >> state.json
  trayscan export -f ndjson | jq -r .batch_name
  trayscan export --archive batches.db --since 30d -o batches.csv
  trayscan export --archive batches.db -o 'lake/{year}/{month}.parquet' --only-changed";

/// Fetch batches and write them to a file or to standard output
///
/// Writes every batch of the date range exactly once. If that fails, no file is written, an existing file
/// stays unchanged, and the exit code says why.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,

    /// Fields to write, in this order (a,b,c), or to leave out (-a,-b)
    #[arg(
        long,
        value_name = "A,B,…",
        allow_hyphen_values = true,
        help_heading = "Selection",
        long_help = fields_help()
    )]
    pub(crate) fields: Option<String>,

    /// Sort by one or more fields; `:desc` sorts in descending order [default: order of the service]
    ///
    /// `crop_type,avg_usable_seedling_rate:desc` sorts by crop, and by rate within each crop. Batches that are
    /// equal in all fields are sorted by batch_creation_date, then by batch_id. Nulls are last, even in
    /// descending order.
    #[arg(long, value_name = "FIELD[:desc],…", help_heading = "Selection")]
    pub(crate) sort: Option<String>,

    /// Stop after N batches
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = |word: &str| number::<u64>(word, 0, u64::MAX, 100),
        help_heading = "Selection"
    )]
    pub(crate) limit: Option<u64>,

    /// Show what would be requested and written, without doing it
    ///
    /// Sends no request and writes no file. Needs the same settings as the run itself, and finds the same
    /// mistakes in them.
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct OutputArgs {
    /// File to write; `.gz` or `.zst` compresses it [default: standard output]
    ///
    /// A file appears complete or not at all.
    ///
    /// {year}, {month}, {day} (of batch_creation_date, in UTC) and {crop_type} in the name write one file
    /// per value and create folders as needed: 'lake/year={year}/month={month}/batches.csv.gz'.
    ///
    /// s3://bucket/name, gs://bucket/name and az://container/name write to object storage, with credentials
    /// from the usual environment variables of each cloud (in builds with `--features cloud`).
    ///
    /// 'postgres://user@host/db?table=batches' updates a PostgreSQL table by batch_id, in one transaction (in
    /// builds with `--features postgres`). PGHOST, PGPORT, PGUSER and PGDATABASE supply what the address
    /// leaves out. Keep the password in ~/.pgpass, PGPASSFILE or PGPASSWORD.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Output format [default: from the extension of FILE]
    ///
    /// Without FILE, the default is table on a terminal and ndjson in a pipe.
    #[arg(short, long, value_enum)]
    pub(crate) format: Option<Format>,

    /// Fail with code 8 if the file exists, instead of replacing it
    #[arg(long)]
    pub(crate) no_clobber: bool,

    /// Write a manifest (JSON) with the request, counts and checksums
    ///
    /// `trayscan verify` checks an export against its manifest. If `-o` contains {year}, {month}, {day} or
    /// {crop_type}, FILE defaults to `_manifest.json` in the folder before the first of them. Spark,
    /// pyarrow and pandas skip that name; give DuckDB and Polars a pattern such as 'lake/**/*.parquet'.
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    #[allow(
        clippy::option_option,
        reason = "the flag may be absent, alone or named"
    )]
    pub(crate) manifest: Option<Option<PathBuf>>,

    /// Rewrite only the files whose batches changed since the manifest (with --archive)
    ///
    /// For exports with one file per value, such as 'lake/year={year}/month={month}/batches.parquet'. Also
    /// rewrites a file that is missing, has another size or was modified later, and removes a file whose last
    /// batch is gone. Writes nothing if nothing changed. Writes everything if there is no manifest, or if it
    /// was written with other fields, another format, other filters or other names. The manifest is
    /// `_manifest.json`, unless `--manifest` names another.
    #[arg(long, conflicts_with_all = ["no_clobber", "limit", "state"])]
    pub(crate) only_changed: bool,

    /// Write an empty `_SUCCESS` file last, in the folder before the first {…} of `-o`
    ///
    /// Other jobs can wait for it: it exists only while all files and the manifest are complete. It is
    /// removed before the first file is replaced.
    #[arg(long)]
    pub(crate) success_marker: bool,

    /// json, ndjson: write decimals as numbers instead of strings, with the same digits
    #[arg(long)]
    pub(crate) numbers: bool,

    /// singer: continue from the last STATE of an earlier run; an empty file starts anew
    ///
    /// The state decides where the run starts, so --start and --period are refused.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["start", "period"])]
    pub(crate) state: Option<PathBuf>,

    /// singer: with --state, how far back to fetch again, to find late and changed batches [default: 7d]
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "state")]
    pub(crate) lookback: Option<Duration>,

    /// csv, tsv: cell separator, such as ';', or `tab` [default: comma in csv, tab in tsv]
    #[arg(long, value_name = "C", allow_hyphen_values = true)]
    pub(crate) delimiter: Option<String>,

    /// csv, tsv: write a decimal comma; csv then separates cells with `;`
    #[arg(long)]
    pub(crate) decimal_comma: bool,

    /// csv, tsv: start with a byte order mark
    #[arg(long)]
    pub(crate) bom: bool,

    /// csv, tsv: leave out the header line
    #[arg(long)]
    pub(crate) no_header: bool,

    /// csv, tsv: write for Excel: byte order mark, CRLF, dates that it reads, no text that runs as a formula
    #[arg(long)]
    pub(crate) excel: bool,
}

/// Returns the help of `--fields`, with every field and its heading in tables.
fn fields_help() -> String {
    let mut text = String::from(
        "Fields to write, in this order (a,b,c), or to leave out (-a,-b).\n\nFields and their headings in tables:\n",
    );
    for column in &COLUMNS {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{:28}  {}", column.name, column.label);
    }
    text
}
