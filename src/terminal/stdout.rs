//! Standard output. Every write and flush is checked, and a closed pipe has its own error class.

use std::io::{self, Write};

use serde::Serialize;

use super::current::{Stdout, current};
use super::pretty_json::PrettyJson;
use crate::error::{Failure, Kind};
use crate::text;

/// Returns standard output.
pub(crate) fn stdout() -> Stdout {
    current().stdout()
}

/// Writes `text` to standard output and flushes it. On a terminal, control characters are escaped.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let stdout = stdout();
    if stdout.is_terminal() {
        return write(stdout, &text::escape(text));
    }
    write(stdout, text)
}

/// Writes a JSON value to standard output: on one line, or indented and in colour on a terminal.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string(value).expect("the keys are text") + "\n";
    if stdout().is_terminal() {
        let json = text::escape_json(&json);
        return write(stdout(), &PrettyJson::new(color_on_stdout()).push(&json));
    }
    write(stdout(), &json)
}

/// Writes `text` to standard output, without its colours if colour is off.
pub(super) fn print_styled(text: &str) -> Result<(), Failure> {
    if color_on_stdout() {
        return write(stdout(), text);
    }
    write(stdout(), &anstream::adapter::strip_str(text).to_string())
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
    current().stdout_color() != anstream::ColorChoice::Never
}

/// Returns the width of the terminal in columns. `None` if standard output is not a terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    if !stdout().is_terminal() {
        return None;
    }
    let (terminal_size::Width(width), _) = terminal_size::terminal_size()?;
    Some(width.into())
}
