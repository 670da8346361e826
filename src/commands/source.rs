//! Where batches come from: the service of the settings, a sandbox that lives as long as the run, or an
//! archive.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use chrono::Utc;
use tokio::sync::oneshot;

use crate::archive::{Archive, ArchivePages};
use crate::batch::Page;
use crate::batch::range::{Range, written};
use crate::cli::{ServiceArgs, SourceArgs};
use crate::client::BaseUrl;
use crate::client::retry::RetryPolicy;
use crate::client::{ClientOptions, Credentials, Origin};
use crate::client::{Service, Version};
use crate::config::{Settings, file};
use crate::error::Failure;
use crate::fetch::{DataIssues, FetchOptions, FetchedWindow, PageOrder, Pages};
use crate::pipeline::PageSource;
use crate::secret::Secret;
use crate::server::faults::Faults;
use crate::server::{self, ExpectedCredentials, ServerOptions};
use crate::terminal::Stats;

const DAY: i64 = 86_400;

/// Where to take batches from.
pub(super) struct BatchSource {
    place: BatchOrigin,
    pub(super) stats: Arc<Stats>,
}

enum BatchOrigin {
    Service(Box<ServiceSource>),
    Archive(Archive),
}

impl BatchSource {
    /// Opens it; to be called on the runtime, where a sandbox will live.
    pub(super) fn open(args: &SourceArgs, from_environment: &[String]) -> anyhow::Result<Self> {
        Self::choose(args.archive.as_deref(), &args.service, from_environment)
    }

    /// Opens an archive, where there is one, or the service.
    pub(super) fn choose(
        archive: Option<&Path>,
        args: &ServiceArgs,
        from_environment: &[String],
    ) -> anyhow::Result<Self> {
        if let Some(path) = archive {
            // It has no settings, yet a mistake in them is one here as well.
            file::read(args.config.as_deref(), args.profile.as_deref())?;
            return Ok(Self {
                place: BatchOrigin::Archive(Archive::read(path)?),
                stats: Arc::default(),
            });
        }
        let asked = ServiceSource::open(args, from_environment)?;
        Ok(Self {
            stats: asked.stats.clone(),
            place: BatchOrigin::Service(Box::new(asked)),
        })
    }

    /// Says what it is.
    pub(super) fn name(&self) -> String {
        match &self.place {
            BatchOrigin::Service(asked) => asked.service.base_url().to_string(),
            BatchOrigin::Archive(archive) => format!("`{}`", archive.path().display()),
        }
    }

    /// The address of the service that the batches are from.
    pub(super) fn base_url(&self) -> Option<String> {
        match &self.place {
            BatchOrigin::Service(asked) => Some(asked.service.base_url().to_string()),
            BatchOrigin::Archive(archive) => Some(archive.owner().ok()??.base_url),
        }
    }

    /// Prepares to take the batches of `range`.
    pub(super) fn batches(
        &self,
        range: Range,
        order: PageOrder,
        lenient: bool,
    ) -> Result<BatchPages<'_>, Failure> {
        Ok(match &self.place {
            BatchOrigin::Service(asked) => {
                let manner = FetchOptions {
                    order,
                    lenient,
                    ..asked.manner()
                };
                BatchPages::Service(Box::new(asked.pages(manner, range)))
            }
            BatchOrigin::Archive(archive) => {
                BatchPages::Archive(Box::new(archive.pages(range, lenient)?))
            }
        })
    }

    /// Returns the archive, if that is where batches come from.
    pub(super) fn archive(&self) -> Option<&Archive> {
        match &self.place {
            BatchOrigin::Service(_) => None,
            BatchOrigin::Archive(archive) => Some(archive),
        }
    }

    /// Says what an archive may lack of `range`; nothing where it is complete, or a service was asked.
    pub(super) fn incomplete(&self, range: &Range) -> Result<Option<String>, Failure> {
        let BatchOrigin::Archive(archive) = &self.place else {
            return Ok(None);
        };
        let coverage = archive.coverage()?;
        let Some(end) = coverage.end() else {
            let why = "the archive is not complete: no run of `trayscan sync` has come to an end";
            return Ok(Some(why.to_owned()));
        };
        // Where nothing else is asked for, all that the archive is meant to hold is: what the last run was to
        // bring. What is yet to come cannot be missed, and an archive that is brought up to date every day
        // has the rest.
        let now = Utc::now().timestamp();
        let asked_end = match range.end {
            Some(asked) if asked <= now => asked,
            Some(_) if now - end > DAY => now,
            None if now - end > DAY && !archive.has_finished()? => now,
            _ if range.start > Some(end) => now,
            _ => end,
        };
        let asked = Range {
            start: range.start.or(archive.since()?.second()),
            end: Some(asked_end),
            excludes_end: false,
        };
        let missing: Vec<String> = coverage.missing(&asked).iter().map(gap).collect();
        Ok((!missing.is_empty()).then(|| {
            format!(
                "the archive is not known to be complete: {}; `trayscan sync` fetches that",
                missing.join(", ")
            )
        }))
    }

    /// Returns from when to when an archive has all batches, as far as it knows; all dates for a service.
    pub(super) fn held(&self) -> Result<Range, Failure> {
        let BatchOrigin::Archive(archive) = &self.place else {
            return Ok(Range::default());
        };
        Ok(Range {
            start: archive.since()?.second(),
            end: archive.coverage()?.end(),
            excludes_end: false,
        })
    }

    /// Counts what an archive has that the service no longer has.
    pub(super) fn vanished(&self) -> Result<u64, Failure> {
        match &self.place {
            BatchOrigin::Service(_) => Ok(0),
            BatchOrigin::Archive(archive) => archive.vanished(),
        }
    }
}

