//! The keys of the config file and the types of their values.

use toml::Value;

use crate::text;

/// The keys of a profile, with their types.
pub(super) const KEYS: [(&str, ValueType); 12] = [
    ("base_url", ValueType::Text),
    ("client_id", ValueType::Text),
    ("client_secret", ValueType::Text),
    ("client_secret_file", ValueType::Text),
    ("client_secret_command", ValueType::Command),
    ("api", ValueType::Text),
    ("parallel", ValueType::Number),
    ("retries", ValueType::Number),
    ("retry_wait", ValueType::Text),
    ("timeout", ValueType::Text),
    ("ca_cert", ValueType::Text),
    ("allow_http", ValueType::Boolean),
];

/// The type of a value.
#[derive(Clone, Copy)]
pub(super) enum ValueType {
    Text,
    Number,
    Boolean,
    Command,
}

impl ValueType {
    pub(super) fn matches(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_str(),
            Self::Number => value
                .as_integer()
                .is_some_and(|number| u32::try_from(number).is_ok()),
            Self::Boolean => value.is_bool(),
            Self::Command => {
                let words =
                    |words: &Vec<Value>| !words.is_empty() && words.iter().all(Value::is_str);
                value.is_str() || value.as_array().is_some_and(words)
            }
        }
    }

    /// Says what a value must be, with an example.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Text => "text in quotes, such as \"abc\"",
            Self::Number => "a whole number, such as 4",
            Self::Boolean => "true or false",
            Self::Command => {
                "text, such as \"pass show trayscan\", or a list of texts that is not empty"
            }
        }
    }
}

/// What is wrong, and what to do about it.
pub(super) type Problem = (String, Option<String>);

/// Refuses an unknown key, and suggests a known one.
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
                "did you mean `{nearest}`? available keys: {}",
                known.join(", ")
            ),
            None => format!("available keys: {}", known.join(", ")),
        };
        return Err((format!("unknown key `{place}{key}`"), Some(hint)));
    }
    Ok(())
}
