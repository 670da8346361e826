//! Asks a person for base URL, client ID and secret. Flags and variables need no question.

use crate::client::BaseUrl;
use crate::config::{Origin, SecretSource, Setting, Settings};
use crate::error::{self, Failure};
use crate::secret::Secret;
use crate::terminal;

/// Completes `settings` with answers. Without a terminal, a missing value is an error. `stored_url` is the base URL of the
/// profile: its secret is for that service only.
pub(super) fn complete(
    settings: &mut Settings,
    allow_http: bool,
    stored_url: Option<&str>,
) -> Result<(), Failure> {
    let is_asking = terminal::can_ask();
    if is_asking && !is_given(settings.base_url.as_ref()) {
        let current = settings.parsed_base_url(allow_http).ok().flatten();
        let current = current.map(|url| url.to_string());
        let check = |text: &str| {
            let url = BaseUrl::parse(text, allow_http)?;
            url.refuse_version("the base URL")?;
            Ok(url.to_string())
        };
        settings.base_url = Some(typed(ask("Base URL", current.as_deref(), check)?));
    }
    let Some(url) = settings.parsed_base_url(allow_http)? else {
        return Err(missing(
            "the base URL",
            "set it with `--base-url` or TRAYSCAN_BASE_URL",
        ));
    };
    url.refuse_version("the base URL")?;

    if is_asking && !is_given(settings.client_id.as_ref()) {
        let current = settings.client_id.as_ref().map(|id| id.value.clone());
        let answer = ask("Client ID", current.as_deref(), |text| Ok(text.to_owned()))?;
        settings.client_id = Some(typed(answer));
    }
    if settings.client_id.is_none() {
        return Err(missing(
            "the client ID",
            "set it with `--client-id` or TRAYSCAN_CLIENT_ID",
        ));
    }

    let is_moved = stored_url.is_some_and(|stored| !url.has_origin_of(stored));
    let is_forgotten = is_moved && settings.forget_stored_secret();
    let secret = settings.secret()?;
    let is_standard_input =
        secret.is_some_and(|secret| secret.value == SecretSource::File("-".to_owned()));
    if is_asking && (!is_given(secret) || is_standard_input) {
        if is_forgotten {
            terminal::note("the stored secret is for another address, so it is not used");
        }
        let has_current = secret.is_some() && !is_standard_input;
        if let Some(secret) = ask_secret(has_current)? {
            settings.set_typed_secret(secret);
        }
    } else if secret.is_none() {
        let what = if is_forgotten {
            "the stored secret is for another address; the client secret for this one"
        } else {
            "the client secret"
        };
        return Err(missing(
            what,
            "name a file with `--client-secret-file` (`-` reads standard input), or set TRAYSCAN_CLIENT_SECRET",
        ));
    }
    Ok(())
}

/// Returns whether a setting is from a flag or a variable.
pub(super) fn is_given<T>(setting: Option<&Setting<T>>) -> bool {
    setting.is_some_and(|setting| matches!(setting.origin, Origin::Flag(_) | Origin::Variable(_)))
}

fn typed(value: String) -> Setting<String> {
    Setting {
        value,
        origin: Origin::Prompt,
    }
}

/// Asks until `check` accepts the answer. An empty answer is `current`, if there is one.
fn ask(
    what: &str,
    current: Option<&str>,
    check: impl Fn(&str) -> Result<String, Failure>,
) -> Result<String, Failure> {
    let question = match current {
        Some(current) => format!("{what} [{current}]: "),
        None => format!("{what}: "),
    };
    loop {
        let answer = terminal::ask(&question).map_err(unreadable)?;
        let answer = answer.ok_or_else(ended)?;
        let answer = match (answer.trim(), current) {
            ("", Some(current)) => current,
            ("", None) => continue,
            (answer, _) => answer,
        };
        match check(answer) {
            Ok(answer) => return Ok(answer),
            Err(failure) => {
                let failure = anyhow::Error::new(failure);
                let hint = error::hint_of(&failure).map(|hint| format!("; {hint}"));
                log::warn!("{failure}{}", hint.unwrap_or_default());
            }
        }
    }
}

/// Asks for the secret. `None` keeps the current one.
fn ask_secret(has_current: bool) -> Result<Option<Secret>, Failure> {
    let question = if has_current {
        "Client secret (hidden; empty keeps the current one): "
    } else {
        "Client secret (hidden): "
    };
    loop {
        let answer = terminal::ask_hidden(question).map_err(unreadable)?;
        match answer.ok_or_else(ended)? {
            answer if !answer.is_empty() => return Ok(Some(Secret::new(answer))),
            _ if has_current => return Ok(None),
            _ => {}
        }
    }
}

fn missing(what: &str, hint: &str) -> Failure {
    let why = if terminal::prints_json() {
        "`--message-format json` asks no questions"
    } else {
        "there is no terminal to ask for it"
    };
    Failure::usage(format!("{what} is missing, and {why}"), hint)
}

fn ended() -> Failure {
    Failure::usage(
        "the input ended; nothing was saved",
        "run `trayscan login` again, and answer every question",
    )
}

fn unreadable(error: std::io::Error) -> Failure {
    let hint = "pass `--base-url`, `--client-id` and `--client-secret-file` instead";
    Failure::usage("cannot read the answer", hint).caused_by(error)
}
