//! One connection, below HTTP: a peer that takes no bytes is cut off, a connection can be reset on
//! purpose, and what hyper answers by itself gets the `detail` that every error has.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutWriter;

/// How long a peer may take no byte of its answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);

/// What a connection is doing: it decides who has to go when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Activity {
    /// It has never sent a whole request.
    Silent,
    /// It waits between two requests.
    Idle,
    /// A request is being answered.
    Busy,
    /// The answer is complete, but not all of it has left.
    Flushing,
}

/// What is known of a connection on both sides of HTTP.
pub(super) struct ConnectionState {
    activity: AtomicU8,
    /// When that began, in milliseconds since the connection did.
    since: AtomicU64,
    opened: Instant,
    reset: AtomicBool,
}

impl Default for ConnectionState {
    fn default() -> Self {
        Self {
            activity: AtomicU8::new(Activity::Silent as u8),
            since: AtomicU64::new(0),
            opened: Instant::now(),
            reset: AtomicBool::new(false),
        }
    }
}

impl ConnectionState {
    pub(super) fn set(&self, activity: Activity) {
        let since = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.since.store(since, Ordering::Relaxed);
        self.activity.store(activity as u8, Ordering::Relaxed);
    }

    pub(super) fn is(&self, activity: Activity) -> bool {
        self.activity.load(Ordering::Relaxed) == activity as u8
    }

    /// Returns when it began to do what it does.
    pub(super) fn since(&self) -> Instant {
        self.opened + Duration::from_millis(self.since.load(Ordering::Relaxed))
    }

    /// Lets the connection end in a reset.
    pub(super) fn reset(&self) {
        self.reset.store(true, Ordering::Relaxed);
    }
}

pub(super) struct TrackedStream {
    stream: Pin<Box<TimeoutWriter<TcpStream>>>,
    link: Arc<ConnectionState>,
    /// What goes out in place of an answer of hyper's own, and how much of it is gone.
    instead: Option<(Vec<u8>, usize)>,
}

impl TrackedStream {
    pub(super) fn new(stream: TcpStream, link: Arc<ConnectionState>) -> Self {
        let mut stream = TimeoutWriter::new(stream);
        stream.set_timeout(Some(WRITE_TIMEOUT));
        Self {
            stream: Box::pin(stream),
            link,
            instead: None,
        }
    }

    /// Sends the replacement of `original`; done when all of it is out.
    fn poll_instead(
        &mut self,
        context: &mut Context<'_>,
        original: usize,
    ) -> Poll<io::Result<usize>> {
        while let Some((bytes, sent)) = &mut self.instead {
            *sent += ready!(self.stream.as_mut().poll_write(context, &bytes[*sent..]))?;
            if *sent == bytes.len() {
                self.instead = None;
            }
        }
        Poll::Ready(Ok(original))
    }
}

impl Drop for TrackedStream {
    fn drop(&mut self) {
        if self.link.reset.load(Ordering::Relaxed) {
            // Where this fails the connection is closed in the ordinary way.
            let _ = self.stream.get_ref().set_zero_linger();
        }
    }
}

impl AsyncRead for TrackedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_read(context, buffer)
    }
}

impl AsyncWrite for TrackedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.instead.is_none() {
            self.instead = with_detail(bytes).map(|bytes| (bytes, 0));
        }
        if self.instead.is_some() {
            return self.poll_instead(context, bytes.len());
        }
        self.stream.as_mut().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // An answer without a body is one slice; ours have more, or their body comes later.
        if let [only] = slices {
            return self.poll_write(context, only);
        }
        self.stream.as_mut().poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.stream.as_mut().poll_flush(context);
        // hyper flushes when it has nothing left to write.
        if flushed.is_ready() && self.link.is(Activity::Flushing) {
            self.link.set(Activity::Idle);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(context)
    }
}

/// Returns an answer that hyper gave by itself (to a request it could not read), with a body.
///
/// Such an answer is a whole head with an error status and no content; an answer of the service
/// always has content.
fn with_detail(bytes: &[u8]) -> Option<Vec<u8>> {
    const EMPTY: &str = "content-length: 0\r\n";
    let is_refusal = bytes.starts_with(b"HTTP/1.1 4") || bytes.starts_with(b"HTTP/1.0 4");
    if !is_refusal || !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let head = str::from_utf8(bytes).ok()?;
    let detail = match head.get(9..12)? {
        "431" => "The headers are too large",
        _ => "This is no HTTP request",
    };
    let body = format!("{{\"detail\":\"{detail}\"}}");
    let described = format!(
        "content-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    let (before, after) = head.split_once(EMPTY)?;
    Some(format!("{before}{described}{after}{body}").into_bytes())
}

#[cfg(test)]
mod tests {
    use crate::server::connection::with_detail;

    #[test]
    fn an_empty_refusal_gets_a_body() {
        let head = b"HTTP/1.1 431 Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        let text = String::from_utf8(with_detail(head).expect("replaced")).expect("text");
        assert!(text.contains("content-length: 38\r\n"), "{text}");
        assert!(
            text.ends_with("\r\n\r\n{\"detail\":\"The headers are too large\"}"),
            "{text}"
        );
    }

    #[test]
    fn what_the_service_says_is_left_alone() {
        let whole =
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 22\r\n\r\n{\"detail\":\"Not Found\"}";
        assert_eq!(with_detail(whole), None);
        assert_eq!(
            with_detail(b"HTTP/1.1 404 Not Found\r\ncontent-length: 22\r\n\r\n"),
            None
        );
        assert_eq!(with_detail(b"HTTP/1.1 100 Continue\r\n\r\n"), None);
    }
}
