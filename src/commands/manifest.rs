//! The receipt of an export, put together from what it asked for and what came of it.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};

use super::export::ExportRequest;
use super::lake;
use super::source::{BatchPages, BatchSource};
use crate::batch::COLUMNS;
use crate::batch::digest::{self, SetDigest};
use crate::batch::range::written;
use crate::cli::ExportArgs;
use crate::error::Failure;
use crate::export::manifest::{LakeState, Manifest, ManifestFile, ManifestRequest, ManifestWindow};
use crate::export::{Share, WrittenFile};
use crate::fetch::FetchedWindow;
use crate::pipeline::Counts;

/// Everything that a receipt tells of.
pub(super) struct ManifestInputs<'a> {
    pub(super) args: &'a ExportArgs,
    pub(super) wanted: &'a ExportRequest,
    pub(super) source: &'a BatchSource,
    pub(super) pages: &'a BatchPages<'a>,
    pub(super) tally: &'a Counts,
    pub(super) written: &'a [WrittenFile],
    /// Files of a lake that stayed as they were.
    pub(super) kept: Vec<ManifestFile>,
    /// What crops are called in the names of files, if they are a part of them.
    pub(super) crop_names: Option<BTreeMap<String, String>>,
    pub(super) digest: &'a SetDigest,
    pub(super) warnings: Vec<String>,
    /// Nothing is known to be lacking.
    pub(super) complete: bool,
    pub(super) started: DateTime<Utc>,
}

impl ManifestInputs<'_> {
    pub(super) fn manifest(mut self) -> Result<Manifest, Failure> {
        let moment = |moment: DateTime<Utc>| moment.to_rfc3339_opts(SecondsFormat::Millis, true);
        let stats = &self.source.stats;
        let lake = self.lake()?;
        let mut files = std::mem::take(&mut self.kept);
        files.extend(self.written.iter().map(|written| self.file(written)));
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Manifest {
            trayscan: env!("CARGO_PKG_VERSION").to_owned(),
            complete: self.complete,
            request: self.request(),
            version: self.pages.version().map(|version| version.to_string()),
            windows: self.pages.fetched().iter().map(window).collect(),
            batches: self.digest.count(),
            duplicates_dropped: self.tally.duplicates,
            conflicts_dropped: self.tally.conflicts,
            requests: stats.requests.get(),
            retries: stats.retries.get(),
            token_renewals: stats.renewals.get(),
            started: moment(self.started),
            ended: moment(Utc::now()),
            files,
            warnings: self.warnings,
            digest_version: digest::VERSION,
            set_digest: self.digest.finish(),
            unknown_fields_digest: self.digest.finish_unknown(),
            lake,
        })
    }

    /// Returns what `--only-changed` continues from; `None` if it cannot.
    fn lake(&self) -> Result<Option<LakeState>, Failure> {
        let template = self.wanted.destination.template.as_ref();
        let (Some(template), Some(archive), None, Some(digest)) = (
            template,
            self.source.archive(),
            self.args.limit,
            self.digest.state(),
        ) else {
            return Ok(None);
        };
        Ok(Some(LakeState {
            template: template.text(),
            options: lake::options(&self.args.output),
            archive: archive.position()?,
            digest,
            crop_names: self.crop_names.clone(),
        }))
    }

    fn request(&self) -> ManifestRequest {
        let Self { args, wanted, .. } = self;
        ManifestRequest {
            base_url: self.source.base_url(),
            archive: self
                .args
                .source
                .archive
                .as_ref()
                .map(|path| path.display().to_string()),
            start: wanted.range.start.map(written),
            end: wanted.range.end.map(written),
            excludes_end: wanted.range.excludes_end,
            fields: wanted
                .fields
                .columns
                .iter()
                .map(|&column| COLUMNS[column].name.to_owned())
                .collect(),
            conditions: args.selection.conditions.clone(),
            sort: args.sort.clone(),
            limit: args.limit,
            lenient: args.selection.lenient,
        }
    }

    fn file(&self, written: &WrittenFile) -> ManifestFile {
        // The only one has all of it.
        let share = written.share.clone().unwrap_or_else(|| Share {
            batches: self.tally.written,
            set_digest: self.digest.finish(),
            unknown_fields_digest: self.digest.finish_unknown(),
        });
        let published = Some(&written.published).filter(|all| !all.sha256.is_empty());
        ManifestFile {
            path: written.place.address(),
            format: self.wanted.destination.format.name().to_owned(),
            bytes: published.map(|published| published.bytes),
            sha256: published.map(|published| published.sha256.clone()),
            batches: Some(share.batches),
            set_digest: Some(share.set_digest),
            unknown_fields_digest: share.unknown_fields_digest,
        }
    }
}

fn window(fetched: &FetchedWindow) -> ManifestWindow {
    ManifestWindow {
        start: fetched.window.start.map(written),
        end: fetched.window.end.map(written),
        pages: fetched.pages,
        batches: fetched.batches,
    }
}
