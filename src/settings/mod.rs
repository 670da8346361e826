//! Settings: what holds, and where it came from.
//!
//! All precedence is here: flag, then environment variable, then the profile of the config file, then
//! the default. The command line and the file only say what was written.

pub(crate) mod file;
mod secret;

use std::fmt;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::ValueEnum as _;
use url::{Host, Url};

use crate::cli::{self, Api, ServiceArgs};
use crate::error::{Failure, Kind};
use file::Profile;
pub(crate) use secret::{Secret, conceal};

/// Where a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Variable(&'static str),
    /// The profile of that name.
    File(String),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Variable(variable) => write!(f, "{variable}"),
            Self::File(profile) => write!(f, "config file, profile {profile}"),
            Self::Default => write!(f, "default"),
        }
    }
}

/// A setting that holds, and its origin.
#[derive(Clone, Debug)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// How the service is asked.
#[derive(Clone, Debug)]
pub(crate) struct Manners {
    pub(crate) api: Setting<Api>,
    pub(crate) parallel: Setting<u32>,
    pub(crate) retries: Setting<u32>,
    pub(crate) retry_wait: Setting<Duration>,
    pub(crate) timeout: Setting<Duration>,
    pub(crate) ca_cert: Option<Setting<PathBuf>>,
    pub(crate) allow_http: Setting<bool>,
}

/// Which service is asked, and as whom.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) base_url: BaseUrl,
    pub(crate) client_id: String,
    pub(crate) client_secret: Secret,
    /// For hints when the credentials are refused.
    pub(crate) client_id_origin: Origin,
}

/// The words that were given, before anything is decided.
pub(crate) struct Settings<'a> {
    args: &'a ServiceArgs,
    from_environment: &'a [String],
    profile: Profile,
}

impl<'a> Settings<'a> {
    /// Reads the config file that belongs to the command line.
    pub(crate) fn read(
        args: &'a ServiceArgs,
        from_environment: &'a [String],
    ) -> Result<Self, Failure> {
        let profile = file::read(args.config.as_deref(), args.profile.as_deref())?;
        Ok(Self {
            args,
            from_environment,
            profile,
        })
    }

    /// Decides how the service is asked.
    pub(crate) fn manners(&self) -> Result<Manners, Failure> {
        let duration = |key: &str| self.word(key, cli::duration);
        let api = self.word("api", |word| {
            Api::from_str(word, false).map_err(|_| "write auto, v1 or v2".to_owned())
        })?;
        let manners = Manners {
            api: self.pick("api", self.args.api, api, Api::Auto),
            parallel: self.pick(
                "parallel",
                self.args.parallel,
                self.profile.number("parallel"),
                4,
            ),
            retries: self.pick(
                "retries",
                self.args.retries,
                self.profile.number("retries"),
                5,
            ),
            retry_wait: self.pick(
                "retry_wait",
                self.args.retry_wait,
                duration("retry_wait")?,
                Duration::from_secs(4),
            ),
            timeout: self.pick(
                "timeout",
                self.args.timeout,
                duration("timeout")?,
                Duration::from_secs(60),
            ),
            ca_cert: self
                .text("ca_cert", self.args.ca_cert.as_ref())
                .map(|setting| Setting {
                    value: expand_home(&setting.value),
                    origin: setting.origin,
                }),
            allow_http: self.pick(
                "allow_http",
                self.args.allow_http,
                self.profile.switch("allow_http"),
                false,
            ),
        };
        let zero = |setting: &str, origin: &Origin| {
            Err(
                Failure::new(Kind::Usage, format!("`{setting}` is zero (from {origin})"))
                    .hint("give a number from 1 up"),
            )
        };
        match &manners {
            Manners {
                parallel: Setting { value: 0, origin },
                ..
            } => zero("parallel", origin),
            Manners { timeout, .. } if timeout.value.is_zero() => zero("timeout", &timeout.origin),
            _ => Ok(manners),
        }
    }

