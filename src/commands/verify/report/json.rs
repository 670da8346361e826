//! The result of `verify` as JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::VerifyReport;
use crate::commands::verify::result::{LakeFiles, UnknownFields};
use crate::verify::{self, NameList};

impl VerifyReport {
    pub(in crate::commands::verify) fn json(&self) -> impl Serialize {
        let found = self.differences.as_ref();
        let bare = |name: &str| name.trim_matches('`').to_owned();
        Shape {
            equal: self.is_equal(),
            file: bare(&self.file),
            batches: self.batches,
            digest: &self.digest,
            digest_version: self.scope.version,
            fields: verify::names(&self.columns),
            not_compared: self.not_compared(),
            lacking: verify::names(&self.lacking),
            unknown_fields: self.unknown_fields,
            repeated: &self.repeated,
            claim: self.claim.as_ref().map(|claim| ClaimShape {
                equal: self.matches_claim(),
                batches: claim.batches,
                digest: &claim.set_digest,
            }),
            manifest: self.manifest.as_ref().map(|manifest| ManifestShape {
                file: bare(&manifest.name),
                equal: manifest.equal,
                batches: manifest.batches,
                digest: manifest.digest.as_deref(),
                digest_version: manifest.version,
                same_bytes: manifest.same_bytes,
                unknown_fields: manifest.unknown_fields,
                files: manifest.files.as_ref(),
            }),
            against: self.other.as_ref().map(|other| OtherShape {
                kind: other.kind,
                name: bare(&other.name),
                batches: other.batches,
                digest: &other.digest,
                lacking: verify::names(&other.lacking),
                repeated: &other.repeated,
            }),
            missing: found.map(|found| &found.missing),
            extra: found.map(|found| &found.extra),
            changed: found.map(|found| ChangedShape {
                count: found.changed,
                ids: found.changes.iter().map(|change| &*change.id).collect(),
                fields: found
                    .changes
                    .iter()
                    .map(|change| (&*change.id, change.names()))
                    .collect(),
            }),
        }
    }
}

/// The JSON object. Scripts rely on it: every key is always present.
#[derive(Serialize)]
struct Shape<'a> {
    equal: bool,
    file: String,
    batches: u64,
    digest: &'a str,
    digest_version: u32,
    /// Fields that were compared.
    fields: Vec<&'static str>,
    not_compared: Vec<String>,
    /// Fields to compare that the file does not have.
    lacking: Vec<&'static str>,
    unknown_fields: UnknownFields,
    repeated: &'a NameList,
    claim: Option<ClaimShape<'a>>,
    manifest: Option<ManifestShape<'a>>,
    against: Option<OtherShape<'a>>,
    /// Null if they cannot be listed, or were not looked for.
    missing: Option<&'a NameList>,
    extra: Option<&'a NameList>,
    changed: Option<ChangedShape<'a>>,
}

#[derive(Serialize)]
struct ClaimShape<'a> {
    equal: bool,
    batches: Option<u64>,
    digest: &'a str,
}

#[derive(Serialize)]
struct ManifestShape<'a> {
    file: String,
    equal: bool,
    batches: Option<u64>,
    digest: Option<&'a str>,
    digest_version: u32,
    same_bytes: Option<bool>,
    unknown_fields: UnknownFields,
    /// Null for a single file.
    files: Option<&'a LakeFiles>,
}

#[derive(Serialize)]
struct OtherShape<'a> {
    kind: &'static str,
    name: String,
    batches: u64,
    digest: &'a str,
    lacking: Vec<&'static str>,
    repeated: &'a NameList,
}

#[derive(Serialize)]
struct ChangedShape<'a> {
    count: u64,
    ids: Vec<&'a str>,
    fields: BTreeMap<&'a str, Vec<&'static str>>,
}
