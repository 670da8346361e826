//! The body of a response, decoded as it is needed, and the buffers for it.

use std::io::{self, Write as _};

use bytes::{Buf as _, Bytes};
use flate2::write::MultiGzDecoder;
use memchr::memrchr;
use parking_lot::Mutex;
use reqwest::header::{self, HeaderMap, HeaderValue};

/// The accepted content encoding.
pub(super) const ACCEPTED: &str = "gzip";
/// Bytes to decompress at a time: the output may be a thousand times larger.
const CHUNK: usize = 256;

/// The part of the body that was not taken yet.
pub(super) struct Body {
    decoder: Decoder,
    /// Received, but not decoded yet.
    input: Bytes,
}

enum Decoder {
    Plain(Vec<u8>),
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    /// A content encoding that was not accepted.
    Ignored,
}

impl Body {
    /// Prepares to read a body into `buffer`; `None` if its content encoding is not accepted.
    pub(super) fn new(headers: &HeaderMap, buffer: Vec<u8>) -> Option<Self> {
        let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
        let coding = codings.next().map_or(&b""[..], HeaderValue::as_bytes);
        let is = |name: &[u8]| coding.eq_ignore_ascii_case(name);
        let decoder = if codings.next().is_some() {
            return None;
        } else if is(b"") || is(b"identity") {
            Decoder::Plain(buffer)
        } else if is(b"gzip") || is(b"x-gzip") {
            Decoder::Gzip(Box::new(MultiGzDecoder::new(buffer)))
        } else {
            return None;
        };
        let input = Bytes::new();
        Some(Self { decoder, input })
    }

    /// Prepares to ignore a body.
    pub(super) fn ignored() -> Self {
        Self {
            decoder: Decoder::Ignored,
            input: Bytes::new(),
        }
    }

    /// Adds received bytes. All bytes before them must have been decoded.
    pub(super) fn push(&mut self, bytes: Bytes) {
        self.input = bytes;
    }

    /// Decodes until `length` bytes are available or more input is needed; returns how many are available.
    /// Compressed data may give a little more.
    pub(super) fn decode(&mut self, length: usize) -> io::Result<usize> {
        while !self.input.is_empty() && self.len() < length {
            let taken = match &mut self.decoder {
                Decoder::Plain(buffer) => {
                    let taken = self.input.len().min(length - buffer.len());
                    buffer.extend_from_slice(&self.input[..taken]);
                    taken
                }
                Decoder::Gzip(decoder) => {
                    let taken = self.input.len().min(CHUNK);
                    decoder.write_all(&self.input[..taken])?;
                    taken
                }
                Decoder::Ignored => self.input.len(),
            };
            self.input.advance(taken);
        }
        if self.input.is_empty() {
            // Even without any bytes left, it would keep the memory that they were received in.
            self.input = Bytes::new();
        }
        Ok(self.len())
    }

    /// Checks that the compressed data is complete.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match &mut self.decoder {
            Decoder::Plain(_) | Decoder::Ignored => Ok(()),
            Decoder::Gzip(decoder) => decoder.try_finish(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match &self.decoder {
            Decoder::Plain(buffer) => buffer.len(),
            Decoder::Gzip(decoder) => decoder.get_ref().len(),
            Decoder::Ignored => 0,
        }
    }

    fn buffer(&mut self) -> Option<&mut Vec<u8>> {
        match &mut self.decoder {
            Decoder::Plain(buffer) => Some(buffer),
            Decoder::Gzip(decoder) => Some(decoder.get_mut()),
            Decoder::Ignored => None,
        }
    }

    /// Returns the text so far, and continues in `next`, which must be empty. A text that is not the last one
    /// ends after a `}` if it has one: a batch that is complete in one text is read faster.
    pub(super) fn take_text(&mut self, mut next: Vec<u8>, is_last: bool) -> Option<String> {
        let Some(buffer) = self.buffer() else {
            return Some(String::new());
        };
        let end = match memrchr(b'}', buffer) {
            Some(brace) if !is_last => brace + 1,
            _ => buffer.len(),
        };
        next.extend_from_slice(&buffer[end..]);
        buffer.truncate(end);
        let bytes = std::mem::replace(buffer, next);
        match String::from_utf8(bytes) {
            Ok(text) => Some(text),
            // The last character may be incomplete; keep its first bytes for later.
            Err(error) if error.utf8_error().error_len().is_none() => {
                let end = error.utf8_error().valid_up_to();
                let mut bytes = error.into_bytes();
                buffer.extend_from_slice(&bytes[end..]);
                bytes.truncate(end);
                String::from_utf8(bytes).ok()
            }
            Err(_) => None,
        }
    }

    /// Returns the bytes so far.
    pub(super) fn take_bytes(&mut self) -> Vec<u8> {
        self.buffer().map(std::mem::take).unwrap_or_default()
    }
}