    /// Decides which service is asked, and as whom.
    pub(crate) fn access(&self, manners: &Manners) -> Result<Access, Failure> {
        let Some(base_url) = self.base_url() else {
            return Err(missing(
                "the address of the service",
                "--base-url",
                "TRAYSCAN_BASE_URL",
                "base_url",
            ));
        };
        let base_url =
            BaseUrl::parse(&base_url.value, manners.allow_http.value).map_err(|failure| {
                failure.caused_by(anyhow::anyhow!("it came from {}", base_url.origin))
            })?;
        let Some(client_id) = self.client_id() else {
            return Err(missing(
                "the client id",
                "--client-id",
                "TRAYSCAN_CLIENT_ID",
                "client_id",
            ));
        };
        let Some(source) = self.secret_source()? else {
            return Err(missing(
                "the client secret",
                "--client-secret-file",
                "TRAYSCAN_CLIENT_SECRET",
                "client_secret_file",
            ));
        };
        Ok(Access {
            base_url,
            client_id: client_id.value,
            client_id_origin: client_id.origin,
            client_secret: source.value.read()?,
        })
    }

    pub(crate) fn base_url(&self) -> Option<Setting<String>> {
        self.text("base_url", self.args.base_url.as_ref())
    }

    pub(crate) fn client_id(&self) -> Option<Setting<String>> {
        self.text("client_id", self.args.client_id.as_ref())
    }

    /// Decides where the secret comes from, without reading it yet.
    pub(crate) fn secret_source(&self) -> Result<Option<Setting<SecretSource>>, Failure> {
        let args = self.args;
        let profile = &self.profile;
        let given = [
            args.client_secret
                .as_ref()
                .map(|text| ("client_secret", SecretSource::Text(Secret::new(text)))),
            args.client_secret_file
                .as_ref()
                .map(|path| ("client_secret_file", SecretSource::File(path.clone()))),
        ];
        let given: Vec<_> = given
            .into_iter()
            .flatten()
            .filter(|(_, source)| !source.is_empty())
            .map(|(key, value)| Setting {
                value,
                origin: self.given_origin(key),
            })
            .collect();
        let filed = [
            profile
                .text("client_secret")
                .map(|text| SecretSource::Text(Secret::new(text))),
            profile
                .text("client_secret_file")
                .map(|path| SecretSource::File(path.to_owned())),
            profile
                .command("client_secret_command")
                .map(SecretSource::Command),
        ];
        let filed: Vec<_> = filed
            .into_iter()
            .flatten()
            .filter(|source| !source.is_empty())
            .map(|value| Setting {
                value,
                origin: Origin::File(profile.name.clone()),
            })
            .collect();
        let is_flag = |setting: &&Setting<SecretSource>| matches!(setting.origin, Origin::Flag(_));
        let layers = [
            given.iter().filter(is_flag).collect::<Vec<_>>(),
            given.iter().filter(|setting| !is_flag(setting)).collect(),
            filed.iter().collect(),
        ];
        let Some(layer) = layers.into_iter().find(|layer| !layer.is_empty()) else {
            return Ok(None);
        };
        match layer[..] {
            [one] => Ok(Some(one.clone())),
            _ => Err(Failure::new(
                Kind::Usage,
                format!(
                    "the client secret is given twice in one place ({})",
                    layer[0].origin
                ),
            )
            .hint("keep one: the secret, its file, or the command that prints it")),
        }
    }

    /// Picks a text; an empty one counts as not given.
    fn text(&self, key: &'static str, given: Option<&String>) -> Option<Setting<String>> {
        let given = given.filter(|text| !text.is_empty()).cloned();
        let filed = self
            .profile
            .text(key)
            .filter(|text| !text.is_empty())
            .map(String::from);
        given
            .map(|value| Setting {
                value,
                origin: self.given_origin(key),
            })
            .or_else(|| {
                filed.map(|value| Setting {
                    value,
                    origin: Origin::File(self.profile.name.clone()),
                })
            })
    }

