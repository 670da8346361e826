//! Standard error: single lines, with secrets concealed, that do not disturb the progress line. The log is written there, too,
//! filtered by `-q`, `-v` and `-vv`.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};
use chrono::{SecondsFormat, Utc};
use log::{LevelFilter, Log, Metadata, Record};
use serde::Serialize;
use serde_json::{Value, json};

use super::current::{Level, MessageFormat, Terminal, conceal, conceal_credentials, current};
use super::{progress, prompt};
use crate::error::Failure;
use crate::text::{escape_json, one_line};

pub(super) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(super) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub(super) const HINT: Style = AnsiColor::Cyan.on_default();
const FAINT: Style = Style::new().dimmed();

/// The most warnings of a run that are kept; the others are only counted.
const KEPT_WARNINGS: usize = 100;

/// Prints information that is useful but not a warning, unless the run is quiet.
pub(crate) fn note(text: &str) {
    message(Level::Note, text);
}

/// Prints a message of this level, if the run shows such messages.
pub(super) fn message(level: Level, text: &str) {
    let terminal = current();
    // Conceal before escaping: an escaped secret would not be recognised.
    let text = conceal(text);
    if level == Level::Warning {
        terminal.keep_warning(&text);
    }
    let line = match terminal.message_format() {
        MessageFormat::Text => {
            let style = match level {
                Level::Error => ERROR,
                Level::Warning => WARNING,
                Level::Note => HINT,
                Level::Info | Level::Debug => FAINT,
            };
            let name = level.name();
            let time = if terminal.shows(Level::Info) {
                format!("{FAINT}{}{FAINT:#} ", time())
            } else {
                String::new()
            };
            format!("{time}{style}{name}:{style:#} {}", one_line(&text))
        }
        MessageFormat::Json => json_message(level, &text),
    };
    terminal.write_message(level, &line);
}

/// Prints the last line of a command that has no result, unless the run is quiet.
pub(crate) fn conclude(line: &str) {
    let terminal = current();
    let line = match terminal.message_format() {
        MessageFormat::Text => one_line(&conceal(line)).into_owned(),
        MessageFormat::Json => json_message(Level::Note, &conceal(line)),
    };
    terminal.write_message(Level::Note, &line);
}

/// Prints how a command ended: for people `line`, unless the run is quiet; for programs `result`, with the
/// number of warnings, the time, and the `alarm` if there is one.
pub(crate) fn finish(line: Option<&str>, result: &impl Serialize, alarm: Option<&Failure>) {
    let terminal = current();
    match (terminal.message_format(), line) {
        (MessageFormat::Text, Some(line)) => conclude(line),
        (MessageFormat::Text, None) => {}
        (MessageFormat::Json, _) => {
            let mut result = serde_json::to_value(result).expect("a result has keys that are text");
            result["warnings"] = terminal.warnings().into();
            let seconds = terminal.elapsed().as_secs_f64();
            result["seconds"] = ((seconds * 1000.0).round() / 1000.0).into();
            if let Some(alarm) = alarm {
                result["alarm"] = conceal(&alarm.to_string()).into();
            }
            conceal_strings(&mut result);
            terminal.write_last(&escape_json(&json!({"result": result}).to_string()));
        }
    }
}

/// Returns the warnings of the run so far, shown or not, with secrets concealed; the first ones if there are many.
pub(crate) fn warnings() -> Vec<String> {
    current().state().first_warnings.clone()
}

/// Adds to the last line how long the run took.
pub(crate) fn timed(line: &str) -> String {
    format!("{line} in {:.1} s", current().elapsed().as_secs_f64())
}

/// Returns whether only warnings and errors are shown.
pub(crate) fn is_quiet() -> bool {
    !current().shows(Level::Note)
}

/// Returns whether messages are printed for programs.
pub(crate) fn prints_json() -> bool {
    current().message_format() == MessageFormat::Json
}

/// Stops the progress line, questions and all messages. Only a final error is still printed.
///
/// The run is over, but some of its threads may still be working.
pub(crate) fn silence() {
    let terminal = current();
    progress::stop(&terminal);
    prompt::stop(&terminal);
    terminal.show(None);
}

/// A message for programs.
#[derive(Serialize)]
struct JsonMessage<'a> {
    level: &'static str,
    time: String,
    message: &'a str,
}

fn json_message(level: Level, message: &str) -> String {
    let message = JsonMessage {
        level: level.name(),
        time: time(),
        message,
    };
    escape_json(&serde_json::to_string(&message).expect("a message is made of text"))
}

fn conceal_strings(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(concealed) = conceal_credentials(text) {
                *text = concealed;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(conceal_strings),
        Value::Object(fields) => fields.values_mut().for_each(conceal_strings),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn time() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true)
}

impl Terminal {
    /// Counts a warning, and keeps it if it is one of the first.
    fn keep_warning(&self, text: &str) {
        let mut state = self.state();
        state.warnings += 1;
        if state.first_warnings.len() < KEPT_WARNINGS {
            state.first_warnings.push(text.to_owned());
        }
    }

    /// Writes a line, if the run shows messages of this level.
    fn write_message(&self, level: Level, line: &str) {
        let state = self.state();
        if Some(level) <= state.shown {
            self.write_beside_progress(&state, line);
        }
    }

    /// Writes a line of progress, where there is no progress line to redraw.
    pub(super) fn write_progress(&self, line: &str) {
        match self.message_format() {
            MessageFormat::Text => self.write_line(line),
            MessageFormat::Json => self.write_line(&json_message(Level::Note, line)),
        }
    }

    /// Writes an error or a result. For programs, nothing may follow it.
    pub(super) fn write_last(&self, line: &str) {
        let mut state = self.state();
        if self.message_format() == MessageFormat::Json {
            state.shown = None;
        }
        self.write_beside_progress(&state, line);
    }
}

struct Logger;

impl Log for Logger {
    /// Accepts only trayscan's own records: libraries may log headers, which contain tokens.
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with(env!("CARGO_CRATE_NAME"))
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let level = match record.level() {
            log::Level::Error => Level::Error,
            log::Level::Warn => Level::Warning,
            log::Level::Info => Level::Info,
            log::Level::Debug | log::Level::Trace => Level::Debug,
        };
        message(level, &record.args().to_string());
    }

    fn flush(&self) {}
}

/// Installs the logger. The level is `warn` until [`super::Terminal::show`] raises it.
pub(crate) fn install_logger() {
    // Fails only if a logger is already installed.
    let _ = log::set_logger(&Logger);
    log::set_max_level(LevelFilter::Warn.max(log::max_level()));
}
