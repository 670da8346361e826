//! Sets up colour, the error format and the log.

use super::errors::{self, ErrorFormat};
use super::logger;
use super::when::When;

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
pub(crate) fn start(color: When, error_format: ErrorFormat) {
    match color {
        // anstream checks the terminal, `NO_COLOR`, `CLICOLOR` and `TERM`.
        When::Auto => anstream::ColorChoice::Auto,
        When::Always => anstream::ColorChoice::Always,
        When::Never => anstream::ColorChoice::Never,
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
