//! `json`, `ndjson` and `singer`: objects taken from the stream one by one, as those of an answer are.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::batch::json::Shape;

use crate::batch::Batch;
use crate::batch::json::Flaw;
use crate::batch::json::split::{self, Item, Splitter};
use crate::formats::record::{Each, FileInfo, ReadError, Record, RecordPlace, Schema};
use crate::formats::singer::read::SingerStream;

/// What is read at a time.
const SIZE: usize = 256 * 1024;

pub(crate) fn read(
    bytes: impl Read,
    shape: Shape,
    in_messages: bool,
    each: &mut Each<'_>,
) -> Result<FileInfo, ReadError> {
    let mut pieces = TextPieces::new(bytes);
    let mut lines = (shape == Shape::Lines).then(Lines::default);
    let mut splitter = Splitter::new(shape);
    let mut taker = Taker {
        each,
        in_messages,
        stream: SingerStream::default(),
        count: 0,
        found: 0,
        ended: None,
    };
    loop {
        let text = match pieces.next()? {
            TextPiece::Text(text) => text,
            TextPiece::Bytes => {
                let place = RecordPlace::Batch(taker.count + 1);
                return Err(ReadError::broken(place, "it is not UTF-8"));
            }
            TextPiece::End => break,
        };
        let text = Arc::new(text);
        let fed = splitter.feed(&text, &mut |found| taker.take(found));
        match (taker.ended.take(), fed) {
            (Some(Ok(())), _) => return Ok(remarks()),
            (Some(Err(unreadable)), _) => return Err(unreadable),
            (None, Err(unreadable)) => return Err(taker.broken(&unreadable)),
            (None, Ok(())) => {}
        }
        if let Some(lines) = &mut lines {
            lines.feed(text.as_bytes())?;
        }
    }
    splitter
        .finish()
        .map_err(|unreadable| taker.broken(&unreadable))?;
    if let Some(lines) = lines {
        lines.finish(taker.found)?;
    }
    Ok(remarks())
}

/// JSON has no columns: what is not there is null, and there may be any other field.
fn remarks() -> FileInfo {
    FileInfo {
        schema: Schema::Free,
        keeps_unknown_fields: true,
        ..FileInfo::default()
    }
}

/// Hands batches on.
struct Taker<'a, 'b> {
    each: &'a mut Each<'b>,
    /// Batches stand in messages of Singer.
    in_messages: bool,
    stream: SingerStream,
    count: u64,
    /// Objects, messages without a batch too.
    found: u64,
    /// Set where no more are wanted, or no more can be read.
    ended: Option<Result<(), ReadError>>,
}

impl Taker<'_, '_> {
    fn take(&mut self, found: Item<'_>) -> Result<(), split::ParseError> {
        self.count += 1;
        self.found += 1;
        let went = match found {
            Item::Batch(batch) => self.hand_on(&batch),
            Item::Text(text) if self.in_messages => self.read_message(text),
            Item::Text(text) => self.read(text),
        };
        match went {
            Ok(ControlFlow::Continue(())) => return Ok(()),
            Ok(ControlFlow::Break(())) => self.ended = Some(Ok(())),
            Err(unreadable) => self.ended = Some(Err(unreadable)),
        }
        // Ends the splitter; why is known here.
        Err(split::ParseError::Cut)
    }

    fn read_message(&mut self, text: &str) -> Result<ControlFlow<()>, ReadError> {
        let place = RecordPlace::Batch(self.count);
        let message = self.stream.take(text);
        let record = message.map_err(|why| ReadError::broken(place, why))?;
        if let Some(record) = record {
            return self.read(record);
        }
        self.count -= 1;
        Ok(ControlFlow::Continue(()))
    }

    fn read(&mut self, text: &str) -> Result<ControlFlow<()>, ReadError> {
        let read = Batch::read_part(text);
        let place = RecordPlace::Batch(self.count);
        // What a value should be is for others to judge: an export may be lenient.
        let flaw = read
            .flaws
            .iter()
            .find(|flaw| matches!(flaw, Flaw::NoObject(_) | Flaw::Repeated(_)));
        if let Some(flaw) = flaw {
            return Err(ReadError::broken(place, flaw.to_string()));
        }
        let Some(batch) = read.batch else {
            return Err(ReadError::broken(place, "it is no batch"));
        };
        if batch.columns() == 0 || is_manifest(&batch) {
            return Err(ReadError::Broken {
                place: Some(place),
                why: "it is no batch".to_owned(),
                hint: is_manifest(&batch).then_some(
                    "this is a manifest: name the export first, and this with `--manifest`",
                ),
            });
        }
        self.hand_on(&batch)
    }

    fn hand_on(&mut self, batch: &Batch) -> Result<ControlFlow<()>, ReadError> {
        if self.in_messages
            && let Err(why) = self.stream.check(batch)
        {
            return Err(ReadError::broken(RecordPlace::Batch(self.count), why));
        }
        let record = Record {
            values: batch,
            columns: batch.columns(),
            sound: batch.is_usual(),
            place: RecordPlace::Batch(self.count),
        };
        (self.each)(&record).map_err(ReadError::Aborted)
    }

