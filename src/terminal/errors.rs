//! Prints errors, as text for people or as one JSON object for programs.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::current::{MessageFormat, conceal, current};
use super::stderr::{ERROR, HINT};
use super::stdout::print_styled;
use crate::error::{self, Failure, Kind, Sent};
use crate::text;

/// Why no command runs, and what is shown instead.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Help or version with styles, for standard output.
    Help(String),
    /// No command was given. Contains the help with styles, for standard error.
    NoCommand(String),
    /// A mistake on the command line or in an environment variable.
    Mistake(Failure),
}

/// Prints `error` to standard error and returns its exit code.
pub(crate) fn report(error: &anyhow::Error) -> u8 {
    let kind = error::kind_of(error);
    let terminal = current();
    let hint = error::hint_of(error);
    match (terminal.message_format(), kind) {
        // The reader closed the pipe, so the error is not printed. In JSON, an alarm is part of the result.
        (_, Kind::ClosedPipe) | (MessageFormat::Json, Kind::Alarm) => {}
        (MessageFormat::Text, _) => terminal.write_last(&as_text(error, hint)),
        (MessageFormat::Json, _) => {
            let sent = error::sent_of(error);
            terminal.write_last(&as_json(kind, &format!("{error:#}"), hint, sent));
        }
    }
    kind.code()
}

/// Prints help and version to standard output, and usage errors to standard error. Returns the exit
/// code.
pub(crate) fn report_usage(stop: Stop) -> u8 {
    let failure = match (stop, current().message_format()) {
        (Stop::Help(help), _) => {
            let shown = print_styled(&help);
            return shown.map_or_else(|failure| report(&failure.into()), |()| 0);
        }
        (Stop::NoCommand(help), MessageFormat::Text) => {
            current().write_last(help.trim_end());
            return Kind::Usage.code();
        }
        (Stop::NoCommand(_), MessageFormat::Json) => {
            Failure::usage("no command was given", "see `trayscan --help`")
        }
        (Stop::Mistake(failure), _) => failure,
    };
    report(&failure.into())
}

fn as_text(error: &anyhow::Error, hint: Option<&str>) -> String {
    let mut text = format!("{ERROR}error:{ERROR:#} {}", shown(&error.to_string()));
    for cause in error.chain().skip(1) {
        let _ = write!(text, "\n  caused by: {}", shown(&cause.to_string()));
    }
    if let Some(hint) = hint {
        let _ = write!(text, "\n  {HINT}hint:{HINT:#} {}", shown(hint));
    }
    text
}

/// Conceals secrets, then escapes control characters: an escaped secret would not be recognised.
fn shown(text: &str) -> String {
    text::escape(&conceal(text)).into_owned()
}

/// The JSON format that scripts rely on: every key is always present.
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
        // Secrets in it were concealed when the response was read.
        detail: sent.and_then(|sent| sent.detail.as_ref()),
        retry_later: kind.retry_later(),
    };
    let object = serde_json::to_string(&error).expect("an error has only text and numbers");
    text::escape_json(&format!("{{\"error\":{object}}}"))
}
