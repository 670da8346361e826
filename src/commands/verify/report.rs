//! The result of `verify` as text, and what it means: equal or not, and why.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Serialize, Serializer};

use super::expected::{ManifestResult, UnknownFields, without_quotes};
use super::subject::{Subject, brief_list, note_unknown_columns};
use crate::batch::digest::SetDigest;
use crate::batch::{ALL_COLUMNS, BATCH_ID, COLUMNS, columns_of_bits};
use crate::error::{Failure, Kind};
use crate::formats::record::EmbeddedDigest;
use crate::secret;
use crate::terminal::{self, MessageFormat};
use crate::text;
use crate::verify::{self, Comparison, Differences, FileScan, NameList, Scope};

/// One side of a comparison. Scripts rely on the JSON object.
#[derive(Serialize)]
pub(super) struct ComparedSide {
    /// `file`, `service` or `archive`.
    kind: &'static str,
    #[serde(serialize_with = "without_quotes")]
    name: String,
    /// The range and the API version, for the text.
    #[serde(skip)]
    detail: String,
    batches: u64,
    digest: String,
    /// Columns that it does not have.
    #[serde(serialize_with = "by_name")]
    lacking: Vec<usize>,
    /// Batches that it contains more than once.
    repeated: NameList,
    /// Columns that are not fields.
    #[serde(skip)]
    foreign: Vec<String>,
}

fn by_name<S: Serializer>(columns: &[usize], serializer: S) -> Result<S::Ok, S::Error> {
    verify::names(columns).serialize(serializer)
}

impl ComparedSide {
    fn file(name: &str, scan: &FileScan, scope: Scope) -> Self {
        Self {
            repeated: scan.repeated.clone(),
            lacking: scan.lacking(&scope),
            foreign: scan.foreign().to_vec(),
            ..Self::source("file", name.to_owned(), String::new(), &scan.digest)
        }
    }

    /// A service or an archive: repeated batches were already dropped, and no column is missing.
    pub(super) fn source(
        kind: &'static str,
        name: String,
        detail: String,
        digest: &SetDigest,
    ) -> Self {
        Self {
            kind,
            name,
            detail,
            batches: digest.count(),
            digest: digest.finish(),
            repeated: NameList::default(),
            lacking: Vec::new(),
            foreign: Vec::new(),
        }
    }

    fn in_full(&self) -> String {
        format!("{}{}", self.name, self.detail)
    }
}

pub(super) struct VerifyReport {
    /// The file that is verified.
    this: ComparedSide,
    scope: Scope,
    /// Columns that were compared.
    columns: Vec<usize>,
    unknown_digest: Option<String>,
    unknown_count: u64,
    keeps_unknown_fields: bool,
    /// Whether `--fields` left some out.
    is_partial: bool,
    unknown_fields: UnknownFields,
    /// What a file says besides its batches that contradicts them.
    contradiction: Option<String>,
    /// The embedded digest, if nothing else is compared.
    pub(super) claim: Option<EmbeddedDigest>,
    pub(super) manifest: Option<ManifestResult>,
    /// What it is compared with.
    pub(super) other: Option<ComparedSide>,
    /// Whether both sides are the same, batch by batch.
    same_batches: bool,
    differences: Option<Differences>,
    /// The last line, if batches were fetched again.
    pub(super) conclusion: Option<String>,
}

impl VerifyReport {
    pub(super) fn new(file: &Subject, scan: &FileScan, scope: Scope) -> Self {
        let mut report = Self {
            this: ComparedSide::file(file.source.name(), scan, scope),
            scope,
            columns: columns_of_bits(scope.columns),
            unknown_digest: scan.digest.finish_unknown(),
            unknown_count: scan.digest.unknown_count(),
            keeps_unknown_fields: scan.info.keeps_unknown_fields,
            is_partial: file.fields.is_some(),
            unknown_fields: UnknownFields::Absent,
            contradiction: None,
            claim: None,
            manifest: None,
            other: None,
            same_batches: true,
            differences: None,
            conclusion: None,
        };
        report.check_contradiction(file.source.name(), scan);
        report
    }

