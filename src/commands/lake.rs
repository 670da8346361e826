//! `--only-changed`: which files of a lake must be written again, and what its manifest says then.
//!
//! The manifest tells how far the archive had come when the lake was written. What became of batches since, the
//! archive knows. So the files with a batch that is new, changed or gone are written again, all others stay, and the
//! digest of the lake is brought up to date batch by batch. The manifest comes last. A run that is killed before leaves the
//! old one, and a list of the files that it was about to change; the next run looks at all of these again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File as Folder, TryLockError};
use std::path::Path;

use chrono::{DateTime, Utc};

use super::export::ExportRequest;
use super::messages::count;
use crate::archive::{Archive, Difference};
use crate::batch::digest::{self, SetDigest};
use crate::batch::filter::Condition;
use crate::batch::range::written;
use crate::batch::{Batch, COLUMNS, Representation};
use crate::cli::{ExportArgs, OutputArgs};
use crate::error::{Failure, Kind};
use crate::export::manifest::{LakeState, Manifest, ManifestFile};
use crate::export::{Crops, Destination, Pending, Template, WrittenFile};
use crate::pipeline::Selection;
use crate::storage::Location;
use crate::storage::cloud::{self, ObjectAddress};
use crate::terminal;
use crate::text;
use crate::verify::Lake;

/// What there is to do.
pub(super) enum Work {
    /// Write all files. The manifest knew these before.
    Everything { known: Vec<String> },
    /// Write some files, and leave the others as they are.
    Some(Box<Update>),
    /// Nothing has changed since this manifest.
    Nothing(Box<Manifest>),
}

/// Brings a lake up to date.
pub(super) struct Update {
    pub(super) part: LakePart,
    /// What crops are called in names.
    pub(super) crops: Crops,
    /// Of all batches that the lake will have.
    pub(super) digest: SetDigest,
}

/// Some files of a lake that are to be written again.
pub(super) struct LakePart {
    /// Their names, as the template makes them.
    pub(super) names: HashSet<String>,
    /// The rows of the archive that may belong to them; `None` if these may be anywhere.
    pub(super) rows: Option<Vec<i64>>,
    /// What the manifest says of the other files.
    pub(super) kept: Vec<ManifestFile>,
}

impl Work {
    /// Decides what there is to do, where a killed run left files `unfinished` and the archive is `complete` or not.
    pub(super) fn find(
        args: &ExportArgs,
        wanted: &ExportRequest,
        archive: &Archive,
        unfinished: &BTreeSet<String>,
        complete: bool,
    ) -> Result<Self, Failure> {
        let destination = &wanted.destination;
        let (Some(template), Some(path)) = (&destination.template, &destination.manifest) else {
            let why = "`--only-changed` needs a template and a manifest";
            return Err(Failure::new(Kind::Internal, why));
        };
        let present = LakeSizes::new(template, path)?;
        if present.size(&path.to_string_lossy()).is_none() {
            let known = unfinished.iter().cloned().collect();
            return Ok(Self::Everything { known });
        }
        let manifest = Manifest::read_any(path).map_err(|failure| {
            failure.hint("remove it, and the next run writes the whole lake again")
        })?;
        let known = names(&manifest, template);
        let reason = match &manifest.lake {
            None => Some("the manifest does not tell how far the archive had come"),
            Some(state) => mismatch(args, wanted, template, &manifest, state),
        };
        let update = match (reason, &manifest.lake) {
            (None, Some(state)) => {
                let mut names: HashSet<String> = unfinished.iter().cloned().collect();
                let altered = known
                    .iter()
                    .filter(|(name, file)| present.size(name) != file.bytes);
                names.extend(altered.map(|(name, _)| name.clone()));
                update(args, wanted, archive, &manifest, state, &known, names)?
            }
            (reason, _) => Err(reason.unwrap_or_default()),
        };
        match update {
            Ok(update) if update.part.names.is_empty() && manifest.complete == complete => {
                Ok(Self::Nothing(Box::new(manifest)))
            }
            Ok(update) => Ok(Self::Some(Box::new(update))),
            Err(reason) => {
                terminal::note(&format!("everything is written again: {reason}"));
                let others = manifest.files.len() - known.len();
                if let Some(earlier) = manifest.lake.as_ref().filter(|_| others > 0) {
                    log::warn!(
                        "files of an earlier layout are still there ({others}, named `{}`): remove them, or \
                         readers of the folder find their batches twice",
                        text::one_line(&earlier.template)
                    );
                }
                let known = known.into_iter().map(|(name, _)| name);
                let known = known.chain(unfinished.iter().cloned()).collect();
                Ok(Self::Everything { known })
            }
        }
    }
}

