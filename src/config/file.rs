//! The config file: find, read and check it.
//!
//! Messages name keys and line numbers but never quote a value or a line: it may be the secret.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Once;

use toml::{Table, Value};

use super::keys::{KEYS, Problem, ValueType, check_keys};
use super::path::{others_may_read, warn_readable};
use super::targets;
use crate::analysis::Targets;
use crate::client::bounded::ReadLimit;
use crate::error::{Failure, Kind};
use crate::text;

/// One profile of a config file, checked.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    pub(crate) name: String,
    /// The config file.
    place: PathBuf,
    table: Table,
    /// The targets of crops; the same in every profile.
    pub(crate) targets: Targets,
}

impl Profile {
    /// Refuses the value of `key` without quoting it, and says what it must be.
    pub(super) fn invalid(&self, key: &str, expected: &str) -> Failure {
        let message = format!(
            "invalid value for `profiles.{}.{key}` in the config file `{}`",
            self.name,
            self.place.display()
        );
        Failure::new(Kind::Usage, message).hint(format!("it must be {expected}"))
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.table.get(key)?.as_str()
    }

    pub(crate) fn number(&self, key: &str) -> Option<u32> {
        u32::try_from(self.table.get(key)?.as_integer()?).ok()
    }

    pub(crate) fn boolean(&self, key: &str) -> Option<bool> {
        self.table.get(key)?.as_bool()
    }

    /// Returns a command as program and arguments; a text runs in the shell.
    pub(crate) fn command(&self, key: &str) -> Option<Vec<String>> {
        match self.table.get(key)? {
            Value::String(line) => Some(shell(line)),
            Value::Array(words) => Some(
                words
                    .iter()
                    .filter_map(|word| word.as_str().map(String::from))
                    .collect(),
            ),
            _ => None,
        }
    }
}

fn shell(line: &str) -> Vec<String> {
    let shell = if cfg!(windows) {
        ["cmd", "/C"]
    } else {
        ["sh", "-c"]
    };
    shell.into_iter().chain([line]).map(String::from).collect()
}

/// Returns the default path of the config file.
pub(crate) fn default_path() -> Option<PathBuf> {
    Some(
        directories::BaseDirs::new()?
            .config_dir()
            .join("trayscan")
            .join("config.toml"),
    )
}

/// Reads the profile called `requested`, or the default profile of the file.
///
/// A file or a profile that was named must exist; the defaults may be absent.
pub(crate) fn read(path: Option<&Path>, requested: Option<&str>) -> Result<Profile, Failure> {
    let Some(place) = path.map(Path::to_path_buf).or_else(default_path) else {
        return no_file(requested);
    };
    let opened = place.clone();
    let text = match ReadLimit::config().read_text(move || File::open(opened)) {
        Ok(text) => text,
        Err(error) if path.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            return no_file(requested);
        }
        Err(error) => {
            let message = format!("cannot read the config file `{}`", place.display());
            return Err(Failure::new(Kind::Usage, message).caused_by(error).hint(
                "`trayscan config init` creates one; `trayscan config path` prints the default path",
            ));
        }
    };
    let mut profile = parse(&text, requested).map_err(|problem| {
        let (problem, hint) = problem;
        let message = format!("{problem} in the config file `{}`", place.display());
        let failure = Failure::new(Kind::Usage, message);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    if contains_secret(&text) && others_may_read(&place) {
        // A run may read the file several times; one warning is enough.
        static WARNED: Once = Once::new();
        WARNED.call_once(|| warn_readable(&place));
    }
    profile.place = place;
    Ok(profile)
}

/// Returns whether any profile in a config file contains a secret.
fn contains_secret(text: &str) -> bool {
    let table: Table = text.parse().unwrap_or_default();
    let profiles = table
        .get("profiles")
        .and_then(Value::as_table)
        .into_iter()
        .flatten();
    profiles
        .filter_map(|(_, profile)| profile.get("client_secret"))
        .any(|_| true)
}

fn no_file(requested: Option<&str>) -> Result<Profile, Failure> {
    match requested {
        None => Ok(Profile::default()),
        Some(name) => Err(Failure::new(
            Kind::Usage,
            format!("no profile `{name}`: there is no config file"),
        )
        .hint("`trayscan config init` creates one")),
    }
}

fn parse(text: &str, requested: Option<&str>) -> Result<Profile, Problem> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        // The error's own text would quote the line.
        let start = error.span().map_or(0, |span| span.start);
        let line = text.get(..start).unwrap_or_default().matches('\n').count() + 1;
        if error.message().contains("duplicate key") {
            let hint = "keep one of them".to_owned();
            return (format!("duplicate key or table on line {line}"), Some(hint));
        }
        (
            format!("invalid TOML on line {line}"),
            Some("write text in quotes: key = \"value\"".to_owned()),
        )
    })?;
    let top = ["default_profile", "profiles", "targets"];
    check_outside_profiles(&table)?;
    check_keys(table.keys(), &top, "")?;
    let targets = targets::read(&table)?;
    let profiles = match table.get("profiles") {
        None => Table::new(),
        Some(Value::Table(profiles)) => profiles.clone(),
        Some(_) => return Err(no_table("profiles")),
    };
    let known: Vec<&str> = KEYS.iter().map(|(key, _)| *key).collect();
    for (name, profile) in &profiles {
        let Value::Table(profile) = profile else {
            return Err(no_table(&format!("profiles.{name}")));
        };
        check_keys(profile.keys(), &known, &format!("profiles.{name}."))?;
        for (key, value_type) in KEYS {
            if profile
                .get(key)
                .is_some_and(|value| !value_type.matches(value))
            {
                return Err((
                    format!("invalid value for `profiles.{name}.{key}`"),
                    Some(format!("it must be {}", value_type.expected())),
                ));
            }
        }
    }
    let preferred = match table.get("default_profile") {
        None => None,
        Some(Value::String(name)) => Some(name.as_str()),
        Some(_) => {
            let hint = format!("it must be {}", ValueType::Text.expected());
            return Err(("invalid value for `default_profile`".into(), Some(hint)));
        }
    };
    let name = requested.or(preferred).unwrap_or("default");
    match profiles.get(name) {
        Some(Value::Table(table)) => Ok(Profile {
            name: name.to_owned(),
            table: table.clone(),
            targets,
            ..Profile::default()
        }),
        // No profile was requested, and the file has none: there are no settings of the service.
        _ if requested.or(preferred).is_none() => Ok(Profile {
            targets,
            ..Profile::default()
        }),
        _ => {
            let names: Vec<&str> = profiles.keys().map(String::as_str).collect();
            let available = format!("available profiles: {}", names.join(", "));
            let hint = match text::nearest(name, names.iter().copied()) {
                _ if names.is_empty() => "it has no profiles".to_owned(),
                Some(meant) => format!("did you mean `{meant}`? {available}"),
                None => available,
            };
            Err((format!("no profile `{name}`"), Some(hint)))
        }
    }
}

