//! Splits a response into batches while it arrives, whatever its size.
//!
//! This finds where values start and end, and checks the syntax between them. A complete batch without flaws is
//! read in place, any other value is parsed by `serde_json`, so only valid JSON is accepted. Whitespace between
//! the tokens of a value is dropped. All memory is bounded.

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use memchr::memchr2;

use super::index::{GeneralIndex, Index};
use super::scan::BatchScanner;
use super::{BLANK_LIMIT, VALUE_LIMIT};
use crate::batch::indexed::offsets;
use crate::batch::{Batch, unquote};
use crate::secret::brief;

/// Maximum nesting of a value, as in `serde_json`.
const DEPTH_LIMIT: usize = 127;

/// The structure of a response (interface, section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Version 1: an array of batches.
    Flat,
    /// Version 2: an object with `data` and `next_token`.
    Page,
    /// Not a response but a file: batches one after another, as in ndjson.
    Lines,
}

/// Why a response cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ParseError {
    /// It ended too early; a retry may help.
    Cut,
    /// It violates the interface.
    Broken(String),
    /// One of its batches violates the interface, and `--lenient` would keep it.
    Flawed(String),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => f.write_str("the JSON is incomplete"),
            Self::Broken(why) | Self::Flawed(why) => f.write_str(why),
        }
    }
}

fn invalid<T>(why: impl Into<String>) -> Result<T, ParseError> {
    Err(ParseError::Broken(why.into()))
}

/// A batch in a response.
pub(crate) enum Item<'a> {
    /// Parsed already, without flaws.
    Batch(Batch),
    /// JSON text to be parsed.
    Text(&'a str),
}

/// The parser state before the next byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SplitState {
    Start,
    /// After `{`: a name or the end.
    FirstName,
    Name,
    Colon,
    Value,
    AfterValue,
    /// After `[`: a batch or the end.
    FirstBatch,
    Batch,
    AfterBatch,
    End,
}

/// The value of `next_token`.
enum Next {
    Null,
    Text(String),
}

/// A value that has not arrived completely.
#[derive(Default)]
struct PartialValue {
    text: Vec<u8>,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Number of dropped whitespace characters. Whether they separate two tokens is decided at the next byte.
    blanks: usize,
}

/// Splits one response.
pub(crate) struct Splitter {
    shape: Shape,
    state: SplitState,
    partial: Option<PartialValue>,
    blanks: usize,
    name: String,
    has_data: bool,
    /// `None` if not received yet.
    next_token: Option<Next>,
    /// Number of batches started.
    batches: u64,
    exceeded_limit: Option<String>,
    scanner: BatchScanner,
    /// Batches with whitespace between their tokens that were not passed on yet: their positions in the compact
    /// text of the scanner.
    compacted: Vec<(Range<u32>, Index)>,
}

impl Splitter {
    pub(crate) fn new(shape: Shape) -> Self {
        Self {
            shape,
            state: match shape {
                Shape::Flat | Shape::Page => SplitState::Start,
                Shape::Lines => SplitState::Batch,
            },
            partial: None,
            blanks: 0,
            name: String::new(),
            has_data: false,
            next_token: None,
            batches: 0,
            exceeded_limit: None,
            scanner: BatchScanner::default(),
            compacted: Vec::new(),
        }
    }

    /// Uses the memory of indexes that are no longer needed.
    pub(crate) fn reuse(&mut self, spare: &mut Vec<GeneralIndex>) {
        self.scanner.spare.append(spare);
    }

    /// Returns which batch and field exceeded a limit, if [`Splitter::feed`] failed for that reason.
    pub(crate) fn exceeded_limit(&self) -> Option<&str> {
        self.exceeded_limit.as_deref()
    }

