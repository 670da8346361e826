//! Fetches the batches again, from the service or an archive, and compares them with a file.

use std::path::Path;

use super::expected::Expected;
use super::report::{ComparedSide, VerifyReport};
use super::subject::{Subject, warn_of_oddities};
use crate::archive::{Archive, Owner};
use crate::batch::date::Clock;
use crate::batch::digest::SetDigest;
use crate::batch::range::Range;
use crate::batch::{BATCH_ID, Batch, Representation};
use crate::cli::VerifyArgs;
use crate::client::BaseUrl;
use crate::commands::batches;
use crate::commands::context::Context;
use crate::commands::messages::count;
use crate::commands::source::BatchSource;
use crate::error::Failure;
use crate::fetch::PageOrder;
use crate::pipeline::{Selection, Sink};
use crate::terminal::{self, When};
use crate::verify::{Comparison, Scope};

/// Returns the start of an archive; `None` if the file is not an archive.
fn archive_start(path: &Path) -> Option<i64> {
    let archive = Archive::read(path).ok()?;
    archive.since().ok()?.second()
}

fn is_loopback(url: &str) -> bool {
    BaseUrl::parse(url, true).is_ok_and(|url| url.is_loopback())
}

/// What to fetch, and from where.
pub(super) struct Refetch {
    source: BatchSource,
    range: Range,
    progress: When,
}

impl Refetch {
    pub(super) fn new(
        context: &Context,
        args: &VerifyArgs,
        expected: Option<&Expected>,
        file: &Subject,
    ) -> anyhow::Result<Self> {
        let mut range = match expected {
            Some(expected) => expected.range,
            None => batches::range(
                &args.range,
                &Clock::new(context.settings()?.time_zone.value.clone()),
            )?,
        };
        if expected.is_none() && range.start.is_none() {
            range.start = archive_start(&args.file);
        }
        if let Some(expected) = expected
            && let files @ 2.. = expected.manifest.files.len()
            && file.source.lake().is_none()
        {
            let name = expected.name();
            return Err(Failure::usage(
                format!("the manifest {name} lists {files} files, and this is only one of them"),
                "verify the folder of these files, or this file with the manifest alone",
            )
            .into());
        }
        let source = BatchSource::open(context, args.archive.as_deref())?;
        let base_url = source.base_url();
        if let Some(expected) = expected
            && let Some(then) = &expected.manifest.request.base_url
            && let Some(now) = base_url.filter(|now| now != then && !args.source.sandbox)
            // A sandbox has another port each time.
            && !(now == Owner::SANDBOX && is_loopback(then))
        {
            terminal::note(&format!(
                "the manifest is from {then}, but the comparison is with {now}"
            ));
        }
        Ok(Self {
            source,
            range,
            progress: args.progress,
        })
    }

    /// Reads the file, then fetches and compares.
    pub(super) async fn compare(
        self,
        file: &mut Subject,
        expected: Option<&Expected>,
    ) -> anyhow::Result<VerifyReport> {
        let expected_scope = expected.map_or_else(|| file.first_scope(), Expected::scope);
        let mut scope = Scope {
            columns: file.fields.unwrap_or(expected_scope.columns),
            unknown_fields: file.fields.is_none() && expected_scope.unknown_fields,
            ..expected_scope
        };
        let (scan, ledger) = file.index(scope, false)?;
        warn_of_oddities(file.source.name(), &scan);
        let lenient = expected.is_some_and(Expected::lenient);
        scan.info.check_types(file.source.name(), lenient)?;
        scope.unknown_fields &= scan.info.keeps_unknown_fields;
        let mut report = VerifyReport::new(file, &scan, scope);
        // The manifest has no digest of some fields only.
        if let Some(expected) = expected.filter(|_| file.fields.is_none()) {
            report.manifest = Some(expected.compare(file, &scan, &scope)?);
        }
        let mut sink = ComparingSink {
            digest: scope.digest(),
            comparison: Comparison::new(ledger, scope),
            has_ids: scope.columns & (1 << BATCH_ID) != 0,
            representation: expected.map_or(Representation::Json, Expected::representation),
        };
        let version = self.fetch(expected, &mut sink).await?;
        let kind = self.source.archive().map_or("service", |_| "archive");
        let detail = format!(" ({}{version})", self.range.describe());
        let batches = sink.digest.count();
        report.compare_unknown_fields(&sink.digest, true);
        let name = self.source.name();
        report.other = Some(ComparedSide::source(kind, name, detail, &sink.digest));
        if scan.has_ids() {
            report.add_comparison(sink.comparison, file)?;
        }
        // What SQL queries see of an archive must be true as well.
        if let Some(archive) = self.source.archive().filter(|_| report.is_equal()) {
            archive.check()?;
        }
        if let Some(incomplete) = self.source.incomplete(&self.range)? {
            log::warn!("{incomplete}");
        }
        let requests = match self.source.stats.requests.get() {
            0 => String::new(),
            requests => format!(" ({})", count(requests, "request", "requests")),
        };
        report.conclusion = Some(format!(
            "compared with {} of {}{requests}",
            count(batches, "batch", "batches"),
            self.source.name(),
        ));
        Ok(report)
    }

    /// Fetches all batches into `sink`; returns the API version for the message.
    async fn fetch(
        &self,
        expected: Option<&Expected>,
        sink: &mut ComparingSink,
    ) -> anyhow::Result<String> {
        let source = &self.source;
        let limit = expected.and_then(|expected| expected.manifest.request.limit);
        let selection = Selection {
            conditions: expected.map_or_else(Vec::new, |expected| expected.conditions.clone()),
            sorting: expected.and_then(|expected| expected.sorting.clone()),
            limit,
            ..Selection::new(&self.range)
        };
        log::info!("requesting {} from {}", self.range.asked(), source.name());
        // As in the export: with a limit, the order decides which batches arrive.
        let order = PageOrder::for_export(selection.sorting.is_some(), limit.is_some());
        let lenient = expected.is_some_and(Expected::lenient);
        let mut pages = source.pages(self.range, order, lenient)?;
        let ran = source.run(&mut pages, sink, &selection, self.progress, false);
        let counts = ran.await.map_err(|failure| {
            let error = anyhow::Error::new(failure);
            match source.stats.pages.get() {
                0 => error,
                pages => {
                    let pages = count(pages, "page", "pages");
                    error.context(format!("the comparison stopped after {pages}"))
                }
            }
        })?;
        if counts.conflicts > 0 {
            log::warn!(
                "{} arrived again with different content; the first version counts",
                count(counts.conflicts, "batch", "batches")
            );
        }
        Ok(pages
            .version()
            .map_or_else(String::new, |version| format!(", {version}")))
    }
}

/// Compares fetched batches with the file.
struct ComparingSink {
    digest: SetDigest,
    comparison: Comparison,
    has_ids: bool,
    /// What the format of the file keeps of a batch.
    representation: Representation,
}

impl Sink for ComparingSink {
    fn take(&mut self, batch: &Batch) -> Result<(), Failure> {
        self.representation.of(batch, |values| {
            let hash = self.digest.add(values);
            if self.has_ids {
                self.comparison.compare(values, &batch.id(), hash);
            }
        });
        Ok(())
    }
}
