//! Reads `json`, `ndjson` and `singer`: objects are split from the stream one by one, as those of a response are.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::string::FromUtf8Error;
use std::sync::Arc;

use crate::batch::Batch;
use crate::batch::json::split::{self, Item, Splitter};
use crate::batch::json::{Flaw, Shape};
use crate::formats::record::{FileInfo, ReadError, Record, RecordHandler, RecordPlace, Schema};
use crate::formats::singer::read::SingerStream;
use crate::text;

/// Bytes read at a time.
const SIZE: usize = 256 * 1024;

/// Reads the objects in `bytes`, which are Singer messages if `in_messages`.
pub(crate) fn read(
    bytes: impl Read,
    shape: Shape,
    in_messages: bool,
    each: &mut RecordHandler<'_>,
) -> Result<FileInfo, ReadError> {
    let mut pieces = TextPieces {
        bytes,
        rest: Vec::new(),
        begun: false,
    };
    let mut lines = (shape == Shape::Lines).then(Lines::default);
    let mut splitter = Splitter::new(shape);
    let mut receiver = Receiver {
        each,
        in_messages,
        stream: SingerStream::default(),
        count: 0,
        found: 0,
        ended: None,
    };
    while let Some(text) = pieces.next()? {
        let text = Arc::new(text.map_err(|_| {
            let place = RecordPlace::Batch(receiver.count + 1);
            ReadError::broken(place, "it is not UTF-8", None)
        })?);
        let result = splitter.feed(&text, &mut |found| receiver.take(found));
        match (receiver.ended.take(), result) {
            (Some(Ok(())), _) => return Ok(file_info()),
            (Some(Err(error)), _) => return Err(error),
            (None, Err(error)) => return Err(receiver.broken(&error)),
            (None, Ok(())) => {}
        }
        if let Some(lines) = &mut lines {
            lines.feed(text.as_bytes())?;
        }
    }
    splitter.finish().map_err(|error| receiver.broken(&error))?;
    if let Some(lines) = lines {
        lines.finish(receiver.found)?;
    }
    if in_messages && let Err(why) = receiver.stream.finish() {
        let hint = "the file is cut short: copy or export it again";
        return Err(ReadError::broken(None, why, hint));
    }
    Ok(file_info())
}

/// JSON has no columns: an absent field is null, and any other field may appear.
fn file_info() -> FileInfo {
    FileInfo {
        schema: Schema::Free,
        keeps_unknown_fields: true,
        ..FileInfo::default()
    }
}

/// Passes batches on to the receiver.
struct Receiver<'a, 'b> {
    each: &'a mut RecordHandler<'b>,
    /// Whether batches are inside Singer messages.
    in_messages: bool,
    stream: SingerStream,
    count: u64,
    /// The number of objects, including messages without a batch.
    found: u64,
    /// Set when the receiver has enough, or when reading failed.
    ended: Option<Result<(), ReadError>>,
}

impl Receiver<'_, '_> {
    fn take(&mut self, found: Item<'_>) -> Result<(), split::ParseError> {
        self.count += 1;
        self.found += 1;
        let flow = match found {
            Item::Batch(batch) if self.in_messages => self.read_message(batch.text()),
            Item::Batch(batch) => self.pass_on(&batch),
            Item::Text(text) if self.in_messages => self.read_message(text),
            Item::Text(text) => self.read(text),
        };
        match flow {
            Ok(ControlFlow::Continue(())) => return Ok(()),
            Ok(ControlFlow::Break(())) => self.ended = Some(Ok(())),
            Err(error) => self.ended = Some(Err(error)),
        }
        // Stops the splitter; the reason is in `ended`.
        Err(split::ParseError::Cut)
    }

    fn read_message(&mut self, text: &str) -> Result<ControlFlow<()>, ReadError> {
        let place = RecordPlace::Batch(self.count);
        let message = self.stream.read(text);
        let record = message.map_err(|why| ReadError::broken(place, why, None))?;
        if let Some(record) = record {
            return self.read(record);
        }
        self.count -= 1;
        Ok(ControlFlow::Continue(()))
    }

    fn read(&mut self, text: &str) -> Result<ControlFlow<()>, ReadError> {
        let read = Batch::read_part(text);
        let place = RecordPlace::Batch(self.count);
        // Types are checked elsewhere: an export may be lenient.
        let flaw = read.flaws.iter().find(|flaw| {
            matches!(
                flaw,
                Flaw::NotJson(_) | Flaw::NoObject(_) | Flaw::Repeated(_)
            )
        });
        if let Some(flaw) = flaw {
            return Err(ReadError::broken(place, flaw.to_string(), None));
        }
        let no_batch = |hint| ReadError::broken(place, "it is not a batch", hint);
        match read.batch {
            // It has a field `warnings`, too.
            Some(batch) if batch.unknown().any(|(name, _)| name == "\"set_digest\"") => {
                Err(no_batch(Some(
                    "this is a manifest: pass the export first, and the manifest with `--manifest`; in a folder, a manifest is `_manifest.json`",
                )))
            }
            Some(batch) if batch.columns() > 0 => self.pass_on(&batch),
            _ => Err(no_batch(None)),
        }
    }

