//! What came of a verification, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::Subject;
use super::expected::Judgement;
use crate::batch::{BATCH_ID, COLUMNS};
use crate::cli::ReportFormat;
use crate::compare::{self, Comparison, Differences, Listing, Survey};
use crate::error::{Failure, Kind};
use crate::readers::Claim;
use crate::ui;

/// What a file was compared with.
pub(super) struct Other {
    /// For programs: `file`, `service` or `archive`.
    pub(super) kind: &'static str,
    pub(super) name: String,
    /// What was asked of it, for people.
    pub(super) detail: String,
    pub(super) batches: u64,
    pub(super) digest: String,
    /// More than once there.
    pub(super) repeated: Listing,
}

impl Other {
    fn in_full(&self) -> String {
        format!("{}{}", self.name, self.detail)
    }
}

pub(super) struct Report {
    /// In quotes.
    file: String,
    /// Columns that were compared.
    columns: Vec<usize>,
    batches: u64,
    digest: String,
    /// More than once in the file.
    repeated: Listing,
    /// What the file says of itself, where it has to stand for itself.
    pub(super) claim: Option<Claim>,
    pub(super) manifest: Option<Judgement>,
    pub(super) other: Option<Other>,
    differences: Option<Differences>,
}

impl Report {
    pub(super) fn new(file: &str, survey: &Survey, columns: u32) -> Self {
        Self {
            file: file.to_owned(),
            columns: compare::listed(columns),
            batches: survey.digest.count(),
            digest: survey.digest.finish(),
            repeated: survey.repeated.clone(),
            claim: None,
            manifest: None,
            other: None,
            differences: None,
        }
    }

    /// Tells which columns are compared, where one side has others.
    pub(super) fn tell_columns(&self, here: Option<u32>, name: &str, there: Option<u32>) {
        let compared = self.columns.iter().fold(0, |all, column| all | 1 << column);
        for (name, columns) in [(self.file.as_str(), here), (name, there)] {
            let left = compare::listed(columns.unwrap_or(compared) & !compared);
            if !left.is_empty() {
                ui::note(&format!(
                    "not compared, for only {name} has them: {}",
                    compare::briefly(&left)
                ));
            }
        }
    }

    /// Tells whether nothing is wrong.
    pub(super) fn is_equal(&self) -> bool {
        let other = self.other.as_ref();
        self.repeated.count == 0
            && self.keeps_its_word()
            && self.manifest.as_ref().is_none_or(|manifest| manifest.equal)
            && other.is_none_or(|other| other.digest == self.digest)
    }

    /// Tells whether the file holds what it says of itself.
    fn keeps_its_word(&self) -> bool {
        self.claim.as_ref().is_none_or(|claim| {
            claim.set_digest == self.digest
                && claim.batches.is_none_or(|batches| batches == self.batches)
        })
    }

    /// Finds out what is different between the file and what it was compared with.
    pub(super) fn find_differences(
        &mut self,
        comparison: Comparison,
        file: &mut Subject,
    ) -> Result<(), Failure> {
        if self.columns.contains(&BATCH_ID) {
            let layout = file.layout.as_deref();
            self.differences = Some(comparison.differences(&mut file.source, layout)?);
        }
        Ok(())
    }

    pub(super) fn shown(&self, format: ReportFormat) -> String {
        match format {
            ReportFormat::Json => self.json() + "\n",
            ReportFormat::Text if self.is_equal() => self.one_line(),
            ReportFormat::Text => self.lines(),
        }
    }

