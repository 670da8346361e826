//! `report`: writes one self-contained HTML page with charts.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::batches::BatchRequest;
use super::context::Context;
use super::messages::{count, figure_warnings};
use super::runtime;
use super::source::BatchSource;
use crate::analysis::KnownSpan;
use crate::analysis::report::{self, ReportData, ReportInfo};
use crate::batch::{COLUMNS, SCANNED_BY};
use crate::cli::ReportArgs;
use crate::config::Origin;
use crate::error::Failure;
use crate::export::Template;
use crate::fetch::DataIssues;
use crate::pipeline::Counts;
use crate::storage::{Compression, Location};
use crate::terminal;

pub(super) fn run(context: &Context, args: &ReportArgs) -> anyhow::Result<()> {
    let zone = context.settings()?.time_zone.value.clone();
    let request = BatchRequest::new(&args.selection, &args.source, zone)?;
    if args.title.trim().is_empty() {
        let hint = "give a title, or leave out `--title` to use \"Tray scans\"";
        return Err(Failure::usage("`--title` is empty", hint).into());
    }
    let location = location(args.output.as_deref())?;
    if args.open && !matches!(location, Location::File(_)) {
        let message = "`--open` needs a file on this machine";
        return Err(Failure::usage(message, "name one with `-o report.html`").into());
    }
    let created = creation_time(request.now)?.timestamp();
    context.protect_own_files(&[("-o", args.output.as_deref())])?;
    let (args, place) = (args.clone(), location.clone());
    runtime::run(
        context,
        async move |context| write_report(&context, &args, &request, &place, created).await,
        || location.left_behind(&context.storage),
    )
}

/// Returns the time of the report: now, or SOURCE_DATE_EPOCH for reproducible output.
fn creation_time(now: DateTime<Utc>) -> Result<DateTime<Utc>, Failure> {
    const VARIABLE: &str = "SOURCE_DATE_EPOCH";
    let Some(text) = env::var_os(VARIABLE).filter(|text| !text.is_empty()) else {
        return Ok(now);
    };
    let second = text.to_str().and_then(|text| text.parse().ok());
    let moment = second.and_then(|second| DateTime::from_timestamp(second, 0));
    moment.ok_or_else(|| {
        Failure::usage(
            format!("{VARIABLE} is not a number of seconds"),
            "unset it, or set it to seconds since 1970, such as 1767225600",
        )
    })
}

/// Decides where to write the page, and refuses names that suggest another format.
fn location(output: Option<&Path>) -> Result<Location, Failure> {
    if output.is_none() && terminal::stdout().is_terminal() {
        return Err(Failure::usage(
            "a report is an HTML file, not text for the terminal",
            "name a file with `-o report.html`; `trayscan summary` shows figures in the terminal",
        ));
    }
    if let Some(path) = output {
        let name = path.display();
        if Template::parse(path)?.is_some() {
            return Err(Failure::usage(
                format!("`{name}`: a report is one file"),
                "name one file; choose its batches with `--start`, `--end` and `--where`",
            ));
        }
    }
    // The name of the format alone is a slip, too.
    let is_slip = |path: &Path| path == Path::new("html") && !path.exists();
    let extension = output.and_then(Path::extension);
    let extension = extension.map(|extension| extension.to_string_lossy().to_lowercase());
    let is_other = |extension: String| OTHER_EXTENSIONS.contains(&extension.as_str());
    if output.is_some_and(is_slip) || extension.is_some_and(is_other) {
        return Err(Failure::usage(
            "a report is an HTML file",
            "use a name that ends in .html; `trayscan export` writes other formats, and a browser can print the page as PDF",
        ));
    }
    Location::new(output)
}

/// Returns the conditions as the page shows them: without those on people, unless `--emails` is given.
fn conditions(args: &ReportArgs) -> Vec<String> {
    let shown = |text: &String| {
        let field = text.split(['=', '!', '<', '>', '~']).next();
        let field = field.unwrap_or_default().trim();
        // A condition on another field may also contain an email address.
        let is_person = field == COLUMNS[SCANNED_BY].name || text.contains('@');
        if is_person && !args.emails {
            format!("{field} (not shown)")
        } else {
            text.clone()
        }
    };
    args.selection.conditions.iter().map(shown).collect()
}

/// Extensions of other formats.
const OTHER_EXTENSIONS: [&str; 12] = [
    "csv", "tsv", "json", "ndjson", "jsonl", "xlsx", "parquet", "sqlite", "db", "pdf", "gz", "zst",
];

