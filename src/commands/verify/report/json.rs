//! The result of `verify` as JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{OtherSide, VerifyReport};
use crate::commands::verify::result::{ManifestResult, UnknownFields};
use crate::verify::{self, NameList};

impl VerifyReport {
    pub(in crate::commands::verify) fn json(&self) -> impl Serialize {
        let found = self.differences.as_ref();
        Shape {
            equal: self.is_equal(),
            file: self.file.trim_matches('`'),
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
            manifest: self.manifest.as_ref(),
            against: self.other.as_ref(),
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
    file: &'a str,
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
    manifest: Option<&'a ManifestResult>,
    against: Option<&'a OtherSide>,
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
struct ChangedShape<'a> {
    count: u64,
    ids: Vec<&'a str>,
    fields: BTreeMap<&'a str, Vec<&'static str>>,
}
