//! `check`: credentials and service, tried step by step.

use std::time::SystemTime;

use anyhow::Context as _;
use chrono::Utc;
use serde::Serialize;

use super::source::Source;
use crate::batch::Batch;
use crate::cli::{Api, CheckArgs, Cli, ReportFormat};
use crate::dates::Range;
use crate::error::{self, Failure};
use crate::service::split::{Flow, Shape, Splitter, Unreadable};
use crate::service::{Fault, Service, ServiceError, Version};
use crate::settings::conceal;
use crate::ui;

pub(super) fn run(cli: &Cli, args: &CheckArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(check(cli, args))
}

/// One thing that was tried.
#[derive(Serialize)]
struct Step {
    #[serde(rename = "step")]
    name: &'static str,
    ok: bool,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// What was found so far, and the failure that decides the exit code.
struct Findings {
    format: ReportFormat,
    steps: Vec<Step>,
    failure: Option<anyhow::Error>,
}

impl Findings {
    fn ok(&mut self, step: &'static str, found: impl Into<String>) -> anyhow::Result<()> {
        self.add(Step {
            name: step,
            ok: true,
            found: found.into(),
            hint: None,
        })
    }

    /// Notes a failure; the first that `matters` decides the exit code.
    fn failed(
        &mut self,
        step: &'static str,
        failure: Failure,
        matters: bool,
    ) -> anyhow::Result<()> {
        let error = anyhow::Error::new(failure);
        let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
        let hint = error::hint_of(&error).map(String::from);
        self.add(Step {
            name: step,
            ok: false,
            found: conceal(&causes.join(": ")).into_owned(),
            hint,
        })?;
        if matters && self.failure.is_none() {
            self.failure = Some(error);
        }
        Ok(())
    }

    fn add(&mut self, step: Step) -> anyhow::Result<()> {
        if self.format == ReportFormat::Text {
            let mark = if step.ok { "ok    " } else { "FAILED" };
            let mut line = format!("{mark}  {:12}  {}\n", step.name, ui::one_line(&step.found));
            if let Some(hint) = &step.hint {
                let indent = " ".repeat(22);
                line += &indent;
                line += "hint: ";
                line += &hint.replace('\n', &format!("\n{indent}"));
                line.push('\n');
            }
            ui::print(&line)?;
        }
        self.steps.push(step);
        Ok(())
    }

