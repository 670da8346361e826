//! `verify`: a file held against a manifest, another file or the service.

// What a manifest says of a file.
mod expected;

// The service, asked again.
mod refetch;

// A table, and how much of it counts.
#[cfg(feature = "postgres")]
mod tables;

// What came of it, for people and for programs.
mod report;

use std::path::{Path, PathBuf};

use super::{stoppable, storage};
use crate::batch::ALL_COLUMNS;
use crate::cli::{Cli, VerifyArgs};
use crate::compare::{self, Comparison, Survey};
use crate::error::{Failure, Kind};
use crate::readers::Source;
use crate::ui;
use expected::Expected;
use refetch::Refetch;
use report::{Other, Report};

pub(super) fn run(cli: &Cli, args: &VerifyArgs) -> anyhow::Result<()> {
    check_flags(cli, args)?;
    let from_environment = cli.from_environment.clone();
    let args = args.clone();
    stoppable::run(
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
    let expected = args.manifest.as_deref().map(Expected::read).transpose()?;
    let mut source = Source::open(&args.file)?;
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
    };
    let report = if args.refetch || args.archive.is_some() {
        let refetch = Refetch::new(from_environment, args, expected.as_ref())?;
        refetch.compare(&mut file, expected.as_ref()).await?
    } else if let Some(other) = &args.against {
        let other = Source::open(other)?;
        #[cfg(feature = "postgres")]
        let other = {
            let everything = tables::Asked::default();
            tables::prepared(other, from_environment, args, everything)?
        };
        against(&mut file, other)?
    } else {
        alone(&mut file, expected.as_ref())?
    };
    ui::print(&report.shown(args.format))?;
    report.verdict().map_err(Into::into)
}

/// The file that is verified.
struct Subject {
    source: Source,
    path: PathBuf,
    /// The columns of cells without names, where that is known.
    layout: Option<Vec<usize>>,
}

impl Subject {
    /// Reads the file, with the digest over the columns that the manifest names, or else over those that
    /// both the file and `others` have. Columns may turn up late in JSON: then it is read once more.
    fn survey(
        &mut self,
        expected: Option<&Expected>,
        others: u32,
    ) -> Result<(Survey, Comparison, u32), Failure> {
        let layout = self.layout.as_deref();
        if let Some(expected) = expected {
            let columns = expected.column_bits();
            let (survey, ledger) = compare::note(&mut self.source, layout, columns)?;
            return Ok((survey, Comparison::new(ledger, columns), columns));
        }
        let mut seen = compare::glance(&mut self.source, layout)?;
        loop {
            let columns = common(self.source.name(), seen, others)?;
            let (survey, ledger) = compare::note(&mut self.source, layout, columns)?;
            if common(self.source.name(), survey.columns, others)? == columns {
                return Ok((survey, Comparison::new(ledger, columns), columns));
            }
            seen = survey.columns;
        }
    }
}

/// Returns the columns that both sides have.
fn common(name: &str, here: Option<u32>, there: u32) -> Result<u32, Failure> {
    let columns = here.unwrap_or(there) & there;
    if columns == 0 {
        return Err(Failure::new(
            Kind::Usage,
            format!("{name} has no field that the other side has"),
        )
        .hint("export both with the same `--fields`"));
    }
    Ok(columns)
}

/// Verifies a file by what it says of itself, or against its manifest.
fn alone(file: &mut Subject, expected: Option<&Expected>) -> Result<Report, Failure> {
    let (survey, _, columns) = file.survey(expected, ALL_COLUMNS)?;
    tell_remarks(file.source.name(), &survey);
    let mut report = Report::new(file.source.name(), &survey, columns);
    if let Some(expected) = expected {
        let measured = file.source.measure()?;
        report.manifest = Some(expected.judge(&file.path, measured.as_ref(), &survey));
    } else {
        report.claim = survey.remarks.claim;
    }
    Ok(report)
}

/// Verifies a file against another.
fn against(file: &mut Subject, mut other: Source) -> Result<Report, Failure> {
    let mut there = compare::glance(&mut other, None)?;
    loop {
        // One that holds nothing has nothing against any column.
        let (here, mut comparison, columns) = file.survey(None, there.unwrap_or(ALL_COLUMNS))?;
        let found = comparison.read(&mut other)?;
        let all = found.columns.unwrap_or(ALL_COLUMNS);
        if there.is_some() && common(file.source.name(), here.columns, all)? != columns {
            there = found.columns;
            continue;
        }
        tell_remarks(file.source.name(), &here);
        tell_remarks(other.name(), &found);
        let mut report = Report::new(file.source.name(), &here, columns);
        report.tell_columns(here.columns, other.name(), found.columns);
        report.other = Some(Other {
            kind: "file",
            name: other.name().to_owned(),
            detail: String::new(),
            batches: found.digest.count(),
            digest: found.digest.finish(),
            repeated: found.repeated,
        });
        if !report.is_equal() {
            report.find_differences(comparison, file)?;
        }
        return Ok(report);
    }
}

/// Tells what is odd about a file, and no reason to refuse it.
fn tell_remarks(name: &str, survey: &Survey) {
    if survey.flawed.count > 0 {
        let values = if survey.flawed.count == 1 {
            "1 value is not what its field holds".to_owned()
        } else {
            format!(
                "{} values are not what their fields hold",
                survey.flawed.count
            )
        };
        let first = survey.flawed.first.as_deref().unwrap_or_default();
        log::warn!("{name}: {values}; the first: {first}");
    }
    if survey.remarks.unended {
        log::warn!("{name}: the last line has no end; the file may be cut short");
    }
    if !survey.remarks.unknown.is_empty() {
        let names: Vec<String> = survey
            .remarks
            .unknown
            .iter()
            .map(|name| ui::brief(name))
            .collect();
        ui::note(&format!(
            "{name} has columns that no batch has, and that are not compared: {}",
            names.join(", ")
        ));
    }
}
