//! Reads the XML of a part, piece by piece, and checks that it is well-formed.

use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;

use anyhow::{Result, anyhow, bail, ensure};
use memchr::{memchr, memchr3, memmem};

use super::markup::{self, local};
use super::wellformed::{BROKEN, WellFormed, expect};

/// The number of bytes to unpack at once.
const BUFFER: usize = 256 << 10;
/// The longest tag.
const TAG: usize = 64 << 10;

/// What [`XmlReader::next`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum XmlEvent {
    /// The start of an element.
    Start,
    /// The end of an element, also of one like `<a/>`.
    End,
    /// Text, in which references stand for characters.
    Text,
    /// Text as it is.
    Cdata,
    Comment,
    Instruction,
    /// The end of the part.
    Done,
}

/// Reads a part.
pub(super) struct XmlReader<R> {
    part: R,
    /// The unpacked bytes. Those before `start` were read, and those before `valid` are UTF-8.
    buffer: Vec<u8>,
    start: usize,
    valid: usize,
    pub(super) is_at_end: bool,
    /// The number of unpacked bytes, and the most that there may be.
    pub(super) bytes: u64,
    max_bytes: u64,
    /// The most bytes of a text or a comment, and what is then too large.
    pub(super) max_text: (u64, &'static str),
    /// The position of the last text, or of the last tag without its brackets.
    last: Range<usize>,
    /// Whether that tag is still to be returned as the end of its element.
    is_whole: bool,
    pub(super) check: WellFormed,
}

impl<R: Read> XmlReader<R> {
    pub(super) fn new(part: R, max_bytes: u64, max_text: (u64, &'static str)) -> Self {
        Self {
            part,
            buffer: Vec::new(),
            start: 0,
            valid: 0,
            is_at_end: false,
            bytes: 0,
            max_bytes,
            max_text,
            last: 0..0,
            is_whole: false,
            check: WellFormed::default(),
        }
    }

    /// Returns what is next.
    pub(super) fn next(&mut self) -> Result<XmlEvent> {
        if std::mem::take(&mut self.is_whole) {
            return self.check.end(None).map(|()| XmlEvent::End);
        }
        let (event, [before, after], length) = loop {
            match self.find()? {
                Some(found) => break found,
                None if self.is_at_end => {
                    let is_read = self.rest().is_empty() && self.valid == self.buffer.len();
                    expect(is_read && self.check.is_done())?;
                    return Ok(XmlEvent::Done);
                }
                None => self.fill()?,
            }
        };
        let position = self.bytes - self.rest().len() as u64;
        self.last = self.start + before..self.start + length - after;
        self.start += length;
        if event == XmlEvent::Start {
            self.is_whole = self.last().ends_with(b"/");
            self.last.end -= usize::from(self.is_whole);
        }
        let last = &self.buffer[self.last.clone()];
        match event {
            XmlEvent::Start => self.check.start(last)?,
            XmlEvent::End => self.check.end(Some(last))?,
            XmlEvent::Text => self.check.text(last, position)?,
            XmlEvent::Cdata => expect(self.check.is_inside())?,
            XmlEvent::Instruction => self.check.instruction(last, position)?,
            XmlEvent::Comment => {
                expect(memmem::find(last, b"--").is_none() && !last.ends_with(b"-"))?;
            }
            XmlEvent::Done => {}
        }
        Ok(event)
    }

    /// Finds what is next, the lengths of its brackets, and its length; `None` if it does not end in what was unpacked.
    fn find(&self) -> Result<Option<(XmlEvent, [usize; 2], usize)>> {
        let rest = self.rest();
        let until = |event: XmlEvent, start: &str, end: &str| {
            let (before, after) = (start.len(), end.len());
            let found = memmem::find(rest.get(before..)?, end.as_bytes())?;
            Some((event, [before, after], before + found + after))
        };
        Ok(match rest {
            [] => None,
            [b'<', b'?', ..] => until(XmlEvent::Instruction, "<?", "?>"),
            [b'<', b'!', b'-', b'-', ..] => until(XmlEvent::Comment, "<!--", "-->"),
            _ if rest.starts_with(b"<![CDATA[") => until(XmlEvent::Cdata, "<![CDATA[", "]]>"),
            [b'<', b'!', ..] if rest.len() < 9 && !self.is_at_end => None,
            [b'<', b'!', ..] => bail!("declares entities"),
            [b'<', ..] => {
                let length = tag_length(rest);
                let is_short = length.unwrap_or(rest.len()) <= TAG;
                ensure!(is_short, "has a tag of more than {} KiB", TAG >> 10);
                length.map(|length| match rest[1] {
                    b'/' => (XmlEvent::End, [2, 1], length),
                    _ => (XmlEvent::Start, [1, 1], length),
                })
            }
            _ => {
                let end = self.is_at_end.then_some(rest.len());
                let length = memchr(b'<', rest).or(end);
                length.map(|length| (XmlEvent::Text, [0, 0], length))
            }
        })
    }

    /// Unpacks more.
    pub(super) fn fill(&mut self) -> Result<()> {
        self.buffer.drain(..self.start);
        self.valid -= self.start;
        self.start = 0;
        let before = self.buffer.len();
        let (max, what) = self.max_text;
        let is_short = before as u64 <= max;
        ensure!(is_short, "has {what} of more than {} MiB", max >> 20);
        // Twice as many for a long text, which is searched from its start each time.
        let room = BUFFER.max(before);
        let read = self.part.by_ref().take(room as u64);
        let read = { read }.read_to_end(&mut self.buffer);
        let length = read.map_err(|error| anyhow!("cannot be unpacked: {error}"))?;
        self.is_at_end = length < room;
        self.bytes += length as u64;
        check_size(self.bytes, self.max_bytes)?;
        self.check_characters(before)
    }

    /// Checks the bytes after the first `before` ones.
    fn check_characters(&mut self, before: usize) -> Result<()> {
        let is_foreign = |byte: &u8| *byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r');
        // Without an early end, many bytes are compared at once.
        let has_foreign =
            |bytes: &[u8]| bytes.iter().fold(false, |any, byte| any | is_foreign(byte));
        expect(!self.buffer[before..].chunks(4096).any(has_foreign))?;
        // U+FFFE and U+FFFF, whose first bytes may be among those before.
        let bytes = &self.buffer[before.saturating_sub(2)..];
        let is_last = |place: usize| matches!(bytes.get(place + 2), Some(0xbe | 0xbf));
        expect(!memmem::find_iter(bytes, b"\xef\xbf").any(is_last))?;
        match std::str::from_utf8(&self.buffer[self.valid..]) {
            Ok(text) => self.valid += text.len(),
            Err(error) if error.error_len().is_some() => bail!(BROKEN),
            Err(error) => self.valid += error.valid_up_to(),
        }
        Ok(())
    }

    /// Returns what was unpacked and not yet read.
    pub(super) fn rest(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Skips some of the rest.
    pub(super) fn skip(&mut self, length: usize) {
        self.last = self.start..self.start + length;
        self.start += length;
    }

    /// Returns the last text, the last tag without its brackets, or what was skipped last.
    pub(super) fn last(&self) -> &[u8] {
        &self.buffer[self.last.clone()]
    }

    /// Returns the number of bytes that were read.
    pub(super) fn position(&self) -> u64 {
        self.bytes - self.rest().len() as u64
    }

    /// Returns whether the next tag or text is directly in a row of a sheet.
    pub(super) fn is_in_row(&self) -> bool {
        self.check.is_in_row && !self.is_whole
    }

    /// Returns the last text, with its line breaks and, unless it is a CDATA section, its references resolved.
    pub(super) fn text(&self, event: XmlEvent) -> Cow<'_, str> {
        let text = std::str::from_utf8(self.last()).unwrap_or_default();
        match event {
            XmlEvent::Cdata => one_line_break(text),
            _ => resolve(text),
        }
    }

    /// Returns the name of the last tag, without its prefix.
    pub(super) fn name(&self) -> &[u8] {
        let tag = self.last();
        let end = tag.iter().position(u8::is_ascii_whitespace);
        local(&tag[..end.unwrap_or(tag.len())])
    }

    /// Returns the value of an attribute of the last start tag; names may have a prefix.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        markup::attribute(self.last(), &self.check.attributes, name)
    }

    /// Returns the names and values of the attributes of the last start tag.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let tag = self.last();
        let attributes = self.check.attributes.iter();
        attributes.map(|attribute| (attribute.name(tag), attribute.value(tag)))
    }
}

/// Checks that a part of this size is not larger than `limit`.
pub(super) fn check_size(size: u64, limit: u64) -> Result<()> {
    ensure!(size <= limit, "unpacks to more than {} MiB", limit >> 20);
    Ok(())
}

/// Returns the length of the tag at the start of `bytes`. Its values may contain brackets.
fn tag_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr3(b'"', b'\'', b'>', &bytes[at..])?;
        if bytes[at] == b'>' {
            return Some(at + 1);
        }
        at += 2 + memchr(bytes[at], &bytes[at + 1..])?;
    }
}

/// Returns what a text says: with its line breaks and references resolved.
pub(super) fn resolve(text: &str) -> Cow<'_, str> {
    match one_line_break(text) {
        Cow::Borrowed(text) => markup::unescape(text),
        Cow::Owned(text) => Cow::Owned(markup::unescape(&text).into_owned()),
    }
}

/// Replaces the line breaks of other systems, as XML requires.
fn one_line_break(text: &str) -> Cow<'_, str> {
    if memchr(b'\r', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
}
