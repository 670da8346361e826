//! What `-o` and `-f` mean together: where to, in which format, compressed or not.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;

use super::output::Compression;
use super::place::Place;
use super::template::Template;
use crate::cli::{Format, OutputArgs};
use crate::error::{Failure, Kind};

/// Where an export goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Destination {
    pub(crate) place: Place,
    /// Its name, where it names one file per value.
    pub(crate) template: Option<Template>,
    pub(crate) format: Format,
    pub(crate) compression: Compression,
}

const ENDINGS: [(&str, Format); 9] = [
    ("json", Format::Json),
    ("ndjson", Format::Ndjson),
    ("jsonl", Format::Ndjson),
    ("csv", Format::Csv),
    ("tsv", Format::Tsv),
    ("xlsx", Format::Xlsx),
    ("parquet", Format::Parquet),
    ("sqlite", Format::Sqlite),
    ("db", Format::Sqlite),
];

impl Destination {
    pub(crate) fn new(args: &OutputArgs) -> Result<Self, Failure> {
        check_manifest(args)?;
        check_state(args)?;
        let place = Place::new(args.output.as_deref())?;
        #[cfg(feature = "postgres")]
        if let Place::Table(_) = place {
            check_table(args)?;
            return Ok(Self {
                place,
                template: None,
                format: Format::Postgres,
                compression: Compression::None,
            });
        }
        let Some(path) = place.path() else {
            let by_stream = if std::io::stdout().is_terminal() {
                Format::Table
            } else {
                Format::Ndjson
            };
            let format = args.format.unwrap_or(by_stream);
            check_flags(args, format)?;
            if format.needs_file() {
                let name = format.name();
                return Err(
                    usage(format!("{name} cannot be written to standard output"))
                        .hint(format!("name a file: `-o batches.{name}`")),
                );
            }
            return Ok(Self {
                place,
                template: None,
                format,
                compression: Compression::None,
            });
        };
        refuse_slips(&path, args)?;
        let (compression, inner) = compression(&path);
        let Some(format) = args.format.or_else(|| by_ending(&inner)) else {
            return Err(usage(format!("the name `{}` does not tell the format", path.display()))
                    .hint("add `--format`, or end it with .json, .ndjson, .jsonl, .csv, .tsv (and .gz or .zst), .xlsx, .parquet, .sqlite or .db"));
        };
        check_flags(args, format)?;
        if format.needs_file() && compression != Compression::None {
            let name = format.name();
            return Err(
                usage(format!("`{}`: {name} is not compressed", path.display()))
                    .hint("leave .gz or .zst away"),
            );
        }
        Ok(Self {
            template: Template::parse(&path)?,
            place,
            format,
            compression,
        })
    }

    /// Names the place in messages.
    pub(crate) fn name(&self) -> String {
        self.place.name()
    }
}

fn usage(message: String) -> Failure {
    Failure::new(Kind::Usage, message)
}

/// Catches what was meant otherwise.
fn refuse_slips(path: &Path, args: &OutputArgs) -> Result<(), Failure> {
    let text = path.to_string_lossy();
    let is_format = Format::from_str(&text, false).is_ok();
    if is_format && args.format.is_none() && !path.exists() {
        return Err(
            usage(format!("`-o {text}` would write a file of that name")).hint(format!(
                "did you mean `--format {text}`? else write `-o ./{text} --format {text}`"
            )),
        );
    }
    if path.is_dir() {
        return Err(Failure::new(
            Kind::Output,
            format!("cannot write to `{text}`: it is a folder"),
        )
        .hint("it is a folder: name a file in it"));
    }
    if text.ends_with(std::path::is_separator) {
        return Err(usage(format!("`-o {text}` is the name of a folder"))
            .hint("name a file in it, or leave the end away"));
    }
    let spreadsheet = [".xls", ".ods"]
        .iter()
        .any(|ending| text.to_lowercase().ends_with(ending));
    if spreadsheet {
        return Err(usage(format!("`-o {text}`: this format cannot be written"))
            .hint("every spreadsheet program opens this one: `-o batches.xlsx`"));
    }
    Ok(())
}

/// Refuses what a table has no use for.
#[cfg(feature = "postgres")]
fn check_table(args: &OutputArgs) -> Result<(), Failure> {
    if let Some(format) = args.format {
        return Err(usage(format!(
            "`--format {}` is for files, and the address is that of a table",
            format.name()
        ))
        .hint("leave it out: a table has types of its own"));
    }
    if args.no_clobber {
        return Err(usage(
            "`--no-clobber` is for files: a table is added to, and never replaced".to_owned(),
        )
        .hint("leave it out, or name a table that is not there yet with `table=`"));
    }
    let name = args.output.as_deref().map(Path::to_string_lossy);
    let words = ["{year}", "{month}", "{day}", "{crop_type}"];
    let is_in = |word: &&&str| name.as_ref().is_some_and(|name| name.contains(**word));
    if let Some(word) = words.iter().find(is_in) {
        return Err(usage(format!(
            "`{word}` is for the names of files, and the address is that of a table"
        ))
        .hint("one table holds all of them: choose with `where` in SQL"));
    }
    check_flags(args, Format::Postgres)
}

