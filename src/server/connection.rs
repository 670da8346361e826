//! One connection, below HTTP: times out a client that does not read, resets the connection if a
//! fault says so, and adds the `detail` that every error has to hyper's own error responses.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutWriter;

/// The timeout for a client that does not read its response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);

/// What a connection is doing. Decides which connection is closed if there are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// No complete request has been received yet.
    Silent,
    /// Waiting for the next request.
    Idle,
    /// Processing a request.
    Busy,
    /// The response is complete but not yet flushed.
    Flushing,
}

/// The state of a connection, shared by the code above and below HTTP.
pub(super) struct ConnectionState {
    /// What it is doing, and since when.
    activity: Mutex<(Activity, Instant)>,
    reset: AtomicBool,
}

impl Default for ConnectionState {
    fn default() -> Self {
        Self {
            activity: Mutex::new((Activity::Silent, Instant::now())),
            reset: AtomicBool::new(false),
        }
    }
}

impl ConnectionState {
    pub(super) fn set(&self, activity: Activity) {
        *self.activity.lock() = (activity, Instant::now());
    }

    pub(super) fn is(&self, activity: Activity) -> bool {
        self.activity.lock().0 == activity
    }

    /// Returns when the current activity started.
    pub(super) fn since(&self) -> Instant {
        self.activity.lock().1
    }

    /// Makes the connection end with a reset.
    pub(super) fn reset(&self) {
        self.reset.store(true, Ordering::Relaxed);
    }
}

pub(super) struct TrackedStream {
    stream: Pin<Box<TimeoutWriter<TcpStream>>>,
    state: Arc<ConnectionState>,
    /// The replacement for an error response of hyper, and the number of bytes already sent.
    replacement: Option<(Vec<u8>, usize)>,
}

impl TrackedStream {
    pub(super) fn new(stream: TcpStream, state: Arc<ConnectionState>) -> Self {
        let mut stream = TimeoutWriter::new(stream);
        stream.set_timeout(Some(WRITE_TIMEOUT));
        Self {
            stream: Box::pin(stream),
            state,
            replacement: None,
        }
    }

    /// Sends the replacement. When it is complete, returns `original`, the length that hyper expects.
    fn poll_replacement(
        &mut self,
        context: &mut Context<'_>,
        original: usize,
    ) -> Poll<io::Result<usize>> {
        while let Some((bytes, sent)) = &mut self.replacement {
            *sent += ready!(self.stream.as_mut().poll_write(context, &bytes[*sent..]))?;
            if *sent == bytes.len() {
                self.replacement = None;
            }
        }
        Poll::Ready(Ok(original))
    }
}

impl Drop for TrackedStream {
    fn drop(&mut self) {
        if self.state.reset.load(Ordering::Relaxed) {
            // If this fails, the connection is closed normally.
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
        if self.replacement.is_none() {
            self.replacement = with_detail(bytes).map(|bytes| (bytes, 0));
        }
        if self.replacement.is_some() {
            return self.poll_replacement(context, bytes.len());
        }
        self.stream.as_mut().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // Only a response without a body is a single slice with a complete head.
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
        // hyper flushes after its last write.
        if flushed.is_ready() && self.state.is(Activity::Flushing) {
            self.state.set(Activity::Idle);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(context)
    }
}

/// Adds a body to an error response of hyper itself, sent for a request that it cannot parse. `None`
/// for all other bytes.
///
/// Such a response is a complete head with an error status and no content. The server's own responses
/// always have content.
fn with_detail(bytes: &[u8]) -> Option<Vec<u8>> {
    const EMPTY: &str = "content-length: 0\r\n";
    let is_refusal = bytes.starts_with(b"HTTP/1.1 4") || bytes.starts_with(b"HTTP/1.0 4");
    if !is_refusal || !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let head = str::from_utf8(bytes).ok()?;
    let detail = match head.get(9..12)? {
        "431" => "The headers are too large",
        _ => "This is not an HTTP request",
    };
    let body = format!("{{\"detail\":\"{detail}\"}}");
    let length = body.len();
    let (before, after) = head.split_once(EMPTY)?;
    let described = format!(
        "{before}content-type: application/json\r\ncontent-length: {length}\r\n{after}{body}"
    );
    Some(described.into_bytes())
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
    fn responses_of_the_service_are_unchanged() {
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
