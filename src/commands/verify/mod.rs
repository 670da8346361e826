//! `verify`: a file, a lake or a table compared with a manifest, another file or the service.

// What a manifest says, and whether it holds.
mod expected;

// The service, asked again.
mod refetch;

// A table, and how much of it counts.
#[cfg(feature = "postgres")]
mod tables;

// The result, for people and for programs.
mod report;

use std::path::{Path, PathBuf};

use super::{runtime, storage};
use crate::batch::ALL_COLUMNS;
use crate::batch::digest;
use crate::batch::filter::Fields;
use crate::cli::{Cli, VerifyArgs};
use crate::error::{Failure, Kind};
use crate::formats::record::Schema;
use crate::terminal;
use crate::text;
use crate::verify::{self, Comparison, FileScan, Ledger, Scope};
use crate::verify::{Lake, RecordSource};
use expected::Expected;
use refetch::Refetch;
use report::{OtherSide, VerifyReport};

/// The manifest of a lake, in its folder.
const LAKE_MANIFEST: &str = "_manifest.json";

pub(super) fn run(cli: &Cli, args: &VerifyArgs) -> anyhow::Result<()> {
    check_flags(cli, args)?;
    let from_environment = cli.from_environment.clone();
    let args = args.clone();
    runtime::run(
        async move || verify(&from_environment, &args).await,
        || "nothing was changed".to_owned(),
    )
}

/// Refuses flags that would have no effect: they were meant for something.
fn check_flags(cli: &Cli, args: &VerifyArgs) -> Result<(), Failure> {
    let is_stdin = |path: &Path| path == Path::new("-");
    let flags = [
        ("--sandbox", args.source.sandbox),
        ("--start", args.range.start.is_some()),
        ("--end", args.range.end.is_some()),
        (
            "--base-url",
            args.source.base_url.is_some()
                && !cli.from_environment.iter().any(|name| name == "base_url"),
        ),
    ];
    let asks = args.refetch || args.archive.is_some();
    if let Some((flag, _)) = flags.iter().find(|(_, given)| *given && !asks) {
        return Err(Failure::new(
            Kind::Usage,
            format!("`{flag}` is for `--service`, which is not there"),
        )
        .hint("add `--service` to compare with the service, or leave it out"));
    }
    let inputs = [
        is_stdin(&args.file),
        args.against.as_deref().is_some_and(is_stdin),
        args.refetch && args.source.client_secret_file.as_deref() == Some("-"),
    ];
    if inputs.iter().filter(|input| **input).count() > 1 {
        return Err(
            Failure::new(Kind::Usage, "standard input is to be read twice")
                .hint("give `-` once, and name a file for the other"),
        );
    }
    Ok(())
}

async fn verify(from_environment: &[String], args: &VerifyArgs) -> anyhow::Result<()> {
    let places = [
        Some(args.file.as_path()),
        args.against.as_deref(),
        args.manifest.as_deref(),
    ];
    storage::prepare(&args.source, from_environment, &places)?;
    let fields = args.fields.as_deref().map(Fields::parse).transpose()?;
    let fields = fields.map(|fields| verify::bits(&fields.columns));
    let manifest = manifest_of(args)?;
    let expected = manifest.as_deref().map(Expected::read).transpose()?;
    let asks = args.refetch || args.archive.is_some();
    if let Some(expected) = &expected
        && let Some(fields) = fields.filter(|fields| !asks && *fields != expected.column_bits())
    {
        return Err(no_digest_of(fields, expected).into());
    }
    let mut source = RecordSource::open(&args.file)?;
    if expected.as_ref().is_some_and(Expected::has_empty_file) {
        source.expect_nothing();
    }
    #[cfg(feature = "postgres")]
    let source = {
        let asked = tables::asked(args, expected.as_ref())?;
        tables::prepared(source, from_environment, args, asked)?
    };
    let mut file = Subject {
        source,
        path: args.file.clone(),
        layout: expected.as_ref().map(|expected| expected.columns.clone()),
        fields,
    };
    let report = if asks {
        let refetch = Refetch::new(from_environment, args, expected.as_ref(), &file)?;
        refetch.compare(&mut file, expected.as_ref()).await?
    } else if let Some(other) = &args.against {
        let other = RecordSource::open(other)?;
        #[cfg(feature = "postgres")]
        let other = {
            let everything = tables::TableRequest::default();
            tables::prepared(other, from_environment, args, everything)?
        };
        against(&mut file, other)?
    } else {
        alone(&mut file, expected.as_ref())?
    };
    terminal::print(&report.shown(args.format))?;
    report.tell_notes();
    report.verdict().map_err(Into::into)
}

/// Returns the manifest to use: the one that was named, or that of a lake in its folder.
fn manifest_of(args: &VerifyArgs) -> Result<Option<PathBuf>, Failure> {
    let has_dates = args.range.start.is_some() || args.range.end.is_some();
    if args.manifest.is_some() || args.against.is_some() || has_dates {
        return Ok(args.manifest.clone());
    }
    let lake = Lake::find(&args.file)?;
    let manifest = lake.map(|lake| lake.folder.join(LAKE_MANIFEST));
    Ok(manifest.filter(|manifest| manifest.exists()))
}

