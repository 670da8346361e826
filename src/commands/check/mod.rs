//! `check`: credentials and service, tried step by step.

// What was found, for people or for programs.
mod report;

use std::time::SystemTime;

use anyhow::Context as _;
use chrono::Utc;

use super::source::ServiceSource;
use crate::batch::Batch;
use crate::batch::json::Shape;
use crate::batch::json::split::{Item, ParseError, Splitter};
use crate::batch::range::Range;
use crate::cli::{CheckArgs, Cli};
use crate::client::Api;
use crate::client::BaseUrl;
use crate::client::{Fault, Service, ServiceError, Version};
use crate::error::{self, Failure};
use crate::probe::{self, BothVersions, MissingVersion, Prober};
use crate::secret::Secret;

use report::CheckResults;

/// What is read of an answer at a time.
const PIECE: usize = 64 * 1024;

pub(super) fn run(cli: &Cli, args: &CheckArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(check(cli, args))
}

async fn check(cli: &Cli, args: &CheckArgs) -> anyhow::Result<()> {
    let mut findings = CheckResults::new(args.format);
    let source = match ServiceSource::open(&args.service, &cli.from_environment) {
        Ok(source) => source,
        Err(error) => {
            let kind = error::kind_of(&error);
            let hint = error::hint_of(&error)
                .unwrap_or("see `trayscan config show`")
                .to_owned();
            let failure = Failure::new(kind, "the settings are not complete")
                .hint(hint)
                .caused_by(error);
            findings.failed("settings", failure, true)?;
            if args.probe {
                not_probed(&mut findings, "the settings are not complete")?;
            }
            return findings.finish();
        }
    };
    let service = &source.service;
    let access = service.access();
    findings.ok(
        "settings",
        format!(
            "{} (from {}) as `{}` (from {})",
            access.base_url, access.base_url_origin, access.client_id, access.client_id_origin
        ),
    )?;

    let mut trial = VersionTrial {
        api: source.manners.api.value,
        findings,
        connected: false,
        clock: None,
        absent: BothVersions::default(),
    };
    for version in [Version::V2, Version::V1] {
        if !trial.version(service, version).await? {
            break;
        }
    }
    let VersionTrial {
        mut findings,
        connected,
        clock,
        absent,
        ..
    } = trial;
    if connected {
        tell_clock(&mut findings, clock)?;
    }
    if args.probe && connected {
        probe(&source, absent, &mut findings).await?;
    } else if args.probe {
        not_probed(&mut findings, "there is no connection to the service")?;
    }
    findings.finish()
}

/// Finds out what the interface leaves open. That decides no exit code: a question without an answer is
/// no failure.
async fn probe(
    source: &ServiceSource,
    absent: BothVersions<Option<MissingVersion>>,
    findings: &mut CheckResults,
) -> anyhow::Result<()> {
    findings.begin_probe()?;
    let policy = source.retry_policy();
    let mut prober = Prober::new(&source.service, policy, &source.stats, absent);
    probe::run(&mut prober, |finding| findings.probed(&finding)).await?;
    findings.end_probe(prober.requests())
}

/// Tells why nothing was asked.
fn not_probed(findings: &mut CheckResults, why: &str) -> anyhow::Result<()> {
    findings.begin_probe()?;
    for finding in probe::unasked(why) {
        findings.probed(&finding)?;
    }
    findings.end_probe(0)
}

/// The trial of both versions.
struct VersionTrial {
    api: Api,
    findings: CheckResults,
    connected: bool,
    clock: Option<SystemTime>,
    /// Why a version is of no use to anybody.
    absent: BothVersions<Option<MissingVersion>>,
}

impl VersionTrial {
    /// Tries one version; false where there is no use in trying the other.
    async fn version(&mut self, service: &Service, version: Version) -> anyhow::Result<bool> {
        let (auth, first) = match version {
            Version::V1 => ("auth v1", "batches v1"),
            Version::V2 => ("auth v2", "batches v2"),
        };
        let token = match service.auth(version).await {
            Err(error) if !self.connected && is_unconnected(&error) => {
                tell_unconnected(&mut self.findings, service.base_url(), error)?;
                return Ok(false);
            }
            token => token,
        };
        if !self.connected {
            self.connected = true;
            tell_connected(&mut self.findings, service.base_url())?;
        }
        let token = match token {
            Ok(token) => token.access_token,
            Err(error) => {
                self.absent[version] = MissingVersion::of(version, &error);
                self.failed(auth, error, version)?;
                return Ok(true);
            }
        };
        self.findings.ok(auth, "a token was given")?;
        match first_page(service, version, &token).await {
            Ok((count, date)) => {
                self.clock = self.clock.or(date);
                let batches = if count == 1 { "batch" } else { "batches" };
                let place = match version {
                    Version::V1 => "in the last hour",
                    Version::V2 => "on the first page",
                };
                self.findings
                    .ok(first, format!("{count} {batches} {place}"))?;
            }
            Err(error) => {
                if error.is_missing() {
                    self.absent[version] = MissingVersion::of(version, &error);
                }
                self.failed(first, error, version)?;
            }
        }
        Ok(true)
    }

