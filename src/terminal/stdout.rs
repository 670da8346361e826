//! Standard output, checked: every write and flush may fail, and a reader may leave.

use std::io::{self, IsTerminal as _, Write};

use crate::error::{Failure, Kind};
use crate::text;

/// Writes `text` to standard output and flushes it: as it is, or harmless for a terminal.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        return write(io::stdout().lock(), &text::escape(text));
    }
    write(io::stdout().lock(), text)
}

/// Like [`print()`], for JSON, which stays JSON on a terminal.
pub(crate) fn print_json(json: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        return write(io::stdout().lock(), &text::escape_json(json));
    }
    write(io::stdout().lock(), json)
}

/// Writes `text` to standard output, with its colours where those are wanted.
pub(super) fn print_styled(text: &str) -> Result<(), Failure> {
    write(anstream::stdout().lock(), text)
}

fn write(mut stdout: impl Write, text: &str) -> Result<(), Failure> {
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(failure)
}

/// Only here is a broken pipe the reader's leaving; on a socket it is a broken connection.
fn failure(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::new(Kind::ClosedPipe, "the reader of standard output has left");
    }
    Failure::new(Kind::Output, "cannot write to standard output").caused_by(error)
}
