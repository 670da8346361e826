//! The body of a response, decompressed as it arrives.

use std::io::{self, Write as _};

use flate2::write::MultiGzDecoder;
use reqwest::header::{self, HeaderMap, HeaderValue};

/// The accepted content encoding.
pub(super) const ACCEPTED: &str = "gzip";
/// Bytes to decompress at a time: the output may be a thousand times larger before the limit is checked.
const CHUNK: usize = 4096;

/// The part of the body that was not taken yet.
pub(super) enum Body {
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
        if codings.next().is_some() {
            None
        } else if is(b"") || is(b"identity") {
            Some(Self::Plain(buffer))
        } else if is(b"gzip") || is(b"x-gzip") {
            Some(Self::Gzip(Box::new(MultiGzDecoder::new(buffer))))
        } else {
            None
        }
    }

    /// Adds bytes; fails if they cannot be decompressed, or if the body is larger than `limit`.
    pub(super) fn push(&mut self, bytes: &[u8], limit: usize) -> io::Result<()> {
        match self {
            Self::Ignored => {}
            Self::Plain(buffer) => buffer.extend_from_slice(bytes),
            Self::Gzip(decoder) => {
                for chunk in bytes.chunks(CHUNK) {
                    decoder.write_all(chunk)?;
                    if decoder.get_ref().len() > limit {
                        break;
                    }
                }
            }
        }
        if self.len() > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(())
    }

    /// Checks that the compressed data is complete.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) | Self::Ignored => Ok(()),
            Self::Gzip(decoder) => decoder.try_finish(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Plain(buffer) => buffer.len(),
            Self::Gzip(decoder) => decoder.get_ref().len(),
            Self::Ignored => 0,
        }
    }

    /// Returns the text so far, up to the last complete character.
    pub(super) fn take_text(&mut self) -> Option<String> {
        let buffer = match self {
            Self::Plain(buffer) => buffer,
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Ignored => return Some(String::new()),
        };
        let bytes = std::mem::take(buffer);
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
        match self {
            Self::Plain(buffer) => std::mem::take(buffer),
            Self::Gzip(decoder) => std::mem::take(decoder.get_mut()),
            Self::Ignored => Vec::new(),
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
            let result = body
                .push(&complete[..end], 100)
                .and_then(|()| body.finish());
            assert_eq!(result.is_ok(), end == complete.len(), "{end}");
        }
        let mut twice = gzip();
        let both = [compressed(b"a"), compressed(b"b")].concat();
        twice
            .push(&both, 100)
            .and_then(|()| twice.finish())
            .expect("two parts");
        assert_eq!(twice.take_text().as_deref(), Some("ab"));
    }

    #[test]
    fn too_much_is_an_error_before_it_fills_the_memory() {
        let mut body = gzip();
        assert!(
            body.push(&compressed(&vec![b' '; 50 << 20]), 1 << 20)
                .is_err()
        );
        assert!(body.len() < 10 << 20);
    }

    #[test]
    fn characters_stay_whole_between_pieces() {
        let mut body = Body::new(&HeaderMap::new(), Vec::new()).expect("a body");
        let bytes = "aé".as_bytes();
        body.push(&bytes[..2], 100).expect("room");
        assert_eq!(body.take_text().as_deref(), Some("a"));
        body.push(&bytes[2..], 100).expect("room");
        assert_eq!(body.take_text().as_deref(), Some("é"));
        body.push(b"\xff", 100).expect("room");
        assert_eq!(body.take_text(), None);
    }
}