    /// Notes that a step of `version` failed, as far as an export would mind.
    fn failed(
        &mut self,
        step: &'static str,
        error: ServiceError,
        version: Version,
    ) -> anyhow::Result<()> {
        if self.api == Api::Auto && version == Version::V2 && error.is_missing() {
            return self
                .findings
                .ok(step, format!("not there ({error}): version 1 is used"));
        }
        let v2_works = self.findings.succeeded("batches v2");
        if self.api == Api::Auto && version == Version::V1 && v2_works && error.is_missing() {
            return self
                .findings
                .ok(step, format!("not there ({error}), and not needed"));
        }
        let matters = match (self.api, version) {
            (Api::V1, Version::V1) | (Api::V2 | Api::Auto, Version::V2) => true,
            // Where version 2 is not there, version 1 has to be.
            (Api::Auto, Version::V1) => !v2_works,
            (Api::V1, Version::V2) | (Api::V2, Version::V1) => false,
        };
        self.findings.failed(step, error.into_failure(1), matters)
    }
}

/// Tells whether there was no connection at all.
fn is_unconnected(error: &ServiceError) -> bool {
    matches!(
        error.fault,
        Fault::Connection(_) | Fault::TimedOut(_) | Fault::Proxy(_) | Fault::Tls(_)
    )
}

/// Notes why there is no connection.
fn tell_unconnected(
    findings: &mut CheckResults,
    base_url: &BaseUrl,
    error: ServiceError,
) -> anyhow::Result<()> {
    match error.fault {
        Fault::Connection(_) | Fault::TimedOut(_) => {
            let failure = Failure::new(
                error::Kind::Unavailable,
                format!("{base_url} cannot be reached"),
            )
            .hint("check the base URL, the network, and any proxy (HTTPS_PROXY)")
            .caused_by(error);
            findings.failed("connection", failure, true)
        }
        Fault::Tls(_) => {
            findings.ok("connection", format!("{} answers", base_url.host()))?;
            findings.failed("TLS", error.into_failure(1), true)
        }
        _ => findings.failed("connection", error.into_failure(1), true),
    }
}

/// Notes that there is a connection.
fn tell_connected(findings: &mut CheckResults, base_url: &BaseUrl) -> anyhow::Result<()> {
    findings.ok("connection", format!("{} answers", base_url.host()))?;
    let tls = if base_url.is_https() {
        "the certificate is trusted"
    } else {
        "none: plain http"
    };
    findings.ok("TLS", tls)
}

/// Asks for one answer, reads its batches and counts them.
async fn first_page(
    service: &Service,
    version: Version,
    token: &Secret,
) -> Result<(u64, Option<SystemTime>), ServiceError> {
    // Version 1 answers at once all that matches: an hour is enough to see that it works.
    let now = Utc::now().timestamp();
    let range = match version {
        Version::V1 => Range {
            start: Some(now - 3600),
            end: Some(now),
            excludes_end: false,
        },
        Version::V2 => Range::default(),
    };
    let mut answer = service.batches(version, token, &range, None).await?;
    let date = answer.date();
    let mut splitter = Splitter::new(match version {
        Version::V1 => Shape::Flat,
        Version::V2 => Shape::Page,
    });
    let mut count = 0;
    while let Some(text) = answer.text(PIECE).await? {
        let fed = splitter.feed(&text, &mut |found| {
            count += 1;
            let flaw = match found {
                Item::Batch(_) => None,
                Item::Text(text) => Batch::read(text).flaws.into_iter().next(),
            };
            match flaw {
                Some(flaw) => Err(ParseError::Broken(format!("batch {count}: {flaw}"))),
                None => Ok(()),
            }
        });
        fed.map_err(|unreadable| answer.unreadable(unreadable))?;
    }
    splitter
        .finish()
        .map_err(|unreadable| answer.unreadable(unreadable))?;
    Ok((count, date))
}

fn tell_clock(findings: &mut CheckResults, clock: Option<SystemTime>) -> anyhow::Result<()> {
    let Some(theirs) = clock else {
        return findings.ok("clock", "not known: no answer told the time");
    };
    let ours = SystemTime::now();
    let seconds = match ours.duration_since(theirs) {
        Ok(ahead) => ahead.as_secs(),
        Err(behind) => behind.duration().as_secs(),
    };
    // Less than that is rounding and the way of the answer.
    if seconds <= 5 {
        return findings.ok("clock", "the same as the service's");
    }
    let which = if ours > theirs { "ahead of" } else { "behind" };
    log::warn!(
        "the clock of this machine is {seconds} s {which} the service's: relative dates are off by that"
    );
    findings.ok("clock", format!("{seconds} s {which} the service's"))
}
