//! `export`: fetches batches and writes them to a file, a pipe, many files, object storage or a table.
//!
//! Start with `run`: it checks the request, opens the outputs, fetches, publishes, and writes the manifest last. The
//! formats and the outputs themselves are in `formats` and `export` of the crate.

// What the command line asks for.
mod request;

// `--dry-run`.
mod dry_run;

// `--only-changed`.
mod lake;

mod manifest;

// What a run says at its end.
mod outcome;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Value, json};

use self::lake::{LakeLock, LakePlan, LakeUpdate};
use self::manifest::manifest;
use self::outcome::{format_notes, format_warnings, full_export, left_behind, partial_export};
use self::request::{ExportRequest, csv_options};
use super::batches::{Received, stopped};
use super::context::Context;
use super::messages::count;
use super::runtime;
use super::source::{BatchPages, BatchSource};
use crate::analysis::KnownSpan;
use crate::analysis::summary::CropFigures;
use crate::batch::range::written;
use crate::cli::ExportArgs;
use crate::error::Failure;
use crate::export::manifest::{Draft, Manifest};
use crate::export::{
    Crops, Destination, ExportSink, PartitionOptions, PartitionedWriter, Pending, PublishedExport,
    SummarisedWriter,
};
use crate::fetch::PageOrder;
use crate::formats::singer::SingerState;
use crate::formats::{self, ExportInfo, ExportOutcome, Format, WriterOptions};
use crate::pipeline::{Counts, Selection};
use crate::postgres::CopyLoader;
use crate::storage::cleanup::Folders;
use crate::storage::{Compression, Location, Storage, temp_file};
use crate::terminal;

pub(super) fn run(context: &Context, args: &ExportArgs) -> anyhow::Result<()> {
    let request = ExportRequest::new(args, context.settings()?.time_zone.value.clone())?;
    let named = [
        ("-o", args.output.output.as_deref()),
        ("--manifest", request.destination.manifest.as_deref()),
    ];
    context.protect_own_files(&named)?;
    let destination = request.destination.clone();
    let args = args.clone();
    runtime::run(
        context,
        async move |context| {
            if args.dry_run {
                return dry_run::run(&context, &args, &request);
            }
            export(&context, &args, &request).await
        },
        || left_behind(&destination, &context.storage),
    )
}

async fn export(
    context: &Context,
    args: &ExportArgs,
    request: &ExportRequest,
) -> anyhow::Result<()> {
    let destination = &request.destination;
    let locations = [
        args.output.output.as_deref(),
        destination.manifest.as_deref(),
    ];
    let storage = context.storage_for(&locations)?;
    let context = &context.with_storage(storage);
    let storage = &context.storage;
    let source = BatchSource::open(context, args.source.archive.as_deref())?;
    let folder = destination.lake_folder();
    let take_lock = || folder.as_deref().map(LakeLock::take).transpose();
    let mut lock = take_lock()?;
    let unfinished = lake::unfinished_files(destination, args.output.only_changed, storage)?;
    let plan = if args.output.only_changed {
        LakePlan::new(args, request, &source, &unfinished, storage)?
    } else {
        LakePlan::Everything { known: Vec::new() }
    };
    let (update, known) = match plan {
        LakePlan::Update(update) => (Some(*update), Vec::new()),
        LakePlan::Everything { known } => (None, known),
        LakePlan::UpToDate(manifest) => {
            return up_to_date(args, request, &source, &manifest, storage);
        }
    };
    lake::warn_of_cut_periods(args, request, storage);
    let pending = pending_list(args, destination, unfinished, &known, update.as_ref())?;
    let opened = OpenOutputs::new(args, request, context, &source, update, pending)?;
    if let Some(None) = lock {
        // The folder did not exist before this run.
        lock = take_lock()?;
    }
    let (conclusion, result) = opened.run(args, request, &source, known).await?;
    drop(lock);
    terminal::finish(Some(&terminal::timed(&conclusion)), &result, None);
    Ok(())
}

/// Returns the list of files that are about to change in a lake, including those that earlier runs did not finish.
fn pending_list(
    args: &ExportArgs,
    destination: &Destination,
    unfinished: BTreeSet<String>,
    known: &[String],
    update: Option<&LakeUpdate>,
) -> Result<Option<Pending>, Failure> {
    let Some((template, manifest)) = lake::tracked(destination, args.output.only_changed) else {
        return Ok(None);
    };
    let mut pending = Pending::new(manifest, template)?;
    pending.others = unfinished;
    pending.others.extend(known.iter().cloned());
    let names = update.iter().flat_map(|update| &update.names);
    pending.others.extend(names.cloned());
    Ok(Some(pending))
}