fn gap(range: &Range) -> String {
    let start = range
        .start
        .map_or_else(|| "the beginning".to_owned(), written);
    let end = range.end.map_or_else(|| "now".to_owned(), written);
    format!("{start} through {end}")
}

/// Batches on their way.
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

    fn give_back(&mut self, page: Page) {
        if let Self::Service(pages) = self {
            pages.give_back(page);
        }
    }

    fn asked_again(&self) -> u64 {
        match self {
            Self::Service(pages) => pages.asked_again(),
            Self::Archive(_) => 0,
        }
    }
}

impl BatchPages<'_> {
    /// The version in use, where a service is asked and it is known.
    pub(super) fn version(&self) -> Option<Version> {
        match self {
            Self::Service(pages) => pages.version(),
            Self::Archive(_) => None,
        }
    }

    /// The windows that were fetched.
    pub(super) fn fetched(&self) -> Vec<FetchedWindow> {
        match self {
            Self::Service(pages) => pages.fetched(),
            Self::Archive(_) => Vec::new(),
        }
    }

    /// What was wrong with the batches.
    pub(super) fn findings(&self) -> DataIssues {
        match self {
            Self::Service(pages) => pages.findings(),
            Self::Archive(pages) => pages.findings(),
        }
    }
}

/// A service to ask, and how.
pub(super) struct ServiceSource {
    pub(super) service: Arc<Service>,
    pub(super) manners: ClientOptions,
    pub(super) stats: Arc<Stats>,
    /// Ends the sandbox when dropped.
    _sandbox: Option<oneshot::Sender<()>>,
}

const SANDBOX_BATCHES: usize = 250;
const SANDBOX_SEED: u64 = 1;

impl ServiceSource {
    /// Decides whom to ask; to be called on the runtime, where a sandbox will live.
    pub(super) fn open(args: &ServiceArgs, from_environment: &[String]) -> anyhow::Result<Self> {
        let settings = Settings::read(args, from_environment)?;
        let manners = settings.client_options()?;
        let (access, sandbox) = if args.sandbox {
            let (access, sandbox) = start_sandbox()?;
            (access, Some(sandbox))
        } else {
            (settings.credentials(&manners)?, None)
        };
        let stats = Arc::new(Stats::default());
        let service = Arc::new(Service::new(access, &manners, Arc::clone(&stats))?);
        Ok(Self {
            service,
            manners,
            stats,
            _sandbox: sandbox,
        })
    }

    /// How the settings want it to be asked.
    pub(super) fn manner(&self) -> FetchOptions {
        // No service bears more, and neither do most machines.
        const MOST: u32 = 256;
        FetchOptions {
            api: self.manners.api.value,
            workers: self.manners.parallel.value.min(MOST) as usize,
            order: PageOrder::Any,
            lenient: false,
        }
    }

    /// Prepares to fetch `range`.
    pub(super) fn pages(&self, manner: FetchOptions, range: Range) -> Pages {
        let (service, stats) = (self.service.clone(), self.stats.clone());
        Pages::new(service, self.retry_policy(), stats, manner, range)
    }

    /// How often, and after which wait, it is asked again.
    pub(super) fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy {
            retries: self.manners.retries.value,
            wait: self.manners.retry_wait.value,
        }
    }
}

/// Starts the embedded service on a free port of this machine.
fn start_sandbox() -> anyhow::Result<(Credentials, oneshot::Sender<()>)> {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = server::listen(loopback).context("cannot start the sandbox")?;
    let base_url = format!("http://{}", listener.local_addr()?);
    let credentials = ExpectedCredentials {
        client_id: "sandbox".to_owned(),
        client_secret: server::random_secret()?,
    };
    let access = Credentials {
        base_url: BaseUrl::parse(&base_url, false)?,
        client_id: credentials.client_id.clone(),
        base_url_origin: Origin::Flag("--sandbox"),
        client_id_origin: Origin::Flag("--sandbox"),
        client_secret: Secret::new(&credentials.client_secret),
    };
    let catalog = server::generate(SANDBOX_SEED, SANDBOX_BATCHES, false);
    let options = ServerOptions {
        credentials,
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
    Ok((access, stop))
}
