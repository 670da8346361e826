//! `export`: from pages to a file, a pipe or the terminal.

use std::collections::{BTreeSet, HashSet};
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use chrono::{DateTime, Utc};

use super::lake::{self, LakeLock, LakePart, Update, Work};
use super::manifest::ManifestInputs;
use super::messages::{
    SelectionRequest, count, doubts, how, nothing_matched, quoted, stopped, tell,
};
use super::source::{BatchPages, BatchSource};
use super::{own_files, runtime, storage};
use crate::batch::digest::SetDigest;
use crate::batch::filter::{Condition, Fields, Sorting};
use crate::batch::range::{Range, written};
use crate::cli::{Cli, ExportArgs};
#[cfg(feature = "postgres")]
use crate::config::Settings;
use crate::error::{Failure, Kind};
use crate::export;
use crate::export::DigestingSink;
use crate::export::manifest::{self, Draft, Manifest};
use crate::export::{Crops, Destination, ExportSink, PartitionedWriter, Pending, WrittenFile};
use crate::fetch::PageOrder;
use crate::formats::Format;
use crate::formats::csv::CsvOptions;
use crate::formats::singer::SingerState;
use crate::formats::{self, ExportInfo, WriterOptions, WriterReport};
use crate::pipeline::{self, Counts, Selection};
#[cfg(feature = "postgres")]
use crate::postgres::{CopyLoader, Reach};
use crate::storage::cleanup;
use crate::storage::cloud;
use crate::storage::temp_file;
use crate::storage::{Compression, EncodedOutput, Location, OutputTarget};
use crate::terminal::{self, ProgressLine};

/// How much before the end of an earlier run is sent again.
const LOOKBACK: Duration = Duration::from_secs(7 * 86_400);

pub(super) fn run(cli: &Cli, args: &ExportArgs) -> anyhow::Result<()> {
    let wanted = ExportRequest::new(args)?;
    let outputs = [
        ("-o", args.output.output.as_deref()),
        ("--manifest", wanted.destination.manifest.as_deref()),
    ];
    own_files::protect(&args.source.service, &outputs)?;
    let destination = wanted.destination.clone();
    let from_environment = cli.from_environment.clone();
    let args = args.clone();
    runtime::run(
        async move || export(&from_environment, &args, &wanted).await,
        || left_behind(&destination),
    )
}

/// What the command line asks for, checked before anything is sent.
pub(super) struct ExportRequest {
    pub(super) destination: Destination,
    pub(super) fields: Fields,
    pub(super) conditions: Vec<Condition>,
    sorting: Option<Sorting>,
    pub(super) range: Range,
    /// What an earlier run ended with.
    state: Option<SingerState>,
    /// When it was asked for: what "today" and "7d" are counted from.
    asked: DateTime<Utc>,
}

impl ExportRequest {
    fn new(args: &ExportArgs) -> Result<Self, Failure> {
        let SelectionRequest {
            mut range,
            conditions,
            asked,
        } = SelectionRequest::new(&args.selection)?;
        if args.output.only_changed && args.source.archive.is_none() {
            return Err(Failure::new(
                Kind::Usage,
                "`--only-changed` is for an archive, which knows what has changed",
            )
            .hint("keep one with `trayscan sync batches.db`, and export from it with `--archive batches.db`"));
        }
        let state = args
            .output
            .state
            .as_deref()
            .map(SingerState::read)
            .transpose()?;
        if let Some(state) = &state {
            let lookback = args.output.lookback.unwrap_or(LOOKBACK);
            range = range.continued(state.start(lookback))?;
        }
        Ok(Self {
            asked,
            state,
            range,
            destination: Destination::new(&args.output)?,
            fields: args
                .fields
                .as_deref()
                .map_or_else(|| Ok(Fields::all()), Fields::parse)?,
            conditions,
            sorting: args.sort.as_deref().map(Sorting::parse).transpose()?,
        })
    }
}

