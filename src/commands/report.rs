//! `report`: from pages to one HTML page.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Instant;

use chrono::{DateTime, Utc};

use super::messages::{
    SelectionRequest, beyond, count, doubts, how, nothing_matched, stopped, tell,
};
use super::source::BatchSource;
use super::{own_files, runtime, storage};
use crate::analysis::report::{self, ReportData, ReportInfo, ReportSpan};
use crate::batch::{COLUMNS, SCANNED_BY};
use crate::cli::{Cli, ReportArgs};
use crate::config::file;
use crate::error::{Failure, Kind};
use crate::export::Template;
use crate::fetch::{DataIssues, PageOrder};
use crate::pipeline::{self, Counts};
use crate::storage::{Compression, EncodedOutput, Location, OutputTarget};
use crate::terminal::{self, ProgressLine};

pub(super) fn run(cli: &Cli, args: &ReportArgs) -> anyhow::Result<()> {
    let wanted = ReportRequest::new(args)?;
    own_files::protect(&args.source.service, &[("-o", args.output.as_deref())])?;
    let from_environment = cli.from_environment.clone();
    let (args, place) = (args.clone(), wanted.place.clone());
    runtime::run(
        async move || write_report(&from_environment, &args, wanted).await,
        move || place.left_behind(),
    )
}

/// What the command line asks for, checked before anything is sent.
struct ReportRequest {
    place: Location,
    selection: SelectionRequest,
    /// When the page says that it was made, in seconds since 1970.
    made: i64,
}

impl ReportRequest {
    fn new(args: &ReportArgs) -> Result<Self, Failure> {
        let selection = SelectionRequest::new(&args.selection)?;
        if args.title.trim().is_empty() {
            return Err(
                Failure::new(Kind::Usage, "`--title` is empty, and a page needs a name")
                    .hint("write one, or leave it out: then it is \"Tray scans\""),
            );
        }
        Ok(Self {
            place: place(args.output.as_deref())?,
            made: made(selection.asked)?.timestamp(),
            selection,
        })
    }
}

/// Returns when the page says that it was made: now, or what a build that must be repeatable says.
fn made(now: DateTime<Utc>) -> Result<DateTime<Utc>, Failure> {
    const VARIABLE: &str = "SOURCE_DATE_EPOCH";
    let Some(text) = std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) else {
        return Ok(now);
    };
    let second = text.to_str().and_then(|text| text.parse().ok());
    let moment = second.and_then(|second| DateTime::from_timestamp(second, 0));
    moment.ok_or_else(|| {
        Failure::new(Kind::Usage, format!("{VARIABLE} is no number of seconds"))
            .hint("unset it, or give seconds since 1970, such as 1767225600")
    })
}

/// Decides where the page goes, and catches what was meant otherwise.
fn place(output: Option<&Path>) -> Result<Location, Failure> {
    if output.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::new(Kind::Usage, "a page is not for the terminal")
            .hint("name a file: `-o report.html`; `trayscan summary` shows figures here"));
    }
    if let Some(path) = output {
        let name = path.display();
        if path == Path::new("html") && !path.exists() {
            return Err(Failure::new(
                Kind::Usage,
                format!("`-o {name}` would write a file of that name"),
            )
            .hint("did you mean `-o report.html`? else write `-o ./html`"));
        }
        if Template::parse(path)?.is_some() {
            return Err(
                Failure::new(Kind::Usage, format!("`{name}`: a report is one file")).hint(
                    "name one file; `--start`, `--end` and `--where` choose what it is about",
                ),
            );
        }
    }
    let ending = output.and_then(Path::extension);
    let ending = ending.map(|ending| ending.to_string_lossy().to_lowercase());
    if ending.is_some_and(|ending| OTHERS.contains(&ending.as_str())) {
        return Err(Failure::new(Kind::Usage, "a report is an HTML page").hint(
            "end its name with .html; `trayscan export` writes the other formats, and a browser prints the page as PDF",
        ));
    }
    Location::new(output)
}

/// Returns the conditions as the page tells them: whom somebody looked for only where people are shown.
fn conditions(args: &ReportArgs) -> Vec<String> {
    let shown = |text: &String| {
        let field = text.split(['=', '!', '<', '>', '~']).next();
        let field = field.unwrap_or_default().trim();
        // An address may be looked for in a comment as well.
        let is_person = field == COLUMNS[SCANNED_BY].name || text.contains('@');
        if is_person && !args.emails {
            format!("{field} (not shown)")
        } else {
            text.clone()
        }
    };
    args.selection.conditions.iter().map(shown).collect()
}

