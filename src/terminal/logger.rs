//! The log on standard error: one short line per record, filtered by `-q`, `-v` and `-vv`.

use anstyle::Style;
use log::{Level, LevelFilter, Log, Metadata, Record};

use super::current::current;
use super::stderr::{ERROR, WARNING, stderr_line};
use crate::secret::conceal;
use crate::text;

const FAINT: Style = Style::new().dimmed();

struct Logger;

impl Log for Logger {
    /// Accepts only trayscan's own records: libraries may log headers, which contain tokens.
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with(env!("CARGO_CRATE_NAME"))
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) || record.level() > current().level() {
            return;
        }
        let (style, label) = match record.level() {
            Level::Error => (ERROR, "error:"),
            Level::Warn => (WARNING, "warning:"),
            Level::Info => (FAINT, "info:"),
            Level::Debug | Level::Trace => (FAINT, "debug:"),
        };
        // Conceal before escaping: an escaped secret would not be recognised.
        let text = record.args().to_string();
        let text = conceal(&text);
        stderr_line(&format!(
            "{style}{label}{style:#} {}",
            text::one_line(&text)
        ));
    }

    fn flush(&self) {}
}

/// Installs the logger. The level is `warn` until [`super::Terminal::set_verbosity`] raises it.
pub(crate) fn install() {
    // Fails only if a logger is already installed.
    let _ = log::set_logger(&Logger);
    log::set_max_level(LevelFilter::Warn.max(log::max_level()));
}
