//! What a manifest says of a file, and whether it holds.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use crate::batch::{find_column, whole_second};
use crate::cli::Format;
use crate::compare::{self, Survey};
use crate::dates::Range;
use crate::error::{Failure, Kind};
use crate::manifest::{File, Manifest};
use crate::readers::Measured;
use crate::select::{Condition, Sorting};

/// A manifest that was read and understood.
pub(super) struct Expected {
    path: PathBuf,
    manifest: Manifest,
    /// The fields that were written, in their order.
    pub(super) columns: Vec<usize>,
    pub(super) range: Range,
    pub(super) conditions: Vec<Condition>,
    pub(super) sorting: Option<Sorting>,
}

/// How a file stands to its manifest.
pub(super) struct Judgement {
    /// In quotes.
    pub(super) name: String,
    pub(super) equal: bool,
    /// What there should be; nothing where the manifest says it of several files together.
    pub(super) batches: Option<u64>,
    pub(super) digest: Option<String>,
    /// Size and hash are those of the manifest; nothing where one side has none.
    pub(super) same_bytes: Option<bool>,
    /// Fields that the manifest does not know of.
    pub(super) more: Vec<usize>,
    /// Fields of the manifest that the file does not have.
    pub(super) fewer: Vec<usize>,
}

impl Expected {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let manifest = Manifest::read(path)?;
        let name = path.display();
        let odd = |what: &str| {
            Failure::new(
                Kind::Usage,
                format!("the manifest `{name}` cannot be used: {what}"),
            )
            .hint("it was altered, or a newer trayscan has written it")
        };
        let request = &manifest.request;
        let mut columns = Vec::new();
        for field in &request.fields {
            let column = find_column(field).filter(|column| !columns.contains(column));
            columns.push(column.ok_or_else(|| odd("its fields are not those of a batch"))?);
        }
        if columns.is_empty() {
            return Err(odd("it names no fields"));
        }
        let second = |date: &Option<String>| {
            let second = |date: &String| {
                date.strip_suffix('Z')
                    .and_then(whole_second)
                    .ok_or_else(|| odd("its dates are none"))
            };
            date.as_ref().map(second).transpose()
        };
        let range = Range {
            start: second(&request.start)?,
            end: second(&request.end)?,
            excludes_end: request.excludes_end,
        };
        // "7d" was counted from then.
        let asked = DateTime::parse_from_rfc3339(&manifest.started)
            .map_err(|_| odd("its dates are none"))?
            .with_timezone(&Utc);
        let conditions = request
            .conditions
            .iter()
            .map(|text| Condition::parse(text, asked))
            .collect::<Result<_, _>>()
            .map_err(|failure| odd("a condition is not known").caused_by(failure))?;
        let sorting = request.sort.as_deref().map(Sorting::parse).transpose();
        let sorting =
            sorting.map_err(|failure| odd("its order is not known").caused_by(failure))?;
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
        self.columns.iter().fold(0, |all, column| all | 1 << column)
    }

    pub(super) fn base_url(&self) -> Option<&str> {
        self.manifest.request.base_url.as_deref()
    }

    pub(super) fn limit(&self) -> Option<u64> {
        self.manifest.request.limit
    }

    pub(super) fn lenient(&self) -> bool {
        self.manifest.request.lenient
    }

    /// Tells whether the export was written with typed columns, where what is no value is null.
    pub(super) fn is_typed(&self) -> bool {
        let is_typed = |file: &File| Format::named(&file.format).is_some_and(Format::is_typed);
        self.manifest.files.iter().all(is_typed)
    }

    /// Tells whether a file was written without a byte, as text without a header is.
    pub(super) fn has_empty_file(&self) -> bool {
        let mut files = self.manifest.files.iter();
        files.any(|file| file.bytes == Some(0))
    }

    pub(super) fn files(&self) -> usize {
        self.manifest.files.len()
    }

    /// Judges the file at `path`, whose digest was taken over the fields of the manifest.
    pub(super) fn judge(
        &self,
        path: &Path,
        measured: Option<&Measured>,
        survey: &Survey,
    ) -> Judgement {
        let digest = survey.digest.finish();
        let claim = self.claim(path, measured, &digest);
        let here = survey.columns.unwrap_or_else(|| self.column_bits());
        let more = compare::listed(here & !self.column_bits());
        let fewer = compare::listed(self.column_bits() & !here);
        let equal = match &claim.digest {
            Some(expected) => {
                *expected == digest
                    && claim
                        .batches
                        .is_none_or(|count| count == survey.digest.count())
            }
            // The first manifests said nothing of each file alone but its bytes.
            None => claim.same_bytes == Some(true),
        };
        Judgement {
            name: self.name(),
            equal: equal && more.is_empty(),
            batches: claim.batches,
            digest: claim.digest,
            same_bytes: claim.same_bytes,
            more,
            fewer,
        }
    }

    /// Finds what the manifest says of this file: of all batches together, or of one file of many.
    fn claim(&self, path: &Path, measured: Option<&Measured>, digest: &str) -> Claim {
        let manifest = &self.manifest;
        let same_bytes = |file: &File| {
            let (measured, hash) = (measured?, file.sha256.as_ref()?);
            Some(file.bytes == Some(measured.bytes) && *hash == measured.sha256)
        };
        let has_bytes = |file: &&File| same_bytes(file) == Some(true);
        let entry = match &manifest.files[..] {
            [only] => Some(only),
            // Its place comes first: there, the bytes of another of these files are the wrong ones.
            files => files
                .iter()
                .find(|file| self.is_at(file, path))
                .or_else(|| files.iter().find(has_bytes))
                .or_else(|| files.iter().find(|file| has_name_of(file, path))),
        };
        // A file that the manifest does not know is none of its own.
        let same_bytes = entry.map_or(Some(false), same_bytes);
        match entry {
            Some(file) if manifest.files.len() > 1 && digest != manifest.set_digest => Claim {
                batches: file.batches,
                digest: file.set_digest.clone(),
                same_bytes,
            },
            _ => Claim {
                batches: Some(manifest.batches),
                digest: Some(manifest.set_digest.clone()),
                same_bytes,
            },
        }
    }

    /// Tells whether the manifest means the file at `path`: seen from here, or from where it lies.
    fn is_at(&self, file: &File, path: &Path) -> bool {
        // An address is the same seen from anywhere.
        if Path::new(&file.path) == path {
            return true;
        }
        let place = |path: &Path| path.canonicalize().ok();
        let beside = self.path.parent().map(|folder| folder.join(&file.path));
        let this = place(path);
        this.is_some()
            && (place(Path::new(&file.path)) == this
                || beside.is_some_and(|beside| place(&beside) == this))
    }
}

/// What a manifest says of one file.
struct Claim {
    batches: Option<u64>,
    digest: Option<String>,
    same_bytes: Option<bool>,
}

fn has_name_of(file: &File, path: &Path) -> bool {
    path.file_name().is_some() && Path::new(&file.path).file_name() == path.file_name()
}
