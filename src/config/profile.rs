//! The content of a config file: profiles and targets.
//!
//! Problems name keys and what a value must be, but never quote a value: it may be the secret. So the text of an error
//! of serde or toml is never shown, only where it happened.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde_path_to_error::Segment;
use toml::de::DeTable;
use toml::{Table, Value};

use super::table::{FlagValue, SETTINGS, SettingInfo};
use crate::analysis::{TARGET_KEYS, Target, Targets};
use crate::batch::Zone;
use crate::client::Api;
use crate::error::Failure;
use crate::text;

/// The keys of [`ConfigFile`].
const FILE_KEYS: [&str; 3] = ["default_profile", "profiles", "targets"];

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfigFile {
    pub(super) default_profile: Option<String>,
    #[serde(default)]
    pub(super) profiles: BTreeMap<String, Profile>,
    #[serde(default)]
    targets: BTreeMap<String, Target>,
}

/// The settings of one profile, or those given as flags or as variables; `None` where not given.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Profile {
    pub(crate) base_url: Option<String>,
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<String>,
    pub(crate) client_secret_file: Option<String>,
    #[serde(deserialize_with = "command")]
    pub(super) client_secret_command: Option<Vec<String>>,
    #[serde(deserialize_with = "api")]
    pub(super) api: Option<Api>,
    pub(super) parallel: Option<u32>,
    pub(super) retries: Option<u32>,
    #[serde(deserialize_with = "duration")]
    pub(super) retry_wait: Option<Duration>,
    #[serde(deserialize_with = "duration")]
    pub(super) timeout: Option<Duration>,
    pub(super) ca_cert: Option<String>,
    pub(super) allow_http: Option<bool>,
    #[serde(deserialize_with = "time_zone")]
    pub(super) time_zone: Option<Zone>,
}

impl Profile {
    /// Reads the settings in `table`.
    pub(crate) fn read(table: Table) -> Result<Self, Failure> {
        read(table, |_| None)
    }

    /// Checks one value of a profile.
    pub(super) fn check(key: &str, value: Value) -> Result<(), Failure> {
        let nested = |key: &str, value| Value::Table(Table::from_iter([(key.to_owned(), value)]));
        let profiles = nested("default", nested(key, value));
        let file = Table::from_iter([("profiles".to_owned(), profiles)]);
        read::<ConfigFile>(file, |_| None).map(drop)
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Profile(…)")
    }
}

impl ConfigFile {
    /// Parses a config file.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let table = text.parse().map_err(|error| syntax_mistake(text, &error))?;
        let file: Self = read(table, |path| line_of(text, path))?;
        file.check_crops(|crop| line_of(text, &["targets", crop]))?;
        Ok(file)
    }

    /// Checks that each crop has one target, whatever the case of its name. `line` finds the line of a target.
    fn check_crops(&self, line: impl Fn(&str) -> Option<usize>) -> Result<(), Failure> {
        let mut names = HashSet::new();
        let mut crops: Vec<&String> = self.targets.keys().collect();
        crops.sort_by_key(|crop| line(crop));
        for crop in crops {
            if !names.insert(crop.to_lowercase()) {
                let line = line(crop).map_or_else(String::new, |line| format!(" on line {line}"));
                return Err(Failure::usage(
                    format!("`targets.{crop}` appears twice{line}"),
                    "upper and lower case are the same: keep one of them",
                ));
            }
        }
        Ok(())
    }

    /// Returns whether a profile contains a secret itself.
    pub(super) fn has_secret(&self) -> bool {
        let mut profiles = self.profiles.values();
        profiles.any(|profile| profile.client_secret.is_some())
    }

    pub(super) fn targets(&self) -> Targets {
        let targets = self.targets.iter();
        let crops = targets.map(|(crop, target)| (crop.clone(), target.clone()));
        Targets {
            crops: crops.collect(),
        }
    }
}

/// Reads `table`. A problem says where it is; `line` finds the line of a key.
fn read<T: DeserializeOwned>(
    table: Table,
    line: impl Fn(&[&str]) -> Option<usize>,
) -> Result<T, Failure> {
    let table = Value::Table(table);
    serde_path_to_error::deserialize(table.clone()).map_err(|error| {
        let keys = error.path().iter().map_while(|segment| match segment {
            Segment::Map { key } => Some(key.as_str()),
            _ => None,
        });
        let path: Vec<&str> = keys.collect();
        let mistake = mistake_at(&path, &table);
        match line(&path) {
            Some(line) => {
                let message = format!("{mistake} on line {line}");
                mistake.with_message(message)
            }
            None => mistake,
        }
    })
}

