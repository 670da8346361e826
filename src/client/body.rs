//! The body of a response, decoded as it is needed, and the buffers for it.

use std::io::{self, Write};

use bytes::{Buf as _, Bytes};
use flate2::write::MultiGzDecoder;
use memchr::{memrchr, memrchr_iter};
use parking_lot::Mutex;
use reqwest::header::{self, HeaderMap, HeaderValue};
use simdutf8::compat::from_utf8;

/// The accepted content encoding.
pub(super) const ACCEPTED: &str = "gzip";
/// Bytes to decompress at a time: the output may be a thousand times larger.
const CHUNK: usize = 256;
/// Bytes to check and copy at a time, so that they are still in the fastest cache when they are copied.
const STEP: usize = 2 << 10;

/// The part of the body that was not taken yet.
pub(super) struct Body {
    decoder: Decoder,
    /// Received, but not decoded yet.
    input: Bytes,
}

enum Decoder {
    Plain(DecodedBody),
    Gzip(Box<MultiGzDecoder<DecodedBody>>),
    /// A content encoding that was not accepted.
    Ignored,
}

/// What was decoded and not taken yet.
#[derive(Default)]
struct DecodedBody {
    text: String,
    /// What follows the text: the first bytes of a character, or anything from an invalid byte on.
    rest: Vec<u8>,
}

impl DecodedBody {
    fn len(&self) -> usize {
        self.text.len() + self.rest.len()
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.rest.is_empty() {
            let valid = self.push_text(bytes);
            self.rest.extend_from_slice(&bytes[valid..]);
        } else {
            let mut all = std::mem::take(&mut self.rest);
            all.extend_from_slice(bytes);
            let valid = self.push_text(&all);
            all.drain(..valid);
            self.rest = all;
        }
    }

    /// Adds the bytes up to the first one that is not valid; returns their number.
    fn push_text(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while taken < bytes.len() {
            let rest = &bytes[taken..];
            let step = &rest[..rest.len().min(STEP)];
            taken += match from_utf8(step) {
                Ok(text) => {
                    self.text.push_str(text);
                    step.len()
                }
                // Usually, the step ends in the middle of a character.
                Err(error) if error.valid_up_to() > 0 => {
                    self.push_text(&step[..error.valid_up_to()])
                }
                Err(_) => break,
            };
        }
        taken
    }

    /// Returns whether the rest may be the start of a character.
    fn is_text(&self) -> bool {
        let error = from_utf8(&self.rest).err();
        error.is_none_or(|error| error.error_len().is_none())
    }
}

impl Write for DecodedBody {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Body {
    /// Prepares to read a body into `buffer`; `None` if its content encoding is not accepted.
    pub(super) fn new(headers: &HeaderMap, buffer: String) -> Option<Self> {
        let buffer = DecodedBody {
            text: buffer,
            rest: Vec::new(),
        };
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
                    buffer.push(&self.input[..taken]);
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

    fn buffer(&mut self) -> Option<&mut DecodedBody> {
        match &mut self.decoder {
            Decoder::Plain(buffer) => Some(buffer),
            Decoder::Gzip(decoder) => Some(decoder.get_mut()),
            Decoder::Ignored => None,
        }
    }

    /// Returns the text so far, and continues in `next`, which must be empty; `None` if it is not text. A text that is
    /// not the last one ends after a batch, if possible: one that is complete in one text is read faster.
    pub(super) fn take_text(&mut self, mut next: String, is_last: bool) -> Option<String> {
        let Some(buffer) = self.buffer() else {
            return Some(String::new());
        };
        if !buffer.is_text() {
            return None;
        }
        let text = &mut buffer.text;
        if !is_last && let Some(end) = end_of_batch(text) {
            next.push_str(&text[end..]);
            text.truncate(end);
        }
        Some(std::mem::replace(text, next))
    }

    /// Returns the bytes so far.
    pub(super) fn take_bytes(&mut self) -> Vec<u8> {
        let buffer = self.buffer().map(std::mem::take).unwrap_or_default();
        let mut bytes = buffer.text.into_bytes();
        bytes.extend(buffer.rest);
        bytes
    }
}

/// Returns where the last batch that is complete ends: before `,{`, or else after the last brace.
fn end_of_batch(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let before_next = memrchr_iter(b'{', bytes).find_map(|start| {
        let before = bytes[..start].trim_ascii_end().strip_suffix(b",")?;
        let before = before.trim_ascii_end();
        before.ends_with(b"}").then_some(before.len())
    });
    before_next.or_else(|| memrchr(b'}', bytes).map(|brace| brace + 1))
}

/// Size of a buffer.
pub(super) const BUFFER: usize = 64 << 10;
/// Maximum number of free buffers.
const MAX_FREE: usize = 256;

/// Reused buffers for response bodies, all of the same size: one that is free always fits. Memory that many threads
/// allocate and free in other sizes gets fragmented.
#[derive(Default)]
pub(crate) struct Buffers {
    free: Mutex<Vec<String>>,
}

impl Buffers {
    /// Returns a buffer for `expected` bytes, or for a part of them.
    pub(super) fn take(&self, expected: usize) -> String {
        if expected < BUFFER / 4 {
            return String::with_capacity(expected);
        }
        let free = self.free.lock().pop();
        free.unwrap_or_else(|| String::with_capacity(BUFFER))
    }