impl ExportRequest {
    /// Returns which batches are wanted.
    pub(super) fn plan(&self) -> Selection {
        Selection {
            conditions: self.conditions.clone(),
            ..Selection::new(&self.range)
        }
    }

    /// Returns what starts the digest of an output.
    pub(super) fn new_digest(&self) -> impl Fn() -> SetDigest + use<> {
        let keeps_unknown = self.destination.format.keeps_unknown_fields() && !self.fields.named;
        let columns = self.fields.columns.clone();
        move || SetDigest::new(&columns).with_unknown_fields(keeps_unknown)
    }
}

async fn export(
    from_environment: &[String],
    args: &ExportArgs,
    wanted: &ExportRequest,
) -> anyhow::Result<()> {
    let started = Instant::now();
    let destination = &wanted.destination;
    let places = [
        args.output.output.as_deref(),
        destination.manifest.as_deref(),
    ];
    storage::prepare(&args.source.service, from_environment, &places)?;
    let source = BatchSource::open(&args.source, from_environment)?;
    let mut lock = destination
        .lake_folder()
        .as_deref()
        .map(LakeLock::take)
        .transpose()?;
    let unfinished = lake::unfinished(destination, args.output.only_changed)?;
    let work = match source.archive() {
        Some(archive) if args.output.only_changed => {
            let complete = source.incomplete(&wanted.range)?.is_none();
            Some(Work::find(args, wanted, archive, &unfinished, complete)?)
        }
        _ => None,
    };
    if let Some(Work::Nothing(manifest)) = &work {
        return up_to_date(args, wanted, &source, manifest, started);
    }
    let (update, known) = match work {
        Some(Work::Some(update)) => (Some(*update), Vec::new()),
        Some(Work::Everything { known }) => (None, known),
        _ => (None, Vec::new()),
    };
    let pending = pending(args, destination, unfinished, &known, update.as_ref())?;
    let opened = Opened::new(
        args,
        wanted,
        from_environment,
        source.base_url(),
        update,
        pending,
    )?;
    if let Some(None) = lock {
        // The folder was made for this run.
        lock = destination
            .lake_folder()
            .as_deref()
            .map(LakeLock::take)
            .transpose()?;
    }
    let concluded = opened.run(args, wanted, &source, known).await?;
    drop(lock);
    terminal::conclude(&format!(
        "{concluded} in {:.1} s",
        started.elapsed().as_secs_f64()
    ));
    Ok(())
}

/// Prepares the list of what is about to change in a lake, with what earlier runs have not finished.
fn pending(
    args: &ExportArgs,
    destination: &Destination,
    unfinished: BTreeSet<String>,
    known: &[String],
    update: Option<&Update>,
) -> Result<Option<Pending>, Failure> {
    let Some((template, manifest)) = lake::followed(destination, args.output.only_changed) else {
        return Ok(None);
    };
    let mut pending = Pending::new(manifest, template)?;
    pending.others = unfinished;
    pending.others.extend(known.iter().cloned());
    let names = update.iter().flat_map(|update| &update.part.names);
    pending.others.extend(names.cloned());
    Ok(Some(pending))
}

/// Says that there is nothing to write.
fn up_to_date(
    args: &ExportArgs,
    wanted: &ExportRequest,
    source: &BatchSource,
    manifest: &Manifest,
    started: Instant,
) -> anyhow::Result<()> {
    if manifest.batches == 0 && args.selection.fail_on_empty {
        return Err(nothing_matched(&wanted.range, &args.selection, &Counts::default()).into());
    }
    if let Some(warning) = source.incomplete(&wanted.range)? {
        log::warn!("{warning}");
    }
    if let Some(folder) = wanted.destination.lake_folder() {
        temp_file::remove_strays(&folder);
    }
    if let Some(template) = &wanted.destination.template {
        let files = lake::names(manifest, template).into_iter();
        lake::warn_of_strays(template, &files.map(|(name, _)| name).collect());
    }
    // A run that was killed may have written everything but this.
    let marker = wanted.destination.success_marker.as_deref();
    if marker.is_some_and(|marker| !lake::is_there(marker)) {
        write_success_marker(&wanted.destination)?;
    }
    terminal::conclude(&format!(
        "nothing has changed: {} is up to date ({} in {}) in {:.1} s",
        wanted.destination.name(),
        count(manifest.batches, "batch", "batches"),
        count(manifest.files.len() as u64, "file", "files"),
        started.elapsed().as_secs_f64()
    ));
    Ok(())
}