/// Writes the page. `created` is shown as the time of the report, in seconds since 1970.
async fn write_report(
    context: &Context,
    args: &ReportArgs,
    request: &BatchRequest,
    location: &Location,
    created: i64,
) -> anyhow::Result<()> {
    let service = &args.source.service;
    let settings = context.settings()?;
    let storage = context.storage_for(&[args.output.as_deref()])?;
    let source = BatchSource::open(context, args.source.archive.as_deref())?;
    // Opened before the first request, so that an output that cannot be written fails at once.
    let mut output = storage.create(location, Compression::None, args.no_clobber)?;
    let range = &request.range;
    let available = source.available_range()?;
    let span = KnownSpan::new(range, &available, created, settings.time_zone.value.clone());
    let mut data = ReportData::new(args.step, span, args.emails);
    let left_behind = || location.left_behind(&storage);
    let received = request.receive(&source, &mut data, "report", left_behind);
    let received = received.await?;
    received.refuse_empty()?;

    let (counts, issues) = (&received.counts, &received.issues);
    let is_service = args.source.archive.is_none() && !service.sandbox;
    // The profile is named if it says which service was asked.
    let profile = match settings.base_url.as_ref().map(|url| &url.origin) {
        Some(Origin::File(name)) if is_service && name != "default" => Some(name.clone()),
        _ => None,
    };
    let odd_images = data.history.total().odd_images;
    let info = ReportInfo {
        title: args.title.clone(),
        profile,
        source: if service.sandbox {
            "the sandbox, with generated batches".to_owned()
        } else {
            let name = source.base_url().unwrap_or_else(|| source.name());
            match args.source.archive {
                Some(_) => format!("an archive of {name}"),
                None => name,
            }
        },
        range: source.limited(range)?,
        conditions: conditions(args),
        version: received.pages.version().map(|version| version.to_string()),
        has_emails: args.emails,
        noticed: noticed(counts, issues, odd_images, received.missing().cloned()),
        has_left_out: counts.conflicts > 0 || issues.flawed > 0 || odd_images > 0,
    };
    let page = report::render(&mut data, &info, &settings.targets)?;
    output.write_all(page.as_bytes())?;
    let published = output.publish()?;

    received.warn(figure_warnings(&data.history.total()));
    for (meant, crop) in data.history.crops_meant(&settings.targets) {
        terminal::note(&format!(
            "no batch has the crop in `[targets.{meant:?}]`; did you mean {crop:?}?"
        ));
    }
    received.print_notes();
    if let Some(path) = location.path().filter(|_| args.open) {
        open_on_desktop(&path).await;
    }
    let conclusion = format!(
        "report of {} ({}) to {}",
        count(counts.written, "batch", "batches"),
        received.describe(),
        location.name(),
    );
    let result = received.result(location, &published);
    terminal::finish(Some(&terminal::timed(&conclusion)), &result, None);
    Ok(())
}

/// Returns what the page says about problems with its batches.
fn noticed(
    counts: &Counts,
    issues: &DataIssues,
    odd_images: u64,
    missing: Option<String>,
) -> Vec<(u64, String)> {
    let found = [
        (
            counts.conflicts,
            "batch arrived again with different content; the first version counts",
            "batches arrived again with different content; the first version counts",
        ),
        (
            issues.skipped,
            "batch has no valid batch_id and is not in the report",
            "batches have no valid batch_id and are not in the report",
        ),
        (
            issues.flawed - issues.skipped,
            "batch breaks the interface; values that cannot be read count as missing",
            "batches break the interface; values that cannot be read count as missing",
        ),
        (
            odd_images,
            "batch has a number of images that cannot be used and counts as 0 in the weighted means",
            "batches have a number of images that cannot be used and counts as 0 in the weighted means",
        ),
    ];
    let found = found.into_iter().filter(|(number, ..)| *number > 0);
    let found = found.map(|(number, one, many)| {
        let words = if number == 1 { one } else { many };
        (number, words.to_owned())
    });
    let missing = missing.map(|warning| (1, format!("warning: {warning}")));
    found.chain(missing).collect()
}

/// How long a launcher may take to fail. One that still runs then has opened the file.
const PATIENCE: Duration = Duration::from_secs(2);

/// Opens `path`, or says why not. The file exists either way, so this is never a failure.
async fn open_on_desktop(path: &Path) {
    let name = path.display();
    if !has_desktop() {
        let note = format!("there is no desktop here; open `{name}` in a browser");
        terminal::note(&note);
        return;
    }
    // A relative name could be taken for an option.
    let absolute = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    for command in open::commands(&absolute) {
        if is_opened(command).await {
            return;
        }
    }
    log::warn!("no program opened `{name}`; open it in a browser");
}

/// Returns whether there is a desktop that can show a file. Elsewhere a launcher may start a browser in the
/// terminal.
fn has_desktop() -> bool {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    !cfg!(all(unix, not(target_os = "macos")))
        || ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"]
            .into_iter()
            .any(is_set)
}

async fn is_opened(mut command: Command) -> bool {
    let command = command
        .env_remove("TRAYSCAN_CLIENT_SECRET")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    let pause = Duration::from_millis(20);
    for _ in 0..PATIENCE.as_millis() / pause.as_millis() {
        match child.try_wait() {
            Ok(None) => tokio::time::sleep(pause).await,
            Ok(Some(status)) => return status.success(),
            Err(_) => return false,
        }
    }
    true
}
