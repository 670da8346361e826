//! Errors, as text for people or as one JSON object for programs.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::ErrorFormat;
use super::logger::{ERROR, HINT};
use super::stdout::print_styled;
use super::{error_format, stderr_json, stderr_line};
use crate::error::{self, Kind, Sent};
use crate::secret::conceal;
use crate::text;

/// Shows `error` on standard error and returns the exit code of its class.
pub(crate) fn report(error: &anyhow::Error) -> u8 {
    let kind = error::kind_of(error);
    // The reader of the pipe has left: there is nothing to say, and often nobody to say it to.
    if kind != Kind::ClosedPipe {
        let hint = error::hint_of(error);
        match error_format() {
            ErrorFormat::Text => stderr_line(&text(error, hint)),
            ErrorFormat::Json => {
                stderr_json(&as_json(kind, &message(error), hint, error::sent_of(error)));
            }
        }
    }
    kind.code()
}

/// Shows what clap has to say: help and version on standard output, mistakes on standard error.
pub(crate) fn report_usage(error: &clap::Error) -> u8 {
    if !error.use_stderr() {
        let shown = print_styled(&error.render().ansi().to_string());
        return shown.map_or_else(|failure| report(&failure.into()), |()| 0);
    }
    match error_format() {
        ErrorFormat::Text => stderr_line(usage_text(error).trim_end()),
        ErrorFormat::Json => {
            let (message, hint) = usage_message(error);
            stderr_json(&as_json(Kind::Usage, &message, Some(&hint), None));
        }
    }
    Kind::Usage.code()
}

/// What clap says, in colour unless it repeats something that a terminal would obey.
fn usage_text(error: &clap::Error) -> String {
    let rendered = error.render();
    match text::escape(&rendered.to_string()) {
        Cow::Borrowed(_) => rendered.ansi().to_string(),
        Cow::Owned(escaped) => escaped,
    }
}

/// The first paragraph of what clap says, on one line, and what it would rather see.
fn usage_message(error: &clap::Error) -> (String, String) {
    use clap::error::{ContextKind, ContextValue, ErrorKind};

    let suggested = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
    ]
    .into_iter()
    .find_map(|kind| match error.get(kind)? {
        ContextValue::String(word) => Some(word.clone()),
        ContextValue::Strings(words) => words.first().cloned(),
        _ => None,
    });
    let hint = match suggested {
        Some(word) => format!("did you mean `{word}`?"),
        None => "`--help` behind the command tells its flags".to_owned(),
    };
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return ("a command is missing".to_owned(), hint);
    }
    let rendered = error.render().to_string();
    let paragraph = rendered.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    let message = words.join(" ");
    (
        message
            .strip_prefix("error: ")
            .unwrap_or(&message)
            .to_owned(),
        hint,
    )
}

fn text(error: &anyhow::Error, hint: Option<&str>) -> String {
    let mut text = format!("{ERROR}error:{ERROR:#} {}", shown(&error.to_string()));
    for cause in error.chain().skip(1) {
        let _ = write!(text, "\n  caused by: {}", shown(&cause.to_string()));
    }
    if let Some(hint) = hint {
        let _ = write!(text, "\n  {HINT}hint:{HINT:#} {}", shown(hint));
    }
    text
}

/// Makes a text fit to be shown; concealed first, for escaped a secret would not be recognised.
fn shown(text: &str) -> String {
    text::escape(&conceal(text)).into_owned()
}

/// The whole chain on one line.
fn message(error: &anyhow::Error) -> String {
    let parts: Vec<String> = error.chain().map(ToString::to_string).collect();
    parts.join(": ")
}

/// The shape that scripts rely on: every key is always there.
#[derive(Serialize)]
struct JsonError<'a> {
    code: u8,
    kind: &'static str,
    message: &'a str,
    hint: Option<&'a str>,
    status: Option<u16>,
    request: Option<&'a str>,
    detail: Option<&'a Value>,
    retry_later: bool,
}

fn as_json(kind: Kind, message: &str, hint: Option<&str>, sent: Option<&Sent>) -> String {
    let (message, hint) = (conceal(message), hint.map(conceal));
    let error = JsonError {
        code: kind.code(),
        kind: kind.name(),
        message: &message,
        hint: hint.as_deref(),
        status: sent.and_then(|sent| sent.status),
        request: sent.map(|sent| sent.request.as_str()),
        // Concealed where it was read, text by text.
        detail: sent.and_then(|sent| sent.detail.as_ref()),
        retry_later: kind.retry_later(),
    };
    let object = serde_json::to_string(&error).expect("an error is made of text and numbers");
    text::escape_json(&format!("{{\"error\":{object}}}"))
}
