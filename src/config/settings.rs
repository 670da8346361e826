//! Resolves every setting: flag, then environment variable, then the profile of the config file, then the default.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::file::expand_home;
use super::file::{self, ChosenProfile};
use super::profile::{Profile, line_of};
use super::secret_source::SecretSource;
use super::table;
use crate::analysis::Targets;
use crate::batch::Zone;
use crate::client::certificates::CertificateFile;
use crate::client::retry::RetryPolicy;
use crate::client::{Api, BaseUrl, ClientOptions, Credentials};
use crate::error::Failure;
use crate::secret::Secret;
use crate::text;

/// The settings given as flags and as variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub(crate) flags: Profile,
    pub(crate) variables: Profile,
}

impl Given {
    /// Returns the flags that name a service and its credentials.
    pub(crate) fn service_flags(&self) -> impl Iterator<Item = &'static str> {
        let flags = &self.flags;
        let texts = [
            ("--base-url", &flags.base_url),
            ("--client-id", &flags.client_id),
            ("--client-secret", &flags.client_secret),
            ("--client-secret-file", &flags.client_secret_file),
        ];
        let given = texts.into_iter().filter(|(_, text)| text.is_some());
        given.map(|(flag, _)| flag)
    }
}

/// The value of a setting, and its origin.
#[derive(Clone, Debug)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// Where a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Variable(&'static str),
    /// The profile of that name.
    File(String),
    /// A person typed it.
    Prompt,
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Variable(variable) => write!(f, "{variable}"),
            Self::File(profile) => write!(f, "config file, profile {profile}"),
            Self::Prompt => write!(f, "the prompt"),
            Self::Default => write!(f, "default"),
        }
    }
}

/// The settings in effect.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The config file, which may not exist.
    pub(crate) config: Option<PathBuf>,
    /// The name of the profile; empty without one.
    pub(crate) profile: String,
    /// The profiles of a config file that has none with the default name, if none was requested.
    other_profiles: Vec<String>,
    /// The targets in the config file.
    pub(crate) targets: Targets,
    pub(crate) base_url: Option<Setting<String>>,
    pub(crate) client_id: Option<Setting<String>>,
    /// Where the secret is, in the first place that has any: more than one is a mistake.
    secrets: Vec<Setting<SecretSource>>,
    /// The client secret file, if one is set anywhere.
    pub(crate) secret_file: Option<PathBuf>,
    /// All of them, also those of profiles that are not in use.
    pub(crate) secret_files: Vec<PathBuf>,
    pub(crate) api: Setting<Api>,
    pub(crate) parallel: Setting<u32>,
    pub(crate) retries: Setting<u32>,
    pub(crate) retry_wait: Setting<Duration>,
    pub(crate) timeout: Setting<Duration>,
    pub(crate) ca_cert: Option<Setting<PathBuf>>,
    pub(crate) allow_http: Setting<bool>,
    pub(crate) time_zone: Setting<Zone>,
}

impl Settings {
    /// Reads the config file at `path`, or the default one, and resolves the settings. `profile` is the requested profile.
    pub(crate) fn read(
        given: &Given,
        path: Option<&Path>,
        profile: Option<&str>,
    ) -> Result<Self, Failure> {
        let chosen = file::read(path, profile)?;
        let config = path.map(Path::to_path_buf).or_else(file::default_path);
        Ok(Self::resolve(given, chosen, config))
    }

    pub(super) fn resolve(given: &Given, chosen: ChosenProfile, config: Option<PathBuf>) -> Self {
        let seconds = Duration::from_secs;
        let layers = Layers {
            given,
            chosen: &chosen,
        };
        let text = |key, get: fn(&Profile) -> &Option<String>| {
            layers.first(key, |profile| {
                // An empty text counts as not set.
                get(profile).clone().filter(|text| !text.is_empty())
            })
        };
        Self {
            base_url: text("base_url", |profile| &profile.base_url),
            client_id: text("client_id", |profile| &profile.client_id),
            secrets: layers.secrets(),
            secret_file: layers.secret_file(),
            secret_files: layers.secret_files(),
            api: layers.pick("api", |profile| profile.api, Api::Auto),
            parallel: layers.pick("parallel", |profile| profile.parallel, 4),
            retries: layers.pick("retries", |profile| profile.retries, 5),
            retry_wait: layers.pick("retry_wait", |profile| profile.retry_wait, seconds(4)),
            timeout: layers.pick("timeout", |profile| profile.timeout, seconds(60)),
            ca_cert: text("ca_cert", |profile| &profile.ca_cert).map(|setting| Setting {
                value: expand_home(&setting.value),
                origin: setting.origin,
            }),
            allow_http: layers.pick("allow_http", |profile| profile.allow_http, false),
            time_zone: layers.pick("time_zone", |profile| profile.time_zone.clone(), Zone::UTC),
            config,
            profile: chosen.name,
            other_profiles: chosen.others,
            targets: chosen.targets,
        }
    }

