//! The manifest of an export: the request, the result, and checksums to verify it.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::archive::Position;
use crate::batch::Zone;
use crate::batch::date::Clock;
use crate::batch::digest::DigestState;
use crate::error::{Failure, Kind};
use crate::storage::cleanup::Folders;
use crate::storage::cloud::{self, ObjectAddress};
use crate::storage::temp_file::TempFile;
use crate::storage::{Compression, EncodedOutput, Location, Storage};

/// Larger than any manifest; a wrong file may have any size.
const SIZE_LIMIT: u64 = 256 << 20;

/// Fields that `verify` does not need are optional when reading: later versions add fields.
#[derive(Deserialize, Serialize)]
pub(crate) struct Manifest {
    #[serde(default)]
    pub(crate) trayscan: String,
    /// Only a finished export has a manifest. It is not complete if it is from an archive with gaps.
    #[serde(default)]
    pub(crate) complete: bool,
    pub(crate) request: ManifestRequest,
    #[serde(default)]
    pub(crate) version: Option<String>,
    #[serde(default)]
    pub(crate) windows: Vec<ManifestWindow>,
    pub(crate) batches: u64,
    #[serde(default)]
    pub(crate) duplicates_dropped: u64,
    #[serde(default)]
    pub(crate) conflicts_dropped: u64,
    #[serde(default)]
    pub(crate) requests: u64,
    #[serde(default)]
    pub(crate) retries: u64,
    #[serde(default)]
    pub(crate) token_renewals: u64,
    #[serde(default)]
    pub(crate) warnings: Vec<String>,
    pub(crate) started: String,
    #[serde(default)]
    pub(crate) ended: String,
    pub(crate) files: Vec<ManifestFile>,
    /// Version 1 did not write this.
    #[serde(default = "first_version")]
    pub(crate) digest_version: u32,
    pub(crate) set_digest: String,
    /// The digest of unknown fields; `None` if the format does not keep them.
    #[serde(default)]
    pub(crate) unknown_fields_digest: Option<String>,
    /// For a partitioned export from an archive: the state that `--only-changed` continues from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lake: Option<LakeState>,
}

/// The state of a lake.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct LakeState {
    /// The name of `-o`, with its placeholders.
    pub(crate) template: String,
    /// Flags that affect the bytes of a file, such as `--excel`.
    pub(crate) options: Vec<String>,
    /// The position of the archive at the time of the export.
    pub(crate) archive: Position,
    /// Whether no end was asked for: the one in the manifest is that of the archive. Early manifests have none then.
    #[serde(default)]
    pub(crate) has_open_end: bool,
    /// The state that `set_digest` was computed from.
    pub(crate) digest: DigestState,
    /// The names of crops in file names, if the template contains them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) crop_names: Option<BTreeMap<String, String>>,
}

fn first_version() -> u32 {
    1
}

fn utc() -> String {
    Zone::UTC.name().to_owned()
}

/// The request.
#[derive(Deserialize, Serialize)]
pub(crate) struct ManifestRequest {
    /// `None` for an archive without an owner.
    pub(crate) base_url: Option<String>,
    /// The archive, if it was read instead of the service.
    pub(crate) archive: Option<String>,
    pub(crate) start: Option<String>,
    pub(crate) end: Option<String>,
    /// Whether batches created in the second `end` are excluded: they belong to the next period.
    pub(crate) excludes_end: bool,
    /// The time zone of the dates in conditions. Early manifests have none: it was UTC.
    #[serde(default = "utc")]
    pub(crate) time_zone: String,
    pub(crate) fields: Vec<String>,
    #[serde(rename = "where")]
    pub(crate) conditions: Vec<String>,
    pub(crate) sort: Option<String>,
    pub(crate) limit: Option<u64>,
    #[serde(default)]
    pub(crate) lenient: bool,
}

/// A part of the range, as it was fetched.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ManifestWindow {
    pub(crate) start: Option<String>,
    pub(crate) end: Option<String>,
    pub(crate) pages: u64,
    pub(crate) batches: u64,
}

/// A file that was written; `-` is standard output. A table has an address, but no bytes.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct ManifestFile {
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) format: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<String>,
    /// Of this file alone, so that it can be verified separately; early manifests lack both.
    #[serde(default)]
    pub(crate) batches: Option<u64>,
    #[serde(default)]
    pub(crate) set_digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unknown_fields_digest: Option<String>,
}

/// The target of a manifest, opened before the first request like that of the data.
pub(crate) struct Draft {
    output: EncodedOutput,
    /// Folders created for it; removed if the export fails.
    _folders: Folders,
}

impl Draft {
    /// Opens the target of the manifest, and creates its folder if `make_folder` is set.
    pub(crate) fn open(
        path: &Path,
        no_clobber: bool,
        make_folder: bool,
        storage: &Storage,
    ) -> Result<Self, Failure> {
        let location = Location::new(Some(path))?;
        let mut folders = Folders::default();
        if let Location::File(path) = &location
            && make_folder
        {
            let created = folders.create_for(path, &storage.cleanup);
            created.map_err(|error| {
                let name = location.name();
                Failure::new(Kind::Output, format!("cannot create the folder of {name}"))
                    .caused_by(error)
                    .hint("choose another location with `--manifest`")
            })?;
        }
        Ok(Self {
            output: storage.create(&location, Compression::None, no_clobber)?,
            _folders: folders,
        })
    }

    /// Writes the manifest atomically, like any output.
    pub(crate) fn write(self, manifest: &Manifest) -> Result<(), Failure> {
        let mut output = self.output;
        let written = serde_json::to_writer_pretty(&mut output, manifest);
        written.map_err(|error| output.failure(error.into()))?;
        output.write_all(b"\n")?;
        output.publish().map(drop)
    }
}

impl Manifest {
    /// Returns what the dates in conditions refer to; `None` if that is not known.
    pub(crate) fn clock(&self) -> Option<Clock> {
        let started = DateTime::parse_from_rfc3339(&self.started).ok()?;
        Some(Clock {
            now: started.with_timezone(&Utc),
            zone: Zone::parse(&self.request.time_zone).ok()?,
        })
    }

    /// Reads the manifest of a complete export.
    pub(crate) fn read(path: &Path, storage: &Storage) -> Result<Self, Failure> {
        let manifest = Self::read_any(path, storage)?;
        if !manifest.complete {
            return Err(Failure::usage(
                format!(
                    "the manifest `{}` does not describe a complete export",
                    path.display()
                ),
                "it lacks `\"complete\": true`: export again",
            ));
        }
        Ok(manifest)
    }

    /// Reads a manifest, including that of an export from an archive with gaps.
    pub(crate) fn read_any(path: &Path, storage: &Storage) -> Result<Self, Failure> {
        use std::io::Read as _;

        let name = path.display();
        let mut text = Vec::new();
        let object = ObjectAddress::parse(path)?;
        let object = object.map(|address| cloud::download(&address, storage));
        let object = object.transpose()?;
        let file = std::fs::File::open(object.as_ref().map_or(path, TempFile::path));
        file.and_then(|file| file.take(SIZE_LIMIT).read_to_end(&mut text))
            .map_err(|error| {
                Failure::new(Kind::Usage, format!("cannot read the manifest `{name}`"))
                    .caused_by(error)
                    .hint("name a file that `trayscan export --manifest` wrote")
            })?;
        serde_json::from_slice(&text).map_err(|error| {
            Failure::new(Kind::Usage, format!("`{name}` is not a manifest"))
                .caused_by(error)
                .hint("`trayscan export --manifest` writes manifests; to compare two exports, use `--against`")
        })
    }
}