/// Returns the names of the manifest's files, as the template makes them now: the lake may be named from another
/// folder. Empty if the manifest was made with another template.
pub(super) fn names<'a>(
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

/// Returns the name of a file in a lake that was in `folder`, as the template makes it now.
fn renamed(name: &str, folder: &str, template: &Template) -> Option<String> {
    let inside = name.strip_prefix(folder)?;
    Some(format!("{}{inside}", template.folder().to_string_lossy()))
}

/// Returns the template and the manifest of a lake in which it is written down what a run is about to change.
///
/// In object storage that takes the right to list objects, which only `--only-changed` asks for.
pub(super) fn followed(
    destination: &Destination,
    only_changed: bool,
) -> Option<(&Template, &Path)> {
    let is_local = matches!(destination.place, Location::File(_));
    let template = destination.template.as_ref();
    let lake = template.zip(destination.manifest.as_deref());
    lake.filter(|(_, manifest)| only_changed || is_local && !ObjectAddress::is_meant(manifest))
}

/// Returns the files that a killed run may have changed, as the template names them now.
pub(super) fn unfinished(
    destination: &Destination,
    only_changed: bool,
) -> Result<BTreeSet<String>, Failure> {
    let Some((template, manifest)) = followed(destination, only_changed) else {
        return Ok(BTreeSet::new());
    };
    let Some((earlier, files)) = Pending::read(manifest)? else {
        return Ok(BTreeSet::new());
    };
    let folder = earlier_folder(&earlier, template);
    let named = files.into_iter().map(|name| {
        let named = folder
            .as_deref()
            .and_then(|folder| renamed(&name, folder, template));
        named.unwrap_or(name)
    });
    Ok(named.collect())
}

/// Returns the folder of the lake as it was named in the manifest; `None` if its files were named otherwise.
fn earlier_folder(earlier: &str, template: &Template) -> Option<String> {
    let earlier = Template::parse(Path::new(earlier)).ok()??;
    let folder = earlier.folder().to_string_lossy().into_owned();
    let inside = |template: &Template| {
        let folder = template.folder().to_string_lossy().len();
        template.text().get(folder..).map(str::to_owned)
    };
    (inside(&earlier) == inside(template)).then_some(folder)
}

/// Says what differs between the export that the manifest tells of and the one that is wanted; `None` if nothing does.
fn mismatch(
    args: &ExportArgs,
    wanted: &ExportRequest,
    template: &Template,
    manifest: &Manifest,
    state: &LakeState,
) -> Option<&'static str> {
    let request = &manifest.request;
    let fields = wanted.fields.columns.iter();
    let fields = fields.map(|&column| COLUMNS[column].name);
    let range = [request.start.as_deref(), request.end.as_deref()];
    let wanted_range = [wanted.range.start, wanted.range.end].map(|second| second.map(written));
    let format = wanted.destination.format.name();
    // "7d" was counted from then.
    let asked = DateTime::parse_from_rfc3339(&manifest.started).ok();
    let conditions = asked.and_then(|asked| {
        let parse = |text: &String| Condition::parse(text, asked.with_timezone(&Utc)).ok();
        request
            .conditions
            .iter()
            .map(parse)
            .collect::<Option<Vec<_>>>()
    });
    let checks = [
        (
            request.fields.iter().map(String::as_str).eq(fields)
                && manifest.unknown_fields_digest.is_some()
                    == wanted.new_digest()().finish_unknown().is_some(),
            "the manifest was made with other fields",
        ),
        (
            manifest.files.iter().all(|file| file.format == format)
                && state.options == options(&args.output),
            "the manifest was made with another format",
        ),
        (
            range == wanted_range.each_ref().map(Option::as_deref)
                && request.excludes_end == wanted.range.excludes_end
                && conditions.as_ref() == Some(&wanted.conditions)
                && request.lenient == args.selection.lenient,
            "the manifest was made with another range or other filters",
        ),
        (
            request.sort == args.sort && request.limit.is_none(),
            "the manifest was made with another order",
        ),
        (
            earlier_folder(&state.template, template).is_some(),
            "the manifest was made with other names of files",
        ),
        (
            manifest.digest_version == digest::VERSION,
            "the manifest has a digest of another version",
        ),
    ];
    let failed = checks.iter().find(|(holds, _)| !holds);
    failed.map(|(_, reason)| *reason)
}

