//! The log on standard error, filtered by `-q`, `-v` and `-vv`.

use log::{LevelFilter, Log, Metadata, Record};

use super::choices::Level;
use super::stderr::message;

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
pub(crate) fn install() {
    // Fails only if a logger is already installed.
    let _ = log::set_logger(&Logger);
    log::set_max_level(LevelFilter::Warn.max(log::max_level()));
}
