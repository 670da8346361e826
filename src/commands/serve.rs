//! `serve`: runs the batch scan service on this machine.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::json;
use tokio::sync::watch;

use super::context::Context;
use super::runtime;
use crate::archive::WatchedArchive;
use crate::cli::ServeArgs;
use crate::error::{Failure, Kind};
use crate::server::faults::Faults;
use crate::server::{self, Catalog, DataStore, ExpectedCredentials, ServerOptions, Source};
use crate::terminal::{self, MessageFormat};
use crate::text;

/// How long a stop may take before a note explains it.
const NOTE_DELAY: Duration = Duration::from_millis(300);

pub(super) fn run(context: &Context, args: &ServeArgs) -> anyhow::Result<()> {
    let faults = Faults::parse(&args.faults)?;
    if args.archive.is_some() && faults.unknown_fields {
        let why = "`--fault unknown-fields` cannot be used with `--archive`";
        let hint = "leave it out: it adds fields to generated batches only";
        return Err(Failure::usage(why, hint).into());
    }
    let credentials = credentials(args)?;
    let args = args.clone();
    let (stop, stopped) = watch::channel(false);
    let is_ready = Arc::new(AtomicBool::new(false));
    let ready = Arc::clone(&is_ready);
    let signal = runtime::until_signal(
        context,
        async move |_| serve(&args, faults, credentials, &ready, stopped).await,
        async |kind, signals| {
            if !is_ready.load(Ordering::SeqCst) {
                return kind;
            }
            let _ = stop.send(true);
            // Most stops are immediate; only a slow one needs an explanation.
            tokio::select! {
                kind = signals.next() => return kind,
                () = tokio::time::sleep(NOTE_DELAY) => {}
            }
            terminal::note(
                "finishing open requests (at most 10 s); press Ctrl-C again to stop at once",
            );
            signals.next().await
        },
    )?;
    let Some(kind) = signal else {
        return Ok(());
    };
    let message = if is_ready.load(Ordering::SeqCst) {
        "stopped at once by a second signal, without waiting for open requests"
    } else {
        "stopped before the batches were ready"
    };
    Err(Failure::new(kind, message).into())
}

/// Serves batches until `stop` changes. Sets `is_ready` once clients can connect.
async fn serve(
    args: &ServeArgs,
    faults: Faults,
    credentials: ExpectedCredentials,
    is_ready: &AtomicBool,
    mut stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let listener =
        server::listen(args.listen).map_err(|error| cannot_listen(args.listen, error))?;
    let address = listener
        .local_addr()
        .context("the listener has no address")?;

    let started = Instant::now();
    let (seed, count, unknown_fields) = (args.seed, args.batches as usize, faults.unknown_fields);
    let archive = args.archive.clone();
    let preparing = tokio::task::spawn_blocking(move || match archive {
        Some(path) => open(WatchedArchive::new(path)),
        None => Ok((server::generate(seed, count, unknown_fields), None)),
    });
    let (catalog, source) = preparing.await.context("cannot prepare the batches")??;
    is_ready.store(true, Ordering::SeqCst);
    log::info!(
        "{} {} batches in {:.1?}",
        source.as_ref().map_or("generated", |_| "read"),
        text::thousands(catalog.len() as u64),
        started.elapsed()
    );
    warn_of_risks(address, &args.faults);
    announce(args, address, &credentials, &catalog)?;

    let options = ServerOptions {
        credentials,
        faults,
        seed: args.seed,
        page_size: args.page_size as usize,
        token_ttl: args.token_ttl,
        v1_limit: args.v1_limit.map(|limit| limit as usize),
    };
    let store = match source {
        Some(source) => DataStore::watching(catalog, source),
        None => DataStore::from(catalog),
    };
    let started = Instant::now();
    let served = server::run(listener, store, options, async {
        // An error means that the sender was dropped, which is also a reason to stop.
        let _ = stop.changed().await;
    })
    .await?;
    if served.cut_off > 0 {
        let requests = text::count(served.cut_off as u64, "request was", "requests were");
        let seconds = server::DRAIN_TIMEOUT.as_secs();
        log::warn!("{requests} cut off after {seconds} s");
    }
    let seconds = started.elapsed().as_secs_f64();
    let requests = text::count(served.answered, "request", "requests");
    terminal::conclude(&format!("stopped after {requests} in {seconds:.1} s"));
    Ok(())
}

