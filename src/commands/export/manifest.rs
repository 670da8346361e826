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
use crate::terminal;

/// Returns the manifest of an export to `files`, with the warnings of the run so far. `crop_names` are the names of crops in file names,
/// if these contain them.
pub(super) fn manifest(
    args: &ExportArgs,
    request: &ExportRequest,
    source: &BatchSource,
    received: &Received<'_>,
    mut files: Vec<ManifestFile>,
    crop_names: Option<BTreeMap<String, String>>,
    digest: &SetDigest,
) -> Result<Manifest, Failure> {
    let timestamp = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Millis, true);
    let (stats, pages) = (&source.stats, &received.pages);
    for file in &mut files {
        request
            .destination
            .format
            .name()
            .clone_into(&mut file.format);
        // A single file has all batches.
        if file.batches.is_none() {
            file.batches = Some(received.counts.written);
            file.set_digest = Some(digest.finish());
            file.unknown_fields_digest = digest.finish_unknown();
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let windows = pages.fetched().into_iter().map(|fetched| ManifestWindow {
        start: fetched.window.start.map(written),
        end: fetched.window.end.map(written),
        pages: fetched.pages,
        batches: fetched.batches,
    });
    let range = source.complete_range(&request.batches.range)?;
    let archive = args.source.archive.as_ref();
    let fields = request.fields.columns.iter();
    Ok(Manifest {
        trayscan: env!("CARGO_PKG_VERSION").to_owned(),
        complete: received.incomplete.is_none(),
        request: ManifestRequest {
            base_url: source.base_url(),
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
        },
        version: pages.version().map(|version| version.to_string()),
        windows: windows.collect(),
        batches: digest.count(),
        duplicates_dropped: received.counts.duplicates,
        conflicts_dropped: received.counts.conflicts,
        requests: stats.requests.get(),
        retries: stats.retries.get(),
        token_renewals: stats.renewals.get(),
        started: timestamp(request.batches.now),
        ended: timestamp(Utc::now()),
        files,
        warnings: terminal::warnings(),
        digest_version: digest::VERSION,
        set_digest: digest.finish(),
        unknown_fields_digest: digest.finish_unknown(),
        lake: lake_state(args, request, source, crop_names, digest)?,
    })
}

/// Returns the state that the next `--only-changed` starts from; `None` if it cannot.
fn lake_state(
    args: &ExportArgs,
    request: &ExportRequest,
    source: &BatchSource,
    crop_names: Option<BTreeMap<String, String>>,
    digest: &SetDigest,
) -> Result<Option<LakeState>, Failure> {
    let template = request.destination.template.as_ref();
    let (Some(template), Some(archive), None, Some(digest)) =
        (template, source.archive(), args.limit, digest.state())
    else {
        return Ok(None);
    };
    Ok(Some(LakeState {
        template: template.text(),
        options: lake::format_flags(&args.output, request),
        archive: archive.position()?,
        has_open_end: request.batches.range.end.is_none(),
        digest,
        crop_names,
    }))
}
