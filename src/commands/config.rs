//! `config`: prints the path of the config file or the settings in effect, creates a config file, or changes a key.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use super::context::Context;
use crate::cli::{ConfigCommand, ConfigSetArgs};
use crate::config::{self, ConfigDocument, Origin, SETTINGS, SecretSource, Setting, file};
use crate::error::{Failure, Kind};
use crate::storage::PrivateFile;
use crate::terminal;

pub(super) fn run(context: &Context, command: &ConfigCommand) -> anyhow::Result<()> {
    match command {
        ConfigCommand::Path(args) => {
            let path = file::path(args.config.as_deref())?;
            Ok(terminal::print(&format!("{}\n", path.display()))?)
        }
        ConfigCommand::Show(_) => show(context),
        ConfigCommand::Init(args) => init(&file::path(args.config.as_deref())?),
        ConfigCommand::Set(args) => set(context, args),
    }
}

/// Changes one key of a profile.
fn set(context: &Context, args: &ConfigSetArgs) -> anyhow::Result<()> {
    let path = file::path(args.file.config.as_deref())?;
    let lock = context.storage.lock_private(&path)?;
    let mut document = ConfigDocument::open(Some(&path))?;
    let name = document.profile_name(args.profile.as_deref())?;
    document.set_typed(&name, &args.key, &args.value)?;
    let Some(text) = document.text()? else {
        terminal::conclude(&format!("`{}` already has this value", args.key));
        return Ok(());
    };
    context.storage.replace_private(&[PrivateFile {
        path: document.path.clone(),
        text,
        keeps_attributes: true,
    }])?;
    drop(lock);
    let place = match args.key.as_str() {
        "default_profile" => String::new(),
        _ => format!(" of the profile `{name}`"),
    };
    let (key, path) = (&args.key, document.path.display());
    terminal::conclude(&format!("set `{key}`{place} in `{path}`"));
    Ok(())
}

fn show(context: &Context) -> anyhow::Result<()> {
    let settings = context.settings()?;
    settings.client_options()?;
    if let Some(secret) = settings.secret()? {
        secret.value.warn_if_readable();
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for info in &SETTINGS {
        let (value, origin) = match info.key {
            "base_url" => shown(settings.base_url.as_ref(), |url| hide_password(url)),
            "client_id" => shown(settings.client_id.as_ref(), Clone::clone),
            "client_secret" => shown(settings.secret()?, |source| match source {
                SecretSource::Text(_) => "********".to_owned(),
                SecretSource::File(path) => format!("******** (in {path})"),
                SecretSource::Command(_) => "******** (from client_secret_command)".to_owned(),
            }),
            "api" => shown(Some(&settings.api), |api| api.name().to_owned()),
            "parallel" => shown(Some(&settings.parallel), ToString::to_string),
            "retries" => shown(Some(&settings.retries), ToString::to_string),
            "retry_wait" => shown(Some(&settings.retry_wait), duration),
            "timeout" => shown(Some(&settings.timeout), duration),
            "ca_cert" if settings.ca_cert.is_none() => {
                ("(the system's)".to_owned(), Origin::Default.to_string())
            }
            "ca_cert" => shown(settings.ca_cert.as_ref(), |path| path.display().to_string()),
            "allow_http" => shown(Some(&settings.allow_http), ToString::to_string),
            "time_zone" => shown(Some(&settings.time_zone), |zone| zone.name().to_owned()),
            // In the row of the client secret.
            _ => continue,
        };
        rows.push(vec![info.key.to_owned(), value, origin]);
    }
    for (key, value) in settings.targets.rows() {
        rows.push(vec![key, value.to_string(), "config file".to_owned()]);
    }
    Ok(terminal::print(&terminal::grid(&rows, &[]))?)
}

/// Returns the value of a setting, and its origin.
fn shown<T>(setting: Option<&Setting<T>>, text: impl Fn(&T) -> String) -> (String, String) {
    match setting {
        Some(setting) => (text(&setting.value), setting.origin.to_string()),
        None => ("(not set)".to_owned(), String::new()),
    }
}

/// Hides the user name and the password in a base URL.
fn hide_password(base_url: &str) -> String {
    match url::Url::parse(base_url) {
        Ok(url) if !matches!(url.scheme(), "https" | "http") => {
            "(neither https nor http)".to_owned()
        }
        Ok(url) if url.query().is_some() || url.fragment().is_some() => {
            "(has a query or a fragment)".to_owned()
        }
        Ok(url) if url.username().is_empty() && url.password().is_none() => base_url.to_owned(),
        Ok(mut url) => {
            // Neither can fail for a URL that has a user name or a password.
            let _ = url.set_password(None);
            let _ = url.set_username("********");
            url.to_string()
        }
        Err(_) => "(not a URL)".to_owned(),
    }
}

fn duration(duration: &Duration) -> String {
    humantime::format_duration(*duration).to_string()
}

/// Creates a config file that only the owner can read. Never overwrites an existing one.
fn init(path: &Path) -> anyhow::Result<()> {
    let failure = |error: io::Error| {
        let path = path.display();
        if error.kind() == io::ErrorKind::AlreadyExists {
            let message = format!("`{path}` already exists and was left unchanged");
            let hint = "edit it, or choose another path with `--config`";
            return Failure::new(Kind::Output, message).hint(hint);
        }
        Failure::new(Kind::Output, format!("cannot create `{path}`"))
            .caused_by(error)
            .hint("choose another path with `--config`")
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failure)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options.open(path).map_err(failure)?;
    let written = file.write_all(config::template().as_bytes());
    written.and_then(|()| file.sync_all()).map_err(|error| {
        // A part of it would only be in the way.
        let _ = std::fs::remove_file(path);
        failure(error)
    })?;
    terminal::conclude(&format!(
        "created `{}`; set base_url and the credentials in it, or run `trayscan login`",
        path.display()
    ));
    Ok(())
}