    /// Returns nothing where all is well; else what is wrong and what to do.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        if self.is_equal() {
            if let Some(manifest) = &self.manifest
                && manifest.same_bytes == Some(false)
            {
                ui::note(&format!(
                    "the batches are those of the manifest {}, the bytes are not: another format, packing or order",
                    manifest.name
                ));
            }
            if !self.columns.contains(&BATCH_ID) {
                ui::note("without `batch_id`, nobody can tell whether a batch is there twice");
            }
            return Ok(());
        }
        let file = &self.file;
        let failure = |message: String| Failure::new(Kind::Protocol, message);
        let differs = |other: &&Other| other.digest != self.digest;
        Err(
            match (&self.manifest, self.other.as_ref().filter(differs)) {
                _ if self.repeated.count > 0 => failure(format!(
                    "{file} holds {} more than once",
                    batches(self.repeated.count)
                ))
                .hint("every batch belongs there once: export it again"),
                _ if !self.keeps_its_word() => failure(format!(
                    "{file} is not what it says of itself: its set digest is another"
                ))
                .hint("it was altered since trayscan wrote it: export it again"),
                (Some(manifest), None) if !manifest.equal => self.blame(manifest),
                (Some(manifest), Some(other)) if !manifest.equal => failure(format!(
                    "{file} holds neither what the manifest {} says nor what {} has",
                    manifest.name, other.name
                ))
                .hint("the file was altered, or is not the one of the manifest"),
                (Some(manifest), Some(other)) => failure(format!(
                    "{file} is what the manifest {} says, and {} holds something else by now",
                    manifest.name, other.name
                ))
                .hint("batches were added, changed or removed since: export again to have them"),
                (None, Some(other)) => {
                    let failure = failure(format!(
                        "{file} and {} do not hold the same batches",
                        other.name
                    ));
                    match other.kind {
                    "service" | "archive" => failure.hint("were other dates, or `--where`, exported? its manifest knows: `--manifest`"),
                    _ if self.differences.is_none() => failure.hint("without `batch_id` in both, nobody can tell which"),
                    _ => failure.hint("`missing` is in the second only, `extra` in the first only, `changed` in both"),
                }
                }
                (_, None) => failure(format!("{file} is not equal")),
            },
        )
    }

    /// Says why a file is not what its manifest says.
    fn blame(&self, manifest: &Judgement) -> Failure {
        let file = &self.file;
        let fields = |what: &str, columns: &[usize]| {
            let why = format!("{what}: {}", compare::briefly(columns));
            (why, "was it exported with other `--fields`?")
        };
        let ids = "a manifest holds no ids; `--against` another export or `--service` tell which batches differ";
        let (why, hint) = match manifest.batches {
            _ if !manifest.more.is_empty() => fields("it has more fields", &manifest.more),
            _ if !manifest.fewer.is_empty() => fields("it lacks fields", &manifest.fewer),
            _ if manifest.same_bytes == Some(true) => (
                "it is the file, byte for byte, and its batches are not".to_owned(),
                "the manifest was altered",
            ),
            Some(count) if count != self.batches => {
                (format!("{} instead of {count}", batches(self.batches)), ids)
            }
            Some(_) => ("as many batches, and not the same".to_owned(), ids),
            None => (
                "other bytes, and it says nothing else of this file".to_owned(),
                ids,
            ),
        };
        let message = format!(
            "{file} is not what the manifest {} says: {why}",
            manifest.name
        );
        Failure::new(Kind::Protocol, message).hint(hint)
    }

    fn one_line(&self) -> String {
        let holds = self.holds(self.batches, &self.digest);
        let manifest = self
            .manifest
            .as_ref()
            .map(|manifest| format!("the manifest {}", manifest.name));
        let sides: Vec<String> = manifest
            .into_iter()
            .chain(self.other.as_ref().map(Other::in_full))
            .collect();
        let line = if sides.is_empty() {
            format!("{} holds {holds}", self.file)
        } else {
            format!("{} equals {}: {holds}", self.file, sides.join(" and "))
        };
        format!("{}\n", ui::one_line(&line))
    }

    fn holds(&self, count: u64, digest: &str) -> String {
        let fields = if self.columns.len() == COLUMNS.len() {
            String::new()
        } else {
            let all = COLUMNS.len();
            format!(" with {} of {all} fields", self.columns.len())
        };
        format!("{}{fields}, set digest {digest}", batches(count))
    }

    fn lines(&self) -> String {
        let mut lines = String::new();
        let mut line = |text: &str| {
            lines.push_str(&ui::one_line(text));
            lines.push('\n');
        };
        let file = &self.file;
        line(&format!(
            "{file}: {}",
            self.holds(self.batches, &self.digest)
        ));
        if let Some(claim) = &self.claim {
            let count = claim.batches.map_or_else(|| "batches".to_owned(), batches);
            line(&format!(
                "says of itself: {count}, set digest {}",
                claim.set_digest
            ));
        }
        if let Some(manifest) = &self.manifest {
            let count = manifest
                .batches
                .map_or_else(|| "batches".to_owned(), batches);
            let digest = manifest.digest.as_deref().unwrap_or("not told");
            line(&format!(
                "manifest {}: {count}, set digest {digest}",
                manifest.name
            ));
        }
        if let Some(other) = &self.other {
            line(&format!(
                "{}: {}",
                other.in_full(),
                self.holds(other.batches, &other.digest)
            ));
        }
        let name = self.other.as_ref().map_or("", |other| other.name.as_str());
        if let Some(found) = &self.differences {
            list(
                &mut lines,
                "missing",
                &found.missing,
                &format!("in {name} only"),
            );
            list(
                &mut lines,
                "extra",
                &found.extra,
                &format!("in {file} only"),
            );
            let changed = Listing {
                count: found.changed,
                ids: found.changes.iter().map(changed_line).collect(),
            };
            list(
                &mut lines,
                "changed",
                &changed,
                "in both, with other values",
            );
        }
        let twice = |name: &str| format!("in {name} more than once");
        list(&mut lines, "repeated", &self.repeated, &twice(file));
        if let Some(other) = &self.other {
            list(&mut lines, "repeated", &other.repeated, &twice(name));
        }
        lines
    }

    fn json(&self) -> String {
        let found = self.differences.as_ref();
        let bare = |name: &str| name.trim_matches('`').to_owned();
        let shape = Shape {
            equal: self.is_equal(),
            file: bare(&self.file),
            batches: self.batches,
            digest: &self.digest,
            fields: compare::names(&self.columns),
            repeated: &self.repeated,
            claim: self.claim.as_ref().map(|claim| ClaimShape {
                equal: self.keeps_its_word(),
                batches: claim.batches,
                digest: &claim.set_digest,
            }),
            manifest: self.manifest.as_ref().map(|manifest| ManifestShape {
                file: bare(&manifest.name),
                equal: manifest.equal,
                batches: manifest.batches,
                digest: manifest.digest.as_deref(),
                same_bytes: manifest.same_bytes,
            }),
            against: self.other.as_ref().map(|other| OtherShape {
                kind: other.kind,
                name: bare(&other.name),
                batches: other.batches,
                digest: &other.digest,
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
                    .map(|change| (&*change.id, compare::names(&change.columns)))
                    .collect(),
            }),
        };
        let json = serde_json::to_string(&shape).expect("a report is made of text and numbers");
        ui::escape_json(&json)
    }
}