    /// Takes back a buffer that is no longer needed.
    pub(crate) fn recycle(&self, mut buffer: String) {
        let mut free = self.free.lock();
        if buffer.capacity() == BUFFER && free.len() < MAX_FREE {
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
    use proptest::prelude::*;

    fn compressed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    fn gzip() -> Body {
        let headers =
            HeaderMap::from_iter([(header::CONTENT_ENCODING, "gzip".parse().expect("a name"))]);
        Body::new(&headers, String::new()).expect("a body")
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
        assert_eq!(twice.take_text(String::new(), true).as_deref(), Some("ab"));
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
            total += body.take_text(String::new(), true).expect("text").len();
        }
        body.finish().expect("all of it");
        total += body.take_text(String::new(), true).expect("text").len();
        assert_eq!(total, 50 << 20);
    }

    fn plain() -> Body {
        Body::new(&HeaderMap::new(), String::new()).expect("a body")
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
        assert_eq!(body.take_text(String::new(), false).as_deref(), Some("a"));
        push(&mut body, &bytes[2..]);
        assert_eq!(body.take_text(String::new(), false).as_deref(), Some("é"));
        push(&mut body, b"\xff");
        assert_eq!(body.take_text(String::new(), false), None);
    }

    proptest! {
        #[test]
        fn chunks_of_any_size_are_the_same_text(
            bytes in prop_oneof![
                "[aé€😀}]{0,40}".prop_map(String::into_bytes),
                prop::collection::vec(prop::sample::select(&b"a}\xc3\xa9\xf0\x9f\x98\x80\xff"[..]), 0..12),
            ],
            size in 1_usize..6,
        ) {
            let (mut body, mut whole) = (plain(), plain());
            for chunk in bytes.chunks(size) {
                body.push(Bytes::copy_from_slice(chunk));
                whole.push(Bytes::copy_from_slice(chunk));
                prop_assert!(body.decode(1000).is_ok() && whole.decode(1000).is_ok());
            }
            let text = body.take_text(String::new(), true);
            let is_whole = text.is_some() && body.len() == 0;
            let expected = String::from_utf8(bytes.clone()).ok();
            prop_assert_eq!(is_whole.then_some(text).flatten(), expected);
            prop_assert_eq!(whole.take_bytes(), bytes);
        }
    }

    #[test]
    fn a_piece_ends_after_a_batch() {
        for (text, end) in [
            (r#"[{"a":1},{"x":{"y":2},"b""#, 8),
            (r#"[{"a":1} , {"x":{"y":2},"b""#, 8),
            (r#"[{"x":{"y":2},"b""#, 13),
            (r#"{"data":[{},"#, 11),
        ] {
            assert_eq!(end_of_batch(text), Some(end), "{text}");
        }
        assert_eq!(end_of_batch(r#"[{"a":1"#), None);
    }

    #[test]
    fn pieces_end_after_a_brace() {
        let mut body = plain();
        body.push(Bytes::from_static(b"[{},{\"a\":1"));
        assert_eq!(body.decode(100).expect("data"), 10);
        let mut take = |is_last| body.take_text(String::new(), is_last).expect("text");
        assert_eq!(take(false), "[{}");
        assert_eq!(take(false), ",{\"a\":1", "none in the rest");
        body.push(Bytes::from_static(b"},x"));
        assert_eq!(body.decode(2).expect("data"), 2, "no more than asked for");
        assert_eq!(body.decode(100).expect("data"), 3);
        assert_eq!(body.take_text(String::new(), true).as_deref(), Some("},x"));
    }

    #[test]
    fn buffers_are_used_again_for_all_but_small_bodies() {
        let buffers = Buffers::default();
        let buffer = buffers.take(BUFFER);
        let place = buffer.as_ptr();
        buffers.recycle(buffer);
        let small = buffers.take(10);
        assert_ne!(small.as_ptr(), place, "too small for it");
        let reused = buffers.take(1 << 30);
        assert_eq!(reused.as_ptr(), place);
        assert_eq!(reused.capacity(), BUFFER);
        let fresh = buffers.take(BUFFER);
        assert_ne!(fresh.as_ptr(), place, "it is in use");
        buffers.recycle(small);
        buffers.recycle(String::with_capacity(BUFFER + 1));
        assert!(buffers.free.lock().is_empty());
    }

    #[test]
    fn long_texts_stay_whole_between_steps() {
        let text = "aé€😀".repeat(STEP);
        for start in 0..10 {
            let bytes = &text.as_bytes()[start..];
            let mut body = plain();
            body.push(Bytes::copy_from_slice(bytes));
            assert_eq!(body.decode(bytes.len()).expect("data"), bytes.len());
            assert_eq!(body.take_bytes(), bytes);
        }
        let mut body = plain();
        body.push(Bytes::copy_from_slice(&text.as_bytes()[1..]));
        body.decode(text.len()).expect("data");
        assert_eq!(
            body.take_text(String::new(), true).as_deref(),
            Some(&text[1..])
        );
    }
}
