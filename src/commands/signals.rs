//! Signals that ask the program to stop.

use std::io;
#[cfg(unix)]
use std::sync::Arc;

#[cfg(unix)]
use tokio::signal::unix;

use crate::error::Kind;
#[cfg(unix)]
use crate::terminal;

/// SIGHUP, SIGINT and SIGTERM, caught from [`Signals::catch`] on.
#[cfg(unix)]
pub(crate) struct Signals {
    hangup: Option<unix::Signal>,
    interrupt: Option<unix::Signal>,
    terminate: Option<unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn catch() -> io::Result<Self> {
        let catch = |kind: unix::SignalKind| {
            // `nohup` and background jobs ignore signals on purpose.
            if is_ignored(kind.as_raw_value()) {
                Ok(None)
            } else {
                listen(kind).map(Some)
            }
        };
        Ok(Self {
            hangup: catch(unix::SignalKind::hangup())?,
            interrupt: catch(unix::SignalKind::interrupt())?,
            terminate: catch(unix::SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Kind {
        tokio::select! {
            () = received(&mut self.hangup) => Kind::Hangup,
            () = received(&mut self.interrupt) => Kind::Interrupted,
            () = received(&mut self.terminate) => Kind::Terminated,
        }
    }
}

/// Catches signals of this kind. The first call opens a pair of sockets, and panics inside if it cannot.
#[cfg(unix)]
fn listen(kind: unix::SignalKind) -> io::Result<unix::Signal> {
    terminal::caught(|| unix::signal(kind)).unwrap_or_else(|why| Err(io::Error::other(why)))
}

#[cfg(unix)]
async fn received(signal: &mut Option<unix::Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Makes a write past the file size limit (`ulimit -f`) fail like one on a full disk. Unless SIGXFSZ is caught, it ends
/// the program without a message.
#[cfg(unix)]
pub(crate) fn let_writes_fail() {
    /// SIGXFSZ, which has no name in signal-hook; the same number on Linux, macOS and the BSDs.
    const FILE_TOO_LARGE: i32 = 25;
    // A failure here changes nothing.
    let _ = signal_hook::flag::register(FILE_TOO_LARGE, Arc::default());
}

#[cfg(not(unix))]
pub(crate) fn let_writes_fail() {}

/// Returns whether `signal` was ignored when the program started; false if that is unknown.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Ctrl-C: Windows has no other signals.
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
