//! `--only-changed`: which files of a lake to rewrite.
//!
//! The manifest records the state of the archive when the lake was written, and the archive records every change since.
//! So only the files with a new, changed or vanished batch are rewritten, and the digest of the lake is updated batch by
//! batch. The manifest is written last. A run that is killed earlier leaves the old manifest and a list of the files that
//! it was about to change; the next run checks all of these again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File as Folder, TryLockError};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chrono::{DateTime, Utc};

use super::request::ExportRequest;
use crate::archive::{Archive, Difference, read_second};
use crate::batch::digest::{self, SetDigest};
use crate::batch::filter::Condition;
use crate::batch::range::{Range, written};
use crate::batch::{Batch, COLUMNS, Zone};
use crate::cli::{ExportArgs, OutputArgs};
use crate::commands::messages::count;
use crate::commands::source::BatchSource;
use crate::error::{Failure, Kind};
use crate::export::manifest::{LakeState, Manifest, ManifestFile, ManifestRequest};
use crate::export::{Crops, Destination, Pending, Template};
use crate::formats::Format;
use crate::pipeline::Selection;
use crate::storage::cloud::ObjectAddress;
use crate::storage::path::resolved;
use crate::storage::{Location, Storage};
use crate::terminal;
use crate::text;
use crate::verify::Lake;

/// What to write.
pub(super) enum LakePlan {
    /// Write all files. `known` are the files of the earlier manifest.
    Everything { known: Vec<String> },
    /// Rewrite some files and keep the others.
    Update(Box<LakeUpdate>),
    /// Nothing has changed since this manifest.
    UpToDate(Box<Manifest>),
}

/// An update of some files of a lake.
pub(super) struct LakeUpdate {
    /// The files to rewrite, as the template names them.
    pub(super) names: HashSet<String>,
    /// The rows of the archive that may belong to them; `None` if any row may.
    pub(super) rows: Option<Vec<i64>>,
    /// The entries of the other files in the manifest.
    pub(super) kept: Vec<ManifestFile>,
    /// The names of crops in file names.
    pub(super) crops: Crops,
    /// The digest of all batches in the updated lake.
    pub(super) digest: SetDigest,
}

impl LakePlan {
    /// Decides what to write. `unfinished` are the files that a killed run left.
    pub(super) fn new(
        args: &ExportArgs,
        request: &ExportRequest,
        source: &BatchSource,
        unfinished: &BTreeSet<String>,
        storage: &Storage,
    ) -> Result<Self, Failure> {
        let destination = &request.destination;
        let (Some(template), Some(path), Some(archive)) = (
            &destination.template,
            &destination.manifest,
            source.archive(),
        ) else {
            let why = "`--only-changed` needs a template, a manifest and an archive";
            return Err(Failure::new(Kind::Internal, why));
        };
        let range = &source.limited(&request.batches.range)?;
        let complete = source.incomplete(&request.batches.range)?.is_none();
        let present = LakeSizes::new(template, path, storage)?;
        if present.size(&path.to_string_lossy()).is_none() {
            let known = unfinished.iter().cloned().collect();
            return Ok(Self::Everything { known });
        }
        let manifest = Manifest::read_any(path, storage).map_err(|failure| {
            failure.hint("remove it; the next run then rewrites the whole lake")
        })?;
        let mut known = current_names(&manifest, template);
        if manifest.lake.is_none() && has_range(&manifest.request, range) {
            // An export from the service; its files are those of the same template.
            let files = manifest.files.iter();
            let files = files.filter(|file| template.fits(&file.path));
            known = files.map(|file| (file.path.clone(), file)).collect();
        }
        let reason = match &manifest.lake {
            None => Some("the manifest does not record the state of the archive"),
            Some(state) => mismatch(args, request, range, template, &manifest, state),
        };
        let update = match (reason, &manifest.lake) {
            (None, Some(state)) => {
                let mut names: HashSet<String> = unfinished.iter().cloned().collect();
                let altered = known.iter().filter(|(name, file)| {
                    present.size(name) != file.bytes || present.is_newer(name)
                });
                names.extend(altered.map(|(name, _)| name.clone()));
                plan_update(args, request, archive, &manifest, state, &known, names)?
            }
            (reason, _) => Err(reason.unwrap_or_default()),
        };
        match update {
            Ok(update) if update.names.is_empty() && manifest.complete == complete => {
                Ok(Self::UpToDate(Box::new(manifest)))
            }
            Ok(update) => Ok(Self::Update(Box::new(update))),
            Err(reason) => {
                terminal::note(&format!("rewriting all files: {reason}"));
                let others = manifest.files.len() - known.len();
                if let Some(earlier) = manifest.lake.as_ref().filter(|_| others > 0) {
                    let (files, them) = match others {
                        1 => ("file of an earlier layout is", "it"),
                        _ => ("files of an earlier layout are", "them"),
                    };
                    let (others, template) = (
                        text::thousands(others as u64),
                        text::one_line(&earlier.template),
                    );
                    log::warn!(
                        "{others} {files} still there (`{template}`); remove {them}, or readers of the folder will see the same batches twice"
                    );
                }
                let known = known.into_iter().map(|(name, _)| name);
                let known = known.chain(unfinished.iter().cloned()).collect();
                Ok(Self::Everything { known })
            }
        }
    }
}