/// Reads an archive; the returned source reads it again when it changes.
fn open(mut archive: WatchedArchive) -> Result<(Catalog, Option<Source>), Failure> {
    let mut read = move || {
        let Some(content) = archive.read()? else {
            return Ok(None);
        };
        let catalog = server::collect(&content.received);
        catalog
            .map(Some)
            .map_err(|place| archive.damaged(&content, place))
    };
    let catalog = read()?.unwrap_or_default();
    Ok((catalog, Some(Box::new(read))))
}

fn credentials(args: &ServeArgs) -> anyhow::Result<ExpectedCredentials> {
    let given = [
        ("--client-id", Some(&args.client_id)),
        ("--client-secret", args.client_secret.as_ref()),
    ];
    for (flag, value) in given {
        if value.is_some_and(String::is_empty) {
            let hint = format!("give a value, or leave out `{flag}` to use the default");
            return Err(Failure::usage(format!("`{flag}` is empty"), hint).into());
        }
    }
    Ok(ExpectedCredentials {
        client_id: args.client_id.clone(),
        client_secret: match &args.client_secret {
            Some(secret) => secret.clone(),
            None => server::random_secret()?,
        },
    })
}

fn cannot_listen(address: SocketAddr, error: io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program uses this port; choose another, or `--listen 127.0.0.1:0` for a free one"
        }
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 need administrator rights; choose a higher one, such as 8080"
        }
        _ => "choose an address of this machine, such as 127.0.0.1:8080",
    };
    Failure::new(Kind::Output, format!("cannot listen on {address}"))
        .caused_by(error)
        .hint(hint)
}

fn warn_of_risks(address: SocketAddr, faults: &[String]) {
    if !address.ip().is_loopback() {
        log::warn!(
            "listening on {address}: other machines can reach this service, and http is not encrypted"
        );
    }
    if !faults.is_empty() {
        log::warn!("injecting faults: {}", faults.join(", "));
    }
}

fn announce(
    args: &ServeArgs,
    address: SocketAddr,
    credentials: &ExpectedCredentials,
    catalog: &Catalog,
) -> anyhow::Result<()> {
    let base_url = format!("http://{}", reachable(address));
    match args.format {
        // Scripts rely on these names.
        MessageFormat::Json => terminal::print_json(&json!({
            "base_url": base_url,
            "client_id": credentials.client_id,
            "client_secret": credentials.client_secret,
        }))?,
        MessageFormat::Text => {
            let has_v2 = !args.faults.iter().any(|fault| fault == "v2-missing");
            let version = if has_v2 { "v2" } else { "v1" };
            let batches = describe_batches(args, catalog);
            terminal::print(&welcome_text(&base_url, credentials, &batches, version))?;
        }
    }
    Ok(())
}

/// Returns an address that clients can connect to, also if the server listens on all addresses.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Describes the batches: how many, from when, and their source.
fn describe_batches(args: &ServeArgs, catalog: &Catalog) -> String {
    let from = match &args.archive {
        Some(path) => {
            let path = path.display().to_string();
            format!("`{}`, kept up to date", text::one_line(&path))
        }
        None => format!("seed {}", args.seed),
    };
    match (catalog.len(), catalog.span()) {
        (0, _) if args.archive.is_none() => "none".to_owned(),
        (0, _) => format!("none ({from})"),
        (count, Some((first, last))) => format!("{count} from {first} to {last} ({from})"),
        (count, None) => format!("{count} ({from})"),
    }
}

fn welcome_text(
    base_url: &str,
    credentials: &ExpectedCredentials,
    batches: &str,
    version: &str,
) -> String {
    let ExpectedCredentials {
        client_id,
        client_secret,
    } = credentials;
    let id = form_argument("client_id", client_id);
    let secret = form_argument("client_secret", client_secret);
    format!(
        "\
The batch scan service is running. Stop it with Ctrl-C.

  base URL       {base_url}
  client ID      {client_id}
  client secret  {client_secret}
  batches        {batches}

Get a token, then the first page:

  curl {base_url}/{version}/auth -d grant_type=client_credentials {id} {secret}
  curl {base_url}/{version}/batches -H 'Authorization: Bearer <access_token>'
"
    )
}

/// Returns a form field as an argument of curl, escaped for the form and the shell if necessary.
fn form_argument(name: &str, value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if value.bytes().all(plain) {
        return format!("-d {name}={value}");
    }
    format!("--data-urlencode '{name}={}'", value.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::form_argument;

    #[test]
    fn awkward_credentials_survive_the_shell() {
        assert_eq!(
            form_argument("client_id", "a-b_c.1"),
            "-d client_id=a-b_c.1"
        );
        assert_eq!(
            form_argument("client_secret", "it's 100%"),
            r"--data-urlencode 'client_secret=it'\''s 100%'"
        );
    }
}
