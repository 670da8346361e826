//! Standard output, checked: every write and flush may fail, and a reader may leave.

use std::io::{self, Write};

use crate::error::{Failure, Kind};

/// Writes `text` to standard output as it is, and flushes it.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    write(io::stdout().lock(), text)
}

/// Writes `text` to standard output, with its colours where those are wanted.
pub(super) fn print_styled(text: &str) -> anyhow::Result<()> {
    write(anstream::stdout().lock(), text)
}

fn write(mut stdout: impl Write, text: &str) -> anyhow::Result<()> {
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| failure(error).into())
}

/// Only here is a broken pipe the reader's leaving; on a socket it is a broken connection.
fn failure(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::new(Kind::ClosedPipe, "the reader of standard output has left");
    }
    Failure::new(Kind::Output, "cannot write to standard output").caused_by(error)
}