    /// Notes what contradicts the batches of `scan`, unless only some fields are compared.
    fn check_contradiction(&mut self, name: &str, scan: &FileScan) {
        let wrong = scan.info.contradiction.as_ref();
        let wrong = wrong.filter(|_| !self.is_partial);
        let wrong = wrong.map(|wrong| format!("{name}: {wrong}"));
        self.contradiction = self.contradiction.take().or(wrong);
    }

    /// Adds the file that this one is compared with.
    pub(super) fn add_other(&mut self, name: &str, scan: &FileScan) {
        self.compare_unknown_fields(&scan.digest, scan.info.keeps_unknown_fields);
        self.check_contradiction(name, scan);
        self.other = Some(ComparedSide::file(name, scan, self.scope));
    }

    /// Compares the unknown fields with those of the other side; `is_kept` is whether it keeps them.
    pub(super) fn compare_unknown_fields(&mut self, there: &SetDigest, is_kept: bool) {
        let has_any = self.unknown_count + there.unknown_count() > 0;
        self.unknown_fields = if self.scope.unknown_fields && self.keeps_unknown_fields && is_kept {
            UnknownFields::of(self.unknown_digest == there.finish_unknown(), has_any)
        } else if has_any {
            UnknownFields::NotCompared
        } else {
            UnknownFields::Absent
        };
    }

    /// Returns whether nothing is wrong.
    pub(super) fn is_equal(&self) -> bool {
        self.this.repeated.count == 0
            && self.matches_claim()
            && self.manifest.as_ref().is_none_or(|manifest| manifest.equal)
            && self.same_batches
            && self.other.as_ref().is_none_or(|other| self.equals(other))
            && self.contradiction.is_none()
    }

    fn equals(&self, other: &ComparedSide) -> bool {
        other.digest == self.this.digest
            && self.same_columns(other)
            && self.unknown_fields != UnknownFields::Different
    }

    /// Returns whether both sides have all columns that are compared, and no others unless `--fields` was given.
    fn same_columns(&self, other: &ComparedSide) -> bool {
        self.this.lacking.is_empty()
            && other.lacking.is_empty()
            && (self.is_partial || self.this.foreign.is_empty() && other.foreign.is_empty())
    }

    /// Returns whether the file matches its embedded digest.
    fn matches_claim(&self) -> bool {
        self.claim.as_ref().is_none_or(|claim| {
            let unknown = claim.unknown_fields_digest.as_ref();
            claim.set_digest == self.this.digest
                && claim
                    .batches
                    .is_none_or(|batches| batches == self.this.batches)
                && (unknown.is_none() || unknown == self.unknown_digest.as_ref())
        })
    }

    /// Adds the result of the comparison batch by batch, with a list of differences if there are any.
    pub(super) fn add_comparison(
        &mut self,
        comparison: Comparison,
        file: &mut Subject,
    ) -> Result<(), Failure> {
        if !self.columns.contains(&BATCH_ID) {
            return Ok(());
        }
        self.same_batches = comparison.is_equal();
        let other = self.other.as_ref();
        if !self.is_equal() && other.is_none_or(|other| self.same_columns(other)) {
            let layout = file.layout.as_deref();
            self.differences = Some(comparison.differences(&mut file.source, layout)?);
        }
        Ok(())
    }