/// Returns the line of the key at `path`, or of the innermost one above it that is a key.
pub(super) fn line_of(text: &str, path: &[&str]) -> Option<usize> {
    let file = DeTable::parse(text).ok()?;
    let mut table = Some(file.get_ref());
    let mut start = None;
    for key in path {
        let entry = table.and_then(|table| table.iter().find(|(name, _)| name.get_ref() == key));
        let Some((name, value)) = entry else { break };
        start = Some(name.span().start);
        table = value.get_ref().as_table();
    }
    Some(line_at(text, start?))
}

/// Returns the line of the byte at `start`.
fn line_at(text: &str, start: usize) -> usize {
    text.get(..start).unwrap_or_default().matches('\n').count() + 1
}

/// Names the line of a mistake. The error's own text would quote it.
fn syntax_mistake(text: &str, error: &toml::de::Error) -> Failure {
    let start = error.span().map_or(0, |span| span.start);
    let line = line_at(text, start);
    // The error has no other mark of this case; a test pins the wording.
    if error.message().contains("duplicate key") {
        let message = format!("duplicate key or table on line {line}");
        return Failure::usage(message, "keep one of them");
    }
    let is_table = text.lines().nth(line - 1);
    let is_table = is_table.is_some_and(|line| line.trim_start().starts_with('['));
    let hint = if is_table {
        "write a table like [profiles.default], or with quotes like [targets.\"Sweet pepper\"]"
    } else {
        "write text in quotes: key = \"value\""
    };
    Failure::usage(format!("invalid TOML on line {line}"), hint)
}

/// Takes the place of an error's text, which is not shown.
const INVALID: &str = "invalid value";

fn api<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Api>, D::Error> {
    let api = Api::named(&String::deserialize(value)?);
    api.map(Some).ok_or_else(|| D::Error::custom(INVALID))
}

fn duration<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(value)?;
    text::duration(&text).map(Some).map_err(D::Error::custom)
}

fn time_zone<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Zone>, D::Error> {
    let name = String::deserialize(value)?;
    // An empty text counts as not set.
    if name.is_empty() {
        return Ok(None);
    }
    Zone::parse(&name).map(Some).map_err(D::Error::custom)
}

/// Reads a command as program and arguments; a text runs in the shell.
fn command<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum CommandLine {
        Text(String),
        Words(Vec<String>),
    }
    match CommandLine::deserialize(value)? {
        CommandLine::Text(line) => {
            let shell = if cfg!(windows) {
                ["cmd", "/C"]
            } else {
                ["sh", "-c"]
            };
            let words = shell.into_iter().chain([&*line]);
            Ok(Some(words.map(String::from).collect()))
        }
        CommandLine::Words(words) if words.is_empty() => Err(D::Error::custom(INVALID)),
        CommandLine::Words(words) => Ok(Some(words)),
    }
}

/// Adds the name of the config file to a mistake in it.
pub(super) fn in_file(mistake: Failure, path: &Path) -> Failure {
    let message = format!("{mistake} in the config file `{}`", path.display());
    mistake.with_message(message)
}

/// Returns the mistake at the key `path` of `table`.
fn mistake_at(path: &[&str], table: &Value) -> Failure {
    let value = path.iter().try_fold(table, |table, key| table.get(key));
    let table_hint = match path.first() {
        Some(&"targets") => "write `[targets.\"Tomato\"]`, and below it `usable_rate_min = 90`",
        _ => "write `[profiles.default]`, and the settings below it",
    };
    let settings = SETTINGS.map(|info| info.key);
    match *path {
        ["default_profile"] => invalid_value(path, TEXT),
        ["profiles" | "targets"] | ["profiles" | "targets", _] => {
            Failure::usage(format!("`{}` is not a table", path.join(".")), table_hint)
        }
        [key] if settings.contains(&key) => Failure::usage(
            format!("unknown key `{key}` outside a profile"),
            "put it below `[profiles.default]`; only `default_profile` belongs above it",
        ),
        ["profiles", _, key, ..] => match SETTINGS.iter().find(|info| info.key == key) {
            Some(info) => invalid_value(path, &expected(info, value)),
            None => unknown_key(path, &settings),
        },
        ["targets", _, key, ..] => match TARGET_KEYS.iter().find(|(known, _)| *known == key) {
            Some((_, most)) => {
                let expected = format!("a percentage from 0 to {most}, such as `{key} = 90`");
                invalid_value(path, &expected)
            }
            None => unknown_key(path, &TARGET_KEYS.map(|(known, _)| known)),
        },
        _ => unknown_key(path, &FILE_KEYS),
    }
}

pub(super) fn invalid_value(path: &[&str], expected: &str) -> Failure {
    let message = format!("invalid value for `{}`", path.join("."));
    Failure::usage(message, format!("it must be {expected}"))
}