/// Returns the files of the manifest with their names as the template forms them now: the lake may be given by another
/// path than before. Empty if the manifest has another template.
pub(super) fn current_names<'a>(
    manifest: &'a Manifest,
    template: &Template,
) -> Vec<(String, &'a ManifestFile)> {
    let earlier = manifest.lake.as_ref();
    let Some(folder) = earlier.and_then(|lake| earlier_folder(&lake.template, template)) else {
        return Vec::new();
    };
    let files = manifest.files.iter();
    files
        .filter_map(|file| Some((renamed(&file.path, &folder, template)?, file)))
        .collect()
}

/// Returns the name of a file in a lake that was in `folder`, as the template forms it now.
fn renamed(name: &str, folder: &str, template: &Template) -> Option<String> {
    let inside = name.strip_prefix(folder)?;
    let name = format!("{}{inside}", template.folder().to_string_lossy());
    template.fits(&name).then_some(name)
}

/// Returns the template and the manifest of a lake for which the run keeps a list of pending changes.
///
/// In object storage this needs permission to list objects, which only `--only-changed` requires.
pub(super) fn tracked(destination: &Destination, only_changed: bool) -> Option<(&Template, &Path)> {
    let is_local = matches!(destination.place, Location::File(_));
    let template = destination.template.as_ref();
    let lake = template.zip(destination.manifest.as_deref());
    lake.filter(|(_, manifest)| only_changed || is_local && !ObjectAddress::is_meant(manifest))
}

/// Returns the files that a killed run may have changed, with their names as the template forms them now.
pub(super) fn unfinished_files(
    destination: &Destination,
    only_changed: bool,
    storage: &Storage,
) -> Result<BTreeSet<String>, Failure> {
    // Files of another layout do not concern this run.
    if let Some((template, manifest)) = tracked(destination, only_changed)
        && let Some((earlier, files)) = Pending::read(manifest, storage)?
        && let Some(folder) = earlier_folder(&earlier, template)
    {
        let named = files.iter();
        let named = named.filter_map(|name| renamed(name, &folder, template));
        return Ok(named.collect());
    }
    Ok(BTreeSet::new())
}

/// Returns the folder of the lake as the manifest names it; `None` if its files were named differently.
fn earlier_folder(earlier: &str, template: &Template) -> Option<String> {
    let earlier = Template::parse(Path::new(earlier)).ok()??;
    let folder = earlier.folder().to_string_lossy().into_owned();
    let inside = |template: &Template| {
        let folder = template.folder().to_string_lossy().len();
        template.text().get(folder..).map(str::to_owned)
    };
    (inside(&earlier) == inside(template)).then_some(folder)
}

