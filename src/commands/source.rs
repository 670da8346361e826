//! Where a command reads batches from: the service, a sandbox that runs as long as the command, or an archive.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use chrono::Utc;
use tokio::sync::oneshot;

use super::context::Context;
use crate::archive::{Archive, ArchivePages};
use crate::batch::Page;
use crate::batch::range::{LAST_SECOND, Range, written};
use crate::client::{Api, BaseUrl, ClientOptions, Credentials, Service, Version};
use crate::error::Failure;
use crate::fetch::{DataIssues, FetchOptions, FetchedWindow, PageOrder, Pages};
use crate::pipeline::{self, Counts, PageSource, Selection, Sink};
use crate::secret::Secret;
use crate::server::faults::Faults;
use crate::server::{self, ExpectedCredentials, ServerOptions};
use crate::terminal::{ProgressLine, Stats, When};
use crate::text;

const DAY: i64 = 86_400;

/// The service or the archive to read batches from.
pub(super) struct BatchSource {
    origin: BatchOrigin,
    pub(super) stats: Arc<Stats>,
}

enum BatchOrigin {
    Service(Box<ServiceSource>),
    Archive(Archive),
}

impl BatchSource {
    /// Opens `archive` if given, or the service. Call it on the runtime that the sandbox will run on.
    pub(super) fn open(context: &Context, archive: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(path) = archive {
            // An archive needs no settings, but mistakes in the config file are reported all the same.
            context.settings()?;
            warn_ignored(context, "--archive");
            return Ok(Self {
                origin: BatchOrigin::Archive(Archive::read_source(path)?),
                stats: Arc::default(),
            });
        }
        let service = ServiceSource::open(context)?;
        Ok(Self {
            stats: service.service.stats().clone(),
            origin: BatchOrigin::Service(Box::new(service)),
        })
    }

    /// Returns the name of the service that [`BatchSource::open`] would open, with the choice of API versions. Fails and
    /// warns as that does, but starts no sandbox.
    pub(super) fn check_service(context: &Context) -> anyhow::Result<(String, Option<Api>)> {
        let settings = context.settings()?;
        let options = settings.client_options()?;
        if context.service.sandbox {
            warn_ignored(context, "--sandbox");
            return Ok(("the sandbox".to_owned(), Some(options.api)));
        }
        let credentials = settings.credentials(&options)?;
        let name = credentials.base_url.to_string();
        Service::new(credentials, &options)?;
        Ok((name, Some(options.api)))
    }

    /// Returns the URL of the service, or the path of the archive in quotes.
    pub(super) fn name(&self) -> String {
        match &self.origin {
            BatchOrigin::Service(source) => source.service.credentials.base_url.to_string(),
            BatchOrigin::Archive(archive) => format!("`{}`", archive.path().display()),
        }
    }

    /// Returns the URL of the service that the batches are from, also for an archive.
    pub(super) fn base_url(&self) -> Option<String> {
        match &self.origin {
            BatchOrigin::Service(source) => Some(source.service.credentials.base_url.to_string()),
            BatchOrigin::Archive(archive) => Some(archive.owner().ok()??.base_url),
        }
    }