/// Writes the file that says that everything is in its place, if it is wanted.
fn write_success_marker(destination: &Destination) -> Result<(), Failure> {
    let Some(path) = &destination.success_marker else {
        return Ok(());
    };
    let target = OutputTarget::open(&Location::new(Some(path))?, false)?;
    let output = EncodedOutput::new(target, Compression::None).map_err(Failure::from_output)?;
    output.publish().map(drop)
}

/// The places that will be written. Opened before the first request, so that one that cannot be
/// written is found out at once.
struct Opened {
    files: ExportSink,
    /// Somebody may be reading along.
    live: bool,
    receipt: Option<Draft>,
    facts: Arc<ExportInfo>,
    /// What `--only-changed` leaves to write; `None` for everything.
    part: Option<LakePart>,
    digest: Option<SetDigest>,
}

impl Opened {
    fn new(
        args: &ExportArgs,
        wanted: &ExportRequest,
        from_environment: &[String],
        base_url: Option<String>,
        update: Option<Update>,
        pending: Option<Pending>,
    ) -> Result<Self, Failure> {
        let facts = Arc::new(ExportInfo {
            range: wanted.range.describe(),
            filters: filters(args),
            source: base_url.unwrap_or_default(),
            sorting: wanted.sorting,
            ..ExportInfo::default()
        });
        let destination = &wanted.destination;
        let style = WriterOptions {
            fields: wanted.fields.clone(),
            numbers: args.output.numbers,
            csv: CsvOptions {
                delimiter: args.output.delimiter.clone(),
                decimal_comma: args.output.decimal_comma,
                bom: args.output.bom,
                no_header: args.output.no_header,
                excel: args.output.excel,
            },
            width: terminal::terminal_width().filter(|_| destination.place.is_stdout()),
            color: destination.place.is_stdout() && terminal::color_on_stdout(),
            extracted: written(wanted.asked.timestamp()),
            bookmark: wanted.state.as_ref().and_then(SingerState::bookmark),
            facts: Arc::clone(&facts),
        };
        let format = destination.format;
        let make = move |output| formats::new_writer(format, output, style.clone());
        let no_clobber = args.output.no_clobber;
        let manifest = destination.manifest.as_deref();
        let table = table(args, wanted, from_environment)?;
        let (part, crops, digest) = if let Some(update) = update {
            (Some(update.part), update.crops, Some(update.digest))
        } else {
            let digest = manifest.map(|_| wanted.new_digest()());
            (None, Crops::default(), digest)
        };
        let (files, live) = if let Some(table) = table {
            (table, false)
        } else if let Some(template) = destination.template.clone() {
            let marker = destination.success_marker.as_deref();
            let marker = marker.map(|path| Location::new(Some(path))).transpose()?;
            let manner = export::PartitionOptions {
                compression: destination.compression,
                no_clobber,
                manifest: manifest.map(|path| Location::new(Some(path))).transpose()?,
                new_digest: manifest.map(|_| Box::new(wanted.new_digest()) as _),
                kept: format.representation(),
                maker: Box::new(make),
                only: part.as_ref().map(|part| part.names.clone()),
                crops,
                pending,
                success_marker: marker,
            };
            let spool = PartitionedWriter::new(template, manner)?;
            (ExportSink::Many(Box::new(spool)), false)
        } else {
            let target = OutputTarget::open(&destination.place, no_clobber)?;
            let mut output = EncodedOutput::new(target, destination.compression)
                .map_err(Failure::from_output)?;
            if manifest.is_some() {
                output = output.hashed();
            }
            let (live, place) = (output.is_live(), destination.place.clone());
            let writer = make(output)?;
            (ExportSink::One { writer, place }, live)
        };
        let make_folder = destination.template.is_some();
        let receipt = manifest
            .map(|path| Draft::open(path, no_clobber, make_folder))
            .transpose()?;
        if let Some(path) = manifest.filter(|_| destination.has_manifest_in_the_way()) {
            log::warn!(
                "`{}` lies among the data, and Spark, pyarrow and pandas would read it as data; \
                 call it `_manifest.json`, which they skip",
                path.display()
            );
        }
        Ok(Self {
            files,
            live,
            receipt,
            facts,
            part,
            digest,
        })
    }