    fn pick<T>(
        &self,
        key: &'static str,
        given: Option<T>,
        filed: Option<T>,
        default: T,
    ) -> Setting<T> {
        match (given, filed) {
            (Some(value), _) => Setting {
                value,
                origin: self.given_origin(key),
            },
            (None, Some(value)) => Setting {
                value,
                origin: Origin::File(self.profile.name.clone()),
            },
            (None, None) => Setting {
                value: default,
                origin: Origin::Default,
            },
        }
    }

    /// Reads a word of the profile.
    fn word<T>(
        &self,
        key: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Failure> {
        self.profile
            .text(key)
            .map(read)
            .transpose()
            .map_err(|advice| {
                let place = format!("profiles.{}.{key}", self.profile.name);
                Failure::new(
                    Kind::Usage,
                    format!("`{place}` in the config file is not valid"),
                )
                .hint(advice)
            })
    }

    /// Tells flags from variables.
    fn given_origin(&self, key: &str) -> Origin {
        let (_, flag, variable) = NAMES
            .iter()
            .find(|(name, ..)| *name == key)
            .expect("every setting is listed");
        if self.from_environment.iter().any(|name| name == key) {
            Origin::Variable(variable)
        } else {
            Origin::Flag(flag)
        }
    }
}

/// Every setting: its key, its flag, its variable.
const NAMES: [(&str, &str, &str); 11] = [
    ("base_url", "--base-url", "TRAYSCAN_BASE_URL"),
    ("client_id", "--client-id", "TRAYSCAN_CLIENT_ID"),
    ("client_secret", "--client-secret", "TRAYSCAN_CLIENT_SECRET"),
    (
        "client_secret_file",
        "--client-secret-file",
        "TRAYSCAN_CLIENT_SECRET_FILE",
    ),
    ("api", "--api", "TRAYSCAN_API"),
    ("parallel", "--parallel", "TRAYSCAN_PARALLEL"),
    ("retries", "--retries", "TRAYSCAN_RETRIES"),
    ("retry_wait", "--retry-wait", "TRAYSCAN_RETRY_WAIT"),
    ("timeout", "--timeout", "TRAYSCAN_TIMEOUT"),
    ("ca_cert", "--ca-cert", "TRAYSCAN_CA_CERT"),
    ("allow_http", "--allow-http", "TRAYSCAN_ALLOW_HTTP"),
];

fn missing(what: &str, flag: &str, variable: &str, key: &str) -> Failure {
    Failure::new(Kind::Usage, format!("{what} is missing")).hint(format!(
        "give it with `{flag}`, in the variable {variable}, or as `{key}` in the config file \
         (`trayscan config init` begins one); without credentials, `--sandbox` shows made-up batches"
    ))
}

/// Where the secret stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SecretSource {
    Text(Secret),
    /// A path; `-` is standard input.
    File(String),
    /// Words to run; what it prints is the secret.
    Command(Vec<String>),
}

impl SecretSource {
    fn is_empty(&self) -> bool {
        match self {
            Self::Text(secret) => secret.expose().is_empty(),
            Self::File(path) => path.is_empty(),
            Self::Command(words) => words.is_empty(),
        }
    }

    fn read(&self) -> Result<Secret, Failure> {
        let (text, whence) = match self {
            Self::Text(secret) => return Ok(secret.clone()),
            Self::File(path) => (read_file(path)?, format!("`{path}`")),
            Self::Command(words) => (
                run(words)?,
                "the output of `client_secret_command`".to_owned(),
            ),
        };
        let secret = text.strip_suffix('\n').map_or(text.as_str(), |line| {
            line.strip_suffix('\r').unwrap_or(line)
        });
        if secret.is_empty() {
            return Err(
                Failure::new(Kind::Usage, format!("there is no secret in {whence}"))
                    .hint("it should hold the client secret and nothing else"),
            );
        }
        Ok(Secret::new(secret))
    }
}

fn read_file(path: &str) -> Result<String, Failure> {
    let read = if path == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(expand_home(path))
    };
    read.map_err(|error| {
        Failure::new(
            Kind::Usage,
            format!("cannot read the client secret from `{path}`"),
        )
        .caused_by(error)
    })
}

