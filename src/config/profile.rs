//! The content of a config file: profiles and targets.
//!
//! Problems name keys and what a value must be, but never quote a value: it may be the secret.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::de::value::{SeqDeserializer, StringDeserializer};
use serde::de::{self, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use toml::{Table, Value};

use super::table::SETTINGS;
use crate::analysis::statistics::{Decimal, ExactValue};
use crate::analysis::{Target, Targets};
use crate::client::Api;
use crate::text;

/// A config file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfigFile {
    pub(super) default_profile: Option<String>,
    #[serde(default)]
    pub(super) profiles: BTreeMap<String, Profile>,
    #[serde(default)]
    targets: BTreeMap<String, TargetTable>,
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
}

impl Profile {
    /// Reads the settings in `table`.
    pub(crate) fn read(table: Table) -> Result<Self, Problem> {
        Self::deserialize(Toml(Value::Table(table)))
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Profile(…)")
    }
}

/// The targets of one crop.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TargetTable {
    usable_rate_min: Option<Percent<100>>,
    germination_rate_min: Option<Percent<100>>,
    // Sizes may vary by more than their mean. A larger number is not a percentage.
    coefficient_of_variation_max: Option<Percent<10_000>>,
}

/// A percentage from zero to `MOST`.
#[derive(Debug)]
struct Percent<const MOST: u32>(Decimal);

impl ConfigFile {
    /// Parses a config file.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let table: Table = text.parse().map_err(|error| syntax_problem(text, &error))?;
        Self::deserialize(Toml(Value::Table(table)))
    }

    /// Returns the targets; a crop may be named only once, whatever the case.
    pub(super) fn targets(&self) -> Result<Targets, Problem> {
        let mut crops: Vec<(String, Target)> = Vec::new();
        for (crop, target) in &self.targets {
            let name = crop.to_lowercase();
            if crops.iter().any(|(known, _)| known.to_lowercase() == name) {
                return Err(Problem::Text {
                    message: format!("`targets.{crop}` appears twice"),
                    hint: "upper and lower case are the same: keep one of them".to_owned(),
                });
            }
            let target = Target {
                usable_rate_min: target.usable_rate_min.as_ref().map(|percent| percent.0),
                germination_rate_min: target
                    .germination_rate_min
                    .as_ref()
                    .map(|percent| percent.0),
                coefficient_of_variation_max: target
                    .coefficient_of_variation_max
                    .as_ref()
                    .map(|percent| percent.0),
            };
            crops.push((crop.clone(), target));
        }
        Ok(Targets { crops })
    }
}

/// Names the line of a mistake. The error's own text would quote it.
fn syntax_problem(text: &str, error: &toml::de::Error) -> Problem {
    let start = error.span().map_or(0, |span| span.start);
    let line = text.get(..start).unwrap_or_default().matches('\n').count() + 1;
    // The error has no other mark of this case; a test pins the wording.
    if error.message().contains("duplicate key") {
        return Problem::Text {
            message: format!("duplicate key or table on line {line}"),
            hint: "keep one of them".to_owned(),
        };
    }
    Problem::Text {
        message: format!("invalid TOML on line {line}"),
        hint: "write text in quotes: key = \"value\"".to_owned(),
    }
}

fn api<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Api>, D::Error> {
    let name = String::deserialize(value)?;
    let api = Api::named(&name);
    api.map(Some)
        .ok_or_else(|| D::Error::custom("auto, v1 or v2"))
}

fn duration<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(value)?;
    text::duration(&text).map(Some).map_err(D::Error::custom)
}

/// Reads a command as program and arguments; a text runs in the shell.
fn command<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Command {
        Line(String),
        Words(Vec<String>),
    }
    match Command::deserialize(value) {
        Ok(Command::Line(line)) => {
            let shell = if cfg!(windows) {
                ["cmd", "/C"]
            } else {
                ["sh", "-c"]
            };
            Ok(Some(
                shell
                    .into_iter()
                    .chain([&*line])
                    .map(String::from)
                    .collect(),
            ))
        }
        Ok(Command::Words(words)) if !words.is_empty() => Ok(Some(words)),
        _ => Err(D::Error::custom(
            "text, such as \"pass show trayscan\", or a list of texts that is not empty",
        )),
    }
}

impl<'de, const MOST: u32> Deserialize<'de> for Percent<MOST> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        let text = match Value::deserialize(value) {
            Ok(Value::Integer(number)) => number.to_string(),
            // The shortest text of the same number: as written.
            Ok(Value::Float(number)) => number.to_string(),
            _ => String::new(),
        };
        let number = ExactValue::parse(&text).map(ExactValue::decimal);
        let within = number.filter(|number| (Decimal::ZERO..=Decimal::from(MOST)).contains(number));
        let expected = || D::Error::custom(format!("a percentage from 0 to {MOST}"));
        within.map(Self).ok_or_else(expected)
    }
}