    /// Takes the batches to their places; says what came of it. A lake had `known` files before.
    async fn run(
        mut self,
        args: &ExportArgs,
        wanted: &ExportRequest,
        source: &BatchSource,
        known: Vec<String>,
    ) -> anyhow::Result<String> {
        let destination = &wanted.destination;
        let (tally, pages) = self.fetch(args, wanted, source).await?;
        let lake_batches = self.part.as_ref().and(self.digest.as_ref());
        let batches = lake_batches.map_or(tally.written, SetDigest::count);
        if batches == 0 && args.selection.fail_on_empty {
            return Err(nothing_matched(&wanted.range, &args.selection, &tally).into());
        }
        if let Some(version) = pages.version() {
            // It is set here and nowhere else.
            let _ = self.facts.version.set(version.to_string());
        }
        self.facts.is_cut.store(tally.is_cut, Ordering::Relaxed);
        let crop_names = self.files.crop_names();
        let (written, notes) = self.files.publish()?;
        let (kept, known) = match self.part {
            Some(LakePart { kept, names, .. }) => (Some(kept), names.into_iter().collect()),
            None => (None, known),
        };
        let mut removed = 0;
        if let Some(template) = destination
            .template
            .as_ref()
            .filter(|_| args.output.only_changed)
        {
            let others = lake::remove_others(template, known, &written);
            removed = others.context(
                "the new files are in their places, but one without batches is not removed",
            )?;
            let kept = kept.iter().flatten().map(|file| file.path.clone());
            let files = written.iter().map(|file| file.place.address()).chain(kept);
            lake::warn_of_strays(template, &files.collect());
        }
        let mut warnings = doubts(&pages.findings(), &tally, args.selection.lenient);
        warnings.extend(losses(&notes, destination));
        let incomplete = source.incomplete(&wanted.range)?;
        warnings.extend(incomplete.clone());
        for warning in &warnings {
            log::warn!("{warning}");
        }
        let places: HashSet<String> = written.iter().map(|file| file.place.address()).collect();
        let conclusion = match &kept {
            None => whole(wanted, &tally, source, &pages, &written, &notes),
            Some(kept) => partly(wanted, source, &written, kept, removed, batches),
        };
        if let (Some(place), Some(digest)) = (self.receipt, self.digest) {
            let receipt = ManifestInputs {
                args,
                wanted,
                source,
                pages: &pages,
                tally: &tally,
                written: &written,
                kept: kept.unwrap_or_default(),
                crop_names,
                digest: &digest,
                warnings,
                complete: incomplete.is_none(),
                started: wanted.asked,
            };
            let written = receipt
                .manifest()
                .and_then(|manifest| place.write(&manifest));
            written.context("the export is in its place, but its manifest is not")?;
            let finished = lake::finish(destination, args.output.only_changed, &places);
            finished.context(
                "everything is in its place, but the list of what was to change is still there",
            )?;
        }
        let marked = write_success_marker(destination);
        marked.context("the export is in its place, but `_SUCCESS` is not")?;
        tell_notes(&notes);
        tell(&tally, source, args.source.service.sandbox)?;
        Ok(conclusion)
    }

