//! Resolves every setting: flag, then environment variable, then the profile of the config file, then the default.

use std::time::Duration;

use super::file::{self, Profile};
use super::path::expand_home;
use super::secret_source::SecretSource;
use crate::analysis::Targets;
use crate::cli::ServiceArgs;
use crate::client::{Api, BaseUrl, ClientOptions, Credentials, Origin, Setting};
use crate::error::{Failure, Kind};
use crate::secret::Secret;
use crate::text;

/// The given values, before they are resolved.
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

    /// Decides how to send requests to the service.
    pub(crate) fn client_options(&self) -> Result<ClientOptions, Failure> {
        let duration = |key: &str| self.parsed_text(key, text::duration);
        let api = self.parsed_text("api", |name| {
            Api::named(name).ok_or_else(|| "auto, v1 or v2".to_owned())
        })?;
        let options = ClientOptions {
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
                self.profile.boolean("allow_http"),
                false,
            ),
        };
        match &options {
            ClientOptions {
                parallel: Setting { value: 0, origin },
                ..
            } => {
                let expected = "a whole number, at least 1, such as 4";
                Err(self.invalid("parallel", origin, "0", expected))
            }
            ClientOptions { timeout, .. } if timeout.value.is_zero() => {
                let expected = "longer than zero, such as 60s";
                Err(self.invalid("timeout", &timeout.origin, "0s", expected))
            }
            _ => Ok(options),
        }
    }

    /// Decides which service to use, with which credentials.
    pub(crate) fn credentials(&self, options: &ClientOptions) -> Result<Credentials, Failure> {
        let Some(base_url) = self.base_url() else {
            return Err(missing(
                "the base URL of the service",
                "--base-url",
                "TRAYSCAN_BASE_URL",
                "base_url",
            ));
        };
        let base_url_origin = base_url.origin;
        let name = match &base_url_origin {
            Origin::Flag(flag) => format!("`{flag}`"),
            Origin::Variable(variable) => (*variable).to_owned(),
            Origin::File(profile) => format!("`profiles.{profile}.base_url` in the config file"),
            Origin::Default => "the base URL".to_owned(),
        };
        let base_url = BaseUrl::parse_named(&name, &base_url.value, options.allow_http.value)?;
        let Some(client_id) = self.client_id() else {
            return Err(missing(
                "the client ID",
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
        Ok(Credentials {
            base_url,
            client_id: client_id.value,
            base_url_origin,
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

    /// Decides where to read the secret from, without reading it yet.
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
        let in_file = [
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
        let in_file: Vec<_> = in_file
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
            in_file.iter().collect(),
        ];
        let Some(layer) = layers.into_iter().find(|layer| !layer.is_empty()) else {
            return Ok(None);
        };
        match layer[..] {
            [one] => {
                one.value.warn_if_readable();
                Ok(Some(one.clone()))
            }
            _ => Err(Failure::new(
                Kind::Usage,
                if layer[0].origin == layer[1].origin {
                    format!(
                        "the client secret is set twice in the same place ({})",
                        layer[0].origin
                    )
                } else {
                    format!(
                        "the client secret is set twice ({} and {})",
                        layer[0].origin, layer[1].origin
                    )
                },
            )
            .hint("keep one: the secret, its file, or the command that prints it")),
        }
    }

    /// Picks a text; an empty text counts as not set.
    fn text(&self, key: &'static str, given: Option<&String>) -> Option<Setting<String>> {
        let given = given.filter(|text| !text.is_empty()).cloned();
        let in_file = self
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
                in_file.map(|value| Setting {
                    value,
                    origin: Origin::File(self.profile.name.clone()),
                })
            })
    }

    fn pick<T>(
        &self,
        key: &'static str,
        given: Option<T>,
        in_file: Option<T>,
        default: T,
    ) -> Setting<T> {
        match (given, in_file) {
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

    /// The targets in the config file.
    pub(crate) fn targets(&self) -> &Targets {
        &self.profile.targets
    }

    /// Parses a text value of the profile.
    fn parsed_text<T>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Failure> {
        self.profile
            .text(key)
            .map(parse)
            .transpose()
            .map_err(|expected| self.profile.invalid(key, &expected))
    }

    /// Refuses a value and says what it must be. Quotes `value` unless it is from the config file.
    fn invalid(&self, key: &str, origin: &Origin, value: &str, expected: &str) -> Failure {
        let refuse = |name: &str, hint: String| {
            let message = format!("{name} is `{value}`; it must be {expected}");
            Failure::new(Kind::Usage, message).hint(hint)
        };
        match origin {
            Origin::Flag(flag) => refuse(
                &format!("`{flag}`"),
                format!("change `{flag}`, or leave it out to use the default"),
            ),
            Origin::Variable(variable) => refuse(
                variable,
                format!("change {variable}, or unset it to use the default"),
            ),
            Origin::File(_) | Origin::Default => self.profile.invalid(key, expected),
        }
    }

    /// Distinguishes flags from variables.
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
        "set it with `{flag}`, {variable}, or `{key}` in the config file (`trayscan config init` \
         creates one); to try trayscan without a service, use `--sandbox`"
    ))
}
