//! `verify`: compares a file, a lake or a table with a manifest, another file, the service or an archive.
//!
//! Reading files and comparing batches is in `verify` of the crate.

// The file that is verified.
mod subject;

// What a manifest says, and how a file compares with it.
mod expected;

// The service or an archive, fetched again.
mod refetch;

// The result, as text or JSON.
mod report;

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use self::expected::Expected;
use self::refetch::Refetch;
use self::report::VerifyReport;
use self::subject::{Subject, warn_of_oddities};
use super::context::Context;
use super::{batches, runtime};
use crate::batch::column_bits;
use crate::batch::date::Clock;
use crate::batch::filter::Fields;
use crate::cli::VerifyArgs;
use crate::error::{Failure, Kind};
use crate::storage::Storage;
use crate::terminal;
use crate::verify::{Comparison, Lake, RecordSource};

pub(super) fn run(context: &Context, args: &VerifyArgs) -> anyhow::Result<()> {
    check_flags(args)?;
    let args = args.clone();
    runtime::run(
        context,
        async move |context| verify(&context, &args).await,
        || "nothing was changed".to_owned(),
    )
}

/// Refuses flags that would have no effect.
fn check_flags(args: &VerifyArgs) -> Result<(), Failure> {
    let is_stdin = |path: &Path| path == Path::new("-");
    let flags = [
        ("--sandbox", args.source.sandbox),
        ("--start", args.range.start.is_some()),
        ("--end", args.range.end.is_some()),
        ("--period", args.range.period.is_some()),
        ("--base-url", args.source.given.flags.base_url.is_some()),
    ];
    let refetches = args.refetch || args.archive.is_some();
    if let Some((flag, _)) = flags.iter().find(|(_, given)| *given && !refetches) {
        return Err(Failure::usage(
            format!("`{flag}` needs `--service` or `--archive`"),
            "add `--service` to compare with the service, or leave out this flag",
        ));
    }
    let given = &args.source.given;
    let secret_files = [&given.flags, &given.variables].map(|given| &given.client_secret_file);
    let inputs = [
        is_stdin(&args.file),
        args.against.as_deref().is_some_and(is_stdin),
        args.refetch && secret_files.iter().any(|file| file.as_deref() == Some("-")),
    ];
    if inputs.iter().filter(|input| **input).count() > 1 {
        return Err(Failure::usage(
            "standard input cannot be read twice",
            "use `-` once, and name a file for the other input",
        ));
    }
    Ok(())
}

async fn verify(context: &Context, args: &VerifyArgs) -> anyhow::Result<()> {
    let locations = [
        Some(args.file.as_path()),
        args.against.as_deref(),
        args.manifest.as_deref(),
    ];
    let storage = &context.storage_for(&locations)?;
    let fields = args.fields.as_deref().map(Fields::parse).transpose()?;
    let fields = fields.map(|fields| column_bits(fields.columns.iter().copied()));
    let manifest = manifest_of(args, storage)?;
    let expected = manifest
        .map(|path| Expected::read(&path, storage))
        .transpose()?;
    let refetches = args.refetch || args.archive.is_some();
    if let Some(expected) = &expected
        && let Some(fields) =
            fields.filter(|fields| !refetches && *fields != expected.column_bits())
    {
        return Err(no_digest_for(fields, expected).into());
    }
    let mut source = RecordSource::open(&args.file, storage)?;
    if let Some(expected) = &expected {
        if expected.is_of_tables() && source.lake().is_some() {
            return Err(Failure::usage(
                format!(
                    "{} has tables for people: they have no exact values to verify",
                    source.name()
                ),
                "export it in another format",
            )
            .into());
        }
        source.leave_out(&expected.path);
        source.is_hashed = true;
        source.may_be_empty = source.lake().is_some() || expected.has_empty_file();
    }
    connect_table(&mut source, context)?;
    limit_table(&mut source, context, args, expected.as_ref())?;
    let mut file = Subject {
        source,
        path: args.file.clone(),
        layout: expected.as_ref().map(|expected| expected.columns.clone()),
        fields,
    };
    let report = if refetches {
        let refetch = Refetch::new(context, args, expected.as_ref(), &file)?;
        refetch.compare(&mut file, expected.as_ref()).await?
    } else if let Some(other) = &args.against {
        let mut other = RecordSource::open(other, storage)?;
        connect_table(&mut other, context)?;
        compare_with_file(&mut file, other)?
    } else {
        compare_with_manifest(&mut file, expected.as_ref())?
    };
    report.print(args.format)?;
    report.print_notes();
    report.verdict()?;
    let conclusion = report.conclusion.as_deref().map(terminal::timed);
    terminal::finish(conclusion.as_deref(), &report.json(), None);
    Ok(())
}