    /// Fetches the batches, and writes them where they wait to be published.
    async fn fetch<'a>(
        &mut self,
        args: &ExportArgs,
        wanted: &ExportRequest,
        source: &'a BatchSource,
    ) -> anyhow::Result<(Counts, BatchPages<'a>)> {
        let destination = &wanted.destination;
        log::info!("asking {} for {}", source.name(), wanted.range.asked());
        let data_on_terminal =
            self.live && std::io::stdout().is_terminal() && destination.format != Format::Table;
        let progress = ProgressLine::start(args.source.progress, data_on_terminal, &source.stats);
        let order = PageOrder::of_export(wanted.sorting.is_some(), args.limit.is_some());
        let rows = self.part.as_mut().and_then(|part| part.rows.take());
        let mut pages = match (source.archive(), rows) {
            (Some(archive), Some(rows)) => {
                let lenient = args.selection.lenient;
                BatchPages::Archive(Box::new(archive.pages_of(rows, wanted.range, lenient)?))
            }
            _ => source.batches(wanted.range, order, args.selection.lenient)?,
        };
        let plan = Selection {
            sorting: wanted.sorting,
            limit: args.limit,
            live: self.live,
            ..wanted.plan()
        };
        let mut writing = DigestingSink {
            files: &mut self.files,
            // That of a lake is brought up to date already.
            digest: self.digest.as_mut().filter(|_| self.part.is_none()),
            kept: destination.format.representation(),
        };
        let ran = pipeline::run(&mut pages, &mut writing, &plan, &source.stats).await;
        drop(progress);
        let tally =
            ran.map_err(|failure| stopped(failure, source, "export", &left_behind(destination)))?;
        Ok((tally, pages))
    }
}

/// Says what an export of everything came to.
fn whole(
    wanted: &ExportRequest,
    tally: &Counts,
    source: &BatchSource,
    pages: &BatchPages<'_>,
    written: &[WrittenFile],
    notes: &WriterReport,
) -> String {
    format!(
        "{} ({}, {}) to {}{}",
        count(tally.written, "batch", "batches"),
        wanted.range.describe(),
        how(source, pages),
        place(&wanted.destination, written),
        fate(notes),
    )
}

/// Says what an export of some files came to.
fn partly(
    wanted: &ExportRequest,
    source: &BatchSource,
    written: &[WrittenFile],
    kept: &[manifest::ManifestFile],
    removed: u64,
    batches: u64,
) -> String {
    let removed = match removed {
        0 => String::new(),
        removed => format!(", {} removed", count(removed, "file", "files")),
    };
    format!(
        "{} rewritten{removed}: {} now has {} in {} (from {})",
        count(written.len() as u64, "file", "files"),
        wanted.destination.name(),
        count(batches, "batch", "batches"),
        count((written.len() + kept.len()) as u64, "file", "files"),
        source.name(),
    )
}

/// Says what chose the batches besides their dates, as it was asked for.
fn filters(args: &ExportArgs) -> Vec<String> {
    let sorted = args
        .sort
        .as_ref()
        .map_or_else(String::new, |order| format!(" by {order}"));
    let limit = args.limit.map(|limit| format!("the first {limit}{sorted}"));
    args.selection
        .conditions
        .iter()
        .cloned()
        .chain(limit)
        .collect()
}

