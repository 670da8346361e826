//! `config`: where settings come from.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::cli::{Cli, ConfigCommand, ServiceArgs};
use crate::client::Setting;
use crate::config::{SecretSource, Settings, file};
use crate::error::{Failure, Kind};
use crate::terminal;

pub(super) fn run(cli: &Cli, command: &ConfigCommand) -> anyhow::Result<()> {
    match command {
        ConfigCommand::Path(args) => {
            let path = path(args.config.as_deref())?;
            Ok(terminal::print(&format!("{}\n", path.display()))?)
        }
        ConfigCommand::Show(args) => show(cli, args),
        ConfigCommand::Init(args) => init(&path(args.config.as_deref())?),
    }
}

fn path(given: Option<&Path>) -> Result<PathBuf, Failure> {
    given
        .map(Path::to_path_buf)
        .or_else(file::default_path)
        .ok_or_else(|| {
            Failure::new(
                Kind::Usage,
                "no default path for the config file: there is no home folder",
            )
            .hint("set the path with `--config` or TRAYSCAN_CONFIG")
        })
}

fn show(cli: &Cli, args: &ServiceArgs) -> anyhow::Result<()> {
    let settings = Settings::read(args, &cli.from_environment)?;
    let manners = settings.client_options()?;
    let mut rows: Vec<[String; 3]> = Vec::new();
    let mut row =
        |key: &str, value: String, origin: String| rows.push([key.to_owned(), value, origin]);
    let text = |setting: Option<Setting<String>>| match setting {
        Some(setting) => (setting.value, setting.origin.to_string()),
        None => ("(not set)".to_owned(), String::new()),
    };
    let (value, origin) = text(settings.base_url().map(hide_password));
    row("base_url", value, origin);
    let (value, origin) = text(settings.client_id());
    row("client_id", value, origin);
    match settings.secret_source()? {
        None => row("client_secret", "(not set)".to_owned(), String::new()),
        Some(Setting { value, origin }) => {
            let shown = match value {
                SecretSource::Text(_) => "********".to_owned(),
                SecretSource::File(path) => format!("******** (in {path})"),
                SecretSource::Command(_) => "******** (from client_secret_command)".to_owned(),
            };
            row("client_secret", shown, origin.to_string());
        }
    }
    let api = format!("{:?}", manners.api.value).to_lowercase();
    row("api", api, manners.api.origin.to_string());
    row(
        "parallel",
        manners.parallel.value.to_string(),
        manners.parallel.origin.to_string(),
    );
    row(
        "retries",
        manners.retries.value.to_string(),
        manners.retries.origin.to_string(),
    );
    row(
        "retry_wait",
        duration(&manners.retry_wait),
        manners.retry_wait.origin.to_string(),
    );
    row(
        "timeout",
        duration(&manners.timeout),
        manners.timeout.origin.to_string(),
    );
    match &manners.ca_cert {
        Some(setting) => row(
            "ca_cert",
            setting.value.display().to_string(),
            setting.origin.to_string(),
        ),
        None => row("ca_cert", "(the system's)".to_owned(), "default".to_owned()),
    }
    row(
        "allow_http",
        manners.allow_http.value.to_string(),
        manners.allow_http.origin.to_string(),
    );
    for (key, value) in settings.targets().rows() {
        row(&key, value.to_string(), "config file".to_owned());
    }

    let width = |place: usize| {
        rows.iter()
            .map(|row| row[place].chars().count())
            .max()
            .unwrap_or(0)
    };
    let (keys, values) = (width(0), width(1));
    let lines: Vec<String> = rows
        .iter()
        .map(|[key, value, origin]| {
            format!("{key:keys$}  {value:values$}  {origin}")
                .trim_end()
                .to_owned()
        })
        .collect();
    Ok(terminal::print(&(lines.join("\n") + "\n"))?)
}

/// A password has no place in an address; where one stands there, it is not shown.
fn hide_password(setting: Setting<String>) -> Setting<String> {
    let Setting { value, origin } = setting;
    let value = match url::Url::parse(&value) {
        Ok(url) if !matches!(url.scheme(), "https" | "http") => {
            "(neither https nor http)".to_owned()
        }
        Ok(url) if url.query().is_some() || url.fragment().is_some() => {
            "(has a query or a fragment)".to_owned()
        }
        Ok(url) if url.username().is_empty() && url.password().is_none() => value,
        Ok(mut url) => {
            // Neither can fail for an address that has a password.
            let _ = url.set_password(None);
            let _ = url.set_username("********");
            url.to_string()
        }
        Err(_) => "(no URL)".to_owned(),
    };
    Setting { value, origin }
}

fn duration(setting: &Setting<std::time::Duration>) -> String {
    humantime::format_duration(setting.value).to_string()
}

/// Writes a config file for the owner's eyes only; never over one that is there.
fn init(path: &Path) -> anyhow::Result<()> {
    let failure = |error: io::Error| {
        let path = path.display();
        if error.kind() == io::ErrorKind::AlreadyExists {
            let message = format!("`{path}` already exists and was left unchanged");
            return Failure::new(Kind::Output, message)
                .hint("edit it, or choose another path with `--config`");
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
    file.write_all(file::TEMPLATE.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(failure)?;
    terminal::conclude(&format!(
        "created `{}`; set base_url and the credentials in it",
        path.display()
    ));
    Ok(())
}
