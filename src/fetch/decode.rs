//! Decodes the batches of a response, and records their issues.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::room::Space;
use crate::batch::Batch;
use crate::batch::Page;
use crate::batch::json::split::{Item, ParseError, Splitter};
use crate::batch::json::{Flaw, Shape};
use crate::batch::range::Range;
use crate::client::Version;
use crate::secret::brief;

/// Issues of batches that did not end the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataIssues {
    /// Number of batches that violate the interface, and an example.
    pub(crate) flawed: u64,
    pub(crate) example: Option<String>,
    /// Number of batches dropped because they have no id.
    pub(crate) skipped: u64,
    /// Nullable fields that were absent, one bit each.
    pub(crate) absent: u32,
    /// The seconds with more batches than version 1 may return at once, and a warning about the first.
    pub(crate) crowded: BTreeSet<i64>,
    pub(crate) crowded_warning: Option<String>,
    /// Whether version 1 may have returned only some batches.
    pub(crate) held_back: bool,
}

impl DataIssues {
    pub(crate) fn add(&mut self, more: Self) {
        self.flawed += more.flawed;
        self.skipped += more.skipped;
        self.example = self.example.take().or(more.example);
        self.absent |= more.absent;
        self.crowded.extend(more.crowded);
        self.crowded_warning = self.crowded_warning.take().or(more.crowded_warning);
        self.held_back |= more.held_back;
    }
}

/// Identifies a response in messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseInfo {
    /// The window; `None` if the range was not split.
    pub(super) window: Option<Range>,
    pub(super) page: u64,
}

impl fmt::Display for ResponseInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {}", self.page)?;
        match &self.window {
            Some(window) => write!(f, " of the part {}", window.describe()),
            None => Ok(()),
        }
    }
}

/// Decodes one response, piece by piece.
pub(super) struct PageDecoder {
    splitter: Splitter,
    lenient: bool,
    info: ResponseInfo,
    /// Decoded, but not taken yet.
    pub(super) decoded: DecodedPage,
}

/// Decoded batches of a response.
pub(super) struct DecodedPage {
    pub(super) page: Page,
    /// Number of batches received, including dropped ones.
    pub(super) received: usize,
    pub(super) issues: DataIssues,
    /// The cursor of the next page; `None` after the last one. A part of a large page has none either.
    pub(super) cursor: Option<String>,
    /// Whether an attempt failed after parts of its page were handed over. This is the first part of the next
    /// attempt, which contains the same batches again.
    pub(super) is_retry: bool,
    /// Number of batches returned before that are received again.
    pub(super) refetched: u64,
    /// The room that the page occupies.
    pub(super) space: Option<Space>,
}

impl PageDecoder {
    /// Prepares to decode a response of `version` into `page`, which must be blank.
    pub(super) fn new(version: Version, lenient: bool, info: ResponseInfo, mut page: Page) -> Self {
        let mut splitter = Splitter::new(match version {
            Version::V1 => Shape::Flat,
            Version::V2 => Shape::Page,
        });
        splitter.reuse(&mut page.spare);
        Self {
            splitter,
            lenient,
            info,
            decoded: DecodedPage::new(page),
        }
    }

    /// Decodes the next piece of the response.
    pub(super) fn feed(&mut self, text: &Arc<String>) -> Result<(), ParseError> {
        let Self {
            splitter,
            lenient,
            info,
            decoded,
        } = self;
        let mut is_named = false;
        let fed = splitter.feed(text, &mut |item| {
            let taken = decoded.take(item, *lenient, info);
            is_named = taken.is_err();
            taken
        });
        fed.map_err(|error| match (error, splitter.exceeded_limit()) {
            (ParseError::Broken(why), Some(place)) => {
                ParseError::Broken(format!("{info}, {place}: {why}"))
            }
            (ParseError::Broken(why), None) if !is_named => {
                ParseError::Broken(format!("{info}: {why}"))
            }
            (error, _) => error,
        })
    }

    /// Returns the batches decoded so far as a part of the page, and continues on `blank_page`.
    pub(super) fn take(&mut self, mut blank_page: Page) -> DecodedPage {
        self.splitter.reuse(&mut blank_page.spare);
        let mut next = DecodedPage::new(blank_page);
        next.received = self.decoded.received;
        next.page.answered = self.decoded.page.answered;
        let mut part = std::mem::replace(&mut self.decoded, next);
        part.page.is_continued = true;
        part
    }

    /// Ends the response; returns the remaining batches.
    pub(super) fn finish(mut self) -> Result<DecodedPage, ParseError> {
        let finished = self.splitter.finish();
        self.decoded.cursor = finished.map_err(|error| match error {
            ParseError::Broken(why) => ParseError::Broken(format!("{}: {why}", self.info)),
            other => other,
        })?;
        Ok(self.decoded)
    }
}

impl DecodedPage {
    pub(super) fn new(page: Page) -> Self {
        Self {
            page,
            received: 0,
            issues: DataIssues::default(),
            cursor: None,
            is_retry: false,
            refetched: 0,
            space: None,
        }
    }

    fn take(
        &mut self,
        item: Item<'_>,
        lenient: bool,
        info: &ResponseInfo,
    ) -> Result<(), ParseError> {
        self.received += 1;
        let text = match item {
            Item::Batch(batch) => {
                self.issues.absent |= batch.absent();
                self.page.keep_text(&batch);
                self.page.push(batch);
                return Ok(());
            }
            Item::Text(text) => text,
        };
        let read = Batch::read(text);
        if let Some(flaw) = read.flaws.first() {
            let id = read
                .batch
                .as_ref()
                .map_or_else(String::new, |batch| format!(" (`{}`)", brief(&batch.id())));
            let item = format!(
                "{info}, batch {}{id}: {}",
                self.received,
                brief(&flaw.to_string())
            );
            if matches!(flaw, Flaw::NotJson(_)) {
                // Its content cannot be read.
                return Err(ParseError::Broken(item));
            }
            if !lenient {
                return Err(ParseError::Flawed(item));
            }
            self.issues.flawed += 1;
            self.issues.skipped += u64::from(read.batch.is_none());
            self.issues.example.get_or_insert(item);
        }
        self.issues.absent |= read.absent;
        if let Some(batch) = read.batch {
            self.page.push(batch);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_named_with_its_window() {
        let named = |window| ResponseInfo { window, page: 1 }.to_string();
        assert_eq!(named(None), "page 1");
        let window = Range::between(None, Some(0));
        let text = "page 1 of the part through 1970-01-01T00:00:00Z";
        assert_eq!(named(Some(window)), text);
    }
}
