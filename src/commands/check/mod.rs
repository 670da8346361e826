//! `check`: tests the settings, the connection and the credentials, step by step.
//!
//! The questions of `--probe` are in `probe` of the crate.

// The results, as text or JSON.
mod report;

pub(super) use report::CheckResults;

use chrono::Utc;

use crate::batch::Batch;
use crate::batch::json::Shape;
use crate::batch::json::split::{Item, ParseError, Splitter};
use crate::batch::range::Range;
use crate::cli::CheckArgs;
use crate::client::{
    Api, BaseUrl, BothVersions, Fault, PageRequest, Service, ServiceError, Version,
};
use crate::commands::context::Context;
use crate::commands::runtime;
use crate::commands::source::ServiceSource;
use crate::config::{Origin, Setting};
use crate::error::{self, Failure};
use crate::probe::{self, MissingVersion, Prober};
use crate::secret::Secret;
use crate::text;

pub(super) fn run(context: &Context, args: &CheckArgs) -> anyhow::Result<()> {
    let args = args.clone();
    runtime::run(
        context,
        async move |context| check(&context, &args).await,
        || "the check is incomplete".to_owned(),
    )
}

async fn check(context: &Context, args: &CheckArgs) -> anyhow::Result<()> {
    let mut results = CheckResults::new(args.format, "the check failed");
    let source = match ServiceSource::open(context) {
        Ok(source) => source,
        Err(error) => {
            let why = "the settings are incomplete or invalid";
            let hint = error::hint_of(&error).unwrap_or("see `trayscan config show`");
            let failure = Failure::new(error::kind_of(&error), why).hint(hint);
            results.failed("settings", failure.caused_by(error), true)?;
            if args.probe {
                skip_probe(&mut results, why)?;
            }
            return results.finish();
        }
    };
    let settings = context.settings()?;
    let from = |setting: &Option<Setting<String>>| match setting {
        Some(setting) if !args.service.sandbox => setting.origin.clone(),
        _ => Origin::Flag("--sandbox"),
    };
    let origins = [from(&settings.base_url), from(&settings.client_id)];
    let missing = check_service(&source, &origins, &mut results).await?;
    match missing {
        _ if !args.probe => {}
        Some(missing) => probe(&source, missing, &mut results).await?,
        None => skip_probe(&mut results, "there is no connection to the service")?,
    }
    results.finish()
}

/// Why each version cannot be used, if so.
type MissingVersions = BothVersions<Option<MissingVersion>>;

/// Checks the connection, TLS, both API versions and the clock. `origins` are those of the base URL and the client ID.
/// Returns `None` if there is no connection.
pub(crate) async fn check_service(
    source: &ServiceSource,
    origins: &[Origin; 2],
    results: &mut CheckResults,
) -> anyhow::Result<Option<MissingVersions>> {
    let service = &source.service;
    let credentials = &service.credentials;
    let [url_origin, id_origin] = origins;
    results.ok(
        "settings",
        format!(
            "{} (from {url_origin}) as `{}` (from {id_origin})",
            credentials.base_url, credentials.client_id
        ),
    )?;
    let mut check = VersionCheck {
        source,
        api: source.options.api,
        results,
        connected: false,
        missing: BothVersions::default(),
    };
    for version in [Version::V2, Version::V1] {
        if !check.check_version(version).await? {
            return Ok(None);
        }
    }
    report_clock(check.results, service.stats().clock_ahead())?;
    Ok(Some(check.missing))
}

/// Finds out what the interface leaves open. This does not affect the exit code: an unanswered question is not a
/// failure.
async fn probe(
    source: &ServiceSource,
    missing: MissingVersions,
    results: &mut CheckResults,
) -> anyhow::Result<()> {
    results.begin_probe()?;
    let mut prober = Prober::new(&source.service, missing);
    probe::run(&mut prober, |answer| results.add_answer(&answer)).await?;
    results.end_probe(prober.requests())
}

/// Reports all questions as open, and why.
fn skip_probe(results: &mut CheckResults, why: &str) -> anyhow::Result<()> {
    results.begin_probe()?;
    for answer in probe::unasked(why) {
        results.add_answer(&answer)?;
    }
    results.end_probe(0)
}

/// Checks both API versions.
struct VersionCheck<'a> {
    source: &'a ServiceSource,
    api: Api,
    results: &'a mut CheckResults,
    connected: bool,
    missing: MissingVersions,
}