    /// Returns how to send requests to the service.
    pub(crate) fn client_options(&self) -> Result<ClientOptions, Failure> {
        if self.parallel.value == 0 {
            let expected = "a whole number, at least 1, such as 4";
            return Err(self.invalid("parallel", &self.parallel.origin, "0", expected));
        }
        if self.timeout.value.is_zero() {
            let expected = "longer than zero, such as 60s";
            return Err(self.invalid("timeout", &self.timeout.origin, "0s", expected));
        }
        Ok(ClientOptions {
            api: self.api.value,
            parallel: self.parallel.value,
            retry: RetryPolicy {
                retries: self.retries.value,
                wait: self.retry_wait.value,
            },
            timeout: self.timeout.value,
            ca_cert: self.ca_cert.as_ref().map(|setting| CertificateFile {
                path: setting.value.clone(),
                place: self.place("ca_cert", &setting.origin),
            }),
            allow_http: self.allow_http.value,
        })
    }

    /// Returns which service to use, and the client ID.
    pub(crate) fn service(&self, options: &ClientOptions) -> Result<(BaseUrl, &str), Failure> {
        let Some(base_url) = self.parsed_base_url(options.allow_http)? else {
            let failure = missing("the base URL of the service", "base_url");
            return Err(match self.other_profiles.first() {
                Some(other) => failure.hint(format!(
                    "the config file has no profile `default`; use another with `--profile {}`, or set `default_profile`; available profiles: {}",
                    text::for_shell(other),
                    self.other_profiles.join(", ")
                )),
                None => failure,
            });
        };
        let Some(client_id) = &self.client_id else {
            return Err(missing("the client ID", "client_id"));
        };
        Ok((base_url, &client_id.value))
    }

    /// Returns which service to use, with which credentials. Reads the secret.
    pub(crate) fn credentials(&self, options: &ClientOptions) -> Result<Credentials, Failure> {
        let (base_url, client_id) = self.service(options)?;
        let Some(secret) = self.secret()? else {
            return Err(missing("the client secret", "client_secret_file"));
        };
        if let Some(shorter) = base_url.without_version() {
            log::warn!(
                "the base URL {base_url} contains the API version, which is added to it; did you mean {shorter}?"
            );
        }
        secret.value.warn_if_readable();
        Ok(Credentials {
            base_url,
            client_id: client_id.to_owned(),
            client_secret: secret
                .value
                .read(&self.place(secret.value.key(), &secret.origin))?,
        })
    }

    /// Returns the base URL, if there is one.
    pub(crate) fn parsed_base_url(&self, allow_http: bool) -> Result<Option<BaseUrl>, Failure> {
        let Some(base_url) = &self.base_url else {
            return Ok(None);
        };
        let name = match &base_url.origin {
            Origin::Prompt | Origin::Default => "the base URL".to_owned(),
            origin => self.place("base_url", origin),
        };
        BaseUrl::parse_named(&name, &base_url.value, allow_http).map(Some)
    }

    /// Names the place that the value of `key` is from.
    fn place(&self, key: &str, origin: &Origin) -> String {
        let profile = match origin {
            Origin::Flag(flag) => return format!("`{flag}`"),
            Origin::Variable(variable) => return (*variable).to_owned(),
            Origin::File(profile) => profile,
            Origin::Prompt | Origin::Default => &self.profile,
        };
        let config = self.config.as_deref().unwrap_or(Path::new(""));
        // A pipe cannot be read again.
        let text = config.is_file().then(|| file::read_text(config).ok());
        let text = text.flatten().unwrap_or_default();
        let line = line_of(&text, &["profiles", profile, key]);
        let line = line.map_or_else(String::new, |line| format!(" on line {line}"));
        let config = config.display();
        format!("`profiles.{profile}.{key}`{line} in the config file `{config}`")
    }

    /// Replaces the secret with one that was typed.
    pub(crate) fn set_typed_secret(&mut self, secret: Secret) {
        self.secrets = vec![Setting {
            value: SecretSource::Text(secret),
            origin: Origin::Prompt,
        }];
    }

    /// Forgets a secret of the config file. Returns whether there was one.
    pub(crate) fn forget_stored_secret(&mut self) -> bool {
        let count = self.secrets.len();
        let is_stored = |secret: &Setting<_>| matches!(secret.origin, Origin::File(_));
        self.secrets.retain(|secret| !is_stored(secret));
        self.secrets.len() < count
    }

