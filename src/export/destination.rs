//! Resolves `-o` and `-f`: the location, the format and the compression.

use std::path::{Path, PathBuf};

use clap::ValueEnum as _;

use super::template::Template;
use crate::cli::OutputArgs;
use crate::error::{Failure, Kind};
use crate::formats::Format;
use crate::storage::Compression;
use crate::storage::Location;
use crate::terminal;
use crate::text;

/// The destination of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Destination {
    pub(crate) place: Location,
    /// The template, if `-o` contains placeholders.
    pub(crate) template: Option<Template>,
    pub(crate) format: Format,
    pub(crate) compression: Compression,
    /// The path of the manifest, if one is written.
    pub(crate) manifest: Option<PathBuf>,
    /// The path of the empty marker file that shows that an export with a template is complete, and whether this one
    /// writes it.
    pub(crate) success_marker: Option<PathBuf>,
    pub(crate) is_marked: bool,
}

/// Names that readers of a lake skip.
const MANIFEST: &str = "_manifest.json";
const SUCCESS: &str = "_SUCCESS";

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
        let place = Location::new(args.output.as_deref())?;
        let (template, format, compression) = template_and_format(args, &place)?;
        let folder = template.as_ref().map(Template::folder);
        let manifest = manifest(args, folder.as_deref())?;
        if args.success_marker && folder.is_none() {
            return Err(needs_template("--success-marker"));
        }
        check_state(args, manifest.as_deref())?;
        Ok(Self {
            place,
            template,
            format,
            compression,
            manifest,
            success_marker: folder.map(|folder| folder.join(SUCCESS)),
            is_marked: args.success_marker,
        })
    }

    /// Returns the local folder of a lake: a partitioned export with its manifest or its marker in the same folder.
    pub(crate) fn lake_folder(&self) -> Option<PathBuf> {
        let (Some(template), Location::File(_)) = (&self.template, &self.place) else {
            return None;
        };
        let folder = template.folder();
        let (inside, manifest) = (plain(&folder), self.manifest.as_deref().map(plain));
        let is_inside = manifest.is_some_and(|manifest| {
            // Every path starts with that of the current folder, which is empty.
            let is_here = manifest.parent() == Some(Path::new(""));
            manifest.starts_with(inside) && (is_here || inside != Path::new(""))
        });
        (is_inside || self.is_marked).then_some(folder)
    }

    /// Returns whether the manifest is among the files of the lake under a name that engines do not skip.
    pub(crate) fn has_manifest_in_the_way(&self) -> bool {
        let (Some(template), Some(manifest)) = (&self.template, &self.manifest) else {
            return false;
        };
        let folder = template.folder();
        let inside = manifest.strip_prefix(&folder);
        let is_skipped = |inside: &Path| {
            let mut names = inside.components().map(std::path::Component::as_os_str);
            names.any(|name| matches!(name.as_encoded_bytes().first(), Some(b'_' | b'.')))
        };
        // The current folder is not read as a lake.
        !folder.as_os_str().is_empty() && inside.is_ok_and(|inside| !is_skipped(inside))
    }

    /// Returns the name to use in messages.
    pub(crate) fn name(&self) -> String {
        self.place.name()
    }
}

/// Returns a path without `./` at its start.
fn plain(path: &Path) -> &Path {
    path.strip_prefix("./").unwrap_or(path)
}

