//! Standard error: single lines, with secrets concealed, that do not disturb the progress line.

use anstyle::{AnsiColor, Style};
use log::LevelFilter;

use super::current::current;
use super::progress;
use crate::secret::conceal;
use crate::text::{escape, one_line};

pub(super) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(super) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub(super) const HINT: Style = AnsiColor::Cyan.on_default();

/// Prints the last line of a run, unless the run is quiet.
pub(crate) fn conclude(line: &str) {
    if current().level() >= LevelFilter::Warn {
        stderr_line(&one_line(line));
    }
}

/// Prints information that is useful but not a warning, unless the run is quiet.
pub(crate) fn note(text: &str) {
    if current().level() >= LevelFilter::Warn {
        stderr_line(&format!("{HINT}note:{HINT:#} {}", escape(text)));
    }
}

/// Stops the progress line and the log. Only a final error is still printed.
///
/// The run is over, but some of its threads may still be working.
pub(crate) fn silence() {
    let terminal = current();
    progress::stop(&terminal);
    terminal.state().level = LevelFilter::Off;
}

/// Writes one line to standard error.
pub(super) fn stderr_line(line: &str) {
    // The last chance to conceal a secret, whatever the message was built from.
    stderr_json(&conceal(line));
}

/// Writes one line unchanged. In JSON, the caller conceals secrets in each string.
pub(super) fn stderr_json(line: &str) {
    let terminal = current();
    match &terminal.state().progress {
        Some(bar) => bar.suspend(|| terminal.write_error_line(line)),
        None => terminal.write_error_line(line),
    }
}