/// The shape that scripts rely on: every key is always there.
#[derive(Serialize)]
struct Shape<'a> {
    equal: bool,
    file: String,
    batches: u64,
    digest: &'a str,
    fields: Vec<&'static str>,
    repeated: &'a Listing,
    claim: Option<ClaimShape<'a>>,
    manifest: Option<ManifestShape<'a>>,
    against: Option<OtherShape<'a>>,
    /// Null where they cannot be told, or nobody had to look for them.
    missing: Option<&'a Listing>,
    extra: Option<&'a Listing>,
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
    same_bytes: Option<bool>,
}

#[derive(Serialize)]
struct OtherShape<'a> {
    kind: &'static str,
    name: String,
    batches: u64,
    digest: &'a str,
    repeated: &'a Listing,
}

#[derive(Serialize)]
struct ChangedShape<'a> {
    count: u64,
    ids: Vec<&'a str>,
    fields: BTreeMap<&'a str, Vec<&'static str>>,
}

fn batches(count: u64) -> String {
    format!("{count} {}", if count == 1 { "batch" } else { "batches" })
}

fn changed_line(change: &compare::Change) -> String {
    format!(
        "{}: {}",
        ui::brief(&change.id),
        compare::names(&change.columns).join(", ")
    )
}

/// Adds a list, where there is anything in it.
fn list(lines: &mut String, title: &str, listing: &Listing, meaning: &str) {
    if listing.count == 0 {
        return;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(
        lines,
        "{title}: {} {}",
        batches(listing.count),
        ui::one_line(meaning)
    );
    for id in &listing.ids {
        let _ = writeln!(lines, "  {}", ui::one_line(id));
    }
    let more = listing.count - listing.ids.len() as u64;
    if more > 0 {
        let _ = writeln!(lines, "  and {more} more");
    }
}