/// Keeps the receipt away from the data.
fn check_manifest(args: &OutputArgs) -> Result<(), Failure> {
    let Some(manifest) = args.manifest.as_deref() else {
        return Ok(());
    };
    let place = Place::new(Some(manifest))?;
    if place.is_stdout() {
        return Err(usage("`--manifest` needs a file".to_owned())
            .hint("standard output is for the data: name a file for the receipt"));
    }
    if Place::new(args.output.as_deref())?.is(&place) {
        return Err(usage("`--manifest` and `-o` name the same file".to_owned())
            .hint("give the manifest a name of its own"));
    }
    Ok(())
}

/// Keeps the state of an earlier run from being replaced before anybody has handed on a new one.
fn check_state(args: &OutputArgs) -> Result<(), Failure> {
    let Some(state) = args.state.as_deref() else {
        return Ok(());
    };
    let state = Place::File(state.to_owned());
    for (flag, other) in [("-o", &args.output), ("--manifest", &args.manifest)] {
        if other.is_some() && Place::new(other.as_deref())?.is(&state) {
            return Err(usage(format!("`--state` and `{flag}` name the same file"))
                .hint("a target hands on the next state: keep it in a file of its own"));
        }
    }
    Ok(())
}

fn compression(path: &Path) -> (Compression, PathBuf) {
    let ending = path
        .extension()
        .and_then(|ending| ending.to_str())
        .map(str::to_lowercase);
    match ending.as_deref() {
        Some("gz") => (Compression::Gzip, path.with_extension("")),
        Some("zst") => (Compression::Zstd, path.with_extension("")),
        _ => (Compression::None, path.to_owned()),
    }
}

fn by_ending(path: &Path) -> Option<Format> {
    let ending = path.extension()?.to_str()?.to_lowercase();
    ENDINGS
        .iter()
        .find(|(known, _)| *known == ending)
        .map(|(_, format)| *format)
}

/// Refuses flags that the format has no use for: they were meant for another.
fn check_flags(args: &OutputArgs, format: Format) -> Result<(), Failure> {
    let is_csv = matches!(format, Format::Csv | Format::Tsv);
    let is_json = matches!(format, Format::Json | Format::Ndjson);
    let is_singer = format == Format::Singer;
    let flags = [
        ("--state", args.state.is_some(), is_singer, "singer"),
        ("--numbers", args.numbers, is_json, "json and ndjson"),
        (
            "--delimiter",
            args.delimiter.is_some(),
            is_csv,
            "csv and tsv",
        ),
        ("--decimal-comma", args.decimal_comma, is_csv, "csv and tsv"),
        ("--bom", args.bom, is_csv, "csv and tsv"),
        ("--no-header", args.no_header, is_csv, "csv and tsv"),
        ("--excel", args.excel, is_csv, "csv and tsv"),
    ];
    for (flag, given, useful, formats) in flags {
        if given && !useful {
            return Err(usage(format!(
                "`{flag}` is for {formats}, and the format is {}",
                format.name()
            ))
            .hint("leave it out, or choose the format with `--format`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(output: &str) -> OutputArgs {
        OutputArgs {
            output: Some(output.into()),
            ..OutputArgs::default()
        }
    }

    #[test]
    fn the_ending_tells_format_and_compression() {
        for (name, format, compression) in [
            ("a.csv", Format::Csv, Compression::None),
            ("a.JSONL", Format::Ndjson, Compression::None),
            ("b/a.b.tsv.gz", Format::Tsv, Compression::Gzip),
            ("a.json.zst", Format::Json, Compression::Zstd),
        ] {
            let found = Destination::new(&args(name)).expect(name);
            assert_eq!(
                (found.format, found.compression),
                (format, compression),
                "{name}"
            );
        }
    }

    #[test]
    fn slips_are_caught() {
        for name in [
            "json",
            "csv",
            "a",
            "a.txt",
            "a.gz",
            "ftp://b/a.csv",
            "s3://b/a",
            "s3://{year}/a.csv",
            "lake/{week}/a.csv",
            "table",
        ] {
            assert_eq!(
                Destination::new(&args(name)).expect_err(name).kind,
                Kind::Usage,
                "{name}"
            );
        }
        let object = Destination::new(&args("s3://b/a.csv"));
        assert_eq!(object.is_ok(), cfg!(feature = "cloud"));
        let explicit = OutputArgs {
            format: Some(Format::Csv),
            ..args("a.txt")
        };
        assert!(Destination::new(&explicit).is_ok());
        let excel = OutputArgs {
            excel: true,
            ..args("a.json")
        };
        assert!(Destination::new(&excel).is_err());
    }
}
