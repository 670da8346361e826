//! Standard output. Every write and flush is checked, and a closed pipe has its own error class.

use std::io::{self, IsTerminal as _, Write};

use crate::error::{Failure, Kind};
use crate::text;

/// Writes `text` to standard output and flushes it. On a terminal, control characters are escaped.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        return write(io::stdout().lock(), &text::escape(text));
    }
    write(io::stdout().lock(), text)
}

/// Like [`print()`], for JSON. It remains valid JSON on a terminal.
pub(crate) fn print_json(json: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        return write(io::stdout().lock(), &text::escape_json(json));
    }
    write(io::stdout().lock(), json)
}

/// Writes `text` to standard output, without its colours if colour is off.
pub(super) fn print_styled(text: &str) -> Result<(), Failure> {
    write(anstream::stdout().lock(), text)
}

fn write(mut stdout: impl Write, text: &str) -> Result<(), Failure> {
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(failure)
}

/// On standard output, a broken pipe means that the reader is gone. On a socket it is a lost connection.
fn failure(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::new(Kind::ClosedPipe, "the reader closed standard output");
    }
    Failure::new(Kind::Output, "cannot write to standard output").caused_by(error)
}

/// Returns whether to use colour on standard output.
pub(crate) fn color_on_stdout() -> bool {
    anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
}

/// Returns the width of the terminal in columns. `None` if standard output is not a terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let (terminal_size::Width(width), _) = terminal_size::terminal_size()?;
    Some(width.into())
}
