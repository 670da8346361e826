//! What a manifest says about a file or a lake, and whether that is true.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::subject::Subject;
use crate::archive::read_second;
use crate::batch::digest::{self, no_unknown_fields};
use crate::batch::filter::{Condition, Sorting};
use crate::batch::range::Range;
use crate::batch::{Representation, column_bits, columns_of_bits, find_column};
use crate::error::Failure;
use crate::export::manifest::{Manifest, ManifestFile};
use crate::formats::Format;
use crate::storage::{Storage, is_table};
use crate::text;
use crate::verify::{FileBatches, FileDigest, FileScan, Lake, NameList, Scope};

/// A manifest, parsed.
pub(super) struct Expected {
    pub(super) path: PathBuf,
    pub(super) manifest: Manifest,
    /// The fields that were written, in their order.
    pub(super) columns: Vec<usize>,
    pub(super) range: Range,
    pub(super) conditions: Vec<Condition>,
    pub(super) sorting: Option<Sorting>,
}

impl Expected {
    pub(super) fn read(path: &Path, storage: &Storage) -> Result<Self, Failure> {
        let manifest = Manifest::read(path, storage)?;
        let name = path.display();
        let invalid = |what: &str| {
            Failure::usage(
                format!("the manifest `{name}` cannot be used: {what}"),
                "it was modified, or written by a newer version of trayscan",
            )
        };
        let request = &manifest.request;
        let mut columns = Vec::new();
        for field in &request.fields {
            let column = find_column(field).filter(|column| !columns.contains(column));
            columns.push(column.ok_or_else(|| invalid("its fields are not those of a batch"))?);
        }
        if columns.is_empty() {
            return Err(invalid("it names no fields"));
        }
        let second = |date: &Option<String>| {
            let second = date.as_deref().map(read_second);
            let second =
                second.map(|second| second.ok_or_else(|| invalid("its dates are invalid")));
            second.transpose()
        };
        let range = Range {
            start: second(&request.start)?,
            end: second(&request.end)?,
            excludes_end: request.excludes_end,
        };
        let clock = manifest
            .clock()
            .ok_or_else(|| invalid("its dates are invalid, or its time zone is unknown"))?;
        let conditions = request
            .conditions
            .iter()
            .map(|text| Condition::parse(text, &clock))
            .collect::<Result<_, _>>()
            .map_err(|failure| invalid("a condition is invalid").caused_by(failure))?;
        if !matches!(manifest.digest_version, 1 | digest::VERSION) {
            return Err(invalid("its digest has an unknown version"));
        }
        let sorting = request.sort.as_deref().map(Sorting::parse).transpose();
        let sorting =
            sorting.map_err(|failure| invalid("its sort order is invalid").caused_by(failure))?;
        Ok(Self {
            path: path.to_owned(),
            columns,
            range,
            conditions,
            sorting,
            manifest,
        })
    }

    pub(super) fn name(&self) -> String {
        format!("`{}`", self.path.display())
    }

    pub(super) fn column_bits(&self) -> u32 {
        column_bits(self.columns.iter().copied())
    }

    /// Returns what can be compared with the manifest.
    pub(super) fn scope(&self) -> Scope {
        Scope {
            columns: self.column_bits(),
            unknown_fields: self.manifest.unknown_fields_digest.is_some(),
            version: self.manifest.digest_version,
        }
    }

    /// Returns whether invalid batches were kept.
    pub(super) fn lenient(&self) -> bool {
        self.manifest.request.lenient
    }

    /// Returns what the format of the export keeps of a batch.
    pub(super) fn representation(&self) -> Representation {
        let format = self.manifest.files.first();
        let format = format.and_then(|file| Format::named(&file.format));
        format.map_or(Representation::Text, Format::representation)
    }

    /// Returns whether a file was written without any bytes, like a CSV file without header and batches.
    pub(super) fn has_empty_file(&self) -> bool {
        let mut files = self.manifest.files.iter();
        files.any(|file| file.bytes == Some(0))
    }