/// Ends a run that has nothing to write.
fn up_to_date(
    args: &ExportArgs,
    request: &ExportRequest,
    source: &BatchSource,
    manifest: &Manifest,
    storage: &Storage,
) -> anyhow::Result<()> {
    let batches = &request.batches;
    batches.refuse_empty(manifest.batches, &Counts::default())?;
    let range = &batches.range;
    let incomplete = source.incomplete(range)?;
    if let Some(warning) = incomplete.map_or_else(|| source.outdated(range), |it| Ok(Some(it)))? {
        log::warn!("{warning}");
    }
    if let Some(folder) = request.destination.lake_folder() {
        temp_file::remove_strays(&folder);
    }
    if let Some(template) = &request.destination.template {
        let files = lake::current_names(manifest, template).into_iter();
        let files = files.map(|(name, _)| name).collect();
        lake::warn_of_strays(template, &files, true, storage);
    }
    // A killed run may have written everything except the marker.
    let marker = request.destination.success_marker.as_deref();
    let is_needed = args.output.success_marker && manifest.complete;
    let marker = marker.filter(|marker| is_needed && !lake::exists(marker, storage));
    write_success_marker(marker, storage)?;
    let conclusion = format!(
        "nothing has changed: {} is up to date ({} in {})",
        request.destination.name(),
        count(manifest.batches, "batch", "batches"),
        count(manifest.files.len() as u64, "file", "files"),
    );
    let mut result = batches.result(source, None, manifest.batches, &[]);
    add_lake_counts(&mut result, 0, 0, manifest.files.len());
    terminal::finish(Some(&terminal::timed(&conclusion)), &result, None);
    Ok(())
}

/// Adds to the result what became of the files of a lake.
fn add_lake_counts(result: &mut Value, rewritten: usize, removed: u64, total: usize) {
    result["files_rewritten"] = rewritten.into();
    result["files_removed"] = removed.into();
    result["files_total"] = total.into();
}

/// Writes the file that marks a complete export, if there is to be one.
fn write_success_marker(path: Option<&Path>, storage: &Storage) -> Result<(), Failure> {
    let Some(path) = path else {
        return Ok(());
    };
    let location = Location::new(Some(path))?;
    let mut folders = Folders::default();
    if let Location::File(path) = &location {
        // Without any batches, there is no folder yet.
        let created = folders.create_for(path, &storage.cleanup);
        created.map_err(|error| Failure::from_output(&location.name(), error))?;
    }
    let output = storage.create(&location, Compression::None, false)?;
    output.publish().map(drop)
}

/// The outputs, opened before the first request so that one that cannot be written fails at once.
struct OpenOutputs {
    files: ExportSink,
    storage: Storage,
    /// Whether batches are visible as they are written.
    live: bool,
    manifest: Option<Draft>,
    /// What `--only-changed` rewrites; `None` for everything.
    update: Option<LakeUpdate>,
    /// The file that marks a complete export.
    success_marker: Option<PathBuf>,
}

