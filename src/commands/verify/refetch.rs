//! The service, or an archive in its place, asked again for what a file should hold.

use std::path::Path;
use std::time::Instant;

use chrono::Utc;

use super::expected::Expected;
use super::report::{OtherSide, VerifyReport};
use super::{Subject, tell_remarks};
use crate::archive::Archive;
use crate::batch::digest::SetDigest;
use crate::batch::range::Range;
use crate::batch::{BATCH_ID, Batch, Representation};
use crate::cli::VerifyArgs;
use crate::commands::source::BatchSource;
use crate::error::{Failure, Kind};
use crate::fetch::PageOrder;
use crate::pipeline::{self, Selection, Sink};
use crate::terminal::ProgressMode;
use crate::terminal::{self, ProgressLine};
use crate::verify::{Comparison, Scope};

/// Returns where an archive begins; nothing where the file is none.
fn beginning(path: &Path) -> Option<i64> {
    let archive = Archive::read(path).ok()?;
    archive.since().ok()?.second()
}

/// What is asked for, and of whom.
pub(super) struct Refetch {
    source: BatchSource,
    /// It is an archive, and no service.
    is_archive: bool,
    range: Range,
    progress: ProgressMode,
}

impl Refetch {
    pub(super) fn new(
        from_environment: &[String],
        args: &VerifyArgs,
        expected: Option<&Expected>,
        file: &Subject,
    ) -> anyhow::Result<Self> {
        let mut range = match expected {
            Some(expected) => expected.range,
            None => Range::parse(
                args.range.start.as_deref(),
                args.range.end.as_deref(),
                Utc::now(),
            )?,
        };
        if expected.is_none() && args.range.start.is_none() {
            range.start = beginning(&args.file);
        }
        if let Some(expected) = expected
            && expected.files() > 1
            && file.source.lake().is_none()
        {
            return Err(Failure::new(
                Kind::Usage,
                format!(
                    "the manifest {} is of {} files, and one of them holds only a part of what the service has",
                    expected.name(),
                    expected.files()
                ),
            )
            .hint("verify the folder of these files, or each file with the manifest alone")
            .into());
        }
        let source = BatchSource::choose(args.archive.as_deref(), &args.source, from_environment)?;
        let base_url = source.base_url();
        if let Some(then) = expected.and_then(Expected::base_url)
            && let Some(now) = base_url.filter(|now| now != then && !args.source.sandbox)
        {
            terminal::note(&format!("the manifest is of {then}, and this is of {now}"));
        }
        Ok(Self {
            source,
            is_archive: args.archive.is_some(),
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
        let started = Instant::now();
        let asked = expected.map_or_else(|| file.first_scope(), Expected::scope);
        let mut scope = Scope {
            columns: file.fields.unwrap_or(asked.columns),
            unknown_fields: file.fields.is_none() && asked.unknown_fields,
            ..asked
        };
        let (scan, ledger) = file.index(&scope)?;
        tell_remarks(file.source.name(), &scan);
        let lenient = expected.is_some_and(Expected::lenient);
        scan.remarks.check_types(file.source.name(), lenient)?;
        scope.unknown_fields &= scan.remarks.keeps_unknown_fields;
        let mut report = VerifyReport::new(file, &scan, scope);
        match expected {
            // A digest over certain fields alone is not in the manifest.
            Some(expected) if file.fields.is_none() => {
                report.manifest = Some(expected.judge(file, &scan, &scope)?);
            }
            _ => {}
        }
        let mut holding = Holding {
            digest: scope.digest(),
            comparison: Comparison::new(ledger, scope),
            has_ids: scope.columns & (1 << BATCH_ID) != 0,
            kept: expected.map_or(Representation::Json, Expected::representation),
        };
        let version = self.fetch(expected, &mut holding).await?;
        let kind = if self.is_archive {
            "archive"
        } else {
            "service"
        };
        let detail = format!(" ({}{version})", self.range.describe());
        let count = holding.digest.count();
        report.compare_unknown_fields(&holding.digest, true);
        report.other = Some(OtherSide::source(
            kind,
            self.source.name(),
            detail,
            &holding.digest,
        ));
        if scan.has_ids() {
            report.settle(holding.comparison, file)?;
        }
        if let Some(incomplete) = self.source.incomplete(&self.range)? {
            log::warn!("{incomplete}");
        }
        let requests = match self.source.stats.requests.get() {
            0 => String::new(),
            1 => " (1 request)".to_owned(),
            many => format!(" ({many} requests)"),
        };
        terminal::conclude(&format!(
            "compared with {count} {} of {}{requests} in {:.1} s",
            if count == 1 { "batch" } else { "batches" },
            self.source.name(),
            started.elapsed().as_secs_f64(),
        ));
        Ok(report)
    }

    /// Takes everything that is wanted to `holding`; returns the version that was used, for people.
    async fn fetch(
        &self,
        expected: Option<&Expected>,
        holding: &mut Holding,
    ) -> anyhow::Result<String> {
        let source = &self.source;
        let sorting = expected.and_then(|expected| expected.sorting);
        let limit = expected.and_then(Expected::limit);
        let plan = Selection {
            conditions: expected.map_or_else(Vec::new, |expected| expected.conditions.clone()),
            sorting,
            limit,
            ..Selection::new(&self.range)
        };
        log::info!("asking {} for {}", source.name(), self.range.asked());
        let progress = ProgressLine::start(self.progress, false, &source.stats);
        // As when it was exported: with a limit, which batches come depends on how.
        let order = PageOrder::of_export(sorting.is_some(), limit.is_some());
        let lenient = expected.is_some_and(Expected::lenient);
        let mut pages = source.batches(self.range, order, lenient)?;
        let ran = pipeline::run(&mut pages, holding, &plan, &source.stats).await;
        drop(progress);
        let tally = ran.map_err(|failure| {
            let pages = source.stats.pages.get();
            let error = anyhow::Error::new(failure);
            if pages == 0 {
                return error;
            }
            error.context(format!("the comparison stopped after {pages} pages"))
        })?;
        if tally.conflicts > 0 {
            log::warn!(
                "{} batches came again with other content; the first counts",
                tally.conflicts
            );
        }
        Ok(pages
            .version()
            .map_or_else(String::new, |version| format!(", {version}")))
    }
}

/// Compares what comes with the file.
struct Holding {
    digest: SetDigest,
    comparison: Comparison,
    has_ids: bool,
    /// What the format of the file keeps of a batch.
    kept: Representation,
}

impl Sink for Holding {
    fn take(&mut self, batch: &Batch) -> Result<(), Failure> {
        self.kept.of(batch, |values| {
            let hash = self.digest.add(values);
            if self.has_ids {
                self.comparison.compare(values, &batch.id(), hash);
            }
        });
        Ok(())
    }
}