/// Says how the export of the manifest differs from the requested one of `range`; `None` if it does not.
fn mismatch(
    args: &ExportArgs,
    request: &ExportRequest,
    range: &Range,
    template: &Template,
    manifest: &Manifest,
    state: &LakeState,
) -> Option<&'static str> {
    let earlier = &manifest.request;
    let fields = request.fields.columns.iter();
    let fields = fields.map(|&column| COLUMNS[column].name);
    let format = request.destination.format.name();
    let conditions: Option<Vec<Condition>> = manifest.clock().and_then(|clock| {
        let parse = |text: &String| Condition::parse(text, &clock).ok();
        earlier.conditions.iter().map(parse).collect()
    });
    let has_open_end = state.has_open_end && range.end.is_none();
    let checks = [
        (
            lists_all(manifest),
            "the manifest was modified: its files do not have all its batches",
        ),
        (
            manifest.files.iter().all(|file| file.format == format)
                && state.options == format_flags(&args.output, request),
            "the manifest has another format",
        ),
        (
            earlier.fields.iter().map(String::as_str).eq(fields)
                && manifest.unknown_fields_digest.is_some()
                    == request.new_digest()().finish_unknown().is_some(),
            "the manifest has other fields",
        ),
        (
            (has_range(earlier, range) || has_start(earlier, range) && has_open_end)
                && conditions.as_ref() == Some(&request.batches.conditions)
                && earlier.lenient == args.selection.lenient,
            "the manifest has another range or other filters",
        ),
        (
            earlier.sort == args.sort && earlier.limit.is_none(),
            "the manifest has another order",
        ),
        (
            earlier_folder(&state.template, template).is_some_and(|folder| {
                // In the lake, the manifest moves with it.
                let is_inside = |path: &PathBuf| path.starts_with(template.folder());
                request.destination.manifest.as_ref().is_some_and(is_inside)
                    || Path::new(&folder) == template.folder()
                    || resolved(Path::new(&folder))
                        .is_some_and(|folder| Some(folder) == resolved(&template.folder()))
            }),
            "the manifest has other file names",
        ),
        (
            manifest.digest_version == digest::VERSION,
            "the manifest has another digest version",
        ),
    ];
    let failed = checks.iter().find(|(is_same, _)| !is_same);
    failed.map(|(_, reason)| *reason)
}

/// Returns whether the files of `manifest` have all its batches.
fn lists_all(manifest: &Manifest) -> bool {
    let batches = manifest.files.iter().map(|file| file.batches);
    batches.sum::<Option<u64>>() == Some(manifest.batches)
}

/// Returns whether an export of `earlier` had this range.
fn has_range(earlier: &ManifestRequest, range: &Range) -> bool {
    has_start(earlier, range)
        && earlier.end == range.end.map(written)
        && earlier.excludes_end == range.excludes_end
}

fn has_start(earlier: &ManifestRequest, range: &Range) -> bool {
    earlier.start == range.start.map(written)
}

/// Finds the files to rewrite, in addition to `names`; or says why that is not possible.
fn plan_update(
    args: &ExportArgs,
    request: &ExportRequest,
    archive: &Archive,
    manifest: &Manifest,
    state: &LakeState,
    known: &[(String, &ManifestFile)],
    names: HashSet<String>,
) -> Result<Result<LakeUpdate, &'static str>, Failure> {
    if !archive.has_passed(&state.archive)? {
        return Ok(Err("the manifest is of another archive"));
    }
    let digest = SetDigest::resume(&request.fields.columns, &state.digest).filter(|digest| {
        digest.finish() == manifest.set_digest
            && digest.finish_unknown() == manifest.unknown_fields_digest
    });
    let (Some(digest), Some(template)) = (digest, &request.destination.template) else {
        return Ok(Err("the manifest was modified"));
    };
    let digest = digest.with_representation(request.destination.format.representation());
    let mut search = ChangeSearch {
        request,
        template,
        selection: request.batches.selection(),
        is_sorted: args.sort.is_some(),
        digest,
        crops: Crops::resume(template, &state.crop_names.clone().unwrap_or_default()),
        spans: names.is_empty().then(BTreeSet::new),
        names,
    };
    archive.differences(&state.archive, |difference| search.add(&difference))?;
    // Rows that another program deleted from the archive are not in its history.
    let selects_all =
        request.batches.range == Range::default() && request.batches.conditions.is_empty();
    if selects_all && !args.selection.lenient && archive.count()?.0 != search.digest.count() {
        return Ok(Err("the archive does not match its own history"));
    }
    let spans = search.spans.as_ref();
    let rows = spans.map(|spans| archive.rows_created(spans)).transpose()?;
    let kept = known
        .iter()
        .filter(|(name, _)| !search.names.contains(name));
    let kept = kept.map(|(name, file)| ManifestFile {
        path: name.clone(),
        ..(*file).clone()
    });
    Ok(Ok(LakeUpdate {
        kept: kept.collect(),
        names: search.names,
        rows,
        crops: search.crops,
        digest: search.digest,
    }))
}