    /// Parses the next piece of the response, and passes each batch to `on_batch`.
    pub(crate) fn feed(
        &mut self,
        text: &Arc<String>,
        on_batch: &mut impl FnMut(Item<'_>) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        let fed = self.feed_text(text, on_batch);
        if !self.compacted.is_empty() {
            self.pass_on(on_batch)?;
        }
        fed
    }

    fn feed_text(
        &mut self,
        text: &Arc<String>,
        on_batch: &mut impl FnMut(Item<'_>) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        if self.state == SplitState::Start && text.starts_with('\u{feff}') {
            return invalid("it begins with a byte order mark, which JSON does not allow");
        }
        let bytes = text.as_bytes();
        let mut position = 0;
        while let Some(&byte) = bytes.get(position) {
            if let Some(partial) = &mut self.partial {
                let taken = partial.take(&bytes[position..]);
                let (taken, complete) = taken.inspect_err(|_| self.note_limit())?;
                position += taken;
                if complete {
                    self.complete(on_batch)?;
                }
                continue;
            }
            if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                self.blanks += 1;
                if self.blanks > BLANK_LIMIT {
                    self.exceeded_limit = Some(format!("after batch {}", self.batches));
                    return invalid("there is too much whitespace");
                }
                position += 1;
                continue;
            }
            self.blanks = 0;
            if matches!(self.state, SplitState::FirstBatch | SplitState::Batch)
                && let Some(length) = self.scan(text, position, on_batch)?
            {
                self.state = self.after_batch();
                self.batches += 1;
                position += length;
                // Nearly always, the next batch follows.
                if self.state == SplitState::AfterBatch && bytes.get(position) == Some(&b',') {
                    self.state = SplitState::Batch;
                    position += 1;
                }
                continue;
            }
            if self.step(byte)? {
                position += 1;
            }
        }
        Ok(())
    }

    /// Reads the batch at `position`; returns its length, or `None` if it must be read in another way.
    fn scan(
        &mut self,
        text: &Arc<String>,
        position: usize,
        on_batch: &mut impl FnMut(Item<'_>) -> Result<(), ParseError>,
    ) -> Result<Option<usize>, ParseError> {
        let start = self.scanner.compact.len();
        let Some(found) = self.scanner.object(&text[position..]) else {
            return Ok(None);
        };
        if !found.is_compacted {
            if !self.compacted.is_empty() {
                self.pass_on(on_batch)?;
            }
            let Some(object) = offsets(position..position + found.length) else {
                return Ok(None);
            };
            on_batch(Item::Batch(Batch::new(
                Arc::clone(text),
                object,
                found.index,
            )))?;
        } else if let Some(object) = offsets(start..self.scanner.compact.len()) {
            if self.compacted.is_empty() {
                // The batches that follow have whitespace, too.
                self.scanner.compact.reserve(text.len() - position);
            }
            self.compacted.push((object, found.index));
        } else {
            self.scanner.compact.truncate(start);
            return Ok(None);
        }
        Ok(Some(found.length))
    }

    /// Passes the compacted batches on, which share one text.
    fn pass_on(
        &mut self,
        on_batch: &mut impl FnMut(Item<'_>) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        let text = Arc::new(self.scanner.compact.take());
        for (object, index) in self.compacted.drain(..) {
            on_batch(Item::Batch(Batch::new(Arc::clone(&text), object, index)))?;
        }
        Ok(())
    }

    /// Consumes one byte outside of values; returns false if the byte starts a value.
    fn step(&mut self, byte: u8) -> Result<bool, ParseError> {
        self.state = match (self.state, byte) {
            (SplitState::Start, b'[') if self.shape == Shape::Flat => SplitState::FirstBatch,
            (SplitState::Start, b'{') if self.shape == Shape::Page => SplitState::FirstName,
            (SplitState::Start, _) => {
                let expected = match self.shape {
                    Shape::Flat => "a JSON array",
                    Shape::Page | Shape::Lines => "a JSON object",
                };
                return invalid(format!("it is not {expected}"));
            }
            (SplitState::FirstName | SplitState::AfterValue, b'}') => SplitState::End,
            (SplitState::AfterValue, b',') => SplitState::Name,
            (SplitState::Colon, b':') => SplitState::Value,
            (SplitState::Value, b'[') if self.name == "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    return invalid("`data` appears twice");
                }
                SplitState::FirstBatch
            }
            (SplitState::FirstBatch | SplitState::AfterBatch, b']') => match self.shape {
                Shape::Flat | Shape::Lines => SplitState::End,
                Shape::Page => SplitState::AfterValue,
            },
            (SplitState::AfterBatch, b',') => SplitState::Batch,
            (SplitState::FirstName | SplitState::Name, b'"') => {
                self.state = SplitState::Name;
                self.start_value();
                return Ok(false);
            }
            (SplitState::Value, _) if self.name == "data" => {
                return invalid("`data` is not an array");
            }
            (SplitState::Value, _) if !matches!(byte, b',' | b':' | b']' | b'}') => {
                self.start_value();
                return Ok(false);
            }
            (SplitState::FirstBatch | SplitState::Batch, _)
                if !matches!(byte, b',' | b':' | b']' | b'}') =>
            {
                self.state = SplitState::Batch;
                self.batches += 1;
                self.start_value();
                return Ok(false);
            }
            _ => {
                return invalid(format!(
                    "it is not valid JSON: unexpected `{}`",
                    byte.escape_ascii()
                ));
            }
        };
        Ok(true)
    }