fn no_table(name: &str) -> Problem {
    let hint = "write `[profiles.default]`, and the settings below it".to_owned();
    (format!("`{name}` is not a table"), Some(hint))
}

/// Refuses keys of a profile outside any profile.
fn check_outside_profiles(table: &Table) -> Result<(), Problem> {
    let misplaced = KEYS.iter().find(|(key, _)| table.contains_key(*key));
    misplaced.map_or(Ok(()), |(key, _)| {
        let hint = "put it below `[profiles.default]`; only `default_profile` belongs above it";
        Err((
            format!("unknown key `{key}` outside a profile"),
            Some(hint.to_owned()),
        ))
    })
}

/// What `config init` writes.
pub(crate) const TEMPLATE: &str = r#"# Settings of trayscan. Flags and environment variables override them.
# default_profile = "default"

[profiles.default]
# URL of the service.
# base_url = "https://scan.example.com/api"

# Credentials, from the operator of the service. Keep the secret in a separate file or let a command
# print it; avoid writing it here. Use only one of the three.
# client_id = "..."
# client_secret_file = "~/.secrets/trayscan"
# client_secret_command = "pass show trayscan"
# client_secret = "..."

# api = "auto"            # auto, v1, v2
# parallel = 4            # maximum number of parallel requests
# retries = 5             # retries per request
# retry_wait = "4s"       # delay after a 503
# timeout = "60s"         # time out if no data arrives for this long
# ca_cert = "ca.pem"      # extra CA certificate to trust
# allow_http = false      # allow unencrypted http to other machines

# Your targets for a crop, in percent, for `trayscan report`.
# [targets."Tomato"]
# usable_rate_min = 90
# germination_rate_min = 95
# coefficient_of_variation_max = 25
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requested_profile_is_read() {
        let text =
            "default_profile = \"b\"\n[profiles.a]\nretries = 1\n[profiles.b]\nretries = 2\n";
        let retries = |requested| parse(text, requested).expect("a profile").number("retries");
        assert_eq!((retries(None), retries(Some("a"))), (Some(2), Some(1)));
        let (cause, hint) = parse(text, Some("c")).expect_err("no such profile");
        assert_eq!(cause, "no profile `c`");
        assert_eq!(hint.as_deref(), Some("available profiles: a, b"));
        let text = "[profiles.staging]\n[profiles.production]\n";
        let (_, hint) = parse(text, Some("prodution")).expect_err("no such profile");
        let expected = "did you mean `production`? available profiles: production, staging";
        assert_eq!(hint.as_deref(), Some(expected));
    }

    #[test]
    fn mistakes_are_named_but_never_quoted() {
        for text in [
            "[profiles.default]\nclient_secret = hunter2",
            "[profiles.default]\nclient_secret = \"hunter2",
            "[profiles.default]\nclient_secret = [\"hunter2\"]",
            "[profiles.default]\nclient_secret = { hunter2 = 1 }",
            "[profiles.default]\nretries = \"hunter2\"",
            "client_secret = \"hunter2\"",
            "profiles = \"hunter2\"",
        ] {
            let (cause, hint) = parse(text, None).expect_err(text);
            assert!(!format!("{cause} {hint:?}").contains("hunter2"), "{cause}");
        }
    }

    #[test]
    fn a_misspelt_key_leads_to_the_right_one() {
        let (cause, hint) = parse("[profiles.x]\nbaseurl = \"\"", None).expect_err("unknown");
        assert_eq!(cause, "unknown key `profiles.x.baseurl`");
        assert!(
            hint.expect("a hint")
                .starts_with("did you mean `base_url`? available keys: base_url, ")
        );
    }

    #[test]
    fn the_template_is_a_config_file() {
        parse(TEMPLATE, None).expect("readable");
        let active: String = TEMPLATE
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(rest) if rest.starts_with('[') => rest,
                Some(rest) if rest.split(' ').nth(1) == Some("=") => rest,
                _ => line,
            })
            .fold(String::new(), |text, line| text + line + "\n");
        let profile = parse(&active, None).expect("readable with every key on");
        for (key, _) in KEYS {
            assert!(profile.table.contains_key(key), "{key}");
        }
        let target = profile.targets.of(Some("Tomato")).expect("a target");
        assert!(target.usable_rate_min.is_some() && target.germination_rate_min.is_some());
        assert!(target.coefficient_of_variation_max.is_some());
    }
}