/// Endings of what a page is not.
const OTHERS: [&str; 12] = [
    "csv", "tsv", "json", "ndjson", "jsonl", "xlsx", "parquet", "sqlite", "db", "pdf", "gz", "zst",
];

async fn write_report(
    from_environment: &[String],
    args: &ReportArgs,
    wanted: ReportRequest,
) -> anyhow::Result<()> {
    let started = Instant::now();
    let service = &args.source.service;
    let profile = file::read(service.config.as_deref(), service.profile.as_deref())?;
    storage::prepare(
        &args.source.service,
        from_environment,
        &[args.output.as_deref()],
    )?;
    let source = BatchSource::open(&args.source, from_environment)?;
    // Before the first request, so that one that cannot be written is found out at once.
    let target = OutputTarget::open(&wanted.place, args.no_clobber)?;
    let mut output = EncodedOutput::new(target, Compression::None).map_err(Failure::from_output)?;
    let range = &wanted.selection.range;
    log::info!("asking {} for {}", source.name(), range.asked());

    let progress = ProgressLine::start(args.source.progress, false, &source.stats);
    let lenient = args.selection.lenient;
    let mut pages = source.batches(*range, PageOrder::Any, lenient)?;
    let span = ReportSpan::new(range, &source.held()?, wanted.made);
    let mut gathered = ReportData::new(args.step.into(), span);
    let plan = wanted.selection.plan();
    let ran = pipeline::run(&mut pages, &mut gathered, &plan, &source.stats).await;
    drop(progress);
    let left = wanted.place.left_behind();
    let tally = ran.map_err(|failure| stopped(failure, &source, "report", &left))?;
    if tally.written == 0 && args.selection.fail_on_empty {
        return Err(nothing_matched(range, &args.selection, &tally).into());
    }

    let findings = pages.findings();
    let incomplete = source.incomplete(range)?;
    let named = Some(profile.name).filter(|name| !name.is_empty() && name != "default");
    let is_asked = args.source.archive.is_none() && !service.sandbox;
    let facts = ReportInfo {
        title: args.title.clone(),
        profile: named.filter(|_| is_asked),
        source: if service.sandbox {
            "the sandbox, whose batches are made up".to_owned()
        } else {
            let name = source.base_url().unwrap_or_else(|| source.name());
            match args.source.archive {
                Some(_) => format!("an archive of {name}"),
                None => name,
            }
        },
        range: range.describe(),
        conditions: conditions(args),
        version: pages.version().map(|version| version.to_string()),
        made: wanted.made,
        has_emails: args.emails,
        noticed: noticed(&tally, &findings, incomplete.clone()),
        has_left_out: tally.conflicts > 0 || findings.flawed > 0,
    };
    let page = report::render(&gathered, &facts, &profile.targets)?;
    output
        .write_all(page.as_bytes())
        .map_err(Failure::from_output)?;
    output.publish()?;

    let mut warnings = doubts(&findings, &tally, lenient);
    warnings.extend(beyond(&gathered.total()));
    for warning in warnings.into_iter().chain(incomplete) {
        log::warn!("{warning}");
    }
    for (meant, crop) in gathered.crops_meant(&profile.targets) {
        terminal::note(&format!(
            "no batch has the crop of `[targets.{meant:?}]`; did you mean {crop:?}?"
        ));
    }
    tell(&tally, &source, service.sandbox)?;
    terminal::conclude(&format!(
        "report of {} ({}, {}) to {} in {:.1} s",
        count(tally.written, "batch", "batches"),
        range.describe(),
        how(&source, &pages),
        wanted.place.name(),
        started.elapsed().as_secs_f64(),
    ));
    Ok(())
}

/// What the page should say of how its batches came.
fn noticed(
    tally: &Counts,
    findings: &DataIssues,
    incomplete: Option<String>,
) -> Vec<(u64, String)> {
    let told = |number: u64, one: &str, many: &str| {
        (number > 0).then(|| (number, if number == 1 { one } else { many }.to_owned()))
    };
    let mut noticed: Vec<(u64, String)> = [
        told(
            tally.conflicts,
            "batch came again with other content; the first counts",
            "batches came again with other content; the first counts",
        ),
        told(
            findings.flawed,
            "batch breaks the interface; values that cannot be read count as missing",
            "batches break the interface; values that cannot be read count as missing",
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    noticed.extend(incomplete.map(|words| (1, format!("warning: {words}"))));
    noticed
}
