//! `verify`: what to compare a file with.

use std::path::PathBuf;

use clap::Args;

use super::selection::RangeArgs;
use super::service::ServiceArgs;
use crate::terminal::{MessageFormat, When};

const VERIFY_EXAMPLES: &str = "\
Examples:
  trayscan export -o batches.csv --manifest batches.json
  trayscan verify batches.csv --manifest batches.json
  trayscan verify batches.csv --against archive/batches.ndjson.zst
  trayscan verify batches.csv --service --manifest batches.json
  trayscan verify lake/ --manifest lake/_manifest.json
  trayscan verify may.csv --service --period 2026-05
  trayscan verify 'postgres://user@host/db?table=batches' --manifest batches.json
  zstdcat batches.ndjson.zst | trayscan verify - --against batches.csv";

/// Check a file against a manifest, another file or the service
///
/// Reads the batches from FILE (json, ndjson, csv, tsv and singer, also compressed; xlsx, parquet, sqlite or
/// an archive) and computes their digest: one hash over all batches, whatever their order or format. Compares
/// all fields, unless `--fields` selects some. Without anything to compare with, checks that FILE is intact:
/// every batch has an identifier, none appears twice, and xlsx and parquet match their embedded digest.
///
/// Exits with code 0 if equal. Exits with code 7 if different, and lists the first 20 batches of each kind
/// with counts: `missing` from FILE, `extra` in FILE, or `changed`. Nothing is modified.
///
/// FILE can also be a folder or a template of `export -o`: all exports below it are compared as one set.
/// Names that start with `_` or `.` are skipped. `_manifest.json` in the folder is the default manifest.
///
/// FILE can also be a PostgreSQL table that `export` wrote, postgres://user@host/db?table=batches (in builds
/// with `--features postgres`). Only the dates of the manifest, or of `--start` and `--end` or `--period`,
/// are compared.
#[derive(Args, Clone, Debug)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// File, folder or template to check; `-` reads standard input; s3://, gs:// and az:// also work
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Compare only these fields (a,b,c), or all but these (-a,-b)
    #[arg(long, value_name = "FIELDS", allow_hyphen_values = true)]
    pub(crate) fields: Option<String>,

    /// Compare with a manifest from `export --manifest`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["against", "start", "end", "period"])]
    pub(crate) manifest: Option<PathBuf>,

    /// Compare with another file, in any format; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["refetch", "start", "end", "period"])]
    pub(crate) against: Option<PathBuf>,

    /// Compare with the service, for the request in the manifest, or for --start and --end or --period
    #[arg(long = "service", id = "refetch")]
    pub(crate) refetch: bool,

    /// Compare with an archive of `trayscan sync` instead of the service
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["against", "refetch", "sandbox"]
    )]
    pub(crate) archive: Option<PathBuf>,

    /// Output format
    ///
    /// `json` prints one object. All keys are always present. `equal` is the result. `missing`, `extra`, `changed`
    /// and `repeated` each have a `count` and the first 20 `ids`; the first three are null if there was nothing to
    /// compare batch by batch. `fields` were compared, `not_compared` were not, and FILE has no column for
    /// `lacking`. `unknown_fields` is `equal`, `different`, `absent` or `not_compared`. `file` is its name; `batches`,
    /// `digest` and `digest_version` are those of FILE; `claim` (embedded in FILE), `manifest` and `against` are what it
    /// was compared with, or null.
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) format: MessageFormat,

    #[command(flatten)]
    pub(crate) range: RangeArgs,

    #[command(flatten)]
    pub(crate) source: ServiceArgs,

    /// When to show progress; `auto` shows it on a terminal
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, help_heading = None::<&str>)]
    pub(crate) progress: When,
}
