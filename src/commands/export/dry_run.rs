//! `--dry-run`: what an export would request and write.
//!
//! Checks everything that the run itself checks before its first request, but sends nothing and writes nothing.

use std::path::Path;

use serde_json::{Value, json};

use super::lake::{self, LakeLock, LakePlan};
use super::request::ExportRequest;
use crate::batch::COLUMNS;
use crate::batch::range::{Range, written};
use crate::cli::ExportArgs;
use crate::client::Api;
use crate::commands::batches::dates;
use crate::commands::context::Context;
use crate::commands::messages::count;
use crate::commands::source::BatchSource;
use crate::error::Failure;
use crate::export::{Destination, PartitionedWriter, Template, check_folder};
use crate::formats::Format;
use crate::secret::conceal_credentials;
use crate::storage::path::folder_of;
use crate::storage::sqlite::refuse_sidecars;
use crate::storage::{Compression, Existing, Location, Storage};
use crate::terminal;
use crate::text::{join, one_line, thousands};
use crate::verify::Lake;

pub(super) fn run(
    context: &Context,
    args: &ExportArgs,
    request: &ExportRequest,
) -> anyhow::Result<()> {
    let archive = args.source.archive.as_deref();
    let archive = archive.map(|path| BatchSource::open(context, Some(path)));
    let archive = archive.transpose()?;
    let range = match &archive {
        Some(source) => source.limited(&request.batches.range)?,
        None => request.batches.range,
    };
    let destination = &request.destination;
    let manifest = destination.manifest.as_deref();
    let locations = [args.output.output.as_deref(), manifest];
    let storage = &context.storage_for(&locations)?;
    let (source, api) = match &archive {
        Some(source) => (source.name(), None),
        None => BatchSource::check_service(context)?,
    };
    let lock = destination.lake_folder();
    let _lock = lock.as_deref().map(LakeLock::take).transpose()?;
    let (exists, is_up_to_date) = existing(context, args, request, archive.as_ref(), storage)?;
    let manifest_exists =
        manifest.map(|path| existing_manifest(path, args, destination, is_up_to_date, storage));
    let fields = request.fields.columns.iter();
    let fields: Vec<&str> = fields.map(|&column| COLUMNS[column].name).collect();
    let plan = json!({
        "dry_run": true,
        "source": source,
        // The dates that are requested, in UTC.
        "range": dates(&range),
        "excludes_end": range.excludes_end,
        // The choice of API versions; null for an archive.
        "version": api.map(Api::name),
        "where": args.selection.conditions,
        "fields": fields,
        "sort": args.sort,
        "limit": args.limit,
        "format": destination.format.name(),
        "compression": match destination.compression {
            Compression::None => None,
            Compression::Gzip => Some("gzip"),
            Compression::Zstd => Some("zstd"),
        },
        "destination": destination.place.address(),
        // What is at the destination now, and what would become of it.
        "exists": exists,
        "manifest": manifest.map(|path| path.display().to_string()),
        "manifest_exists": manifest_exists.transpose()?,
    });
    lake::warn_of_cut_periods(args, request, &context.storage);
    terminal::print(&conceal_credentials(&describe_plan(&plan, &range)))?;
    terminal::finish(None, &plan, None);
    Ok(())
}

/// Says what is at the destination, and whether `--only-changed` would leave everything as it is; fails if it cannot be
/// written.
fn existing(
    context: &Context,
    args: &ExportArgs,
    request: &ExportRequest,
    archive: Option<&BatchSource>,
    storage: &Storage,
) -> anyhow::Result<(String, bool)> {
    let destination = &request.destination;
    if let Location::Table(_) = &destination.place {
        context.settings()?.client_options()?;
        let exists = "not looked up; rows would be added and updated by batch_id";
        return Ok((exists.to_owned(), false));
    }
    if let Some(template) = &destination.template {
        return existing_files(args, request, template, archive, storage);
    }
    let existing = storage.check(&destination.place, args.output.no_clobber)?;
    if let (Format::Sqlite, Location::File(path)) = (destination.format, &destination.place) {
        refuse_sidecars(path)?;
    }
    Ok((describe(existing), false))
}

/// Says what is in the folder of a partitioned export, and whether `--only-changed` would leave everything as it is.
fn existing_files(
    args: &ExportArgs,
    request: &ExportRequest,
    template: &Template,
    archive: Option<&BatchSource>,
    storage: &Storage,
) -> anyhow::Result<(String, bool)> {
    PartitionedWriter::check(template, storage)?;
    if let Location::Object(_) = &request.destination.place {
        return Ok((describe(Existing::Unknown), false));
    }
    if args.output.only_changed
        && let Some(source) = archive
    {
        return changed_files(args, request, source, storage);
    }
    // A folder that cannot be read is not a reason to fail.
    let lake = Lake::find(Path::new(&template.text())).ok().flatten();
    let files = lake.map_or_else(Vec::new, |lake| lake.files(storage).unwrap_or_default());
    if files.is_empty() {
        return Ok(("no file with such a name".to_owned(), false));
    }
    let files = count(files.len() as u64, "file", "files");
    let then = if args.output.no_clobber {
        "the export would fail if it has batches for one of them (`--no-clobber`)"
    } else {
        "those of the selected batches would be replaced"
    };
    Ok((format!("{files} with such a name; {then}"), false))
}

