//! Reading with limits: a file may be an endless device or a pipe that stays open.

use std::io::{self, IsTerminal as _, Read};
use std::sync::mpsc;
use std::time::Duration;

use crate::terminal;

/// How long a file or a command may take if standard input is not a terminal.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// How much may be read, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadLimit {
    pub(crate) bytes: usize,
    /// `None` at a terminal: a person may have to be asked for a password.
    pub(crate) time: Option<Duration>,
}

impl ReadLimit {
    /// The bound of a secret.
    pub(crate) fn secret() -> Self {
        Self::of(64 * 1024)
    }

    /// The bound of the config file.
    pub(crate) fn config() -> Self {
        Self::of(1024 * 1024)
    }

    /// The bound of a file with certificates.
    pub(crate) fn certificates() -> Self {
        Self::of(16 * 1024 * 1024)
    }

    fn of(bytes: usize) -> Self {
        let time = (!io::stdin().is_terminal()).then_some(TIME_LIMIT);
        Self { bytes, time }
    }

    /// Opens and reads to the end, within the limits. Opening a pipe may block forever too.
    pub(crate) fn read<R: Read>(
        self,
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
    ) -> io::Result<Vec<u8>> {
        let (sender, receiver) = mpsc::channel();
        terminal::spawn("bounded read", move || {
            let read = open().and_then(|reader| self.read_size(reader));
            // After a timeout, the receiver is gone.
            let _ = sender.send(read);
        })?;
        let received = match self.time {
            Some(time) => receiver.recv_timeout(time),
            None => receiver.recv().map_err(mpsc::RecvTimeoutError::from),
        };
        received.unwrap_or_else(|_| Err(self.too_slow()))
    }

    /// Reads text, as [`ReadLimit::read`] does.
    pub(crate) fn read_text<R: Read>(
        self,
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
    ) -> io::Result<String> {
        let bytes = self.read(open)?;
        // The error of the conversion contains the bytes, which may be secret.
        String::from_utf8(bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text in UTF-8"))
    }

    /// Reads to the end, within the size limit.
    pub(crate) fn read_size(self, reader: impl Read) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        reader.take(self.bytes as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > self.bytes {
            let why = format!("it is larger than {}", self.size());
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        Ok(bytes)
    }

    /// Returns the size limit as text.
    pub(crate) fn size(self) -> String {
        let kib = self.bytes / 1024;
        if kib.is_multiple_of(1024) {
            format!("{} MiB", kib / 1024)
        } else {
            format!("{kib} KiB")
        }
    }

    /// Returns the error for a timeout.
    pub(crate) fn too_slow(self) -> io::Error {
        let time = self.time.unwrap_or_default();
        let why = format!("it took longer than {time:?}");
        io::Error::new(io::ErrorKind::TimedOut, why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: ReadLimit = ReadLimit {
        bytes: 1024,
        time: Some(Duration::from_millis(50)),
    };
    const LONG: ReadLimit = ReadLimit {
        bytes: 1024,
        time: Some(Duration::from_secs(60)),
    };

    #[test]
    fn what_is_larger_than_allowed_is_an_error() {
        let read = |size: usize| LONG.read(move || Ok(io::repeat(b'x').take(size as u64)));
        assert_eq!(read(1024).expect("just right").len(), 1024);
        let error = read(1025).expect_err("too much");
        assert_eq!(error.to_string(), "it is larger than 1 KiB");
        assert_eq!(
            (ReadLimit::secret().size(), ReadLimit::config().size()),
            ("64 KiB".into(), "1 MiB".into())
        );
        let endless = LONG.read(|| Ok(io::repeat(0))).expect_err("endless");
        assert_eq!(endless.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn what_takes_too_long_is_an_error() {
        let (reader, _writer) = io::pipe().expect("a pipe");
        let error = SHORT.read(|| Ok(reader)).expect_err("no data");
        assert_eq!(error.to_string(), "it took longer than 50ms");
    }

    #[test]
    fn invalid_text_is_not_shown() {
        let error = LONG.read_text(|| Ok(&b"hunter2\xff"[..]));
        let error = format!("{:?}", error.expect_err("no text"));
        assert!(
            !error.contains("hunter2") && !error.contains("104"),
            "{error}"
        );
    }

    #[test]
    fn an_error_while_opening_is_reported() {
        let missing = LONG.read(|| std::fs::File::open("/nonexistent"));
        let error = missing.expect_err("no such file");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