/// Maximum size of all free buffers together, and of each.
const MAX_FREE: usize = 4 << 20;
const MAX_SIZE: usize = 5 << 18;
/// Capacities are multiples of this, so that a buffer also fits a slightly larger body.
const STEP: usize = 64 << 10;

/// Reused buffers for response bodies. New memory from the system costs time, and memory freed by many
/// threads gets fragmented.
#[derive(Default)]
pub(crate) struct Buffers {
    free: Mutex<Vec<Vec<u8>>>,
}

impl Buffers {
    /// Returns a buffer for about `expected` bytes.
    pub(super) fn take(&self, expected: usize) -> Vec<u8> {
        // Keep large buffers for large responses.
        let reused = self
            .free
            .lock()
            .pop_if(|buffer| expected > buffer.capacity() / 4);
        let mut buffer = reused.unwrap_or_default();
        if buffer.capacity() < expected {
            buffer.reserve_exact(expected.next_multiple_of(if expected < STEP / 4 {
                1
            } else {
                STEP
            }));
        }
        buffer
    }

    /// Takes back a buffer that is no longer needed.
    pub(crate) fn recycle(&self, mut buffer: Vec<u8>) {
        let mut free = self.free.lock();
        let size: usize = free.iter().map(Vec::capacity).sum();
        if size < MAX_FREE && buffer.capacity() <= MAX_SIZE {
            buffer.clear();
            free.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn compressed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    fn gzip() -> Body {
        let headers =
            HeaderMap::from_iter([(header::CONTENT_ENCODING, "gzip".parse().expect("a name"))]);
        Body::new(&headers, Vec::new()).expect("a body")
    }

    #[test]
    fn packed_bodies_are_whole_or_an_error() {
        let complete = compressed("Tomate früh".as_bytes());
        for end in 0..=complete.len() {
            let mut body = gzip();
            body.push(Bytes::copy_from_slice(&complete[..end]));
            let result = body.decode(100).and_then(|_| body.finish());
            assert_eq!(result.is_ok(), end == complete.len(), "{end}");
        }
        let mut twice = gzip();
        let both = [compressed(b"a"), compressed(b"b")].concat();
        twice.push(both.into());
        twice
            .decode(100)
            .and_then(|_| twice.finish())
            .expect("two parts");
        assert_eq!(twice.take_text(Vec::new(), true).as_deref(), Some("ab"));
    }

    #[test]
    fn no_more_is_unpacked_than_asked_for() {
        let mut body = gzip();
        body.push(compressed(&vec![b' '; 50 << 20]).into());
        let mut total = 0;
        loop {
            let length = body.decode(1 << 20).expect("data");
            assert!(length < 3 << 19, "{length}");
            if length == 0 {
                break;
            }
            total += body.take_text(Vec::new(), true).expect("text").len();
        }
        body.finish().expect("all of it");
        total += body.take_text(Vec::new(), true).expect("text").len();
        assert_eq!(total, 50 << 20);
    }

    fn plain() -> Body {
        Body::new(&HeaderMap::new(), Vec::new()).expect("a body")
    }

    #[test]
    fn characters_stay_whole_between_pieces() {
        let mut body = plain();
        let bytes = "aé".as_bytes();
        let push = |body: &mut Body, bytes| {
            body.push(Bytes::from_static(bytes));
            body.decode(100).expect("data");
        };
        push(&mut body, &bytes[..2]);
        assert_eq!(body.take_text(Vec::new(), false).as_deref(), Some("a"));
        push(&mut body, &bytes[2..]);
        assert_eq!(body.take_text(Vec::new(), false).as_deref(), Some("é"));
        push(&mut body, b"\xff");
        assert_eq!(body.take_text(Vec::new(), false), None);
    }

    #[test]
    fn pieces_end_after_a_brace() {
        let mut body = plain();
        body.push(Bytes::from_static(b"[{},{\"a\":1"));
        assert_eq!(body.decode(100).expect("data"), 10);
        let mut take = |is_last| body.take_text(Vec::new(), is_last).expect("text");
        assert_eq!(take(false), "[{}");
        assert_eq!(take(false), ",{\"a\":1", "none in the rest");
        body.push(Bytes::from_static(b"},x"));
        assert_eq!(body.decode(2).expect("data"), 2, "no more than asked for");
        assert_eq!(body.decode(100).expect("data"), 3);
        assert_eq!(body.take_text(Vec::new(), true).as_deref(), Some("},x"));
    }

    #[test]
    fn room_is_used_again_for_what_is_about_as_large() {
        let buffers = Buffers::default();
        let buffer = buffers.take(1000);
        let place = buffer.as_ptr();
        buffers.recycle(buffer);
        let small = buffers.take(10);
        assert_ne!(small.as_ptr(), place, "too small for it");
        let reused = buffers.take(900);
        assert_eq!(reused.as_ptr(), place);
        let fresh = buffers.take(900);
        assert_ne!(fresh.as_ptr(), place, "it is in use");
        buffers.recycle(Vec::with_capacity(MAX_SIZE + 1));
        assert!(buffers.free.lock().is_empty());
    }
}
