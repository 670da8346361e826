//! The config file: found, read, and checked key by key.
//!
//! Messages name keys and lines but never quote a value or a line: one of them is the secret.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Once;

use toml::{Table, Value};

use super::targets;
use crate::analysis::Targets;
use crate::client::bounded::ReadLimit;
use crate::error::{Failure, Kind};
use crate::text;

/// The keys of a profile, with what each holds.
const KEYS: [(&str, Holds); 12] = [
    ("base_url", Holds::Text),
    ("client_id", Holds::Text),
    ("client_secret", Holds::Text),
    ("client_secret_file", Holds::Text),
    ("client_secret_command", Holds::Command),
    ("api", Holds::Text),
    ("parallel", Holds::Number),
    ("retries", Holds::Number),
    ("retry_wait", Holds::Text),
    ("timeout", Holds::Text),
    ("ca_cert", Holds::Text),
    ("allow_http", Holds::Switch),
];

#[derive(Clone, Copy)]
enum Holds {
    Text,
    Number,
    Switch,
    Command,
}

impl Holds {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_str(),
            Self::Number => value
                .as_integer()
                .is_some_and(|number| u32::try_from(number).is_ok()),
            Self::Switch => value.is_bool(),
            Self::Command => {
                let words =
                    |words: &Vec<Value>| !words.is_empty() && words.iter().all(Value::is_str);
                value.is_str() || value.as_array().is_some_and(words)
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Text => "text in quotes",
            Self::Number => "a whole number",
            Self::Switch => "true or false",
            Self::Command => "text, or a list of texts",
        }
    }
}

/// One profile of a config file, checked.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    pub(crate) name: String,
    table: Table,
    /// What the file wants of crops, whichever profile holds.
    pub(crate) targets: Targets,
}

impl Profile {
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.table.get(key)?.as_str()
    }

    pub(crate) fn number(&self, key: &str) -> Option<u32> {
        u32::try_from(self.table.get(key)?.as_integer()?).ok()
    }

    pub(crate) fn switch(&self, key: &str) -> Option<bool> {
        self.table.get(key)?.as_bool()
    }

    /// Returns a command as the words to run; text is for the shell.
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

/// Returns where the config file is looked for, unless told otherwise.
pub(crate) fn default_path() -> Option<PathBuf> {
    Some(
        directories::BaseDirs::new()?
            .config_dir()
            .join("trayscan")
            .join("config.toml"),
    )
}

/// Reads the profile called `wanted`, or the one that the file prefers.
///
/// A file or a profile that was asked for must exist; one that was not need not.
pub(crate) fn read(path: Option<&Path>, wanted: Option<&str>) -> Result<Profile, Failure> {
    let Some(place) = path.map(Path::to_path_buf).or_else(default_path) else {
        return no_file(wanted);
    };
    let opened = place.clone();
    let text = match ReadLimit::config().read_text(move || File::open(opened)) {
        Ok(text) => text,
        Err(error) if path.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            return no_file(wanted);
        }
        Err(error) => {
            let message = format!("cannot read the config file `{}`", place.display());
            return Err(Failure::new(Kind::Usage, message).caused_by(error).hint(
                "`trayscan config init` begins one; `trayscan config path` tells its place",
            ));
        }
    };
    let profile = parse(&text, wanted).map_err(|problem| {
        let message = format!("the config file `{}` has a mistake", place.display());
        let (cause, hint) = problem;
        let failure = Failure::new(Kind::Usage, message).caused_by(anyhow::anyhow!(cause));
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    if holds_secret(&text) && others_may_read(&place) {
        // A run may need the file more than once, and its reader needs this once.
        static TOLD: Once = Once::new();
        TOLD.call_once(|| warn_readable(&place));
    }
    Ok(profile)
}

/// Tells whether any profile of a file that was read holds a secret.
fn holds_secret(text: &str) -> bool {
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

fn no_file(wanted: Option<&str>) -> Result<Profile, Failure> {
    match wanted {
        None => Ok(Profile::default()),
        Some(name) => Err(Failure::new(
            Kind::Usage,
            format!("there is no profile `{name}`: there is no config file"),
        )
        .hint("`trayscan config init` begins one")),
    }
}

/// Warns that others can read a file with a secret.
pub(super) fn warn_readable(path: &Path) {
    log::warn!(
        "others can read `{0}`, and it holds a secret: run `chmod 600 {0}`",
        path.display()
    );
}

#[cfg(unix)]
pub(super) fn others_may_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
pub(super) fn others_may_read(_: &Path) -> bool {
    false
}

/// What is wrong, and what to do about it.
pub(super) type Problem = (String, Option<String>);

fn parse(text: &str, wanted: Option<&str>) -> Result<Profile, Problem> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        // The error's own text would quote the line.
        let start = error.span().map_or(0, |span| span.start);
        let line = text.get(..start).unwrap_or_default().matches('\n').count() + 1;
        if error.message().contains("duplicate key") {
            let hint = "keep one of them".to_owned();
            return (
                format!("what line {line} says is there already"),
                Some(hint),
            );
        }
        (
            format!("line {line} is no TOML"),
            Some("texts stand in quotes: key = \"value\"".to_owned()),
        )
    })?;
    let top = ["default_profile", "profiles", "targets"];
    check_top(&table)?;
    check_keys(table.keys(), &top, "")?;
    let targets = targets::read(&table)?;
    let profiles = match table.get("profiles") {
        None => Table::new(),
        Some(Value::Table(profiles)) => profiles.clone(),
        Some(_) => return Err(("`profiles` is no table".into(), None)),
    };
    let known: Vec<&str> = KEYS.iter().map(|(key, _)| *key).collect();
    for (name, profile) in &profiles {
        let Value::Table(profile) = profile else {
            return Err((format!("`profiles.{name}` is no table"), None));
        };
        check_keys(profile.keys(), &known, &format!("profiles.{name}."))?;
        for (key, holds) in KEYS {
            if profile.get(key).is_some_and(|value| !holds.fits(value)) {
                return Err((
                    format!("`profiles.{name}.{key}` must be {}", holds.name()),
                    None,
                ));
            }
        }
    }
    let preferred = match table.get("default_profile") {
        None => None,
        Some(Value::String(name)) => Some(name.as_str()),
        Some(_) => return Err(("`default_profile` must be text in quotes".into(), None)),
    };
    let name = wanted.or(preferred).unwrap_or("default");
    match profiles.get(name) {
        Some(Value::Table(table)) => Ok(Profile {
            name: name.to_owned(),
            table: table.clone(),
            targets,
        }),
        // Nobody asked for a profile, and there is none: the file says nothing of the service.
        _ if wanted.or(preferred).is_none() => Ok(Profile {
            targets,
            ..Profile::default()
        }),
        _ => {
            let names: Vec<&str> = profiles.keys().map(String::as_str).collect();
            let hint = match names.as_slice() {
                [] => "it has no profiles".to_owned(),
                names => format!("its profiles are {}", names.join(", ")),
            };
            Err((format!("there is no profile `{name}`"), Some(hint)))
        }
    }
}