/// Finds the files that must be written again, besides those of these `names`; or why that cannot be told.
fn update(
    args: &ExportArgs,
    wanted: &ExportRequest,
    archive: &Archive,
    manifest: &Manifest,
    state: &LakeState,
    known: &[(String, &ManifestFile)],
    names: HashSet<String>,
) -> Result<Result<Update, &'static str>, Failure> {
    if !archive.has_passed(&state.archive)? {
        return Ok(Err("the manifest was made from another archive"));
    }
    let digest = SetDigest::resume(&wanted.fields.columns, &state.digest).filter(|digest| {
        digest.finish() == manifest.set_digest
            && digest.finish_unknown() == manifest.unknown_fields_digest
    });
    let (Some(digest), Some(template)) = (digest, &wanted.destination.template) else {
        return Ok(Err("the manifest was altered"));
    };
    let mut search = ChangeSearch {
        wanted,
        template,
        plan: wanted.plan(),
        kept: wanted.destination.format.representation(),
        is_sorted: args.sort.is_some(),
        digest,
        crops: Crops::resume(&state.crop_names.clone().unwrap_or_default()),
        spans: names.is_empty().then(BTreeSet::new),
        names,
    };
    archive.differences(&state.archive, |difference| search.note(&difference))?;
    // Rows that somebody else has taken out of the archive are in no history.
    let selects_all =
        wanted.range == crate::batch::range::Range::default() && wanted.conditions.is_empty();
    if selects_all && !args.selection.lenient && archive.count()?.0 != search.digest.count() {
        return Ok(Err("the archive has other batches than its history tells"));
    }
    let ChangeSearch {
        names,
        spans,
        crops,
        digest,
        ..
    } = search;
    let rows = spans
        .map(|spans| archive.rows_created(&spans))
        .transpose()?;
    let kept = known.iter().filter(|(name, _)| !names.contains(name));
    let kept = kept.map(|(name, file)| ManifestFile {
        path: name.clone(),
        ..(*file).clone()
    });
    Ok(Ok(Update {
        part: LakePart {
            kept: kept.collect(),
            names,
            rows,
        },
        crops,
        digest,
    }))
}

/// The files with batches that are new, changed or gone.
struct ChangeSearch<'a> {
    wanted: &'a ExportRequest,
    template: &'a Template,
    plan: Selection,
    kept: Representation,
    is_sorted: bool,
    digest: SetDigest,
    crops: Crops,
    names: HashSet<String>,
    /// When the batches of these files were created; `None` if that may be any time.
    spans: Option<BTreeSet<[String; 2]>>,
}

impl ChangeSearch<'_> {
    fn note(&mut self, difference: &Difference) {
        let before = difference.before.as_ref().filter(|batch| self.wants(batch));
        let after = difference.after.as_ref().filter(|batch| self.wants(batch));
        if let Some(batch) = before {
            self.digest.remove_kept(batch, self.kept);
        }
        if let Some(batch) = after {
            self.digest.add_kept(batch, self.kept);
        }
        if let (Some(before), Some(after)) = (before, after)
            && self.looks_the_same(before, after)
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

    fn wants(&self, batch: &Batch) -> bool {
        self.wanted.range.holds_creation(batch) && self.plan.wants(batch)
    }

    /// Tells whether two versions of a batch are written as the same row in the same place.
    fn looks_the_same(&mut self, before: &Batch, after: &Batch) -> bool {
        let mut digests = [before, after].map(|batch| {
            let mut digest = self.wanted.new_digest()();
            digest.add_kept(batch, self.kept);
            (digest.finish(), digest.finish_unknown())
        });
        let [before_name, after_name] =
            [before, after].map(|batch| self.template.name(batch, &mut self.crops));
        let [one, other] = &mut digests;
        !self.is_sorted && before_name == after_name && one == other
    }
}

/// Returns the flags that decide about the bytes of a file.
pub(super) fn options(args: &OutputArgs) -> Vec<String> {
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
    given
        .chain(delimiter.map(|delimiter| format!("--delimiter {delimiter}")))
        .collect()
}

/// Which files of a lake are there, and how large they are.
struct LakeSizes {
    /// Those in object storage, by their addresses.
    objects: HashMap<String, u64>,
}