    /// Returns where to read the secret from, without reading it yet.
    pub(crate) fn secret(&self) -> Result<Option<&Setting<SecretSource>>, Failure> {
        match &self.secrets[..] {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            [first, second, ..] => {
                let (one, other) = (&first.origin, &second.origin);
                let message = if one == other {
                    format!("the client secret is set twice in the same place ({one})")
                } else {
                    format!("the client secret is set twice ({one} and {other})")
                };
                let hint = "keep one: the secret, its file, or the command that prints it";
                Err(Failure::usage(message, hint))
            }
        }
    }

    /// Refuses a value and says what it must be. Quotes `value` unless it is from the config file.
    fn invalid(&self, key: &str, origin: &Origin, value: &str, expected: &str) -> Failure {
        let place = self.place(key, origin);
        let message = format!("{place} is `{value}`; it must be {expected}");
        match origin {
            Origin::Flag(_) | Origin::Variable(_) => {
                let hint = format!("change {place}, or remove it");
                Failure::usage(message, hint)
            }
            Origin::File(_) | Origin::Prompt | Origin::Default => Failure::usage(
                format!("invalid value for {place}"),
                format!("it must be {expected}"),
            ),
        }
    }
}

/// The places that may have a setting, in the order of precedence.
struct Layers<'a> {
    given: &'a Given,
    chosen: &'a ChosenProfile,
}

impl Layers<'_> {
    /// Returns the settings of each place, and the origin of one of them.
    fn all(&self) -> [(&Profile, impl Fn(&str) -> Origin); 3] {
        let origin = |layer: usize| {
            move |key: &str| match layer {
                0 => Origin::Flag(table::info(key).flag),
                1 => Origin::Variable(table::info(key).variable),
                _ => Origin::File(self.chosen.name.clone()),
            }
        };
        [
            (&self.given.flags, origin(0)),
            (&self.given.variables, origin(1)),
            (&self.chosen.profile, origin(2)),
        ]
    }

    fn first<T>(&self, key: &str, get: impl Fn(&Profile) -> Option<T>) -> Option<Setting<T>> {
        self.all().into_iter().find_map(|(profile, origin)| {
            Some(Setting {
                value: get(profile)?,
                origin: origin(key),
            })
        })
    }

    fn pick<T>(&self, key: &str, get: impl Fn(&Profile) -> Option<T>, default: T) -> Setting<T> {
        self.first(key, get).unwrap_or(Setting {
            value: default,
            origin: Origin::Default,
        })
    }

    /// Returns where the secret is, in the first place that has any.
    fn secrets(&self) -> Vec<Setting<SecretSource>> {
        let places = self.all().into_iter().map(|(profile, origin)| {
            let text = profile.client_secret.as_ref();
            let text = text.filter(|text| !text.is_empty());
            let file = profile.client_secret_file.clone();
            let file = file.filter(|path| !path.is_empty());
            let command = profile.client_secret_command.clone();
            let sources = [
                text.map(|text| SecretSource::Text(Secret::new(text))),
                file.map(SecretSource::File),
                command.map(SecretSource::Command),
            ];
            let sources = sources.into_iter().flatten().map(|value| Setting {
                origin: origin(value.key()),
                value,
            });
            sources.collect::<Vec<_>>()
        });
        // All are read, so that each secret is known and concealed.
        let places: Vec<_> = places.collect();
        let first = places.into_iter().find(|sources| !sources.is_empty());
        first.unwrap_or_default()
    }

    fn secret_file(&self) -> Option<PathBuf> {
        let path = self.first("client_secret_file", |profile| {
            profile.client_secret_file.clone()
        });
        path.map(|path| expand_home(&path.value))
    }

    fn secret_files(&self) -> Vec<PathBuf> {
        let given = [&self.given.flags, &self.given.variables].into_iter();
        let given = given.filter_map(|profile| profile.client_secret_file.as_ref());
        let files = given.chain(&self.chosen.secret_files);
        files.map(|path| expand_home(path)).collect()
    }
}

