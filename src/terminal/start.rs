//! Sets up colour, the error format and the log.

use super::errors::{self, ErrorFormat};
use super::logger;

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Color {
    /// Only on a terminal.
    #[default]
    Auto,
    Always,
    Never,
}

/// How much is logged to standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    Quiet,
    Normal,
    Verbose,
    EveryRequest,
}

/// Prepares the streams. Must run before the command line is parsed, so that usage errors have the
/// right format too.
pub(crate) fn start(color: Color, error_format: ErrorFormat) {
    match color {
        // anstream checks the terminal, `NO_COLOR`, `CLICOLOR` and `TERM`.
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    }
    .write_global();
    errors::set_format(error_format);
    logger::install();
}

/// Sets the log level.
pub(crate) fn set_verbosity(verbosity: Verbosity) {
    log::set_max_level(match verbosity {
        Verbosity::Quiet => log::LevelFilter::Error,
        Verbosity::Normal => log::LevelFilter::Warn,
        Verbosity::Verbose => log::LevelFilter::Info,
        Verbosity::EveryRequest => log::LevelFilter::Debug,
    });
}
