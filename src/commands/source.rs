//! Where batches come from: the service of the settings, or a sandbox that lives as long as the run.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::oneshot;

use crate::cli::ServiceArgs;
use crate::sandbox::{self, Credentials, Options, faults::Faults};
use crate::service::retry::RetryPolicy;
use crate::service::{Service, Stats};
use crate::settings::{Access, BaseUrl, Manners, Origin, Secret, Settings};

/// A service to ask, and how.
pub(super) struct Source {
    pub(super) service: Arc<Service>,
    pub(super) manners: Manners,
    pub(super) stats: Arc<Stats>,
    /// Ends the sandbox when dropped.
    _sandbox: Option<oneshot::Sender<()>>,
}

const SANDBOX_BATCHES: usize = 250;
const SANDBOX_SEED: u64 = 1;

impl Source {
    /// Opens it; to be called on the runtime, where a sandbox will live.
    pub(super) fn open(args: &ServiceArgs, from_environment: &[String]) -> anyhow::Result<Self> {
        let settings = Settings::read(args, from_environment)?;
        let manners = settings.manners()?;
        let (access, sandbox) = if args.sandbox {
            let (access, sandbox) = start_sandbox()?;
            (access, Some(sandbox))
        } else {
            (settings.access(&manners)?, None)
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

    /// Requests at a time, at most.
    pub(super) fn workers(&self) -> usize {
        // No service bears more, and neither do most machines.
        const MOST: u32 = 256;
        self.manners.parallel.value.min(MOST) as usize
    }

    pub(super) fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy {
            retries: self.manners.retries.value,
            wait: self.manners.retry_wait.value,
        }
    }
}

/// Starts the embedded service on a free port of this machine.
fn start_sandbox() -> anyhow::Result<(Access, oneshot::Sender<()>)> {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = sandbox::listen(loopback).context("cannot start the sandbox")?;
    let base_url = format!("http://{}", listener.local_addr()?);
    let credentials = Credentials {
        client_id: "sandbox".to_owned(),
        client_secret: sandbox::random_secret()?,
    };
    let access = Access {
        base_url: BaseUrl::parse(&base_url, false)?,
        client_id: credentials.client_id.clone(),
        base_url_origin: Origin::Flag("--sandbox"),
        client_id_origin: Origin::Flag("--sandbox"),
        client_secret: Secret::new(&credentials.client_secret),
    };
    let catalog = sandbox::generate(SANDBOX_SEED, SANDBOX_BATCHES, false);
    let options = Options {
        credentials,
        faults: Faults::default(),
        seed: SANDBOX_SEED,
        page_size: 500,
        token_ttl: std::time::Duration::from_secs(900),
        v1_limit: None,
    };
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(sandbox::run(listener, catalog, options, async {
        // The sender is dropped when the run ends.
        let _ = stopped.await;
    }));
    Ok((access, stop))
}