fn no_digest_of(fields: u32, expected: &Expected) -> Failure {
    Failure::new(
        Kind::Usage,
        format!(
            "the manifest {} has one digest over all its fields, none over {} of them alone",
            expected.name(),
            fields.count_ones()
        ),
    )
    .hint("leave out `--fields`, or compare these fields with `--against` or `--service`")
}

/// The file that is verified.
struct Subject {
    source: RecordSource,
    path: PathBuf,
    /// The columns of cells without names, where that is known.
    layout: Option<Vec<usize>>,
    /// The columns that `--fields` asks for, one bit each.
    fields: Option<u32>,
}

impl Subject {
    fn index(&mut self, scope: &Scope) -> Result<(FileScan, Ledger), Failure> {
        verify::index(&mut self.source, self.layout.as_deref(), scope)
    }

    /// Returns the scope to begin with: most exports have all fields.
    fn first_scope(&self) -> Scope {
        Scope {
            columns: self.fields.unwrap_or(ALL_COLUMNS),
            unknown_fields: self.fields.is_none(),
            version: digest::VERSION,
        }
    }

    /// Reads the file over the columns that it has itself.
    fn scan_alone(&mut self) -> Result<(FileScan, Scope), Failure> {
        let mut scope = self.first_scope();
        loop {
            let (scan, _) = self.index(&scope)?;
            let columns = self.fields.or(scan.columns).unwrap_or(ALL_COLUMNS);
            let claim = scan.remarks.claim.as_ref();
            let version = claim.map_or(scope.version, |claim| claim.digest_version);
            let version = if version == 1 { 1 } else { digest::VERSION };
            if (columns, version) == (scope.columns, scope.version) {
                return Ok((scan, scope));
            }
            scope = Scope {
                columns,
                version,
                ..scope
            };
        }
    }
}

/// Verifies a file by what it says of itself, or against its manifest.
fn alone(file: &mut Subject, expected: Option<&Expected>) -> Result<VerifyReport, Failure> {
    let Some(expected) = expected else {
        let (scan, scope) = file.scan_alone()?;
        tell_remarks(file.source.name(), &scan);
        scan.remarks.check_types(file.source.name(), true)?;
        let mut report = VerifyReport::new(file, &scan, scope);
        report.claim = scan.remarks.claim.filter(|_| file.fields.is_none());
        return Ok(report);
    };
    let scope = expected.scope();
    let (scan, _) = file.index(&scope)?;
    tell_remarks(file.source.name(), &scan);
    let lenient = expected.lenient();
    scan.remarks.check_types(file.source.name(), lenient)?;
    let mut report = VerifyReport::new(file, &scan, scope);
    report.manifest = Some(expected.judge(file, &scan, &scope)?);
    Ok(report)
}

/// Verifies a file against another.
fn against(file: &mut Subject, mut other: RecordSource) -> Result<VerifyReport, Failure> {
    let mut scope = file.first_scope();
    loop {
        let (here, ledger) = file.index(&scope)?;
        let mut comparison = Comparison::new(ledger, scope);
        let there = comparison.read(&mut other)?;
        let settled = scope.settled(file.fields, &here, &there);
        if settled != scope {
            scope = settled;
            continue;
        }
        tell_remarks(file.source.name(), &here);
        tell_remarks(other.name(), &there);
        here.remarks.check_types(file.source.name(), false)?;
        there.remarks.check_types(other.name(), false)?;
        let mut report = VerifyReport::new(file, &here, scope);
        report.compare_unknown_fields(&there.digest, there.remarks.keeps_unknown_fields);
        report.other = Some(OtherSide::file(other.name(), &there, scope));
        if here.has_ids() && there.has_ids() {
            report.settle(comparison, file)?;
        }
        return Ok(report);
    }
}

/// Tells what is odd about a file, but no reason to refuse it.
fn tell_remarks(name: &str, scan: &FileScan) {
    if scan.flawed.count > 0 {
        let values = if scan.flawed.count == 1 {
            "1 value is not what its field holds".to_owned()
        } else {
            format!(
                "{} values are not what their fields hold",
                scan.flawed.count
            )
        };
        let first = scan.flawed.first.as_deref().unwrap_or_default();
        log::warn!("{name}: {values}; the first: {first}");
    }
    if scan.remarks.schema == Schema::Shared && !scan.remarks.unknown.is_empty() {
        let names: Vec<String> = scan
            .remarks
            .unknown
            .iter()
            .map(|name| text::brief(name))
            .collect();
        terminal::note(&format!(
            "{name} has columns that no batch has; they were not compared: {}",
            names.join(", ")
        ));
    }
    if scan.remarks.unended {
        log::warn!("{name}: the last line has no end; the file may be cut short");
    }
}
