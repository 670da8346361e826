//! `verify`: what a file is held against.

use std::path::PathBuf;

use clap::Args;

use super::selection::RangeArgs;
use super::service::{ReportFormat, ServiceArgs};
use crate::terminal::ProgressMode;

const VERIFY_EXAMPLES: &str = "\
Examples:
  trayscan export -o batches.csv --manifest batches.json
  trayscan verify batches.csv --manifest batches.json
  trayscan verify batches.csv --against archive/batches.ndjson.zst
  trayscan verify batches.csv --service --manifest batches.json
  trayscan verify lake/ --manifest lake/_manifest.json
  trayscan verify may.csv --service --start 2026-05 --end 2026-05
  trayscan verify 'postgres://user@host/db?table=batches' --manifest batches.json
  zstdcat batches.ndjson.zst | trayscan verify - --against batches.csv";

/// Prove that a file holds exactly what a manifest, another file or the service holds
///
/// Reads the batches from the file itself (json, ndjson, csv, tsv or singer, packed or not, xlsx, parquet,
/// sqlite or an archive) and recomputes the set digest, one hash over all of them, independent of their order
/// and of the format. Alone, the file is checked for being whole: every batch has its identifier, none is
/// there twice, and xlsx and parquet match the digest that they carry. Equal ends with code 0 and one line;
/// different with code 7, the first 20 identifiers of each kind, and counts. `missing` batches are on the
/// other side only, `extra` ones in FILE only, `changed` ones on both with other values. Equal means all
/// fields, unless `--fields` asks for certain ones. Nothing is changed anywhere.
///
/// FILE may be a folder, or the template of `export -o`: all exports below it are one set with one verdict.
/// Names that begin with `_` or `.` are left out. `_manifest.json` in the folder is used unless a flag says
/// otherwise.
///
/// In place of FILE, a table of PostgreSQL that `export` wrote: postgres://user@host/db?table=batches (in
/// builds with `--features postgres`). It holds the batches of many exports; those of the manifest's dates,
/// or of `--start` and `--end`, are compared.
#[derive(Args, Clone, Debug)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// File, folder or template to verify; `-` for standard input; a file may be in object storage (s3://, gs://, az://)
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Compare these fields only (a,b,c), or all but some (-a,-b)
    #[arg(long, value_name = "FIELDS", allow_hyphen_values = true)]
    pub(crate) fields: Option<String>,

    /// Compare with the receipt that `export --manifest` wrote
    #[arg(long, value_name = "FILE", conflicts_with_all = ["against", "start", "end"])]
    pub(crate) manifest: Option<PathBuf>,

    /// Compare with another file, in any format that can be verified; `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["refetch", "start", "end"])]
    pub(crate) against: Option<PathBuf>,

    /// Compare with what the service holds now: what the manifest asked for, or the dates given
    #[arg(long = "service", id = "refetch")]
    pub(crate) refetch: bool,

    /// Compare with an archive that `trayscan sync` keeps, in place of the service
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["against", "refetch", "sandbox"]
    )]
    pub(crate) archive: Option<PathBuf>,

    /// How the result is shown
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) format: ReportFormat,

    #[command(flatten)]
    pub(crate) range: RangeArgs,

    #[command(flatten)]
    pub(crate) source: ServiceArgs,

    /// When to show progress; `auto`: when standard error is a terminal
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) progress: ProgressMode,
}