    /// Returns the state after a batch.
    fn after_batch(&self) -> SplitState {
        match self.shape {
            Shape::Flat | Shape::Page => SplitState::AfterBatch,
            Shape::Lines => SplitState::Batch,
        }
    }

    /// Records which value exceeded a limit.
    fn note_limit(&mut self) {
        let text = self
            .partial
            .as_ref()
            .map_or(&[][..], |partial| &partial.text);
        self.exceeded_limit = Some(match self.state {
            SplitState::Name => "a field name".to_owned(),
            SplitState::Value => format!("`{}`", brief(&self.name)),
            _ => {
                let Interrupted { id, field } = Interrupted::of(text);
                let id = id.map(|id| format!(" (`{}`)", brief(&id)));
                let field = field.map(|field| format!(", `{}`", brief(&field)));
                format!(
                    "batch {}{}{}",
                    self.batches,
                    id.unwrap_or_default(),
                    field.unwrap_or_default()
                )
            }
        });
    }

    fn start_value(&mut self) {
        self.partial = Some(PartialValue::default());
    }

    /// Handles a complete value.
    fn complete(
        &mut self,
        on_batch: &mut impl FnMut(Item<'_>) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        let partial = self.partial.take().unwrap_or_default();
        let Ok(text) = str::from_utf8(&partial.text) else {
            return invalid("it is not valid UTF-8");
        };
        match self.state {
            SplitState::Name => {
                self.name = read(text)?;
                self.state = SplitState::Colon;
            }
            SplitState::Value => {
                self.value(text)?;
                self.state = SplitState::AfterValue;
            }
            _ => {
                self.state = self.after_batch();
                self.pass_on(on_batch)?;
                return on_batch(Item::Text(text));
            }
        }
        Ok(())
    }

    fn value(&mut self, text: &str) -> Result<(), ParseError> {
        if self.name != "next_token" {
            // The value is not used, but it must be valid JSON.
            read::<serde::de::IgnoredAny>(text)?;
            return Ok(());
        }
        let token = match text {
            "null" => Next::Null,
            text if text.starts_with('"') => Next::Text(read(text)?),
            _ => return invalid("`next_token` is neither a string nor null"),
        };
        if self.next_token.replace(token).is_some() {
            return invalid("`next_token` appears twice");
        }
        Ok(())
    }

    /// Ends the response; returns the cursor of the next page. Version 1 never has one.
    pub(crate) fn finish(self) -> Result<Option<String>, ParseError> {
        match (self.state, self.shape) {
            (SplitState::End, Shape::Flat) => Ok(None),
            (SplitState::Batch, Shape::Lines) if self.partial.is_none() => Ok(None),
            (SplitState::End, Shape::Page) if !self.has_data => invalid("`data` is missing"),
            (SplitState::End, Shape::Page) => match self.next_token {
                Some(Next::Text(cursor)) => Ok(Some(cursor)),
                Some(Next::Null) => Ok(None),
                None => invalid("`next_token` is missing"),
            },
            _ => Err(ParseError::Cut),
        }
    }
}

fn read<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Result<T, ParseError> {
    serde_json::from_str(text).or_else(|_| invalid("it is not valid JSON: a value is malformed"))
}

fn is_structural(byte: u8) -> bool {
    matches!(byte, b'{' | b'}' | b'[' | b']' | b',' | b':')
}

impl PartialValue {
    /// Consumes bytes until the value is complete or they run out; returns how many, and whether it is
    /// complete.
    fn take(&mut self, bytes: &[u8]) -> Result<(usize, bool), ParseError> {
        let mut position = 0;
        while position < bytes.len() {
            if self.in_string {
                position += self.take_string(&bytes[position..]);
                self.check_size()?;
                if !self.in_string && self.depth == 0 {
                    return Ok((position, true));
                }
                continue;
            }
            let byte = bytes[position];
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => {
                    if self.depth == 0 && !self.text.is_empty() {
                        return Ok((position, true));
                    }
                    self.blanks += 1;
                    if self.blanks > BLANK_LIMIT {
                        return invalid("there is too much whitespace");
                    }
                    position += 1;
                    continue;
                }
                // The byte after a literal or a number belongs to the outside.
                b',' | b']' | b'}' | b':' if self.depth == 0 => return Ok((position, true)),
                b'{' | b'[' => {
                    self.depth += 1;
                    if self.depth > DEPTH_LIMIT {
                        return invalid("a value is nested too deeply");
                    }
                }
                b'}' | b']' => self.depth -= 1,
                b'"' => self.in_string = true,
                _ => {}
            }
            self.part_words(byte);
            self.text.push(byte);
            self.check_size()?;
            position += 1;
            if matches!(byte, b'}' | b']') && self.depth == 0 {
                return Ok((position, true));
            }
        }
        Ok((position, false))
    }