impl OpenOutputs {
    fn new(
        args: &ExportArgs,
        request: &ExportRequest,
        context: &Context,
        source: &BatchSource,
        update: Option<LakeUpdate>,
        pending: Option<Pending>,
    ) -> Result<Self, Failure> {
        let range = source.limited(&request.batches.range)?;
        // A marker of an earlier run must not outlive what it stands for.
        let marker = request.destination.success_marker.as_deref();
        let marker = marker.filter(|path| args.output.success_marker || path.is_file());
        let info = Arc::new(ExportInfo {
            range: range.describe(),
            filters: filters(args),
            source: source.base_url().unwrap_or_default(),
            sorting: request.sorting.clone(),
        });
        let (destination, storage) = (&request.destination, &context.storage);
        let options = writer_options(args, request, source, &info)?;
        let format = destination.format;
        let (now, zone) = (request.batches.now.timestamp(), &request.batches.zone);
        let span = KnownSpan::new(&range, &source.available_range()?, now, zone.clone());
        let make_writer = move |output| {
            let writer = formats::new_writer(format, output, options.clone())?;
            Ok(match format {
                Format::Xlsx => {
                    let figures = CropFigures::new(span.clone());
                    Box::new(SummarisedWriter::new(writer, figures))
                }
                _ => writer,
            })
        };
        let no_clobber = args.output.no_clobber;
        let manifest = destination.manifest.as_deref();
        let has_digest = manifest.is_some() || format.embeds_digest();
        let new_digest = has_digest.then(|| request.new_digest());
        let (files, live) = if let Location::Table(address) = &destination.place {
            let options = context.settings()?.client_options()?;
            let loader =
                CopyLoader::open(address, options, &request.fields, args.selection.lenient)?;
            let table = ExportSink::Table {
                loader: Box::new(loader),
                place: destination.place.clone(),
                digest: new_digest.map(|new| new()),
                storage: storage.clone(),
            };
            (table, false)
        } else if let Some(template) = destination.template.clone() {
            let success_marker = marker.map(|path| Location::new(Some(path)));
            let reserved = [manifest, destination.success_marker.as_deref()];
            let reserved = reserved.into_iter().flatten();
            let reserved = reserved.map(|path| Location::new(Some(path)));
            let options = PartitionOptions {
                compression: destination.compression,
                no_clobber,
                has_manifest: manifest.is_some(),
                reserved: reserved.collect::<Result<_, _>>()?,
                new_digest: new_digest.map(|new| Box::new(new) as _),
                new_writer: Box::new(make_writer),
                range: request.batches.range,
                only: update.as_ref().map(|update| update.names.clone()),
                crops: update
                    .as_ref()
                    .map_or_else(|| Crops::new(&template), |update| update.crops.clone()),
                pending,
                success_marker: success_marker.transpose()?,
            };
            let writer = PartitionedWriter::new(template, options, storage)?;
            (ExportSink::Many(Box::new(writer)), false)
        } else {
            let mut output =
                storage.create(&destination.place, destination.compression, no_clobber)?;
            if manifest.is_some() {
                output = output.hashed();
            }
            let (live, place) = (output.live, destination.place.clone());
            let writer = make_writer(output)?;
            let one = ExportSink::One {
                writer,
                place,
                digest: new_digest.map(|new| new()),
            };
            (one, live)
        };
        let make_folder = destination.template.is_some();
        let draft = manifest
            .map(|path| Draft::open(path, no_clobber, make_folder, storage))
            .transpose()?;
        if let Some(path) = manifest.filter(|_| destination.has_manifest_in_the_way()) {
            log::warn!(
                "`{}` is among the data files, and Spark, pyarrow and pandas would read it as data; \
                 name it `_manifest.json`, which they skip",
                path.display()
            );
        }
        Ok(Self {
            files,
            storage: storage.clone(),
            live,
            manifest: draft,
            update,
            success_marker: marker.map(Path::to_path_buf),
        })
    }

    /// Fetches, publishes, and writes the manifest; returns the last line and the result. `known` are the files of a lake before the run.
    async fn run(
        mut self,
        args: &ExportArgs,
        request: &ExportRequest,
        source: &BatchSource,
        known: Vec<String>,
    ) -> anyhow::Result<(String, Value)> {
        let destination = &request.destination;
        let storage = &self.storage.clone();
        let mut received = self.fetch(args, request, source).await?;
        let update = self.update.as_ref();
        let batches = update.map_or(received.counts.written, |update| update.digest.count());
        request.batches.refuse_empty(batches, &received.counts)?;
        if batches > 0 {
            // Only the rewritten files of a lake may be without a match.
            received.counts.unmatched = None;
        }
        let version = received.pages.version().map(|version| version.to_string());
        let crop_names = self.files.crop_names();
        let PublishedExport {
            files: written,
            report,
            digest,
        } = self.files.publish(&ExportOutcome {
            version: version.as_deref(),
            is_cut: received.counts.is_cut,
            digest: None,
            summary: None,
        })?;
        let (kept, known, digest) = match self.update {
            Some(update) => {
                let names = update.names.into_iter().collect();
                (Some(update.kept), names, Some(update.digest))
            }
            None => (None, known, digest),
        };
        let mut removed = 0;
        let only_changed = args.output.only_changed;
        if let (Some(template), true) = (&destination.template, self.manifest.is_some()) {
            if only_changed {
                let others = lake::remove_others(template, known, &written, storage);
                removed = others.context(
                    "the new files were written, but a file without batches could not be removed",
                )?;
                // The last line of a partial run says it.
                if removed > 0 && kept.is_none() {
                    log::warn!(
                        "removed {} of the earlier export that this one has no batches for",
                        count(removed, "file", "files")
                    );
                }
            }
            let kept = kept.iter().flatten().map(|file| file.path.clone());
            let files = written.iter().map(|file| file.path.clone()).chain(kept);
            lake::warn_of_strays(template, &files.collect(), only_changed, storage);
        }
        received.warn(format_warnings(&report, destination));
        let places: HashSet<String> = written.iter().map(|file| file.path.clone()).collect();
        let conclusion = match &kept {
            None => full_export(request, &received, &written, &report),
            Some(kept) => partial_export(request, source, &written, kept, removed, batches),
        };
        let files = written.iter().filter(|file| file.path != "-");
        let files = files.map(|file| json!({"path": file.path, "bytes": file.bytes}));
        let files: Vec<Value> = files.collect();
        let pages = &received.pages;
        let mut result = request
            .batches
            .result(source, pages.version(), batches, &files);
        if let (Some(result), Some(rows)) = (result.as_object_mut(), &report.counts) {
            result.extend(json!(rows).as_object().cloned().unwrap_or_default());
        }
        if only_changed {
            let total = written.len() + kept.as_ref().map_or(0, Vec::len);
            add_lake_counts(&mut result, written.len(), removed, total);
        }
        if let (Some(draft), Some(digest)) = (self.manifest, digest) {
            let files = kept.into_iter().flatten().chain(written).collect();
            let manifest = manifest(args, request, source, &received, files, crop_names, &digest);
            let written = manifest.and_then(|manifest| draft.write(&manifest));
            written.context("the export was written, but its manifest was not")?;
            lake::remove_pending_list(destination, only_changed, &places, storage).context(
                "everything was written, but the list of pending changes could not be removed",
            )?;
        }
        if received.incomplete.is_none() {
            let marked = write_success_marker(self.success_marker.as_deref(), storage);
            marked.context("the export was written, but `_SUCCESS` was not")?;
        } else if let Some(marker) = &self.success_marker {
            Location::new(Some(marker))?.remove(storage)?;
            log::warn!(
                "`_SUCCESS` was not written, because the archive is not known to be complete"
            );
        }
        for note in format_notes(&report) {
            terminal::note(&note);
        }
        received.print_notes();
        Ok((conclusion, result))
    }