    /// Compares a file or a lake, scanned over the fields of the manifest, with the manifest.
    pub(super) fn compare(
        &self,
        file: &mut Subject,
        scan: &FileScan,
        scope: &Scope,
    ) -> Result<ManifestResult, Failure> {
        let digests = file.source.measure_lake()?;
        let files = file.source.lake();
        let files = files.map(|files| {
            let lake = Lake::find(&file.path)?;
            let folder = lake.map_or_else(PathBuf::new, |lake| lake.folder);
            Ok::<_, Failure>(self.compare_files(&folder, files, &digests, &scan.files))
        });
        let files = files.transpose()?;
        let measured = file.source.measure()?;
        let claim = if files.is_some() {
            self.whole(None, false)
        } else {
            self.claim(&file.path, measured.as_ref(), &scan.digest.finish())
        };
        let is_measured = files.is_some() || measured.is_some();
        let has_bytes = !is_measured || claim.same_bytes.is_some();
        let in_lake = files.as_ref().and_then(|files| files.contradiction.clone());
        let contradiction = self.contradiction().or(in_lake);
        // With `--fields`, other columns do not count.
        let is_partial = file.fields.is_some();
        let columns = scan.columns.filter(|_| !is_partial);
        let more = columns_of_bits(columns.unwrap_or(scope.columns) & !scope.columns);
        let foreign = if is_partial { &[] } else { scan.foreign() };
        let fewer = scan.lacking(scope);
        let unknown_fields = claim.compare_unknown_fields(scan);
        let same_digest = match &claim.digest {
            Some(expected) => {
                *expected == scan.digest.finish()
                    && [None, Some(scan.digest.count())].contains(&claim.batches)
            }
            // The first manifests had only the bytes of each file.
            None => claim.same_bytes == Some(true),
        };
        let equal = same_digest
            && more.is_empty()
            && fewer.is_empty()
            && foreign.is_empty()
            && unknown_fields != UnknownFields::Different
            && !(claim.is_listed && claim.same_bytes == Some(false))
            && files.as_ref().is_none_or(LakeFiles::is_equal)
            && contradiction.is_none();
        Ok(ManifestResult {
            name: self.name(),
            equal,
            batches: claim.batches,
            digest: claim.digest,
            same_bytes: claim.same_bytes,
            unhashed: self.unhashed().filter(|_| !has_bytes),
            contradiction,
            more,
            fewer,
            foreign: foreign.to_vec(),
            unknown_fields,
            files,
            version: self.manifest.digest_version,
        })
    }

    /// Says how the manifest contradicts itself. Early ones have no numbers and digests of files.
    fn contradiction(&self) -> Option<String> {
        let manifest = &self.manifest;
        let counts = manifest.files.iter().map(|file| file.batches);
        let total = counts.sum::<Option<u64>>();
        if let Some(total) = total.filter(|total| *total != manifest.batches) {
            let batches = manifest.batches;
            let why = format!("the manifest has {batches} batches, but {total} in its files");
            return Some(why);
        }
        let [only] = &manifest.files[..] else {
            return None;
        };
        let pairs = [
            (&only.set_digest, Some(&manifest.set_digest)),
            (
                &only.unknown_fields_digest,
                manifest.unknown_fields_digest.as_ref(),
            ),
        ];
        let mut pairs = pairs.into_iter();
        let differs = pairs.any(|(file, whole)| file.is_some() && file.as_ref() != whole);
        differs.then(|| "the manifest has another digest for its only file".to_owned())
    }

    /// Returns the first file without a hash that should have one.
    fn unhashed(&self) -> Option<String> {
        let is_unhashed = |file: &&ManifestFile| file.sha256.is_none() && !is_table(&file.path);
        let found = self.manifest.files.iter().find(is_unhashed);
        found.map(|file| file.path.clone())
    }

    /// Compares the files of the lake in `folder` with those of the manifest.
    fn compare_files(
        &self,
        folder: &Path,
        files: &[PathBuf],
        digests: &[FileDigest],
        batches: &[FileBatches],
    ) -> LakeFiles {
        let mut found = LakeFiles::default();
        let mut entries: Vec<Option<&ManifestFile>> =
            self.manifest.files.iter().map(Some).collect();
        let mut take = |is_this: &dyn Fn(&ManifestFile) -> bool| {
            let entry = entries.iter_mut().find(|entry| entry.is_some_and(is_this));
            entry.and_then(Option::take)
        };
        let mut others = Vec::new();
        let mut pairs = Vec::new();
        for (number, path) in files.iter().enumerate() {
            match take(&|file| self.is_at(file, path)) {
                Some(entry) => pairs.push((number, path, entry)),
                None => others.push((number, path)),
            }
        }
        // The lake may have been moved as a whole, or be seen from another folder than at the export.
        for (number, path) in others {
            let inside = path.strip_prefix(folder).unwrap_or(path);
            let is_same = |file: &ManifestFile| Path::new(&file.path).ends_with(inside);
            match take(&|file| self.has_moved(file, path)).or_else(|| take(&is_same)) {
                Some(entry) => pairs.push((number, path, entry)),
                None => found.unlisted.add(&path.to_string_lossy()),
            }
        }
        for (number, path, entry) in pairs {
            let path = path.to_string_lossy();
            if same_bytes(entry, digests.get(number)) == Some(false) {
                found.altered.add(&path);
            } else if !has_batches(entry, batches.get(number)) && found.contradiction.is_none() {
                let path = text::one_line(&path);
                let why = format!("the manifest has other batches for `{path}` than the file");
                found.contradiction = Some(why);
            }
        }
        for entry in entries.into_iter().flatten() {
            found.missing.add(&entry.path);
        }
        found
    }