/// Collects the files with new, changed or vanished batches.
struct ChangeSearch<'a> {
    request: &'a ExportRequest,
    template: &'a Template,
    selection: Selection,
    is_sorted: bool,
    digest: SetDigest,
    crops: Crops,
    names: HashSet<String>,
    /// When the batches of these files were created; `None` for any time.
    spans: Option<BTreeSet<[String; 2]>>,
}

impl ChangeSearch<'_> {
    fn add(&mut self, difference: &Difference) {
        let [before, after] = [&difference.before, &difference.after]
            .map(|batch| batch.as_ref().filter(|batch| self.is_selected(batch)));
        if let Some(batch) = before {
            self.digest.remove_kept(batch);
        }
        if let Some(batch) = after {
            self.digest.add_kept(batch);
        }
        if let (Some(before), Some(after)) = (before, after)
            && self.writes_same_row(before, after)
        {
            return;
        }
        for batch in before.into_iter().chain(after) {
            let name = self.template.name(batch, &mut self.crops);
            self.names.insert(name);
            match (self.template.date_span(batch), &mut self.spans) {
                (Some(span), Some(spans)) => {
                    spans.insert(span);
                }
                _ => self.spans = None,
            }
        }
    }

    fn is_selected(&self, batch: &Batch) -> bool {
        self.request.batches.range.holds_creation(batch) && self.selection.wants(batch)
    }

    /// Returns whether two versions of a batch produce the same row at the same position. Values are compared as
    /// received: the digest does not distinguish `"12.50"` from `"12.5"`, but most formats do.
    fn writes_same_row(&mut self, before: &Batch, after: &Batch) -> bool {
        let keeps_unknown = self.digest.finish_unknown().is_some();
        let mut columns = self.request.fields.columns.iter();
        let [before_name, after_name] =
            [before, after].map(|batch| self.template.name(batch, &mut self.crops));
        !self.is_sorted
            && before_name == after_name
            && columns.all(|&column| before.member(column) == after.member(column))
            && (!keeps_unknown || before.unknown().eq(after.unknown()))
    }
}

/// Returns the flags that affect the bytes of a file.
pub(super) fn format_flags(args: &OutputArgs, request: &ExportRequest) -> Vec<String> {
    let flags = [
        ("--numbers", args.numbers),
        ("--decimal-comma", args.decimal_comma),
        ("--bom", args.bom),
        ("--no-header", args.no_header),
        ("--excel", args.excel),
    ];
    let given = flags.iter().filter(|(_, given)| *given);
    let given = given.map(|(flag, _)| (*flag).to_owned());
    let delimiter = args.delimiter.iter();
    // The sheet with the figures of each crop has weeks.
    let has_weeks = request.destination.format == Format::Xlsx && request.batches.zone != Zone::UTC;
    let zone = has_weeks.then(|| format!("--time-zone {}", request.batches.zone.name()));
    given
        .chain(delimiter.map(|delimiter| format!("--delimiter {delimiter}")))
        .chain(zone)
        .collect()
}

/// The sizes of the files that exist in a lake.
struct LakeSizes {
    /// Sizes in object storage, by address.
    objects: HashMap<String, u64>,
    /// When the manifest was written, if it is a local file.
    written: Option<SystemTime>,
}

