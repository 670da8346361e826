//! One connection, below HTTP: a peer that takes no bytes is cut off, a connection can be reset on
//! purpose, and what hyper answers by itself gets the `detail` that every error has.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutWriter;

/// How long a peer may take no byte of its answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) struct Wire {
    stream: Pin<Box<TimeoutWriter<TcpStream>>>,
    /// Set where the connection is to end in a reset.
    reset: Arc<AtomicBool>,
    /// What goes out in place of an answer of hyper's own, and how much of it is gone.
    instead: Option<(Vec<u8>, usize)>,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, reset: Arc<AtomicBool>) -> Self {
        let mut stream = TimeoutWriter::new(stream);
        stream.set_timeout(Some(WRITE_TIMEOUT));
        Self {
            stream: Box::pin(stream),
            reset,
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

impl Drop for Wire {
    fn drop(&mut self) {
        if self.reset.load(Ordering::Relaxed) {
            // Where this fails the connection is closed in the ordinary way.
            let _ = self.stream.get_ref().set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
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
        // An answer without a body is one slice: ours always have more.
        if let [only] = slices {
            return self.poll_write(context, only);
        }
        self.stream.as_mut().poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(context)
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
    if !bytes.starts_with(b"HTTP/1.1 4") || !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let head = str::from_utf8(bytes).ok()?;
    let detail = match head.get(9..12)? {
        "414" => "The address is too long",
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
    use super::with_detail;

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
