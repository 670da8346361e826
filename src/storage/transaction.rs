//! Transactions: output that appears complete or not at all.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use crate::error::{Failure, Kind};
use crate::terminal::{self, PrettyJson};
use crate::text;

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

/// Returns the failure for an output that already exists.
pub(super) fn already_exists(name: &str) -> Failure {
    let message = format!("{name} already exists, and `--no-clobber` keeps it");
    Failure::new(Kind::Output, message).hint("choose another name, or remove `--no-clobber`")
}

/// Returns the failure for an output that another program created during the run.
pub(super) fn created_meanwhile(name: &str) -> Failure {
    let message = format!("{name} was created in the meantime, and `--no-clobber` keeps it");
    Failure::new(Kind::Output, message)
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

/// The notation of the escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// For example `\u{1b}`.
    Text,
    /// For example `\u001b`, so that JSON stays valid.
    Json,
    /// The same, and the document is indented and in colour.
    IndentedJson,
}

/// Escapes a stream of text that may be split anywhere, for a terminal: control characters are escaped, and JSON is
/// indented.
#[derive(Debug)]
struct Escaping {
    escapes: Escapes,
    /// Bytes that depend on the next ones: part of a character, or a carriage return.
    pending: Vec<u8>,
    pretty: Option<PrettyJson>,
}

impl Escaping {
    fn new(escapes: Escapes) -> Self {
        Self {
            escapes,
            pending: Vec::new(),
            pretty: (escapes == Escapes::IndentedJson)
                .then(|| PrettyJson::new(terminal::color_on_stdout())),
        }
    }

