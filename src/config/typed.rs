//! Values of settings as a person types them, for `config set`.

use std::path::Path;

use toml_edit::Value;

use super::path::absolute;
use super::profile::{Profile, unknown_key};
use super::table::{FlagValue, SETTINGS};
use crate::client::BaseUrl;
use crate::error::Failure;
use crate::text;

/// Returns the value of `key` in TOML.
pub(super) fn typed_value(key: &str, value: &str) -> Result<Value, Failure> {
    if key == "client_secret" {
        return Err(Failure::usage(
            "the client secret is not set this way: others could see it",
            "`trayscan login` asks for it and stores it in a separate file",
        ));
    }
    let Some(info) = SETTINGS.iter().find(|info| info.key == key) else {
        let keys = SETTINGS.iter().map(|info| info.key);
        let keys = keys.filter(|key| *key != "client_secret");
        let keys: Vec<&str> = keys.chain(["default_profile"]).collect();
        return Err(unknown_key(&[key], &keys));
    };
    let refused = || format!("`config set {key}`: the value `{value}` is invalid");
    let refuse = |expected: &str| Failure::usage(refused(), format!("it must be {expected}"));
    let text = toml::Value::from(value);
    let read = match info.value {
        FlagValue::Number { .. } => value.parse().map_or(text, toml::Value::Integer),
        FlagValue::Boolean => value.parse().map_or(text, toml::Value::Boolean),
        _ => text,
    };
    let checked = Profile::check(key, read.clone());
    checked.map_err(|mistake| mistake.with_message(refused()))?;
    match (info.value, &read) {
        (FlagValue::Number { least, example }, toml::Value::Integer(number)) => {
            if *number >= i64::from(least) {
                return Ok((*number).into());
            }
            let expected = format!("a whole number, at least {least}, such as {example}");
            Err(refuse(&expected))
        }
        (_, toml::Value::Boolean(is_set)) => Ok((*is_set).into()),
        _ => match key {
            "timeout" if text::duration(value).is_ok_and(|time| time.is_zero()) => {
                Err(refuse("longer than zero, such as 60s"))
            }
            "base_url" if !value.is_empty() => {
                // It is not quoted: it may contain a password.
                let name = "`config set base_url`: the value";
                let url = BaseUrl::parse_named(name, value, /* allow_http: */ true)?;
                url.refuse_version(name)?;
                Ok(value.into())
            }
            "client_secret_file" if value == "-" => Ok(value.into()),
            "client_secret_file" | "ca_cert" => Ok(stored_path(value)?.into()),
            _ => Ok(value.into()),
        },
    }
}

/// Returns a path that is the same from every folder. An empty one counts as not set.
fn stored_path(path: &str) -> Result<String, Failure> {
    if path.is_empty() || path.starts_with("~/") {
        Ok(path.to_owned())
    } else {
        absolute(Path::new(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::hint_of;

    #[test]
    fn values_are_stored_as_their_type() {
        let folder = std::env::current_dir().expect("a folder");
        let here = format!("\"{}\"", folder.join("s").display());
        for (key, value, expected) in [
            ("retries", "0", "0"),
            ("allow_http", "false", "false"),
            ("timeout", "5s", "\"5s\""),
            ("client_id", "12", "\"12\""),
            ("base_url", "http://a.example", "\"http://a.example\""),
            ("base_url", "", "\"\""),
            ("client_secret_file", "./s", &here),
            ("client_secret_file", "~/s", "\"~/s\""),
            ("client_secret_file", "-", "\"-\""),
            ("ca_cert", "s", &here),
            ("ca_cert", "", "\"\""),
        ] {
            let stored = typed_value(key, value).expect(key);
            assert_eq!(stored.to_string(), expected, "{key}");
        }
    }

    #[test]
    fn values_are_checked() {
        let whole = "it must be a whole number, such as 4";
        for (key, value, message, hint) in [
            ("retries", "1.5", "", whole),
            ("retries", "4294967296", "", whole),
            (
                "parallel",
                "0",
                "",
                "it must be a whole number, at least 1, such as 4",
            ),
            ("allow_http", "yes", "", "it must be true or false"),
            ("api", "v3", "", "it must be auto, v1 or v2"),
            (
                "timeout",
                "0s",
                "",
                "it must be longer than zero, such as 60s",
            ),
            (
                "base_url",
                "https://u:hunter2@a.example",
                "`config set base_url`: the value contains a user name or a password",
                "it must be a URL such as https://scan.example.com/api",
            ),
            (
                "base_url",
                "https://a.example/api/v2",
                "`config set base_url`: the value `https://a.example/api/v2` contains the API version",
                "use https://a.example/api",
            ),
            (
                "client_secret",
                "hunter2",
                "the client secret is not set this way: others could see it",
                "`trayscan login` asks for it and stores it in a separate file",
            ),
        ] {
            let invalid = format!("`config set {key}`: the value `{value}` is invalid");
            let message = if message.is_empty() {
                &invalid
            } else {
                message
            };
            let failure = anyhow::Error::new(typed_value(key, value).expect_err(key));
            assert_eq!(failure.to_string(), message);
            assert_eq!(hint_of(&failure), Some(hint), "{key}");
        }
    }
}