impl LakeSizes {
    fn new(template: &Template, manifest: &Path) -> Result<Self, Failure> {
        let mut objects = HashMap::new();
        if let Some(inside) = ObjectAddress::parse(&template.folder().join("name"))? {
            objects = cloud::sizes(&inside)?;
        }
        if let Some(manifest) = ObjectAddress::parse(manifest)?
            && !objects.contains_key(&manifest.to_string())
        {
            objects.extend(cloud::sizes(&manifest)?);
        }
        Ok(Self { objects })
    }

    /// Returns the size of a file; `None` if it is not there.
    fn size(&self, name: &str) -> Option<u64> {
        if ObjectAddress::is_meant(Path::new(name)) {
            return self.objects.get(name).copied();
        }
        let metadata = fs::metadata(name).ok()?;
        metadata.is_file().then_some(metadata.len())
    }
}

/// Returns whether the file or object is known to be there.
pub(super) fn is_there(path: &Path) -> bool {
    match ObjectAddress::parse(path) {
        Ok(Some(address)) => {
            let sizes = cloud::sizes(&address);
            sizes.is_ok_and(|sizes| sizes.contains_key(&address.to_string()))
        }
        _ => path.exists(),
    }
}

/// Removes the list of what was about to change, unless an earlier run has left files on it that this one did not write:
/// only `--only-changed` removes files.
pub(super) fn finish(
    destination: &Destination,
    only_changed: bool,
    written: &HashSet<String>,
) -> Result<(), Failure> {
    let Some((template, manifest)) = followed(destination, only_changed) else {
        return Ok(());
    };
    let is_done = |name: &String| written.contains(name);
    if only_changed || unfinished(destination, false)?.iter().all(is_done) {
        Pending::new(manifest, template)?.remove()?;
    }
    Ok(())
}

/// Removes the files of these names that were not written, since they have no batches any more. Returns how many were
/// there.
pub(super) fn remove_others(
    template: &Template,
    names: impl IntoIterator<Item = String>,
    written: &[WrittenFile],
) -> Result<u64, Failure> {
    let written: HashSet<String> = written.iter().map(|file| file.place.address()).collect();
    let mut removed = 0;
    for name in names {
        let place = Location::new(Some(Path::new(&name)))?;
        if written.contains(&place.address()) {
            continue;
        }
        removed += u64::from(is_there(Path::new(&name)));
        place.remove()?;
        if let Location::File(path) = &place {
            let folder = template.folder();
            let above = path.ancestors().skip(1);
            // Until one is not empty.
            let _ = above
                .take_while(|above| *above != folder && above.starts_with(&folder))
                .try_for_each(fs::remove_dir);
        }
    }
    Ok(removed)
}

/// Warns of files on this machine that have the names of a lake and are none of its `files`: readers of the folder would
/// take them for data.
pub(super) fn warn_of_strays(template: &Template, files: &HashSet<String>) {
    let text = template.text();
    if ObjectAddress::is_meant(Path::new(&text)) {
        return;
    }
    // What cannot be read is no reason to fail.
    let Ok(Some(lake)) = Lake::find(Path::new(&text)) else {
        return;
    };
    let plain = |name: &str| name.strip_prefix("./").unwrap_or(name).to_owned();
    let known: HashSet<String> = files.iter().map(|name| plain(name)).collect();
    let found = lake.files().unwrap_or_default();
    let found = found.iter().map(|file| plain(&file.to_string_lossy()));
    let strays: Vec<String> = found.filter(|name| !known.contains(name)).collect();
    if let Some(first) = strays.first() {
        log::warn!(
            "{} among the files of the lake, such as `{}`, which its manifest does not name: readers of the folder find \
             its batches too; remove what should not be there",
            count(strays.len() as u64, "file is", "files are"),
            text::one_line(first)
        );
    }
}

/// Keeps other runs from writing the same lake, as long as it lives.
pub(super) struct LakeLock {
    _folder: Folder,
}

impl LakeLock {
    /// Takes the lock of the lake in `folder`; `None` if there is nothing to lock yet. Object storage has no locks, and
    /// neither have some file systems.
    pub(super) fn take(folder: &Path) -> Result<Option<Self>, Failure> {
        let folder = match folder {
            empty if empty.as_os_str().is_empty() => Path::new("."),
            folder => folder,
        };
        let Ok(open) = Folder::open(folder) else {
            return Ok(None);
        };
        match open.try_lock() {
            Err(TryLockError::WouldBlock) => Err(Failure::new(
                Kind::Locked,
                format!("another run is writing the lake in `{}`", folder.display()),
            )
            .hint("try again when it has ended")),
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(Self { _folder: open })),
        }
    }
}