    /// Returns whether `file` is in the list of the manifest, or a lake.
    pub(super) fn describes(&self, file: &Subject) -> bool {
        let is_this = |entry: &ManifestFile| {
            self.is_at(entry, &file.path) || self.has_moved(entry, &file.path)
        };
        file.source.lake().is_some() || self.manifest.files.iter().any(is_this)
    }

    /// Returns whether the export is not of all batches of its range.
    pub(super) fn is_selection(&self) -> bool {
        !self.conditions.is_empty() || self.manifest.request.limit.is_some()
    }

    /// Returns whether the export is a table for people, which cannot be verified.
    pub(super) fn is_of_tables(&self) -> bool {
        let mut files = self.manifest.files.iter();
        files.any(|file| Format::named(&file.format) == Some(Format::Table))
    }

    /// Finds what the manifest says about this file: about all batches, or about one of several files.
    fn claim(&self, path: &Path, measured: Option<&FileDigest>, digest: &str) -> ManifestClaim {
        let manifest = &self.manifest;
        let is_this = |file: &&ManifestFile| self.is_at(file, path) || self.has_moved(file, path);
        let has_bytes = |file: &&ManifestFile| same_bytes(file, measured) == Some(true);
        let mut files = manifest.files.iter();
        // The path is more important than the bytes: at this path, the bytes of another listed file are wrong.
        let listed = files.clone().find(is_this);
        let entry = match &manifest.files[..] {
            [only] => Some(only),
            _ => listed
                .or_else(|| files.clone().find(has_bytes))
                .or_else(|| files.find(|file| has_name_of(file, path))),
        };
        // A file that is not in the manifest cannot have the right bytes.
        let same_bytes = entry.map_or(Some(false), |file| same_bytes(file, measured));
        match entry {
            Some(file) if manifest.files.len() > 1 && digest != manifest.set_digest => {
                ManifestClaim {
                    batches: file.batches,
                    digest: file.set_digest.clone(),
                    unknown_fields_digest: file.unknown_fields_digest.clone(),
                    same_bytes,
                    is_listed: listed.is_some(),
                }
            }
            _ => self.whole(same_bytes, listed.is_some()),
        }
    }

    /// Returns what the manifest says about all batches.
    fn whole(&self, same_bytes: Option<bool>, is_listed: bool) -> ManifestClaim {
        let manifest = &self.manifest;
        ManifestClaim {
            batches: Some(manifest.batches),
            digest: Some(manifest.set_digest.clone()),
            unknown_fields_digest: manifest.unknown_fields_digest.clone(),
            same_bytes,
            is_listed,
        }
    }

    /// Returns whether `file` is the one at `path` after both were moved together: the path relative to the manifest's
    /// folder is the end of the path at the export.
    fn has_moved(&self, file: &ManifestFile, path: &Path) -> bool {
        let folder = self.path.parent();
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let (Ok(folder), Ok(path)) = (folder.canonicalize(), path.canonicalize()) else {
            return false;
        };
        path.strip_prefix(folder)
            .is_ok_and(|rest| Path::new(&file.path).ends_with(rest))
    }

    /// Returns whether `file` is the one at `path`, relative to the current folder or to the manifest's folder.
    fn is_at(&self, file: &ManifestFile, path: &Path) -> bool {
        // An address is the same from everywhere.
        if file.path == path.to_string_lossy() {
            return true;
        }
        let canonical = |path: &Path| path.canonicalize().ok();
        let beside = self.path.parent().map(|folder| folder.join(&file.path));
        let this = canonical(path);
        this.is_some()
            && (canonical(Path::new(&file.path)) == this
                || beside.is_some_and(|beside| canonical(&beside) == this))
    }
}

/// What a manifest says about one file.
struct ManifestClaim {
    batches: Option<u64>,
    digest: Option<String>,
    unknown_fields_digest: Option<String>,
    same_bytes: Option<bool>,
    /// Whether the manifest lists the file by its path.
    is_listed: bool,
}