impl VersionCheck<'_> {
    /// Checks one version; returns false if there is no point in checking the other.
    async fn check_version(&mut self, version: Version) -> anyhow::Result<bool> {
        let service = &*self.source.service;
        let (auth, first) = match version {
            Version::V1 => ("auth v1", "batches v1"),
            Version::V2 => ("auth v2", "batches v2"),
        };
        let token = self.retry(|attempt| request_token(service, version, attempt));
        let token = match token.await {
            Err(error) if !self.connected && has_no_answer(&error) => {
                report_no_connection(self.results, &service.credentials.base_url, error)?;
                return Ok(false);
            }
            token => token,
        };
        if !self.connected {
            self.connected = true;
            report_connection(self.results, &service.credentials.base_url)?;
        }
        let token = match token {
            Ok(token) => token,
            Err(error) => {
                self.missing[version] = MissingVersion::of(version, &error);
                self.failed(auth, error, version)?;
                return Ok(true);
            }
        };
        self.results.ok(auth, "received a token")?;
        let page = self.retry(|attempt| first_page(service, version, &token, attempt));
        match page.await {
            Ok(count) => {
                let batches = text::count(count, "batch", "batches");
                let place = match version {
                    Version::V1 => "in the last hour",
                    Version::V2 => "on the first page",
                };
                self.results.ok(first, format!("{batches} {place}"))?;
            }
            Err(error) => {
                if error.is_missing() {
                    self.missing[version] = MissingVersion::of(version, &error);
                }
                self.failed(first, error, version)?;
            }
        }
        Ok(true)
    }

    /// Sends a request with retries. A service that was never reached is reported at once.
    async fn retry<T, F>(&self, attempt: impl Fn(u32) -> F) -> Result<T, ServiceError>
    where
        F: Future<Output = Result<T, ServiceError>>,
    {
        let connected = self.connected;
        let attempt = |number| {
            let sent = attempt(number);
            async move {
                match sent.await {
                    Err(error) if !connected && has_no_answer(&error) => Ok(Err(error)),
                    Err(error) => Err(error),
                    Ok(answer) => Ok(Ok(answer)),
                }
            }
        };
        let service = &self.source.service;
        service.retry.run(service.stats(), attempt).await?
    }

    /// Reports that a step of `version` failed, unless an export does not depend on it.
    fn failed(
        &mut self,
        step: &'static str,
        error: ServiceError,
        version: Version,
    ) -> anyhow::Result<()> {
        if self.api == Api::Auto && version == Version::V2 && error.is_missing() {
            let found = format!("not available ({error}): v1 is tried");
            return self.results.ok(step, found);
        }
        // Without v2, its step succeeds as well, because v1 is used.
        let v2_works = self.results.succeeded("batches v2") && self.missing[Version::V2].is_none();
        let matters = match (self.api, version) {
            (Api::V1, Version::V1) | (Api::V2 | Api::Auto, Version::V2) => true,
            // Without v2, v1 must work.
            (Api::Auto, Version::V1) => !v2_works,
            (Api::V1, Version::V2) | (Api::V2, Version::V1) => false,
        };
        if !matters && error.is_missing() {
            let found = format!("not available ({error}), and not needed");
            return self.results.ok(step, found);
        }
        self.results
            .failed(step, error.into_step_failure(), matters)
    }
}

/// Returns whether there was no connection, or no answer that could be read.
fn has_no_answer(error: &ServiceError) -> bool {
    matches!(
        error.fault,
        Fault::Connection(_)
            | Fault::TimedOut(_)
            | Fault::NotValid(_)
            | Fault::Slow(_)
            | Fault::Proxy(_)
            | Fault::Tls(_)
            | Fault::NoAuthorities
    )
}

/// Reports why there is no connection.
fn report_no_connection(
    results: &mut CheckResults,
    base_url: &BaseUrl,
    error: ServiceError,
) -> anyhow::Result<()> {
    match error.fault {
        Fault::Connection(_) | Fault::TimedOut(_) => {
            let message = format!("{base_url} cannot be reached");
            let failure = Failure::new(error::Kind::Unavailable, message)
                .hint("check the base URL, the network, and any proxy (HTTPS_PROXY)")
                .caused_by(error);
            results.failed("connection", failure, true)
        }
        Fault::Tls(_) => {
            results.ok("connection", format!("{} answers", base_url.host()))?;
            results.failed("TLS", error.into(), true)
        }
        Fault::NoAuthorities => results.failed("TLS", error.into(), true),
        _ => results.failed("connection", error.into(), true),
    }
}

/// Reports that there is a connection.
fn report_connection(results: &mut CheckResults, base_url: &BaseUrl) -> anyhow::Result<()> {
    results.ok("connection", format!("{} answers", base_url.host()))?;
    let tls = if base_url.is_https() {
        "the certificate is trusted"
    } else {
        "none: plain http"
    };
    results.ok("TLS", tls)
}

async fn request_token(
    service: &Service,
    version: Version,
    attempt: u32,
) -> Result<Secret, ServiceError> {
    let response = service.auth(version, attempt).await?;
    Ok(response.token().await?.access_token)
}

/// Requests one page, parses its batches and counts them.
async fn first_page(
    service: &Service,
    version: Version,
    token: &Secret,
    attempt: u32,
) -> Result<u64, ServiceError> {
    // v1 returns everything that matches in one response: an hour is enough to see that it works.
    let now = Utc::now().timestamp();
    let range = match version {
        Version::V1 => Range::between(Some(now - 3600), Some(now)),
        Version::V2 => Range::default(),
    };
    let request = PageRequest::new(version, &range, None);
    let response = service.batches(&request, Some(token), attempt).await?;
    let mut response = response.success().await?;
    let mut splitter = Splitter::new(match version {
        Version::V1 => Shape::Flat,
        Version::V2 => Shape::Page,
    });
    let mut count = 0;
    while let Some(text) = response.text().await? {
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
        fed.map_err(|unreadable| response.parse_error(unreadable))?;
    }
    splitter
        .finish()
        .map_err(|unreadable| response.parse_error(unreadable))?;
    Ok(count)
}

/// Reports by how many seconds the clock of the service is ahead of ours.
fn report_clock(results: &mut CheckResults, ahead: Option<i64>) -> anyhow::Result<()> {
    let Some(ahead) = ahead else {
        return results.ok("clock", "unknown: the service sent no date");
    };
    let seconds = ahead.unsigned_abs();
    // A smaller difference is rounding and network delay.
    if seconds <= 5 {
        return results.ok("clock", "the same as the clock of the service");
    }
    let which = if ahead < 0 { "ahead of" } else { "behind" };
    let difference = text::clock_difference(seconds);
    log::warn!(
        "the clock of this machine is {difference} {which} that of the service; relative dates are off by as much"
    );
    let found = format!("{difference} {which} the clock of the service");
    results.ok("clock", found)
}
