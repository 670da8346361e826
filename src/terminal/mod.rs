//! Everything a person reads, and the only writers to standard output and standard error.
//!
//! The rest of the program logs with the `log` macros and returns errors; how that looks, and
//! whether it shows at all, is decided here.

mod errors;
mod grid;
mod logger;
mod panics;
mod progress;
mod stats;
mod stdout;

use crate::text::escape;
use crate::text::one_line;
pub(crate) use errors::{Stop, UsageError, report, report_usage};
pub(crate) use grid::grid;
pub(crate) use panics::{caught, guard};
pub(crate) use progress::ProgressLine;
pub(crate) use stdout::{print, print_json};

use std::sync::OnceLock;

use crate::secret::conceal;
pub(crate) use stats::Stats;

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Color {
    /// On a terminal.
    #[default]
    Auto,
    Always,
    Never,
}

/// How errors are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    #[default]
    Text,
    Json,
}

/// How much is told on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    Quiet,
    Normal,
    Verbose,
    EveryRequest,
}

/// When to show progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ProgressMode {
    #[default]
    Auto,
    Always,
    Never,
}

static ERROR_FORMAT: OnceLock<ErrorFormat> = OnceLock::new();

/// Prepares the streams. Comes before the command line is parsed, so that its errors look right.
pub(crate) fn start(color: Color, error_format: ErrorFormat) {
    match color {
        // anstream looks at the terminal, `NO_COLOR`, `CLICOLOR` and `TERM`.
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    }
    .write_global();
    // Set once: a second start in the same process keeps what the first chose.
    let _ = ERROR_FORMAT.set(error_format);
    logger::install();
}

/// Sets how much of the log shows.
pub(crate) fn set_verbosity(verbosity: Verbosity) {
    log::set_max_level(match verbosity {
        Verbosity::Quiet => log::LevelFilter::Error,
        Verbosity::Normal => log::LevelFilter::Warn,
        Verbosity::Verbose => log::LevelFilter::Info,
        Verbosity::EveryRequest => log::LevelFilter::Debug,
    });
}

/// Shows the closing line of a run, unless it was asked to be quiet.
pub(crate) fn conclude(line: &str) {
    if log::max_level() >= log::LevelFilter::Warn {
        stderr_line(&one_line(line));
    }
}

/// Says no more, but for one last error: the run is over, though parts of it may not know yet.
pub(crate) fn hush() {
    progress::stop();
    log::set_max_level(log::LevelFilter::Off);
}

/// Tells something that is worth knowing and no reason to worry.
pub(crate) fn note(text: &str) {
    if log::max_level() >= log::LevelFilter::Warn {
        let style = logger::HINT;
        stderr_line(&format!("{style}note:{style:#} {}", escape(text)));
    }
}

/// Tells whether colour belongs on standard output.
pub(crate) fn color_on_stdout() -> bool {
    anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
}

/// Returns how many columns the terminal has that standard output is; nothing where it is none.
pub(crate) fn terminal_width() -> Option<usize> {
    use std::io::IsTerminal as _;
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let (terminal_size::Width(width), _) = terminal_size::terminal_size()?;
    Some(width.into())
}

fn error_format() -> ErrorFormat {
    ERROR_FORMAT.get().copied().unwrap_or(ErrorFormat::Text)
}

/// Writes one line to standard error. Where even that fails, nobody is left to be told.
fn stderr_line(line: &str) {
    // Whatever was put into a message on its way here: no secret leaves.
    stderr_json(&conceal(line));
}

/// Writes one line as it is: in JSON, secrets are concealed text by text.
fn stderr_json(line: &str) {
    use std::io::Write as _;
    progress::aside(|| {
        let _ = writeln!(anstream::stderr(), "{line}");
    });
}