fn missing(what: &str, key: &str) -> Failure {
    let (flag, variable) = match key {
        // The secret itself is a safe value of a variable, but not of a flag.
        "client_secret_file" => ("--client-secret-file", "TRAYSCAN_CLIENT_SECRET"),
        _ => (table::info(key).flag, table::info(key).variable),
    };
    let hint = format!(
        "`trayscan login` asks for it and saves it; or set it with `{flag}`, {variable}, or `{key}` in \
         the config file; to try trayscan without a service, use `--sandbox`"
    );
    Failure::usage(format!("{what} is missing"), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resolves flags, variables and a profile, each written as TOML.
    fn resolve(flags: &str, variables: &str, file: &str) -> Settings {
        let read = |text: &str| {
            let table = text.parse().expect("TOML");
            Profile::read(table).expect("a profile")
        };
        let given = Given {
            flags: read(flags),
            variables: read(variables),
        };
        let chosen = ChosenProfile {
            name: "default".to_owned(),
            profile: read(file),
            ..ChosenProfile::default()
        };
        Settings::resolve(&given, chosen, Some("config.toml".into()))
    }

    fn refused<T>(result: Result<T, Failure>) -> String {
        match result {
            Ok(_) => String::new(),
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn the_first_place_that_has_a_setting_wins() {
        let (flags, variables, file) = ("retries = 1", "retries = 2", "retries = 3");
        for (settings, value, origin) in [
            (resolve(flags, variables, file), 1, "--retries"),
            (resolve("", variables, file), 2, "TRAYSCAN_RETRIES"),
            (resolve("", "", file), 3, "config file, profile default"),
            (resolve("", "", ""), 5, "default"),
        ] {
            assert_eq!(settings.retries.value, value);
            assert_eq!(settings.retries.origin.to_string(), origin);
        }
    }

    #[test]
    fn an_empty_text_counts_as_not_set() {
        let settings = resolve(
            "base_url = \"\"",
            "",
            "base_url = \"http://a\"\nclient_id = \"\"",
        );
        assert_eq!(
            settings.base_url.map(|url| url.value).as_deref(),
            Some("http://a")
        );
        assert!(settings.client_id.is_none());
    }

    #[test]
    fn the_client_gets_every_setting() {
        let text = "api = \"v1\"\nparallel = 9\nretries = 8\nretry_wait = \"7s\"\ntimeout = \"6s\"\n\
                    ca_cert = \"ca.pem\"\nallow_http = true\n";
        for settings in [
            resolve(text, "", ""),
            resolve("", text, ""),
            resolve("", "", text),
        ] {
            let options = settings.client_options().expect("options");
            assert_eq!(options.api, Api::V1);
            assert_eq!((options.parallel, options.retry.retries), (9, 8));
            assert_eq!(options.retry.wait, Duration::from_secs(7));
            assert_eq!(options.timeout, Duration::from_secs(6));
            let ca_cert = options.ca_cert.map(|file| file.path);
            assert_eq!(ca_cert.as_deref(), Some(Path::new("ca.pem")));
            assert!(options.allow_http);
        }
    }

    #[test]
    fn zero_is_refused_with_its_origin() {
        let zero = "parallel = 0";
        for (settings, message) in [
            (
                resolve(zero, "", ""),
                "`--parallel` is `0`; it must be a whole number, at least 1, such as 4",
            ),
            (
                resolve("", zero, ""),
                "TRAYSCAN_PARALLEL is `0`; it must be a whole number, at least 1, such as 4",
            ),
            (
                resolve("", "", zero),
                "invalid value for `profiles.default.parallel` in the config file `config.toml`",
            ),
            (
                resolve("timeout = \"0s\"", "", ""),
                "`--timeout` is `0s`; it must be longer than zero, such as 60s",
            ),
        ] {
            assert_eq!(refused(settings.client_options()), message);
        }
    }

    #[test]
    fn the_secret_is_taken_from_one_place() {
        let file = "client_secret_file = \"in-file\"";
        let flags = "client_secret_file = \"in-flag\"";
        let found = |settings: &Settings| match settings.secret() {
            Ok(Some(Setting {
                value: SecretSource::File(path),
                origin,
            })) => format!("{path}: {origin}"),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            found(&resolve(flags, "", file)),
            "in-flag: --client-secret-file"
        );
        assert_eq!(
            found(&resolve("", "", file)),
            "in-file: config file, profile default"
        );
        let twice = "client_secret = \"hunter2\"\nclient_secret_file = \"a\"";
        for (settings, message) in [
            (
                resolve(twice, "", ""),
                "the client secret is set twice (--client-secret and --client-secret-file)",
            ),
            (
                resolve("", "", twice),
                "the client secret is set twice in the same place (config file, profile default)",
            ),
        ] {
            assert_eq!(refused(settings.secret()), message);
            assert!(!format!("{settings:?}").contains("hunter2"));
        }
    }

    #[test]
    fn missing_credentials_are_named() {
        let address = "base_url = \"https://a\"";
        let client = format!("{address}\nclient_id = \"a\"");
        for (text, message) in [
            ("", "the base URL of the service is missing"),
            (address, "the client ID is missing"),
            (&client, "the client secret is missing"),
        ] {
            let settings = resolve(text, "", "");
            let options = settings.client_options().expect("options");
            assert_eq!(refused(settings.credentials(&options)), message);
        }
    }
}
