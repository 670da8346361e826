//! How a file or a lake compares with its manifest.

use serde::{Serialize, Serializer};

use crate::verify::NameList;

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
}

impl LakeFiles {
    pub(super) fn is_equal(&self) -> bool {
        self.missing.count + self.unlisted.count + self.altered.count == 0
    }
}
