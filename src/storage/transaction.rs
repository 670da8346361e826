//! Transactions: output that appears complete or not at all.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use super::escaping::{Escapes, Escaping};
use crate::error::{Failure, Kind};
use crate::terminal;

/// Output that is published by its commit. Dropped earlier, it leaves nothing behind.
pub(crate) trait Transaction: Write + Send {
    /// Returns the name to use in messages.
    fn name(&self) -> &str;

    /// Prepares a local file for a format that writes the file itself. Returns its path; `None` if only a
    /// stream of bytes can be written.
    fn write_by_path(&mut self) -> io::Result<Option<&Path>>;

    /// Declares that a database is written, and checks that it can replace an existing one.
    fn expect_database(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Ends writing, and flushes everything to disk.
    fn seal(&mut self) -> io::Result<()>;

    /// Waits until everything is ready to be published without further errors.
    fn prepare(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Publishes all of them.
    fn commit(all: Vec<Self>) -> Result<(), Failure>
    where
        Self: Sized;

    /// Converts an error of this output to a message for the user.
    fn failure(&mut self, error: io::Error) -> Failure {
        Failure::from_output(self.name(), error)
    }
}

impl Failure {
    /// Converts an error of writing to `name` to a message for the user.
    pub(crate) fn from_output(name: &str, error: io::Error) -> Self {
        let hint = match error.kind() {
            // On a socket, this is a lost connection; here, the reader closed the pipe.
            io::ErrorKind::BrokenPipe => {
                let message = format!("the reader of {name} closed it early");
                return Self::new(Kind::ClosedPipe, message);
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "the disk is full: free some space, or write elsewhere"
            }
            io::ErrorKind::FileTooLarge => {
                "the file size limit is reached: raise it with `ulimit -f`"
            }
            _ => "write elsewhere with `-o`",
        };
        let message = format!("cannot write to {name}");
        Self::new(Kind::Output, message).hint(hint).caused_by(error)
    }
}

/// Standard output, a device or a pipe. What was written cannot be taken back.
pub(crate) struct Stream {
    sink: Box<dyn Write + Send>,
    is_terminal: bool,
    name: String,
    /// Set for a terminal, so that it does not interpret control characters in the output.
    escaping: Option<Escaping>,
}

impl Stream {
    pub(super) fn stdout(name: String) -> Self {
        let stdout = terminal::stdout();
        let is_terminal = stdout.is_terminal();
        Self::new(Box::new(stdout), is_terminal, name)
    }

    /// A device or a pipe.
    pub(super) fn file(file: File, name: String) -> Self {
        let is_terminal = file.is_terminal();
        Self::new(Box::new(file), is_terminal, name)
    }

    fn new(sink: Box<dyn Write + Send>, is_terminal: bool, name: String) -> Self {
        Self {
            sink,
            is_terminal,
            name,
            escaping: None,
        }
    }

    /// Escapes control characters if this is a terminal.
    pub(super) fn escape_on_terminal(&mut self, escapes: Escapes) {
        self.escaping = self.is_terminal.then(|| Escaping::new(escapes));
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(escaping) = &mut self.escaping else {
            return self.sink.write(bytes);
        };
        let shown = escaping.push(bytes);
        self.sink.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

impl Transaction for Stream {
    fn name(&self) -> &str {
        &self.name
    }

    fn write_by_path(&mut self) -> io::Result<Option<&Path>> {
        Ok(None)
    }

    fn seal(&mut self) -> io::Result<()> {
        match self.escaping.take() {
            Some(mut escaping) => self.sink.write_all(escaping.finish().as_bytes()),
            None => Ok(()),
        }
    }

    fn commit(all: Vec<Self>) -> Result<(), Failure> {
        for mut stream in all {
            let flushed = stream.sink.flush();
            flushed.map_err(|error| stream.failure(error))?;
        }
        Ok(())
    }
}