impl LakeSizes {
    fn new(template: &Template, manifest: &Path, storage: &Storage) -> Result<Self, Failure> {
        let mut objects = HashMap::new();
        if let Some(inside) = ObjectAddress::parse(&template.folder().join("name"))? {
            objects = storage.cloud.sizes(&inside)?;
        }
        if let Some(manifest) = ObjectAddress::parse(manifest)?
            && !objects.contains_key(&manifest.to_string())
        {
            objects.extend(storage.cloud.sizes(&manifest)?);
        }
        let written = fs::metadata(manifest).and_then(|metadata| metadata.modified());
        Ok(Self {
            objects,
            written: written.ok(),
        })
    }

    /// Returns whether a local file was modified after the manifest. SQLite files often keep their size.
    fn is_newer(&self, name: &str) -> bool {
        let modified = fs::metadata(name).and_then(|metadata| metadata.modified());
        modified
            .ok()
            .zip(self.written)
            .is_some_and(|(modified, written)| modified > written)
    }

    /// Returns the size of a file; `None` if it does not exist.
    fn size(&self, name: &str) -> Option<u64> {
        if ObjectAddress::is_meant(Path::new(name)) {
            return self.objects.get(name).copied();
        }
        let metadata = fs::metadata(name).ok()?;
        metadata.is_file().then_some(metadata.len())
    }
}

/// Returns whether the file or object is known to exist.
pub(super) fn exists(path: &Path, storage: &Storage) -> bool {
    match ObjectAddress::parse(path) {
        Ok(Some(address)) => {
            let sizes = storage.cloud.sizes(&address);
            sizes.is_ok_and(|sizes| sizes.contains_key(&address.to_string()))
        }
        _ => path.exists(),
    }
}

/// Removes the list of pending changes, unless an earlier run left files on it that this run did not write: only
/// `--only-changed` removes files.
pub(super) fn remove_pending_list(
    destination: &Destination,
    only_changed: bool,
    written: &HashSet<String>,
    storage: &Storage,
) -> Result<(), Failure> {
    let Some((template, manifest)) = tracked(destination, only_changed) else {
        return Ok(());
    };
    let is_written = |name: &String| written.contains(name);
    let unfinished = || unfinished_files(destination, false, storage);
    if only_changed || unfinished()?.iter().all(is_written) {
        Pending::new(manifest, template)?.remove(storage)?;
    }
    Ok(())
}

/// Removes the files of these names that were not written: they no longer have batches. Returns how many existed.
pub(super) fn remove_others(
    template: &Template,
    names: impl IntoIterator<Item = String>,
    written: &[ManifestFile],
    storage: &Storage,
) -> Result<u64, Failure> {
    let written: HashSet<&str> = written.iter().map(|file| &*file.path).collect();
    let mut removed = 0;
    for name in names {
        let location = Location::new(Some(Path::new(&name)))?;
        if written.contains(&*location.address()) {
            continue;
        }
        removed += u64::from(exists(Path::new(&name), storage));
        location.remove(storage)?;
        if let Location::File(path) = &location {
            let folder = template.folder();
            let parents = path.ancestors().skip(1);
            // Stops at the first folder that is not empty.
            let _ = parents
                .take_while(|parent| *parent != folder && parent.starts_with(&folder))
                .try_for_each(fs::remove_dir);
        }
    }
    Ok(removed)
}