    fn finish(self) -> anyhow::Result<()> {
        if self.format == ReportFormat::Json {
            let report = serde_json::json!({"ok": self.failure.is_none(), "steps": self.steps});
            ui::print(&format!("{report}\n"))?;
        }
        match self.failure {
            // What failed stands in the report; what remains is the class.
            Some(error) => Err(Failure::new(error::kind_of(&error), "the check failed")
                .caused_by(error)
                .into()),
            None => Ok(()),
        }
    }
}

async fn check(cli: &Cli, args: &CheckArgs) -> anyhow::Result<()> {
    let mut findings = Findings {
        format: args.format,
        steps: Vec::new(),
        failure: None,
    };
    let source = match Source::open(&args.service, &cli.from_environment) {
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

    let api = source.manners.api.value;
    let mut clock = None;
    let mut connected = false;
    for version in [Version::V2, Version::V1] {
        let (auth, first) = match version {
            Version::V1 => ("auth v1", "batches v1"),
            Version::V2 => ("auth v2", "batches v2"),
        };
        let v2_works = findings
            .steps
            .iter()
            .any(|step| step.name == "batches v2" && step.ok);
        let matters = match (api, version) {
            (Api::V1, Version::V1) | (Api::V2, Version::V2) => true,
            // Version 2 may be missing where version 1 is there, and the other way round.
            (Api::Auto, Version::V1) => !v2_works,
            _ => false,
        };
        let token = service.auth(version).await;
        if !connected {
            connected = reached(&mut findings, service, token.as_ref().err())?;
            if !connected {
                break;
            }
        }
        let token = match token {
            Ok(token) => token.access_token,
            Err(error) => {
                let fatal = matters || !may_be_missing(&error, api, version);
                findings.failed(auth, error.into_failure(1), fatal)?;
                continue;
            }
        };
        findings.ok(auth, "a token was given")?;
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
        match first_page(service, version, &token, &range).await {
            Ok((count, date)) => {
                clock = clock.or(date);
                let what = match version {
                    Version::V1 => "batches in the last hour",
                    Version::V2 => "batches on the first page",
                };
                findings.ok(first, format!("{count} {what}"))?;
            }
            Err(error) => {
                let fatal = matters || !may_be_missing(&error, api, version);
                findings.failed(first, error.into_failure(1), fatal)?;
            }
        }
    }
    if connected {
        tell_clock(&mut findings, clock)?;
    }
    findings.finish()
}

/// In `auto`, a version that is not there is no failure, as long as the other one is.
fn may_be_missing(error: &ServiceError, api: Api, version: Version) -> bool {
    api != Api::Auto || version == Version::V1 || error.is_missing()
}

/// Tells whether the service was reached at all, from how the first exchange went.
fn reached(
    findings: &mut Findings,
    service: &Service,
    error: Option<&ServiceError>,
) -> anyhow::Result<bool> {
    let base_url = service.base_url();
    match error.map(|error| &error.fault) {
        Some(Fault::Connection(_) | Fault::TimedOut(_)) => {
            let cause = anyhow::anyhow!(describe(error));
            let failure = Failure::new(
                error::Kind::Unavailable,
                format!("{base_url} cannot be reached"),
            )
            .hint("check the base URL, the network, and any proxy (HTTPS_PROXY)")
            .caused_by(cause);
            findings.failed("connection", failure, true)?;
            Ok(false)
        }
        Some(Fault::Untrusted(_)) => {
            findings.ok("connection", format!("{} answers", base_url.host()))?;
            let failure = Failure::new(error::Kind::Unsafe, "the certificate is not trusted")
                .hint("where it is your own authority's, name its certificate with `--ca-cert`")
                .caused_by(anyhow::anyhow!(describe(error)));
            findings.failed("TLS", failure, true)?;
            Ok(false)
        }
        _ => {
            findings.ok("connection", format!("{} answers", base_url.host()))?;
            let tls = if base_url.is_https() {
                "the certificate is trusted"
            } else {
                "none: plain http"
            };
            findings.ok("TLS", tls)?;
            Ok(true)
        }
    }
}

/// Says an error with its causes.
fn describe(error: Option<&ServiceError>) -> String {
    let causes = error
        .into_iter()
        .flat_map(|error| anyhow::Chain::new(error));
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

/// Asks for one answer, reads its batches and counts them.
async fn first_page(
    service: &Service,
    version: Version,
    token: &crate::settings::Secret,
    range: &Range,
) -> Result<(u64, Option<SystemTime>), ServiceError> {
    let mut answer = service.batches(version, token, range, None).await?;
    let date = answer.date();
    let mut splitter = Splitter::new(match version {
        Version::V1 => Shape::Flat,
        Version::V2 => Shape::Page,
    });
    let mut count = 0;
    while let Some(chunk) = answer.chunk().await? {
        let fed = splitter.feed(&chunk, &mut |text| {
            count += 1;
            match Batch::read(text).flaws.first() {
                Some(flaw) => Err(Unreadable::Broken(format!("batch {count}: {flaw}"))),
                None => Ok(Flow::Continue),
            }
        });
        fed.map_err(|unreadable| answer.unreadable(unreadable))?;
    }
    splitter
        .finish()
        .map_err(|unreadable| answer.unreadable(unreadable))?;
    Ok((count, date))
}

fn tell_clock(findings: &mut Findings, clock: Option<SystemTime>) -> anyhow::Result<()> {
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