fn run(words: &[String]) -> Result<String, Failure> {
    let failure = || {
        Failure::new(
            Kind::Usage,
            "`client_secret_command` in the config file failed",
        )
    };
    let [program, args @ ..] = words else {
        return Err(failure().hint("it is empty"));
    };
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::inherit())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failure().caused_by(error))?;
    if !output.status.success() {
        return Err(failure().caused_by(anyhow::anyhow!("it ended with {}", output.status)));
    }
    // What it printed is no text: saying more could say the secret.
    String::from_utf8(output.stdout).map_err(|_| failure().hint("what it prints is no text"))
}

/// Replaces a leading `~` by the home folder.
fn expand_home(path: &str) -> PathBuf {
    let home = directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_path_buf());
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

/// The address of the service: checked, and safe to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaseUrl(Url);

impl BaseUrl {
    pub(crate) fn parse(text: &str, allow_http: bool) -> Result<Self, Failure> {
        let refuse = |why: &str| {
            Failure::new(Kind::Usage, format!("the address of the service {why}"))
                .hint("write it like https://scan.example.com/api")
        };
        // The text itself is not shown before it is known to hold no password.
        let url = Url::parse(text).map_err(|_| refuse("is no URL"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("holds a user name or a password"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("has a query or a fragment"));
        }
        match url.scheme() {
            "https" => {}
            "http" if allow_http || is_loopback(&url) => {}
            "http" => {
                return Err(Failure::new(
                    Kind::Unsafe,
                    format!("{url} is plain http to another machine: everybody between could read the secret"),
                )
                .hint("use https, or allow it with `--allow-http`"));
            }
            _ => return Err(refuse("is neither https nor http")),
        }
        if url.host().is_none() {
            return Err(refuse("names no host"));
        }
        Ok(Self(url))
    }

    /// Returns the address of `path` (such as `/v2/auth`) below this one.
    pub(crate) fn join(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        let whole = format!("{}{path}", url.path().trim_end_matches('/'));
        url.set_path(&whole);
        url
    }

    pub(crate) fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(&self.0)
    }

    pub(crate) fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Option<Kind> {
        BaseUrl::parse(text, false)
            .err()
            .map(|failure| failure.kind)
    }

    #[test]
    fn addresses_are_checked_before_anything_is_sent() {
        for fine in [
            "https://a.example",
            "https://a.example:8443/api/",
            "http://localhost:1",
            "http://127.9.9.9",
            "http://[::1]:8080/x",
        ] {
            assert_eq!(kind(fine), None, "{fine}");
        }
        for unsafe_ in [
            "http://a.example",
            "http://10.0.0.1",
            "http://localhost.example",
            "http://[::2]",
        ] {
            assert_eq!(kind(unsafe_), Some(Kind::Unsafe), "{unsafe_}");
            assert!(BaseUrl::parse(unsafe_, true).is_ok());
        }
        for wrong in [
            "",
            "a.example",
            "ftp://a.example",
            "https://u:p@a.example",
            "https://u@a.example",
            "https://a.example?x",
            "https://a.example#x",
        ] {
            assert_eq!(kind(wrong), Some(Kind::Usage), "{wrong}");
        }
        let failure = BaseUrl::parse("https://u:hunter2@a.example", false).expect_err("a password");
        assert!(!format!("{failure:?}").contains("hunter2"));
    }

    #[test]
    fn paths_are_joined_with_one_slash() {
        let join = |text: &str| {
            BaseUrl::parse(text, false)
                .expect("fine")
                .join("/v2/auth")
                .to_string()
        };
        assert_eq!(join("https://a.example"), "https://a.example/v2/auth");
        assert_eq!(
            join("https://a.example/api/"),
            "https://a.example/api/v2/auth"
        );
    }

    #[test]
    fn secrets_hide_from_debug() {
        assert!(!format!("{:?}", SecretSource::Text(Secret::new("hunter2"))).contains("hunter2"));
    }
}