/// Catches keys of a profile that stand outside of any.
fn check_top(table: &Table) -> Result<(), Problem> {
    let lost = KEYS.iter().find(|(key, _)| table.contains_key(*key));
    lost.map_or(Ok(()), |(key, _)| {
        let hint = "put it under a line `[profiles.default]`; above stands only `default_profile`"
            .to_owned();
        Err((
            format!("unknown key `{key}` outside of a profile"),
            Some(hint),
        ))
    })
}

/// Refuses a key that nobody knows, and names the nearest one.
pub(super) fn check_keys<'a>(
    keys: impl Iterator<Item = &'a String>,
    known: &[&str],
    place: &str,
) -> Result<(), Problem> {
    for key in keys {
        if known.contains(&key.as_str()) {
            continue;
        }
        let hint = match text::nearest(key, known.iter().copied()) {
            Some(nearest) => format!(
                "did you mean `{nearest}`? the keys are {}",
                known.join(", ")
            ),
            None => format!("the keys are {}", known.join(", ")),
        };
        return Err((format!("unknown key `{place}{key}`"), Some(hint)));
    }
    Ok(())
}

/// What `config init` writes.
pub(crate) const TEMPLATE: &str = r#"# trayscan: settings. Flags and environment variables come before what stands here.
# default_profile = "default"

[profiles.default]
# Address of the service.
# base_url = "https://scan.example.com/api"

# Credentials, as the operator of the service gave them to you. The secret can stand in a file of its
# own, come from a command, or, at worst, stand here.
# client_id = "..."
# client_secret_file = "~/.secrets/trayscan"
# client_secret_command = "pass show trayscan"
# client_secret = "..."

# api = "auto"            # auto, v1, v2
# parallel = 4            # requests at a time, at most
# retries = 5             # times that a request is tried again
# retry_wait = "4s"       # wait after a 503
# timeout = "60s"         # longest time without a byte arriving
# ca_cert = "ca.pem"      # certificate to trust beside the system's
# allow_http = false      # plain http to another machine

# What you want of a crop, in percent, for `trayscan report`.
# [targets."Tomato"]
# usable_rate_min = 90
# germination_rate_min = 95
# coefficient_of_variation_max = 25
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wanted_profile_is_read() {
        let text =
            "default_profile = \"b\"\n[profiles.a]\nretries = 1\n[profiles.b]\nretries = 2\n";
        let retries = |wanted| parse(text, wanted).expect("a profile").number("retries");
        assert_eq!((retries(None), retries(Some("a"))), (Some(2), Some(1)));
        let (cause, hint) = parse(text, Some("c")).expect_err("no such profile");
        assert_eq!(cause, "there is no profile `c`");
        assert_eq!(hint.as_deref(), Some("its profiles are a, b"));
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
                .starts_with("did you mean `base_url`? the keys are base_url, ")
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