    /// Returns the fields that were not compared: those that `--fields` left out or neither side has, and columns that
    /// are not fields.
    fn not_compared(&self) -> Vec<String> {
        let fields = verify::names(&columns_of_bits(ALL_COLUMNS & !self.scope.columns));
        let mut names: Vec<String> = fields.into_iter().map(ToOwned::to_owned).collect();
        let there = self.other.iter().flat_map(|other| &other.foreign);
        for name in self.this.foreign.iter().chain(there) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// Prints notes on what is not a difference but worth knowing.
    pub(super) fn print_notes(&self) {
        let manifest = self.manifest.as_ref();
        let unknown = manifest.map_or(self.unknown_fields, |manifest| manifest.unknown_fields);
        if [unknown, self.unknown_fields].contains(&UnknownFields::NotCompared) {
            terminal::note(if self.is_partial {
                "unknown fields were not compared: `--fields` asks for others"
            } else {
                "unknown fields were not compared: only one side keeps them"
            });
        }
        let is_alone = self.other.is_none() && manifest.is_none();
        if !self.this.foreign.is_empty() && (self.is_partial || is_alone) {
            note_unknown_columns(&self.this.name, &self.this.foreign);
        }
        let of_manifest = manifest.filter(|manifest| manifest.version == 1);
        let of_manifest = of_manifest.map(|manifest| format!("the manifest {}", manifest.name));
        let of_file = self
            .claim
            .as_ref()
            .filter(|claim| claim.digest_version == 1);
        let of_file = of_file.map(|_| self.this.name.clone());
        for name in of_manifest.into_iter().chain(of_file) {
            terminal::note(&format!(
                "{name} has a digest of version 1, which can be forged; export again for version 2"
            ));
        }
        if !self.is_equal() {
            return;
        }
        if let Some(manifest) = manifest
            && manifest.same_bytes == Some(false)
        {
            terminal::note(&format!(
                "the batches match the manifest {}; it was written for a file with other bytes",
                manifest.name
            ));
        }
        if let Some(path) = manifest.and_then(|manifest| manifest.unhashed.as_ref()) {
            terminal::note(&format!(
                "the bytes of `{}` were not compared: the manifest has no SHA-256 of them",
                text::one_line(path)
            ));
        }
        if !self.columns.contains(&BATCH_ID) {
            terminal::note("without `batch_id`, repeated batches cannot be detected");
        }
    }

    pub(super) fn print(&self, format: MessageFormat) -> Result<(), Failure> {
        match format {
            MessageFormat::Json => terminal::print_json(&self.json()),
            MessageFormat::Text if self.is_equal() => terminal::print(&self.one_line()),
            MessageFormat::Text => terminal::print(&self.lines()),
        }
    }

    /// Returns an error that says what is wrong and what to do, unless all is equal.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        if self.is_equal() {
            return Ok(());
        }
        let file = &self.this.name;
        let failure = |message: String| Failure::new(Kind::Protocol, message);
        let differs = |other: &&ComparedSide| !self.equals(other) || !self.same_batches;
        let other = self.other.as_ref().filter(differs);
        Err(match (&self.manifest, other) {
            _ if self.this.repeated.count > 0 => failure(format!(
                "{file} contains {} more than once",
                batches(self.this.repeated.count)
            ))
            .hint("every batch must appear once: export it again, into an empty folder if it has several files"),
            _ if !self.matches_claim() => {
                failure(format!("{file} does not match its own embedded digest"))
                    .hint("it was modified after the export: export it again")
            }
            (Some(manifest), None) if !manifest.equal => self.manifest_failure(manifest),
            (Some(manifest), Some(other)) if !manifest.equal => failure(format!(
                "{file} matches neither the manifest {} nor {}",
                manifest.name, other.name
            ))
            .hint("the file was modified, or belongs to another manifest"),
            (Some(manifest), Some(other)) => failure(format!(
                "{file} matches the manifest {}, but {} has changed since",
                manifest.name, other.name
            ))
            .hint("batches were added, changed or removed: export again to get them"),
            (None, Some(other)) => self.other_failure(other),
            (_, None) => {
                let wrong = self.contradiction.clone();
                failure(wrong.unwrap_or_else(|| format!("{file} is not equal")))
                    .hint("it was modified, or another program wrote it: export it again")
            }
        })
    }

    /// Says how a file differs from another side.
    fn other_failure(&self, other: &ComparedSide) -> Failure {
        let (file, name) = (&self.this.name, &other.name);
        let failure = |message: String| Failure::new(Kind::Protocol, message);
        let sides = [
            (file, &self.this.lacking, &self.this.foreign),
            (name, &other.lacking, &other.foreign),
        ];
        let compare_some = "`--fields` compares certain fields only";
        for (side, lacking, foreign) in sides {
            if !lacking.is_empty() {
                let fields = verify::briefly(lacking);
                return failure(format!("{side} is missing fields: {fields}")).hint(compare_some);
            }
            if !self.is_partial && !foreign.is_empty() {
                let names = brief_list(foreign);
                return failure(format!("{side} has unknown columns: {names}")).hint(compare_some);
            }
        }
        let only_unknown = other.digest == self.this.digest && self.same_columns(other);
        if only_unknown && self.unknown_fields == UnknownFields::Different {
            return failure(format!("{file} and {name} differ in unknown fields"))
                .hint("`--fields` with known fields leaves these out");
        }
        let failure = failure(format!("{file} and {name} contain different batches"));
        match other.kind {
            "service" | "archive" => failure.hint(
                "batches may have changed since; if the export had other dates or `--where`, its manifest (`--manifest`) says which",
            ),
            _ if self.differences.is_none() => {
                failure.hint("without `batch_id` on both sides, the differences cannot be listed")
            }
            _ => failure.hint(
                "`missing`: only in the second; `extra`: only in the first; `changed`: in both, with other values",
            ),
        }
    }

    /// Says why a file is not what its manifest says.
    fn manifest_failure(&self, manifest: &ManifestResult) -> Failure {
        let ids = "a manifest has no ids: `--against` another export or `--service` lists the batches that differ";
        let modified = "it was modified after the export: export it again";
        let same_digest = manifest.digest.as_ref() == Some(&self.this.digest);
        let files = manifest.files.as_ref();
        let has_other_files = files.is_some_and(|files| !files.is_equal());
        let other_fields = "was it exported with other `--fields`?";
        let fields = [
            (
                "it has more fields",
                verify::briefly(&manifest.more),
                other_fields,
            ),
            (
                "it is missing fields",
                verify::briefly(&manifest.fewer),
                other_fields,
            ),
            (
                "it has unknown columns",
                brief_list(&manifest.foreign),
                "remove them, or export it again",
            ),
        ];
        let mut fields = fields.iter().filter(|(_, names, _)| !names.is_empty());
        let (why, hint) = match (manifest.batches, fields.next()) {
            (_, Some((what, names, hint))) => (format!("{what}: {names}"), *hint),
            _ if has_other_files => (
                "its files are not those in the manifest".to_owned(),
                match files {
                    Some(files) if files.has_only_more() => {
                        "remove the files that are not in the manifest, or export everything into an empty folder"
                    }
                    _ => modified,
                },
            ),
            _ if manifest.contradiction.is_some() => (
                manifest.contradiction.clone().unwrap_or_default(),
                "the manifest was modified",
            ),
            _ if manifest.same_bytes == Some(true) => (
                "the bytes are the same, but its batches are not".to_owned(),
                "the manifest was modified",
            ),
            (Some(count), _) if count != self.this.batches => (
                format!("{} instead of {count}", batches(self.this.batches)),
                ids,
            ),
            _ if same_digest && manifest.unknown_fields == UnknownFields::Different => {
                ("unknown fields differ".to_owned(), ids)
            }
            _ if same_digest => (
                "the same batches, but different bytes (SHA-256)".to_owned(),
                modified,
            ),
            (Some(_), _) => (
                "the same number of batches, but different content".to_owned(),
                ids,
            ),
            (None, _) => (
                "different bytes, and the manifest has no other information on this file"
                    .to_owned(),
                ids,
            ),
        };
        let (file, name) = (&self.this.name, &manifest.name);
        let message = format!("{file} does not match the manifest {name}: {why}");
        Failure::new(Kind::Protocol, message).hint(hint)
    }

    fn one_line(&self) -> String {
        let content = self.content(self.this.batches, &self.this.digest);
        let manifest = self.manifest.as_ref();
        let manifest = manifest.map(|manifest| format!("the manifest {}", manifest.name));
        let other = self.other.as_ref().map(ComparedSide::in_full);
        let line = match &*text::join(manifest.into_iter().chain(other), " and ") {
            "" => format!("{} contains {content}", self.this.name),
            sides => format!("{} equals {sides}: {content}", self.this.name),
        };
        format!("{}\n", text::one_line(&line))
    }

    fn content(&self, count: u64, digest: &str) -> String {
        let fields = match (self.columns.len(), COLUMNS.len()) {
            (some, all) if some == all => String::new(),
            (some, all) => format!(" with {some} of {all} fields"),
        };
        format!("{}{fields}, set digest {digest}", batches(count))
    }

    fn lines(&self) -> String {
        let mut lines = String::new();
        let mut line = |text: &str| {
            lines.push_str(&text::one_line(text));
            lines.push('\n');
        };
        let file = &self.this.name;
        let content = self.content(self.this.batches, &self.this.digest);
        line(&format!("{file}: {content}"));
        let counted = |count: Option<u64>| count.map_or_else(|| "batches".to_owned(), batches);
        if let Some(claim) = &self.claim {
            let (count, digest) = (counted(claim.batches), &claim.set_digest);
            line(&format!("embedded digest: {count}, set digest {digest}"));
        }
        if let Some(manifest) = &self.manifest {
            let (name, count) = (&manifest.name, counted(manifest.batches));
            let digest = manifest.digest.as_deref().unwrap_or("unknown");
            line(&format!("manifest {name}: {count}, set digest {digest}"));
        }
        if let Some(other) = &self.other {
            let content = self.content(other.batches, &other.digest);
            line(&format!("{}: {content}", other.in_full()));
        }
        let name = self.other.as_ref().map_or("", |other| other.name.as_str());
        if let Some(found) = &self.differences {
            let changed = NameList {
                count: found.changed,
                ids: found.changes.iter().map(changed_line).collect(),
            };
            for (title, listing, meaning) in [
                ("missing", &found.missing, format!("in {name} only")),
                ("extra", &found.extra, format!("in {file} only")),
                ("changed", &changed, "in both, with other values".to_owned()),
            ] {
                list(&mut lines, title, listing, &meaning);
            }
        }
        let repeated = |name: &str| format!("in {name} more than once");
        list(&mut lines, "repeated", &self.this.repeated, &repeated(file));
        if let Some(other) = &self.other {
            list(&mut lines, "repeated", &other.repeated, &repeated(name));
        }
        let manifest = self.manifest.as_ref();
        if let Some(files) = manifest.and_then(|manifest| manifest.files.as_ref()) {
            for (title, listing, meaning) in [
                ("missing", &files.missing, "in the manifest only"),
                ("unlisted", &files.unlisted, "not in the manifest"),
                ("altered", &files.altered, "with other bytes (SHA-256)"),
            ] {
                let count = text::count(listing.count, "file", "files");
                list_with(&mut lines, title, &count, listing, meaning);
            }
        }
        lines
    }

    pub(super) fn json(&self) -> impl Serialize {
        let found = self.differences.as_ref();
        Shape {
            equal: self.is_equal(),
            file: self.this.name.trim_matches('`'),
            batches: self.this.batches,
            digest: &self.this.digest,
            digest_version: self.scope.version,
            fields: verify::names(&self.columns),
            not_compared: self.not_compared(),
            lacking: verify::names(&self.this.lacking),
            unknown_fields: self.unknown_fields,
            repeated: &self.this.repeated,
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
    against: Option<&'a ComparedSide>,
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

fn batches(count: u64) -> String {
    text::count(count, "batch", "batches")
}

fn changed_line(change: &verify::BatchDifference) -> String {
    format!(
        "{}: {}",
        secret::brief(&change.id),
        change.names().join(", ")
    )
}

/// Adds a list of batches, if there are any.
fn list(lines: &mut String, title: &str, listing: &NameList, meaning: &str) {
    list_with(lines, title, &batches(listing.count), listing, meaning);
}

fn list_with(lines: &mut String, title: &str, count: &str, listing: &NameList, meaning: &str) {
    if listing.count == 0 {
        return;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(lines, "{title}: {count} {}", text::one_line(meaning));
    for id in &listing.ids {
        let _ = writeln!(lines, "  {}", text::one_line(id));
    }
    let more = listing.count - listing.ids.len() as u64;
    if more > 0 {
        let _ = writeln!(lines, "  and {more} more");
    }
}
