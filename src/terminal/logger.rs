//! The log on standard error: short lines for people, levels by `-q`, `-v` and `-vv`.

use anstyle::{AnsiColor, Style};
use log::{Level, LevelFilter, Log, Metadata, Record};

use super::stderr_line;
use crate::secret::conceal;
use crate::text;

pub(super) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(super) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub(super) const HINT: Style = AnsiColor::Cyan.on_default();
const FAINT: Style = Style::new().dimmed();

struct Logger;

impl Log for Logger {
    /// Speaks for trayscan alone: what libraries log may hold headers, and those hold tokens.
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with(env!("CARGO_CRATE_NAME"))
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let (style, label) = match record.level() {
            Level::Error => (ERROR, "error:"),
            Level::Warn => (WARNING, "warning:"),
            Level::Info => (FAINT, "info:"),
            Level::Debug | Level::Trace => (FAINT, "debug:"),
        };
        // Before anything else: escaped, a secret would not be recognised any more.
        let text = record.args().to_string();
        let text = conceal(&text);
        stderr_line(&format!(
            "{style}{label}{style:#} {}",
            text::one_line(&text)
        ));
    }

    fn flush(&self) {}
}

/// Makes this the program's log, showing warnings until told otherwise.
pub(super) fn install() {
    // Fails only when it is installed already.
    let _ = log::set_logger(&Logger);
    log::set_max_level(LevelFilter::Warn);
}