/// Returns the manifest to use: the given one, or the one in the folder of a lake.
fn manifest_of(args: &VerifyArgs, storage: &Storage) -> Result<Option<PathBuf>, Failure> {
    let dates = [&args.range.start, &args.range.end, &args.range.period];
    let has_dates = dates.iter().any(|date| date.is_some());
    if args.manifest.is_some() || args.against.is_some() || has_dates {
        return Ok(args.manifest.clone());
    }
    match Lake::find(&args.file)? {
        Some(lake) => lake.manifest(storage),
        None => Ok(None),
    }
}

fn no_digest_for(fields: u32, expected: &Expected) -> Failure {
    let (name, some) = (expected.name(), fields.count_ones());
    Failure::usage(
        format!("the manifest {name} has one digest for all its fields, not for {some} of them"),
        "leave out `--fields`, or compare these fields with `--against` or `--service`",
    )
}

/// Compares a file with its manifest, or with its embedded digest.
fn compare_with_manifest(
    file: &mut Subject,
    expected: Option<&Expected>,
) -> Result<VerifyReport, Failure> {
    let Some(expected) = expected else {
        let scan = file.scan_alone()?;
        warn_of_oddities(file.source.name(), &scan);
        scan.info.check_types(file.source.name(), true)?;
        let mut report = VerifyReport::new(file, &scan, scan.scope);
        report.claim = scan.info.embedded_digest.filter(|_| file.fields.is_none());
        return Ok(report);
    };
    let scope = expected.scope();
    let (scan, _) = file.index(scope, false).map_err(|mut failure| {
        // trayscan wrote the file, and reads what it writes.
        let mut causes = std::iter::successors(failure.source(), |&cause| cause.source());
        let is_unreadable = causes.any(<dyn Error>::is::<io::Error>);
        let is_known = expected.describes(file) && !expected.is_of_tables();
        if failure.kind != Kind::Usage || is_unreadable || !is_known {
            return failure;
        }
        failure.kind = Kind::Protocol;
        failure.hint("the file was modified: export it again")
    })?;
    warn_of_oddities(file.source.name(), &scan);
    let lenient = expected.lenient();
    scan.info.check_types(file.source.name(), lenient)?;
    let mut report = VerifyReport::new(file, &scan, scope);
    report.manifest = Some(expected.compare(file, &scan, &scope)?);
    Ok(report)
}

/// Compares a file with another.
fn compare_with_file(file: &mut Subject, mut other: RecordSource) -> Result<VerifyReport, Failure> {
    let (mut scope, mut adapts) = (file.first_scope(), file.fields.is_none());
    loop {
        let (scan, ledger) = file.index(scope, adapts)?;
        scope = scan.scope;
        let mut comparison = Comparison::new(ledger, scope);
        let other_scan = comparison.read(&mut other)?;
        let settled = scope.settled(file.fields, &scan, &other_scan);
        if settled != scope {
            (scope, adapts) = (settled, false);
            continue;
        }
        warn_of_oddities(file.source.name(), &scan);
        warn_of_oddities(other.name(), &other_scan);
        scan.info.check_types(file.source.name(), false)?;
        other_scan.info.check_types(other.name(), false)?;
        let mut report = VerifyReport::new(file, &scan, scope);
        report.add_other(other.name(), &other_scan);
        if scan.has_ids() && other_scan.has_ids() {
            report.add_comparison(comparison, file)?;
        }
        return Ok(report);
    }
}

/// Sets how to connect to the server of a table; leaves a file unchanged.
fn connect_table(source: &mut RecordSource, context: &Context) -> Result<(), Failure> {
    if let Some(table) = source.as_table() {
        let settings = context.settings()?;
        table.connect_with(settings.client_options()?);
    }
    Ok(())
}

/// Limits a table to the range of the manifest, or to the dates on the command line; leaves a file unchanged.
fn limit_table(
    source: &mut RecordSource,
    context: &Context,
    args: &VerifyArgs,
    expected: Option<&Expected>,
) -> Result<(), Failure> {
    let name = source.name().to_owned();
    let Some(table) = source.as_table() else {
        return Ok(());
    };
    if let Some(expected) = expected.filter(|expected| expected.is_selection()) {
        return Err(Failure::usage(
            format!(
                "the manifest `{}` is of an export with `--where` or `--limit`, and the table may contain other batches",
                expected.path.display()
            ),
            "compare a table only with a manifest of all batches of its range",
        ));
    }
    let range = match expected {
        Some(expected) => expected.range,
        None => batches::range(
            &args.range,
            &Clock::new(context.settings()?.time_zone.value.clone()),
        )?,
    };
    let range = Some(range).filter(|range| range.start.is_some() || range.end.is_some());
    if let Some(range) = range {
        terminal::note(&format!(
            "a table may contain many exports; of {name}, only this range is compared: {}",
            range.describe()
        ));
    }
    table.limit(range, expected.map(|expected| expected.columns.clone()));
    Ok(())
}
