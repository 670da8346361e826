//! Builds the manifest of an export from its request and its result.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};

use super::lake;
use super::request::ExportRequest;
use crate::batch::COLUMNS;
use crate::batch::digest::{self, SetDigest};
use crate::batch::range::written;
use crate::cli::ExportArgs;
use crate::commands::batches::Received;
use crate::commands::source::BatchSource;
use crate::error::Failure;
use crate::export::manifest::{LakeState, Manifest, ManifestFile, ManifestRequest, ManifestWindow};
use crate::fetch::FetchedWindow;

/// Everything that goes into a manifest.
pub(super) struct ManifestInputs<'a> {
    pub(super) args: &'a ExportArgs,
    pub(super) request: &'a ExportRequest,
    pub(super) source: &'a BatchSource,
    pub(super) received: &'a Received<'a>,
    pub(super) written: &'a [ManifestFile],
    /// Files of a lake that were not rewritten.
    pub(super) kept: Vec<ManifestFile>,
    /// The names of crops in file names, if file names contain them.
    pub(super) crop_names: Option<BTreeMap<String, String>>,
    pub(super) digest: &'a SetDigest,
    pub(super) warnings: Vec<String>,
    /// Whether nothing is known to be missing.
    pub(super) complete: bool,
}

impl ManifestInputs<'_> {
    pub(super) fn manifest(mut self) -> Result<Manifest, Failure> {
        let timestamp = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Millis, true);
        let (stats, pages) = (&self.source.stats, &self.received.pages);
        let lake = self.lake()?;
        let mut files = std::mem::take(&mut self.kept);
        files.extend(self.written.iter().map(|written| self.file(written)));
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Manifest {
            trayscan: env!("CARGO_PKG_VERSION").to_owned(),
            complete: self.complete,
            request: self.request()?,
            version: pages.version().map(|version| version.to_string()),
            windows: pages.fetched().iter().map(window).collect(),
            batches: self.digest.count(),
            duplicates_dropped: self.received.counts.duplicates,
            conflicts_dropped: self.received.counts.conflicts,
            requests: stats.requests.get(),
            retries: stats.retries.get(),
            token_renewals: stats.renewals.get(),
            started: timestamp(self.request.batches.now),
            ended: timestamp(Utc::now()),
            files,
            warnings: self.warnings,
            digest_version: digest::VERSION,
            set_digest: self.digest.finish(),
            unknown_fields_digest: self.digest.finish_unknown(),
            lake,
        })
    }

    /// Returns the state that the next `--only-changed` starts from; `None` if it cannot.
    fn lake(&self) -> Result<Option<LakeState>, Failure> {
        let template = self.request.destination.template.as_ref();
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
            options: lake::format_flags(&self.args.output, self.request),
            archive: archive.position()?,
            has_open_end: self.request.batches.range.end.is_none(),
            digest,
            crop_names: self.crop_names.clone(),
        }))
    }

    fn request(&self) -> Result<ManifestRequest, Failure> {
        let Self { args, request, .. } = self;
        let range = self.source.complete_range(&request.batches.range)?;
        let archive = args.source.archive.as_ref();
        let fields = request.fields.columns.iter();
        Ok(ManifestRequest {
            base_url: self.source.base_url(),
            archive: archive.map(|path| path.display().to_string()),
            start: range.start.map(written),
            end: range.end.map(written),
            excludes_end: range.excludes_end,
            time_zone: request.batches.zone.name().to_owned(),
            fields: fields
                .map(|&column| COLUMNS[column].name.to_owned())
                .collect(),
            conditions: args.selection.conditions.clone(),
            sort: args.sort.clone(),
            limit: args.limit,
            lenient: args.selection.lenient,
        })
    }

    fn file(&self, written: &ManifestFile) -> ManifestFile {
        let format = self.request.destination.format.name().to_owned();
        let mut file = ManifestFile {
            format,
            ..written.clone()
        };
        // A single file has all batches.
        if file.batches.is_none() {
            file.batches = Some(self.received.counts.written);
            file.set_digest = Some(self.digest.finish());
            file.unknown_fields_digest = self.digest.finish_unknown();
        }
        file
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