    /// Returns the escaped text of `bytes` and of the bytes held back before.
    fn push(&mut self, bytes: &[u8]) -> String {
        let mut bytes = [&std::mem::take(&mut self.pending), bytes].concat();
        let whole = match str::from_utf8(&bytes) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => bytes.len(),
        };
        self.pending = bytes.split_off(whole);
        if self.pending.is_empty() && bytes.last() == Some(&b'\r') {
            self.pending.extend(bytes.pop());
        }
        self.escape(&bytes)
    }

    /// Returns the escaped text of the bytes held back at the end.
    fn finish(&mut self) -> String {
        let pending = std::mem::take(&mut self.pending);
        self.escape(&pending)
    }

    fn escape(&mut self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        match self.escapes {
            // In JSON, a carriage return is whitespace: strings cannot contain one.
            Escapes::Json | Escapes::IndentedJson => {
                let json = text::escape_json(&text.replace('\r', " "));
                match &mut self.pretty {
                    Some(pretty) => pretty.push(&json),
                    None => json,
                }
            }
            Escapes::Text => {
                let lines: Vec<_> = text.split("\r\n").map(text::escape).collect();
                lines.join("\r\n")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    /// What arrived at the other end of a stream. `!` stands for a flush.
    #[derive(Clone, Default)]
    struct Arrived(Arc<Mutex<Vec<u8>>>);

    impl Arrived {
        fn text(&self) -> String {
            let bytes = self.0.lock();
            String::from_utf8_lossy(&bytes).into_owned()
        }

        fn stream(&self, is_terminal: bool) -> Stream {
            Stream::new(Box::new(self.clone()), is_terminal, "a stream".to_owned())
        }
    }

    impl Write for Arrived {
        /// Takes a few bytes at a time, as a pipe may do.
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let length = bytes.len().min(3);
            let mut all = self.0.lock();
            all.extend_from_slice(&bytes[..length]);
            Ok(length)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.write_all(b"!")
        }
    }

    /// A stream whose reader has gone.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn a_stream_passes_bytes_on_at_once_and_flushes_them_in_the_end() {
        let arrived = Arrived::default();
        let mut stream = arrived.stream(false);
        stream.escape_on_terminal(Escapes::Text);
        stream.write_all(b"caf\xe9 \x1b\r").expect("written");
        assert_eq!(
            arrived.text(),
            "caf\u{fffd} \u{1b}\r",
            "as it is: this is no terminal"
        );
        stream.flush().expect("flushed");
        stream.seal().expect("sealed");
        stream.prepare().expect("ready");
        assert!(arrived.text().ends_with("\r!"));
        let other = Arrived::default();
        Stream::commit(vec![stream, other.stream(false)]).expect("flushed");
        assert!(arrived.text().ends_with("\r!!"));
        assert_eq!(other.text(), "!");
    }

    #[test]
    fn a_terminal_does_not_get_control_characters() {
        for (escapes, shown) in [(Escapes::Text, r"\u{1b}"), (Escapes::Json, r"\u001b")] {
            let arrived = Arrived::default();
            let mut stream = arrived.stream(true);
            stream.escape_on_terminal(escapes);
            stream.write_all(b"a long line \x1b").expect("written");
            assert_eq!(arrived.text(), format!("a long line {shown}"));
        }
        let arrived = Arrived::default();
        let mut stream = arrived.stream(true);
        stream.escape_on_terminal(Escapes::Text);
        stream.write_all(b"a\r").expect("written");
        assert_eq!(arrived.text(), "a", "a line break may follow");
        stream.seal().expect("sealed");
        assert_eq!(arrived.text(), r"a\u{d}");
    }

    #[test]
    fn a_stream_has_a_name_and_no_path() {
        let mut stream = Arrived::default().stream(false);
        assert_eq!(stream.name(), "a stream");
        assert_eq!(stream.write_by_path().expect("no error"), None);
        stream.expect_database().expect("no database is in the way");
        let file = tempfile::tempfile().expect("a file");
        assert!(!Stream::file(file, "a file".to_owned()).is_terminal);
    }

    #[test]
    fn a_reader_that_has_gone_is_noticed_by_the_last_flush() {
        let mut stream = Stream::new(Box::new(Closed), false, "a pipe".to_owned());
        assert!(stream.flush().is_err());
        let failure = Stream::commit(vec![stream]).expect_err("closed");
        assert_eq!(failure.to_string(), "the reader of a pipe closed it early");
        assert_eq!(failure.kind, Kind::ClosedPipe);
    }

    #[test]
    fn the_hint_depends_on_why_writing_failed() {
        for (kind, hint) in [
            (io::ErrorKind::StorageFull, "the disk is full"),
            (io::ErrorKind::QuotaExceeded, "the disk is full"),
            (io::ErrorKind::FileTooLarge, "the file size limit"),
            (io::ErrorKind::PermissionDenied, "write elsewhere with `-o`"),
        ] {
            let mut stream = Arrived::default().stream(false);
            let failure = stream.failure(kind.into());
            assert_eq!(failure.kind, Kind::Output);
            let (message, found) = failure.into_texts();
            assert_eq!(message, "cannot write to a stream");
            assert!(found.starts_with(hint), "{kind:?}: {found}");
        }
    }

    /// Escapes `text`, split into pieces of `size` bytes.
    fn escaped(escapes: Escapes, text: &str, size: usize) -> String {
        let mut escaping = Escaping::new(escapes);
        let pieces = text.as_bytes().chunks(size);
        let mut shown: String = pieces.map(|piece| escaping.push(piece)).collect();
        shown.push_str(&escaping.finish());
        shown
    }

    #[test]
    fn escapes_do_not_depend_on_how_the_text_is_split() {
        let text = "é\u{1b}[2J,\u{202e}\r\n\"\t\ré\u{9b}\"\r\n🌱\u{7f}\r";
        let expected = "é\\u{1b}[2J,\\u{202e}\r\n\"\t\\u{d}é\\u{9b}\"\r\n🌱\\u{7f}\\u{d}";
        for size in 1..=text.len() {
            assert_eq!(escaped(Escapes::Text, text, size), expected, "{size}");
        }
    }

    #[test]
    fn escaped_json_stays_valid() {
        let text = "{\"a\":\r\n\t\"x\u{7f}\u{202e}\u{9b}é\"}\n";
        for size in 1..=text.len() {
            let shown = escaped(Escapes::Json, text, size);
            assert_eq!(shown, "{\"a\": \n\t\"x\\u007f\\u202e\\u009bé\"}\n");
            let value: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
            assert_eq!(value["a"], "x\u{7f}\u{202e}\u{9b}é");
        }
    }
}