/// Says which files `--only-changed` would rewrite, and whether there are none.
fn changed_files(
    args: &ExportArgs,
    request: &ExportRequest,
    source: &BatchSource,
    storage: &Storage,
) -> anyhow::Result<(String, bool)> {
    let unfinished = lake::unfinished_files(&request.destination, true, storage)?;
    let files = |files: usize| count(files as u64, "file", "files");
    let plan = LakePlan::new(args, request, source, &unfinished, storage)?;
    let is_up_to_date = matches!(plan, LakePlan::UpToDate(_));
    let exists = match plan {
        LakePlan::UpToDate(manifest) => {
            format!("{}; nothing has changed", files(manifest.files.len()))
        }
        LakePlan::Update(update) => format!(
            "{} would be rewritten, and {} kept",
            files(update.names.len()),
            thousands(update.kept.len() as u64)
        ),
        LakePlan::Everything { known } => format!(
            "{} of an earlier run; all files would be written{}",
            files(known.len()),
            if known.is_empty() {
                ""
            } else {
                ", and earlier ones without batches removed"
            }
        ),
    };
    Ok((exists, is_up_to_date))
}

/// Says what is at the name of the manifest; fails if it cannot be written.
fn existing_manifest(
    path: &Path,
    args: &ExportArgs,
    destination: &Destination,
    is_up_to_date: bool,
    storage: &Storage,
) -> Result<String, Failure> {
    let location = Location::new(Some(path))?;
    // The folder is created with those of the files.
    if let (Some(_), Location::File(path)) = (&destination.template, &location)
        && !path.exists()
    {
        check_folder(folder_of(path))?;
        return Ok(describe(Existing::Nothing));
    }
    let existing = storage.check(&location, args.output.no_clobber)?;
    Ok(match existing {
        Existing::File(bytes) if is_up_to_date => {
            let bytes = count(bytes, "byte", "bytes");
            format!("a file of {bytes}, which would stay as it is")
        }
        existing => describe(existing),
    })
}

fn describe(existing: Existing) -> String {
    match existing {
        Existing::Nothing => "nothing".to_owned(),
        Existing::File(bytes) => {
            let bytes = count(bytes, "byte", "bytes");
            format!("a file of {bytes}, which would be replaced")
        }
        Existing::Stream => "not a file; batches would be written to it as they arrive".to_owned(),
        Existing::Unknown => "not looked up".to_owned(),
    }
}

/// Describes the plan for people.
fn describe_plan(plan: &Value, range: &Range) -> String {
    let text = |key: &str| plan[key].as_str();
    let texts = |key: &str| {
        let texts = plan[key].as_array().into_iter().flatten();
        texts.filter_map(Value::as_str).collect::<Vec<&str>>()
    };
    let mut lines = vec![("source", text("source").unwrap_or_default().to_owned())];
    let mut line = |name, value: &str| lines.push((name, value.to_owned()));
    line("range", &describe_range(range));
    if let Some(version) = text("version") {
        line("request", &range.asked());
        line(
            "version",
            match version {
                "auto" => "v2, or v1 if the service has no v2",
                version => version,
            },
        );
    }
    let conditions = texts("where");
    for condition in &conditions {
        line("where", condition);
    }
    if conditions.is_empty() {
        line("where", "all batches");
    }
    let fields = texts("fields");
    let has_all = fields == COLUMNS.map(|column| column.name);
    let names = fields.join(", ");
    line("fields", if has_all { "all" } else { &names });
    if let Some(sort) = text("sort") {
        line("sort", sort);
    }
    if let Some(limit) = plan["limit"].as_u64() {
        line("limit", &thousands(limit));
    }
    let format = [text("format"), text("compression")];
    line("format", &join(format.into_iter().flatten(), ", "));
    line(
        "destination",
        match text("destination") {
            Some("-") => "standard output",
            destination => destination.unwrap_or_default(),
        },
    );
    line("exists", text("exists").unwrap_or_default());
    if let (Some(manifest), Some(exists)) = (text("manifest"), text("manifest_exists")) {
        line("manifest", &format!("{manifest} (exists: {exists})"));
    }
    let line = |(name, value): (&str, String)| {
        let name = format!("{name}:");
        format!("{name:13}{}\n", one_line(&value))
    };
    lines.into_iter().map(line).collect()
}

/// Describes the creation dates that are selected, in UTC.
fn describe_range(range: &Range) -> String {
    let up_to = if range.excludes_end {
        "up to, not including,"
    } else {
        "up to"
    };
    let bounds = [("from", range.start), (up_to, range.end)].into_iter();
    let bounds = bounds.filter_map(|(word, second)| Some(format!("{word} {}", written(second?))));
    match join(bounds, " ") {
        all if all.is_empty() => "all dates".to_owned(),
        bounds => bounds,
    }
}