/// Opens the table that is written to; nothing where it is no table.
#[cfg(feature = "postgres")]
fn table(
    args: &ExportArgs,
    wanted: &ExportRequest,
    from_environment: &[String],
) -> Result<Option<ExportSink>, Failure> {
    let Location::Table(address) = &wanted.destination.place else {
        return Ok(None);
    };
    let manners = Settings::read(&args.source.service, from_environment)?.client_options()?;
    let reach = Reach::new(&manners);
    let loading = CopyLoader::open(address, reach, &wanted.fields, args.selection.lenient)?;
    Ok(Some(ExportSink::Table {
        loading: Box::new(loading),
        place: wanted.destination.place.clone(),
    }))
}

#[cfg(not(feature = "postgres"))]
#[allow(clippy::unnecessary_wraps, reason = "with PostgreSQL, it can fail")]
fn table(_: &ExportArgs, _: &ExportRequest, _: &[String]) -> Result<Option<ExportSink>, Failure> {
    Ok(None)
}

/// Says what became of the batches in a table.
#[cfg(feature = "postgres")]
fn fate(notes: &WriterReport) -> String {
    let fate = |counts: crate::postgres::UpsertCounts| {
        format!(
            " ({} new, {} changed, {} unchanged)",
            counts.inserted, counts.changed, counts.unchanged
        )
    };
    notes.counts.map_or_else(String::new, fate)
}

#[cfg(not(feature = "postgres"))]
fn fate(_: &WriterReport) -> String {
    String::new()
}

/// Says where the batches are.
fn place(destination: &Destination, written: &[WrittenFile]) -> String {
    if destination.template.is_none() {
        return destination.name();
    }
    let files = count(written.len() as u64, "file", "files");
    format!("{files}, {}", destination.name())
}

/// Says what a run that did not finish leaves behind.
fn left_behind(destination: &Destination) -> String {
    if destination.template.is_none() {
        return destination.place.left_behind();
    }
    match (&destination.place, cleanup::published()) {
        // Each is a request, and a service may hear one and not the next.
        (Location::Object(_), _) if cloud::may_be_published() => {
            let name = destination.name();
            format!("each file of {name} is as it was before, or new and whole")
        }
        (Location::Object(_), _) | (_, 0) => "nothing was published".to_owned(),
        (_, 1) => "the one file is new".to_owned(),
        (_, files) => format!("all {files} files are new"),
    }
}

/// Says what of the batches the format has no place for.
fn losses(notes: &WriterReport, destination: &Destination) -> Vec<String> {
    let mut warnings = Vec::new();
    if !notes.left_out.is_empty() {
        let listed = notes.left_out.len().min(formats::LEFT_OUT_LIMIT);
        let others = if listed < notes.left_out.len() {
            " and others"
        } else {
            ""
        };
        let (format, fields) = (destination.format.name(), quoted(&notes.left_out[..listed]));
        let (the_fields, they_are) = match notes.left_out.len() {
            1 => ("the field", "it is"),
            _ => ("the fields", "they are"),
        };
        warnings.push(format!(
            "{format} has no place for {the_fields} {fields}{others}: {they_are} left out"
        ));
    }
    if notes.escaped_cells > 0 {
        let (format, cells) = (
            destination.format.name(),
            count(notes.escaped_cells, "text cell", "text cells"),
        );
        warnings.push(format!(
            "{cells} with control characters that {format} cannot carry; these stand there as escapes such as \\u{{1}}"
        ));
    }
    warnings
}

fn tell_notes(notes: &WriterReport) {
    if notes.formula_cells > 0 {
        let (run, them) = match notes.formula_cells {
            1 => ("text cell would run as a formula", "it"),
            _ => ("text cells would run as formulas", "them"),
        };
        terminal::note(&format!(
            "{} {run} in a spreadsheet; `--excel` makes {them} harmless",
            notes.formula_cells
        ));
    }
    if notes.hidden_columns > 0 {
        terminal::note(&format!(
            "{} not fit; choose with `--fields`, or write a file with `-o`",
            count(
                notes.hidden_columns as u64,
                "more column does",
                "more columns do"
            )
        ));
    }
}
