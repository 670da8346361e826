//! Being told to stop.

use std::io;

use crate::error::Kind;

/// The signals that ask the program to end, caught from the moment of [`Signals::catch`] on.
#[cfg(unix)]
pub(crate) struct Signals {
    hangup: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn catch() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> Kind {
        tokio::select! {
            _ = self.hangup.recv() => Kind::Hangup,
            _ = self.interrupt.recv() => Kind::Interrupted,
            _ = self.terminate.recv() => Kind::Terminated,
        }
    }
}

/// Ctrl-C, where there are no other signals.
#[cfg(windows)]
pub(crate) struct Signals {
    interrupt: tokio::signal::windows::CtrlC,
}

#[cfg(windows)]
impl Signals {
    pub(crate) fn catch() -> io::Result<Self> {
        let interrupt = tokio::signal::windows::ctrl_c()?;
        Ok(Self { interrupt })
    }

    pub(crate) async fn next(&mut self) -> Kind {
        self.interrupt.recv().await;
        Kind::Interrupted
    }
}