    /// Prepares to read the batches of `range`.
    pub(super) fn pages(
        &self,
        range: Range,
        order: PageOrder,
        lenient: bool,
    ) -> Result<BatchPages<'_>, Failure> {
        Ok(match &self.origin {
            BatchOrigin::Service(source) => {
                let options = FetchOptions {
                    order,
                    lenient,
                    ..source.fetch_options()
                };
                BatchPages::Service(Box::new(source.pages(options, range)))
            }
            BatchOrigin::Archive(archive) => {
                BatchPages::Archive(Box::new(archive.pages(range, lenient)?))
            }
        })
    }

    /// Passes the batches of `pages` to `sink`, and shows the progress.
    pub(super) async fn run(
        &self,
        pages: &mut BatchPages<'_>,
        sink: &mut dyn Sink,
        selection: &Selection,
        progress: When,
        data_on_terminal: bool,
    ) -> Result<Counts, Failure> {
        let _progress = ProgressLine::start(progress, data_on_terminal, &self.stats);
        pipeline::run(pages, sink, selection, &self.stats).await
    }

    /// Returns the archive, if that is the source.
    pub(super) fn archive(&self) -> Option<&Archive> {
        match &self.origin {
            BatchOrigin::Service(_) => None,
            BatchOrigin::Archive(archive) => Some(archive),
        }
    }

    /// Says which part of `range` an archive may be missing; `None` if it is complete or the source is a service.
    pub(super) fn incomplete(&self, range: &Range) -> Result<Option<String>, Failure> {
        let Some(archive) = self.archive() else {
            return Ok(None);
        };
        let (coverage, since) = (archive.coverage()?, self.since()?);
        let now = Utc::now().timestamp();
        // An archive that begins in the future has everything up to now.
        let nothing = since.filter(|since| *since > now).map(|_| now);
        let Some(end) = coverage.end().or(nothing) else {
            let why = "the archive is not complete: no run of `trayscan sync` has finished yet";
            return Ok(Some(why.to_owned()));
        };
        // Without an end, the archive must have everything up to the end of its last run. The future cannot be
        // missing, and an archive that is updated every day has the rest.
        let end_needed = match range.end {
            Some(end) if end <= now => end,
            Some(_) if now - end > DAY => now,
            None if now - end > DAY && !archive.has_finished()? => now,
            _ if range.start > Some(end) => now,
            _ => end,
        };
        let start = self.limited(range)?.start;
        let needed = Range::between(start, Some(end_needed));
        let missing = text::join(coverage.missing(&needed).iter().map(describe_gap), ", ");
        let flag = match start {
            Some(start) if Some(start) < since => format!(" --start {}", written(start)),
            None if since.is_some() => " --start DATE".to_owned(),
            _ => String::new(),
        };
        let path = shell_path(archive);
        Ok((!missing.is_empty()).then(|| {
            format!(
                "the archive is not known to be complete: {missing}; `trayscan sync {path}{flag}` fetches the rest, or says why it cannot"
            )
        }))
    }

    /// Says up to when an archive is complete, if `range` has no end and that is more than a day ago.
    pub(super) fn outdated(&self, range: &Range) -> Result<Option<String>, Failure> {
        let (Some(archive), None) = (self.archive(), range.end) else {
            return Ok(None);
        };
        let end = archive.coverage()?.end();
        let end = end.filter(|end| Utc::now().timestamp() - end > DAY);
        Ok(end.map(|end| {
            format!(
                "the archive is complete up to {} only; `trayscan sync {}` brings it up to date",
                written(end),
                shell_path(archive)
            )
        }))
    }

    /// Returns the first second of an archive that `sync --start` began.
    fn since(&self) -> Result<Option<i64>, Failure> {
        let archive = self.archive();
        archive.map_or(Ok(None), |archive| Ok(archive.since()?.second()))
    }

    /// Returns `range`; an archive that `sync --start` began has nothing before its own start.
    pub(super) fn limited(&self, range: &Range) -> Result<Range, Failure> {
        // A range that ends before that stays as it is.
        let since = self.since()?;
        let since = since.filter(|since| range.end.is_none_or(|end| *since < end));
        let start = range.start.or(since);
        Ok(Range { start, ..*range })
    }

    /// Returns `range` for a manifest: without an end, that of an archive ends where the archive is complete.
    pub(super) fn complete_range(&self, range: &Range) -> Result<Range, Failure> {
        let limited = self.limited(range)?;
        let (Some(archive), None) = (self.archive(), range.end) else {
            return Ok(limited);
        };
        let end = archive.coverage()?.end();
        let Some(end) = end.filter(|end| limited.start <= Some(*end)) else {
            return Ok(limited);
        };
        // Batches that were created during the last run of `sync` may be there, too, or have a date in the future.
        let newest = archive.newest_second()?;
        Ok(match newest.filter(|newest| *newest >= end) {
            Some(LAST_SECOND) => limited,
            Some(newest) => Range {
                end: Some(newest + 1),
                excludes_end: true,
                ..limited
            },
            None => Range {
                end: Some(end),
                ..limited
            },
        })
    }

    /// Returns the second, at most `now`, up to which no batch since `start` is missing; `None` if the first may be.
    pub(super) fn complete_until(
        &self,
        start: Option<i64>,
        now: i64,
    ) -> Result<Option<i64>, Failure> {
        let Some(archive) = self.archive() else {
            return Ok(Some(now));
        };
        // What is before an archive that `sync --start` began was never wanted.
        let start = start.max(self.since()?);
        let missing = archive.coverage()?.missing(&Range::between(start, None));
        let until = missing.first().map_or(Some(now), |gap| gap.start);
        Ok(until.min(Some(now)))
    }

    /// Returns the range in which an archive is known to have all batches; all dates for a service.
    pub(super) fn available_range(&self) -> Result<Range, Failure> {
        let Some(archive) = self.archive() else {
            return Ok(Range::default());
        };
        Ok(Range::between(self.since()?, archive.coverage()?.end()))
    }
}

/// Returns the path of an archive as a shell reads it.
fn shell_path(archive: &Archive) -> String {
    let path = archive.path().to_string_lossy();
    text::for_shell(&text::one_line(&path)).into_owned()
}

fn describe_gap(range: &Range) -> String {
    let [start, end] = [range.start, range.end].map(|second| second.map(written));
    let start = start.as_deref().unwrap_or("the beginning");
    format!("{start} through {}", end.as_deref().unwrap_or("now"))
}

