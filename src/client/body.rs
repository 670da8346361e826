//! The body of an answer, unpacked as it arrives.

use std::io::{self, Write as _};

use flate2::write::MultiGzDecoder;
use reqwest::header::{self, HeaderMap, HeaderValue};

/// How an answer may be packed; what is asked for.
pub(super) const ACCEPTED: &str = "gzip";
/// What is unpacked at a time: it may grow a thousandfold before anybody looks.
const STEP: usize = 4096;

/// What came and was not taken yet.
pub(super) enum Body {
    Plain(Vec<u8>),
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    /// Packed in a way that nobody asked for.
    Ignored,
}

impl Body {
    /// Prepares for a body to be put into `room`; nothing where it is packed in another way than was
    /// asked for.
    pub(super) fn new(headers: &HeaderMap, room: Vec<u8>) -> Option<Self> {
        let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
        let coding = codings.next().map_or(&b""[..], HeaderValue::as_bytes);
        let is = |name: &[u8]| coding.eq_ignore_ascii_case(name);
        if codings.next().is_some() {
            None
        } else if is(b"") || is(b"identity") {
            Some(Self::Plain(room))
        } else if is(b"gzip") || is(b"x-gzip") {
            Some(Self::Gzip(Box::new(MultiGzDecoder::new(room))))
        } else {
            None
        }
    }

    /// Takes more; fails where it cannot be unpacked, or holds more than `limit`.
    pub(super) fn take(&mut self, bytes: &[u8], limit: usize) -> io::Result<()> {
        match self {
            Self::Ignored => {}
            Self::Plain(room) => room.extend_from_slice(bytes),
            Self::Gzip(decoder) => {
                for step in bytes.chunks(STEP) {
                    decoder.write_all(step)?;
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

    /// Checks that what was packed is whole.
    pub(super) fn end(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) | Self::Ignored => Ok(()),
            Self::Gzip(decoder) => decoder.try_finish(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Plain(room) => room.len(),
            Self::Gzip(decoder) => decoder.get_ref().len(),
            Self::Ignored => 0,
        }
    }

    /// Hands out what is there, up to the end of a character.
    pub(super) fn text(&mut self) -> Option<String> {
        let room = match self {
            Self::Plain(room) => room,
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Ignored => return Some(String::new()),
        };
        let bytes = std::mem::take(room);
        match String::from_utf8(bytes) {
            Ok(text) => Some(text),
            // A character may be cut by the end of what is there; the rest of it is to come.
            Err(error) if error.utf8_error().error_len().is_none() => {
                let end = error.utf8_error().valid_up_to();
                let mut bytes = error.into_bytes();
                room.extend_from_slice(&bytes[end..]);
                bytes.truncate(end);
                String::from_utf8(bytes).ok()
            }
            Err(_) => None,
        }
    }

    /// Hands out what is there.
    pub(super) fn bytes(&mut self) -> Vec<u8> {
        match self {
            Self::Plain(room) => std::mem::take(room),
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

    fn packed(bytes: &[u8]) -> Vec<u8> {
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
        let whole = packed("Tomate früh".as_bytes());
        for end in 0..=whole.len() {
            let mut body = gzip();
            let taken = body.take(&whole[..end], 100).and_then(|()| body.end());
            assert_eq!(taken.is_ok(), end == whole.len(), "{end}");
        }
        let mut twice = gzip();
        let both = [packed(b"a"), packed(b"b")].concat();
        twice
            .take(&both, 100)
            .and_then(|()| twice.end())
            .expect("two parts");
        assert_eq!(twice.text().as_deref(), Some("ab"));
    }

    #[test]
    fn too_much_is_an_error_before_it_fills_the_memory() {
        let mut body = gzip();
        assert!(body.take(&packed(&vec![b' '; 50 << 20]), 1 << 20).is_err());
        assert!(body.len() < 10 << 20);
    }

    #[test]
    fn characters_stay_whole_between_pieces() {
        let mut body = Body::new(&HeaderMap::new(), Vec::new()).expect("a body");
        let bytes = "aé".as_bytes();
        body.take(&bytes[..2], 100).expect("room");
        assert_eq!(body.text().as_deref(), Some("a"));
        body.take(&bytes[2..], 100).expect("room");
        assert_eq!(body.text().as_deref(), Some("é"));
        body.take(b"\xff", 100).expect("room");
        assert_eq!(body.text(), None);
    }
}