/// Determines the template, if there are placeholders, the format and the compression.
fn template_and_format(
    args: &OutputArgs,
    place: &Location,
) -> Result<(Option<Template>, Format, Compression), Failure> {
    if let Location::Table(_) = place {
        check_table(args)?;
        return Ok((None, Format::Postgres, Compression::None));
    }
    let Some(path) = place.path() else {
        let by_stream = if terminal::stdout().is_terminal() {
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
        return Ok((None, format, Compression::None));
    };
    refuse_slips(&path, args)?;
    let (compression, inner) = compression(&path);
    refuse_contradiction(&path, &inner, args.format)?;
    let Some(format) = args.format.or_else(|| by_ending(&inner)) else {
        let message = format!("cannot tell the format from the name `{}`", path.display());
        return Err(usage(message).hint(
            "add `--format`, or end the name like its format, such as .csv or .json (`--help` lists all formats)",
        ));
    };
    check_flags(args, format)?;
    if format.needs_file() && compression != Compression::None {
        let why = match format {
            Format::Sqlite => "a database cannot be compressed".to_owned(),
            _ => format!("{} is already compressed", format.name()),
        };
        let message = format!("`{}`: {why}", path.display());
        return Err(usage(message).hint("remove .gz or .zst"));
    }
    Ok((Template::parse(&path)?, format, compression))
}

fn usage(message: String) -> Failure {
    Failure::new(Kind::Usage, message)
}

/// Refuses likely mistakes.
fn refuse_slips(path: &Path, args: &OutputArgs) -> Result<(), Failure> {
    let text = path.to_string_lossy();
    let format = Format::from_str(&text, true);
    if let Ok(format) = format
        && !path.exists()
    {
        let (name, meant) = (format.name(), args.format.unwrap_or(format).name());
        return Err(
            usage(format!("`-o {text}` would write a file of that name")).hint(format!(
                "did you mean `--format {name}`? Otherwise write `-o ./{text} --format {meant}`"
            )),
        );
    }
    if path.is_dir() {
        return Err(Failure::new(
            Kind::Output,
            format!("cannot write to `{text}`: it is a folder"),
        )
        .hint(format!(
            "name a file in it, such as `{}`",
            path.join("batches.csv").display()
        )));
    }
    if text.ends_with(std::path::is_separator) {
        return Err(usage(format!("`-o {text}` is the name of a folder"))
            .hint("name a file in it, or remove the separator at the end"));
    }
    let spreadsheet = [".xls", ".ods"]
        .iter()
        .any(|ending| text.to_lowercase().ends_with(ending));
    if spreadsheet {
        return Err(usage(format!("`-o {text}`: this format is not supported"))
            .hint("all spreadsheet programs open xlsx files: `-o batches.xlsx`"));
    }
    Ok(())
}

/// Refuses a name that says another format than `--format`; `inner` is the name without `.gz` or `.zst`.
fn refuse_contradiction(path: &Path, inner: &Path, format: Option<Format>) -> Result<(), Failure> {
    let (Some(format), Some(named)) = (format, by_ending(inner)) else {
        return Ok(());
    };
    // Singer messages are lines of JSON.
    let is_singer = format == Format::Singer && matches!(named, Format::Json | Format::Ndjson);
    if format == named || is_singer {
        return Ok(());
    }
    let ending = match format {
        Format::Table => "txt",
        Format::Singer => "jsonl",
        other => other.name(),
    };
    let packed = path.extension().filter(|_| path != inner);
    let mut right = inner.with_extension(ending).into_os_string();
    if let Some(packed) = packed.filter(|_| !format.needs_file()) {
        right.push(".");
        right.push(packed);
    }
    Err(usage(format!(
        "`-o {}` has the extension of {}, but the format is {}",
        text::one_line(&path.to_string_lossy()),
        named.name(),
        format.name()
    ))
    .hint(format!(
        "choose another name, such as `-o {}`, or another `--format`",
        text::one_line(&right.to_string_lossy())
    )))
}

/// Refuses flags that do not apply to a table.
fn check_table(args: &OutputArgs) -> Result<(), Failure> {
    if let Some(format) = args.format {
        return Err(usage(format!(
            "`--format {}` is for files, but the address is that of a table",
            format.name()
        ))
        .hint("remove it: a table has its own column types"));
    }
    if args.no_clobber {
        return Err(usage(
            "`--no-clobber` is for files: rows are added to a table, which is never replaced"
                .to_owned(),
        )
        .hint("remove it, or name a new table with `table=`"));
    }
    let name = args.output.as_deref().map(Path::to_string_lossy);
    let words = ["{year}", "{month}", "{day}", "{crop_type}"];
    let is_in = |word: &&&str| name.as_ref().is_some_and(|name| name.contains(**word));
    if let Some(word) = words.iter().find(is_in) {
        return Err(usage(format!(
            "`{word}` is for file names, but the address is that of a table"
        ))
        .hint("one table contains all batches: filter them with `where` in SQL"));
    }
    check_flags(args, Format::Postgres)
}

/// Determines the path of the manifest, which has a default name next to the files of a template. Refuses the
/// path of the data and of the success marker.
fn manifest(args: &OutputArgs, folder: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
    if args.only_changed && folder.is_none() {
        return Err(needs_template("--only-changed"));
    }
    let path = match (&args.manifest, folder) {
        (None, Some(folder)) if args.only_changed => folder.join(MANIFEST),
        (None, _) => return Ok(None),
        (Some(Some(path)), _) => path.clone(),
        (Some(None), Some(folder)) => folder.join(MANIFEST),
        (Some(None), None) => {
            return Err(usage("`--manifest` needs a name here".to_owned()).hint(
                "name a file, as in `--manifest batches.manifest.json`; the name is optional only if `-o` contains a placeholder such as {year}",
            ));
        }
    };
    let place = Location::new(Some(&path))?;
    if place.is_stdout() {
        return Err(usage("`--manifest` needs a file".to_owned())
            .hint("standard output is for the data: name a file for the manifest"));
    }
    if Location::new(args.output.as_deref())?.is(&place) {
        return Err(usage("`--manifest` and `-o` name the same file".to_owned())
            .hint("give the manifest another name"));
    }
    if let Some(folder) = folder
        && Location::new(Some(&folder.join(SUCCESS)))?.is(&place)
    {
        return Err(usage(format!(
            "`--manifest {}`: this is the name of the empty file that `--success-marker` writes",
            path.display()
        ))
        .hint("give the manifest another name"));
    }
    if matches!(Template::parse(&path), Ok(Some(_)) | Err(_)) {
        return Err(usage(format!(
            "`--manifest {}`: one manifest describes all files, so its name cannot contain placeholders",
            path.display()
        ))
        .hint("omit the name: the default is `_manifest.json` in the folder before the first {…} of `-o`"));
    }
    Ok(Some(path))
}

fn needs_template(flag: &str) -> Failure {
    usage(format!(
        "`{flag}` is for partitioned exports, but the name of `-o` has no placeholder"
    ))
    .hint("name the files like `-o 'lake/year={year}/month={month}/batches.parquet'`")
}

/// Refuses to replace the state of an earlier run before the target has returned a new one.
fn check_state(args: &OutputArgs, manifest: Option<&Path>) -> Result<(), Failure> {
    let Some(state) = args.state.as_deref() else {
        return Ok(());
    };
    let state = Location::File(state.to_owned());
    for (flag, other) in [("-o", args.output.as_deref()), ("--manifest", manifest)] {
        if other.is_some() && Location::new(other)?.is(&state) {
            return Err(usage(format!("`--state` and `{flag}` name the same file"))
                .hint("the target returns the next state: keep it in a separate file"));
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

/// Refuses flags that do not apply to the format.
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
                "`{flag}` is for {formats}, but the format is {}",
                format.name()
            ))
            .hint("remove it, or choose the format with `--format`"));
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
    fn the_extension_selects_format_and_compression() {
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
    fn a_lake_is_a_folder_with_its_manifest() {
        for (output, manifest, is_lake) in [
            ("lake/{year}.csv", "lake/_manifest.json", true),
            ("./lake/{year}.csv", "lake/_manifest.json", true),
            ("lake/{year}.csv", "./lake/m/_manifest.json", true),
            ("lake/{year}.csv", "other/_manifest.json", false),
            ("a-{year}.csv", "_manifest.json", true),
            ("./a-{year}.csv", "_manifest.json", true),
            ("a-{year}.csv", "m/a.json", false),
            ("a-{year}.csv", "/m/a.json", false),
        ] {
            let destination = Destination::new(&OutputArgs {
                manifest: Some(Some(manifest.into())),
                ..args(output)
            });
            let folder = destination.expect(output).lake_folder();
            assert_eq!(folder.is_some(), is_lake, "{output} {manifest}");
        }
    }

    #[test]
    fn a_name_of_another_format_is_refused() {
        let with = |format: &str, name: &str| {
            let format = Format::named(format);
            Destination::new(&OutputArgs {
                format,
                ..args(name)
            })
        };
        for (format, name, right) in [
            ("csv", "a.xlsx", "`-o a.csv`"),
            ("csv", "a.xlsx.gz", "`-o a.csv.gz`"),
            ("xlsx", "a.csv.zst", "`-o a.xlsx`"),
            ("csv", "b.c/A.TSV", "`-o b.c/A.csv`"),
            ("json", "a.ndjson", "`-o a.json`"),
            ("ndjson", "a.json", "`-o a.ndjson`"),
            (
                "parquet",
                "lake/{year}/{month}.csv",
                "`-o lake/{year}/{month}.parquet`",
            ),
            ("table", "a.csv", "`-o a.txt`"),
            ("singer", "a.csv", "`-o a.jsonl`"),
            ("sqlite", "a.parquet", "`-o a.sqlite`"),
        ] {
            let failure = with(format, name).expect_err(name);
            assert_eq!(failure.kind, Kind::Usage, "{format} {name}");
            let hint = anyhow::Error::new(failure);
            let hint = crate::error::hint_of(&hint).unwrap_or_default().to_owned();
            assert!(hint.contains(right), "{format} {name}: {hint}");
        }
        // The name of a format, in any case.
        assert!(with("json", "csv").is_err() && with("csv", "JSON").is_err());
        #[cfg(feature = "cloud")]
        assert!(with("csv", "s3://b/a.parquet").is_err() && with("csv", "s3://b/a.csv.gz").is_ok());
        for (format, name) in [
            ("ndjson", "a.jsonl"),
            ("ndjson", "a.ndjson.gz"),
            ("singer", "a.jsonl"),
            ("singer", "a.ndjson"),
            ("singer", "a.json.zst"),
            ("sqlite", "a.db"),
            ("sqlite", "a.sqlite"),
            ("csv", "a.CSV"),
            ("csv", "a.txt"),
            ("csv", "a.dat.gz"),
            ("json", "a"),
            ("json", "./csv"),
            ("table", "a.txt"),
            ("xlsx", "lake/{crop_type}.dat"),
        ] {
            assert!(with(format, name).is_ok(), "{format} {name}");
        }
    }

    #[test]
    fn likely_mistakes_are_refused() {
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