    /// Fetches the batches and writes them, without publishing yet.
    async fn fetch<'a>(
        &mut self,
        args: &ExportArgs,
        request: &'a ExportRequest,
        source: &'a BatchSource,
    ) -> anyhow::Result<Received<'a>> {
        let destination = &request.destination;
        let data_on_terminal =
            self.live && terminal::stdout().is_terminal() && destination.format != Format::Table;
        let order = PageOrder::for_export(request.sorting.is_some(), args.limit.is_some());
        let rows = self.update.as_mut().and_then(|update| update.rows.take());
        let lenient = args.selection.lenient;
        let pages = match (source.archive(), rows) {
            (Some(archive), Some(rows)) => {
                let pages = archive.pages_of(Some(rows), request.batches.range, lenient)?;
                BatchPages::Archive(Box::new(pages))
            }
            _ => source.pages(request.batches.range, order, lenient)?,
        };
        let selection = Selection {
            sorting: request.sorting.clone(),
            limit: args.limit,
            live: self.live,
            ..request.batches.selection()
        };
        let received = request.batches.receive_pages(
            source,
            pages,
            &mut self.files,
            &selection,
            data_on_terminal,
        );
        received.await.map_err(|failure| {
            let left_behind = || left_behind(destination, &self.storage);
            stopped(failure, source, "export", left_behind)
        })
    }
}

/// Returns the options of the format.
fn writer_options(
    args: &ExportArgs,
    request: &ExportRequest,
    source: &BatchSource,
    info: &Arc<ExportInfo>,
) -> Result<WriterOptions, Failure> {
    let is_stdout = request.destination.place.is_stdout();
    let now = request.batches.now.timestamp();
    // The runs before sent what is before the start of a state, but not what is missing there.
    let start = request.batches.range.start;
    let start = start.filter(|_| request.state.is_none());
    Ok(WriterOptions {
        fields: request.fields.clone(),
        numbers: args.output.numbers,
        csv: csv_options(&args.output),
        width: terminal::terminal_width().filter(|_| is_stdout),
        color: is_stdout && terminal::color_on_stdout(),
        extracted: written(now),
        bookmark: request.state.as_ref().and_then(SingerState::bookmark),
        complete_until: source.complete_until(start, now)?.map(written),
        info: Arc::clone(info),
    })
}

/// Returns the filters and the limit as the user wrote them.
fn filters(args: &ExportArgs) -> Vec<String> {
    let sorted = args.sort.as_ref().map(|order| format!(" by {order}"));
    let sorted = sorted.unwrap_or_default();
    let limit = args.limit.map(|limit| format!("the first {limit}{sorted}"));
    let conditions = args.selection.conditions.iter().cloned();
    conditions.chain(limit).collect()
}
