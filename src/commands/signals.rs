//! Signals that ask the program to stop.

#[cfg(unix)]
use std::future::poll_fn;
use std::io;
#[cfg(unix)]
use std::sync::Arc;
#[cfg(unix)]
use std::task::Poll;
use std::time::{Duration, Instant};

#[cfg(unix)]
use tokio::signal::unix;

use crate::error::Kind;
#[cfg(unix)]
use crate::terminal;

/// How long after the first signal another one counts. One request to stop may arrive as several signals: `timeout` sends
/// its signal to the program and to its process group.
const REPEAT_DELAY: Duration = Duration::from_millis(250);

/// The signals that ask the program to stop, without those that repeat the first one at once.
pub(crate) struct Signals {
    caught: Caught,
    /// When the first one arrived.
    first: Option<Instant>,
}

impl Signals {
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self {
            caught: Caught::catch()?,
            first: None,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Kind {
        loop {
            let kind = self.caught.next().await;
            match self.first {
                Some(first) if first.elapsed() < REPEAT_DELAY => {}
                Some(_) => return kind,
                None => {
                    self.first = Some(Instant::now());
                    return kind;
                }
            }
        }
    }
}

/// SIGHUP, SIGINT and SIGTERM, caught from [`Caught::catch`] on.
#[cfg(unix)]
struct Caught(Vec<(unix::Signal, Kind)>);

#[cfg(unix)]
impl Caught {
    fn catch() -> io::Result<Self> {
        let all = [
            (unix::SignalKind::hangup(), Kind::Hangup),
            (unix::SignalKind::interrupt(), Kind::Interrupted),
            (unix::SignalKind::terminate(), Kind::Terminated),
        ];
        // `nohup` and background jobs ignore signals on purpose.
        let wanted = all
            .into_iter()
            .filter(|(signal, _)| !is_ignored(signal.as_raw_value()));
        let caught = wanted.map(|(signal, kind)| Ok((listen(signal)?, kind)));
        caught.collect::<io::Result<_>>().map(Self)
    }

    async fn next(&mut self) -> Kind {
        poll_fn(|context| {
            let mut signals = self.0.iter_mut();
            let received = signals.find_map(|(signal, kind)| {
                let is_received = signal.poll_recv(context).is_ready();
                is_received.then_some(*kind)
            });
            received.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Catches signals of this kind. The first call opens a pair of sockets, and panics inside if it cannot.
#[cfg(unix)]
fn listen(kind: unix::SignalKind) -> io::Result<unix::Signal> {
    terminal::caught(|| unix::signal(kind)).unwrap_or_else(|why| Err(io::Error::other(why)))
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
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0) >> (signal - 1) & 1 == 1
}

/// Ctrl-C: Windows has no other signals.
#[cfg(windows)]
struct Caught {
    interrupt: tokio::signal::windows::CtrlC,
}

#[cfg(windows)]
impl Caught {
    fn catch() -> io::Result<Self> {
        let interrupt = tokio::signal::windows::ctrl_c()?;
        Ok(Self { interrupt })
    }

    async fn next(&mut self) -> Kind {
        self.interrupt.recv().await;
        Kind::Interrupted
    }
}