/// What is wrong in a config file.
#[derive(Debug)]
pub(crate) enum Problem {
    UnknownKey {
        path: Vec<String>,
        known: &'static [&'static str],
    },
    /// Something else than a table, where only a table makes sense.
    NoTable {
        path: Vec<String>,
    },
    InvalidValue {
        path: Vec<String>,
        expected: String,
    },
    Text {
        message: String,
        hint: String,
    },
}

impl Problem {
    /// Adds the key of the table in which the problem is.
    fn within(mut self, key: &str) -> Self {
        match &mut self {
            Self::UnknownKey { path, .. }
            | Self::NoTable { path }
            | Self::InvalidValue { path, .. } => path.insert(0, key.to_owned()),
            Self::Text { .. } => {}
        }
        self
    }

    /// Returns the message, without the name of the file, and the hint.
    pub(super) fn explain(self) -> (String, String) {
        match self {
            Self::UnknownKey { path, .. }
                if path.len() == 1 && SETTINGS.iter().any(|info| info.key == path[0]) =>
            {
                let hint =
                    "put it below `[profiles.default]`; only `default_profile` belongs above it";
                (
                    format!("unknown key `{}` outside a profile", path[0]),
                    hint.to_owned(),
                )
            }
            Self::UnknownKey { path, known } => {
                let key = path.last().map(String::as_str).unwrap_or_default();
                let available = format!("available keys: {}", known.join(", "));
                let hint = match text::nearest(key, known.iter().copied()) {
                    Some(nearest) => format!("did you mean `{nearest}`? {available}"),
                    None => available,
                };
                (format!("unknown key `{}`", path.join(".")), hint)
            }
            Self::NoTable { path } => {
                let hint = if path.first().is_some_and(|first| first == "targets") {
                    "write `[targets.\"Tomato\"]`, and below it `usable_rate_min = 90`"
                } else {
                    "write `[profiles.default]`, and the settings below it"
                };
                (
                    format!("`{}` is not a table", path.join(".")),
                    hint.to_owned(),
                )
            }
            Self::InvalidValue { path, expected } => {
                let example = match &path[..] {
                    [first, .., key] if first == "targets" => format!(", such as `{key} = 90`"),
                    _ => String::new(),
                };
                (
                    format!("invalid value for `{}`", path.join(".")),
                    format!("it must be {expected}{example}"),
                )
            }
            Self::Text { message, hint } => (message, hint),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a problem in the config file")
    }
}

impl std::error::Error for Problem {}

impl de::Error for Problem {
    /// `expected` is what the value must be: the functions above say nothing else.
    fn custom<T: fmt::Display>(expected: T) -> Self {
        Self::InvalidValue {
            path: Vec::new(),
            expected: expected.to_string(),
        }
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Self::UnknownKey {
            path: vec![field.to_owned()],
            known,
        }
    }
}

/// A value of a config file, for serde. Its errors are [`Problem`]s.
struct Toml(Value);

impl Toml {
    fn invalid<T>(expected: &str) -> Result<T, Problem> {
        Err(Problem::custom(expected))
    }
}

impl<'de> Deserializer<'de> for Toml {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            Value::Integer(number) => visitor.visit_i64(number),
            Value::Float(number) => visitor.visit_f64(number),
            Value::Boolean(is_true) => visitor.visit_bool(is_true),
            Value::Datetime(_) => Self::invalid("no date"),
            Value::Array(items) => {
                visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(Toml)))
            }
            Value::Table(table) => visitor.visit_map(Entries {
                entries: table.into_iter(),
                value: None,
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_some(self)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            _ => Self::invalid("text in quotes, such as \"abc\""),
        }
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.0.as_integer().map(u32::try_from) {
            Some(Ok(number)) => visitor.visit_u32(number),
            _ => Self::invalid("a whole number, such as 4"),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.0 {
            Value::Boolean(is_true) => visitor.visit_bool(is_true),
            _ => Self::invalid("true or false"),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.0 {
            Value::Table(_) => self.deserialize_any(visitor),
            _ => Err(Problem::NoTable { path: Vec::new() }),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        self.deserialize_map(visitor)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u64 u128 f32 f64 char str bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct enum identifier ignored_any
    }
}

impl IntoDeserializer<'_, Problem> for Toml {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The entries of a table. Adds the key to a problem with its value.
struct Entries {
    entries: toml::map::IntoIter<String, Value>,
    value: Option<(String, Value)>,
}

impl<'de> de::MapAccess<'de> for Entries {
    type Error = Problem;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Problem> {
        self.value = self.entries.next();
        let Some((key, _)) = &self.value else {
            return Ok(None);
        };
        let key: StringDeserializer<Problem> = key.clone().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Problem> {
        let (key, value) = self
            .value
            .take()
            .unwrap_or_else(|| (String::new(), Value::Boolean(false)));
        seed.deserialize(Toml(value))
            .map_err(|problem| problem.within(&key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::table;

    fn explained(text: &str) -> (String, String) {
        let file = ConfigFile::parse(text).and_then(|file| file.targets().map(drop));
        file.expect_err(text).explain()
    }

    #[test]
    fn mistakes_are_named_with_what_is_right() {
        let keys = SETTINGS.map(|info| info.key).join(", ");
        let in_quotes = "it must be text in quotes, such as \"abc\"";
        let profile = "write `[profiles.default]`, and the settings below it";
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
            (
                "default_profile = 1",
                "invalid value for `default_profile`",
                in_quotes,
            ),
            (
                "[profiles.x]\ntimeout = 60",
                "invalid value for `profiles.x.timeout`",
                in_quotes,
            ),
            (
                "[profiles.x]\ntimeout = \"60\"",
                "invalid value for `profiles.x.timeout`",
                "it must be a number with a unit, such as 500ms, 30s, 15m, 2h or 7d",
            ),
            (
                "[profiles.x]\napi = \"v3\"",
                "invalid value for `profiles.x.api`",
                "it must be auto, v1 or v2",
            ),
            (
                "[profiles.x]\nparallel = -1",
                "invalid value for `profiles.x.parallel`",
                "it must be a whole number, such as 4",
            ),
            (
                "[profiles.x]\nallow_http = \"yes\"",
                "invalid value for `profiles.x.allow_http`",
                "it must be true or false",
            ),
            (
                "[profiles.x]\nclient_secret_command = []",
                "invalid value for `profiles.x.client_secret_command`",
                "it must be text, such as \"pass show trayscan\", or a list of texts that is not empty",
            ),
        ] {
            assert_eq!(
                explained(text),
                (message.to_owned(), hint.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn mistakes_in_targets_are_named() {
        let table = "write `[targets.\"Tomato\"]`, and below it `usable_rate_min = 90`";
        let percent = "it must be a percentage from 0 to 100, such as `usable_rate_min = 90`";
        for (text, message, hint) in [
            ("targets = 1", "`targets` is not a table", table),
            (
                "[targets]\nTomato = 90",
                "`targets.Tomato` is not a table",
                table,
            ),
            (
                "[targets.Tomato]\nusable_min = 90",
                "unknown key `targets.Tomato.usable_min`",
                "available keys: usable_rate_min, germination_rate_min, coefficient_of_variation_max",
            ),
            (
                "[targets.Tomato]\nusable_rate_min = \"90\"",
                "invalid value for `targets.Tomato.usable_rate_min`",
                percent,
            ),
            (
                "[targets.Tomato]\nusable_rate_min = 101",
                "invalid value for `targets.Tomato.usable_rate_min`",
                percent,
            ),
            (
                "[targets.Tomato]\ncoefficient_of_variation_max = 10001",
                "invalid value for `targets.Tomato.coefficient_of_variation_max`",
                "it must be a percentage from 0 to 10000, such as `coefficient_of_variation_max = 90`",
            ),
            (
                "[targets.Tomato]\nusable_rate_min = nan",
                "invalid value for `targets.Tomato.usable_rate_min`",
                percent,
            ),
            (
                "[targets.Tomato]\n[targets.tomato]",
                "`targets.tomato` appears twice",
                "upper and lower case are the same: keep one of them",
            ),
        ] {
            assert_eq!(
                explained(text),
                (message.to_owned(), hint.to_owned()),
                "{text}"
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
    fn mistakes_are_named_but_never_quoted() {
        for text in [
            "[profiles.default]\nclient_secret = hunter2",
            "[profiles.default]\nclient_secret = \"hunter2",
            "[profiles.default]\nclient_secret = [\"hunter2\"]",
            "[profiles.default]\nclient_secret = { hunter2 = 1 }",
            "[profiles.default]\nretries = \"hunter2\"",
            "[profiles.default]\ntimeout = \"hunter2\"",
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
        let read = |text: &str| ConfigFile::parse(text).and_then(|file| file.targets());
        let text = "[targets.\"Sweet pepper\"]\nusable_rate_min = 92.5\n[targets.tomato]\ngermination_rate_min = 90\n";
        let targets = read(text).expect("targets");
        let pepper = targets.of(Some("sweet Pepper")).expect("a target");
        assert_eq!(pepper.usable_rate_min, Some(Decimal::new(925, 1)));
        assert_eq!(pepper.germination_rate_min, None);
        let tomato = targets.of(Some("Tomato")).expect("a target");
        assert_eq!(tomato.germination_rate_min, Some(Decimal::from(90)));
        assert!(targets.of(Some("Lettuce")).is_none() && targets.of(None).is_none());
        assert!(read("").expect("none").is_empty());
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
        let targets = file.targets().expect("targets");
        let target = targets.of(Some("Tomato")).expect("a target");
        assert!(target.usable_rate_min.is_some() && target.germination_rate_min.is_some());
        assert!(target.coefficient_of_variation_max.is_some());
    }
}
