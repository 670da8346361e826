//! Standard output, checked: every write and flush may fail, and a reader may leave.

use std::io::{self, Write as _};

use crate::error::{Failure, Kind};

/// Writes `text` to standard output and flushes it.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
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
