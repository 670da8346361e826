//! `config`: prints the path of the config file or the settings in effect, or creates a config file.

use super::context::Context;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::cli::{ConfigCommand, ServiceArgs};
use crate::client::Setting;
use crate::config::{SecretSource, Settings, file};
use crate::error::{Failure, Kind};
use crate::terminal;

pub(super) fn run(context: &Context, command: &ConfigCommand) -> anyhow::Result<()> {
    match command {
        ConfigCommand::Path(args) => {
            let path = path(args.config.as_deref())?;
            Ok(terminal::print(&format!("{}\n", path.display()))?)
        }
        ConfigCommand::Show(args) => show(context, args),
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

fn show(context: &Context, args: &ServiceArgs) -> anyhow::Result<()> {
    let settings = Settings::read(args, &context.from_environment)?;
    let options = settings.client_options()?;
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
    let api = format!("{:?}", options.api.value).to_lowercase();
    row("api", api, options.api.origin.to_string());
    row(
        "parallel",
        options.parallel.value.to_string(),
        options.parallel.origin.to_string(),
    );
    row(
        "retries",
        options.retries.value.to_string(),
        options.retries.origin.to_string(),
    );
    row(
        "retry_wait",
        duration(&options.retry_wait),
        options.retry_wait.origin.to_string(),
    );
    row(
        "timeout",
        duration(&options.timeout),
        options.timeout.origin.to_string(),
    );
    match &options.ca_cert {
        Some(setting) => row(
            "ca_cert",
            setting.value.display().to_string(),
            setting.origin.to_string(),
        ),
        None => row("ca_cert", "(the system's)".to_owned(), "default".to_owned()),
    }
    row(
        "allow_http",
        options.allow_http.value.to_string(),
        options.allow_http.origin.to_string(),
    );
    for (key, value) in settings.targets().rows() {
        row(&key, value.to_string(), "config file".to_owned());
    }

    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
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

/// Hides the user name and the password in a base URL.
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
            // Neither can fail for a URL that has a user name or a password.
            let _ = url.set_password(None);
            let _ = url.set_username("********");
            url.to_string()
        }
        Err(_) => "(not a URL)".to_owned(),
    };
    Setting { value, origin }
}

fn duration(setting: &Setting<std::time::Duration>) -> String {
    humantime::format_duration(setting.value).to_string()
}

/// Creates a config file that only the owner can read. Never overwrites an existing one.
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