pub(super) fn unknown_key(path: &[&str], known: &[&str]) -> Failure {
    let key = path.last().copied().unwrap_or_default();
    let available = format!("available keys: {}", known.join(", "));
    let hint = match text::nearest(key, known.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`? {available}"),
        None => available,
    };
    Failure::usage(format!("unknown key `{}`", path.join(".")), hint)
}

const TEXT: &str = "text in quotes, such as \"abc\"";

/// Returns what a setting must be, given its invalid value.
fn expected(info: &SettingInfo, value: Option<&Value>) -> String {
    let text = value.and_then(Value::as_str);
    let expected = match (info.value, text) {
        (FlagValue::Number { .. }, _) => "a whole number, such as 4",
        (FlagValue::Boolean, _) => "true or false",
        (FlagValue::ApiVersion, Some(_)) => "auto, v1 or v2",
        (FlagValue::Duration, Some(text)) => {
            return text::duration(text).err().unwrap_or_default();
        }
        (FlagValue::TimeZone, Some(text)) => {
            return Zone::parse(text).err().unwrap_or_default();
        }
        (FlagValue::Duration, None) => "text in quotes, such as \"60s\"",
        _ if info.key == "client_secret_command" => {
            "text, such as \"pass show trayscan\", or a list of texts that is not empty"
        }
        _ => TEXT,
    };
    expected.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::statistics::Decimal;
    use crate::config::table;

    fn explained(text: &str) -> (String, String) {
        let file = ConfigFile::parse(text).map(drop);
        file.expect_err(text).into_texts()
    }

    /// Adds the line of the mistake, which is the last line of `text`.
    fn on_line(text: &str, message: &str) -> String {
        format!("{message} on line {}", text.lines().count())
    }

    #[test]
    fn mistakes_are_named_with_what_is_right() {
        let keys = SETTINGS.map(|info| info.key).join(", ");
        let profile = "write `[profiles.default]`, and the settings below it";
        let target = "write `[targets.\"Tomato\"]`, and below it `usable_rate_min = 90`";
        for (text, message, hint) in [
            (
                "[profiles.x]\nbaseurl = \"\"",
                "unknown key `profiles.x.baseurl`",
                &*format!("did you mean `base_url`? available keys: {keys}"),
            ),
            (
                "base_url = \"\"",
                "unknown key `base_url` outside a profile",
                "put it below `[profiles.default]`; only `default_profile` belongs above it",
            ),
            (
                "colour = 1",
                "unknown key `colour`",
                "available keys: default_profile, profiles, targets",
            ),
            ("profiles = 1", "`profiles` is not a table", profile),
            ("[profiles]\nx = 1", "`profiles.x` is not a table", profile),
            ("targets = 1", "`targets` is not a table", target),
            (
                "[targets]\nTomato = 90",
                "`targets.Tomato` is not a table",
                target,
            ),
            (
                "[targets.Tomato]\nusable_min = 90",
                "unknown key `targets.Tomato.usable_min`",
                "available keys: usable_rate_min, germination_rate_min, coefficient_of_variation_max",
            ),
            (
                "[targets.Tomato]\n[targets.tomato]",
                "`targets.tomato` appears twice",
                "upper and lower case are the same: keep one of them",
            ),
        ] {
            assert_eq!(
                explained(text),
                (on_line(text, message), hint.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn wrong_values_are_named_with_what_is_right() {
        let percentage =
            |most: u32, key: &str| format!("a percentage from 0 to {most}, such as `{key} = 90`");
        let usable = &*percentage(100, "usable_rate_min");
        let variation = &*percentage(10_000, "coefficient_of_variation_max");
        for (table, line, expected) in [
            ("", "default_profile = 1", TEXT),
            (
                "profiles.x",
                "timeout = 60",
                "text in quotes, such as \"60s\"",
            ),
            (
                "profiles.x",
                "timeout = \"60\"",
                "a number with a unit, such as 500ms, 30s, 15m, 2h or 7d",
            ),
            ("profiles.x", "api = \"v3\"", "auto, v1 or v2"),
            (
                "profiles.x",
                "time_zone = \"Amsterdam\"",
                "the name of a time zone; did you mean `Europe/Amsterdam`?",
            ),
            ("profiles.x", "parallel = -1", "a whole number, such as 4"),
            ("profiles.x", "allow_http = \"yes\"", "true or false"),
            (
                "profiles.x",
                "client_secret_command = []",
                "text, such as \"pass show trayscan\", or a list of texts that is not empty",
            ),
            ("targets.Tomato", "usable_rate_min = \"90\"", usable),
            ("targets.Tomato", "usable_rate_min = 101", usable),
            ("targets.Tomato", "usable_rate_min = nan", usable),
            (
                "targets.Tomato",
                "coefficient_of_variation_max = 10001",
                variation,
            ),
        ] {
            let (key, _) = line.split_once(' ').expect("a key");
            let (text, path) = match table {
                "" => (line.to_owned(), key.to_owned()),
                table => (format!("[{table}]\n{line}"), format!("{table}.{key}")),
            };
            let message = on_line(&text, &format!("invalid value for `{path}`"));
            assert_eq!(
                explained(&text),
                (message, format!("it must be {expected}"))
            );
        }
    }

    /// Pins the wording of the toml crate: its errors have no kind.
    #[test]
    fn duplicates_are_told_from_other_mistakes() {
        for (text, message) in [
            ("[a]\nx = 1\nx = 2\n", "duplicate key or table on line 3"),
            (
                "[profiles.a]\n\n[profiles.a]\n",
                "duplicate key or table on line 3",
            ),
            ("x = 1\n[x]\n", "duplicate key or table on line 2"),
            ("[profiles.a]\nx = hunter2\n", "invalid TOML on line 2"),
        ] {
            assert_eq!(explained(text).0, message, "{text}");
        }
    }

    #[test]
    fn the_line_of_a_mistake_is_that_of_its_key() {
        for (text, line) in [
            (
                "\n# a\n[profiles.a]\nretries = 1\n[profiles.b]\nretries = -1\napi = \"v2\"\n",
                6,
            ),
            ("profiles.a.retries = 1\nprofiles.b.retries = -1\n", 2),
            ("[profiles]\na = { retries = 1,\n  api = \"v9\" }\n", 3),
            (
                "[profiles.a]\nclient_secret_command = [\n\"x\",\n1]\nretries = 1\n",
                2,
            ),
            (
                "[targets.Leek]\n[targets.\"Sweet pepper\"]\nusable_rate_min = 101\n",
                3,
            ),
        ] {
            let (message, _) = explained(text);
            assert!(message.ends_with(&format!(" on line {line}")), "{message}");
        }
    }

    #[test]
    fn mistakes_are_named_but_never_quoted() {
        for text in [
            "[profiles.default]\nclient_secret = hunter2",
            "[profiles.default]\nclient_secret = \"hunter2",
            "[profiles.default]\nclient_secret = [\"hunter2\"]",
            "[profiles.default]\nclient_secret = { hunter2 = 1 }",
            "[profiles.default]\nretries = \"hunter2\"",
            "[profiles.default]\ntimeout = \"hunter2\"",
            "[profiles.default]\ntime_zone = \"hunter2\"",
            "[profiles.default]\nclient_secret_command = { hunter2 = 1 }",
            "client_secret = \"hunter2\"",
            "profiles = \"hunter2\"",
        ] {
            let (message, hint) = explained(text);
            assert!(
                !format!("{message} {hint}").contains("hunter2"),
                "{message}"
            );
        }
    }

    #[test]
    fn targets_are_found_whatever_the_capitals() {
        let read = |text: &str| ConfigFile::parse(text).map(|file| file.targets());
        let text = "[targets.\"Sweet pepper\"]\nusable_rate_min = 92.5\n[targets.tomato]\ngermination_rate_min = 90\n";
        let targets = read(text).expect("targets");
        let pepper = targets.of(Some("sweet Pepper")).expect("a target");
        assert_eq!(pepper.usable_rate_min, Some(Decimal::new(925, 1)));
        assert_eq!(pepper.germination_rate_min, None);
        let tomato = targets.of(Some("Tomato")).expect("a target");
        assert_eq!(tomato.germination_rate_min, Some(Decimal::from(90)));
        assert!(targets.of(Some("Lettuce")).is_none() && targets.of(None).is_none());
        assert_eq!(read("").expect("none").crops.len(), 0);
        let uneven = "[targets.Leek]\ncoefficient_of_variation_max = 120.5\n";
        assert_eq!(read(uneven).expect("targets").rows().len(), 1);
        let rows = targets.rows();
        let rows = rows.iter().map(|(key, value)| format!("{key} = {value}"));
        let expected = [
            "targets.\"Sweet pepper\".usable_rate_min = 92.5",
            "targets.\"tomato\".germination_rate_min = 90",
        ];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_new_config_file_can_be_read_with_every_key_on() {
        let template = table::template();
        ConfigFile::parse(&template).expect("readable");
        let active: String = template
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(rest) if rest.starts_with('[') => rest,
                Some(rest) if rest.split(' ').nth(1) == Some("=") => rest,
                _ => line,
            })
            .fold(String::new(), |text, line| text + line + "\n");
        let raw: Table = active.parse().expect("TOML");
        let profile = raw["profiles"]["default"].as_table().expect("a profile");
        for info in &SETTINGS {
            assert!(profile.contains_key(info.key), "{}", info.key);
        }
        let file = ConfigFile::parse(&active).expect("readable with every key on");
        let targets = file.targets();
        let target = targets.of(Some("Tomato")).expect("a target");
        assert!(target.usable_rate_min.is_some() && target.germination_rate_min.is_some());
        assert!(target.coefficient_of_variation_max.is_some());
    }
}