    fn pass_on(&mut self, batch: &Batch) -> Result<ControlFlow<()>, ReadError> {
        if self.in_messages
            && let Err(why) = self.stream.check(batch)
        {
            return Err(ReadError::broken(RecordPlace::Batch(self.count), why, None));
        }
        let record = Record {
            schema: Schema::Free,
            known_valid: batch.is_valid(),
            ..Record::of_row(batch, batch.columns(), RecordPlace::Batch(self.count))
        };
        (self.each)(&record).map_err(ReadError::Aborted)
    }

    /// Turns an error of the splitter, which speaks of responses, into one about the file.
    fn broken(&self, error: &split::ParseError) -> ReadError {
        let hint = "the file is cut short: copy or export it again";
        let place = RecordPlace::Batch(self.count + 1);
        match error {
            split::ParseError::Cut if self.count == 0 => {
                ReadError::broken(None, "it ends before its first batch is complete", hint)
            }
            split::ParseError::Cut => {
                ReadError::broken(place, "the file ends in the middle of its JSON", hint)
            }
            split::ParseError::Broken(why) | split::ParseError::Flawed(why) => {
                ReadError::broken(place, why, None)
            }
        }
    }
}

/// Checks that each line is one object. A reader that splits at line breaks would otherwise fail, or see other
/// batches than a reader that counts braces.
#[derive(Default)]
struct Lines {
    /// The number of complete lines.
    ended: u64,
    /// The first and the last byte of the line that is not a blank.
    first: Option<u8>,
    last: Option<u8>,
    /// Whether the line has a byte.
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
            (None, _) => Err(ReadError::broken(place, "the line is empty", None)),
            _ => {
                let why = "the line is not one JSON object; each object must be on its own line";
                Err(ReadError::broken(place, why, None))
            }
        }
    }

    /// Checks the last line, and that `objects` are on as many lines.
    fn finish(mut self, objects: u64) -> Result<(), ReadError> {
        if self.begun {
            self.end()?;
        }
        if self.ended < objects {
            let lines = text::count(self.ended, "line", "lines");
            let why = format!("{objects} JSON objects are on {lines}");
            let hint = "each object must be on its own line: export it again";
            return Err(ReadError::broken(None, why, hint));
        }
        Ok(())
    }
}

/// A stream of text in pieces that end with a line if possible: a batch that is complete in its piece is
/// read much faster.
struct TextPieces<R> {
    bytes: R,
    /// Bytes that were read but not returned yet.
    rest: Vec<u8>,
    begun: bool,
}

impl<R: Read> TextPieces<R> {
    /// Returns the next piece, unless it is not UTF-8; `None` at the end.
    fn next(&mut self) -> io::Result<Option<Result<String, FromUtf8Error>>> {
        let mut piece = std::mem::take(&mut self.rest);
        let missing = (SIZE.saturating_sub(piece.len())).max(SIZE / 2);
        let read = (&mut self.bytes)
            .take(missing as u64)
            .read_to_end(&mut piece)?;
        if !std::mem::replace(&mut self.begun, true) && piece.starts_with("\u{feff}".as_bytes()) {
            piece.drain(..3);
        }
        if piece.is_empty() && read == 0 {
            return Ok(None);
        }
        // A shorter read is the end of the input.
        if read == missing {
            let end = memchr::memrchr(b'\n', &piece).map_or(piece.len(), |line| line + 1);
            self.rest = piece.split_off(end);
        }
        Ok(Some(match String::from_utf8(piece) {
            // A character that is split by the end of the piece continues in the next one.
            Err(error) if error.utf8_error().error_len().is_none() && read == missing => {
                let end = error.utf8_error().valid_up_to();
                let mut piece = error.into_bytes();
                self.rest.splice(..0, piece.drain(end..));
                String::from_utf8(piece)
            }
            text => text,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_between_singer_messages_is_an_error() {
        let batch = r#"{"batch_id":"a","batch_name":"n","batch_creation_date":"2026-05-01T06:00:00Z","number_of_images":1,"warnings":true}"#;
        let each = &mut |_: &Record<'_>| Ok(ControlFlow::Continue(()));
        assert!(read(batch.as_bytes(), Shape::Lines, false, each).is_ok());
        let result = read(batch.as_bytes(), Shape::Lines, true, each);
        let error = result.err().map(|error| format!("{error:?}"));
        let error = error.expect("no message");
        assert!(error.contains("it is not a Singer message"), "{error}");
    }
}