impl ManifestClaim {
    fn compare_unknown_fields(&self, scan: &FileScan) -> UnknownFields {
        let has_any = scan.digest.unknown_count() > 0;
        match &self.unknown_fields_digest {
            Some(expected) if scan.info.keeps_unknown_fields => {
                let is_same = scan.digest.finish_unknown().as_ref() == Some(expected);
                UnknownFields::of(is_same, has_any || *expected != no_unknown_fields())
            }
            Some(expected) if *expected != no_unknown_fields() => UnknownFields::NotCompared,
            None if has_any => UnknownFields::NotCompared,
            _ => UnknownFields::Absent,
        }
    }
}

/// Returns whether a file has the size and hash of its entry; `None` if one side has none.
fn same_bytes(file: &ManifestFile, measured: Option<&FileDigest>) -> Option<bool> {
    let (measured, hash) = (measured?, file.sha256.as_ref()?);
    Some(file.bytes == Some(measured.bytes) && *hash == measured.sha256)
}

/// Returns whether a file of a lake has the batches of its entry; early manifests have neither their number nor digests. A
/// file that was not scanned has no batches.
fn has_batches(file: &ManifestFile, batches: Option<&FileBatches>) -> bool {
    let Some(batches) = batches else {
        return file.batches.is_none_or(|count| count == 0);
    };
    let is = |digest: &Option<String>, found: Option<&String>| {
        digest.is_none() || digest.as_ref() == found
    };
    file.batches.is_none_or(|count| count == batches.count)
        && is(&file.set_digest, Some(&batches.digest))
        && is(
            &file.unknown_fields_digest,
            batches.unknown_fields_digest.as_ref(),
        )
}

fn has_name_of(file: &ManifestFile, path: &Path) -> bool {
    path.file_name().is_some() && Path::new(&file.path).file_name() == path.file_name()
}

/// How the fields that are not part of the interface compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum UnknownFields {
    /// Neither side has any.
    Absent,
    Equal,
    Different,
    /// One side has some, and the other does not keep them.
    NotCompared,
}

impl UnknownFields {
    pub(super) fn of(is_same: bool, has_any: bool) -> Self {
        match (is_same, has_any) {
            (false, _) => Self::Different,
            (true, true) => Self::Equal,
            (true, false) => Self::Absent,
        }
    }
}

/// How a file compares with its manifest. Scripts rely on the JSON object.
#[derive(Serialize)]
pub(super) struct ManifestResult {
    /// In quotes.
    #[serde(rename = "file", serialize_with = "without_quotes")]
    pub(super) name: String,
    pub(super) equal: bool,
    /// The expected number; `None` if the manifest has it only for several files together.
    pub(super) batches: Option<u64>,
    pub(super) digest: Option<String>,
    /// The version of the manifest's digest.
    #[serde(rename = "digest_version")]
    pub(super) version: u32,
    /// Whether size and hash are those of the manifest; `None` if one side has none.
    pub(super) same_bytes: Option<bool>,
    pub(super) unknown_fields: UnknownFields,
    /// The files of a lake; `None` for a single file.
    pub(super) files: Option<LakeFiles>,
    /// A file whose bytes were not compared, because the manifest has no hash of them.
    #[serde(skip)]
    pub(super) unhashed: Option<String>,
    /// How the manifest contradicts itself.
    #[serde(skip)]
    pub(super) contradiction: Option<String>,
    /// Fields that are not in the manifest.
    #[serde(skip)]
    pub(super) more: Vec<usize>,
    /// Fields of the manifest that the file does not have.
    #[serde(skip)]
    pub(super) fewer: Vec<usize>,
    /// Columns that are not fields.
    #[serde(skip)]
    pub(super) foreign: Vec<String>,
}

/// Writes a name that is in quotes for people.
pub(super) fn without_quotes<S: Serializer>(name: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name.trim_matches('`'))
}

/// The files of a lake compared with those of its manifest.
#[derive(Default, Serialize)]
pub(super) struct LakeFiles {
    /// Only in the manifest.
    pub(super) missing: NameList,
    /// Only in the lake.
    pub(super) unlisted: NameList,
    /// With other bytes than in the manifest.
    pub(super) altered: NameList,
    /// How the manifest contradicts a file with the right bytes.
    #[serde(skip)]
    contradiction: Option<String>,
}

impl LakeFiles {
    pub(super) fn is_equal(&self) -> bool {
        self.missing.count + self.unlisted.count + self.altered.count == 0
    }

    /// Returns whether the lake has all files of the manifest, and others.
    pub(super) fn has_only_more(&self) -> bool {
        self.missing.count + self.altered.count == 0 && self.unlisted.count > 0
    }
}