/// The pages of a source.
pub(super) enum BatchPages<'a> {
    Service(Box<Pages>),
    Archive(Box<ArchivePages<'a>>),
}

impl PageSource for BatchPages<'_> {
    async fn next(&mut self) -> Result<Option<Page>, Failure> {
        match self {
            Self::Service(pages) => pages.next().await,
            Self::Archive(pages) => pages.next(),
        }
    }

    fn recycle(&mut self, page: Page) {
        if let Self::Service(pages) = self {
            pages.recycle(page);
        }
    }

    fn refetched(&self) -> u64 {
        match self {
            Self::Service(pages) => pages.refetched,
            Self::Archive(_) => 0,
        }
    }
}

impl BatchPages<'_> {
    /// Returns the API version in use; `None` for an archive, or if not known yet.
    pub(super) fn version(&self) -> Option<Version> {
        match self {
            Self::Service(pages) => pages.version,
            Self::Archive(_) => None,
        }
    }

    /// Returns the windows that were fetched.
    pub(super) fn fetched(&self) -> Vec<FetchedWindow> {
        match self {
            Self::Service(pages) => pages.fetched(),
            Self::Archive(_) => Vec::new(),
        }
    }

    /// Returns what was wrong with the batches.
    pub(super) fn findings(&self) -> DataIssues {
        match self {
            Self::Service(pages) => pages.issues(),
            Self::Archive(pages) => pages.findings(),
        }
    }
}

/// A service and how to send requests to it.
pub(super) struct ServiceSource {
    pub(super) service: Arc<Service>,
    pub(super) options: ClientOptions,
    /// Stops the sandbox when dropped.
    _sandbox: Option<oneshot::Sender<()>>,
}

/// Warns of flags that name a service, if `source` is used instead.
fn warn_ignored(context: &Context, source: &str) {
    for flag in context.service.given.service_flags() {
        log::warn!("`{flag}` has no effect with `{source}`");
    }
}

const SANDBOX_BATCHES: usize = 250;
const SANDBOX_SEED: u64 = 1;

impl ServiceSource {
    /// Resolves the settings, and starts the sandbox if requested. Call it on the runtime that the sandbox will run on.
    pub(super) fn open(context: &Context) -> anyhow::Result<Self> {
        let settings = context.settings()?;
        let options = settings.client_options()?;
        let (credentials, sandbox) = if context.service.sandbox {
            warn_ignored(context, "--sandbox");
            let (credentials, sandbox) = start_sandbox()?;
            (credentials, Some(sandbox))
        } else {
            (settings.credentials(&options)?, None)
        };
        Ok(Self {
            _sandbox: sandbox,
            ..Self::with(credentials, options)?
        })
    }

    /// Prepares to send requests with these credentials.
    pub(super) fn with(credentials: Credentials, options: ClientOptions) -> Result<Self, Failure> {
        let service = Arc::new(Service::new(credentials, &options)?);
        Ok(Self {
            service,
            options,
            _sandbox: None,
        })
    }

    /// Returns how to fetch, as the settings say.
    pub(super) fn fetch_options(&self) -> FetchOptions {
        // More would overload most services and machines.
        const MAX_WORKERS: u32 = 256;
        FetchOptions {
            api: self.options.api,
            workers: self.options.parallel.min(MAX_WORKERS) as usize,
            order: PageOrder::Any,
            lenient: false,
        }
    }

    /// Prepares to fetch `range`.
    pub(super) fn pages(&self, options: FetchOptions, range: Range) -> Pages {
        Pages::new(self.service.clone(), options, range)
    }
}

/// Starts the embedded server on a free loopback port.
fn start_sandbox() -> anyhow::Result<(Credentials, oneshot::Sender<()>)> {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = server::listen(loopback).context("cannot start the sandbox")?;
    let base_url = format!("http://{}", listener.local_addr()?);
    let expected = ExpectedCredentials {
        client_id: "sandbox".to_owned(),
        client_secret: server::random_secret()?,
    };
    let credentials = Credentials {
        base_url: BaseUrl::parse(&base_url, false)?,
        client_id: expected.client_id.clone(),
        client_secret: Secret::new(&expected.client_secret),
    };
    let catalog = server::generate(SANDBOX_SEED, SANDBOX_BATCHES, false);
    let options = ServerOptions {
        credentials: expected,
        faults: Faults::default(),
        seed: SANDBOX_SEED,
        page_size: 500,
        token_ttl: std::time::Duration::from_secs(900),
        v1_limit: None,
    };
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(server::run(listener, catalog, options, async {
        // The sender is dropped when the run ends.
        let _ = stopped.await;
    }));
    Ok((credentials, stop))
}