    /// Says what the splitter found, which speaks of answers.
    fn broken(&self, unreadable: &split::ParseError) -> ReadError {
        let why = match unreadable {
            split::ParseError::Cut if self.count == 0 => {
                return ReadError::Broken {
                    place: None,
                    why: "it ends before there is anything".to_owned(),
                    hint: Some("it is cut short: copy or export it again"),
                };
            }
            split::ParseError::Cut => "the file ends here, and its JSON does not".to_owned(),
            split::ParseError::Broken(why) => why.replacen("the answer", "the file", 1),
        };
        ReadError::Broken {
            place: Some(RecordPlace::Batch(self.count + 1)),
            why,
            hint: matches!(unreadable, split::ParseError::Cut)
                .then_some("it is cut short: copy or export it again"),
        }
    }
}

/// A manifest has `warnings` as well.
fn is_manifest(batch: &Batch) -> bool {
    batch.unknown().any(|(name, _)| name == "\"set_digest\"")
}

/// Checks that each line holds one object. Readers that go by lines would stumble over anything else, or see
/// something else than a reader that goes by braces.
#[derive(Default)]
struct Lines {
    /// Lines that have ended.
    ended: u64,
    /// The first and the last byte of the line, blanks aside.
    first: Option<u8>,
    last: Option<u8>,
    /// The line has a byte.
    begun: bool,
}

impl Lines {
    fn feed(&mut self, text: &[u8]) -> Result<(), ReadError> {
        let mut rest = text;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.extend(&rest[..end]);
            self.end()?;
            rest = &rest[end + 1..];
        }
        self.begun |= !rest.is_empty();
        self.extend(rest);
        Ok(())
    }

    fn extend(&mut self, text: &[u8]) {
        let is_set = |byte: &&u8| !matches!(byte, b' ' | b'\t' | b'\r');
        let first = self.first.or_else(|| text.iter().find(is_set).copied());
        self.first = first;
        self.last = text.iter().rfind(is_set).copied().or(self.last);
    }

    fn end(&mut self) -> Result<(), ReadError> {
        let place = RecordPlace::Line(self.ended + 1);
        let (first, last) = (self.first.take(), self.last.take());
        self.begun = false;
        self.ended += 1;
        match (first, last) {
            (Some(b'{'), Some(b'}')) => Ok(()),
            (None, _) => Err(ReadError::broken(place, "the line is empty")),
            _ => Err(ReadError::broken(
                place,
                "the line is not one JSON object: each object belongs on a line of its own",
            )),
        }
    }

    /// Ends the last line; there were `objects` in all.
    fn finish(mut self, objects: u64) -> Result<(), ReadError> {
        if self.begun {
            self.end()?;
        }
        if self.ended < objects {
            return Err(ReadError::Broken {
                place: None,
                why: format!("{objects} JSON objects stand on {} lines", self.ended),
                hint: Some("each object belongs on a line of its own: export it again"),
            });
        }
        Ok(())
    }
}

enum TextPiece {
    Text(String),
    /// It is no text.
    Bytes,
    End,
}

/// A stream of text, in pieces that end with a line where they can: a batch that is whole in its piece
/// is read much faster.
struct TextPieces<R> {
    bytes: R,
    /// What was read and not handed out yet.
    rest: Vec<u8>,
    begun: bool,
}

impl<R: Read> TextPieces<R> {
    fn new(bytes: R) -> Self {
        Self {
            bytes,
            rest: Vec::new(),
            begun: false,
        }
    }

    fn next(&mut self) -> io::Result<TextPiece> {
        let mut piece = std::mem::take(&mut self.rest);
        let missing = (SIZE.saturating_sub(piece.len())).max(SIZE / 2);
        let read = (&mut self.bytes)
            .take(missing as u64)
            .read_to_end(&mut piece)?;
        if !std::mem::replace(&mut self.begun, true) && piece.starts_with("\u{feff}".as_bytes()) {
            piece.drain(..3);
        }
        if piece.is_empty() && read == 0 {
            return Ok(TextPiece::End);
        }
        // Less than was asked for: the end.
        if read == missing {
            let end = memchr::memrchr(b'\n', &piece).map_or(piece.len(), |line| line + 1);
            self.rest = piece.split_off(end);
        }
        Ok(match String::from_utf8(piece) {
            Ok(text) => TextPiece::Text(text),
            // A character that the end of the piece cuts goes on in the next one.
            Err(error) if error.utf8_error().error_len().is_none() && read == missing => {
                let end = error.utf8_error().valid_up_to();
                let mut piece = error.into_bytes();
                self.rest.splice(..0, piece.drain(end..));
                String::from_utf8(piece).map_or(TextPiece::Bytes, TextPiece::Text)
            }
            Err(_) => TextPiece::Bytes,
        })
    }
}