    fn check_size(&self) -> Result<(), ParseError> {
        if self.text.len() > VALUE_LIMIT {
            return invalid(format!("a value is larger than {} kB", VALUE_LIMIT / 1024));
        }
        Ok(())
    }

    /// Keeps whitespace between two tokens: without it, invalid JSON could become valid.
    fn part_words(&mut self, next: u8) {
        let blanks = std::mem::take(&mut self.blanks);
        let previous = self.text.last().copied().unwrap_or(b',');
        if blanks > 0 && !is_structural(previous) && !is_structural(next) {
            self.text.push(b' ');
        }
    }

    /// Consumes bytes of a string up to its end.
    fn take_string(&mut self, bytes: &[u8]) -> usize {
        if std::mem::take(&mut self.escaped) {
            self.text.push(bytes[0]);
            return 1;
        }
        let Some(position) = memchr2(b'"', b'\\', bytes) else {
            self.text.extend_from_slice(bytes);
            return bytes.len();
        };
        self.text.extend_from_slice(&bytes[..=position]);
        match bytes[position] {
            b'"' => self.in_string = false,
            _ => self.escaped = true,
        }
        position + 1
    }
}

/// The start of an object: its id, and the field in which it was interrupted. Used in messages.
#[derive(Debug, Default, PartialEq, Eq)]
struct Interrupted {
    id: Option<String>,
    field: Option<String>,
}

impl Interrupted {
    /// Parses the start of an object without whitespace between tokens.
    fn of(text: &[u8]) -> Self {
        let mut interrupted = Self::default();
        let (mut depth, mut position, mut is_value) = (0, 0, false);
        while let Some(&byte) = text.get(position) {
            position += 1;
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                b':' if depth == 1 => is_value = true,
                b',' if depth == 1 => is_value = false,
                b'"' => {
                    let start = position - 1;
                    position = string_end(text, position);
                    let string = || {
                        let string = String::from_utf8_lossy(&text[start..position]);
                        let content = unquote(&string);
                        // A string that was interrupted has no closing quote.
                        content.strip_prefix('"').unwrap_or(&content).to_owned()
                    };
                    if depth == 1 && !is_value {
                        interrupted.field = Some(string());
                    } else if depth == 1 && interrupted.field.as_deref() == Some("batch_id") {
                        interrupted.id = Some(string());
                    }
                }
                _ => {}
            }
        }
        interrupted
    }
}

/// Returns the position after the closing quote of the string whose content starts at `start`.
fn string_end(text: &[u8], start: usize) -> usize {
    let mut position = start;
    while let Some(found) = memchr2(b'"', b'\\', text.get(position..).unwrap_or_default()) {
        position += found + 1;
        match text[position - 1] {
            b'"' => return position,
            _ => position += 1,
        }
    }
    text.len()
}