/// Warns of local files that exist and may lose batches, because they may have batches outside the range.
pub(super) fn warn_of_cut_periods(args: &ExportArgs, request: &ExportRequest, storage: &Storage) {
    let (Some(template), range) = (&request.destination.template, &request.batches.range) else {
        return;
    };
    if args.output.no_clobber || ObjectAddress::is_meant(Path::new(&template.text())) {
        return;
    }
    let manifest = request.destination.manifest.as_deref();
    let manifest = manifest.filter(|path| !ObjectAddress::is_meant(path) && path.exists());
    let manifest = manifest.and_then(|path| Manifest::read_any(path, storage).ok());
    let earlier = manifest.map(|manifest| (manifest.request.start, manifest.request.end));
    let (earlier_start, earlier_end) = earlier.unwrap_or_default();
    let past = range.end.map(|end| end + i64::from(!range.excludes_end));
    for (second, earlier, begins, lost, flag) in [
        (range.start, earlier_start, "begins", "before", "--start"),
        (past, earlier_end, "ends", "after", "--end"),
    ] {
        let cut = second.and_then(|second| Some((second, template.cut_at(second, range)?)));
        let Some((second, cut)) = cut else {
            continue;
        };
        // An earlier export of no more than this has no other batches.
        let had = earlier.and_then(|date| read_second(&date));
        let had_more = had.is_none_or(|had| match flag {
            "--start" => had < second,
            _ => had > second,
        });
        // A file that was written before the end of the range has no later batches.
        let is_old = |file: &Path| {
            let written = file.metadata().and_then(|metadata| metadata.modified());
            let written = written.map(|time| DateTime::<Utc>::from(time).timestamp());
            flag == "--end" && written.is_ok_and(|written| written < second)
        };
        let files = if had_more {
            existing_files(&cut.name, storage)
        } else {
            Vec::new()
        };
        let mut files = files.iter().filter(|file| !is_old(file));
        let is_written = |file: &&PathBuf| template.may_write(&file.to_string_lossy(), range);
        let Some(file) = files.find(is_written) else {
            continue;
        };
        let file = file.display();
        let Some(period) = cut.period else {
            log::warn!(
                "the name of `-o` has no `{{year}}`, so its files are for all years, and `{file}` exists: if it is replaced, it loses any batches outside the range; export all dates, or add `{{year}}` to the name"
            );
            return;
        };
        let example = if request.batches.zone == Zone::UTC {
            format!(", such as `{flag} {period}`")
        } else {
            String::new()
        };
        log::warn!(
            "the range {begins} within {period} (UTC), and `{file}` exists: if it is replaced, it loses any batches of {period} {lost} that; export whole periods{example}"
        );
    }
}

/// Returns the existing files with this name, which may have placeholders.
fn existing_files(name: &str, storage: &Storage) -> Vec<PathBuf> {
    let path = PathBuf::from(name);
    if path.is_file() {
        return vec![path];
    }
    // A folder that cannot be read is not a reason to fail.
    let lake = Lake::find(&path).ok().flatten();
    let files = lake.and_then(|lake| lake.files(storage).ok());
    files.unwrap_or_default()
}

/// Warns of files that match the template of a lake but are not among its `files`: readers of the folder would
/// read them as data.
pub(super) fn warn_of_strays(
    template: &Template,
    files: &HashSet<String>,
    only_changed: bool,
    storage: &Storage,
) {
    let text = template.text();
    // Only `--only-changed` needs permission to list objects.
    if ObjectAddress::is_meant(Path::new(&text)) && !only_changed {
        return;
    }
    // A folder that cannot be read is not a reason to fail.
    let Ok(Some(lake)) = Lake::find(Path::new(&text)) else {
        return;
    };
    let plain = |name: &str| name.strip_prefix("./").unwrap_or(name).to_owned();
    let known: HashSet<String> = files.iter().map(|name| plain(name)).collect();
    let found = lake.files(storage).unwrap_or_default();
    let found = found.iter().map(|file| plain(&file.to_string_lossy()));
    let strays: Vec<String> = found.filter(|name| !known.contains(name)).collect();
    if let Some(first) = strays.first() {
        log::warn!(
            "{} in the lake but not in its manifest, such as `{}`; readers of the folder will read them too: if they belong \
             to the lake, export its whole range; otherwise remove them",
            count(strays.len() as u64, "file is", "files are"),
            text::one_line(first)
        );
    }
}

/// Prevents other runs from writing the same lake while it exists.
pub(super) struct LakeLock {
    _folder: Folder,
}

impl LakeLock {
    /// Locks the lake in `folder`; `None` if the folder does not exist yet. Object storage and some file systems have
    /// no locks.
    pub(super) fn take(folder: &Path) -> Result<Option<Self>, Failure> {
        let folder = match folder {
            empty if empty.as_os_str().is_empty() => Path::new("."),
            folder => folder,
        };
        let Ok(open) = Folder::open(folder) else {
            return Ok(None);
        };
        if let Err(TryLockError::WouldBlock) = open.try_lock() {
            let message = format!("another run is writing the lake in `{}`", folder.display());
            return Err(Failure::new(Kind::Locked, message).hint("try again when it has finished"));
        }
        Ok(Some(Self { _folder: open }))
    }
}
